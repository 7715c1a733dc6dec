"""Scores of single frames, counted from intervals.

Conventions
-----------
Only frames that the truth observed count; one that the prediction left unobserved is without behavior. Each behavior is a
yes-or-no question of its own, so behaviors may overlap. Precision, recall and F1 are undefined where nothing was predicted,
nothing was there, or neither; F1 is 0 on a total miss. Scores of all behaviors together (accuracy, kappa, MCC, mutual
information) need one behavior at a time and are undefined elsewhere.
"""

from __future__ import annotations

import numpy as np

from ethobench.core import intervals as iv
from ethobench.metrics.base import Array, per_behavior, ratio, register_metric
from ethobench.metrics.cases import Case, Track

COLUMNS = ("tp", "fp", "fn", "tn")


def counts(case: Case) -> Array:
    """Count true and false positives and negatives of each behavior."""
    if case.exclusive and case.merged and not case.truth.observed.tracks and not (case.both and case.pred.observed.tracks):
        size = len(case.ethogram)
        hits, true, guessed = np.diag(case.confusion), case.confusion.sum(axis=1), case.confusion.sum(axis=0)
        table = np.stack([hits, guessed - hits, true - hits, case.confusion.sum() - true - guessed + hits], axis=1)[:size]
        return np.where([[b.point] for b in case.ethogram], 0.0, table) if size else table
    return per_behavior(case, len(COLUMNS), _track_counts)


def _track_counts(track: Track) -> tuple[float, ...]:
    both, truth, pred = iv.overlap(track.truth, track.pred), iv.total(track.truth), iv.total(track.pred)
    return both, pred - both, truth - both, iv.total(track.seen) - truth - pred + both


def confusion(case: Case) -> Array:
    """Frames by true and predicted behavior."""
    return case.confusion


@register_metric(counts)
def precision(s: Array) -> Array:
    """Share of the predicted frames that are right."""
    return ratio(s[..., 0], s[..., 0] + s[..., 1])


@register_metric(counts)
def recall(s: Array) -> Array:
    """Share of the true frames that were found."""
    return ratio(s[..., 0], s[..., 0] + s[..., 2])


@register_metric(counts, symmetric=True)
def f1(s: Array) -> Array:
    """Harmonic mean of precision and recall; 0 where nothing was found, undefined where nothing was there or predicted."""
    return ratio(2 * s[..., 0], 2 * s[..., 0] + s[..., 1] + s[..., 2])


@register_metric(counts, symmetric=True)
def iou(s: Array) -> Array:
    """Frames of both over frames of either."""
    return ratio(s[..., 0], s[..., 0] + s[..., 1] + s[..., 2])


@register_metric(counts, symmetric=True, worst=-1.0)
def mcc(s: Array) -> Array:
    """Matthews correlation of one behavior against the rest; 0 where either side is constant."""
    return _correlation(_two_by_two(s))


@register_metric(counts, symmetric=True, worst=-1.0)
def kappa(s: Array) -> Array:
    """Cohen's kappa of one behavior against the rest: agreement beyond chance."""
    return _kappa(_two_by_two(s))


@register_metric(confusion, joint=True, symmetric=True)
def accuracy(s: Array) -> Array:
    """Share of the frames with the same behavior on both sides."""
    return ratio(np.trace(s, axis1=-2, axis2=-1), s.sum(axis=(-2, -1)))


@register_metric(confusion, joint=True, symmetric=True, worst=-1.0)
def mcc_all(s: Array) -> Array:
    """Matthews correlation of all behaviors together; 0 where either side is constant."""
    return _correlation(s)


@register_metric(confusion, joint=True, symmetric=True, worst=-1.0)
def kappa_all(s: Array) -> Array:
    """Cohen's kappa of all behaviors together: agreement beyond chance."""
    return _kappa(s)


@register_metric(confusion, joint=True, symmetric=True, best=np.inf)
def mutual_information(s: Array) -> Array:
    """Tell how much the prediction says of the truth, in nats."""
    return mutual_information_of(s)


@register_metric(confusion, joint=True)
def homogeneity(s: Array) -> Array:
    """Share of the truth's entropy that the prediction explains; 1 where the truth is constant."""
    share = ratio(s.sum(axis=-1), s.sum(axis=(-2, -1))[..., None])
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(np.where(share > 0, share * np.log(share), 0), axis=-1)
    explained = mutual_information_of(s)
    return np.where(np.isnan(explained), np.nan, np.where(entropy == 0, 1.0, ratio(explained, entropy)))


def mutual_information_of(s: Array) -> Array:
    """Mutual information of a contingency table in nats."""
    whole = s.sum(axis=(-2, -1), keepdims=True)
    joint = ratio(s, whole)
    expected = joint.sum(axis=-1, keepdims=True) * joint.sum(axis=-2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0, joint * np.log(joint / expected), 0)
    value = np.maximum(terms.sum(axis=(-2, -1)), 0)
    return np.where(np.isnan(joint).any(axis=(-2, -1)), np.nan, value)


def _two_by_two(s: Array) -> Array:
    tp, fp, fn, tn = (s[..., i] for i in range(4))
    return np.stack([np.stack([tp, fn], axis=-1), np.stack([fp, tn], axis=-1)], axis=-2)


def _correlation(s: Array) -> Array:
    """Correlate the rows and columns of contingency tables (Gorodkin's R_K)."""
    whole = s.sum(axis=(-2, -1))
    truth, pred = s.sum(axis=-1), s.sum(axis=-2)
    shared = np.trace(s, axis1=-2, axis2=-1) * whole - (truth * pred).sum(axis=-1)
    spread_truth = whole**2 - (truth**2).sum(axis=-1)
    spread_pred = whole**2 - (pred**2).sum(axis=-1)
    value = ratio(shared, np.sqrt(spread_truth) * np.sqrt(spread_pred))
    constant = (spread_truth == 0) | (spread_pred == 0)
    return np.where(whole == 0, np.nan, np.where(constant, 0.0, value))


def _kappa(s: Array) -> Array:
    whole = s.sum(axis=(-2, -1))
    by_chance = ratio((s.sum(axis=-1) * s.sum(axis=-2)).sum(axis=-1), whole)
    return ratio(np.trace(s, axis1=-2, axis2=-1) - by_chance, whole - by_chance)
