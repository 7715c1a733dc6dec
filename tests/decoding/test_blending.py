"""Blends: weights that favour who is right, calibration by others, and the way to JSON and back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Prediction
from ethobench.core.errors import EthobenchError
from ethobench.decoding.blending import Blend, fit_blend, weighted_mean
from ethobench.decoding.calibration import Calibration
from ethobench.decoding.decoder import Decoder

ETHOGRAM = Ethogram(["rest", "run"], background="rest")


def told(sure: float, seed: int, too_bold: float = 2.0) -> tuple[dict[str, Prediction], dict[str, Annotation]]:
    """Make predictions whose evidence is as good as told, of the same truths for every seed."""
    predictions, truths = {}, {}
    for name in "abcd":
        codes = np.repeat(np.random.default_rng(ord(name)).integers(0, 2, 60), 20)
        truths[name] = Annotation.from_frames(codes, ETHOGRAM, 10.0)
        scores = np.random.default_rng([seed, ord(name)]).normal(0, 1, 1200) + sure * (2 * codes - 1)
        chance = 1 / (1 + np.exp(-too_bold * scores))
        predictions[name] = Prediction(np.stack([1 - chance, chance], axis=1), ETHOGRAM, 10.0)
    return predictions, truths


def test_who_knows_nothing_gets_no_weight():
    good, truths = told(2.0, 0)
    noise, _ = told(0.0, 1)
    blend, joined = fit_blend({"boost": noise, "tcn": good}, truths)
    assert dict(blend.weights) == {"boost": 0.0, "tcn": 1.0}
    assert {*joined} == {*truths}


def test_two_who_err_apart_are_better_together():
    one, truths = told(1.0, 0)
    two, _ = told(1.0, 1)
    blend, joined = fit_blend({"boost": one, "tcn": two}, truths)
    assert blend.weights["tcn"] == pytest.approx(0.5)

    def right(predictions):
        return np.mean([(predictions[n].annotation.to_codes() == truths[n].to_codes()).mean() for n in truths])

    assert right(joined) > max(right(one), right(two)) + 0.03


def test_it_is_applied_as_it_says_and_comes_back():
    one, truths = told(1.0, 0)
    two, _ = told(2.0, 1, too_bold=9.0)
    blend, _ = fit_blend({"boost": one, "tcn": two}, truths)
    said = {"boost": one["a"], "tcn": two["a"]}
    expected = sum(blend.weights[n] * blend.calibrations[n].apply(p.probabilities) for n, p in said.items())
    np.testing.assert_allclose(blend.apply(said).probabilities, expected, atol=1e-6)
    again = Blend.from_dict(json.loads(json.dumps(blend.to_dict())))
    assert np.array_equal(again.apply(said).probabilities, blend.apply(said).probabilities)
    with pytest.raises(EthobenchError, match="no blend"):
        Blend.from_dict({"weights": {"boost": "much"}})


def test_without_calibration_it_is_the_mean():
    one, _ = told(1.0, 0)
    two, _ = told(1.0, 1)
    said = {"boost": one["a"], "tcn": two["a"]}
    found = Blend({"boost": 0.25, "tcn": 0.75}, {}).apply(said).probabilities
    np.testing.assert_allclose(found, 0.25 * one["a"].probabilities + 0.75 * two["a"].probabilities, atol=1e-6)
    assert np.array_equal(weighted_mean({"boost": one["a"]}, {"boost": 1.0}).probabilities, one["a"].probabilities.astype(np.float32))


def test_what_calibration_takes_from_rare_behaviors_can_be_given_back():
    calibrations = {"boost": Calibration(1.0, (0.5, -0.5), True), "tcn": Calibration(1.0, (1.5, -9.0), True)}
    found = Blend({"boost": 0.5, "tcn": 0.5}, calibrations).priors(ETHOGRAM)
    assert found["rest"] == pytest.approx(np.exp(-1.0))
    assert found["run"] == pytest.approx(np.exp(3.0))
    raw = np.array([[0.3, 0.7], [0.6, 0.4]])
    blend = Blend({"boost": 1.0}, {"boost": calibrations["boost"]})
    calibrated = blend.apply({"boost": Prediction(raw, ETHOGRAM, 10.0)})
    undone, _ = Decoder(priors=blend.priors(ETHOGRAM)).prepare(calibrated)
    np.testing.assert_allclose(undone, raw, atol=1e-6)
