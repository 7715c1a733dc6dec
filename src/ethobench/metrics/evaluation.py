"""From the statistics of recordings to the values of a suite, for the sample itself and for thousands of resamples at once.

`Aggregator` turns statistics into values of one measure. `Evaluation` holds the statistics of all recordings of one scoring; `Scores`
adds tables and comparisons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from math import prod
from typing import Any, Self

import numpy as np

from ethobench.core import Behavior, Ethogram
from ethobench.core.errors import MismatchError, NotFoundError
from ethobench.core.intervals import BoolArray, IntArray
from ethobench.metrics.base import Array, Measure, Metric, Statistics, nanmean
from ethobench.metrics.bootstrap import HISTOGRAM_RESAMPLES, RESAMPLES, Resampled, confidence_interval, sample_weights
from ethobench.metrics.pairs import AlignedPair
from ethobench.metrics.probabilities import rank_frames
from ethobench.metrics.suites import Suite, suites

MAX_ELEMENTS = 1 << 22  # of an array of resampled statistics; larger ones are computed in steps


@dataclass(frozen=True)
class Grouping:
    """Which recordings belong to which individual, and which behaviors are averaged.

    Attributes
    ----------
    membership : array (n_individuals, n_recordings)
        1 if the recording is one of the individual, else 0.
    foreground : array of bool (n_behaviors,)
        Behaviors other than the background.
    scored : array of bool (n_behaviors,)
        Behaviors that are observed in at least one recording.
    points : array of bool (n_behaviors,), optional
        Behaviors that are point events.
    """

    membership: Array
    foreground: BoolArray
    scored: BoolArray
    points: BoolArray | None = None

    def mask_points(self, metric: Metric, values: Array) -> Array:
        """Set values of point events to NaN unless the metric is defined for them."""
        return values if metric.joint or metric.points or self.points is None else np.where(self.points, np.nan, values)

    def averaged(self, measure: Measure) -> BoolArray:
        """Return which behaviors the mean of a measure includes."""
        return self.scored if measure.background else self.scored & self.foreground


class Aggregator:
    """Computes values of measures from statistics of recordings, for several samples of the individuals at once.

    Parameters
    ----------
    grouping : Grouping
    weights : array (n_samples, n_individuals), optional
        How often each individual occurs in each sample; one sample with each individual once by default.
    """

    def __init__(self, grouping: Grouping, weights: Array | None = None) -> None:
        self.grouping = grouping
        self.weights = np.ones((1, len(grouping.membership))) if weights is None else weights
        self._sums: dict[Statistics, Array] = {}

    def evaluate(self, measure: Measure, statistics: Array) -> tuple[Array, Array]:
        """Return the overall value of a measure and its values by behavior.

        Parameters
        ----------
        measure : Measure
        statistics : array (n_recordings, ...)

        Returns
        -------
        overall : array (n_samples,)
        behaviors : array (n_samples, n_behaviors), or (n_samples, 0) for joint metrics
        """
        metric, grouping = measure.metric, self.grouping
        if measure.over == "pooled" and not measure.spread:
            values = np.concatenate([grouping.mask_points(metric, metric.value(sums)) for sums in self._summed(metric, statistics)])
            if metric.joint:
                return values, np.empty((len(values), 0))
            return nanmean(values[:, grouping.averaged(measure)]), values
        by_individual = measure.over == "individuals" or measure.spread
        units = _sum_by_individual(grouping.membership, statistics) if by_individual else statistics
        values = grouping.mask_points(metric, metric.value(units))
        weights = self.weights if by_individual else self.weights @ grouping.membership
        if metric.joint:
            return _mean_or_spread(measure, weights, values[:, None])[:, 0], np.empty((len(weights), 0))
        behaviors = _mean_or_spread(measure, weights, values)
        averaged = values[:, grouping.averaged(measure)]
        if measure.over == "cells":
            return _weighted_nanmean(np.repeat(weights, averaged.shape[1], axis=1), averaged.reshape(-1, 1))[:, 0], behaviors
        return _mean_or_spread(measure, weights, nanmean(averaged)[:, None])[:, 0], behaviors

    def contributing(self, measure: Measure, statistics: Array) -> tuple[BoolArray, BoolArray]:
        """Return in which individuals a measure is defined. Only these count towards an interval.

        Returns
        -------
        overall : array of bool (n_individuals,)
        behaviors : array of bool (n_individuals, n_behaviors), or (n_individuals, 0) for joint metrics
        """
        metric, membership = measure.metric, self.grouping.membership
        by_recording = measure.over in ("recordings", "cells") and not measure.spread
        units = statistics if by_recording else _sum_by_individual(membership, statistics)
        defined = ~np.isnan(self.grouping.mask_points(metric, metric.value(units)))
        if by_recording:
            defined = membership @ defined > 0
        if metric.joint:
            return defined, np.empty((len(membership), 0), dtype=bool)
        return np.asarray(defined[:, self.grouping.averaged(measure)].any(axis=1)), defined

    def _summed(self, metric: Metric, statistics: Array) -> Iterator[Array]:
        """Yield statistics summed over the individuals of each sample; large arrays in steps of several samples."""
        units = _sum_by_individual(self.grouping.membership, statistics)
        flat = units.reshape(len(units), -1)
        if len(self.weights) * flat.shape[1] <= MAX_ELEMENTS:
            if metric.statistics not in self._sums:
                self._sums[metric.statistics] = (self.weights @ flat).reshape(-1, *statistics.shape[1:])
            yield self._sums[metric.statistics]
            return
        step = max(1, MAX_ELEMENTS // flat.shape[1])
        for first in range(0, len(self.weights), step):
            yield (self.weights[first : first + step] @ flat).reshape(-1, *statistics.shape[1:])


def _sum_by_individual(membership: Array, statistics: Array) -> Array:
    flat = statistics.reshape(len(statistics), -1)
    return np.asarray((membership @ flat).reshape(len(membership), *statistics.shape[1:]))


def _mean_or_spread(measure: Measure, weights: Array, values: Array) -> Array:
    mean = _weighted_nanmean(weights, values)
    if not measure.spread:
        return mean
    return np.asarray(np.sqrt(np.maximum(_weighted_nanmean(weights, values**2) - mean**2, 0)))


def _weighted_nanmean(weights: Array, values: Array) -> Array:
    """Average the rows of `values` with each row of weights, excluding NaN."""
    defined = ~np.isnan(values)
    if len(weights) == 1 and (weights == 1).all():
        # added one by one, as the published code does, so that results are equal to the last bit
        columns = [values[defined[:, column], column].tolist() for column in range(values.shape[1])]
        return np.array([[sum(cells) / len(cells) if cells else np.nan for cells in columns]])
    total = weights @ defined
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total > 0, (weights @ np.where(defined, values, 0)) / total, np.nan))


class Evaluation:
    """The statistics of a set of recordings, and the values of a suite's measures computed from them.

    Parameters
    ----------
    suite : Suite
    ethogram : Ethogram
    individuals : mapping of str to str
        Recordings to individuals.
    pairs : list of AlignedPair, optional
        The recordings. Not needed if statistics are restored from states.
    scored : iterable of bool, optional
        Which behaviors are averaged; all by default.
    resamples, seed : int
        Number of bootstrap resamples, and the seed of their random draw.
    """

    def __init__(
        self,
        suite: Suite,
        ethogram: Ethogram,
        individuals: Mapping[str, str],
        *,
        pairs: list[AlignedPair] | None = None,
        scored: Iterable[bool] | None = None,
        resamples: int = RESAMPLES,
        seed: int = 0,
    ) -> None:
        self.suite, self.ethogram = suite, ethogram
        self.recordings, self.individuals = tuple(individuals), tuple(dict.fromkeys(individuals.values()))
        self.pairs, self._resamples, self._seed = pairs or [], resamples, seed
        self._statistics: dict[Statistics, Array] = {}
        self._aggregators: dict[int, Aggregator] = {}
        membership = np.array([[float(owner == name) for owner in individuals.values()] for name in self.individuals])
        foreground = np.array([code != ethogram.background for code in range(len(ethogram))], dtype=bool)
        is_scored = np.array([True] * len(ethogram) if scored is None else list(scored), dtype=bool)
        points = np.array([b.point for b in ethogram], dtype=bool)
        self.grouping = Grouping(membership, foreground, is_scored, points)

    @property
    def individuals_by_recording(self) -> tuple[str, ...]:
        """The individual of each recording."""
        return tuple(self.individuals[int(np.argmax(column))] for column in self.grouping.membership.T)

    def statistics(self, measure: Measure) -> Array:
        """Return the statistics of a measure, shape (n_recordings, ...)."""
        function = measure.metric.statistics
        if function not in self._statistics:
            self._statistics[function] = np.stack([function(pair) for pair in self.pairs])
        return self._statistics[function]

    def set_statistics(self, function: Statistics, table: Array) -> None:
        """Set the statistics of a function for all recordings at once, shape (n_recordings, ...), instead of counting them from pairs."""
        if len(table) != len(self.recordings):
            raise MismatchError(f"statistics of {len(table)} recordings for {len(self.recordings)}")
        self._statistics[function] = np.asarray(table, dtype=np.float64)

    def pooled_statistics(self, metric_name: str) -> Array | None:
        """Return the statistics of a metric summed over recordings; None if they were not stored with these scores."""
        measure = Measure(metric_name, metric_name)
        available = bool(self.pairs) or any(m.metric.statistics is measure.metric.statistics for m in self.suite.measures)
        return self.statistics(measure).sum(axis=0) if available else None

    def evaluate(self, measure: Measure) -> tuple[float, Array]:
        """Return the overall value of a measure and its values by behavior, shape (n_behaviors,)."""
        metric = measure.metric
        if metric.probabilistic and any(pair.probabilities is None for pair in self.pairs):
            return float("nan"), np.full(len(self.ethogram), np.nan)
        if self.pairs and metric.exact is not None and measure.over == "pooled":
            values = self._exact_values[metric.name]
            return float(nanmean(values[self.grouping.averaged(measure)])), values
        overall, behaviors = Aggregator(self.grouping).evaluate(measure, self.statistics(measure))
        return float(overall[0]), behaviors[0]

    def evaluate_subsets(self, measure: Measure, subsets: Array) -> tuple[Array, Array]:
        """Return the values of a measure for several subsets of the recordings, each taken as one individual.

        Parameters
        ----------
        measure : Measure
        subsets : array (n_subsets, n_recordings)
            1 if the recording is in the subset, else 0.

        Returns
        -------
        overall : array (n_subsets,)
        behaviors : array (n_subsets, n_behaviors), or (n_subsets, 0) for joint metrics
        """
        metric = measure.metric
        if metric.probabilistic and any(pair.probabilities is None for pair in self.pairs):
            return np.full(len(subsets), np.nan), np.full((len(subsets), len(self.ethogram)), np.nan)
        if self.pairs and metric.exact is not None:
            groups = [[self.pairs[k] for k in np.flatnonzero(subset)] for subset in subsets]
            values = np.array([[metric.exact(rank_frames(g, code)) for code in range(len(self.ethogram))] for g in groups])
        elif measure.over in ("recordings", "cells"):
            results = []
            for subset in subsets > 0:
                alone = replace(self.grouping, membership=np.eye(int(subset.sum())))
                results.append(Aggregator(alone).evaluate(measure, self.statistics(measure)[subset]))
            return np.array([overall[0] for overall, _ in results]), np.array([behaviors[0] for _, behaviors in results])
        else:
            statistics = self.statistics(measure)
            sums = (subsets @ statistics.reshape(len(statistics), -1)).reshape(-1, *statistics.shape[1:])
            values = self.grouping.mask_points(metric, metric.value(sums))
            if measure.spread:
                values = np.where(np.isnan(values), np.nan, 0.0)  # of a single individual
        if metric.joint:
            return values, np.empty((len(subsets), 0))
        return nanmean(values[:, self.grouping.averaged(measure)]), values

    @cached_property
    def _exact_values(self) -> dict[str, Array]:
        """Values that need the ranked probabilities of all frames, by metric; the frames of each behavior are ranked once."""
        functions = {m.metric.name: m.metric.exact for m in self.suite.measures if m.metric.exact is not None and m.over == "pooled"}
        values = {name: np.full(len(self.ethogram), np.nan) for name in functions}
        for code in range(len(self.ethogram)):
            ranking = rank_frames(self.pairs, code)
            for name, function in functions.items():
                values[name][code] = function(ranking)
        return values

    def contributing(self, measure: Measure) -> BoolArray:
        """Return in which individuals (rows) a measure is defined: overall in the first column, then for each behavior."""
        return np.column_stack(Aggregator(self.grouping).contributing(measure, self.statistics(measure)))

    def resampled(self, measure: Measure) -> Resampled:
        """Return the values of a measure in resamples of the individuals: overall in the first column, then of each behavior."""
        count = min(self._resamples, HISTOGRAM_RESAMPLES) if measure.metric.kind == "histogram" else self._resamples
        if count not in self._aggregators:
            self._aggregators[count] = Aggregator(self.grouping, sample_weights(len(self.individuals), count, self._seed))
        values = np.column_stack(self._aggregators[count].evaluate(measure, self.statistics(measure)))
        return Resampled(values[:count], values[count:])

    def evaluate_with_interval(self, measure: Measure) -> tuple[Array, Array, Array, IntArray]:
        """Return values of a measure, lower and upper ends of their intervals, and the number of individuals with a value.

        The first element of each array is the overall value; those of the behaviors follow. Ends are NaN where an interval is withheld.
        """
        overall, by_behavior = self.evaluate(measure)
        values = np.append(overall, by_behavior)
        undefined = np.full(len(values), np.nan)
        if np.isnan(overall) or measure.spread:
            return values, undefined, undefined, np.full(len(values), len(self.individuals))
        metric, n = measure.metric, self.contributing(measure).sum(axis=0)
        return values, *confidence_interval(values, self.resampled(measure), n, metric.bounds, on_logit=metric.on_logit), n

    def select(self, recordings: Collection[str]) -> Self:
        """Return the evaluation of some of the recordings.

        Parameters
        ----------
        recordings : collection of str
            Names among `recordings`.
        """
        unknown = [name for name in recordings if name not in self.recordings]
        if unknown:
            raise NotFoundError(f"not scored: {', '.join(unknown)}. Scored recordings: {', '.join(self.recordings)}")
        rows = [k for k, name in enumerate(self.recordings) if name in recordings]
        individuals = {self.recordings[k]: self.individuals_by_recording[k] for k in rows}
        pairs = [self.pairs[k] for k in rows] if self.pairs else None
        options: dict[str, Any] = {"scored": self.grouping.scored, "resamples": self._resamples, "seed": self._seed}
        selected = type(self)(self.suite, self.ethogram, individuals, pairs=pairs, **options)
        selected._statistics = {function: table[rows] for function, table in self._statistics.items()}
        return selected

    def to_state(self) -> dict[str, Any]:
        """Return the statistics of all recordings as plain values for JSON, from which `from_states` computes any aggregate again."""
        tables = {_statistics_name(m.metric.statistics): self.statistics(m) for m in self.suite.measures}
        return {
            "suite": self.suite.name,
            "behaviors": list(self.ethogram.names),
            "points": [b.name for b in self.ethogram if b.point],
            "background": self.ethogram.background_name,
            "scored": self.grouping.scored.tolist(),
            "recordings": list(self.recordings),
            "individuals": list(self.individuals_by_recording),
            "statistics": {name: _pack(table) for name, table in tables.items()},
        }

    @classmethod
    def from_states(cls, states: Sequence[Mapping[str, Any]], *, resamples: int = RESAMPLES, seed: int = 0) -> Self:
        """Combine the statistics of several scorings in one suite.

        A behavior that only some of them scored was not observed in the recordings of the others. Values that need ranked probabilities
        (average precision) are computed from histograms then: close, but not exact.

        Parameters
        ----------
        states : sequence of mappings
            As `to_state` returns them. A recording that occurs in several of them counts once for each.
        resamples, seed : int
            Number of bootstrap resamples, and the seed of their random draw.
        """
        states = _with_shared_behaviors(states)
        first = states[0]
        individuals: dict[str, str] = {}
        for k, state in enumerate(states):
            for name, individual in zip(state["recordings"], state["individuals"], strict=True):
                individuals[name if name not in individuals else f"{name} ({k})"] = individual
        ethogram = Ethogram([Behavior(name, point=name in first["points"]) for name in first["behaviors"]], first["background"])
        scored = np.any([state["scored"] for state in states], axis=0)
        combined = cls(suites[first["suite"]], ethogram, individuals, scored=scored, resamples=resamples, seed=seed)
        for statistics in dict.fromkeys(measure.metric.statistics for measure in combined.suite.measures):
            name = _statistics_name(statistics)
            combined._statistics[statistics] = _unpack([state["statistics"][name] for state in states])
        return combined


def _with_shared_behaviors(states: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return states with the behaviors of all of them; added ones have statistics of 0.

    Raises
    ------
    MismatchError
        If suites or backgrounds differ.
    """
    if any((state["suite"], state["background"]) != (states[0]["suite"], states[0]["background"]) for state in states):
        raise MismatchError("only scores of the same suite and background can be combined")
    if all(state["behaviors"] == states[0]["behaviors"] for state in states):
        return states
    names = list(_merge_orders([state["behaviors"] for state in states]))
    points = sorted({point for state in states for point in state["points"]})
    expanded = []
    for state in states:
        codes = np.array([names.index(name) for name in state["behaviors"]], dtype=np.int64)
        scored = np.zeros(len(names), dtype=bool)
        scored[codes] = state["scored"]
        tables = {name: _expand(_unpack([packed]), codes, len(names)) for name, packed in state["statistics"].items()}
        expanded.append(
            {
                **state,
                "behaviors": names,
                "points": points,
                "scored": scored.tolist(),
                "statistics": {name: _pack(table) for name, table in tables.items()},
            }
        )
    return expanded


def _merge_orders(orders: Sequence[Sequence[str]]) -> Iterable[str]:
    """Return all names in an order that every sequence agrees with; in that of their first occurrence if there is none."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for order in orders:
        for name in order:
            sorter.add(name)
        for before, after in pairwise(order):
            sorter.add(after, before)
    try:
        return tuple(sorter.static_order())
    except CycleError:
        return dict.fromkeys(chain.from_iterable(orders))


def _expand(table: Array, codes: IntArray, n: int) -> Array:
    """Return statistics with one row for each of n behaviors, of which these are in the table; others are 0.

    Statistics are of single behaviors (axis 1), of pairs of them (the last two of four axes), of none, or confusions (axes 1 and 2, with
    one row more), which count only frames in which all behaviors were observed.
    """
    if table.ndim < 3 or n == len(codes):
        return table
    if table.shape[1] == table.shape[2] == len(codes) + 1:
        return np.zeros((len(table), n + 1, n + 1)) + (np.nan if np.isnan(table).any() else 0.0)
    for axis in (2, 3) if table.ndim == 4 else (1,):
        expanded = np.zeros((*table.shape[:axis], n, *table.shape[axis + 1 :]))
        expanded[(slice(None),) * axis + (codes,)] = table
        table = expanded
    return table


def _statistics_name(function: Statistics) -> str:
    """Return the name of a statistics function in states, for example ``frames.counts``."""
    return f"{function.__module__.removeprefix('ethobench.metrics.')}.{function.__qualname__}"


def _pack(table: Array) -> dict[str, Any]:
    """Return an array as its shape and the flat indices and values of its nonzero elements; None for both if any is NaN."""
    flat = table.reshape(-1)
    if not np.isfinite(flat).all():
        return {"shape": list(table.shape), "indices": None, "values": None}
    indices = np.flatnonzero(flat)
    values = [int(v) if v == int(v) else float(v) for v in flat[indices]]
    return {"shape": list(table.shape), "indices": indices.tolist(), "values": values}


def _unpack(packed: Sequence[Mapping[str, Any]]) -> Array:
    """Restore arrays from `_pack` and concatenate them; all at once, because there may be many small ones."""
    sizes = np.array([prod(one["shape"]) for one in packed])
    offsets = np.cumsum(sizes) - sizes
    table = np.zeros(int(sizes.sum()))
    indices = [one["indices"] or () for one in packed]
    flat = np.fromiter(chain.from_iterable(indices), dtype=np.int64) + np.repeat(offsets, [len(one) for one in indices])
    table[flat] = np.fromiter(chain.from_iterable(one["values"] or () for one in packed), dtype=np.float64)
    for one, offset, size in zip(packed, offsets, sizes, strict=True):
        if one["indices"] is None:
            table[offset : offset + size] = np.nan
    return table.reshape(-1, *packed[0]["shape"][1:])
