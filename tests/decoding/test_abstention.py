"""Abstention: confidence, coverage and accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.decoding.examples import draw_predictions, draw_world

from ethobench import Annotation, Ethogram, Prediction
from ethobench.decoding.abstention import abstain, coverage_curve, frame_confidence


def test_abstention_lowers_coverage_and_raises_accuracy():
    predictions, truths = draw_predictions(range(2))
    curve = coverage_curve(predictions, truths, [0.0, 0.6, 0.8, 1.01])
    assert curve[0].coverage == 1.0
    assert curve[0].coverage > curve[1].coverage > curve[2].coverage > curve[3].coverage == 0.0
    assert curve[0].accuracy < curve[1].accuracy < curve[2].accuracy
    assert np.isnan(curve[3].accuracy)
    codes, predicted = (
        np.concatenate(x) for x in zip(*((draw_world(s)[1], draw_world(s)[0].argmax(axis=1)) for s in range(2)), strict=True)
    )
    assert curve[0].accuracy == pytest.approx((codes == predicted).mean())


def test_abstention_for_overlapping_behaviors():
    random = np.random.default_rng(0)
    probabilities = random.beta(0.5, 0.5, (3000, 2))
    frames = (random.random((3000, 2)) < probabilities).astype(np.int64)
    ethogram = Ethogram(["groom", "rear"])
    prediction, truth = Prediction(probabilities, ethogram, 10.0, exclusive=False), Annotation.from_frames(frames, ethogram, 10.0)
    probabilities = prediction.probabilities  # in single precision
    complete, confident = coverage_curve({"r": prediction}, {"r": truth}, [0.0, 0.9])
    kept = (np.maximum(probabilities, 1 - probabilities) >= 0.9).all(axis=1)
    correct = ((probabilities >= 0.5) == frames).all(axis=1)
    assert (complete.coverage, confident.coverage) == (1.0, pytest.approx(kept.mean()))
    assert (complete.accuracy, confident.accuracy) == (pytest.approx(correct.mean()), pytest.approx(correct[kept].mean()))
    predicted = probabilities[kept] >= 0.5
    f1 = 2 * (predicted & (frames[kept] == 1)).sum(axis=0) / (predicted.sum(axis=0) + frames[kept].sum(axis=0))
    assert confident.f1 == pytest.approx(f1.mean())
    assert confident.accuracy > complete.accuracy + 0.05


def test_background_of_overlapping_behaviors_is_ignored():
    ethogram = Ethogram(["groom", "rear", "other"], background="other")
    frames = np.random.default_rng(0).integers(0, 2, (200, 2))
    probabilities = np.column_stack([np.where(frames == 1, 0.99, 0.01), np.full(200, 0.3)])
    prediction = Prediction(probabilities, ethogram, 10.0, exclusive=False)
    truth = Annotation.from_frames(np.column_stack([frames, (frames.sum(axis=1) == 0)]).astype(np.int64), ethogram, 10.0)
    complete, confident = coverage_curve({"r": prediction}, {"r": truth}, [0.0, 0.9])
    assert (complete.accuracy, confident.coverage, confident.accuracy, confident.f1) == (1.0, 1.0, 1.0, 1.0)


def test_abstain_hides_frames_below_the_minimum_confidence():
    ethogram = Ethogram(["rest", "walk", "other"], background="other")
    prediction = Prediction(np.array([[0.9, 0.1, 0.0], [0.5, 0.4, 0.1], [0.2, 0.7, 0.1]]), ethogram, 10.0, exclusive=True)
    assert frame_confidence(prediction.probabilities, ethogram, exclusive=True) == pytest.approx([0.9, 0.5, 0.7])
    masked = abstain(prediction, 0.7)
    assert np.isnan(masked.probabilities).all(axis=1).tolist() == [False, True, False]
    assert masked.annotation.to_codes().tolist() == [0, -1, 1]
