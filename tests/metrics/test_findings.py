"""Cases in which scores once went wrong."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Behavior, Dataset, Ethogram, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.observed import Observed, Track

of = Annotation.from_bouts


def test_two_subjects_that_do_the_same_at_once_are_counted_once():
    t = of([0, 5], [30, 35], ["a", "a"], ["a", "b"], 1, 40, subject=["m1", "m2"])
    scores = eb.score(t, t, tracks="merge")
    assert (scores.overall["f1"], scores.overall["accuracy"]) == (1, 1)
    p = of([0], [20], ["a"], ["a", "b"], 1, 40)
    assert eb.score(p, t, suite="calms21").overall["macro_precision"] == 1
    towards = of([0, 0], [30, 30], ["a", "a"], ["a", "b"], 1, 40, subject=["m1"] * 2, target=["m2", "m3"])
    assert eb.score(towards, towards).overall["accuracy"] == 1


def test_a_behavior_that_nobody_observed_does_not_empty_joint_figures():
    names = ["a", "b", "c"]
    t = of([0], [4], ["b"], names, 1, 4, observed=Observed(iv.full(4), {Track("c"): iv.empty()}))
    p = Annotation.from_frames([1, 1, 2, 2], names, 1)
    assert eb.score(p, t, suite="bebe").overall["f1"] < 1
    assert eb.score(p, t).overall["accuracy"] == 0.5


def test_ceiling_matches_behaviors_by_name():
    a = Annotation.from_frames([0] * 4 + [1] * 6, ["A", "B"], 10)
    b = Annotation.from_frames([1] * 4 + [0] * 4 + [1] * 2, ["B", "A"], 10)
    m = Annotation.from_frames([0] * 10, ["A", "B"], 10)
    assert eb.ceiling({"x": a, "y": b}, model=m).of("f1", "A", "y")["model"] == pytest.approx(0.75)
    less = Annotation.from_frames([0] * 10, ["A"], 10)
    assert eb.ceiling({"x": less, "y": b}, model=less).of("f1", "A", "x")["model"] == 1
    with pytest.raises(EthobenchError, match="two annotators"):
        eb.ceiling(Dataset((Recording("r", annotations={"x": a}),), a.ethogram), model=m)


def test_medians_of_large_errors_are_medians():
    t = of([100, 300, 500], [200, 400, 640], ["a"] * 3, ["a"], 1, 1000)
    p = of([106, 307, 600], [200, 400, 640], ["a"] * 3, ["a"], 1, 1000)
    assert eb.score(p, t).overall["onset_error"] == pytest.approx(7)
    early = of([50, 293, 400], [200, 390, 640], ["a"] * 3, ["a"], 1, 1000)
    assert eb.score(early, t).overall["onset_error"] == pytest.approx(-50)


def test_observation_of_one_subject_counts_everywhere():
    o = Observed(iv.full(10), {Track(None, "m1"): iv.intervals([0], [5])})
    t = of([0, 2], [3, 4], ["A", "A"], ["A", "B"], 10, 10, subject=["m1", "m2"], observed=o)
    assert t.to_codes(subject="m1")[5:].tolist() == [-1] * 5
    assert t.to_codes(subject="m2")[5:].tolist() == [2] * 5
    p = of([0, 2, 6], [3, 4, 10], ["A"] * 3, ["A", "B"], 10, 10, subject=["m1", "m2", "m1"])
    scores = eb.score(p, t)
    assert (scores.overall["f1"], scores.overall["accuracy"]) == (1, 1)
    assert o.of("A").stop.tolist() == [5]


def test_overlay_and_concatenate_keep_what_was_observed():
    first = of([0], [5], ["A"], ["A"], 10, 10, observed=iv.intervals([0], [5]))
    second = of([6], [9], ["A"], ["A"], 10, 10, observed=iv.intervals([5], [10]))
    assert first.overlay(second).observed.of("A").stop.tolist() == [10]
    a = Observed(iv.full(10), {Track("A"): iv.empty()})
    b = Observed(iv.full(10), {Track("A", "m1"): iv.intervals([0], [5])})
    assert a.join(b, 10).of("A", "m1").start.tolist() == [10]


def test_point_events_at_the_end_survive_cropping():
    bite = of([100], [100], ["bite"], Ethogram([Behavior("bite", point=True)]), 30, 100)
    assert len(bite.crop(0, 100)) == 1
    assert len(bite.shift(0)) == 1
    assert len(bite.crop(0, 99)) == 0


def test_consensus_keeps_points_and_partial_observation():
    ethogram = Ethogram([Behavior("bite", point=True), "a", "b"])
    a = of([10, 20], [10, 40], [0, 1], ethogram, 10, 100)
    b = of([12, 22], [12, 40], [0, 1], ethogram, 10, 100)
    agreed = eb.consensus({"x": a, "y": b})
    assert agreed.spans("bite").start.tolist() == [11]
    assert agreed.spans("a").start.tolist() == [22]
    hidden = Observed(iv.full(100), {Track("b"): iv.empty()})
    partly = eb.consensus({"x": a.with_observed(hidden), "y": b.with_observed(hidden)})
    assert iv.total(partly.observed.of("a")) == 100
    assert iv.total(partly.observed.of("b")) == 0


def test_bebe_leaves_points_out_and_takes_the_unpredicted_as_the_first_class():
    ethogram = Ethogram(["w", "r", Behavior("bite", point=True)])
    t = of([0, 4], [4, 8], [0, 1], ethogram, 1, 8)
    p = of([0], [8], [0], ethogram, 1, 8)
    scores = eb.score(p, t, suite="bebe")
    assert scores.overall["f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert np.isnan(scores.behaviors["bite"]["f1"])
    named = Ethogram(["w", "other"], "other")
    silent = of([], [], [], named, 1, 4, observed=iv.empty())
    assert eb.score(silent, of([0], [4], [0], named, 1, 4), suite="bebe").overall["f1_present"] == 1


def test_tolerance_leaves_no_stale_figures():
    a, b = (Annotation.from_frames([0] * k + [1] * (20 - k), ["A", "B"], 10) for k in (10, 12))
    result = eb.agreement({"x": a, "y": b}, tolerance=0.3)
    assert "" not in result.fleiss
    with pytest.raises(EthobenchError, match="none with a tolerance"):
        result.kappa("x", "y")
    for wrong in (float("inf"), -1.0, float("nan")):
        with pytest.raises(EthobenchError, match="number of seconds"):
            eb.agreement({"x": a, "y": b}, tolerance=wrong)


def test_icc_counts_what_all_saw():
    groups = {}
    for r in range(4):
        codes = np.repeat(np.random.default_rng(r).integers(0, 2, 20 + 10 * r), 5)
        whole = Annotation.from_frames(codes, ["A", "B"], 10)
        seen = np.arange(len(codes)) < len(codes) // 2
        groups[f"r{r}"] = {"x": whole, "y": whole.with_observed(seen)}
    assert eb.agreement(groups).icc_count["A"] == pytest.approx(1)


def test_transitions_in_unobserved_frames_do_not_matter():
    codes = np.tile([0, 0, 0, 1, 1, 2], 5)
    truth = Annotation.from_frames(codes, ["A", "B", "C"], 1, unobserved=np.arange(30) >= 15)
    other = codes.copy()
    other[15:] = np.tile([0, 2, 1], 5)
    values = [eb.score(Annotation.from_frames(c, ["A", "B", "C"], 1), truth).overall["transition_distance"] for c in (codes, other)]
    assert values[0] == values[1]


def test_a_longer_side_does_not_reveal_what_was_hidden():
    names = ["a", "b"]
    truth = Annotation.from_frames([1] * 10, names, 1, unobserved=np.arange(10) < 5)
    short, long = (Annotation.from_frames([1] * n, names, 1) for n in (10, 12))
    assert eb.score(short, truth, suite="banos").behaviors["b"]["so"] == 1
    assert eb.score(long, truth, suite="banos").behaviors["b"]["so"] == pytest.approx(5 / 7)


def test_confidence_is_of_the_own_subject():
    q = of([0, 0, 30, 30], [10, 10, 40, 40], ["a"] * 4, ["a"], 1, 50, subject=["m1", "m2"] * 2, confidence=[0.5, 0.5, 0.1, 0.9])
    t = of([0, 0, 30], [10, 10, 40], ["a"] * 3, ["a"], 1, 50, subject=["m1", "m2", "m2"])
    assert eb.score(q, t).overall["segment_map"] == pytest.approx(1)


def test_animals_without_a_name_join_nobody():
    data = Dataset((Recording("r1", individual="a;"), Recording("r2", individual="b;")), Ethogram(["x"]))
    assert len({*data.groups().values()}) == 2
    assert len(Dataset((Recording("r1"),), Ethogram(["x"]), folds={"r1": 1}).select(fold=np.int64(1))) == 1
    assert Annotation.from_frames([0], ["attack"], 1).restrict("attack").ethogram.names == ("attack",)


def test_a_dataset_tells_of_missing_predictions():
    a = Annotation.from_frames([0, 1], ["x", "y"], 1)
    data = Dataset(tuple(Recording(f"r{k}", annotations={"me": a}) for k in range(3)), a.ethogram)
    assert "2 of 3 recordings have no prediction: r1, r2" in str(eb.score({"r0": a}, data).notes[0])


def test_misuse_is_told_in_words():
    a = Annotation.from_frames([0, 1], ["x", "y"], 1)
    with pytest.raises(EthobenchError, match="no behavior was named"):
        eb.score(a, a, behaviors=[])
    assert eb.score({1: a}, {"1": a}).overall["f1"] == 1
    lonely = eb.score(a, a).compare(eb.score(a, a))["f1"]
    assert (lonely["low"], lonely["reason"]) == (None, "no interval below 5 recordings")
    with pytest.raises(MismatchError, match="mask of unobserved frames"):
        Annotation.from_frames([0, 1], ["x", "y"], 1, unobserved=np.array([True]))
    for wrong in ({"rate": "30"}, {"rate": None}, {"n_frames": float("nan")}):
        with pytest.raises(EthobenchError):
            of([0], [1], [0], ["x"], **{"rate": 10, "n_frames": 5, **wrong})
    for wrong in ({"confidence": ["x"]}, {"subject": "m1"}):
        with pytest.raises(MismatchError):
            of([0], [1], [0], ["x"], 10, 5, **wrong)
    for start, behavior in (([None], [0]), ([0], [0.7]), ([float("nan")], [0])):
        with pytest.raises(MismatchError):
            of(start, [1], behavior, ["x"], 10, 5)
    assert of([0], [1], [0], ["x"], 10, 5, subject=[float("nan")]).subjects == ()
    assert Annotation.from_frames([1], ["x"], 10, subject="m1").subjects == ("m1",)
    assert Annotation.from_frames([0.0, np.nan], ["x"], 10, unobserved=np.nan).to_codes().tolist() == [0, -1]
    with pytest.raises(EthobenchError, match="numbers"):
        eb.Prediction([["a"]], Ethogram(["x"]), 10)


def test_suite_banos_takes_the_background_as_it_is_written():
    import pandas as pd

    ethogram = Ethogram(["a", "other"], "other")
    pred, truth = np.array([[0, 1], [0, 0], [0, 1], [1, 0]]), np.array([[0, 1], [0, 1], [0, 1], [1, 0]])
    mine = eb.score(*(Annotation.from_frames(s, ethogram, 1) for s in (pred, truth)), suite="banos").behaviors
    package = eb.banos.score(*(pd.DataFrame(s, columns=["a", "other"]) for s in (pred, truth)))
    assert mine["other"]["precision"] == package["other"]["precision"] == 0.5


def test_figures_of_many_recordings_are_those_of_each():
    pairs = {f"r{k}": (Annotation.from_frames(np.roll(c, 2), ["x", "y", "z"], 5), Annotation.from_frames(c, ["x", "y", "z"], 5))
             for k in range(5) for c in [np.random.default_rng(k).integers(0, 3, 12).repeat(6)]}  # fmt: skip
    for suite in ("ethobench", "banos", "bebe", "calms21", "rodentbench"):
        parts = eb.score(pairs, suite=suite).per("recording")
        for name, pair in pairs.items():
            alone = eb.score({name: pair}, suite=suite)
            assert parts[name]["overall"] == pytest.approx(alone.overall, nan_ok=True), suite
            for behavior, figures in alone.behaviors.items():
                assert parts[name]["behaviors"][behavior] == pytest.approx(figures, nan_ok=True), suite


@pytest.mark.slow
def test_states_bring_everything_back():
    pairs = {f"r{k}": (Annotation.from_frames(np.roll(c, 2), ["x", "y", "z"], 5), Annotation.from_frames(c, ["x", "y", "z"], 5))
             for k in range(4) for c in [np.random.default_rng(k).integers(0, 3, 12).repeat(6)]}  # fmt: skip
    for suite in ("ethobench", "bebe"):
        whole = eb.score(pairs, suite=suite)
        halves = [eb.score({n: pairs[n] for n in names}, suite=suite).to_state() for names in (["r0", "r1"], ["r2", "r3"])]
        again = eb.Scores.from_states(halves)
        assert again.overall == pytest.approx(whole.overall, nan_ok=True)
        assert again.intervals["overall"].keys() == whole.intervals["overall"].keys()
