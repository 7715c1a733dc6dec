"""Agreement of annotators, recomputed frame by frame; intervals, recomputed by drawing individuals one by one."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

import ethobench as eb
from ethobench import Annotation, Ethogram
from ethobench.metrics.agreement_coefficients import fleiss, krippendorff
from ethobench.metrics.agreement_intervals import AnnotatedSample, alpha_interval, fleiss_interval
from ethobench.metrics.bootstrap import resampling_weights

ETHOGRAM = Ethogram(["a", "b", "other"], "other")
N = 24
side = st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, -1]), min_size=N // 3, max_size=N // 3)
recording = st.dictionaries(st.sampled_from(["x", "y", "z"]), side, min_size=1)


def annotate(codes: list[int]) -> Annotation:
    """Every code is three frames at 10 Hz; -1 is unobserved."""
    frames = np.repeat(codes, 3)
    return Annotation.from_frames(np.maximum(frames, 0), ETHOGRAM, 10, unobserved=frames < 0)


def near_changes(sides: list[list[int]], code: int, width: int) -> set[int]:
    """Return the frames less than `width` away from a start or stop of a behavior; unobserved frames have none, as the background."""
    background = ETHOGRAM.names.index("other")
    sides = [[background if c < 0 else c for c in frames] for frames in sides]
    bounds = {
        k
        for frames in sides
        for k, (before, after) in enumerate(pairwise([False, *(c == code for c in frames), False]))
        if before != after
    }  # fmt: skip
    return {k + d for k in bounds for d in range(-width, width)}


def cohen(table: np.ndarray) -> float:
    total = table.sum()
    if not total:
        return np.nan
    chance = (table.sum(axis=0) / total) @ (table.sum(axis=1) / total)
    return (np.trace(table) / total - chance) / (1 - chance) if chance < 1 else np.nan


@given(st.dictionaries(st.sampled_from(["r0", "r1", "r2"]), recording, min_size=1), st.sampled_from([0.0, 0.1, 0.2]))
def test_agreement_counts_frames(recordings, tolerance):
    frames = {r: {name: np.repeat(codes, 3).tolist() for name, codes in group.items()} for r, group in recordings.items()}
    names = [*dict.fromkeys(name for group in recordings.values() for name in group)]
    if len(names) < 2:
        return
    result = eb.agreement(
        {r: {name: annotate(codes) for name, codes in group.items()} for r, group in recordings.items()}, tolerance=tolerance
    )
    rows = {(row["annotator_1"], row["annotator_2"], row["behavior"]): row for row in result.pairs}
    shared = {pair: [r for r in frames if {*pair} <= {*frames[r]}] for pair in combinations(names, 2)}
    expected = {(*pair, behavior) for pair in shared if shared[pair] for behavior in [*ETHOGRAM.names, *([] if tolerance else [""])]}
    assert rows.keys() == expected
    for first, second, behavior in expected:
        size = 3 if behavior == "" else 2
        table = np.zeros((size, size))
        for r in shared[first, second]:
            sides = [frames[r][first], frames[r][second]]
            code = None if behavior == "" else ETHOGRAM.names.index(behavior)
            excluded = set() if code is None else near_changes(sides, code, round(tolerance * 10))
            for k, (c, d) in enumerate(zip(*sides, strict=True)):
                if c >= 0 and d >= 0 and k not in excluded:
                    table[(c, d) if code is None else (int(c == code), int(d == code))] += 1
        row = rows[first, second, behavior]
        assert row["frames"] == table.sum()
        assert row["kappa"] == pytest.approx(cohen(table), nan_ok=True, abs=1e-9)
        assert row["agreement"] == pytest.approx(np.trace(table) / table.sum() if table.sum() else np.nan, nan_ok=True)
        if size == 2:
            matches = 2 * table[1, 1] + table[0, 1] + table[1, 0]
            assert row["f1"] == pytest.approx(2 * table[1, 1] / matches if matches else np.nan, nan_ok=True)


@given(st.dictionaries(st.sampled_from(["r0", "r1", "r2"]), recording, min_size=1))
def test_coefficients_of_all_annotators_count_frames(recordings):
    """Fleiss' kappa where most annotators observed, Krippendorff's alpha where two did; ICC of counts and seconds where all did."""
    several = {r: {n: np.repeat(codes, 3).tolist() for n, codes in g.items()} for r, g in recordings.items() if len(g) > 1}
    if not several:
        return
    result = eb.agreement({r: {name: annotate(codes) for name, codes in group.items()} for r, group in recordings.items()})
    for behavior in ["", *ETHOGRAM.names]:
        size, code = (3, None) if behavior == "" else (2, ETHOGRAM.names.index(behavior))
        units = [
            [(c if code is None else int(c == code)) for c in column if c >= 0]
            for group in several.values()
            for column in zip(*group.values(), strict=True)
        ]
        most = max(map(len, units))
        complete = [u for u in units if len(u) == most]
        value = np.nan
        if most > 1:
            agreeing = np.mean([np.mean([a == b for a, b in combinations(u, 2)]) for u in complete])
            chosen = np.concatenate(complete)
            chance = sum((chosen == c).mean() ** 2 for c in range(size))
            value = (agreeing - chance) / (1 - chance) if chance < 1 - 1e-12 else np.nan
        assert result.fleiss[behavior] == pytest.approx(value, nan_ok=True, abs=1e-9)
        pairable = [u for u in units if len(u) > 1]
        values = np.array([c for u in pairable for c in u])
        disagreeing = sum(sum(a != b for i, a in enumerate(u) for j, b in enumerate(u) if i != j) / (len(u) - 1) for u in pairable)
        expected = sum((values == c).sum() * (values != c).sum() for c in range(size)) / max(len(values) - 1, 1)
        value = 1 - disagreeing / expected if expected else np.nan
        assert result.alpha[behavior] == pytest.approx(value, nan_ok=True, abs=1e-9)


def t_interval(value: float, bootstrap: np.ndarray, jackknife: np.ndarray) -> tuple[float, float]:
    """Return the interval on the logit scale of [-1, 1], one value after the other."""
    n = len(jackknife)
    errors = [np.std(bootstrap) * np.sqrt(n / (n - 1)), np.sqrt((n - 1) * np.var(jackknife))]
    reach = student.ppf(0.975, n - 1) * max(errors)
    middle, share = (np.mean(bootstrap) + 1) / 2, (value + 1) / 2
    shift = reach / 2 / (middle * (1 - middle))
    low, high = (1 / (1 + np.exp(-(np.log(share / (1 - share)) + sign * shift))) for sign in (-1, 1))
    return -1 + 2 * low, -1 + 2 * high


@pytest.mark.parametrize(("coefficient", "interval"), [(fleiss, fleiss_interval), (krippendorff, alpha_interval)])
@pytest.mark.parametrize("n_individuals", [5, 7])
def test_intervals_equal_those_of_drawn_individuals(coefficient, interval, n_individuals):
    rng = np.random.default_rng(n_individuals)
    owners = {f"r{k}": f"animal{k % n_individuals}" for k in range(9)}
    pieces = [(rng.integers(1, 9, 12).astype(float), rng.multinomial(3, rng.dirichlet([1, 1, 5]), 12).astype(float)) for _ in owners]
    names = [*dict.fromkeys(owners.values())]

    def value_of(counts_of_individuals) -> float:
        drawn = [piece for name, k in zip(names, counts_of_individuals, strict=True) for _ in range(int(k))
                 for piece, owner in zip(pieces, owners.values(), strict=True) if owner == name]  # fmt: skip
        return coefficient(np.concatenate([lengths for lengths, _ in drawn]), np.concatenate([counts for _, counts in drawn]))

    sample = AnnotatedSample.of(owners, 200, seed=3)
    bootstrap = np.array([value_of(weights) for weights in resampling_weights(n_individuals, 200, 3)])
    jackknife = np.array([value_of(np.arange(n_individuals) != k) for k in range(n_individuals)])
    expected = t_interval(value_of(np.ones(n_individuals)), bootstrap, jackknife)
    assert interval(pieces, sample) == pytest.approx(expected)
    assert sample.unit == "individuals"
    assert sample.reason == ""
    assert not sample.are_independent


def test_why_there_are_no_intervals():
    few = AnnotatedSample.of({f"r{k}": f"r{k}" for k in range(4)}, 100, 0)
    assert (few.unit, few.reason, few.are_independent) == ("recordings", "no interval below 5 recordings", True)
    unresampled = AnnotatedSample.of({f"r{k}": "one" if k < 2 else f"r{k}" for k in range(6)}, 0, 0)
    assert (unresampled.unit, unresampled.reason, unresampled.are_independent) == ("individuals", "computed without resampling", False)
    for sample in (few, unresampled):
        assert fleiss_interval([(np.ones(2), np.ones((2, 2)))] * len(sample.recordings), sample) is None
    assert AnnotatedSample.of({f"r{k}": f"r{k}" for k in range(5)}, 100, 0).reason == ""
