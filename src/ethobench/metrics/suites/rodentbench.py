"""Rodent-Bench as its code computes it, including its quirks: one-second grid, means over recordings.

Its mAP sums, for overlap thresholds 0.1 to 0.9, precision times the change of recall from the previous threshold. Recall falls
as the threshold rises, so all terms but the first are negative or zero: the value lies between 0 and the product of precision
and recall at 0.1, and is not an area under a curve. `segments.mean_average_precision` is one.

References
----------
Rodent-Bench (2025); its code, github.com/ThomasHeap/freezing_mice, ``evaluate_predictions.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals
from ethobench.metrics.base import Array, Measure, register_metric, weighted_mean
from ethobench.metrics.matching import temporal_iou
from ethobench.metrics.pairs import AlignedPair
from ethobench.metrics.seconds import FILLER
from ethobench.metrics.suites import Suite, register_suite

if TYPE_CHECKING:
    from ethobench.metrics.scores import Scores

THRESHOLDS = tuple(k / 10 for k in range(1, 10))


def map_rows(pair: AlignedPair) -> Array:
    """Return the mAP of a recording, and weight 1."""
    return np.array([published_map(pair.truth, pair.pred), 1.0])


def published_map(truth: Annotation, pred: Annotation) -> float:
    """Return the mAP: each true segment, as listed, is matched to the first free prediction with its label and enough overlap."""
    i, j = iv.overlapping_pairs(Intervals(truth.start, truth.stop), Intervals(pred.start, pred.stop))
    overlap = temporal_iou(Intervals(truth.start, truth.stop), Intervals(pred.start, pred.stop), i, j)
    fits = (truth.behavior[i] == pred.behavior[j]) & (overlap >= THRESHOLDS[0])
    i, j, overlap = i[fits], j[fits], overlap[fits]
    listed = np.lexsort((pred.order[j], truth.order[i]))
    candidates: dict[int, list[tuple[int, float]]] = {}
    for segment, prediction, shared in zip(i[listed].tolist(), j[listed].tolist(), overlap[listed].tolist(), strict=True):
        candidates.setdefault(segment, []).append((prediction, shared))
    total, previous_recall = 0.0, 0.0
    for threshold in THRESHOLDS:
        matched: set[int] = set()
        for partners in candidates.values():
            free = next((k for k, iou in partners if iou >= threshold and k not in matched), None)
            if free is not None:
                matched.add(free)
        precision = len(matched) / len(pred) if len(pred) else 0.0
        recall = len(matched) / len(truth) if len(truth) else 0.0
        total += precision * (recall - previous_recall)
        previous_recall = recall
    return total


@register_metric(map_rows, kind="rows", joint=True)
def mean_average_precision(s: Array) -> Array:
    """Sum over overlap thresholds of precision times the change of recall (Rodent-Bench)."""
    return weighted_mean(s)


@register_suite("rodentbench")
class Rodentbench(Suite):
    """Second-by-second scores, and the published mAP."""

    title = "Rodent-Bench: seconds, averaged over recordings"
    measures = (
        Measure("accuracy", "seconds.accuracy", over="recordings"),
        Measure("macro_f1", "seconds.macro_f1", over="recordings"),
        Measure("map", "rodentbench.mean_average_precision", over="recordings"),
        Measure("mutual_information", "seconds.mutual_information", over="recordings"),
        Measure("mcc", "seconds.mcc", over="recordings"),
    )
    headline = ("accuracy", "macro_f1", "map", "mutual_information", "mcc")
    lengths = True
    labels = True


def entropy_weighted_mcc(scores: Mapping[str, Scores]) -> float:
    """Return the mean MCC of several datasets, weighted by the entropy of their labels times their seconds.

    Parameters
    ----------
    scores : mapping of str to Scores
        Datasets to scores of the suite ``rodentbench``. Weights are normalized over these datasets.
    """
    weights, values = [], []
    for one in scores.values():
        counts: dict[str, int] = {}
        for pair in one.pairs:
            for name, seconds in _label_seconds(pair.truth).items():
                counts[name] = counts.get(name, 0) + seconds
        total = sum(counts.values())
        share = np.array([c / total for c in counts.values() if c])
        weights.append((float(-(share * np.log(share)).sum()) + 1e-8) * total)
        values.append(one.overall["mcc"])
    return float(np.dot(weights, values) / sum(weights))


def _label_seconds(truth: Annotation) -> dict[str, int]:
    """Count seconds by label as the published weights do: a segment includes its last second (start <= second <= stop)."""
    last = int(truth.stop.max() / truth.rate) if len(truth) else 0
    labels = np.full(last + 1, len(truth.ethogram), dtype=np.int64)
    for i in np.argsort(truth.order, kind="stable")[::-1]:
        first, end = int(np.ceil(truth.start[i] / truth.rate)), int(np.floor(truth.stop[i] / truth.rate))
        labels[first : end + 1] = truth.behavior[i]
    names = [*truth.ethogram.names, FILLER]
    counts: dict[str, int] = {}
    for code, count in zip(*np.unique(labels, return_counts=True), strict=True):
        counts[names[code]] = counts.get(names[code], 0) + int(count)
    return counts
