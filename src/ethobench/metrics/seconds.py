"""Second-by-second scores, by the rules of Rodent-Bench.

Conventions
-----------
A recording has the seconds 0, 1, ... up to the second in which the last segment of either side ends, inclusive. A second
has the label of the first listed segment with start <= second < stop, and ``background`` if there is none. Segments are
used as listed: they may overlap, touch, have no length, and have labels that the other side lacks. Unobserved frames are not
distinguished. F1 is averaged over the labels that occur on either side, except ``background``.

References
----------
Rodent-Bench (2025); its code, github.com/ThomasHeap/freezing_mice, ``evaluate_predictions.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation
from ethobench.metrics.base import Array, ratio, register_metric, weighted_mean
from ethobench.metrics.frames import accuracy as _accuracy
from ethobench.metrics.frames import contingency_information as _mutual_information
from ethobench.metrics.frames import mcc_all as _mcc
from ethobench.metrics.pairs import AlignedPair

FILLER = "background"  # label of a second without any segment


def labels_by_second(annotation: Annotation, n_seconds: int) -> NDArray[np.int64]:
    """Return the behavior code of each second; ``len(ethogram)`` if there is no segment."""
    labels = np.full(n_seconds, len(annotation.ethogram), dtype=np.int64)
    first = np.ceil(annotation.start / annotation.rate).astype(np.int64)
    last = np.ceil(annotation.stop / annotation.rate).astype(np.int64)
    for i in np.argsort(annotation.order, kind="stable")[::-1]:
        labels[first[i] : last[i]] = annotation.behavior[i]
    return labels


def table(pair: AlignedPair) -> Array:
    """Count seconds by true and predicted label; the last label is ``background``."""
    ends = [int(a.stop.max() / a.rate) if len(a) else 0 for a in (pair.truth, pair.pred)]
    n_seconds = max(ends) + 1
    truth, pred = (labels_by_second(a, n_seconds) for a in (pair.truth, pair.pred))
    size = len(pair.ethogram) + 1
    counts = np.zeros((size, size))
    np.add.at(counts, (truth, pred), 1)
    if FILLER in pair.ethogram:
        code = pair.ethogram.code(FILLER)
        counts[-1] += counts[code]
        counts[:, -1] += counts[:, code]
        counts[code], counts[:, code] = 0, 0
    return counts


def rows(pair: AlignedPair) -> Array:
    """Return the four scores of a recording, each with weight 1, or 0 if it is undefined; shape (4, 2)."""
    counts = table(pair)
    values = np.array([float(_accuracy(counts)), _macro_f1(counts), float(_mutual_information(counts)), float(_mcc(counts))])
    defined = ~np.isnan(values)
    return np.stack([np.where(defined, values, 0), defined], axis=-1)


def _macro_f1(counts: Array) -> float:
    correct = np.diag(counts)
    either = counts.sum(axis=0) + counts.sum(axis=1)
    present = either > 0
    present[-1] = False
    return float(ratio(2 * correct, either)[present].mean()) if present.any() else 0.0


@register_metric(rows, kind="rows", joint=True, symmetric=True, rate_free=True)
def accuracy(s: Array) -> Array:
    """Share of the seconds with the same label on both sides."""
    return weighted_mean(s[..., 0, :])


@register_metric(rows, kind="rows", joint=True, symmetric=True)
def macro_f1(s: Array) -> Array:
    """F1 by seconds, averaged over the labels that occur on either side, except ``background``."""
    return weighted_mean(s[..., 1, :])


@register_metric(rows, kind="rows", joint=True, symmetric=True, best=np.inf)
def mutual_information(s: Array) -> Array:
    """Mutual information of the true and predicted labels of seconds, in nats."""
    return weighted_mean(s[..., 2, :])


@register_metric(rows, kind="rows", joint=True, symmetric=True, worst=-1.0)
def mcc(s: Array) -> Array:
    """Matthews correlation of all labels by seconds, including ``background``."""
    return weighted_mean(s[..., 3, :])
