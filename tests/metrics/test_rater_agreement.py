"""Agreement of several annotators against scikit-learn and counts of frames."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

import ethobench as eb
from ethobench import Annotation, Ethogram
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.metrics.agreement_coefficients import fleiss, krippendorff

NAMES = ["a", "b"]
three = st.integers(2, 60).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 2), min_size=n, max_size=n)] * 3))


def of(codes, **options) -> Annotation:
    return Annotation.from_frames(np.array(codes), Ethogram(NAMES), 10, **options)


@pytest.mark.slow
@given(three)
def test_cohen_equals_scikit_learn(codes):
    result = eb.agreement({f"ann{i}": of(c) for i, c in enumerate(codes)})
    for i, j in combinations(range(3), 2):
        x, y = np.array(codes[i]), np.array(codes[j])
        if len({*x, *y}) > 1:
            assert result.kappa(f"ann{i}", f"ann{j}") == pytest.approx(cohen_kappa_score(x, y), abs=1e-12)
        for k, name in enumerate(NAMES):
            if 0 < (x == k).sum() < len(x) and 0 < (y == k).sum() < len(y):
                expected = cohen_kappa_score(x == k, y == k)
                assert result.kappa(f"ann{i}", f"ann{j}", name) == pytest.approx(expected, abs=1e-12)


@given(three)
def test_fleiss_and_alpha_count_frames(codes):
    result = eb.agreement({f"ann{i}": of(c) for i, c in enumerate(codes)})
    counts = np.stack([[sum(c[t] == k for c in codes) for k in range(3)] for t in range(len(codes[0]))]).astype(float)
    ones = np.ones(len(counts))
    assert result.fleiss[""] == pytest.approx(fleiss(ones, counts), nan_ok=True)
    assert result.alpha[""] == pytest.approx(krippendorff(ones, counts), nan_ok=True)


def test_frames_that_one_did_not_observe_do_not_count():
    a, b = of([0, 0, 1, 1, 0, 0]), of([0, 0, 1, 1, 1, 1], unobserved=np.array([0, 0, 0, 0, 1, 1], dtype=bool))
    result = eb.agreement({"x": a, "y": b})
    assert result.kappa("x", "y") == 1
    assert result.table()["frames"].tolist() == [4, 4, 4]


def test_tolerance_excludes_frames_near_starts_and_stops():
    a = Annotation.from_bouts([20, 60], [40, 80], ["a", "a"], NAMES, 10, 200)
    b = Annotation.from_bouts([22, 58], [41, 81], ["a", "a"], NAMES, 10, 200)
    strict, tolerant = eb.agreement({"x": a, "y": b}), eb.agreement({"x": a, "y": b}, tolerance=0.3)
    assert strict.kappa("x", "y", "a") < 1
    assert tolerant.kappa("x", "y", "a") == 1
    missed = eb.agreement({"x": a, "y": b.take([0])}, tolerance=0.3)
    assert missed.kappa("x", "y", "a") < 0.8


def test_icc_of_counts_and_durations_over_recordings():
    generator = np.random.default_rng(0)
    groups = {}
    for r in range(8):
        codes = np.repeat(generator.integers(0, 3, 20 + 10 * r), 5)
        groups[f"r{r}"] = {"x": of(codes), "y": of(np.roll(codes, 1))}
    result = eb.agreement(groups)
    assert result.icc_count["a"] > 0.95
    assert result.icc_duration["a"] > 0.95


def test_annotations_that_cannot_be_compared_are_refused():
    with pytest.raises(EthobenchError, match="at least two annotators"):
        eb.agreement({"x": of([0, 1])})
    with pytest.raises(MismatchError, match="resample, crop or extend"):
        eb.agreement({"x": of([0, 1]), "y": of([0, 1, 1])})
    with pytest.raises(EthobenchError, match="expected a mapping of annotators"):
        eb.agreement({"r": {"x": "no"}})


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_three_raters_of_twenty_videos(data):
    recordings = eb.read_recordings(data / "multirater_oft" / "labels.csv", rate=25)
    expected = {"Supported": (0.85, 0.89), "Unsupported": (0.66, 0.73), "Grooming": (0.66, 0.70)}
    for behavior, (low, high) in expected.items():
        for first, second in combinations(("Jin", "Oliver", "Furkan"), 2):
            kappas = [eb.agreement({r.id: r.annotations}).kappa(first, second, behavior) for r in recordings]
            assert low <= round(float(np.nanmean(kappas)), 2) <= high


def test_tolerance_has_no_scores_of_all_behaviors():
    a, b = (Annotation.from_frames([0] * k + [1] * (20 - k), ["A", "B"], 10) for k in (10, 12))
    result = eb.agreement({"x": a, "y": b}, tolerance=0.3)
    assert "" not in result.fleiss
    with pytest.raises(EthobenchError, match="undefined with a tolerance"):
        result.kappa("x", "y")
    for wrong in (float("inf"), -1.0, float("nan")):
        with pytest.raises(EthobenchError, match="`tolerance` must be"):
            eb.agreement({"x": a, "y": b}, tolerance=wrong)


def test_icc_counts_frames_that_all_observed():
    groups = {}
    for r in range(4):
        codes = np.repeat(np.random.default_rng(r).integers(0, 2, 20 + 10 * r), 5)
        complete = Annotation.from_frames(codes, ["A", "B"], 10)
        observed = np.arange(len(codes)) < len(codes) // 2
        groups[f"r{r}"] = {"x": complete, "y": complete.with_observed(observed)}
    assert eb.agreement(groups).icc_count["A"] == pytest.approx(1)


def test_behaviors_that_nobody_marked():
    ethogram = Ethogram(["other", "rest", "bite", "chase"], "other")
    anna, ben = (Annotation.from_frames(codes, ethogram, 10) for codes in ([0, 1, 1, 0], [2, 1, 1, 0]))
    result = eb.agreement({"r": {"anna": anna, "ben": ben}})
    assert result.never_annotated == ("chase",)
    assert result.to_dict()["never_annotated"] == ["chase"]
    assert "chase" in result.to_dict()["behaviors"]


def test_annotators_without_common_frames_or_recordings_have_no_scores():
    first, second = of([0, 1, 1, 0]), of([0, 1, 1, 0])
    halves = np.array([True, True, False, False])
    disjoint = eb.agreement({"x": first.with_observed(halves), "y": second.with_observed(~halves)})
    for row in disjoint.pairs:
        assert row["frames"] == 0
        assert np.isnan([row["kappa"], row["f1"], row["agreement"]]).all()
    assert np.isnan([*disjoint.fleiss.values(), *disjoint.alpha.values()]).all()
    apart = eb.agreement({"r1": {"x": first}, "r2": {"y": second}})
    assert apart.annotators == ("x", "y")
    assert apart.pairs == []
    assert np.isnan([*apart.fleiss.values(), *apart.alpha.values(), *apart.icc_count.values(), *apart.icc_duration.values()]).all()
    with pytest.raises(EthobenchError, match="no kappa of 'x' and 'y'"):
        apart.kappa("x", "y")
    with pytest.raises(EthobenchError, match="at least two annotators of the same recording, got 0"):
        eb.agreement({})


def test_pairs_count_the_frames_of_the_recordings_that_both_annotated():
    recordings = {"r1": {"x": of([0, 1]), "y": of([0, 1]), "z": of([1, 1])}, "r2": {"x": of([0, 0, 0]), "z": of([0, 0, 1])}}
    frames = {(row["annotator_1"], row["annotator_2"]): row["frames"] for row in eb.agreement(recordings).pairs}
    assert frames == {("x", "y"): 2, ("x", "z"): 5, ("y", "z"): 2}
    shares = {(row["annotator_1"], row["annotator_2"]): row["agreement"] for row in eb.agreement(recordings).pairs if row["behavior"] == ""}
    assert shares == {("x", "y"): 1.0, ("x", "z"): 0.6, ("y", "z"): 0.5}


def six_recordings(rng: np.random.Generator) -> dict[str, dict[str, eb.Annotation]]:
    """Six recordings in which three annotators differ in some of the frames."""
    groups = {}
    for k in range(6):
        codes = np.repeat(rng.integers(0, 3, 20), 10)
        sides = {name: np.where(rng.random(200) < 0.05 * (k + 1), rng.integers(0, 3, 200), codes) for name in ("x", "y", "z")}
        groups[f"r{k}"] = {name: of(side) for name, side in sides.items()}
    return groups


def test_intervals_are_over_recordings_or_individuals_and_contain_the_value():
    groups = six_recordings(np.random.default_rng(1))
    result = eb.agreement(groups)
    assert (result.intervals["n"], result.intervals["unit"], result.intervals["reason"]) == (6, "recordings", None)
    for row in result.pairs:
        assert row["kappa_low"] < row["kappa"] < row["kappa_high"]
    for name in ("fleiss", "alpha"):
        for behavior, (low, high) in result.intervals[name].items():
            assert low < getattr(result, name)[behavior] < high
    animals = eb.agreement(groups, individuals={name: f"animal{k // 2}" for k, name in enumerate(groups)})
    assert (animals.intervals["n"], animals.intervals["unit"]) == (3, "individuals")
    assert animals.intervals["reason"] == "no interval below 5 individuals"
    assert {row["kappa_low"] for row in animals.pairs} == {None}
    assert [row["kappa"] for row in animals.pairs] == [row["kappa"] for row in result.pairs]


def test_the_interval_of_kappa_is_that_of_the_score_of_one_annotator_against_the_other():
    groups = six_recordings(np.random.default_rng(2))
    scores = eb.score({n: g["y"] for n, g in groups.items()}, {n: g["x"] for n, g in groups.items()}, resamples=2000)
    rows = {row["behavior"]: row for row in eb.agreement(groups).pairs if (row["annotator_1"], row["annotator_2"]) == ("x", "y")}
    for behavior, intervals in scores.intervals["behaviors"].items():
        for name in ("kappa", "f1"):
            assert (rows[behavior][f"{name}_low"], rows[behavior][f"{name}_high"]) == pytest.approx(intervals[name])


def test_recordings_have_the_values_of_each_alone():
    groups = six_recordings(np.random.default_rng(3))
    rows = eb.agreement(groups).recordings
    for name, group in groups.items():
        alone = eb.agreement({name: group}).pairs
        assert [row["kappa"] for row in rows if row["recording"] == name] == pytest.approx([row["kappa"] for row in alone], nan_ok=True)


def test_only_the_chosen_behaviors_are_compared():
    groups = six_recordings(np.random.default_rng(4))
    everything, chosen = eb.agreement(groups), eb.agreement(groups, behaviors=["b"])
    assert chosen.behaviors == ("b",)
    assert chosen.kappa("x", "y", "b") == everything.kappa("x", "y", "b") == pytest.approx(chosen.kappa("x", "y"))
    with pytest.raises(EthobenchError, match=r"no behavior 'd'. Available: a, b"):
        eb.agreement(groups, behaviors=["d"])


def test_json_has_the_intervals():
    content = eb.agreement(six_recordings(np.random.default_rng(5))).to_dict()
    assert content == json.loads(json.dumps(content))
    assert content["intervals"]["fleiss"]["all"][0] < content["fleiss"]["all"]
    assert len(content["recordings"]) == 6 * len(content["pairs"])
