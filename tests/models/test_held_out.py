"""Out-of-fold predictions: written, read, and used instead of in-sample predictions."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Ethogram, Prediction
from ethobench.models.held_out import Origin, describe_origins, predict_or_held_out, read_predictions, write_predictions
from ethobench.models.provenance import TrainingMatch

ETHOGRAM = Ethogram(["rest", "run"])
NO_PREDICTION = Annotation.from_bouts([], [], [], ETHOGRAM, 10, 0)


def no_prediction() -> Annotation:
    return NO_PREDICTION


@pytest.mark.parametrize("exclusive", [True, False])
def test_predictions_survive_writing_and_reading(tmp_path, exclusive):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([1, 1, 1], 200)
    probabilities[50:60] = np.nan
    decoded = Annotation.from_bouts([0], [30], ["run"], ETHOGRAM, 10, 200)
    predictions = {
        "a": Prediction(probabilities, ETHOGRAM, 10, exclusive=exclusive),
        "b": Prediction(probabilities[::-1], ETHOGRAM, 10, annotation=decoded, exclusive=exclusive),
        "c": decoded,
        "d": Prediction(rng.random((90, 2)), ETHOGRAM, 10, exclusive=False),
    }
    write_predictions(tmp_path / "kept", predictions, "rf")
    restored = read_predictions(tmp_path / "kept")
    assert restored["c"] == decoded
    for name in ("a", "b", "d"):
        assert restored[name].exclusive is (exclusive and name != "d")
        assert restored[name].probabilities == pytest.approx(predictions[name].probabilities, abs=1 / 255, nan_ok=True)
        assert restored[name].annotation == predictions[name].annotation


def test_held_out_predictions_of_training_recordings(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=3, seconds=20)
    first, second, third = data
    model = eb.create_model("chance", seed=1).fit(data.select(recordings=[first.id, second.id]))
    model.out_of_fold = {first.id: eb.create_model("chance", seed=2).fit(data.select(recordings=[second.id])).predict(first)}
    model.save(tmp_path / "m")
    again = eb.load_model(tmp_path / "m")
    held_out, origin = predict_or_held_out(again, first.copy(id="renamed"), no_prediction)
    assert origin.out_of_fold
    assert held_out.annotation == model.out_of_fold[first.id].annotation
    assert held_out.ethogram == again.ethogram
    other_rate = first.copy(rate=first.rate * 2, annotations={}, signals=None)
    for recording in (second, third, other_rate):
        assert predict_or_held_out(again, recording, no_prediction)[0] is NO_PREDICTION
    assert predict_or_held_out(again, first, no_prediction, use_out_of_fold=False)[0] is NO_PREDICTION
    again.save(tmp_path / "copy")
    assert eb.load_model(tmp_path / "copy").out_of_fold[first.id].annotation == held_out.annotation
    assert model.fit(data).out_of_fold == {}


def test_origins_are_described():
    match = TrainingMatch("recording", "r1", "signals")
    assert Origin(match).label == "seen in training"
    assert Origin(match, out_of_fold=True).label == "out-of-fold"
    assert Origin(match, out_of_fold=True, split="recording").label == "out-of-fold by recording"
    assert Origin(TrainingMatch("new")).label == ""
    origins = {
        "a": Origin(match),
        "b": Origin(match, out_of_fold=True),
        "c": Origin(TrainingMatch("individual", "r2")),
        "d": Origin(TrainingMatch("same name", "d")),
        "e": Origin(TrainingMatch("new")),
    }
    messages = describe_origins("m", origins)
    assert "1 of 5 recordings was used to train m: b. Out-of-fold predictions are used, by cross-validated models" in messages[0]
    assert "(seen in training): a. Agreement of these predictions with the labels says nothing about new animals" in messages[1]
    assert "other recordings of the same individuals were: c" in messages[2]
    assert "different content; treated as new: d" in messages[3]
    assert describe_origins("m", {"e": origins["e"]}) == []
    assert "has no list of training recordings" in describe_origins("m", {"a": Origin(TrainingMatch("unknown"))})[0]
