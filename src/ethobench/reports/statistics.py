"""The statistics behind a figure, pooled over recordings, where they are at hand."""

from __future__ import annotations

from ethobench.metrics import Scores
from ethobench.metrics.base import Array, Measure


def pooled(scores: Scores, metric: str) -> Array | None:
    """Sum the statistics that a metric is made of over recordings.

    Scores that were brought together from a store hold the statistics of their suite only; for others there is None.
    """
    measure = Measure(metric, metric)
    held = bool(scores.pairs) or any(m.metric.statistics is measure.metric.statistics for m in scores.suite.measures)
    return scores.statistics(measure).sum(axis=0) if held else None
