"""Frame scores: precision, recall, F1, agreement beyond chance and mutual information, counted from intervals.

Conventions
-----------
Only frames that the truth observed count. A frame that the prediction left unobserved is without behavior. Each behavior is a separate
binary problem, so behaviors may overlap. Precision is undefined if nothing was predicted, recall if the behavior does not occur,
F1 if neither; F1 is 0 if nothing was predicted correctly. Scores of all behaviors together (accuracy, kappa, MCC, mutual
information) require that behaviors exclude each other and are undefined otherwise.

References
----------
Precision, recall and F1: van Rijsbergen (1979), Information Retrieval. Intersection over union: Jaccard (1912), New Phytologist 11,
37-50. Kappa: Cohen (1960), Educational and Psychological Measurement 20, 37-46. Correlation of two classes: Matthews (1975),
Biochimica et Biophysica Acta 405, 442-451; of several: Gorodkin (2004), Computational Biology and Chemistry 28, 367-374. Mutual
information: Shannon (1948), Bell System Technical Journal 27, 379-423. Homogeneity: Rosenberg and Hirschberg (2007), EMNLP-CoNLL,
410-420.
"""

from __future__ import annotations

import numpy as np

from ethobench.core import intervals as iv
from ethobench.metrics.base import Array, ratio, register_metric, sum_tracks
from ethobench.metrics.pairs import AlignedPair, TrackPair

COLUMNS = ("tp", "fp", "fn", "tn")


def counts(pair: AlignedPair) -> Array:
    """Count true positives, false positives, false negatives and true negatives of each behavior, shape (n_behaviors, 4)."""
    equally_observed = not pair.truth.observed.tracks and not (pair.observed_by_both and pair.pred.observed.tracks)
    if pair.exclusive and pair.pool_subjects and equally_observed:  # the confusion matrix contains them, and is faster
        size, matrix = len(pair.ethogram), pair.confusion
        correct, true, predicted = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
        table = np.stack([correct, predicted - correct, true - correct, matrix.sum() - true - predicted + correct], axis=1)[:size]
        return np.where([[b.point] for b in pair.ethogram], 0.0, table) if size else table
    return sum_tracks(pair, len(COLUMNS), _track_counts)


def _track_counts(track: TrackPair) -> tuple[float, ...]:
    both, truth, pred = iv.overlap(track.truth, track.pred), iv.total(track.truth), iv.total(track.pred)
    return both, pred - both, truth - both, iv.total(track.observed) - truth - pred + both


def confusion(pair: AlignedPair) -> Array:
    """Count frames by true and predicted behavior."""
    return pair.confusion


@register_metric(counts)
def precision(s: Array) -> Array:
    """Share of the predicted frames that are correct."""
    return ratio(s[..., 0], s[..., 0] + s[..., 1])


@register_metric(counts)
def recall(s: Array) -> Array:
    """Share of the true frames that were predicted."""
    return ratio(s[..., 0], s[..., 0] + s[..., 2])


@register_metric(counts, symmetric=True)
def f1(s: Array) -> Array:
    """Harmonic mean of precision and recall; 0 if no frame is correct, undefined if the behavior is neither true nor predicted."""
    return ratio(2 * s[..., 0], 2 * s[..., 0] + s[..., 1] + s[..., 2])


@register_metric(counts, symmetric=True)
def iou(s: Array) -> Array:
    """Intersection over union of true and predicted frames."""
    return ratio(s[..., 0], s[..., 0] + s[..., 1] + s[..., 2])


@register_metric(counts, symmetric=True, worst=-1.0)
def mcc(s: Array) -> Array:
    """Matthews correlation of one behavior against the rest; 0 if either side is constant."""
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
    """Matthews correlation of all behaviors together; 0 if either side is constant."""
    return _correlation(s)


@register_metric(confusion, joint=True, symmetric=True, worst=-1.0)
def kappa_all(s: Array) -> Array:
    """Cohen's kappa of all behaviors together: agreement beyond chance."""
    return _kappa(s)


@register_metric(confusion, joint=True, symmetric=True, best=np.inf)
def mutual_information(s: Array) -> Array:
    """Mutual information of true and predicted behavior, in nats."""
    return contingency_information(s)


@register_metric(confusion, joint=True)
def homogeneity(s: Array) -> Array:
    """Share of the truth's entropy that the prediction explains; 1 if the truth is constant."""
    share = ratio(s.sum(axis=-1), s.sum(axis=(-2, -1))[..., None])
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(np.where(share > 0, share * np.log(share), 0), axis=-1)
    explained = contingency_information(s)
    return np.where(np.isnan(explained), np.nan, np.where(entropy == 0, 1.0, ratio(explained, entropy)))


def contingency_information(s: Array) -> Array:
    """Return the mutual information of contingency tables (..., n, n) in nats."""
    joint = ratio(s, s.sum(axis=(-2, -1), keepdims=True))
    expected = joint.sum(axis=-1, keepdims=True) * joint.sum(axis=-2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0, joint * np.log(joint / expected), 0)
    value = np.maximum(terms.sum(axis=(-2, -1)), 0)
    return np.where(np.isnan(joint).any(axis=(-2, -1)), np.nan, value)


def _two_by_two(s: Array) -> Array:
    tp, fp, fn, tn = (s[..., i] for i in range(4))
    return np.stack([np.stack([tp, fn], axis=-1), np.stack([fp, tn], axis=-1)], axis=-2)


def _correlation(s: Array) -> Array:
    """Return the correlation of rows and columns of contingency tables (Gorodkin's R_K)."""
    total = s.sum(axis=(-2, -1))
    truth, pred = s.sum(axis=-1), s.sum(axis=-2)
    covariance = np.trace(s, axis1=-2, axis2=-1) * total - (truth * pred).sum(axis=-1)
    true_variance = total**2 - (truth**2).sum(axis=-1)
    pred_variance = total**2 - (pred**2).sum(axis=-1)
    value = ratio(covariance, np.sqrt(true_variance) * np.sqrt(pred_variance))
    constant = (true_variance == 0) | (pred_variance == 0)
    return np.where(total == 0, np.nan, np.where(constant, 0.0, value))


def _kappa(s: Array) -> Array:
    total = s.sum(axis=(-2, -1))
    by_chance = ratio((s.sum(axis=-1) * s.sum(axis=-2)).sum(axis=-1), total)
    return ratio(np.trace(s, axis1=-2, axis2=-1) - by_chance, total - by_chance)
