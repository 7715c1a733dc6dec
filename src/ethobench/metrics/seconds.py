"""Scores of whole seconds, by the rules of Rodent-Bench.

Conventions
-----------
A recording has the seconds 0, 1, ... up to the one in which the last segment of either side ends, that one included. A second
has the label of the first listed segment with start <= second < stop, and ``background`` where there is none. Segments are
taken as listed: they may overlap, touch, have no length, and name behaviors that the other side does not know. What was
observed plays no part. F1 is averaged over the labels that occur on either side, ``background`` left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation
from ethobench.metrics.base import Array, mean_of, ratio, register_metric
from ethobench.metrics.cases import Case
from ethobench.metrics.frames import accuracy as _accuracy
from ethobench.metrics.frames import mcc_all as _mcc
from ethobench.metrics.frames import mutual_information_of as _mutual_information

FILLER = "background"


def labels_by_second(annotation: Annotation, n_seconds: int) -> NDArray[np.int64]:
    """Return a code per second; ``len(ethogram)`` where no segment is."""
    labels = np.full(n_seconds, len(annotation.ethogram), dtype=np.int64)
    first = np.ceil(annotation.start / annotation.rate).astype(np.int64)
    last = np.ceil(annotation.stop / annotation.rate).astype(np.int64)
    for i in np.argsort(annotation.order, kind="stable")[::-1]:
        labels[first[i] : last[i]] = annotation.behavior[i]
    return labels


def table(case: Case) -> Array:
    """Count seconds by true and predicted label; the last label is ``background``."""
    ends = [int(a.stop.max() / a.rate) if len(a) else 0 for a in (case.truth, case.pred)]
    n_seconds = max(ends) + 1
    truth, pred = (labels_by_second(a, n_seconds) for a in (case.truth, case.pred))
    size = len(case.ethogram) + 1
    counts = np.zeros((size, size))
    np.add.at(counts, (truth, pred), 1)
    if FILLER in case.ethogram:
        code = case.ethogram.code(FILLER)
        counts[-1] += counts[code]
        counts[:, -1] += counts[:, code]
        counts[code], counts[:, code] = 0, 0
    return counts


def rows(case: Case) -> Array:
    """Give the four scores of a recording, each with the weight 1, or 0 where it is undefined."""
    counts = table(case)
    values = np.array([float(_accuracy(counts)), _macro_f1(counts), float(_mutual_information(counts)), float(_mcc(counts))])
    known = ~np.isnan(values)
    return np.stack([np.where(known, values, 0), known], axis=-1)


def _macro_f1(counts: Array) -> float:
    hits = np.diag(counts)
    either = counts.sum(axis=0) + counts.sum(axis=1)
    present = either > 0
    present[-1] = False
    return float(ratio(2 * hits, either)[present].mean()) if present.any() else 0.0


@register_metric(rows, kind="rows", joint=True, symmetric=True, rate_free=True)
def accuracy(s: Array) -> Array:
    """Share of the seconds with the same label on both sides."""
    return mean_of(s[..., 0, :])


@register_metric(rows, kind="rows", joint=True, symmetric=True)
def macro_f1(s: Array) -> Array:
    """F1 by seconds, averaged over the labels that occur on either side; ``background`` is left out."""
    return mean_of(s[..., 1, :])


@register_metric(rows, kind="rows", joint=True, symmetric=True, best=np.inf)
def mutual_information(s: Array) -> Array:
    """Tell how much the predicted label of a second says of the true one, in nats."""
    return mean_of(s[..., 2, :])


@register_metric(rows, kind="rows", joint=True, symmetric=True, worst=-1.0)
def mcc(s: Array) -> Array:
    """Matthews correlation of all labels by seconds, ``background`` included."""
    return mean_of(s[..., 3, :])
