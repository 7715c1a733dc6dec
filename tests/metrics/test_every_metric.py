"""Invariances of every registered metric; a new metric is tested automatically."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Prediction
from ethobench.core import intervals as iv
from ethobench.metrics import all_metrics
from ethobench.metrics.base import Measure
from ethobench.metrics.evaluation import Aggregator, Grouping
from ethobench.metrics.pairs import AlignedPair
from ethobench.metrics.probabilities import rank_frames

METRICS = all_metrics()
NAMES = ["a", "b", "c", "other"]
ETHOGRAM = Ethogram(NAMES, "other")
N = 1200
IN_SECONDS = ("onset_distance", "offset_distance", "latency_error")
UNBOUNDED = (*IN_SECONDS, "count_error", "time_scale_ratio", "mutual_information", "best_threshold")
DIFFERENCES = ("count_error", "time_error", "duration_distance", "transition_distance", "calibration_error")
"""Absolute differences of pooled quantities, whose true value may be 0."""


def frames(seed: int, n: int = N, rate: float = 20) -> Annotation:
    """Bouts of a quarter second and more, with "other" at both ends and around the middle."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(5, 60, 200)
    codes = np.repeat(generator.integers(0, 4, 200), lengths)[:n]
    codes[:10], codes[-10:], codes[n // 2 - 10 : n // 2 + 10] = 3, 3, 3
    return Annotation.from_frames(codes, ETHOGRAM, rate)


def near(truth: Annotation, seed: int) -> Annotation:
    """Return a prediction that is often correct."""
    generator = np.random.default_rng(seed)
    codes = truth.to_codes()
    wrong = np.repeat(generator.random(N // 8 + 1) < 0.25, 8)[:N]
    other = np.repeat(generator.integers(0, 4, N // 8 + 1), 8)[:N]
    mixed = np.where(wrong, other, np.roll(codes, 2))
    for start in generator.integers(0, N - 90, 3):
        mixed[start : start + 90] = codes[start]
    mixed[:10], mixed[-10:], mixed[N // 2 - 10 : N // 2 + 10] = 3, 3, 3
    return Annotation.from_frames(mixed, ETHOGRAM, truth.rate)


def probabilities_for(annotation: Annotation, seed: int = 9) -> np.ndarray:
    """Return probabilities whose most probable behavior is that of the annotation."""
    noise = np.random.default_rng(seed).dirichlet(np.ones(4), annotation.n_frames)
    return 0.4 * noise + 0.6 * np.eye(4)[annotation.to_codes()]


def make_pair(pred: Annotation, truth: Annotation, name: str = "r") -> AlignedPair:
    return AlignedPair(name, name, pred, truth, probabilities_for(pred), pool_subjects=True)


PAIRS = [make_pair(near(frames(s), s + 50), frames(s), f"r{s}") for s in range(4)]


def values(metric, pairs) -> tuple[float, np.ndarray]:
    """Return the pooled value of a metric, and its values by behavior."""
    ethogram = pairs[0].ethogram
    if metric.exact is not None:
        by_behavior = np.array([metric.exact(rank_frames(pairs, code)) for code in range(len(ethogram))])
        return float(np.nanmean(by_behavior)), by_behavior
    foreground = np.array([b.name != "other" for b in ethogram])
    grouping = Grouping(np.eye(len(pairs)), foreground, np.ones(len(ethogram), dtype=bool))
    statistics = np.stack([metric.statistics(c) for c in pairs])
    overall, behaviors = Aggregator(grouping).evaluate(Measure(metric.name, metric.name), statistics)
    return float(overall[0]), behaviors[0]


def same(a, b) -> bool:
    return a[0] == pytest.approx(b[0], abs=1e-9, nan_ok=True) and a[1] == pytest.approx(b[1], abs=1e-9, nan_ok=True)


@pytest.fixture(params=METRICS.values(), ids=METRICS.keys())
def metric(request):
    return request.param


def test_definition_and_reference(metric):
    """Every metric has a definition, and its module cites where it is defined."""
    assert metric.definition.endswith(".")
    assert "References\n----------" in sys.modules[metric.value.__module__].__doc__
    assert metric.kind in ("counts", "histogram", "rows")
    assert metric.statistics.__doc__


def test_the_example_is_neither_perfect_nor_undefined(metric):
    value, _ = values(metric, PAIRS)
    assert np.isfinite(value)
    assert value != metric.best


def test_perfect_is_best(metric):
    truth = [c.truth for c in PAIRS]
    perfect = [AlignedPair(c.id, c.id, t, t, np.eye(4)[t.to_codes()], pool_subjects=True) for c, t in zip(PAIRS, truth, strict=True)]
    value, behaviors = values(metric, perfect)
    if np.isfinite(metric.best):
        assert value == pytest.approx(metric.best)
        assert behaviors == pytest.approx(np.full(len(behaviors), metric.best), nan_ok=True)
    else:
        assert value >= 0


def test_it_stays_between_worst_and_best(metric):
    low, high = sorted((metric.worst, metric.best))
    for c in PAIRS:
        value, behaviors = values(metric, [c])
        defined = np.array([value, *behaviors])
        defined = defined[~np.isnan(defined)]
        if metric.name.endswith(("onset_error", "offset_error")):
            defined = np.abs(defined)
        assert ((defined >= low - 1e-9) & (defined <= high + 1e-9)).all()


def test_the_order_of_recordings_does_not_matter(metric):
    assert same(values(metric, PAIRS), values(metric, PAIRS[::-1]))


def test_order_and_names_of_behaviors_do_not_matter(metric):
    order = [2, 0, 3, 1]
    names = {"a": "x1", "b": "x2", "c": "x0"}
    ethogram = Ethogram([names.get(NAMES[k], NAMES[k]) for k in order], "other")
    moved = [
        AlignedPair(
            c.id,
            c.id,
            c.pred.rename(names).with_ethogram(ethogram),
            c.truth.rename(names).with_ethogram(ethogram),
            c.probabilities[:, order],
            pool_subjects=True,
        )
        for c in PAIRS
    ]
    before, after = values(metric, PAIRS), values(metric, moved)
    assert after[0] == pytest.approx(before[0], abs=1e-9)
    if len(before[1]):
        assert after[1] == pytest.approx(before[1][order], abs=1e-9)


def shifted(a: Annotation, by: int) -> Annotation:
    """Return the same bouts later, in a recording that is longer at both ends; the added frames are labeled other."""
    codes = np.concatenate([np.full(by, 3), a.to_codes(), np.full(by, 3)])
    return Annotation.from_frames(codes, ETHOGRAM, a.rate)


def test_unobserved_time_before_and_after_does_not_matter(metric):
    """Shift in time: the bouts are later in a longer recording of which only the original frames are observed."""
    by = 40
    moved = []
    for c in PAIRS:
        pred, truth = shifted(c.pred, by), shifted(c.truth, by).with_observed(iv.intervals([by], [by + N]))
        probabilities = np.vstack([np.full((by, 4), 0.25), c.probabilities, np.full((by, 4), 0.25)])
        moved.append(AlignedPair(c.id, c.id, pred, truth, probabilities, pool_subjects=True))
    before, after = values(metric, PAIRS), values(metric, moved)
    if metric.family in ("seconds", "rodentbench"):
        assert np.isfinite(after[0])
        return
    if metric.name in ("budgets.transition_distance", "budgets.latency_error", "bebe.time_scale_ratio"):
        assert after[0] == pytest.approx(before[0], rel=0.15)
        return
    assert same(before, after)


def test_doubling_the_rate(metric):
    double = [
        AlignedPair(c.id, c.id, c.pred.resample(40), c.truth.resample(40), np.repeat(c.probabilities, 2, axis=0), pool_subjects=True)
        for c in PAIRS
    ]
    before, after = values(metric, PAIRS), values(metric, double)
    assert same(before, after) == metric.rate_free


def test_swapping_the_annotators(metric):
    if metric.probabilistic:
        assert not metric.symmetric
        return
    swapped = [AlignedPair(c.id, c.id, c.truth, c.pred, pool_subjects=True) for c in PAIRS]
    before, after = values(metric, PAIRS), values(metric, swapped)
    if metric.symmetric:
        assert same(before, after)
    elif metric.name.endswith(("onset_error", "offset_error")):
        assert after[0] == pytest.approx(-before[0], abs=1e-9)


def test_splitting_between_bouts_leaves_sums_unchanged(metric):
    if metric.kind == "rows" or metric.name in ("budgets.transition_distance", "bebe.time_scale_ratio"):
        return
    halves = []
    for c in PAIRS:
        for k, (first, last) in enumerate(((0, N // 2), (N // 2, N))):
            halves.append(
                AlignedPair(
                    f"{c.id}{k}", c.id, c.pred.crop(first, last), c.truth.crop(first, last), c.probabilities[first:last], pool_subjects=True
                )
            )
    for code in range(3):
        unsplit = np.stack([metric.statistics(c) for c in PAIRS]).sum(axis=0)
        split = np.stack([metric.statistics(c) for c in halves]).sum(axis=0)
        if metric.joint:
            assert split == pytest.approx(unsplit)
        else:
            assert split[code] == pytest.approx(unsplit[code])


def test_predictions_in_unobserved_frames_do_not_matter(metric):
    if metric.family in ("seconds", "rodentbench") or metric.name in ("budgets.transition_distance", "bebe.time_scale_ratio"):
        return
    observed = iv.intervals([0, 700], [400, N])
    generator = np.random.default_rng(3)
    results = []
    for fill in (0, 3):
        pairs = []
        for c in PAIRS:
            codes = c.pred.to_codes()
            codes[400:700] = fill
            probabilities = c.probabilities.copy()
            probabilities[400:700] = generator.dirichlet(np.ones(4), 300)
            pred = Annotation.from_frames(codes, ETHOGRAM, c.pred.rate)
            pairs.append(AlignedPair(c.id, c.id, pred, c.truth.with_observed(observed), probabilities, pool_subjects=True))
        results.append(values(metric, pairs))
    assert same(*results)


def test_a_resample_equals_scoring_the_drawn_recordings(metric):
    """Weighted statistics give the same value as scoring the drawn recordings one by one."""
    if metric.exact is not None:
        return
    statistics = np.stack([metric.statistics(c) for c in PAIRS])
    grouping = Grouping(np.eye(4), np.array([True, True, True, False]), np.ones(4, dtype=bool))
    weights = np.array([[2.0, 0, 1, 1], [0, 3, 0, 1]])
    overall, _ = Aggregator(grouping, weights).evaluate(Measure(metric.name, metric.name), statistics)
    for k, row in enumerate(weights.astype(int)):
        drawn = [replace(PAIRS[i], id=f"{i}.{j}") for i in range(4) for j in range(row[i])]
        assert overall[k] == pytest.approx(values(metric, drawn)[0], nan_ok=True)


def test_predictions_can_be_scored_directly():
    import ethobench as eb

    prediction = Prediction(PAIRS[0].probabilities, ETHOGRAM, 20)
    assert np.isfinite(eb.score(prediction, PAIRS[0].truth).overall["map"])


def test_the_declared_range_is_that_of_the_definition(metric):
    """Intervals are clipped to it, and computed on the logit scale where both ends are finite."""
    name = metric.name.partition(".")[2]
    expected = (0.0, 1.0)
    if name.startswith(("mcc", "kappa")):
        expected = (-1.0, 1.0)
    elif name in ("onset_error", "offset_error"):
        expected = (-np.inf, np.inf)
    elif name in UNBOUNDED:
        expected = (0.0, np.inf)
    assert metric.bounds == expected
    assert metric.on_logit == (name not in DIFFERENCES and bool(np.isfinite(expected).all()))
