"""Every rule of aggregation, recomputed one individual, recording and behavior at a time, for the sample and for resamples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Behavior, Ethogram
from ethobench.metrics import evaluation
from ethobench.metrics.base import Measure, get_metric
from ethobench.metrics.evaluation import Aggregator, Grouping
from ethobench.metrics.suites import suites

N_BEHAVIORS = 4
OWNERS = [0, 1, 1, 2, 0, 3, 2]  # individual of each recording
FOREGROUND, SCORED = np.array([True, True, True, False]), np.array([True, False, True, True])
MEASURES = [
    Measure(name, name, over=over, background=background, spread=spread)
    for name, over, background, spread in product(
        ["frames.f1", "bouts.f1", "frames.accuracy"], ["pooled", "recordings", "individuals", "cells"], [False, True], [False, True]
    )
]


def mean(values) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return sum(defined) / len(defined) if defined else np.nan


def spread(values) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.std(defined)) if defined else np.nan


def random_statistics(measure: Measure, rng: np.random.Generator) -> np.ndarray:
    """Return small counts, of which many are zero, so that some values are undefined."""
    shape = (N_BEHAVIORS, N_BEHAVIORS) if measure.metric.joint else (N_BEHAVIORS, 14)
    shape = shape if measure.metric_name != "frames.f1" else (N_BEHAVIORS, 4)
    return (rng.integers(1, 6, (len(OWNERS), *shape)) * (rng.random((len(OWNERS), *shape)) < 0.4)).astype(float)


def by_definition(measure: Measure, statistics: np.ndarray, drawn: list[int], points: np.ndarray) -> tuple[float, list[float]]:
    """Return the overall value and those of the behaviors for individuals that were drawn one by one."""
    metric = measure.metric
    recordings = [k for individual in drawn for k, owner in enumerate(OWNERS) if owner == individual]
    averaged = [k for k in range(N_BEHAVIORS) if SCORED[k] and (FOREGROUND[k] or measure.background)]

    def values(members: list[int]) -> list[float]:
        results = np.atleast_1d(metric.value(statistics[members].sum(axis=0))).tolist()
        return [np.nan if not metric.joint and points[k] and not metric.points else value for k, value in enumerate(results)]

    if measure.over == "pooled" and not measure.spread:
        pooled = values(recordings)
        return (pooled[0], []) if metric.joint else (mean(pooled[k] for k in averaged), pooled)
    units = [[k] for k in recordings]
    if measure.over == "individuals" or measure.spread:
        units = [[k for k, owner in enumerate(OWNERS) if owner == individual] for individual in drawn]
    combine = spread if measure.spread else mean
    table = [values(unit) for unit in units]
    if metric.joint:
        return combine([row[0] for row in table]), []
    behaviors = [combine([row[k] for row in table]) for k in range(N_BEHAVIORS)]
    if measure.over == "cells":
        return mean(row[k] for row in table for k in averaged), behaviors
    return combine([mean(row[k] for k in averaged) for row in table]), behaviors


@pytest.mark.parametrize("max_elements", [1 << 22, 100])
@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: f"{m.name}-{m.over}" + "-background" * m.background + "-spread" * m.spread)
def test_values_equal_their_definition(measure, max_elements, monkeypatch):
    """Also if the sums of all samples do not fit in memory at once."""
    monkeypatch.setattr(evaluation, "MAX_ELEMENTS", max_elements)
    rng = np.random.default_rng(MEASURES.index(measure))
    membership = np.array([[float(owner == k) for owner in OWNERS] for k in range(4)])
    points = np.array([False, False, True, False])
    weights = np.array([[1, 1, 1, 1], [2, 0, 1, 1], [0, 4, 0, 0], [0, 1, 1, 1], [1, 0, 0, 3]], dtype=float)
    for _ in range(3):
        statistics = random_statistics(measure, rng)
        grouping = Grouping(membership, FOREGROUND, SCORED, points)
        overall, behaviors = Aggregator(grouping, weights).evaluate(measure, statistics)
        for k, row in enumerate(weights.astype(int)):
            drawn = [individual for individual, times in enumerate(row) for _ in range(times)]
            expected = by_definition(measure, statistics, drawn, points)
            assert overall[k] == pytest.approx(expected[0], nan_ok=True, abs=1e-7)
            assert behaviors[k].tolist() == pytest.approx(expected[1], nan_ok=True, abs=1e-7)
        alone, _ = Aggregator(grouping).evaluate(measure, statistics)
        assert alone == pytest.approx(overall[:1], nan_ok=True, abs=1e-7)
        contributing = Aggregator(grouping).contributing(measure, statistics)
        for individual in range(4):
            single = Measure(measure.name, measure.metric_name, over=measure.over, background=measure.background)
            values, cells = by_definition(single, statistics, [individual], points)
            if measure.spread:  # defined in an individual if the value of its recordings together is
                pooled = Measure(measure.name, measure.metric_name, background=measure.background)
                values, cells = by_definition(pooled, statistics, [individual], points)
            assert contributing[0][individual] == (not np.isnan(values))
            assert contributing[1][individual].tolist() == [not np.isnan(cell) for cell in cells]


@pytest.mark.parametrize("name", sorted(suites.names()))
def test_subsets_have_the_scores_of_their_recordings_alone(name):
    """`evaluate_subsets`, `select` and a new scoring agree in all measures of a suite."""
    ethogram = Ethogram(["a", "b", Behavior("bite", point=True), "other"], "other")
    rng = np.random.default_rng(0)
    pairs = {}
    for k in range(5):
        codes = np.repeat(rng.choice([0, 1, 3], 12), 5)
        bites = sorted(rng.choice(60, 3, replace=False).tolist())
        sides = []
        for shift in (0, 2):
            frames = Annotation.from_frames(np.roll(codes, shift), ethogram, 5)
            start, stop = [*frames.start, *bites], [*frames.stop, *bites]
            sides.append(Annotation.from_bouts(start, stop, [*frames.behavior, 2, 2, 2], ethogram, 5, 60))
        pairs[f"r{k}"] = (sides[1], sides[0])
    scores = eb.score(pairs, suite=name, resamples=0)
    subsets = np.array([[1, 0, 1, 0, 1], [0, 1, 0, 0, 0]], dtype=float)
    chosen = [[f"r{i}" for i in np.flatnonzero(subset)] for subset in subsets]
    alone = [eb.score({i: pairs[i] for i in names}, suite=name, resamples=0, individuals=dict.fromkeys(names, "one")) for names in chosen]
    selected = [scores.select(names) for names in chosen]
    assert [s.recordings for s in selected] == [tuple(names) for names in chosen]
    for measure in scores.suite.measures:
        overall, behaviors = scores.evaluate_subsets(measure, subsets)
        for k, one in enumerate(alone):
            expected, expected_behaviors = one.evaluate(measure)
            assert overall[k] == pytest.approx(expected, nan_ok=True, abs=1e-7), measure.name
            assert behaviors[k].tolist() == pytest.approx(expected_behaviors.tolist(), nan_ok=True, abs=1e-7), measure.name
            assert selected[k].statistics(measure) == pytest.approx(one.statistics(measure), nan_ok=True)


def test_joint_metrics_have_one_value_for_all_behaviors():
    assert get_metric("frames.accuracy").joint
    assert not get_metric("frames.f1").joint
