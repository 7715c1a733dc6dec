"""`Scores`: values, intervals, breakdowns, tables, comparisons, and behaviors that never occur."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit
from tests.metrics.examples import random_annotation, random_pairs

import ethobench as eb
from ethobench import Annotation, Ethogram, Scores
from ethobench.core.errors import MismatchError, NotFoundError
from ethobench.metrics.bootstrap import resampling_weights
from ethobench.metrics.suites import suites

NAMES = ["a", "b", "other"]


def test_table_and_json():
    scores = eb.score(random_pairs())
    table = scores.table()
    assert list(table.columns) == ["suite", "metric", "behavior", "recording", "value", "low", "high"]
    overall = table[(table.behavior == "") & (table.recording == "")].set_index("metric")
    assert overall.loc["f1", "value"] == scores.overall["f1"]
    assert overall.loc["f1", "low"] <= overall.loc["f1", "value"] <= overall.loc["f1", "high"]
    assert len(table[table.recording == "r3"]) > 10
    content = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert {"suite", "overall", "behaviors", "recordings", "individuals"} <= content.keys()
    assert content["behaviors"]["a"]["f1"] == scores.behaviors["a"]["f1"]
    assert content["overall"]["map"] is None


def test_pooled_scores_are_those_of_summed_counts():
    pairs = random_pairs()
    joined = [a[0].concatenate(*a[1:]) for a in zip(*pairs.values(), strict=True)]
    pooled, concatenated = eb.score(pairs).overall, eb.score(*joined).overall
    for name in ("f1", "precision", "recall", "accuracy", "kappa", "mcc_all"):
        assert pooled[name] == pytest.approx(concatenated[name])


@pytest.mark.slow
def test_intervals_are_t_intervals_over_resampled_individuals():
    pairs = random_pairs(7)
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


def test_selected_recordings_have_the_same_scores_as_alone():
    pairs = random_pairs()
    scores = eb.score(pairs, individuals={"r0": "x", "r1": "x"})
    alone = eb.score({name: pairs[name] for name in ("r1", "r4")}, individuals={"r1": "x"})
    for complete in (scores, Scores.from_states([scores.to_state()])):
        selected = complete.select(["r4", "r1"])
        assert (selected.recordings, selected.individuals) == (("r1", "r4"), ("x", "r4"))
        assert selected.overall["f1"] == pytest.approx(alone.overall["f1"])
        assert selected.behaviors["a"]["bout_f1"] == pytest.approx(alone.behaviors["a"]["bout_f1"])
    with pytest.raises(NotFoundError, match="not scored: r9"):
        scores.select(["r9"])


@pytest.mark.slow
def test_comparison_of_two_models_is_paired():
    pairs = random_pairs()
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
        good.compare(eb.score(random_pairs(3)))


def test_scores_per_recording_are_those_of_each_alone():
    pairs = {f"r{k}": (Annotation.from_frames(np.roll(c, 2), ["x", "y", "z"], 5), Annotation.from_frames(c, ["x", "y", "z"], 5))
             for k in range(5) for c in [np.random.default_rng(k).integers(0, 3, 12).repeat(6)]}  # fmt: skip
    for suite in ("ethobench", "banos", "bebe", "calms21", "rodentbench"):
        per_recording = eb.score(pairs, suite=suite).per("recording")
        for name, pair in pairs.items():
            alone = eb.score({name: pair}, suite=suite)
            assert per_recording[name]["overall"] == pytest.approx(alone.overall, nan_ok=True), suite
            for behavior, values in alone.behaviors.items():
                assert per_recording[name]["behaviors"][behavior] == pytest.approx(values, nan_ok=True), suite


def test_one_recording_is_compared_without_an_interval():
    a = random_annotation(0)
    comparison = eb.score(a, a).compare(eb.score(a, a))["f1"]
    assert (comparison["low"], comparison["reason"]) == (None, "no interval below 5 recordings")


FIVE_BEHAVIORS = Ethogram(["other", "rest", "run", "bite", "chase"], "other")
COUNTS_THEM = {"banos", "bebe"}  # as published, a behavior that is neither true nor predicted has perfect scores


def predictions_and_truths() -> tuple[dict[str, Annotation], dict[str, Annotation]]:
    """Rest and run are annotated, bite is only predicted, chase never occurs."""
    truth = np.repeat([1, 2, 0, 1], 50)
    pred = np.where(np.arange(200) < 10, 3, truth)
    names = ("a", "b")
    return tuple({name: Annotation.from_frames(codes, FIVE_BEHAVIORS, 10) for name in names} for codes in (pred, truth))


def scores_with_absent_behaviors(suite: str) -> Scores:
    predictions, truths = predictions_and_truths()
    return eb.score(predictions, truths, suite=suite, behaviors="all" if suite == "rodentbench" else None, resamples=20)


@pytest.mark.parametrize("suite", suites.names())
def test_behaviors_that_never_occur(suite):
    scores = scores_with_absent_behaviors(suite)
    assert scores.occurrence.never_annotated == ("chase",)
    assert scores.occurrence.only_predicted == ("bite",)
    assert scores.undefined_behaviors == ([] if suite in COUNTS_THEM else ["chase"])
    first, second = scores.occurrence_lines()
    assert first == "never annotated: chase" + (f" (the means of suite {suite} include them)" if suite in COUNTS_THEM else "")
    assert second == "predicted but never annotated: bite"


@pytest.mark.parametrize("suite", suites.names())
def test_behaviors_that_never_occur_in_stored_scores(suite):
    scores = scores_with_absent_behaviors(suite)
    stored = Scores.from_states([scores.to_state()], resamples=0)
    if suite in ("ethobench", "calms21", "bebe", "mabe2025"):
        assert stored.occurrence.never_annotated == ("chase",)
        assert stored.occurrence.only_predicted == ("bite",)
        assert stored.occurrence.color_indices() == scores.occurrence.color_indices()
        assert stored.absent == scores.absent
    else:
        assert stored.occurrence is None
        assert stored.occurrence_lines() == stored.undefined_behaviors == stored.absent == []


@pytest.mark.parametrize("suite", suites.names())
def test_json_keeps_every_behavior(suite):
    scores = scores_with_absent_behaviors(suite)
    plain = scores.to_dict()
    assert "chase" in plain["behaviors"]
    assert plain["absent"] == ["chase"]
    assert plain["notes"][-2:] == scores.occurrence_lines()


def test_headline_table_latex_and_html():
    names = Ethogram(["left_ear & 50 %", "<b>run</b>", "never"], "never")
    codes = np.arange(120) // 20 % 2
    truth, pred = (Annotation.from_frames(c, names, 10) for c in (codes, np.roll(codes, 2)))
    scores = eb.score({f"r{k}": (pred.shift(k % 3), truth) for k in range(6)}, resamples=50)
    table = scores.headline_table()
    assert list(table.columns) == list(scores.suite.headline)
    assert list(table.index) == ["all", "left_ear & 50 %", "<b>run</b>", "never"]
    low, high = scores.intervals["overall"]["f1"]
    assert table.loc["all", "f1"] == f"{scores.overall['f1']:.3f} [{low:.2f}, {high:.2f}]"
    latex = scores.to_latex()
    assert latex.startswith("\\begin{tabular}")
    assert "\\toprule" in latex
    assert r"left\_ear \& 50 \%" in latex
    assert "behavior & frame F1 & precision & recall & bout F1 \\\\" in latex
    assert "behavior & bout F1 & frame F1 \\\\" in scores.to_latex(["bout_f1", "f1"])
    with pytest.raises(NotFoundError, match="no measure 'bout'"):
        scores.to_latex(["bout"])
    html = scores._repr_html_()
    assert "&lt;b&gt;run&lt;/b&gt;" in html
    assert "<b>" not in html
    assert "n = 6 recordings" in html


def test_units_and_measures_that_do_not_exist_are_refused():
    scores = eb.score(random_pairs(2), resamples=0)
    with pytest.raises(NotFoundError, match="'recording' or 'individual', got 'cage'"):
        scores.per("cage")
    with pytest.raises(NotFoundError, match="has no measure 'f9'"):
        scores.headline_table(["f1", "f9"])
    with pytest.raises(MismatchError, match="same suite, recordings and individuals"):
        scores.compare(eb.score(random_pairs(3), resamples=0))


def test_overall_scores_of_each_unit_are_those_of_its_recordings():
    pairs = random_pairs(4)
    individuals = dict(zip(pairs, "xyxy", strict=True))
    scores = eb.score(pairs, individuals=individuals, resamples=0)
    groups = {"individual": {who: [n for n in pairs if individuals[n] == who] for who in "xy"}, "recording": {n: [n] for n in pairs}}
    for unit, members in groups.items():
        values = scores.overall_per(unit)
        for k, names in enumerate(members.values()):
            alone = eb.score({n: pairs[n] for n in names}, individuals={n: individuals[n] for n in names}, resamples=0)
            assert {name: value[k] for name, value in values.items()} == pytest.approx(alone.overall, nan_ok=True)
    (name, pair), *_ = pairs.items()
    single = eb.score({name: pair}, resamples=0)
    assert {m: v.item() for m, v in single.overall_per("recording").items()} == pytest.approx(single.overall, nan_ok=True)
    assert single.per("individual")[name]["overall"] == single.overall


def test_worst_confusions_are_the_largest_shares():
    names = ["a", "b", "c"]
    truth = np.repeat([0, 1, 2, 3], [100, 40, 20, 10])
    pred = truth.copy()
    pred[:5] = 1  # 5 % of a
    pred[5:9] = 2  # 4 % of a
    pred[100:110] = 0  # 25 % of b
    pred[140:145] = 3  # 25 % of c, fewer frames
    pred[160:169] = 2  # 90 % of no behavior
    scores = eb.score(*(Annotation.from_frames(codes, names, 10) for codes in (pred, truth)), resamples=0)
    rows = [(r["behavior"], r["predicted"], round(r["share"], 6), r["frames"]) for r in scores.worst_confusions(limit=9)]
    assert rows == [("", "c", 0.9, 9), ("b", "a", 0.25, 10), ("c", "", 0.25, 5), ("a", "b", 0.05, 5)]
    assert len(scores.worst_confusions()) == 3
    assert len(scores.worst_confusions(9, 0.04)) == 5
    confusion = scores.confusion()
    assert confusion["labels"] == ["a", "b", "c", ""]
    assert confusion["matrix"] == [[91, 5, 4, 0], [10, 30, 0, 0], [0, 0, 15, 5], [0, 0, 9, 1]]
    overlapping = Annotation.from_frames(np.ones((170, 3), dtype=bool), names, 10)
    assert eb.score(overlapping, overlapping, resamples=0).confusion() is None


def test_why_a_difference_has_no_interval():
    pairs = random_pairs(6)
    scores, same = eb.score(pairs, resamples=20), eb.score({n: (t, t) for n, (_, t) in pairs.items()}, resamples=20)
    row = scores.compare(same, ["f1"])["f1"]
    assert row["difference"] == pytest.approx(scores.overall["f1"] - 1)
    assert row["low"] <= row["difference"] <= row["high"]
    assert (row["n"], row["reason"]) == (6, None)
    assert row["better"] < 0.5
    assert "without resampling" in scores.compare(eb.score(pairs, resamples=0), ["f1"])["f1"]["reason"]
    assert "different numbers of resamples" in scores.compare(eb.score(pairs, resamples=21), ["f1"])["f1"]["reason"]
    assert scores.compare(scores, ["f1"])["f1"]["reason"] == "no spread: the same difference in all recordings"
    assert scores.compare(scores, ["map"])["map"]["reason"] == "undefined for one of the two"


def test_stored_scores_count_what_the_annotations_hold():
    """Seconds and bouts of each behavior, recomputed from statistics."""
    scores = eb.score(random_pairs(), resamples=0)
    stored = Scores.from_states([scores.to_state()])
    assert not stored.pairs
    for before, after in (
        (scores.occurrence.annotated, stored.occurrence.annotated),
        (scores.occurrence.predicted, stored.occurrence.predicted),
    ):
        assert {*before} == {*after}
        for name in ("a", "b"):  # frames without a bout are background in statistics
            assert after[name] == pytest.approx(before[name])


def test_a_comparison_counts_individuals_in_whom_both_scores_are_defined():
    ethogram = Ethogram(["a", "other"], "other")
    truth = {f"r{k}": Annotation.from_frames([0] * 10 + [1] * 10 if k < 6 else [1] * 20, ethogram, 5) for k in range(8)}
    always = {name: Annotation.from_frames([0] * (5 + k) + [1] * (15 - k), ethogram, 5) for k, name in enumerate(truth)}
    sometimes = {name: always[name] if k != 2 else Annotation.from_frames([1] * 20, ethogram, 5) for k, name in enumerate(truth)}
    first, second = (eb.score(side, truth, suite="ethobench", resamples=20) for side in (always, sometimes))
    assert first.compare(second, ["so"])["so"]["n"] == second.compare(first, ["so"])["so"]["n"] == 5
    assert first.compare(first, ["so"])["so"]["n"] == 6
