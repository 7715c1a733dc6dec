"""Calibration: recovery of temperature and bias, calibration error and log loss."""

from __future__ import annotations

import numpy as np
import pytest
from tests.decoding.examples import ETHOGRAM, draw_predictions, draw_world

from ethobench import Annotation, Ethogram, Prediction
from ethobench.core.errors import EthobenchError
from ethobench.decoding.calibration import (
    Calibration,
    calibration_error,
    cross_calibrate,
    fit_calibration,
    log_loss,
)


def overconfident(probabilities: np.ndarray, temperature: float = 0.5, bias=(0.7, 0.0, -0.4)) -> np.ndarray:
    powers = probabilities ** (1 / temperature) * np.exp(bias)
    return powers / powers.sum(axis=1, keepdims=True)


def test_calibrated_probabilities_stay_the_same():
    predictions, truths = draw_predictions(range(3))
    calibration = fit_calibration(predictions, truths)
    assert calibration.temperature == pytest.approx(1.0, abs=0.08)
    assert np.ptp(calibration.bias) < 0.15
    assert calibration_error(predictions, truths) < 0.02


def test_distorted_probabilities_are_corrected():
    predictions, truths = draw_predictions(range(3), overconfident)
    calibration = fit_calibration(predictions, truths)
    assert calibration.temperature == pytest.approx(2.0, rel=0.1)
    expected, _ = draw_world(0)
    assert np.abs(calibration.apply(predictions["r0"].probabilities) - expected).mean() < 0.02
    calibrated = cross_calibrate(predictions, truths)
    assert calibration_error(calibrated, truths) < 0.3 * calibration_error(predictions, truths)
    assert log_loss(calibrated, truths) < log_loss(predictions, truths)
    assert Calibration.from_dict(calibration.to_dict()) == calibration


def test_all_groups_have_the_same_weight():
    predictions, truths = draw_predictions(range(4), overconfident)
    well_calibrated, _ = draw_predictions([9])
    predictions |= {"fine": well_calibrated["r9"]}
    truths |= draw_predictions([9])[1] | {"fine": draw_predictions([9])[1]["r9"]}
    two_groups = fit_calibration(predictions, truths, groups={f"r{seed}": "one" for seed in range(4)})
    five_groups = fit_calibration(predictions, truths)
    assert two_groups.temperature < five_groups.temperature < 2.1


def test_overlapping_behaviors_are_calibrated_separately():
    ethogram = Ethogram(["move", "call"])
    random = np.random.default_rng(0)
    probabilities = random.random((6000, 2))
    occurs = random.random((6000, 2)) < probabilities
    shifted = probabilities / (probabilities + (1 - probabilities) * np.exp([-1.0, 1.0]))
    truth = Annotation.from_frames(occurs, ethogram, 10.0)
    predictions = {"r": Prediction(shifted, ethogram, 10.0, exclusive=False)}
    calibration = fit_calibration(predictions, {"r": truth})
    assert calibration.bias == pytest.approx((-1.0, 1.0), abs=0.15)
    assert np.abs(calibration.apply(shifted) - probabilities).mean() < 0.03


def test_calibration_error_equals_its_definition():
    """Two bins: confidence 0.9 with half of the frames correct, and 0.55 with all frames correct."""
    probabilities = np.array([[0.9, 0.1, 0.0]] * 4 + [[0.55, 0.45, 0.0]] * 4)
    codes = np.array([0, 0, 1, 1, 0, 0, 0, 0])
    predictions = {"r": Prediction(probabilities, ETHOGRAM, 10.0)}
    truths = {"r": Annotation.from_frames(codes, ETHOGRAM, 10.0)}
    assert calibration_error(predictions, truths) == pytest.approx((4 * 0.4 + 4 * 0.45) / 8)


def test_log_loss_equals_its_definition():
    probabilities = np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.25, 0.25]])
    codes = np.array([0, 0, 0, 1])
    predictions = {"r": Prediction(probabilities, ETHOGRAM, 10.0)}
    truths = {"r": Annotation.from_frames(codes, ETHOGRAM, 10.0)}
    assert log_loss(predictions, truths) == pytest.approx((3 * np.log(2) + np.log(4)) / 4)
    assert log_loss(predictions, truths, balanced=True) == pytest.approx((np.log(2) + np.log(4)) / 2)


def test_unobserved_frames_are_not_used():
    probabilities, codes = draw_world(0)
    hidden = np.arange(len(codes)) % 3 == 0
    changed = np.where(hidden, 0, codes)
    calibrations = [
        fit_calibration(
            {"r": Prediction(probabilities, ETHOGRAM, 10.0)}, {"r": Annotation.from_frames(c, ETHOGRAM, 10.0, unobserved=hidden)}
        )
        for c in (codes, changed)
    ]
    assert calibrations[0] == calibrations[1]


def test_invalid_calibrations_are_refused():
    with pytest.raises(EthobenchError, match="not a valid calibration"):
        Calibration.from_dict({"temperature": "hot", "bias": [], "exclusive": True})
