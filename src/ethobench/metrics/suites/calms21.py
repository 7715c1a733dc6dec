"""CalMS21 / MABe 2021: frames of all recordings pooled, macro averages without the background.

A behavior that is in neither truth nor prediction is excluded from the averages. Average precision covers only behaviors in
the truth and follows scikit-learn, as the published values do; ``map_binned`` follows the definition in the paper, with 10,000 bins.
The tables of the first version of the paper have precision and recall swapped; here precision is precision. Behaviors exclude each
other by definition: each frame of a `Prediction` has its most probable behavior.

References
----------
Sun et al. (2021), The Multi-Agent Behavior Dataset: mouse dyadic social interactions, NeurIPS Datasets and Benchmarks,
arXiv:2104.02710; the baseline code of the challenge, AIcrowd's ``mab-e-baselines``.
"""

from __future__ import annotations

import numpy as np

from ethobench.metrics.base import Array, Measure, ratio, register_metric
from ethobench.metrics.frames import counts
from ethobench.metrics.suites import Suite, register_suite


@register_metric(counts)
def precision(s: Array) -> Array:
    """Share of the predicted frames that are correct; 0 if the behavior occurs but was never predicted (CalMS21)."""
    return _ratio_or_zero(s[..., 0], s[..., 0] + s[..., 1], s[..., 2])


@register_metric(counts)
def recall(s: Array) -> Array:
    """Share of the true frames that were predicted; 0 if the behavior was predicted but does not occur (CalMS21)."""
    return _ratio_or_zero(s[..., 0], s[..., 0] + s[..., 2], s[..., 1])


def _ratio_or_zero(numerator: Array, denominator: Array, other: Array) -> Array:
    return np.where((denominator == 0) & (other > 0), 0.0, ratio(numerator, denominator))


@register_suite("calms21")
class Calms21(Suite):
    """Macro scores over the foreground."""

    title = "CalMS21: frames pooled over recordings, mean over behaviors except background"
    measures = (
        Measure("macro_f1", "frames.f1"),
        Measure("macro_precision", "calms21.precision"),
        Measure("macro_recall", "calms21.recall"),
        Measure("map", "probabilities.average_precision"),
        Measure("map_binned", "probabilities.binned_average_precision"),
    )
    headline = ("macro_f1", "macro_precision", "macro_recall", "map")
    exclusive = True
