"""Several annotators: one model for all of them, each in their own style."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Dataset
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets.synthetic import Annotator
from ethobench.models.adapt import split_by_annotator

pytestmark = pytest.mark.slow

TINY = {"past": 6, "future": 6, "frame_stride": 2, "layers": (16, 8), "kernel": 3, "inputs": "features", "dropout": 0.1}
EAGER, LATE = Annotator("eager", delay=0.0, jitter=0.0, missed=0.0), Annotator("late", delay=0.8, jitter=0.0, missed=0.0)


@pytest.fixture(scope="module")
def watched() -> Dataset:
    return eb.load_dataset("synthetic/pose", individuals=4, seconds=45, annotators=(EAGER, LATE))


def test_every_annotator_is_an_example(watched):
    each = split_by_annotator(watched)
    assert [r.id for r in each][:2] == ["animal01|eager", "animal01|late"]
    assert [list(r.annotations) for r in each][:2] == [["eager"], ["late"]]
    assert each.recordings[1].metadata["annotator"] == "late"
    assert each.recordings[1].individual == "animal01"
    with pytest.raises(NotFoundError, match="no recording has an annotation"):
        split_by_annotator(Dataset(tuple(r.copy(annotations={}) for r in watched), watched.ethogram))


def test_any_model_can_be_fitted_to_all_annotators(watched):
    both = eb.create_model("rf", trees=5).fit(watched, annotator="all")
    one = eb.create_model("rf", trees=5).fit(watched, annotator="eager")
    recording = watched.recordings[0]
    assert not np.array_equal(both.predict(recording).probabilities, one.predict(recording).probabilities)
    assert "4 recordings" in both.trained_on


@pytest.mark.slow
def test_one_model_predicts_in_each_style(watched, tmp_path):
    train, recording = watched.select(fold=[0, 1, 2]), watched.select(fold=3).recordings[0]
    model = eb.create_model("conv1d", **TINY, condition="annotator", epochs=8, samples_per_epoch=3000, batch=32, learning_rate=3e-3).fit(
        train, annotator="all"
    )
    assert model.annotators == ("eager", "late")
    truths = {name: recording.annotation(name).to_codes() for name in model.annotators}
    predicted = {}
    for style in model.annotators:
        model.style = style
        predicted[style] = model.predict(recording).annotation.to_codes()
    accuracy = {(style, name): (predicted[style] == truths[name]).mean() for style in predicted for name in truths}
    assert accuracy["eager", "eager"] > accuracy["late", "eager"] + 0.02
    assert accuracy["late", "late"] > accuracy["eager", "late"] + 0.02
    model.style = None
    named = recording.copy(metadata={**recording.metadata, "annotator": "late"})
    assert np.array_equal(model.predict(named).annotation.to_codes(), predicted["late"])
    mean = model.predict(recording).probabilities
    model.save(tmp_path / "both")
    again = eb.load_model(tmp_path / "both")
    assert np.array_equal(again.predict(recording).probabilities, mean)
    again.style = "late"
    assert np.array_equal(again.predict(recording).annotation.to_codes(), predicted["late"])
    again.style = "never"
    with pytest.raises(EthobenchError, match="not trained on annotator 'never'; available: eager, late"):
        again.predict(recording)


def test_all_annotators_start_equal_and_support_streaming(watched):
    model = eb.create_model(
        "conv1d", **{**TINY, "inputs": "coordinates", "past": 12, "future": 0}, condition="annotator", epochs=1, samples_per_epoch=64
    )
    model.fit(watched, annotator="all")
    fresh = model.build(model.n_inputs, 4).eval()
    networks = [fresh.for_annotators(weights) for weights in ([1.0, 0.0], [0.0, 1.0])]
    assert np.array_equal(networks[0].head.weight.detach(), networks[1].head.weight.detach())
    model.style = "late"
    recording = watched.recordings[0]
    stream = model.stream()
    streamed = np.array([stream.push(frame) for frame in recording.signals.positions[:60]])
    assert streamed == pytest.approx(model.predict(recording).probabilities[:60], abs=1e-5)


def test_annotators_can_be_added_to_a_model_without_any(watched, tmp_path):
    tiny = {**TINY, "epochs": 1, "samples_per_epoch": 64}
    eb.create_model("conv1d", **tiny).fit(watched, annotator="eager").save(tmp_path / "first")
    model = eb.create_model("conv1d", **{**tiny, "epochs": 0}, init=str(tmp_path / "first"), condition="annotator")
    model.fit(watched, annotator="all")
    recording = watched.recordings[0]
    before = eb.load_model(tmp_path / "first").predict(recording).probabilities
    assert model.predict(recording).probabilities == pytest.approx(before, abs=1e-6)


def test_several_annotators_need_a_fit_to_all(watched):
    with pytest.raises(EthobenchError, match=r"needs fit\(..., annotator='all'\)"):
        eb.create_model("conv1d", **TINY, condition="annotator", epochs=1, samples_per_epoch=64).fit(watched, annotator="consensus")


def test_recordings_with_one_annotator_each_as_calms21_has_them(watched):
    """In task 2 every recording has one annotator, and its group, which is in its metadata, is their name."""
    names = ("annotator-id_1", "annotator-id_2")
    recordings = tuple(
        r.copy(annotations={names[i % 2]: r.annotations["eager"]}, metadata={**r.metadata, "group": names[i % 2]})
        for i, r in enumerate(watched)
    )
    data = Dataset(recordings, watched.ethogram)
    model = eb.create_model("conv1d", **TINY, condition="annotator", epochs=1, samples_per_epoch=256, learning_rate=0.05).fit(data)
    assert model.annotators == names
    predictions = [model.predict(recordings[i]).probabilities for i in range(2)]
    model.style = names[0]
    styled = [model.predict(recordings[i]).probabilities for i in range(2)]
    assert np.array_equal(predictions[0], styled[0])
    assert not np.array_equal(predictions[1], styled[1])
