"""BEBE as its code computes it, including its quirks.

Samples with an unknown label are excluded. A prediction of "unknown", or none, counts as the first behavior. Precision,
recall and F1 of an individual are averaged over all behaviors of the ethogram. A behavior that the individual neither shows nor
is predicted to show has 1 in all scores; one that is predicted but not shown has precision 0 and recall 1;
one that is shown but never predicted has precision 1 and recall 0. Scores are means over individuals.

References
----------
Hoffman et al. (2024), A benchmark for computational analysis of animal behavior, using animal-borne tags, Movement Ecology 12, 78;
its code, github.com/earthspecies/BEBE.
"""

from __future__ import annotations

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.metrics.base import Array, Measure, ratio, register_metric
from ethobench.metrics.frames import homogeneity as _homogeneity
from ethobench.metrics.pairs import AlignedPair
from ethobench.metrics.suites import Suite, register_suite


def confusion(pair: AlignedPair) -> Array:
    """Count samples by true and predicted behavior; samples without a prediction count as the first behavior."""
    if not pair.exclusive:
        raise MismatchError(f"recording {pair.id!r}: behaviors overlap, but the suite bebe requires one behavior at a time")
    size = len(pair.ethogram)
    counts = np.array(pair.confusion[:size, :size])
    background = pair.ethogram.background
    if background is None:
        counts[:, 0] += pair.confusion[:size, size]
    elif not pair.pred.observed.is_complete(pair.pred.n_frames):
        unpredicted = iv.complement(pair.pred.observed.of_any(), pair.pred.n_frames)
        for track in pair.tracks:
            n_frames = iv.overlap(track.truth, unpredicted)
            counts[track.behavior, background] -= n_frames
            counts[track.behavior, 0] += n_frames
    return counts


def counts(pair: AlignedPair) -> Array:
    """Count true positives, false positives and false negatives of each behavior."""
    table = confusion(pair)
    correct = np.diag(table)
    return np.stack([correct, table.sum(axis=0) - correct, table.sum(axis=1) - correct], axis=-1)


def runs(pair: AlignedPair) -> Array:
    """Return the predicted seconds and number of bouts, and the true bouts' total seconds and number; shape (4,)."""
    predicted = pair.pred.merge_touching()
    seconds = (pair.truth.stop - pair.truth.start) / pair.rate
    published = pair.metadata.get("mean_overall_dur_sec")
    truth = (float(published), 1.0) if published else (float(seconds.sum()), float(len(seconds)))
    return np.array([pair.pred.n_frames / pair.rate, max(len(predicted), 1), *truth])


@register_metric(counts)
def precision(s: Array) -> Array:
    """Share of the predicted samples that are correct; 1 if none was predicted (BEBE)."""
    return _ratio_or_one(s[..., 0], s[..., 0] + s[..., 1])


@register_metric(counts)
def recall(s: Array) -> Array:
    """Share of the true samples that were predicted; 1 if there are none (BEBE)."""
    return _ratio_or_one(s[..., 0], s[..., 0] + s[..., 2])


@register_metric(counts, symmetric=True)
def f1(s: Array) -> Array:
    """Harmonic mean of precision and recall; 1 if the behavior is neither shown nor predicted (BEBE)."""
    return _ratio_or_one(2 * s[..., 0], 2 * s[..., 0] + s[..., 1] + s[..., 2])


@register_metric(counts)
def f1_present(s: Array) -> Array:
    """F1 of the behaviors that the individual shows; undefined for the others."""
    value = ratio(2 * s[..., 0], 2 * s[..., 0] + s[..., 1] + s[..., 2])
    return np.where(s[..., 0] + s[..., 2] > 0, value, np.nan)


@register_metric(runs, joint=True, best=np.inf)
def time_scale_ratio(s: Array) -> Array:
    """Mean duration of predicted bouts over that of true ones; below 1 the prediction is fragmented."""
    return ratio(ratio(s[..., 0], s[..., 1]), ratio(s[..., 2], s[..., 3]))


@register_metric(confusion, joint=True)
def homogeneity(s: Array) -> Array:
    """Share of the truth's entropy that the prediction explains (BEBE)."""
    return _homogeneity(s)


def _ratio_or_one(numerator: Array, denominator: Array) -> Array:
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
