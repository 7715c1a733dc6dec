"""BEBE as its code computes it, quirks included.

Samples whose label is unknown are left out. A prediction of "unknown", or none, counts as the first behavior. Precision,
recall and F1 of an individual are averaged over all behaviors of the ethogram; one that the individual neither shows nor
is predicted to show scores 1 in everything, one that it does not show but is predicted scores precision 0 and recall 1,
one that it shows but is never predicted precision 1 and recall 0. Figures are means over individuals.
"""

from __future__ import annotations

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.metrics.base import Array, ratio, register_metric
from ethobench.metrics.cases import Case
from ethobench.metrics.frames import homogeneity as _homogeneity
from ethobench.metrics.measures import Measure
from ethobench.metrics.suites.base import Suite, register_suite


def confusion(case: Case) -> Array:
    """Count samples by true and predicted behavior; what was not predicted is the first behavior."""
    if not case.exclusive:
        raise MismatchError(f"recording {case.id!r}: BEBE scores one behavior at a time, but here some overlap")
    size = len(case.ethogram)
    counts = np.array(case.confusion[:size, :size])
    background = case.ethogram.background
    if background is None:
        counts[:, 0] += case.confusion[:size, size]
    elif not case.pred.observed.is_complete(case.pred.n_frames):
        hidden = iv.complement(case.pred.observed.of_any(), case.pred.n_frames)
        for track in case.tracks:
            unseen = iv.overlap(track.truth, hidden)
            counts[track.behavior, background] -= unseen
            counts[track.behavior, 0] += unseen
    return counts


def counts(case: Case) -> Array:
    """Count true positives, false positives and false negatives of each behavior."""
    table = confusion(case)
    hits = np.diag(table)
    return np.stack([hits, table.sum(axis=0) - hits, table.sum(axis=1) - hits], axis=-1)


def runs(case: Case) -> Array:
    """Count predicted samples and bouts, and sum the true bouts' seconds and number."""
    predicted = case.pred.merge_touching()
    seconds = (case.truth.stop - case.truth.start) / case.rate
    known = case.metadata.get("mean_overall_dur_sec")
    truth = (float(known), 1.0) if known else (float(seconds.sum()), float(len(seconds)))
    return np.array([case.pred.n_frames / case.rate, max(len(predicted), 1), *truth])


@register_metric(counts)
def precision(s: Array) -> Array:
    """Share of the predicted samples that are right; 1 where none was predicted (BEBE)."""
    return _or_one(s[..., 0], s[..., 0] + s[..., 1])


@register_metric(counts)
def recall(s: Array) -> Array:
    """Share of the true samples that were found; 1 where there are none (BEBE)."""
    return _or_one(s[..., 0], s[..., 0] + s[..., 2])


@register_metric(counts, symmetric=True)
def f1(s: Array) -> Array:
    """Harmonic mean of precision and recall; 1 where a behavior is neither shown nor predicted (BEBE)."""
    return _or_one(2 * s[..., 0], 2 * s[..., 0] + s[..., 1] + s[..., 2])


@register_metric(counts)
def f1_present(s: Array) -> Array:
    """F1 of the behaviors that the individual shows; the others are left out."""
    value = ratio(2 * s[..., 0], 2 * s[..., 0] + s[..., 1] + s[..., 2])
    return np.where(s[..., 0] + s[..., 2] > 0, value, np.nan)


@register_metric(runs, joint=True, best=np.inf)
def time_scale_ratio(s: Array) -> Array:
    """Mean length of predicted bouts over that of true ones; below 1 the prediction is choppy."""
    return ratio(ratio(s[..., 0], s[..., 1]), ratio(s[..., 2], s[..., 3]))


@register_metric(confusion, joint=True)
def homogeneity(s: Array) -> Array:
    """Share of the truth's entropy that the prediction explains (BEBE)."""
    return _homogeneity(s)


def _or_one(numerator: Array, denominator: Array) -> Array:
    return np.where(denominator == 0, 1.0, ratio(numerator, denominator))


@register_suite("bebe")
class Bebe(Suite):
    """Frame scores by individual."""

    title = "BEBE: samples, averaged over individuals"
    measures = (
        Measure("f1", "bebe.f1", over="individuals", background=True),
        Measure("precision", "bebe.precision", over="individuals", background=True),
        Measure("recall", "bebe.recall", over="individuals", background=True),
        Measure("f1_std", "bebe.f1", over="individuals", background=True, spread=True),
        Measure("f1_pooled", "bebe.f1", background=True),
        Measure("f1_present", "bebe.f1_present", over="individuals", background=True),
        Measure("time_scale_ratio", "bebe.time_scale_ratio"),
        Measure("homogeneity", "bebe.homogeneity"),
    )
    headline = ("f1", "precision", "recall", "f1_std", "time_scale_ratio")
    exclusive = True
