"""Inputs of `score`, their alignment, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.metrics.examples import ETHOGRAM, random_annotation, random_pairs

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError, ReadWarning
from ethobench.core.observed import Observed, Track

of = Annotation.from_bouts


def test_pairs_mappings_and_datasets_have_the_same_scores():
    pairs = random_pairs()
    data = Dataset(tuple(Recording(n, annotations={"me": t}) for n, (_, t) in pairs.items()), ETHOGRAM)
    preds, truths = {n: p for n, (p, _) in pairs.items()}, {n: t for n, (_, t) in pairs.items()}
    first = eb.score(pairs)
    assert eb.score(preds, truths).overall == pytest.approx(first.overall, nan_ok=True)
    assert eb.score(preds, data).overall == pytest.approx(first.overall, nan_ok=True)
    assert eb.score({"r0": preds["r0"]}, data).recordings == ("r0",)


def test_mismatches_are_refused_with_a_clear_message():
    truth = random_annotation(0)
    with pytest.raises(MismatchError, match="has 20 Hz, the truth 10 Hz; resample"):
        eb.score(truth.resample(20), truth)
    with pytest.raises(MismatchError, match="299 frames, the truth 300"):
        eb.score(truth.crop(0, 299), truth)
    with pytest.raises(MismatchError, match="'r1' has"):
        eb.agreement({"r0": truth, "r1": truth.crop(0, 10)})
    other = truth.rename({"a": "x"})
    with pytest.raises(MismatchError, match="only the prediction has 'x'"):
        eb.score(other, truth)
    scores = eb.score(other, truth, behaviors="all")
    assert scores.behaviors["a"]["f1"] == 0
    assert scores.behaviors["x"]["f1"] == 0
    assert {*eb.score(other, truth, behaviors=["b"]).behaviors} == {"b"}
    with pytest.raises(NotFoundError, match="no behavior 'zz'"):
        eb.score(truth, truth, behaviors=["zz"])
    with pytest.raises(NotFoundError, match="did you mean 'banos'"):
        eb.score(truth, truth, suite="banoz")
    with pytest.raises(EthobenchError, match="`tracks` must be 'auto'"):
        eb.score(truth, truth, tracks="apart")


@pytest.mark.parametrize("wrong", ["file.csv", None, 3.0, {"r0": "m1.csv"}])
def test_inputs_other_than_annotations_and_arrays_are_refused(wrong):
    with pytest.raises(EthobenchError, match=r"Annotation|prediction and a truth|truth must be a path"):
        eb.score(wrong, random_annotation(0))


def test_mappings_that_do_not_match_are_refused():
    pairs, truth = random_pairs(2), random_annotation(0)
    for pred, reference in (({"r0": truth}, truth), (truth, {"r0": truth}), (truth, None)):
        with pytest.raises(EthobenchError, match="score takes a prediction and a truth, a mapping of recordings"):
            eb.score(pred, reference)
    with pytest.raises(MismatchError, match="only a truth: r1"):
        eb.score({n: p for n, (p, _) in pairs.items()}, {"r0": pairs["r0"][1]})
    with pytest.raises(EthobenchError, match="expected a pair"):
        eb.score({"r0": pairs["r0"][0]})
    with pytest.raises(EthobenchError, match="nothing to score"):
        eb.score({})
    with pytest.raises(NotFoundError, match="not scored: r9"):
        eb.score(pairs, individuals={"r9": "x"})


def test_empty_sides_and_nothing_observed():
    truth = random_annotation(0)
    nothing = truth.take([])
    scores = eb.score(nothing, truth)
    assert scores.behaviors["a"]["recall"] == 0
    assert scores.behaviors["a"]["f1"] == 0
    assert scores.behaviors["a"]["bout_f1"] == 0
    assert np.isnan(scores.behaviors["a"]["precision"])
    both = eb.score(nothing, nothing)
    assert np.isnan(both.overall["f1"])
    assert both.absent == ["a", "b"]
    with pytest.raises(EthobenchError, match="no behavior is observed"):
        eb.score(truth, truth.with_observed(iv.empty()))
    partly = truth.with_observed(Observed(iv.full(300), {Track("b"): iv.empty()}))
    scores = eb.score(truth, partly)
    assert {*scores.behaviors} == {"a", "other"}
    assert "never observed, so not scored: b" in " ".join(map(str, scores.notes))
    assert "b" not in eb.score(truth, partly, suite="rodentbench").ethogram


def test_subjects_are_scored_separately_or_pooled():
    ethogram = Ethogram(["a"])
    truth = Annotation.from_bouts([0, 50], [10, 60], [0, 0], ethogram, 10, 100, subject=["m1", "m2"])
    swapped = Annotation.from_bouts([0, 50], [10, 60], [0, 0], ethogram, 10, 100, subject=["m2", "m1"])
    assert eb.score(swapped, truth).overall["f1"] == 0
    assert eb.score(swapped, truth, tracks="merge").overall["f1"] == 1
    anonymous = eb.score(swapped.without_subjects(), truth)
    assert anonymous.overall["f1"] == 1
    assert "subjects were pooled in 1 of 1" in " ".join(map(str, anonymous.notes))


def test_two_subjects_at_once_are_exclusive_each():
    ethogram = Ethogram(["a", "b", "other"], "other")
    truth = Annotation.from_bouts([0, 0], [50, 30], ["a", "b"], ethogram, 10, 100, subject=["m1", "m2"])
    pred = Annotation.from_bouts([0, 0], [40, 30], ["a", "b"], ethogram, 10, 100, subject=["m1", "m2"])
    scores = eb.score(pred, truth)
    assert scores.overall["accuracy"] == pytest.approx(190 / 200)
    assert scores.behaviors["other"]["f1"] == pytest.approx(2 * 120 / (2 * 120 + 10))


def test_behaviors_observed_in_some_frames_only():
    observed = Observed(iv.full(100), {Track("b"): iv.intervals([0], [50])})
    truth = Annotation.from_bouts([10, 10], [20, 20], ["a", "b"], Ethogram(["a", "b"]), 10, 100, observed=observed)
    pred = Annotation.from_bouts([10, 10, 60], [20, 20, 80], ["a", "b", "b"], Ethogram(["a", "b"]), 10, 100)
    scores = eb.score(pred, truth)
    assert scores.behaviors["b"]["precision"] == 1
    assert scores.behaviors["b"]["bout_precision"] == 1


def test_backgrounds_with_different_names_are_the_same():
    a = Annotation.from_frames([0, 1, 1], Ethogram(["run", "other"], "other"), 10)
    b = Annotation.from_frames([0, 0, 1], Ethogram(["run", "none"], "none"), 10)
    scores = eb.score(a, b)
    assert scores.overall["accuracy"] == pytest.approx(2 / 3)
    c = Annotation.from_bouts([0], [2], ["run"], ["run"], 10, 3)
    assert eb.score(c, a).overall["accuracy"] == pytest.approx(2 / 3)


def test_truth_by_consensus_or_by_all_annotators():
    truths = {f"ann{i}": random_annotation(0).shift(i) for i in range(3)}
    data = Dataset((Recording("r", annotations=truths),), ETHOGRAM)
    with pytest.raises(EthobenchError, match="choose one of: ann0, ann1, ann2"):
        eb.score({"r": random_annotation(0)}, data)
    assert eb.score({"r": truths["ann1"]}, data, annotator="consensus").overall["f1"] > 0.9
    every = eb.score({"r": truths["ann0"]}, data, annotator="all")
    assert every.recordings == ("r@ann0", "r@ann1", "r@ann2")
    assert len(every.individuals) == 1


def test_a_prediction_scores_its_own_annotation():
    truth = random_annotation(0)
    smooth = truth.shift(1)
    prediction = Prediction(np.eye(3)[truth.to_codes()], ETHOGRAM, 10, annotation=smooth)
    assert eb.score(prediction, truth).overall["f1"] == eb.score(smooth, truth).overall["f1"] < 1
    assert eb.score(prediction, truth).overall["map"] == 1


def test_the_same_behavior_of_two_pooled_subjects_counts_once():
    t = of([0, 5], [30, 35], ["a", "a"], ["a", "b"], 1, 40, subject=["m1", "m2"])
    scores = eb.score(t, t, tracks="merge")
    assert (scores.overall["f1"], scores.overall["accuracy"]) == (1, 1)
    p = of([0], [20], ["a"], ["a", "b"], 1, 40)
    assert eb.score(p, t, suite="calms21").overall["macro_precision"] == 1
    towards = of([0, 0], [30, 30], ["a", "a"], ["a", "b"], 1, 40, subject=["m1"] * 2, target=["m2", "m3"])
    assert eb.score(towards, towards).overall["accuracy"] == 1


def test_an_unobserved_behavior_does_not_affect_joint_scores():
    names = ["a", "b", "c"]
    t = of([0], [4], ["b"], names, 1, 4, observed=Observed(iv.full(4), {Track("c"): iv.empty()}))
    p = Annotation.from_frames([1, 1, 2, 2], names, 1)
    assert eb.score(p, t, suite="bebe").overall["f1"] < 1
    assert eb.score(p, t).overall["accuracy"] == 0.5


def test_observation_of_one_subject_counts_everywhere():
    o = Observed(iv.full(10), {Track(None, "m1"): iv.intervals([0], [5])})
    t = of([0, 2], [3, 4], ["A", "A"], ["A", "B"], 10, 10, subject=["m1", "m2"], observed=o)
    assert t.to_codes(subject="m1")[5:].tolist() == [-1] * 5
    assert t.to_codes(subject="m2")[5:].tolist() == [2] * 5
    p = of([0, 2, 6], [3, 4, 10], ["A"] * 3, ["A", "B"], 10, 10, subject=["m1", "m2", "m1"])
    scores = eb.score(p, t)
    assert (scores.overall["f1"], scores.overall["accuracy"]) == (1, 1)
    assert o.of("A").stop.tolist() == [5]


def test_extending_a_side_keeps_unobserved_frames():
    names = ["a", "b"]
    truth = Annotation.from_frames([1] * 10, names, 1, unobserved=np.arange(10) < 5)
    short, long = (Annotation.from_frames([1] * n, names, 1) for n in (10, 12))
    assert eb.score(short, truth, suite="banos").behaviors["b"]["so"] == 1
    assert eb.score(long, truth, suite="banos").behaviors["b"]["so"] == pytest.approx(5 / 7)


def test_recordings_without_prediction_are_noted():
    a = Annotation.from_frames([0, 1], ["x", "y"], 1)
    data = Dataset(tuple(Recording(f"r{k}", annotations={"me": a}) for k in range(3)), a.ethogram)
    assert "2 of 3 recordings have no prediction: r1, r2" in str(eb.score({"r0": a}, data).notes[0])


def test_empty_behaviors_are_refused_and_numeric_names_match_text():
    a = Annotation.from_frames([0, 1], ["x", "y"], 1)
    with pytest.raises(EthobenchError, match="`behaviors` is empty"):
        eb.score(a, a, behaviors=[])
    assert eb.score({1: a}, {"1": a}).overall["f1"] == 1


@pytest.fixture
def files(tmp_path):
    """Predictions and truths of three recordings in two folders, and a study that lists the truths."""
    for name, (pred, truth) in random_pairs(3).items():
        eb.write_annotation(pred, tmp_path / "pred" / f"{name}.csv", "tidy")
        eb.write_annotation(truth, tmp_path / "truth" / f"{name}.csv", "tidy")
    rows = [f"r{k},m{k % 2},10,truth/r{k}.csv,me" for k in range(3)]
    (tmp_path / "recordings.csv").write_text("recording,individual,rate,annotations,annotator\n" + "\n".join(rows), encoding="utf-8")
    return tmp_path


def test_paths_score_as_the_annotations_in_them(files):
    def same(scores: eb.Scores):
        return pytest.approx(scores.overall, abs=0, nan_ok=True)

    pairs = random_pairs(3)
    expected = eb.score(pairs)
    assert eb.score(files / "pred", files / "truth").to_dict() == expected.to_dict()
    assert eb.score(str(files / "pred" / "r1.csv"), files / "truth" / "r1.csv").overall == same(eb.score(*pairs["r1"]))
    by_individual = eb.score(files / "pred", files / "recordings.csv")
    assert by_individual.individuals == ("m0", "m1")
    assert by_individual.overall == same(expected)
    assert eb.score(files / "pred", eb.load_dataset(files / "recordings.csv")).overall == same(expected)
    renamed = eb.score(files / "pred", files / "truth", rename={"a": "attack"})
    assert renamed.behaviors["attack"] == pytest.approx(expected.behaviors["a"], nan_ok=True)


def test_paths_that_do_not_match_are_refused(files):
    eb.write_annotation(random_annotation(9), files / "pred" / "r9.csv", "tidy")
    with pytest.raises(EthobenchError, match=r"recording names do not match: only in .*: r9"):
        eb.score(files / "pred", files / "truth")
    with pytest.raises(NotFoundError, match=r"has no annotated recording r9\. Available: r0, r1, r2"):
        eb.score(files / "pred", files / "recordings.csv")
    with pytest.raises(EthobenchError, match="truth must be a path or a Dataset, not Annotation"):
        eb.score(files / "pred", random_annotation(0))
    with pytest.raises(EthobenchError, match="`rate` is an option for files and arrays, and `rename` for files"):
        eb.score(random_annotation(0), random_annotation(0), rate=10)


def test_options_of_other_inputs_are_refused():
    truth = random_annotation(0)
    for options in ({"match": "name"}, {"entry": "x"}, {"options": {"sep": ";"}}):
        with pytest.raises(EthobenchError, match="are options for files"):
            eb.score(truth, truth, **options)
    with pytest.raises(EthobenchError, match="`rename` for files"):
        eb.score(truth, truth, rename={"a": "b"})


def test_a_single_prediction_needs_a_dataset_of_one_recording():
    pairs = random_pairs(2)
    data = Dataset(tuple(Recording(n, annotations={"me": t}) for n, (_, t) in pairs.items()), ETHOGRAM, "toy")
    with pytest.raises(EthobenchError, match="toy has 2 recordings: pass predictions as a mapping"):
        eb.score(pairs["r0"][0], data)
    one = Dataset(data.recordings[1:], ETHOGRAM)
    expected = eb.score(*pairs["r1"], resamples=0).overall
    assert eb.score(pairs["r1"][0], one, resamples=0).overall == pytest.approx(expected, nan_ok=True)
    assert eb.score(pairs["r1"][0].to_codes(), one, resamples=0).overall == pytest.approx(expected, nan_ok=True)
    codes = {name: pair[0].to_codes() for name, pair in pairs.items()}
    assert eb.score(codes, data, resamples=0).overall == pytest.approx(eb.score(pairs, resamples=0).overall, nan_ok=True)
    with pytest.raises(EthobenchError, match="nothing to score"):
        eb.score({}, data)


def test_probabilities_are_matched_by_name():
    rng = np.random.default_rng(0)
    truth = Annotation.from_frames(rng.integers(0, 3, 60), ["a", "b", "c"], 10)
    values = rng.dirichlet([1, 1, 1], 60)
    expected = eb.score(eb.Prediction(values, Ethogram(["a", "b", "c"]), 10, exclusive=True), truth, resamples=0)
    order = [2, 0, 1]
    permuted = eb.Prediction(values[:, order], Ethogram(["c", "a", "b"]), 10, exclusive=True)
    scores = eb.score(permuted, truth, resamples=0)
    for name in "abc":
        assert scores.behaviors[name] == pytest.approx(expected.behaviors[name], nan_ok=True)
    assert scores.overall["map"] == pytest.approx(expected.overall["map"])
    assert np.isfinite(scores.overall["map"])


@pytest.mark.parametrize("value", [([0, 1], [0, 1], [0, 1]), np.array([0, 1])])
def test_arrays_of_a_recording_are_a_pair(value):
    with pytest.raises(EthobenchError, match="expected a pair"):
        eb.score({"r0": ([0, 1], [0, 1]), "r1": value}, rate=1, behaviors=["a", "b"])


def test_truths_without_a_prediction_are_noted(files):
    (files / "pred" / "r1.csv").unlink()
    for truth in (files / "truth", files / "recordings.csv"):
        with pytest.warns(ReadWarning, match="1 of 3 annotated recordings have no prediction and are not scored: r1"):
            scores = eb.score(files / "pred", truth, resamples=0)
        assert scores.recordings == ("r0", "r2")


def test_annotators_of_files_are_chosen_by_name_or_joined(tmp_path):
    sides = {name: random_annotation(seed) for name, seed in {"x": 1, "y": 2, "z": 3}.items()}
    rows = []
    for name, side in sides.items():
        eb.write_annotation(side, tmp_path / f"{name}.csv", "tidy")
        rows.append(f"r,10,{name}.csv,{name}")
    (tmp_path / "recordings.csv").write_text("recording,rate,annotations,annotator\n" + "\n".join(rows), encoding="utf-8")
    eb.write_annotation(sides["x"], tmp_path / "pred" / "r.csv", "tidy")
    f1 = {
        who: eb.score(tmp_path / "pred", tmp_path / "recordings.csv", annotator=who, resamples=0).overall["f1"]
        for who in ("x", "y", "consensus", "all")
    }
    expected = {who: eb.score(sides["x"], side, resamples=0).overall["f1"] for who, side in sides.items()}
    assert (f1["x"], f1["y"]) == (1, pytest.approx(expected["y"]))
    assert f1["consensus"] == pytest.approx(eb.score(sides["x"], eb.consensus(sides), resamples=0).overall["f1"])
    assert f1["all"] == pytest.approx(eb.score({who: (sides["x"], side) for who, side in sides.items()}, resamples=0).overall["f1"])
    with pytest.raises(EthobenchError, match="has several annotators; choose one of: x, y, z"):
        eb.score(tmp_path / "pred", tmp_path / "recordings.csv")


def test_a_prediction_that_ends_one_frame_early_is_extended(tmp_path):
    truth = random_annotation(1)
    eb.write_annotation(truth, tmp_path / "truth.csv", "tidy")
    eb.write_annotation(truth.crop(0, truth.n_frames - 1), tmp_path / "pred.csv", "tidy")
    with pytest.warns(ReadWarning):
        scores = eb.score(tmp_path / "pred.csv", tmp_path / "truth.csv", match={"pred": "truth"}, resamples=0)
    assert scores.overall["recall"] > 0.99
    eb.write_annotation(truth.resample(20), tmp_path / "fast.csv", "tidy")
    with pytest.warns(ReadWarning, match="as stated"), pytest.raises(MismatchError, match="has 20 Hz, the truth 10 Hz"):
        eb.score(tmp_path / "fast.csv", tmp_path / "truth.csv", match={"fast": "truth"}, resamples=0)
