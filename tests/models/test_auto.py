"""Model `auto`: comparison of candidates, blending, decoding, the fit report and time budgets."""

from __future__ import annotations

import copy
import dataclasses
import json
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from tests.clock import Clock

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording, Signals
from ethobench.core.deadline import Deadline, OutOfTimeError
from ethobench.core.errors import EthobenchError
from ethobench.decoding import decoder
from ethobench.decoding.blending import Blend
from ethobench.decoding.decoder import Decoder
from ethobench.features import multiscale
from ethobench.models import auto, candidates, pieces, signal_model
from ethobench.models.auto import Auto
from ethobench.models.cross_validation import inner_folds
from ethobench.training.loop import Progress

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _quick():
    """Let candidates be small; how good they are is measured elsewhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    boost, tcn = candidates.Boost, candidates.Tcn
    small = {"width": 16, "levels": 4, "batch": 8, "updates": 100, "passes": 60}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "Boost", lambda seed, **params: boost(seed=seed, rounds=15, leaves=7, **params))
        patch.setattr(candidates, "MIN_ANNOTATED_SECONDS", 100.0)
        patch.setattr(candidates, "MIN_NETWORK_GAIN", -1.0)
        patch.setattr(candidates, "Tcn", lambda seed=0, **params: tcn(seed=seed, **{**params, **small}))
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tag() -> Dataset:
    return eb.load_dataset("synthetic/tag", individuals=4, seconds=60, folds=4)


@pytest.fixture(scope="module")
def training(tag) -> Dataset:
    return tag.select(fold=[0, 1, 2])


@pytest.fixture(scope="module")
def full(training) -> Auto:
    """A model with both candidates; tests do not change it."""
    return eb.create_model("auto", seed=1).fit(training)


@pytest.fixture(scope="module")
def trees(tag) -> Auto:
    """A model of boosted trees alone, fitted in as little time as possible; tests do not change it."""
    return eb.create_model("auto", budget=0.001).fit(tag)


def test_candidates_are_compared_blended_decoded_and_saved(full, tag, tmp_path):
    model = full
    rows = model.fit_report["candidates"]
    assert [row["candidate"] for row in rows] == ["boost", "tcn"]
    assert all({"folds", "seconds", "f1", "bout_f1", "log_loss", "weight"} <= {*row} for row in rows)
    assert [row["folds"] for row in rows] == [3, 3]
    assert sum(row["weight"] for row in rows) == pytest.approx(1)
    assert all(row["weight"] > 0 for row in rows)
    assert list(model.members) == ["boost", "tcn", "tcn-2", "tcn-3"]  # the networks of the inner folds
    recording = tag.select(fold=3).recordings[0]
    prediction = model.predict(recording)
    assert eb.score(prediction, recording.annotation(), resamples=0).overall["f1"] > 0.8
    model.save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "model.json").read_text(encoding="utf-8"))["fit_report"] == model.fit_report
    again = eb.load_model(tmp_path / "m")
    assert np.array_equal(again.predict(recording).probabilities, prediction.probabilities)
    assert again.predict(recording).annotation == prediction.annotation
    assert again.fit_report == model.fit_report


def test_network_that_adds_nothing_is_dropped_after_one_fold(tag, monkeypatch):
    tcn = candidates.Tcn
    monkeypatch.setattr(candidates, "Tcn", lambda seed=0, **params: tcn(seed=seed, **{**params, "learning_rate": 1e-9}))
    model = eb.create_model("auto").fit(tag)
    trees, network = model.fit_report["candidates"]
    assert (trees["folds"], trees["weight"], network["folds"], network["weight"]) == (3, 1.0, 1, 0.0)
    assert trees["f1"] > network["f1"]
    assert {*model.members} == {"boost"}
    assert model.fit_report["notes"] == ["the network did not improve on the trees in the first fold, so it is not used"]


def test_recordings_with_one_behavior_each(tag):
    """No behavior occurs in two individuals, so nothing can be compared."""
    recordings = []
    for name, recording in zip("ab", tag.recordings[:2], strict=True):
        codes = np.full(recording.n_frames, "ab".index(name))
        recordings.append(recording.copy(annotations={"x": Annotation.from_frames(codes, Ethogram(["a", "b"]), recording.rate)}))
    model = eb.create_model("auto").fit(Dataset(tuple(recordings), Ethogram(["a", "b"])))
    assert model.decoder == Decoder()
    assert "no behavior occurs in two folds" in model.fit_report["notes"][-1]
    assert (model.predict(recordings[0]).annotation.to_codes() == 0).mean() > 0.9


def test_short_budget_uses_boosted_trees_alone(trees):
    report = trees.fit_report
    assert [row["candidate"] for row in report["candidates"]] == ["boost"]
    assert report["candidates"][0]["folds"] == 2
    assert report["notes"] == ["no network, to keep the time budget", "2 of 3 inner folds were used, to keep the time budget"]
    assert report["budget"] == 0.001


def test_no_network_with_little_data():
    data = eb.load_dataset("synthetic/tag", individuals=3, seconds=30)
    model = eb.create_model("auto").fit(data)
    assert model.fit_report["notes"] == ["no network: 90 s of annotated recordings are not enough to train one"]
    assert [row["folds"] for row in model.fit_report["candidates"]] == [3]


def test_the_network_is_tried_only_if_there_is_time_for_it(tag, monkeypatch):
    """An update takes 1.5 s, with drawing the examples: 75 of them for two inner folds, and for all recordings 1.5 times as long."""
    monkeypatch.setattr(candidates.Tcn(seed=0).__class__, "time_update", lambda self, data: 1.0)
    truths = {r.id: r.annotation() for r in tag}
    template = Auto()
    template.ethogram, template.rate, template.inputs = tag.ethogram, tag.recordings[0].rate, ()
    chosen, notes = {}, {}
    for budget in (20.0, 800.0, 1200.0):
        notes[budget] = []
        deadline = Deadline(budget, clock=Clock())
        chosen[budget] = candidates.make_network_candidate(tag, truths, template, deadline, notes[budget])
    assert chosen[20.0] is chosen[800.0] is None
    assert notes[20.0] == ["no network, to keep the time budget"]
    assert notes[800.0] == ["no network, to keep the time budget: there is only time for about 54 updates in each training"]
    assert (chosen[1200.0].name, notes[1200.0]) == ("tcn", [])
    assert (
        candidates.make_network_candidate(tag, truths, template, Deadline(1200.0, clock=Clock()), notes[20.0], seconds_per_cpu_second=50.0)
        is None
    )


def test_slow_network_training_is_stopped():
    clock = Clock()
    deadline, start = Deadline(100, clock=clock), clock()
    progress = Progress(epoch=0, epochs=12, step=10, steps=25, loss=1.0, frames_per_second=1.0)
    clock.now += 10  # 1 s for each update: 100 of them, 75 will do
    candidates.stop_slow_training(deadline, start, progress)
    clock.now += 10  # 2 s for each: 50
    with pytest.raises(OutOfTimeError, match="only time for 50 updates"):
        candidates.stop_slow_training(deadline, start, progress)


def test_fit_ends_by_the_deadline(tag):
    """Time runs out while features are computed, so all that follows is as short as possible, and the model still works."""
    model = eb.create_model("auto")
    clock = Clock()
    model.deadline = Deadline(5, clock=clock)
    clock.now += 6
    model.fit(tag)
    assert model.fit_report["decoded"]["tried"] == 2
    assert [row["folds"] for row in model.fit_report["candidates"]] == [2]
    assert model.predict(tag.recordings[0]).n_frames == tag.recordings[0].n_frames


def test_without_a_budget_the_clock_does_not_matter(full, tag, training, tmp_path):
    """The fitted model does not depend on the duration of the fit."""
    slow = eb.create_model("auto", seed=full.seed)
    slow.deadline = Deadline(clock=Clock(step=1000.0))
    models = [full, slow.fit(training)]
    for name, model in zip("ab", models, strict=True):
        model.save(tmp_path / name)
    digests = [json.loads((tmp_path / name / "model.json").read_text(encoding="utf-8"))["decoder"] for name in "ab"]
    assert digests[0] == digests[1]
    assert np.array_equal(*(model.predict(tag.recordings[0]).probabilities for model in models))


def test_one_individual_or_recording_is_enough():
    data = eb.load_dataset("synthetic/tag", individuals=1, seconds=60)
    alone = eb.create_model("auto").fit(data)
    assert "only one annotated recording" in alone.fit_report["notes"][0]
    assert alone.predict(data.recordings[0]).n_frames == data.recordings[0].n_frames
    same = Dataset(tuple(r.copy(individual="one") for r in eb.load_dataset("synthetic/tag", individuals=2, seconds=40)), data.ethogram)
    assert eb.create_model("auto", budget=0.001).fit(same).fit_report["candidates"][0]["folds"] == 2


def test_frames_below_min_confidence_are_unobserved(trees, tag):
    model = copy.copy(trees)
    recording = tag.recordings[0]
    prediction = model.predict(recording)
    level = float(np.quantile(prediction.probabilities.max(axis=1), 0.2))
    model.params = dataclasses.replace(model.params, min_confidence=level)
    abstaining = model.predict(recording)
    assert np.array_equal(prediction.probabilities, abstaining.probabilities)
    unsure = prediction.probabilities.max(axis=1) < level
    assert 0 < unsure.sum() < len(unsure)
    assert np.array_equal(abstaining.annotation.to_codes() == -1, unsure)
    assert (prediction.annotation.to_codes() >= 0).all()


def test_pieces_give_the_same_predictions(trees, monkeypatch):
    recording = eb.load_dataset("synthetic/tag", individuals=1, seconds=300, seed=5).recordings[0]
    entire = trees.predict(recording).annotation
    monkeypatch.setattr(pieces, "MAX_PIECE_FRAMES", 2500)
    monkeypatch.setattr(decoder, "CONTEXT_SECONDS", 30.0)
    annotation = trees.annotate(recording)
    assert (annotation.to_codes() == entire.to_codes()).mean() > 0.995


def test_overlapping_behaviors():
    ethogram = Ethogram(["move", "call"])
    recordings = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        both = np.repeat(random.integers(0, 2, (30, 2)), 25, axis=0).astype(bool)
        signals = Signals(both + random.normal(0, 0.3, both.shape), ("a", "b"), 10.0)
        recordings.append(Recording(f"r{seed}", signals=signals, annotations={"me": Annotation.from_frames(both, ethogram, 10.0)}))
    model = eb.create_model("auto", budget=0.001).fit(Dataset(tuple(recordings), ethogram))
    prediction = model.predict(recordings[0])
    assert not prediction.exclusive
    assert (prediction.annotation.to_frames() == recordings[0].annotation().to_frames()).mean() > 0.9


def test_decoder_is_chosen_on_subsampled_frames(tag, monkeypatch):
    monkeypatch.setattr(auto, "MAX_DECODER_FRAMES", 3000)
    monkeypatch.setattr(candidates, "MIN_ANNOTATED_SECONDS", 1e9)  # no network
    model = eb.create_model("auto").fit(tag)
    assert isinstance(model.decoder, Decoder)
    assert model.fit_report["decoded"]["tried"] > 5
    scores = eb.score({r.id: model.predict(r) for r in tag}, tag, resamples=0).overall
    assert scores["f1"] > 0.9


def test_decode_names_the_metric():
    assert eb.create_model("auto", decode="bout_f1").params.metric == "bout_f1"
    with pytest.raises(EthobenchError, match="no metric 'speed'"):
        eb.create_model("auto", metric="speed")
    with pytest.raises(EthobenchError, match=r"`min_confidence` must be < 1, got 1\.5"):
        eb.create_model("auto", min_confidence=1.5)
    with pytest.raises(EthobenchError, match="`folds` must be >= 2, got 1"):
        eb.create_model("auto", folds=1)


def test_behaviors_that_overlap_in_one_recording():
    tag = eb.load_dataset("synthetic/tag", individuals=3, seconds=20)
    first = tag.recordings[0]
    truth = first.annotation()
    other = (int(truth.behavior[0]) + 1) % len(tag.ethogram)
    both = (np.append(truth.start, truth.start[0]), np.append(truth.stop, truth.stop[0]), np.append(truth.behavior, other))
    overlapping = Annotation.from_bouts(*both, tag.ethogram, truth.rate, truth.n_frames)
    data = dataclasses.replace(tag, recordings=(first.copy(annotations={"truth": overlapping}), *tag.recordings[1:]))
    for model in (eb.create_model("auto", budget=0.001), eb.create_model("rf", trees=3, decode="f1")):
        model.fit(data)
        assert not model.exclusive
        assert not model.predict(data.recordings[1]).exclusive


def test_unobserved_recordings_are_not_evaluated(tag):
    first, second, third = tag.recordings[:3]
    unobserved = second.copy(annotations={"truth": second.annotation().with_observed(np.zeros(second.n_frames, dtype=bool))})
    one = dataclasses.replace(tag, recordings=(first, unobserved), folds={})
    assert "only one annotated recording" in eb.create_model("auto").fit(one).fit_report["notes"][0]
    two = dataclasses.replace(tag, recordings=(first, unobserved, third), folds={})
    assert eb.create_model("auto", budget=0.001).fit(two).fit_report["candidates"][0]["folds"] == 2
    assert eb.create_model("rf", trees=3, decode="f1").fit(two).decoder is not None


def test_behaviors_of_one_fold_are_not_scored(tag):
    rare = tag.ethogram.names[0]
    truths = {r.id: r.annotation() for r in tag}
    keeper, *others = truths
    for name in others:
        truths[name] = truths[name].take(truths[name].behavior != tag.ethogram.code(rare))
    evaluable = candidates.evaluable_truths(truths, inner_folds(tag, truths, 3))
    assert all(evaluable[name] == truths[name] for name in others)
    rare_frames = truths[keeper].to_codes() == tag.ethogram.code(rare)
    assert rare_frames.any()
    assert np.array_equal(evaluable[keeper].to_codes() == -1, rare_frames)


def test_views_of_one_recording_stay_together():
    from ethobench.core.folds import assign_folds, default_grouping
    from ethobench.models.adapt import split_by_annotator

    people = [eb.load_dataset("synthetic/tag", individuals=1, recordings=2, seconds=20).recordings for _ in range(2)]
    recordings = tuple(a.copy(annotations={"ann": a.annotation(), "ben": b.annotation()}) for a, b in zip(*people, strict=True))
    data = split_by_annotator(Dataset(recordings, Ethogram(recordings[0].annotation("ann").ethogram.names)))
    assert len(data) == 4
    groups = data.groups(default_grouping(data))
    assert len({*groups.values()}) == 2
    folds = assign_folds(data, 4, "recording")
    assert all(folds[a] == folds[b] for a in folds for b in folds if groups[a] == groups[b])


def test_subsampling_keeps_short_bouts(tag, monkeypatch):
    monkeypatch.setattr(auto, "MAX_DECODER_FRAMES", 100)
    strides = []
    monkeypatch.setattr(auto, "subsample_frames", lambda prediction, truth, every: strides.append(every) or (prediction, truth))
    truths = {r.id: r.annotation() for r in tag}
    predictions = {name: eb.Prediction(np.eye(len(tag.ethogram) + 1)[t.to_codes()], tag.ethogram, t.rate) for name, t in truths.items()}
    auto.fit_decoder_on_subsample(predictions, truths, "f1", {name: name for name in truths}, {})
    shortest = np.quantile(np.concatenate([t.stop - t.start for t in truths.values()]), 0.1)
    assert 1 < strides[0] <= shortest / auto.MIN_BOUT_FRAMES


def test_decode_and_metric_must_agree():
    with pytest.raises(EthobenchError, match=r"one metric, got 'f1' .* and 'bout_f1'"):
        eb.create_model("auto", decode="f1", metric="bout_f1")
    assert eb.create_model("auto", decode="f1", metric="f1").params.metric == "f1"


def test_members_share_the_signals_of_poses_and_predict_the_same(monkeypatch):
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=60)
    model = eb.create_model("auto", budget=0.001).fit(data)
    networks = [eb.create_model("tcn", seed=seed, updates=5, width=16).fit(data) for seed in range(2)]
    model.members |= {"tcn": networks[0], "tcn-2": networks[1]}
    model.blend = Blend({"boost": 0.5, "tcn": 0.5}, {})
    computed = []
    pose_features = multiscale.pose_features
    monkeypatch.setattr(multiscale, "pose_features", lambda *args, **options: computed.append(args) or pose_features(*args, **options))
    prediction = model.predict(data.recordings[0])
    assert len(computed) == 1
    monkeypatch.setattr(signal_model, "share_values", nullcontext)
    monkeypatch.setattr(multiscale, "MAX_WHOLE_FRAMES", 0)
    separate = model.predict(data.recordings[0])
    assert len(computed) > 5
    np.testing.assert_array_equal(prediction.probabilities, separate.probabilities)
    assert prediction.annotation == separate.annotation
