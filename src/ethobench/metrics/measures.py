"""From the statistics of recordings to the figures of a suite, for one sample or thousands of resamples at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ethobench.core.intervals import BoolArray
from ethobench.metrics.base import Array, Metric, Statistics, get_metric

Over: TypeAlias = Literal["pooled", "recordings", "individuals", "cells"]
CHUNK = 1 << 22


@dataclass(frozen=True)
class Measure:
    """A figure of a suite: a metric, and how it is brought together.

    Attributes
    ----------
    name : str
        What the suite calls it.
    metric : str
        Full name of the metric.
    over : str
        ``"pooled"``: statistics are summed over recordings first, then behaviors averaged. ``"individuals"`` and
        ``"recordings"``: a value for each, averaged over behaviors, then over them. ``"cells"``: the mean over all
        (recording, behavior) cells. Undefined values are left out of every mean.
    background : bool
        Whether the background takes part in the mean over behaviors.
    spread : bool
        The standard deviation over individuals (population) in place of their mean.
    behaviors : bool
        Whether the figure is also given for single behaviors.
    """

    name: str
    metric: str
    over: Over = "pooled"
    background: bool = False
    spread: bool = False
    behaviors: bool = True

    @property
    def of(self) -> Metric:
        """The metric."""
        return get_metric(self.metric)

    @property
    def difference_bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible difference of two values."""
        low, high = self.of.bounds
        return low - high, high - low


@dataclass(frozen=True)
class Sample:
    """Which recordings belong to which individual, and which behaviors are averaged.

    Attributes
    ----------
    membership : array (n_individuals, n_recordings)
        1 where a recording is an individual's.
    foreground : array of bool (n_behaviors,)
    scored : array of bool (n_behaviors,)
        Behaviors that somebody observed somewhere.
    points : array of bool (n_behaviors,), optional
        Behaviors that are point events.
    """

    membership: Array
    foreground: BoolArray
    scored: BoolArray
    points: BoolArray | None = None

    def defined(self, metric: Metric, values: Array) -> Array:
        """Leave out point events where a metric knows none."""
        return values if metric.joint or metric.points or self.points is None else np.where(self.points, np.nan, values)

    def averaged(self, measure: Measure) -> BoolArray:
        """Tell which behaviors take part in a measure's mean."""
        return self.scored if measure.background else self.scored & self.foreground


class Resampler:
    """Statistics of recordings, and their sums in many resamples, each made once.

    Parameters
    ----------
    sample : Sample
    weights : array (n_samples, n_individuals), optional
        How often each individual was drawn; once each unless given.
    """

    def __init__(self, sample: Sample, weights: Array | None = None) -> None:
        self.sample = sample
        self.weights = np.ones((1, len(sample.membership))) if weights is None else weights
        self._sums: dict[Statistics, Array] = {}

    def evaluate(self, measure: Measure, statistics: Array) -> tuple[Array, Array]:
        """Return a measure's overall value and its values by behavior.

        Parameters
        ----------
        measure : Measure
        statistics : array (n_recordings, ...)

        Returns
        -------
        overall : array (n_samples,)
        behaviors : array (n_samples, n_behaviors), or (n_samples, 0) for joint metrics
        """
        metric, sample = measure.of, self.sample
        if measure.over == "pooled" and not measure.spread:
            parts = [sample.defined(metric, metric.value(summed)) for summed in self._summed(metric, statistics)]
            values = np.concatenate(parts)
            if metric.joint:
                return values, np.empty((len(values), 0))
            return nanmean(values[:, sample.averaged(measure)]), values
        by_individual = measure.over == "individuals" or measure.spread
        values = sample.defined(metric, metric.value(_sum_by(sample.membership, statistics) if by_individual else statistics))
        weights = self.weights if by_individual else self.weights @ sample.membership
        if metric.joint:
            return _spread_or_mean(measure, weights, values[:, None])[:, 0], np.empty((len(weights), 0))
        behaviors = _spread_or_mean(measure, weights, values)
        chosen = values[:, sample.averaged(measure)]
        if measure.over == "cells":
            return _weighted_mean(np.repeat(weights, chosen.shape[1], axis=1), chosen.reshape(-1, 1))[:, 0], behaviors
        return _spread_or_mean(measure, weights, nanmean(chosen)[:, None])[:, 0], behaviors

    def contributing(self, measure: Measure, statistics: Array) -> tuple[BoolArray, BoolArray]:
        """Tell in which individuals a measure is defined: these are the ones that an interval is based on.

        Returns
        -------
        overall : array of bool (n_individuals,)
        behaviors : array of bool (n_individuals, n_behaviors), or (n_individuals, 0) for joint metrics
        """
        metric, membership = measure.of, self.sample.membership
        by_recording = measure.over in ("recordings", "cells") and not measure.spread
        values = self.sample.defined(metric, metric.value(statistics if by_recording else _sum_by(membership, statistics)))
        defined = ~np.isnan(values)
        if by_recording:
            defined = membership @ defined > 0
        if metric.joint:
            return defined, np.empty((len(membership), 0), dtype=bool)
        return np.asarray(defined[:, self.sample.averaged(measure)].any(axis=1)), defined

    def _summed(self, metric: Metric, statistics: Array) -> Iterator[Array]:
        """Yield the statistics summed over the individuals drawn; a few resamples at a time where they are large."""
        units = _sum_by(self.sample.membership, statistics)
        flat = units.reshape(len(units), -1)
        if len(self.weights) * flat.shape[1] <= CHUNK:
            if metric.statistics not in self._sums:
                self._sums[metric.statistics] = (self.weights @ flat).reshape(-1, *statistics.shape[1:])
            yield self._sums[metric.statistics]
            return
        step = max(1, CHUNK // flat.shape[1])
        for first in range(0, len(self.weights), step):
            yield (self.weights[first : first + step] @ flat).reshape(-1, *statistics.shape[1:])


def nanmean(values: Array) -> Array:
    """Take the mean of the last axis without undefined values; undefined where there are none."""
    known = ~np.isnan(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(known, values, 0).sum(axis=-1) / np.where(known.any(axis=-1), known.sum(axis=-1), np.nan))


def _sum_by(membership: Array, statistics: Array) -> Array:
    flat = statistics.reshape(len(statistics), -1)
    return np.asarray((membership @ flat).reshape(len(membership), *statistics.shape[1:]))


def _spread_or_mean(measure: Measure, weights: Array, values: Array) -> Array:
    mean = _weighted_mean(weights, values)
    if not measure.spread:
        return mean
    return np.asarray(np.sqrt(np.maximum(_weighted_mean(weights, values**2) - mean**2, 0)))


def _weighted_mean(weights: Array, values: Array) -> Array:
    """Average the rows of `values` with each row of weights, leaving undefined ones out."""
    known = ~np.isnan(values)
    if len(weights) == 1 and (weights == 1).all():
        # added one by one, as the published code does, so that results are equal to the last bit
        columns = [values[known[:, column], column].tolist() for column in range(values.shape[1])]
        return np.array([[sum(cells) / len(cells) if cells else np.nan for cells in columns]])
    total = weights @ known
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total > 0, (weights @ np.where(known, values, 0)) / total, np.nan))
