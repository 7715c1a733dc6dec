"""Segment scores of action segmentation and detection: F1 at overlap thresholds, edit score, boundaries, mean average precision.

Conventions
-----------
Segments are the bouts of each track (touching ones are one). F1@k: each predicted segment selects the true one
of its behavior that it overlaps best, and is correct if that overlap reaches k % and no earlier prediction selected the same. The
edit score compares the order of the foreground segments of a recording, hour by hour. Intersection F1: a prediction counts if
half of it lies in true segments, a true segment is detected if half of it is covered by predictions that count.

References
----------
F1@k and edit score: Lea, Flynn, Vidal, Reiter and Hager (2017), Temporal convolutional networks for action segmentation and detection,
CVPR. Edit distance by bit vectors: Myers (1999), Journal of the ACM 46, 395-415. Mean average precision over
overlaps: Caba Heilbron, Escorcia, Ghanem and Niebles (2015), ActivityNet, CVPR. Intersection criterion: Bilen, Ferroni, Tuveri,
Azcarreta and Krstulovic (2020), A framework for the robust evaluation of sound event detection (PSDS), ICASSP. Boundaries within a
tolerance: Mesaros, Heittola and Virtanen (2016), Metrics for polyphonic sound event detection, Applied Sciences 6, 162.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import BoolArray, IntArray, Intervals
from ethobench.metrics.base import Array, ratio, register_metric, sum_tracks, weighted_mean
from ethobench.metrics.matching import greedy_partners, isolated_pairs, temporal_iou
from ethobench.metrics.pairs import AlignedPair, TrackPair

THRESHOLDS = (0.10, 0.25, 0.50)  # overlap
TOLERANCE = 0.5  # seconds between matched boundaries
INTERSECTION = 0.5
MAP_THRESHOLDS = tuple(k / 10 for k in range(1, 10))
CONFIDENCE_BINS = 100
HOUR = 3600  # seconds


def counts(pair: AlignedPair) -> Array:
    """Count segments of each behavior, shape (n_behaviors, 10).

    Columns: true, predicted, correct at 10, 25 and 50 %; true, predicted and matched boundaries; predicted and true segments that meet
    the intersection criterion.
    """
    return sum_tracks(pair, 10, lambda track: _track_counts(track, pair.rate))


def _track_counts(track: TrackPair, rate: float) -> list[float]:
    truth, pred = track.truth, track.pred
    i, j = iv.overlapping_pairs(truth, pred)
    overlap = temporal_iou(truth, pred, i, j)
    correct = [_count_selected(i, j, overlap, threshold) for threshold in THRESHOLDS]
    true_boundaries, pred_boundaries = _boundaries(truth), _boundaries(pred)
    n_matched = _count_within(true_boundaries, pred_boundaries, TOLERANCE * rate)
    counted = iv.overlap_with(pred, truth) >= INTERSECTION * (pred.stop - pred.start)
    detected = iv.overlap_with(truth, Intervals(pred.start[counted], pred.stop[counted])) >= INTERSECTION * (truth.stop - truth.start)
    n_boundaries = len(true_boundaries), len(pred_boundaries)
    return [len(truth.start), len(pred.start), *correct, *n_boundaries, n_matched, int(counted.sum()), int(detected.sum())]


def _count_selected(i: IntArray, j: IntArray, overlap: Array, threshold: float) -> int:
    """Count the true segments that a prediction overlaps best, and by at least the threshold."""
    if len(i) == 0:
        return 0
    order = np.lexsort((i, -overlap, j))
    best = order[np.concatenate(([True], j[order][1:] != j[order][:-1]))]
    return len(iv.boundaries(i[best][overlap[best] >= threshold]))


def _boundaries(a: Intervals) -> IntArray:
    return np.sort(np.concatenate((a.start, a.stop)))


def _count_within(truth: IntArray, pred: IntArray, tolerance: float) -> int:
    """Match boundaries one to one within a tolerance and count them."""
    first = np.searchsorted(truth, pred - tolerance, side="left")
    last = np.searchsorted(truth, pred + tolerance, side="right") - 1
    return int((greedy_partners(first, last) >= 0).sum())


def order_rows(pair: AlignedPair) -> Array:
    """Return the edit score of a recording with weight 1, or 0 if neither side has a segment; shape (2,)."""
    distance = longest = 0
    for a, b in zip(_behavior_sequences(pair, "truth"), _behavior_sequences(pair, "pred"), strict=True):
        distance += levenshtein(a, b)
        longest += max(len(a), len(b))
    return np.array([1 - distance / longest, 1.0]) if longest else np.zeros(2)


def _behavior_sequences(pair: AlignedPair, side: str) -> list[list[int]]:
    """Return the behaviors of the foreground segments in order of time, one list for each hour."""
    tracks = [track for track in pair.tracks if track.behavior != pair.ethogram.background]
    spans = [getattr(track, side) for track in tracks]
    start = np.concatenate([np.zeros(0, dtype=np.int64), *(s.start for s in spans)])
    code = np.repeat([track.behavior for track in tracks], [len(s.start) for s in spans]).astype(np.int64)
    order = np.lexsort((code, start))
    hour = pair.rate * HOUR
    cuts = np.searchsorted(start[order], hour * np.arange(1, int(pair.truth.n_frames / hour) + 1))
    return [codes.tolist() for codes in np.split(code[order], cuts)]


def levenshtein(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the smallest number of insertions, deletions and substitutions between two sequences (Myers 1999, one bit per item)."""
    if not a or not b:
        return len(a) or len(b)
    positions: dict[int, int] = {}
    for k, item in enumerate(a):
        positions[item] = positions.get(item, 0) | 1 << k
    full, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    up, down, distance = full, 0, len(a)
    for item in b:
        equal = positions.get(item, 0)
        vertical = equal | down
        horizontal = (((equal & up) + up) ^ up) | equal
        plus, minus = down | (full & ~(horizontal | up)), up & horizontal
        distance += bool(plus & last) - bool(minus & last)
        plus, minus = (plus << 1) | 1, minus << 1
        up = (minus | ~(vertical | plus)) & full
        down = plus & vertical & full
    return distance


def detections(pair: AlignedPair) -> Array:
    """Count predicted segments by confidence in 100 bins, for each of nine overlap thresholds: all of them, and the correct ones.

    Columns: the number of true segments, then for each threshold the bins of all predictions, then those of the correct ones. Predictions
    without confidence have confidence 1.
    """
    size = 1 + 2 * CONFIDENCE_BINS * len(MAP_THRESHOLDS)
    return sum_tracks(pair, size, lambda track: _track_detections(track, _confidence(pair, track)))


def _confidence(pair: AlignedPair, track: TrackPair) -> Array:
    """Return for each predicted segment the greatest confidence of the bouts that it was merged from."""
    pred = pair.pred
    if pred.confidence is None or len(track.pred.start) == 0:
        return np.ones(len(track.pred.start))
    chosen = np.flatnonzero(pair.select_bouts(pred, track.behavior, track.subject, track.target) & (pred.stop > pred.start))
    i, j = iv.overlapping_pairs(track.pred, Intervals(pred.start[chosen], pred.stop[chosen]))
    highest = np.zeros(len(track.pred.start))
    np.maximum.at(highest, i, np.nan_to_num(pred.confidence[chosen][j], nan=1.0))
    return np.clip(highest, 0, 1)


def _track_detections(track: TrackPair, confidence: Array) -> Array:
    truth, pred = track.truth, track.pred
    i, j = iv.overlapping_pairs(truth, pred)
    overlap = temporal_iou(truth, pred, i, j)
    bins = np.minimum((confidence * CONFIDENCE_BINS).astype(np.int64), CONFIDENCE_BINS - 1)
    totals = np.bincount(bins, minlength=CONFIDENCE_BINS)
    columns: list[IntArray] = [np.array([len(truth.start)])]
    isolated = isolated_pairs(i, j)
    order = np.flatnonzero(~isolated)
    order = order[np.lexsort((i[order], -overlap[order], -confidence[j[order]]))]
    for threshold in MAP_THRESHOLDS:
        enough = overlap >= threshold
        correct = np.concatenate((j[isolated & enough], _assign_by_confidence(i[order], j[order], enough[order])))
        columns += [totals, np.bincount(bins[correct], minlength=CONFIDENCE_BINS)]
    return np.concatenate(columns).astype(float)


def _assign_by_confidence(i: IntArray, j: IntArray, enough: BoolArray) -> IntArray:
    """Assign to each prediction, most confident first, the free true segment that it overlaps best; return those that get one."""
    assigned_truth: set[int] = set()
    assigned_pred: set[int] = set()
    for segment, prediction, fits in zip(i.tolist(), j.tolist(), enough.tolist(), strict=True):
        if fits and segment not in assigned_truth and prediction not in assigned_pred:
            assigned_truth.add(segment)
            assigned_pred.add(prediction)
    return np.array(sorted(assigned_pred), dtype=np.int64)


@register_metric(counts)
def f1_10(s: Array) -> Array:
    """F1@10: segments are correct from 10 % overlap on."""
    return ratio(2 * s[..., 2], s[..., 0] + s[..., 1])


@register_metric(counts)
def f1_25(s: Array) -> Array:
    """F1@25: segments are correct from 25 % overlap on."""
    return ratio(2 * s[..., 3], s[..., 0] + s[..., 1])


@register_metric(counts)
def f1_50(s: Array) -> Array:
    """F1@50: segments are correct from 50 % overlap on."""
    return ratio(2 * s[..., 4], s[..., 0] + s[..., 1])


@register_metric(counts, symmetric=True)
def boundary_f1(s: Array) -> Array:
    """F1 of starts and stops, which match within half a second."""
    return ratio(2 * s[..., 7], s[..., 5] + s[..., 6])


@register_metric(counts)
def intersection_f1(s: Array) -> Array:
    """F1 by intersection: half of a prediction must lie in true segments, half of a true segment must be covered."""
    precision, recall = ratio(s[..., 8], s[..., 1]), ratio(s[..., 9], s[..., 0])
    zero = np.where(np.isnan(precision) & np.isnan(recall), np.nan, 0.0)
    precision, recall = np.where(np.isnan(precision), zero, precision), np.where(np.isnan(recall), zero, recall)
    return np.where(precision + recall == 0, zero, ratio(2 * precision * recall, precision + recall))


@register_metric(order_rows, kind="rows", joint=True, symmetric=True)
def edit(s: Array) -> Array:
    """Edit score: similarity of the order of segments, whatever their duration; mean over recordings."""
    return weighted_mean(s)


@register_metric(detections, kind="histogram")
def mean_average_precision(s: Array) -> Array:
    """Area under the precision-recall curve of detections by confidence, mean over overlap thresholds of 10 to 90 %."""
    shape = (*s.shape[:-1], len(MAP_THRESHOLDS), 2, CONFIDENCE_BINS)
    bins = s[..., 1:].reshape(shape)[..., ::-1]
    n_true = s[..., 0, None, None]
    predicted, correct = np.cumsum(bins[..., 0, :], axis=-1), np.cumsum(bins[..., 1, :], axis=-1)
    precision = np.nan_to_num(ratio(correct, predicted))
    interpolated = np.maximum.accumulate(precision[..., ::-1], axis=-1)[..., ::-1]
    recall_steps = np.diff(ratio(correct, n_true), axis=-1, prepend=0)
    area = (interpolated * recall_steps).sum(axis=-1).mean(axis=-1)
    only_predicted = (s[..., 0] == 0) & (predicted[..., 0, -1] > 0)
    return np.where(only_predicted, 0.0, area)
