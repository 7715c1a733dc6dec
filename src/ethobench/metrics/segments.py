"""Scores of segments as action detection knows them: thresholds of overlap, order of labels, borders within a tolerance.

Conventions
-----------
Segments are the bouts of each track (touching ones are one). F1@k follows Lea et al.: a predicted segment picks the true one
of its behavior that it overlaps best, and is right if that overlap reaches k % and nobody picked it before. The edit score
compares the order of the foreground segments of a recording, hour by hour. The intersection criterion follows PSDS: a prediction counts if
half of it lies in truth, a true segment is found if half of it is covered by predictions that count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import BoolArray, IntArray, Intervals
from ethobench.metrics.base import Array, mean_of, per_behavior, ratio, register_metric
from ethobench.metrics.cases import Case, Track
from ethobench.metrics.matching import lonely, match_first, tiou

THRESHOLDS = (0.10, 0.25, 0.50)
TOLERANCE = 0.5
INTERSECTION = 0.5
MAP_THRESHOLDS = tuple(k / 10 for k in range(1, 10))
CONFIDENCE_BINS = 100
HOUR = 3600


def counts(case: Case) -> Array:
    """Count segments of each behavior: true, predicted, right at 10, 25 and 50 %; borders; and the intersection criterion."""
    return per_behavior(case, 10, lambda track: _track_counts(track, case.rate))


def _track_counts(track: Track, rate: float) -> list[float]:
    truth, pred = track.truth, track.pred
    i, j = iv.overlapping_pairs(truth, pred)
    overlap = tiou(truth, pred, i, j)
    right = [_picked(i, j, overlap, threshold) for threshold in THRESHOLDS]
    borders = _borders(truth), _borders(pred)
    near = _within(borders[0], borders[1], TOLERANCE * rate)
    good = iv.overlap_with(pred, truth) >= INTERSECTION * (pred.stop - pred.start)
    kept = Intervals(pred.start[good], pred.stop[good])
    found = iv.overlap_with(truth, kept) >= INTERSECTION * (truth.stop - truth.start)
    return [len(truth.start), len(pred.start), *right, len(borders[0]), len(borders[1]), near, int(good.sum()), int(found.sum())]


def _picked(i: IntArray, j: IntArray, overlap: Array, threshold: float) -> int:
    """Count the true segments that some prediction overlaps best, and well enough."""
    if len(i) == 0:
        return 0
    order = np.lexsort((i, -overlap, j))
    best = order[np.concatenate(([True], j[order][1:] != j[order][:-1]))]
    return len(iv.boundaries(i[best][overlap[best] >= threshold]))


def _borders(a: Intervals) -> IntArray:
    return np.sort(np.concatenate((a.start, a.stop)))


def _within(truth: IntArray, pred: IntArray, tolerance: float) -> int:
    """Match borders one to one within a tolerance and count them."""
    first = np.searchsorted(truth, pred - tolerance, side="left")
    last = np.searchsorted(truth, pred + tolerance, side="right") - 1
    return int((match_first(first, last) >= 0).sum())


def order_rows(case: Case) -> Array:
    """Give the edit score of a recording and the weight 1, or 0 where neither side has a segment."""
    truth, pred = (_order(case, side) for side in ("truth", "pred"))
    distance = longest = 0
    for a, b in zip(truth, pred, strict=True):
        distance += levenshtein(a, b)
        longest += max(len(a), len(b))
    return np.array([1 - distance / longest, 1.0]) if longest else np.zeros(2)


def _order(case: Case, side: str) -> list[list[int]]:
    """List the behaviors of the foreground segments in order of time, hour by hour."""
    tracks = [track for track in case.tracks if track.behavior != case.ethogram.background]
    spans = [getattr(track, side) for track in tracks]
    start = np.concatenate([np.zeros(0, dtype=np.int64), *(s.start for s in spans)])
    code = np.repeat([track.behavior for track in tracks], [len(s.start) for s in spans]).astype(np.int64)
    order = np.lexsort((code, start))
    hour = case.rate * HOUR
    cuts = np.searchsorted(start[order], hour * np.arange(1, int(case.truth.n_frames / hour) + 1))
    return [part.tolist() for part in np.split(code[order], cuts)]


def levenshtein(a: Sequence[int], b: Sequence[int]) -> int:
    """Count the fewest insertions, deletions and replacements between two sequences (Myers 1999, one bit per item)."""
    if not a or not b:
        return len(a) or len(b)
    where: dict[int, int] = {}
    for place, item in enumerate(a):
        where[item] = where.get(item, 0) | 1 << place
    full, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    up, down, distance = full, 0, len(a)
    for item in b:
        equal = where.get(item, 0)
        vertical = equal | down
        horizontal = (((equal & up) + up) ^ up) | equal
        plus, minus = down | (full & ~(horizontal | up)), up & horizontal
        distance += bool(plus & last) - bool(minus & last)
        plus, minus = (plus << 1) | 1, minus << 1
        up = (minus | ~(vertical | plus)) & full
        down = plus & vertical & full
    return distance


def detections(case: Case) -> Array:
    """Sort predicted segments by confidence into 100 bins: at each of nine thresholds how many, and how many are right.

    Columns: the number of true segments, then for each threshold the bins of all, then of the right ones. Predictions
    without confidence all have confidence 1.
    """
    size = 1 + 2 * CONFIDENCE_BINS * len(MAP_THRESHOLDS)
    return per_behavior(case, size, lambda track: _track_detections(track, _confidence(case, track)))


def _confidence(case: Case, track: Track) -> Array:
    """Give each predicted segment the greatest confidence among the bouts that it is made of."""
    pred = case.pred
    if pred.confidence is None or len(track.pred.start) == 0:
        return np.ones(len(track.pred.start))
    mine = np.flatnonzero(case.mine(pred, track.behavior, track.subject, track.target) & (pred.stop > pred.start))
    i, j = iv.overlapping_pairs(track.pred, Intervals(pred.start[mine], pred.stop[mine]))
    highest = np.zeros(len(track.pred.start))
    np.maximum.at(highest, i, np.nan_to_num(pred.confidence[mine][j], nan=1.0))
    return np.clip(highest, 0, 1)


def _track_detections(track: Track, confidence: Array) -> Array:
    truth, pred = track.truth, track.pred
    i, j = iv.overlapping_pairs(truth, pred)
    overlap = tiou(truth, pred, i, j)
    bins = np.minimum((confidence * CONFIDENCE_BINS).astype(np.int64), CONFIDENCE_BINS - 1)
    everything = np.bincount(bins, minlength=CONFIDENCE_BINS)
    columns: list[IntArray] = [np.array([len(truth.start)])]
    alone = lonely(i, j)
    order = np.flatnonzero(~alone)
    order = order[np.lexsort((i[order], -overlap[order], -confidence[j[order]]))]
    for threshold in MAP_THRESHOLDS:
        enough = overlap >= threshold
        right = np.concatenate((j[alone & enough], _claimed(i[order], j[order], enough[order])))
        columns += [everything, np.bincount(bins[right], minlength=CONFIDENCE_BINS)]
    return np.concatenate(columns).astype(float)


def _claimed(i: IntArray, j: IntArray, enough: BoolArray) -> IntArray:
    """Let predictions, most confident first, claim the free true segment that they overlap best; return those that could."""
    taken: set[int] = set()
    served: set[int] = set()
    for segment, prediction, fits in zip(i.tolist(), j.tolist(), enough.tolist(), strict=True):
        if fits and segment not in taken and prediction not in served:
            taken.add(segment)
            served.add(prediction)
    return np.array(sorted(served), dtype=np.int64)


@register_metric(counts)
def f1_10(s: Array) -> Array:
    """F1@10: segments count as right from 10 % overlap on."""
    return ratio(2 * s[..., 2], s[..., 0] + s[..., 1])


@register_metric(counts)
def f1_25(s: Array) -> Array:
    """F1@25: segments count as right from 25 % overlap on."""
    return ratio(2 * s[..., 3], s[..., 0] + s[..., 1])


@register_metric(counts)
def f1_50(s: Array) -> Array:
    """F1@50: segments count as right from 50 % overlap on."""
    return ratio(2 * s[..., 4], s[..., 0] + s[..., 1])


@register_metric(counts, symmetric=True)
def boundary_f1(s: Array) -> Array:
    """F1 of starts and stops that lie within half a second of each other."""
    return ratio(2 * s[..., 7], s[..., 5] + s[..., 6])


@register_metric(counts)
def intersection_f1(s: Array) -> Array:
    """F1 by intersection: half of a prediction must lie in truth, half of a true segment must be covered."""
    right, found = ratio(s[..., 8], s[..., 1]), ratio(s[..., 9], s[..., 0])
    either = np.where(np.isnan(right) & np.isnan(found), np.nan, 0.0)
    precision, recall = np.where(np.isnan(right), either, right), np.where(np.isnan(found), either, found)
    return np.where(precision + recall == 0, either, ratio(2 * precision * recall, precision + recall))


@register_metric(order_rows, kind="rows", joint=True, symmetric=True)
def edit(s: Array) -> Array:
    """Edit score: how alike the order of segments is, whatever their length; mean over recordings."""
    return mean_of(s)


@register_metric(detections, kind="histogram")
def mean_average_precision(s: Array) -> Array:
    """Area under precision and recall of detections by confidence, mean over overlaps of 10 to 90 %."""
    shape = (*s.shape[:-1], len(MAP_THRESHOLDS), 2, CONFIDENCE_BINS)
    bins = s[..., 1:].reshape(shape)[..., ::-1]
    there = s[..., 0, None, None]
    everything, right = np.cumsum(bins[..., 0, :], axis=-1), np.cumsum(bins[..., 1, :], axis=-1)
    precision = np.nan_to_num(ratio(right, everything))
    highest = np.maximum.accumulate(precision[..., ::-1], axis=-1)[..., ::-1]
    gained = np.diff(ratio(right, there), axis=-1, prepend=0)
    area = (highest * gained).sum(axis=-1).mean(axis=-1)
    nothing = (s[..., 0] == 0) & (everything[..., 0, -1] > 0)
    return np.where(nothing, 0.0, area)
