"""What a metric is: statistics of one recording that add up, and a value made of their sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import NotFoundError
from ethobench.metrics.cases import Case, Track

Array: TypeAlias = NDArray[np.float64]
Statistics: TypeAlias = Callable[[Case], Array]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    name : str
        Unique: ``family.function``.
    statistics : callable
        Makes an array from a `Case`; arrays of several recordings are added. Shape (n_behaviors, n_columns) for metrics
        of single behaviors, any other shape for joint ones.
    value : callable
        Makes values from summed statistics, with any leading axes; NaN where undefined.
    kind : str
        ``"counts"``: additive; ``"histogram"``: additive over fixed bins; ``"rows"``: a value and its weight per recording,
        combined by mean.
    joint : bool
        Of all behaviors together, not of each.
    best, worst : float
        What a perfect prediction gets, and the other end (infinite where there is none).
    symmetric : bool
        Whether swapping the annotators leaves it unchanged.
    rate_free : bool
        Whether doubling the frame rate leaves it unchanged.
    probabilistic : bool
        Whether it needs probabilities.
    points : bool
        Whether it is defined for point events.
    signed : bool
        Whether values lie on both sides of the best one, as those of "too late" and "too early" do.
    distance : bool
        Whether it is the absolute difference of two pooled quantities, which may truly be 0 however large it comes out by chance.
    definition : str
        One sentence for people.
    exact : callable, optional
        Makes the pooled value of a behavior from its ranked scores, where sums cannot.
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
        """The name of the family, which is the name of its file."""
        return self.name.partition(".")[0]

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        return (-np.inf, np.inf) if self.signed else (min(self.best, self.worst), max(self.best, self.worst))

    @property
    def on_logit(self) -> bool:
        """Whether its interval is made on the logit scale, see `ethobench.metrics.bootstrap`."""
        return bool(np.isfinite(self.bounds).all()) and not self.distance


_metrics: dict[str, Metric] = {}


def register_metric(statistics: Statistics, **properties: Any) -> Callable[[Callable[[Array], Array]], Callable[[Array], Array]]:
    """Enrol a function that makes values from summed statistics; its docstring's first line is the definition."""

    def enrol(value: Callable[[Array], Array]) -> Callable[[Array], Array]:
        name = f"{value.__module__.rpartition('.')[2]}.{value.__name__}"
        definition = (value.__doc__ or "").strip().split("\n")[0]
        _metrics[name] = Metric(name, statistics, value, definition=definition, **properties)
        return value

    return enrol


def get_metric(name: str) -> Metric:
    """Return a metric by its full name, ``family.function``."""
    if name not in _metrics and name not in all_metrics():
        raise NotFoundError(f"no metric {name!r}; there are: {', '.join(sorted(_metrics))}")
    return _metrics[name]


def all_metrics() -> dict[str, Metric]:
    """Return all metrics by name."""
    from importlib import import_module

    from ethobench.metrics.suites import suites

    for family in FAMILIES:
        import_module(f"ethobench.metrics.{family}")
    for suite in suites.names():
        suites[suite]
    return dict(sorted(_metrics.items()))


FAMILIES = ("frames", "seconds", "bouts", "segments", "agreement", "probabilities", "budgets")


def per_behavior(case: Case, columns: int, of: Callable[[Track], Sequence[float] | Array]) -> Array:
    """Sum a track's statistics by behavior; a behavior that nobody looked at has zeros."""
    table = np.zeros((len(case.ethogram), columns))
    for track in case.tracks:
        table[track.behavior] += of(track)
    return table


def ratio(numerator: Array, denominator: Array) -> Array:
    """Divide, giving NaN where the denominator is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(denominator == 0, np.nan, numerator / denominator))


def mean_of(sums: Array) -> Array:
    """Make the mean of ``(sum, count)`` in the last axis."""
    return ratio(sums[..., 0], sums[..., 1])
