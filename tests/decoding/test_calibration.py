"""Calibration: what temperature and bias mend, what the error counts, and what abstaining leaves."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Prediction
from ethobench.core.errors import EthobenchError
from ethobench.decoding.calibration import (
    Calibration,
    calibration_error,
    coverage_curve,
    cross_calibrate,
    fit_calibration,
    log_loss,
)

ETHOGRAM = Ethogram(["rest", "walk", "other"], background="other")


def world(seed: int, n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Draw true chances, and codes from them."""
    random = np.random.default_rng(seed)
    scores = random.normal([0, -1, 1], 1.5, (n, 3))
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    codes = (chances.cumsum(axis=1) < random.random((n, 1))).sum(axis=1)
    return chances, codes


def too_sure(chances: np.ndarray, temperature: float = 0.5, bias=(0.7, 0.0, -0.4)) -> np.ndarray:
    powers = chances ** (1 / temperature) * np.exp(bias)
    return powers / powers.sum(axis=1, keepdims=True)


def told(seeds, change=lambda p: p):
    predictions, truths = {}, {}
    for seed in seeds:
        chances, codes = world(seed)
        predictions[f"r{seed}"] = Prediction(change(chances), ETHOGRAM, 10.0, exclusive=True)
        truths[f"r{seed}"] = Annotation.from_frames(codes, ETHOGRAM, 10.0)
    return predictions, truths


def test_true_chances_are_left_alone():
    predictions, truths = told(range(3))
    found = fit_calibration(predictions, truths)
    assert found.temperature == pytest.approx(1.0, abs=0.08)
    assert np.ptp(found.bias) < 0.15
    assert calibration_error(predictions, truths) < 0.02


def test_what_was_distorted_is_set_right():
    predictions, truths = told(range(3), too_sure)
    found = fit_calibration(predictions, truths)
    assert found.temperature == pytest.approx(2.0, rel=0.1)
    right, _ = world(0)
    assert np.abs(found.apply(predictions["r0"].probabilities) - right).mean() < 0.02
    honest = cross_calibrate(predictions, truths)
    assert calibration_error(honest, truths) < 0.3 * calibration_error(predictions, truths)
    assert log_loss(honest, truths) < log_loss(predictions, truths)
    assert Calibration.from_dict(found.to_dict()) == found


def test_every_group_counts_the_same():
    predictions, truths = told(range(4), too_sure)
    fine, _ = told([9])
    predictions |= {"fine": fine["r9"]}
    truths |= told([9])[1] | {"fine": told([9])[1]["r9"]}
    of_two = fit_calibration(predictions, truths, groups={f"r{seed}": "one" for seed in range(4)})
    of_five = fit_calibration(predictions, truths)
    assert of_two.temperature < of_five.temperature < 2.1


def test_overlapping_behaviors_are_calibrated_each_on_its_own():
    ethogram = Ethogram(["move", "call"])
    random = np.random.default_rng(0)
    chances = random.random((6000, 2))
    on = random.random((6000, 2)) < chances
    shifted = chances / (chances + (1 - chances) * np.exp([-1.0, 1.0]))
    truth = Annotation.from_frames(on, ethogram, 10.0)
    predictions = {"r": Prediction(shifted, ethogram, 10.0, exclusive=False)}
    found = fit_calibration(predictions, {"r": truth})
    assert found.bias == pytest.approx((-1.0, 1.0), abs=0.15)
    assert np.abs(found.apply(shifted) - chances).mean() < 0.03


def test_calibration_error_is_what_it_says():
    """Two bins: sure (0.9) and right in half of the frames, unsure (0.55) and right in all."""
    chances = np.array([[0.9, 0.1, 0.0]] * 4 + [[0.55, 0.45, 0.0]] * 4)
    codes = np.array([0, 0, 1, 1, 0, 0, 0, 0])
    predictions = {"r": Prediction(chances, ETHOGRAM, 10.0)}
    truths = {"r": Annotation.from_frames(codes, ETHOGRAM, 10.0)}
    assert calibration_error(predictions, truths) == pytest.approx((4 * 0.4 + 4 * 0.45) / 8)


def test_log_loss_is_what_it_says():
    chances = np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.25, 0.25]])
    codes = np.array([0, 0, 0, 1])
    predictions = {"r": Prediction(chances, ETHOGRAM, 10.0)}
    truths = {"r": Annotation.from_frames(codes, ETHOGRAM, 10.0)}
    assert log_loss(predictions, truths) == pytest.approx((3 * np.log(2) + np.log(4)) / 4)
    assert log_loss(predictions, truths, balanced=True) == pytest.approx((np.log(2) + np.log(4)) / 2)


def test_abstaining_leaves_less_and_better():
    predictions, truths = told(range(2))
    curve = coverage_curve(predictions, truths, [0.0, 0.6, 0.8, 1.01])
    assert curve[0].coverage == 1.0
    assert curve[0].coverage > curve[1].coverage > curve[2].coverage > curve[3].coverage == 0.0
    assert curve[0].accuracy < curve[1].accuracy < curve[2].accuracy
    assert np.isnan(curve[3].accuracy)
    codes, said = (np.concatenate(x) for x in zip(*((world(s)[1], world(s)[0].argmax(axis=1)) for s in range(2)), strict=True))
    assert curve[0].accuracy == pytest.approx((codes == said).mean())


def test_abstaining_where_behaviors_overlap():
    random = np.random.default_rng(0)
    chances = random.beta(0.5, 0.5, (3000, 2))
    frames = (random.random((3000, 2)) < chances).astype(np.int64)
    ethogram = Ethogram(["groom", "rear"])
    prediction, truth = Prediction(chances, ethogram, 10.0, exclusive=False), Annotation.from_frames(frames, ethogram, 10.0)
    chances = prediction.probabilities  # in single precision
    whole, sure = coverage_curve({"r": prediction}, {"r": truth}, [0.0, 0.9])
    kept = (np.maximum(chances, 1 - chances) >= 0.9).all(axis=1)
    right = ((chances >= 0.5) == frames).all(axis=1)
    assert (whole.coverage, sure.coverage) == (1.0, pytest.approx(kept.mean()))
    assert (whole.accuracy, sure.accuracy) == (pytest.approx(right.mean()), pytest.approx(right[kept].mean()))
    said = chances[kept] >= 0.5
    f1 = 2 * (said & (frames[kept] == 1)).sum(axis=0) / (said.sum(axis=0) + frames[kept].sum(axis=0))
    assert sure.f1 == pytest.approx(f1.mean())
    assert sure.accuracy > whole.accuracy + 0.05


def test_background_that_overlaps_nothing_is_left_aside():
    ethogram = Ethogram(["groom", "rear", "other"], background="other")
    frames = np.random.default_rng(0).integers(0, 2, (200, 2))
    chances = np.column_stack([np.where(frames == 1, 0.99, 0.01), np.full(200, 0.3)])
    prediction = Prediction(chances, ethogram, 10.0, exclusive=False)
    truth = Annotation.from_frames(np.column_stack([frames, (frames.sum(axis=1) == 0)]).astype(np.int64), ethogram, 10.0)
    whole, sure = coverage_curve({"r": prediction}, {"r": truth}, [0.0, 0.9])
    assert (whole.accuracy, sure.coverage, sure.accuracy, sure.f1) == (1.0, 1.0, 1.0, 1.0)


def test_unobserved_frames_teach_nothing():
    chances, codes = world(0)
    hidden = np.arange(len(codes)) % 3 == 0
    lies = np.where(hidden, 0, codes)
    found = [
        fit_calibration({"r": Prediction(chances, ETHOGRAM, 10.0)}, {"r": Annotation.from_frames(c, ETHOGRAM, 10.0, unobserved=hidden)})
        for c in (codes, lies)
    ]
    assert found[0] == found[1]


def test_damage_is_named():
    with pytest.raises(EthobenchError, match="no calibration"):
        Calibration.from_dict({"temperature": "hot", "bias": [], "exclusive": True})
