"""Metrics and measures: statistics of one recording that can be summed, and a formula for their sum.

A `Metric` consists of two functions. The first computes statistics of a recording (counts, sums, histograms), the second computes the
value from statistics that were summed over recordings. Everything else follows from these two: pooled scores, scores of single recordings,
individuals and behaviors, and thousands of bootstrap resamples. A `Measure` is a metric under the name that a suite gives it, and
the rule by which the suite aggregates it over recordings and behaviors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import NotFoundError
from ethobench.metrics.pairs import AlignedPair, TrackPair

Array: TypeAlias = NDArray[np.float64]
Statistics: TypeAlias = Callable[[AlignedPair], Array]
Over: TypeAlias = Literal["pooled", "recordings", "individuals", "cells"]

LABELS = {
    "f1": "frame F1",
    "f1_labeled": "frame F1 (labeled)",
    "f1_score": "bout F1",
    "bout_f1": "bout F1",
    "bout_f1_50": "bout F1 at IoU 0.5",
    "so": "overlap",
    "tp": "temporal precision",
    "ic": "continuity",
    "map": "mAP",
    "mcc": "MCC",
    "auroc": "AUROC",
    "macro_f1": "macro F1",
    "onset_error": "onset error (s)",
    "offset_error": "offset error (s)",
    "onset_distance": "onset distance (s)",
    "offset_distance": "offset distance (s)",
    "latency_error": "latency error (s)",
}
"""Display names of measures; other names are displayed as they are, without underscores."""

FAMILIES = ("frames", "seconds", "bouts", "segments", "probabilities", "budgets")


def measure_label(name: str) -> str:
    """Return the display name of a measure.

    >>> measure_label("bout_f1"), measure_label("bout_recall")
    ('bout F1', 'bout recall')
    """
    return LABELS.get(name, name.replace("_", " "))


@dataclass(frozen=True)
class Metric:
    """A metric: statistics of a recording, and the formula that turns their sum into a value.

    Attributes
    ----------
    name : str
        Unique name, ``family.function``, for example ``frames.f1``.
    statistics : callable
        Returns an array for an `AlignedPair`. Arrays of several recordings are summed. Shape (n_behaviors, n_columns) for metrics
        of single behaviors, any other shape for joint ones.
    value : callable
        Returns values for summed statistics with any leading axes; NaN where undefined.
    kind : str
        ``"counts"``: additive. ``"histogram"``: additive over fixed bins. ``"rows"``: a value and its weight per recording,
        combined by their mean.
    joint : bool
        Whether there is one value for all behaviors together, not one for each.
    best, worst : float
        Value of a perfect prediction, and the other end of the range (infinite if there is none).
    symmetric : bool
        Whether swapping prediction and truth leaves the value unchanged.
    rate_free : bool
        Whether doubling the frame rate leaves the value unchanged.
    probabilistic : bool
        Whether the metric needs probabilities.
    points : bool
        Whether the metric is defined for point events.
    signed : bool
        Whether values lie on both sides of the best one, such as "too late" and "too early".
    distance : bool
        Whether the value is an absolute difference of two pooled quantities, whose true value may be 0.
    definition : str
        Definition in one sentence.
    exact : callable, optional
        Returns the exact pooled value of a behavior for its ranked scores, where summed histograms only approximate it.
    """

    name: str
    statistics: Statistics
    value: Callable[[Array], Array]
    kind: str = "counts"
    joint: bool = False
    best: float = 1.0
    worst: float = 0.0
    symmetric: bool = False
    rate_free: bool = True
    probabilistic: bool = False
    points: bool = False
    signed: bool = False
    distance: bool = False
    definition: str = ""
    exact: Callable[[Any], float] | None = None

    @property
    def family(self) -> str:
        """Name of the family, which is the name of its module."""
        return self.name.partition(".")[0]

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible value."""
        return (-np.inf, np.inf) if self.signed else (min(self.best, self.worst), max(self.best, self.worst))

    @property
    def on_logit(self) -> bool:
        """Whether its confidence interval is computed on the logit scale, see `ethobench.metrics.bootstrap`."""
        return bool(np.isfinite(self.bounds).all()) and not self.distance


@dataclass(frozen=True)
class Measure:
    """A score of a suite: a metric, and the rule by which it is aggregated.

    Attributes
    ----------
    name : str
        Name in the suite.
    metric_name : str
        Full name of the metric.
    over : str
        ``"pooled"``: statistics are summed over recordings, then behaviors averaged. ``"individuals"`` and
        ``"recordings"``: one value each, averaged over behaviors, then over individuals or recordings. ``"cells"``: the mean over all
        (recording, behavior) cells. Undefined values are excluded from every mean.
    background : bool
        Whether the mean over behaviors includes the background.
    spread : bool
        Whether this is the population standard deviation over individuals instead of their mean.
    behaviors : bool
        Whether the score is also reported for single behaviors.
    """

    name: str
    metric_name: str
    over: Over = "pooled"
    background: bool = False
    spread: bool = False
    behaviors: bool = True

    @property
    def metric(self) -> Metric:
        """The metric that is aggregated."""
        return get_metric(self.metric_name)

    @property
    def difference_bounds(self) -> tuple[float, float]:
        """Smallest and largest possible difference of two values."""
        low, high = self.metric.bounds
        return low - high, high - low


_metrics: dict[str, Metric] = {}


def register_metric(statistics: Statistics, **properties: Any) -> Callable[[Callable[[Array], Array]], Callable[[Array], Array]]:
    """Return a decorator that registers the value function of a metric.

    The metric is named ``module.function``. The first line of the function's docstring is its definition.

    Parameters
    ----------
    statistics : callable
        Computes the statistics of one recording.
    **properties
        Other attributes of `Metric`, such as ``best``, ``worst`` or ``symmetric``.

    Examples
    --------
    >>> def count_true_bouts(pair):
    ...     return sum_tracks(pair, 1, lambda track: [len(track.truth)])
    >>> @register_metric(count_true_bouts)
    ... def true_bouts(statistics):
    ...     "Number of true bouts."
    ...     return statistics[..., 0]
    >>> get_metric("base.true_bouts").definition
    'Number of true bouts.'
    >>> unregister_metric("base.true_bouts")
    """

    def register(value: Callable[[Array], Array]) -> Callable[[Array], Array]:
        name = f"{value.__module__.rpartition('.')[2]}.{value.__name__}"
        definition = (value.__doc__ or "").strip().split("\n")[0]
        _metrics[name] = Metric(name, statistics, value, definition=definition, **properties)
        return value

    return register


def get_metric(name: str) -> Metric:
    """Return a metric by its full name, ``family.function``."""
    if name not in _metrics and name not in all_metrics():
        raise NotFoundError(f"no metric {name!r}. Available: {', '.join(sorted(_metrics))}")
    return _metrics[name]


def all_metrics() -> dict[str, Metric]:
    """Return all metrics by name."""
    from ethobench.metrics.suites import suites

    for family in FAMILIES:
        import_module(f"ethobench.metrics.{family}")
    for suite in suites.names():
        suites[suite]  # imports the module, which registers the metrics of the suite
    return dict(sorted(_metrics.items()))


def unregister_metric(name: str) -> None:
    """Remove a metric, for instance one that a notebook registered for a trial."""
    _metrics.pop(name, None)


def sum_tracks(pair: AlignedPair, n_columns: int, count: Callable[[TrackPair], Sequence[float] | Array]) -> Array:
    """Sum the statistics of tracks by behavior.

    Parameters
    ----------
    pair : AlignedPair
    n_columns : int
        Number of statistics that `count` returns.
    count : callable
        Computes the statistics of one track.

    Returns
    -------
    array (n_behaviors, n_columns)
        Zeros for a behavior without observed frames.
    """
    table = np.zeros((len(pair.ethogram), n_columns))
    for track in pair.tracks:
        table[track.behavior] += count(track)
    return table


def ratio(numerator: Array, denominator: Array) -> Array:
    """Divide; NaN where the denominator is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(denominator == 0, np.nan, numerator / denominator))


def weighted_mean(sums: Array) -> Array:
    """Return the mean for ``(weighted sum, sum of weights)`` in the last axis."""
    return ratio(sums[..., 0], sums[..., 1])


def nanmean(values: Array) -> Array:
    """Return the mean over the last axis without NaN; NaN where all are."""
    defined = ~np.isnan(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(defined, values, 0).sum(axis=-1) / np.where(defined.any(axis=-1), defined.sum(axis=-1), np.nan))
