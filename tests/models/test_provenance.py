"""What a model knows of the recordings it was trained on: hashes of content, and recognising recordings by them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Poses, Recording, Signals
from ethobench.core.errors import FormatError
from ethobench.formats import formats, read_recordings
from ethobench.models import provenance
from ethobench.models.provenance import TrainingData, TrainingMatch, hash_annotation, hash_signals

BOUTS = ([0, 20, 40], [10, 30, 50], ["rest", "run", "rest"])
ETHOGRAM = Ethogram(["rest", "run", "none"], "none")


def tag(seed: int = 0, n: int = 100) -> Signals:
    return Signals(np.random.default_rng(seed).normal(size=(n, 2)), ("AccX", "AccY"), 10)


def annotation(shift: int = 0, **changes) -> Annotation:
    start, stop, behavior = BOUTS
    options = {"rate": 10, "n_frames": 100, **changes}
    return Annotation.from_bouts(np.array(start) + shift, np.array(stop) + shift, behavior, ETHOGRAM, **options)


def recording(name: str = "r1", individual: str = "m1", seed: int = 0, shift: int = 0) -> Recording:
    return Recording(name, individual, signals=tag(seed), annotations={"anna": annotation(shift)})


@pytest.fixture
def training() -> TrainingData:
    return TrainingData.from_dataset(Dataset((recording("r1", "m1"), recording("r2", "m2", seed=1, shift=3)), ETHOGRAM))


def test_the_layout_of_an_array_does_not_change_the_hash(monkeypatch, tmp_path):
    values = tag(n=1000).values.astype(np.float32)
    values[10:20] = np.nan
    values[30] = 0.0
    expected = hash_signals(Signals(values, ("AccX", "AccY"), 10))
    np.save(tmp_path / "values.npy", values)
    negative_zero = np.where(values == 0, -0.0, values)
    other_nan = values.copy()
    other_nan.view(np.uint32)[10:20] = 0x7FC00001
    for copy in (
        values.astype(np.float64),
        np.asfortranarray(values),
        np.load(tmp_path / "values.npy", mmap_mode="r"),
        negative_zero,
        other_nan,
    ):
        assert hash_signals(Signals(copy, ("AccX", "AccY"), 25)) == expected
    monkeypatch.setattr(provenance, "BLOCK", 7)
    assert hash_signals(Signals(values, ("AccX", "AccY"), 10)) == expected
    swapped = Signals(values[:, ::-1], ("AccY", "AccX"), 10)
    assert hash_signals(swapped) == expected
    changed = values.copy()
    changed[500, 0] = np.nextafter(changed[500, 0], np.float32(9))
    assert hash_signals(Signals(changed, ("AccX", "AccY"), 10))["AccX"] != expected["AccX"]
    assert hash_signals(Signals(values[:-1], ("AccX", "AccY"), 10)) != expected


WRITABLE = [f.name for f in formats if f.can_write and {"signals", "poses"} & {*f.contents}]


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name == "nwb" else name for name in WRITABLE])
def test_no_format_changes_the_hash(name, tmp_path):
    """Signals that were written and read back are recognized, whatever the file format."""
    kind = "pose" if "poses" in formats[name].contents else "tag"
    original = eb.load_dataset(f"synthetic/{kind}", individuals=1, seconds=10).recordings[0]
    data = original.signals
    if isinstance(data, Poses):  # what a file with six decimals can hold
        data = dataclasses.replace(data, positions=np.round(data.positions).astype(np.float32))
    else:
        data = dataclasses.replace(data, values=np.round(data.values * 64) / 64)
    path = tmp_path / f"file{formats[name].suffixes[0]}"
    eb.write_recordings([original.copy(signals=data)], path, name)
    (restored,) = read_recordings(path, name, rate=original.rate, warn=False)
    if name in ("nwb", "sleap_events"):  # poses are read from these, not written
        assert restored.signals is None
        return
    training = TrainingData.from_dataset(Dataset((original.copy(signals=data, annotations={}),), original.annotation().ethogram))
    assert training.match(restored.copy(id="renamed", annotations={})) == TrainingMatch("recording", original.id, "signals")


def test_an_annotation_is_hashed_by_its_bouts():
    expected = hash_annotation(annotation())
    longer = annotation(n_frames=500, observed=np.arange(500) < 60)
    background = annotation().overlay(Annotation.from_bouts([60], [70], ["none"], ETHOGRAM, 10, 100))
    reordered = annotation().with_ethogram(Ethogram(["none", "run", "rest"], "none"))
    assert expected == hash_annotation(longer) == hash_annotation(background) == hash_annotation(reordered)
    others = (annotation(shift=1), annotation(rate=20), annotation().rename({"run": "walk"}), annotation(subject=["a", "a", "b"]))
    assert len({expected, *map(hash_annotation, others)}) == 5
    assert hash_annotation(annotation().crop(0, 35)) == ""


def test_a_renamed_copy_is_recognized_and_a_namesake_is_not(training):
    assert training.match(recording("copy", "m9")) == TrainingMatch("recording", "r1", "signals")
    extra = Signals(np.column_stack([tag().values, tag(5).values[:, 0]]), ("AccX", "AccY", "Depth"), 10)
    assert training.match(Recording("copy", signals=extra)).matched_by == "signals"
    renamed = Signals(tag().values, ("x", "y"), 10)
    assert training.match(Recording("copy", signals=renamed)).matched_by == "signals"
    assert training.match(Recording("r1", signals=Signals(tag(7).values, ("x", "y"), 10))).level == "same name"
    other_study = Recording("r1", "x7", signals=tag(7))
    assert training.match(other_study) == TrainingMatch("same name", "r1")
    assert "same name as a training recording but different content" in training.match(other_study).describe("r1")
    assert training.match(recording("r1", "r1", seed=7, shift=9)).level == "same name"
    assert training.match(recording("r3", "m3", seed=8, shift=9)) == TrainingMatch("new")
    assert training.match(recording("r3", "m3", seed=8)).level == "new"  # the same protocol in another animal
    assert training.match(recording("r1", "m1", seed=8)).matched_by == "annotation"  # tracked again


def test_another_recording_of_a_training_individual_is_distinguished(training):
    match = training.match(recording("r3", "m0;m2", seed=9, shift=7))
    assert (match.level, match.training_id, match.is_training_recording) == ("individual", "r2", False)
    assert "individual seen in training" in match.describe("r3")


def test_without_signals_annotations_and_names_decide(training):
    assert training.match(Recording("x", annotations={"anna": annotation()})).matched_by == "annotation"
    assert training.match(Recording("r2", annotations={"ben": annotation(shift=1)})) == TrainingMatch("recording", "r2", "name")
    assert training.match(Recording("r2", "m2")).matched_by == "name"
    assert training.match(Recording("r2", "somebody else")).level == "same name"
    assert training.match(Recording("y", annotations={"anna": annotation(shift=2)})).level == "new"


def test_channels_that_never_vary_identify_nothing():
    constant = Signals(np.column_stack([np.zeros(50), np.full(50, np.nan)]), ("AccX", "AccY"), 10)
    training = TrainingData.from_dataset(Dataset((Recording("r1", signals=constant),), ETHOGRAM))
    assert training.recordings[0].signals == {}
    assert training.match(Recording("r2", signals=constant)).level == "new"


def test_the_list_of_training_recordings_is_checked(training, tmp_path):
    training.with_folds({"r1": 0, "r2": 1}, "individual").write(tmp_path)
    again = TrainingData.read(tmp_path)
    assert again is not None
    assert [r.fold for r in again.recordings] == [0, 1]
    assert again == training.with_folds({"r1": 0, "r2": 1}, "individual")
    path = tmp_path / "training.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "format_version": 99}), encoding="utf-8")
    with pytest.raises(FormatError, match="format version 99 is not supported"):
        TrainingData.read(tmp_path)
    path.write_text(json.dumps({"format_version": 1, "recordings": [{}]}), encoding="utf-8")
    with pytest.raises(FormatError, match="damaged"):
        TrainingData.read(tmp_path)
    path.unlink()
    assert TrainingData.read(tmp_path) is None


def test_annotators_who_were_merged_are_all_listed():
    from ethobench.datasets.synthetic import ANNOTATORS

    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=40, annotators=ANNOTATORS)
    for annotator in ("consensus", "all"):
        model = eb.create_model("chance").fit(data, annotator=annotator)
        assert [r.id for r in model.training.recordings] == [r.id for r in data]
        for who in ANNOTATORS:
            labels = Recording("file", annotations={"x": data.recordings[1].annotations[who.name]})
            assert model.match_training(labels) == TrainingMatch("recording", data.recordings[1].id, "annotation")


def test_model_without_training_data_matches_nothing(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=20)
    eb.create_model("chance").fit(data).save(tmp_path / "m")
    (tmp_path / "m" / "training.json").unlink()
    card = json.loads((tmp_path / "m" / "model.json").read_text(encoding="utf-8"))
    (tmp_path / "m" / "model.json").write_text(json.dumps({**card, "digest": ""}), encoding="utf-8")
    model = eb.load_model(tmp_path / "m")
    assert model.match_training(data.recordings[0]).level == "unknown"
    assert not model.was_trained_on(data.recordings[0])
    assert dict(model.out_of_fold) == {}


@pytest.mark.slow
def test_the_recordings_of_the_initial_model_count_too(tmp_path):
    """The training data of a network include those of the network it was initialized from."""
    from ethobench.benchmarks.study import CrossValidationPredictions

    data = eb.load_dataset("synthetic/pose", individuals=4, seconds=20)
    first, second, third, _ = (r.id for r in data)
    small = {"past": 8, "future": 8, "frame_stride": 1, "layers": (8,), "epochs": 1, "samples_per_epoch": 64}
    eb.create_model("conv1d", **small).fit(data.select(recordings=[first, second])).save(tmp_path / "first")
    model = eb.create_model("conv1d", **small, init=str(tmp_path / "first")).fit(data.select(recordings=[second, third]))
    assert [(r.id, r.model) for r in model.training.recordings] == [(second, ""), (third, ""), (first, "first"), (second, "first")]
    assert model.was_trained_on(data[first])
    predictions = {name: model.predict(data[name]) for name in (second, third)}
    skipped = CrossValidationPredictions(predictions, {second: 0, third: 1}, "individual").attach_to(model)
    assert skipped == [second]
    assert [*model.out_of_fold] == [third]
