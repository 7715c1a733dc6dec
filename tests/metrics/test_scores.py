"""The score verb: what it takes, what it refuses, what it tells."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logit

import ethobench as eb
from ethobench import Annotation, Behavior, Dataset, Ethogram, Prediction, Recording, Scores
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.observed import Observed, Track
from ethobench.metrics.bootstrap import resampling_weights

NAMES = ["a", "b", "other"]
ETHOGRAM = Ethogram(NAMES, "other")


def some(seed: int, n: int = 300) -> Annotation:
    generator = np.random.default_rng(seed)
    return Annotation.from_frames(np.repeat(generator.integers(0, 3, n // 10), 10), ETHOGRAM, 10)


def many(k: int = 6) -> dict[str, tuple[Annotation, Annotation]]:
    truths = [some(s) for s in range(k)]
    return {f"r{i}": (t.shift(i % 3), t) for i, t in enumerate(truths)}


def test_pairs_mappings_and_datasets_give_the_same():
    pairs = many()
    data = Dataset(tuple(Recording(n, annotations={"me": t}) for n, (_, t) in pairs.items()), ETHOGRAM)
    preds, truths = {n: p for n, (p, _) in pairs.items()}, {n: t for n, (_, t) in pairs.items()}
    first = eb.score(pairs)
    assert eb.score(preds, truths).overall == pytest.approx(first.overall, nan_ok=True)
    assert eb.score(preds, data).overall == pytest.approx(first.overall, nan_ok=True)
    assert eb.score({"r0": preds["r0"]}, data).recordings == ("r0",)


def test_table_and_json():
    scores = eb.score(many())
    table = scores.table()
    assert list(table.columns) == ["suite", "metric", "behavior", "recording", "value", "low", "high"]
    overall = table[(table.behavior == "") & (table.recording == "")].set_index("metric")
    assert overall.loc["f1", "value"] == scores.overall["f1"]
    assert overall.loc["f1", "low"] <= overall.loc["f1", "value"] <= overall.loc["f1", "high"]
    assert len(table[table.recording == "r3"]) > 10
    facts = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert {"suite", "overall", "behaviors", "recordings", "individuals"} <= facts.keys()
    assert facts["behaviors"]["a"]["f1"] == scores.behaviors["a"]["f1"]
    assert facts["overall"]["map"] is None


def test_pooled_figures_are_of_summed_counts():
    pairs = many()
    joined = [a[0].concatenate(*a[1:]) for a in zip(*pairs.values(), strict=True)]
    pooled, whole = eb.score(pairs).overall, eb.score(*joined).overall
    for name in ("f1", "precision", "recall", "accuracy", "kappa", "mcc_all"):
        assert pooled[name] == pytest.approx(whole[name])


@pytest.mark.slow
def test_intervals_are_t_intervals_over_resampled_individuals():
    pairs = many(7)
    individuals = dict(zip(pairs, "xxyyzvw", strict=True))
    names = "xyzvw"
    scores = eb.score(pairs, individuals=individuals, resamples=100, seed=3)

    def f1(counts):
        drawn = {f"{n}.{k}": pairs[n] for n in pairs for k in range(counts[names.index(individuals[n])])}
        return eb.score(drawn, resamples=0).overall["f1"]

    weights = resampling_weights(5, 100, 3).astype(int)
    assert (weights.sum(axis=1) == 5).all()
    draws = np.array([f1(row) for row in weights])
    without = np.array([f1(row) for row in 1 - np.eye(5, dtype=int)])
    error = max(draws.std() * np.sqrt(5 / 4), np.sqrt(4 / 5 * ((without - without.mean()) ** 2).sum()))
    reach = stats.t.ppf(0.975, 4) * error / (draws.mean() * (1 - draws.mean()))
    expected = expit(logit(scores.overall["f1"]) + np.array([-reach, reach]))
    assert scores.intervals["overall"]["f1"] == pytest.approx(tuple(expected))


def test_some_of_the_recordings_score_as_they_do_alone():
    pairs = many()
    scores = eb.score(pairs, individuals={"r0": "x", "r1": "x"})
    alone = eb.score({name: pairs[name] for name in ("r1", "r4")}, individuals={"r1": "x"})
    for whole in (scores, Scores.from_states([scores.to_state()])):
        some_of_them = whole.select(["r4", "r1"])
        assert (some_of_them.recordings, some_of_them.individuals) == (("r1", "r4"), ("x", "r4"))
        assert some_of_them.overall["f1"] == pytest.approx(alone.overall["f1"])
        assert some_of_them.behaviors["a"]["bout_f1"] == pytest.approx(alone.behaviors["a"]["bout_f1"])
    with pytest.raises(NotFoundError, match="not scored: r9"):
        scores.select(["r9"])


@pytest.mark.slow
def test_comparison_of_two_models_is_paired():
    pairs = many()
    good = eb.score(pairs, resamples=2000)
    bad = eb.score({n: (t.shift(8), t) for n, (_, t) in pairs.items()}, resamples=2000)
    result = good.compare(bad)["f1"]
    assert result["difference"] == pytest.approx(good.overall["f1"] - bad.overall["f1"])
    assert 0 < result["low"] <= result["difference"] <= result["high"]
    assert 0.95 < result["better"] <= 1 - 2**-6
    assert bad.compare(good)["f1"]["better"] == pytest.approx(1 - result["better"])
    same = good.compare(good)["f1"]
    assert (same["difference"], same["low"], same["better"]) == (0, None, None)
    assert same["reason"] == "no spread: the same difference in all recordings"
    with pytest.raises(MismatchError, match="same suite, recordings"):
        good.compare(eb.score(many(3)))


def test_mismatches_are_told_in_words():
    truth = some(0)
    with pytest.raises(MismatchError, match="runs at 20 Hz, the truth at 10 Hz; resample"):
        eb.score(truth.resample(20), truth)
    with pytest.raises(MismatchError, match="299 frames, the truth 300"):
        eb.score(truth.crop(0, 299), truth)
    with pytest.raises(MismatchError, match="'r1' has"):
        eb.agreement({"r0": truth, "r1": truth.crop(0, 10)})
    other = truth.rename({"a": "x"})
    with pytest.raises(MismatchError, match="which the truth does not know"):
        eb.score(other, truth)
    scores = eb.score(other, truth, behaviors="all")
    assert scores.behaviors["a"]["f1"] == 0
    assert scores.behaviors["x"]["f1"] == 0
    assert {*eb.score(other, truth, behaviors=["b"]).behaviors} == {"b"}
    with pytest.raises(NotFoundError, match="no behavior 'zz'"):
        eb.score(truth, truth, behaviors=["zz"])
    with pytest.raises(NotFoundError, match="did you mean 'banos'"):
        eb.score(truth, truth, suite="banoz")
    with pytest.raises(EthobenchError, match="'auto'"):
        eb.score(truth, truth, tracks="apart")


@pytest.mark.parametrize("wrong", [np.zeros((5, 3)), [[0, 1]], pd.DataFrame({"a": ["0", "1"]}), "file.csv", None, 3.0])
def test_other_things_than_annotations_are_refused(wrong):
    with pytest.raises(EthobenchError, match=r"Annotation|prediction and a truth"):
        eb.score(wrong, some(0))


def test_frames_of_text_probabilities_or_nan_are_refused():
    for wrong in (["0", "1"], [[0.2, 0.8, 0.0]], [0.0, np.nan], [[1.0, np.nan, 0.0]]):
        with pytest.raises(EthobenchError):
            Annotation.from_frames(wrong, ETHOGRAM, 10)


def test_mappings_must_fit():
    pairs = many(2)
    with pytest.raises(MismatchError, match="on one side only: r1"):
        eb.score({n: p for n, (p, _) in pairs.items()}, {"r0": pairs["r0"][1]})
    with pytest.raises(EthobenchError, match="a pair of prediction and truth"):
        eb.score({"r0": pairs["r0"][0]})
    with pytest.raises(EthobenchError, match="nothing to score"):
        eb.score({})
    with pytest.raises(NotFoundError, match="not scored: r9"):
        eb.score(pairs, individuals={"r9": "x"})


def test_empty_sides_and_nothing_observed():
    truth = some(0)
    nothing = truth.take([])
    scores = eb.score(nothing, truth)
    assert scores.behaviors["a"]["recall"] == 0
    assert scores.behaviors["a"]["f1"] == 0
    assert scores.behaviors["a"]["bout_f1"] == 0
    assert np.isnan(scores.behaviors["a"]["precision"])
    both = eb.score(nothing, nothing)
    assert np.isnan(both.overall["f1"])
    assert both.absent == ["a", "b"]
    with pytest.raises(EthobenchError, match="nobody looked"):
        eb.score(truth, truth.with_observed(iv.empty()))
    partly = truth.with_observed(Observed(iv.full(300), {Track("b"): iv.empty()}))
    scores = eb.score(truth, partly)
    assert {*scores.behaviors} == {"a", "other"}
    assert "never looked at, so not scored: b" in " ".join(map(str, scores.notes))
    assert "b" not in eb.score(truth, partly, suite="rodentbench").ethogram


def test_the_default_suite_mends_what_banos_does_odd():
    ethogram = Ethogram(["a"])

    def of(start, stop):
        return Annotation.from_bouts(start, stop, [0] * len(start), ethogram, 10, 100)

    truth = of([10, 40], [20, 50])
    miss = eb.score(of([60], [70]), truth), eb.score(of([60], [70]), truth, suite="banos")
    assert miss[0].behaviors["a"]["bout_f1"] == 0
    assert np.isnan(miss[1].behaviors["a"]["f1_score"])
    assert np.isnan(miss[0].behaviors["a"]["ic"])
    assert miss[1].behaviors["a"]["ic"] == 1
    spanning = eb.score(of([10], [50]), truth), eb.score(of([10], [50]), truth, suite="banos")
    assert spanning[0].behaviors["a"]["so"] == pytest.approx(10 / 40)
    assert spanning[0].behaviors["a"]["merged"] == 1
    split = eb.score(of([10, 16], [15, 20]), of([10], [20]))
    assert split.behaviors["a"]["fragmented"] == 1
    assert split.behaviors["a"]["so"] == pytest.approx(0.5)
    assert split.behaviors["a"]["ic"] == pytest.approx(1 - 2 / 9)


def test_onset_and_offset_errors_are_signed_medians_in_seconds():
    ethogram = Ethogram(["a"])
    truth = Annotation.from_bouts([30, 90, 150], [60, 120, 180], [0] * 3, ethogram, 30, 300)
    pred = Annotation.from_bouts([33, 92, 151], [55, 119, 190], [0] * 3, ethogram, 30, 300)
    figures = eb.score(pred, truth).behaviors["a"]
    assert figures["onset_error"] == pytest.approx(2 / 30)
    assert figures["offset_error"] == pytest.approx(-1 / 30)
    assert figures["onset_distance"] == pytest.approx(6 / 3 / 30)
    even = eb.score(pred.take([0, 1]), truth.take([0, 1])).behaviors["a"]
    assert even["onset_error"] == pytest.approx(2.5 / 30)


def test_subjects_are_scored_apart_or_pooled():
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


def test_behaviors_looked_at_in_part_only():
    observed = Observed(iv.full(100), {Track("b"): iv.intervals([0], [50])})
    truth = Annotation.from_bouts([10, 10], [20, 20], ["a", "b"], Ethogram(["a", "b"]), 10, 100, observed=observed)
    pred = Annotation.from_bouts([10, 10, 60], [20, 20, 80], ["a", "b", "b"], Ethogram(["a", "b"]), 10, 100)
    scores = eb.score(pred, truth)
    assert scores.behaviors["b"]["precision"] == 1
    assert scores.behaviors["b"]["bout_precision"] == 1


def test_point_events_are_matched_within_a_tolerance_and_have_no_frames():
    ethogram = Ethogram([Behavior("bite", point=True), "a"])

    def of(points, n=100):
        frames = [*points, 50]
        return Annotation.from_bouts(frames, [*points, 60], [0] * len(points) + [1], ethogram, 10, n)

    scores = eb.score(of([7, 30, 99]), of([5, 40, 100]))
    bite = scores.behaviors["bite"]
    assert (bite["bout_precision"], bite["bout_recall"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert bite["onset_distance"] == pytest.approx((0.2 + 0.1) / 2)
    assert np.isnan(bite["f1"])
    assert np.isnan(bite["so"])
    assert scores.overall["f1"] == scores.behaviors["a"]["f1"] == 1
    assert scores.overall["so"] == 1
    assert "bite" in " ".join(map(str, scores.notes))
    unseen = eb.score(of([7, 90]), of([7]).with_observed(iv.intervals([0], [80])))
    assert unseen.behaviors["bite"]["bout_precision"] == 1


def test_backgrounds_of_other_names_are_one():
    a = Annotation.from_frames([0, 1, 1], Ethogram(["run", "other"], "other"), 10)
    b = Annotation.from_frames([0, 0, 1], Ethogram(["run", "none"], "none"), 10)
    scores = eb.score(a, b)
    assert scores.overall["accuracy"] == pytest.approx(2 / 3)
    c = Annotation.from_bouts([0], [2], ["run"], ["run"], 10, 3)
    assert eb.score(c, a).overall["accuracy"] == pytest.approx(2 / 3)


def test_truth_by_consensus_or_by_all_annotators():
    truths = {f"ann{i}": some(0).shift(i) for i in range(3)}
    data = Dataset((Recording("r", annotations=truths),), ETHOGRAM)
    with pytest.raises(EthobenchError, match="choose one of: ann0, ann1, ann2"):
        eb.score({"r": some(0)}, data)
    assert eb.score({"r": truths["ann1"]}, data, annotator="consensus").overall["f1"] > 0.9
    every = eb.score({"r": truths["ann0"]}, data, annotator="all")
    assert every.recordings == ("r@ann0", "r@ann1", "r@ann2")
    assert len(every.individuals) == 1


def test_a_prediction_scores_its_own_annotation():
    truth = some(0)
    smooth = truth.shift(1)
    prediction = Prediction(np.eye(3)[truth.to_codes()], ETHOGRAM, 10, annotation=smooth)
    assert eb.score(prediction, truth).overall["f1"] == eb.score(smooth, truth).overall["f1"] < 1
    assert eb.score(prediction, truth).overall["map"] == 1
