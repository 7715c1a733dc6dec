"""The human ceiling."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording
from ethobench.core.errors import EthobenchError
from ethobench.metrics.human_ceiling import score_annotators

NAMES = ["a", "b"]


def of(codes, **options) -> Annotation:
    return Annotation.from_frames(np.array(codes), Ethogram(NAMES), 10, **options)


def test_ceiling_matches_behaviors_by_name():
    a = Annotation.from_frames([0] * 4 + [1] * 6, ["A", "B"], 10)
    b = Annotation.from_frames([1] * 4 + [0] * 4 + [1] * 2, ["B", "A"], 10)
    m = Annotation.from_frames([0] * 10, ["A", "B"], 10)
    assert eb.ceiling({"x": a, "y": b}, model=m).of("f1", "A", "y")["model"] == pytest.approx(0.75)
    less = Annotation.from_frames([0] * 10, ["A"], 10)
    assert eb.ceiling({"x": less, "y": b}, model=less).of("f1", "A", "x")["model"] == 1
    with pytest.raises(EthobenchError, match="two annotators"):
        eb.ceiling(Dataset((Recording("r", annotations={"x": a}),), a.ethogram), model=m)


@pytest.mark.slow
def test_ceiling_distinguishes_a_good_model_from_a_bad_one():
    generator = np.random.default_rng(0)
    groups, good, bad = {}, {}, {}
    for r in range(6):
        codes = np.repeat(generator.integers(0, 3, 60), 12)
        groups[f"r{r}"] = {"x": of(codes), "y": of(np.roll(codes, 3))}
        good[f"r{r}"], bad[f"r{r}"] = of(np.roll(codes, 1)), of(np.roll(codes, 9))
    assert eb.ceiling(groups, model=good).of("f1")["reached"]
    result = eb.ceiling(groups, model=bad).of("f1")
    assert not result["reached"]
    assert result["high"] < 0
    four = {name: groups[name] for name in ("r0", "r1", "r2", "r3")}
    for model in (good, bad):
        row = eb.ceiling(four, model=model).of("f1")
        assert (row["low"], row["high"], row["reached"]) == (None, None, None)
        assert (row["n"], row["reason"]) == (4, "no interval below 5 recordings")
    rows = eb.ceiling(groups, model=good).table()
    assert set(rows["annotator"]) == {"", "x", "y"}
    assert set(rows["behavior"]) == {"", "a", "b"}
    with pytest.raises(EthobenchError, match="recordings without a prediction of the model: r5"):
        eb.ceiling(groups, model={k: v for k, v in good.items() if k != "r5"})
    with pytest.raises(EthobenchError, match="a second annotator"):
        eb.ceiling({"x": of([0, 1])}, model=of([0, 1]))


def annotated_by_three() -> Dataset:
    generator = np.random.default_rng(0)
    recordings = []
    for r, who in enumerate(["xyz", "xyz", "xy", "z"]):
        codes = np.repeat(generator.integers(0, 3, 20), 6)
        annotations = {name: of(np.roll(codes, k)) for k, name in enumerate("xyz") if name in who}
        recordings.append(Recording(f"r{r}", individual=f"m{r}", annotations=annotations))
    return Dataset(tuple(recordings), Ethogram(NAMES))


@pytest.mark.parametrize("annotator", [None, "y", "nobody"])
def test_annotators_are_scored_against_each_other(annotator):
    data = annotated_by_three()
    result = score_annotators(data, annotator)
    pairs = [(t, o) for t in ("xyz" if annotator != "y" else "y") for o in "xyz" if t != o]
    groups = [{r.id: (r.annotations[o], r.annotations[t]) for r in data if {t, o} <= {*r.annotations}} for t, o in pairs]
    scores = [eb.score(group, resamples=0) for group in groups]
    assert (result["annotators"], result["recordings"]) == (["x", "y", "z"], 3)
    for measure in ("f1", "bout_f1"):
        assert result["scores"][measure] == pytest.approx(np.mean([s.overall[measure] for s in scores]))
        for name in NAMES:
            assert result["behaviors"][name][measure] == pytest.approx(np.mean([s.behaviors[name][measure] for s in scores]))


def test_one_annotator_is_not_scored():
    assert score_annotators(annotated_by_three().select(annotator="x")) == {}


def test_undefined_scores_of_annotators_are_missing():
    empty = of([2] * 20)
    result = score_annotators(Dataset((Recording("r", annotations={"x": empty, "y": empty}),), Ethogram(NAMES)))
    assert result["scores"]["f1"] is None
    assert result["behaviors"]["a"]["f1"] is None


def test_what_a_ceiling_needs():
    a = of([0] * 10)
    for groups, model, message in (
        ({"r": {"x": a, "y": a}, "s": {"x": a, "y": a}}, {"r": a}, "without a prediction of the model: s"),
        ({"r": {"x": a, "y": a}, "s": {"x": a, "z": a}}, {"r": a, "s": a}, "missing: z in r, y in s"),
        ({"r": {"x": a}}, {"r": a}, "at least two annotators"),
    ):
        with pytest.raises(EthobenchError, match=message):
            eb.ceiling(groups, model=model)
    with pytest.raises(EthobenchError, match="no row for measure 'f9'"):
        eb.ceiling({"x": a, "y": a}, model=a).of("f9")


def test_a_ceiling_counts_the_individuals_in_whom_both_sides_are_defined():
    """Nobody annotates b in the last of six recordings, but the model predicts it there."""
    groups = {f"r{k}": {"x": of([0, 0, 1, 1] * 5), "y": of([0, 0, 0, 1] * 5)} for k in range(5)}
    groups["r5"] = {"x": of([0] * 20), "y": of([0] * 20)}
    model = {name: of([0, 1, 1, 1] * 5) for name in groups}
    result = eb.ceiling(groups, model=model, resamples=20)
    assert result.of("f1", "a")["n"] == 6
    assert result.of("f1", "b")["n"] == 5


def test_a_model_reaches_the_ceiling_if_it_is_equal_or_its_interval_includes_it():
    rng = np.random.default_rng(0)
    ethogram = Ethogram(["a", "b"])
    truth = {f"r{k}": np.repeat(rng.integers(0, 2, 20), 5) for k in range(6)}

    def noisy(share):
        return {n: Annotation.from_frames(np.where(rng.random(100) < share, 1 - c, c), ethogram, 5) for n, c in truth.items()}

    first, second = noisy(0.1), noisy(0.1)
    people = {name: {"x": first[name], "y": second[name]} for name in truth}
    for share, reached in ((0.0, True), (0.45, False)):
        row = eb.ceiling(people, noisy(share), resamples=50).of("f1", annotator="x")
        assert row["reached"] is reached
        assert (row["difference"] >= 0) is reached
    equal = eb.ceiling(people, second, resamples=50).of("f1", annotator="x")
    assert (equal["difference"], equal["reached"], equal["low"]) == (0, True, None)
