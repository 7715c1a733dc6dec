"""BANOS: equal to the banos package to the last bit, and to a brute force oracle with fractions."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import banos as original
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ethobench as eb
from ethobench import banos
from ethobench.core import intervals as iv
from ethobench.core.errors import ReadWarning
from ethobench.metrics.suites.banos import Timeline, score_timeline

NAMES = ("precision", "recall", "f1_score", "so", "tp", "ic")


def same(a: float | None, b: float | None) -> bool:
    a, b = (float("nan") if v is None else v for v in (a, b))
    return (math.isnan(a) and math.isnan(b)) or a == b


def same_tree(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_tree(a[k], b[k]) for k in a)
    return same(a, b)


@pytest.mark.data
@pytest.mark.parametrize("matching", ["greedy", "optimal"])
def test_the_ten_recordings_equal_the_reference(data, matching):
    reference = json.loads((data / "banos" / "banos_reference.json").read_text(encoding="utf-8"))["0.2.3"]["matching"][matching]
    pairs = {}
    for folder in (data / "banos").glob("Recording_*"):
        truth, pred = (pd.read_csv(folder / f"humanAnnotation_{k}.csv") for k in (1, 2))
        pairs[folder.name] = (pred, truth)
    pairs = {name: pairs[name] for name in reference["per_recording"]}
    assert same_tree(banos.calculate_banos_for_each_file(banos.preprocess_data(pairs)[0], matching), reference["per_recording"])
    group, overall = banos.score(pairs, matching=matching)
    assert same_tree(group, reference["group"])
    assert same_tree(overall, reference["overall"])


@pytest.mark.data
def test_the_suite_equals_the_reference(data):
    reference = json.loads((data / "banos" / "banos_reference.json").read_text(encoding="utf-8"))["0.2.3"]["matching"]["greedy"]
    dataset = eb.load_dataset("banos")
    order = {name: dataset[name] for name in reference["per_recording"]}
    scores = eb.score({name: (r.annotation("human2"), r.annotation("human1")) for name, r in order.items()}, suite="banos")
    assert same_tree(scores.overall, reference["overall"])
    assert same_tree(scores.behaviors, reference["group"])
    for name, result in scores.per("recording").items():
        assert same_tree(result["behaviors"], reference["per_recording"][name])
    assert {k: round(v, 4) for k, v in scores.overall.items()} == {
        "precision": 0.9344, "recall": 0.6786, "f1_score": 0.7746, "so": 0.7068, "tp": 0.2638, "ic": 0.9947,
    }  # fmt: skip


frames = st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=80)


@given(frames, st.sampled_from(["greedy", "optimal"]))
def test_random_ethograms_equal_the_package(rows, matching):
    table = np.array(rows)
    pred, truth = (pd.DataFrame(table[:, k : k + 2], columns=["a", "b"]) for k in (0, 2))
    assert same_tree(banos.score(pred, truth, matching=matching), original.score(pred, truth, matching=matching))
    several = {"x": (pred, truth), "y": (truth, pred)}
    for ours, expected in zip(banos.score(several, matching=matching), original.score(several, matching=matching), strict=True):
        assert same_tree(ours, expected)


@pytest.mark.slow
def test_thousands_of_long_ethograms_equal_the_package():
    generator = np.random.default_rng(0)
    for _ in range(2000):
        n = int(generator.integers(1, 120))
        stay = generator.uniform(0.3, 0.95, 2)
        sides = []
        for side in range(2):
            flips = generator.random(n) > stay[side]
            sides.append(pd.DataFrame({"a": np.cumsum(flips) % 2}))
        assert same_tree(banos.score(*sides), original.score(*sides))


def oracle(truth: tuple[int, ...], pred: tuple[int, ...]) -> tuple[Fraction | None, ...]:
    """BANOS on sets of frames, in fractions, by trying every matching."""

    def bouts(values):
        runs, current = [], []
        for i, v in enumerate(values):
            if v:
                current.append(i)
            elif current:
                runs.append(set(current))
                current = []
        return [*runs, set(current)] if current else runs

    t, p = bouts(truth), bouts(pred)
    if not t:
        return (Fraction(0 if p else 1),) * 6
    overlaps = [[bool(a & b) for b in p] for a in t]

    def best(i: int, used: frozenset[int]) -> int:
        if i == len(t):
            return 0
        return max([best(i + 1, used), *(1 + best(i + 1, used | {j}) for j in range(len(p)) if overlaps[i][j] and j not in used)])

    n_matched = best(0, frozenset())
    precision = Fraction(n_matched, len(p)) if p else None
    recall = Fraction(n_matched, len(t))
    f1 = None if precision is None or precision + recall == 0 else 2 * precision * recall / (precision + recall)
    pairs = [(a, b) for a in t for b in p if a & b]
    so = sum((Fraction(len(a & b), len(a | b)) for a, b in pairs), Fraction(0)) / len(pairs) if pairs else None
    tp = sum((Fraction(1, 1 + abs(min(a) - min(b)) + abs(max(a) - max(b))) for a, b in pairs), Fraction(0)) / len(pairs) if pairs else None
    continuities = [1 - Fraction(sum(pred[i] != pred[i + 1] for i in range(min(a), max(a))), len(a) - 1) for a in t if len(a) > 1]
    ic = sum(continuities, Fraction(0)) / len(continuities) if continuities else None
    return precision, recall, f1, so, tp, ic


@pytest.mark.slow
@pytest.mark.parametrize("n", range(1, 8))
def test_all_short_pairs_equal_the_oracle(n):
    sequences = list(product((0, 1), repeat=n))
    for truth in sequences:
        a = iv.from_mask(truth)
        for pred in sequences:
            (values,) = score_timeline(Timeline(a, iv.from_mask(pred), np.array([n + 1])))
            for value, exact in zip(values, oracle(truth, pred), strict=True):
                assert math.isnan(value) if exact is None else value == pytest.approx(float(exact), abs=1e-12), (truth, pred)


def test_any_index_and_any_dtype_work():
    truth = pd.DataFrame({"a": [0, 1, 1, 1, 0]}, index=list("vwxyz"))
    pred = pd.DataFrame({"a": [False, True, False, True, False]}, index=[9, 8, 7, 6, 5])
    plain = original.score(pred.reset_index(drop=True).astype(int), truth.reset_index(drop=True))
    assert same_tree(banos.score(pred, truth), plain)


@pytest.mark.parametrize("columns", [True, False])
def test_memory_layout_does_not_matter(columns, monkeypatch):
    if not columns:
        monkeypatch.setattr(banos, "_column_arrays", lambda _: [])
    generator = np.random.default_rng(5)
    sides = [(np.cumsum(generator.random((300, 3)) > 0.9, axis=0) % 2).astype(np.uint8) for _ in range(2)]
    expected = original.score(*(pd.DataFrame(s, columns=list("abc")) for s in sides))
    for layout in (np.ascontiguousarray, np.asfortranarray, lambda s: s.astype(float), lambda s: s.astype(bool)):
        assert same_tree(banos.score(*(pd.DataFrame(layout(s), columns=list("abc")) for s in sides)), expected)
    apart = [pd.DataFrame({c: s[:, k].astype((k % 2 and "int64") or "int8") for k, c in enumerate("abc")}) for s in sides]
    assert same_tree(banos.score(*apart), expected)
    empty = pd.DataFrame({"a": np.zeros(0)})
    assert same_tree(banos.score(empty, empty), original.score(empty, empty))
    holes = apart[0].astype(float)
    holes.iloc[7:9, 0] = np.nan
    assert same_tree(banos.score(holes, apart[1]), original.score(holes, apart[1]))


def test_dropped_columns_are_reported_in_warnings():
    truth = pd.DataFrame({"a": [0, 1], "b": [0, 1], "c": [0, 2]})
    pred = pd.DataFrame({"a": [0, 1], "d": [0, 1], "c": [0, 1]})
    with pytest.warns(ReadWarning) as caught:
        assert list(banos.score(pred, truth)) == ["a"]
    messages = " ".join(str(w.message) for w in caught)
    assert "values other than 0 and 1 in the truth): c" in messages
    assert "only in the prediction or only in the truth" in messages


def test_misuse_raises_as_the_package_does():
    frame = pd.DataFrame({"a": [0, 1]})
    for package in (banos, original):
        with pytest.raises(ValueError, match="'gt' must be provided"):
            package.score(frame)
        with pytest.raises(ValueError, match="Unknown matching"):
            package.score(frame, frame, matching="magic")


@given(st.lists(st.integers(0, 1), max_size=40), st.lists(st.integers(0, 1), max_size=40))
def test_lower_functions_equal_the_package(a, b):
    from banos import core

    n = min(len(a), len(b))
    a, b = a[:n], b[:n]
    pred, truth = banos.identify_bouts(a), banos.identify_bouts(b)
    assert pred == core.identify_bouts(a)
    assert banos.calculate_tp_fp_fn(pred, truth) == core.calculate_tp_fp_fn(pred, truth)
    for name in ("calculate_so", "calculate_tp_metric"):
        assert same(getattr(banos, name)(pred, truth), getattr(core, name)(pred, truth))
    assert same(banos.calculate_ic(a, truth), core.calculate_ic(a, truth))
    for p, t in product(pred, truth):
        assert banos.calculate_tiou(p, t) == core.calculate_tiou(p, t)
    for first, last in truth:
        assert banos.count_switches_within_bout(a, first, last) == core.count_switches_within_bout(a, first, last)


def test_public_names_of_the_package_exist():
    import banos.core

    assert {*original.__all__} - {"__version__"} <= {*dir(banos_module())}
    assert {*banos.core.__all__} <= {*dir(banos_module())}


def banos_module():
    from ethobench import banos as module

    return module


unsorted_bouts = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)).map(lambda p: (p[0], p[0] + p[1])), max_size=6)


@given(unsorted_bouts, unsorted_bouts, st.sampled_from(["greedy", "optimal"]))
def test_bouts_in_any_order_equal_the_package(pred, truth, matching):
    from banos import core

    assert banos.calculate_tp_fp_fn(pred, truth, matching) == core.calculate_tp_fp_fn(pred, truth, matching)
    assert same(banos.calculate_so(pred, truth), core.calculate_so(pred, truth))
    assert same(banos.calculate_tp_metric(pred, truth), core.calculate_tp_metric(pred, truth))


def test_duplicate_columns_are_refused_and_numbers_differ_from_text():
    with pytest.raises(ValueError, match="unique names"):
        banos.score(*[pd.DataFrame([[0, 1]], columns=["a", "a"])] * 2)
    frame = pd.DataFrame({0: [0, 1], "0": [0, 2]})
    with pytest.warns(ReadWarning):
        assert list(banos.score(frame, frame)) == [0]
