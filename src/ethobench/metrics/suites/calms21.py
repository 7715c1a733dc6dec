"""CalMS21 / MABe 2021: frames of all recordings pooled, macro averages without the background.

A behavior that is in neither truth nor prediction is left out of the averages; average precision covers only behaviors in
the truth and follows scikit-learn, as the published figures do; ``map_binned`` is the paper's own definition, by ten thousand bins of
the scores. Precision is precision here: the published tables of the
first paper have precision and recall swapped. Behaviors exclude each other by definition: each frame of a `Prediction` has its most
probable behavior.
"""

from __future__ import annotations

import numpy as np

from ethobench.metrics.base import Array, ratio, register_metric
from ethobench.metrics.frames import counts
from ethobench.metrics.measures import Measure
from ethobench.metrics.suites.base import Suite, register_suite


@register_metric(counts)
def precision(s: Array) -> Array:
    """Share of the predicted frames that are right; 0 where the behavior is there but was never predicted (CalMS21)."""
    return _or_zero(s[..., 0], s[..., 0] + s[..., 1], s[..., 2])


@register_metric(counts)
def recall(s: Array) -> Array:
    """Share of the true frames that were found; 0 where the behavior was predicted but is not there (CalMS21)."""
    return _or_zero(s[..., 0], s[..., 0] + s[..., 2], s[..., 1])


def _or_zero(numerator: Array, denominator: Array, other: Array) -> Array:
    return np.where((denominator == 0) & (other > 0), 0.0, ratio(numerator, denominator))


@register_suite("calms21")
class Calms21(Suite):
    """Macro scores over the foreground."""

    title = "CalMS21: frames pooled over recordings, mean over behaviors but background"
    measures = (
        Measure("macro_f1", "frames.f1"),
        Measure("macro_precision", "calms21.precision"),
        Measure("macro_recall", "calms21.recall"),
        Measure("map", "probabilities.average_precision"),
        Measure("map_binned", "probabilities.binned_average_precision"),
    )
    headline = ("macro_f1", "macro_precision", "macro_recall", "map")
    exclusive = True
