"""Blending: weights of better models, calibration on other recordings, and JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Prediction
from ethobench.core.errors import EthobenchError
from ethobench.decoding import blending
from ethobench.decoding.blending import Blend, fit_blend, weighted_mean
from ethobench.decoding.calibration import Calibration
from ethobench.decoding.decoder import Decoder
from ethobench.features.shared import share_values

ETHOGRAM = Ethogram(["rest", "run"], background="rest")


def draw_predictions(signal: float, seed: int, overconfidence: float = 2.0) -> tuple[dict[str, Prediction], dict[str, Annotation]]:
    """Draw predictions with a signal of this strength, and annotations that are the same for every seed."""
    predictions, truths = {}, {}
    for name in "abcd":
        codes = np.repeat(np.random.default_rng(ord(name)).integers(0, 2, 60), 20)
        truths[name] = Annotation.from_frames(codes, ETHOGRAM, 10.0)
        logits = np.random.default_rng([seed, ord(name)]).normal(0, 1, 1200) + signal * (2 * codes - 1)
        probability = 1 / (1 + np.exp(-overconfidence * logits))
        predictions[name] = Prediction(np.stack([1 - probability, probability], axis=1), ETHOGRAM, 10.0)
    return predictions, truths


def test_an_uninformative_model_has_weight_zero():
    good, truths = draw_predictions(2.0, 0)
    noise, _ = draw_predictions(0.0, 1)
    blend, blended = fit_blend({"boost": noise, "tcn": good}, truths)
    assert dict(blend.weights) == {"boost": 0.0, "tcn": 1.0}
    assert {*blended} == {*truths}


def test_models_with_independent_errors_are_better_together():
    first, truths = draw_predictions(1.0, 0)
    second, _ = draw_predictions(1.0, 1)
    blend, blended = fit_blend({"boost": first, "tcn": second}, truths)
    assert blend.weights["tcn"] == pytest.approx(0.5)

    def accuracy(predictions):
        return np.mean([(predictions[n].annotation.to_codes() == truths[n].to_codes()).mean() for n in truths])

    assert accuracy(blended) > max(accuracy(first), accuracy(second)) + 0.03


def test_blends_of_the_same_predictions_share_calibrations(monkeypatch):
    first, truths = draw_predictions(1.0, 0)
    second, _ = draw_predictions(1.0, 1)
    separate = [fit_blend(models, truths) for models in ({"boost": first, "tcn": second}, {"boost": first})]
    fitted, calibrate = [], blending.calibrate
    monkeypatch.setattr(blending, "calibrate", lambda *args: fitted.append(args) or calibrate(*args))
    with share_values():
        together = [fit_blend(models, truths) for models in ({"boost": first, "tcn": second}, {"boost": first})]
    assert len(fitted) == 2
    for (blend, blended), (expected, expected_blended) in zip(together, separate, strict=True):
        assert blend == expected
        for name in truths:
            np.testing.assert_array_equal(blended[name].probabilities, expected_blended[name].probabilities)


def test_apply_and_round_trip_through_json():
    first, truths = draw_predictions(1.0, 0)
    second, _ = draw_predictions(2.0, 1, overconfidence=9.0)
    blend, _ = fit_blend({"boost": first, "tcn": second}, truths)
    predictions = {"boost": first["a"], "tcn": second["a"]}
    expected = sum(blend.weights[n] * blend.calibrations[n].apply(p.probabilities) for n, p in predictions.items())
    np.testing.assert_allclose(blend.apply(predictions).probabilities, expected, atol=1e-6)
    again = Blend.from_dict(json.loads(json.dumps(blend.to_dict())))
    assert np.array_equal(again.apply(predictions).probabilities, blend.apply(predictions).probabilities)
    with pytest.raises(EthobenchError, match="not a valid blend"):
        Blend.from_dict({"weights": {"boost": "much"}})


def test_without_calibration_a_blend_is_the_weighted_mean():
    first, _ = draw_predictions(1.0, 0)
    second, _ = draw_predictions(1.0, 1)
    predictions = {"boost": first["a"], "tcn": second["a"]}
    blended = Blend({"boost": 0.25, "tcn": 0.75}, {}).apply(predictions).probabilities
    np.testing.assert_allclose(blended, 0.25 * first["a"].probabilities + 0.75 * second["a"].probabilities, atol=1e-6)
    assert np.array_equal(weighted_mean({"boost": first["a"]}, {"boost": 1.0}).probabilities, first["a"].probabilities.astype(np.float32))


def test_a_blend_has_the_boundaries_of_all_models_that_predict_them():
    first = draw_predictions(1.0, 0)[0]
    random = np.random.default_rng(0)
    onsets = [random.uniform(size=(1, first["a"].n_frames, 2)) for _ in range(2)]

    def with_onsets(values):
        return Prediction(first["a"].probabilities, ETHOGRAM, first["a"].rate, exclusive=True, boundaries=values)

    predictions = {"boost": first["a"], "tcn": with_onsets(onsets[0]), "tcn-2": with_onsets(onsets[1])}
    blended = weighted_mean(predictions, {"boost": 0.5, "tcn": 0.3, "tcn-2": 0.2})
    np.testing.assert_array_equal(blended.boundaries, np.concatenate(onsets))
    np.testing.assert_allclose(weighted_mean(predictions, {"boost": 0.5, "tcn": 0.5, "tcn-2": 0}).boundaries, onsets[0])
    assert weighted_mean(predictions, {"boost": 1.0, "tcn": 0, "tcn-2": 0}).boundaries is None
    calibrated = Blend({"boost": 0.5, "tcn": 0.5}, {"tcn": Calibration(2.0, (0.0, 0.0), True)}).apply(
        {name: predictions[name] for name in ("boost", "tcn")}
    )
    np.testing.assert_allclose(calibrated.boundaries, onsets[0])


def test_priors_undo_the_bias_of_calibrations():
    calibrations = {"boost": Calibration(1.0, (0.5, -0.5), True), "tcn": Calibration(1.0, (1.5, -9.0), True)}
    priors = Blend({"boost": 0.5, "tcn": 0.5}, calibrations).priors(ETHOGRAM)
    assert priors["rest"] == pytest.approx(np.exp(-1.0))
    assert priors["run"] == pytest.approx(np.exp(3.0))
    raw = np.array([[0.3, 0.7], [0.6, 0.4]])
    blend = Blend({"boost": 1.0}, {"boost": calibrations["boost"]})
    calibrated = blend.apply({"boost": Prediction(raw, ETHOGRAM, 10.0)})
    restored, _ = Decoder(priors=blend.priors(ETHOGRAM)).prepare(calibrated)
    np.testing.assert_allclose(restored, raw, atol=1e-6)
