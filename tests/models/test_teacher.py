"""The teacher: what it is trained on, what it predicts and suggests, and how good it says it is."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from ethobench import Annotation, Dataset, Ethogram, Observed, Poses, Recording, Signals, load_dataset, load_model, score
from ethobench.core import Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, NotFittedError
from ethobench.models.directed import DirectedPrediction
from ethobench.models.teacher import Teacher, TrainingCancelledError, complete_rejections

RATE, SECONDS = 10, 60
N = RATE * SECONDS
ETHOGRAM = Ethogram(["still", "shake", "dive"])


def _recording(name: str, seed: int) -> Recording:
    """A tag that shakes, dives or is still for 5 s at a time."""
    random = np.random.default_rng(seed)
    codes = np.repeat(random.permutation(np.arange(SECONDS // 5) % 3), 5 * RATE)
    values = random.normal(0, 0.1, (N, 4))
    values[:, :3] += np.where(codes == 1, np.sin(np.arange(N) * 2.2) * 2, 0)[:, None]
    values[:, 3] += np.where(codes == 2, 5, 0)
    truth = Annotation.from_frames(codes, ETHOGRAM, RATE)
    return Recording(name, rate=RATE, signals=Signals(values, ("AccX", "AccY", "AccZ", "Depth"), RATE), annotations={"truth": truth})


@pytest.fixture(scope="module")
def data() -> Dataset:
    return Dataset(tuple(_recording(f"r{i}", i) for i in range(4)), ETHOGRAM, name="tags")


@pytest.fixture
def teacher(data, tmp_path) -> Teacher:
    return Teacher(data, cache=tmp_path / "features")


def _first(recording: Recording, n_frames: int) -> Annotation:
    """Return the labels of the first frames only."""
    return recording.annotation().mark_unobserved(iv.intervals([n_frames], [N]))


def test_predicts_recordings_that_nobody_labeled(teacher, data):
    teacher.fit({"r0": _first(data["r0"], 300), "r1": _first(data["r1"], 300)})
    predicted = {name: teacher.predictions[name].annotation for name in ("r2", "r3")}
    assert score(predicted, {name: data[name].annotation() for name in predicted}, resamples=0).overall["f1"] > 0.9
    assert all(0 <= c <= 1 for c in predicted["r2"].confidence)


def test_unobserved_frames_change_nothing(teacher, data, tmp_path):
    labels = {"r0": _first(data["r0"], 200)}
    teacher.fit(labels)
    other = Teacher(data, cache=tmp_path / "other")
    same = labels["r0"].with_observed(labels["r0"].observed)  # the same labels with bouts that were never observed
    hidden = Annotation.from_bouts([*same.start], [*same.stop], same.behavior, ETHOGRAM, RATE, N, observed=same.observed)
    other.fit({"r0": hidden})
    for name in teacher.predictions:
        np.testing.assert_array_equal(teacher.predictions[name].probabilities, other.predictions[name].probabilities)


def test_a_behavior_with_one_bout_is_predicted(teacher, data):
    truth = data["r0"].annotation()
    dives = np.flatnonzero(truth.behavior == 2)
    one_dive = truth.take(np.isin(np.arange(len(truth)), dives[1:], invert=True))
    observed = iv.difference(iv.full(N), iv.Intervals(truth.start[dives[1:]], truth.stop[dives[1:]]))
    teacher.fit({"r0": one_dive.with_observed(observed)})
    predicted = teacher.predictions["r2"].annotation
    assert score(predicted, data["r2"].annotation(), resamples=0).behaviors["dive"]["f1"] > 0.75


@pytest.mark.slow
def test_overlapping_behaviors(data, tmp_path):
    recordings = []
    for recording in data:
        a = recording.annotation()
        both = Annotation.from_bouts([*a.start, 100], [*a.stop, 400], [*a.behavior, 3], Ethogram([*ETHOGRAM.names, "awake"]), RATE, N)
        recordings.append(recording.copy(annotations={"truth": both}))
    teacher = Teacher(replace(data, recordings=tuple(recordings)), cache=tmp_path)
    teacher.fit({"r0": recordings[0].annotation(), "r1": recordings[1].annotation()})
    assert not teacher.predictions["r2"].exclusive


def test_nothing_to_learn_from_is_an_error(teacher, data):
    with pytest.raises(EthobenchError, match="nothing is labeled yet"):
        teacher.fit({})
    empty = Annotation.from_bouts([], [], [], ETHOGRAM, RATE, N, observed=iv.intervals([0], [100]))
    with pytest.raises(EthobenchError, match="no bout is labeled yet"):
        teacher.fit({"r0": empty})
    one = Annotation.from_bouts([0], [50], ["dive"], ETHOGRAM, RATE, N, observed=iv.intervals([0], [50]))
    with pytest.raises(EthobenchError, match="only 'dive' is labeled, and no time without it"):
        teacher.fit({"r0": one})
    assert teacher.model is None
    with pytest.raises(NotFittedError, match="not trained yet"):
        teacher.suggest()


def test_a_video_alone_is_not_enough(tmp_path):
    with pytest.raises(EthobenchError, match="needs poses, signals or features"):
        Teacher(Dataset((Recording("a", rate=10, n_frames=10),), ETHOGRAM), cache=tmp_path).prepare()


def test_a_failed_or_cancelled_training_keeps_the_former_predictions(teacher, data):
    teacher.fit({"r0": _first(data["r0"], 300)})
    former = teacher.predictions
    with pytest.raises(EthobenchError):
        teacher.fit({})

    def cancel(stage: str, fraction: float) -> None:
        if stage == "predictions" and fraction > 0:
            raise TrainingCancelledError("cancelled")

    with pytest.raises(TrainingCancelledError):
        teacher.fit({"r0": _first(data["r0"], 400)}, cancel)
    assert teacher.predictions is former
    assert teacher.n_trainings == 1


def test_preparation_is_resumed(data, tmp_path):
    stages = []

    def stop_half_way(stage: str, fraction: float) -> None:
        if fraction >= 0.5:
            raise TrainingCancelledError("interrupted")

    with pytest.raises(TrainingCancelledError):
        Teacher(data, cache=tmp_path).prepare(stop_half_way)
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")}
    assert len(files) == 2
    Teacher(data, cache=tmp_path).prepare(lambda stage, fraction: stages.append((stage, fraction)))
    assert len([*tmp_path.glob("*.npy")]) == 4
    assert stages[-1] == ("features", 1.0)
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in files} == files


def test_a_damaged_feature_file_is_computed_again(data, tmp_path):
    labels = {"r0": _first(data["r0"], 300)}
    expected = Teacher(data, cache=tmp_path).fit(labels).predictions["r1"].probabilities
    for number, path in enumerate(sorted(tmp_path.glob("*.npy"))):
        content = path.read_bytes()
        path.write_bytes([b"", content[:100], content[:-7], b"not an array" * 50][number % 4])
    np.testing.assert_array_equal(Teacher(data, cache=tmp_path).fit(labels).predictions["r1"].probabilities, expected)


def test_quality_is_withheld_with_one_recording(teacher, data):
    quality = teacher.fit({"r0": _first(data["r0"], 300)}).evaluate()
    assert quality.f1 is None
    assert "at least 2 recordings" in quality.withheld
    assert quality.advice == "label bouts in another recording"


@pytest.mark.slow
def test_quality_on_held_out_recordings(teacher, data):
    labels = {name: _first(data[name], 300) for name in ("r0", "r1", "r2")}
    quality = teacher.fit(labels).evaluate()
    assert quality.split == "individual"
    assert quality.groups == 3
    assert quality.f1 > 0.8
    assert quality.gain_interval[0] <= quality.gain <= quality.gain_interval[1]
    assert "labels" in quality.advice
    assert teacher.history == [quality]
    assert {*quality.out_of_fold} == {*labels}


@pytest.mark.slow
def test_scores_of_a_behavior_with_few_bouts_are_withheld(teacher, data):
    labels = {name: data[name].annotation() for name in ("r0", "r1")}
    bout = iv.intervals([0], [20])
    ethogram = Ethogram([*ETHOGRAM.names, "roll"])
    a = labels["r0"].mark_unobserved(bout).with_ethogram(ethogram)
    labels["r0"] = Annotation.from_bouts(
        [*a.start, 0], [*a.stop, 20], [*a.behavior, 3], ethogram, RATE, N, observed=iv.union_all([a.observed.frames, bout])
    )
    rows = {row.behavior: row for row in teacher.fit(labels).evaluate().behaviors}
    assert rows["roll"].f1 is None
    assert rows["roll"].withheld == "fewer than 3 labeled bouts"
    assert rows["shake"].f1 is not None


def test_suggestions_are_outside_of_what_was_observed(teacher, data):
    labels = {"r0": _first(data["r0"], 300), "r1": data["r1"].annotation()}
    candidates = teacher.fit(labels).suggest(20)
    assert candidates
    assert {c.recording for c in candidates} <= {"r0", "r2", "r3"}
    assert all(c.start >= 250 for c in candidates if c.recording == "r0")
    assert all(c.reason and c.behavior in ETHOGRAM.names and 0 <= c.gain <= 1 for c in candidates)
    spans = [(c.recording, c.start, c.stop) for c in candidates]
    assert not any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for i, a in enumerate(spans) for b in spans[:i])
    later = {**labels, "r2": data["r2"].annotation()}
    assert "r2" not in {c.recording for c in teacher.suggest(20, annotations=later)}


@pytest.mark.slow
def test_the_saved_model_is_a_normal_model(teacher, data, tmp_path):
    labels = {name: _first(data[name], 300) for name in ("r0", "r1")}
    teacher.fit(labels).evaluate()
    teacher.save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    np.testing.assert_allclose(model.predict(data["r3"]).probabilities, teacher.predictions["r3"].probabilities, atol=1e-6)
    assert [r.id for r in model.training.recordings] == ["r0", "r1"]
    assert model.was_trained_on(data["r0"])
    assert not model.was_trained_on(data["r3"])
    assert {*model.out_of_fold} == {"r0", "r1"}
    card = (tmp_path / "model" / "CARD.md").read_text(encoding="utf-8")
    assert "cross-validated by individual" in card
    with pytest.raises(EthobenchError, match="already exists"):
        teacher.save(tmp_path / "model")


def test_without_lightgbm_a_random_forest_is_used(teacher, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.setattr("ethobench.models.teacher.find_spec", lambda name: None)
    teacher.fit({"r0": _first(data["r0"], 300)})
    assert teacher.model.name == "rf"
    assert any("LightGBM is not installed" in note for note in teacher.notes)


def test_labels_longer_than_the_signals_are_cropped(teacher, data):
    labels = {"r0": _first(data["r0"], 300).extend(2 * N)}
    assert teacher.fit(labels).predictions["r0"].n_frames == N


def _pair(name: str, seed: int) -> Recording:
    """Two animals; each circles on its own for 5 s at a time."""
    random = np.random.default_rng(seed)
    codes = random.permutation(np.arange(24) % 2).reshape(2, 12).repeat(5 * RATE, axis=1)
    angle = np.cumsum(np.where(codes == 1, 0.8, 0.0), axis=1)
    center = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * 20 + np.array([[[100, 100]], [[300, 100]]])
    points = center[:, :, None] + np.array([[10, 0], [0, 0], [-10, 0]])
    positions = points.transpose(1, 0, 2, 3) + random.normal(0, 0.3, (N, 2, 3, 2))
    poses = Poses(positions, np.ones((N, 2, 3)), ("white", "black"), ("nose", "neck", "tail_base"), RATE)
    bouts = [iv.from_mask(row == 1) for row in codes]
    start, stop = (np.concatenate([b[side] for b in bouts]) for side in (0, 1))
    subject = [who for who, b in zip(("white", "black"), bouts, strict=True) for _ in b.start]
    truth = Annotation.from_bouts(start, stop, ["circle"] * len(start), ["circle"], RATE, N, subject=subject)
    return Recording(name, rate=RATE, signals=poses, annotations={"truth": truth}, subjects=("white", "black"))


@pytest.mark.slow
def test_named_subjects_are_predicted(tmp_path):
    pairs = Dataset(tuple(_pair(f"p{i}", i) for i in range(3)), Ethogram(["circle"]))
    teacher = Teacher(pairs, cache=tmp_path)
    teacher.fit({name: pairs[name].annotation() for name in ("p0", "p1")})
    prediction = teacher.predictions["p2"]
    assert isinstance(prediction, DirectedPrediction)
    assert score(prediction.annotation, pairs["p2"].annotation(), resamples=0).overall["f1"] > 0.8
    assert prediction.annotation.confidence is not None
    assert {c.subject for c in teacher.suggest(10)} <= {"white", "black"}
    similar = teacher.find_similar("p0", 0, 50, 5, subject="white")
    assert {segment.subject for segment in similar} <= {"white", "black"}


def test_subjects_that_cannot_be_predicted_are_noted(teacher, data):
    a = _first(data["r0"], 300)
    named = Annotation.from_bouts(
        a.start, a.stop, a.behavior, ETHOGRAM, RATE, N, subject=["seal"] * len(a), observed=a.observed, subjects=["seal"]
    )
    teacher.fit({"r0": named})
    assert any("subjects are not predicted" in note for note in teacher.notes)


def test_rejected_frames_are_given_the_most_probable_other_behavior(teacher, data):
    prediction = teacher.fit({"r0": _first(data["r0"], 300)}).predictions["r1"]
    truth = data["r1"].annotation()
    shake = truth.spans("shake")
    rejected = Annotation.from_bouts([], [], [], ETHOGRAM, RATE, N, observed=Observed(iv.empty(), {Track("dive"): shake}))
    completed = complete_rejections(rejected, prediction)
    assert iv.total(completed.observed.frames) == iv.total(iv.union(shake))
    assert iv.overlap(iv.union(completed.spans("shake")), iv.union(shake)) > 0.9 * iv.total(iv.union(shake))
    assert not len(completed.spans("dive").start)


def test_long_recordings_use_fewer_rows(tmp_path):
    long = Recording("long", rate=1, signals=Signals(np.zeros((600_000, 1)), ("Depth",), 1))
    assert Teacher(Dataset((long,), ETHOGRAM), cache=tmp_path).row_rate == pytest.approx(400_000 / 600_000)


@pytest.mark.slow
def test_more_labels_of_synthetic_poses_predict_better(tmp_path):
    data = load_dataset("synthetic/pose", individuals=5, seconds=120)
    truths = {name: data[name].annotation() for name in ("animal04", "animal05")}
    values = []
    for seconds in (10, 60):
        labels = {}
        for name in ("animal01", "animal02", "animal03"):
            a = data[name].annotation()
            labels[name] = a.mark_unobserved(iv.intervals([round(seconds * a.rate)], [a.n_frames]))
        teacher = Teacher(data, cache=tmp_path).fit(labels)
        values.append(score({n: teacher.predictions[n].annotation for n in truths}, truths, resamples=0).overall["f1"])
    assert values[1] > values[0]
    assert values[1] > 0.7
