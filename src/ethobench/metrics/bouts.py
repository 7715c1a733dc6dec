"""Bout scores: detection, overlap, onset and offset errors, continuity.

Conventions
-----------
A bout is a maximal run of frames of one track; touching bouts are one, so that a score does not depend on whether a file
holds bouts or frames. Bouts are matched one to one: as many as possible of those that share a frame and, among all such matchings, the one
with the greatest total overlap. Onset and offset errors are those of matched bouts. Point
events have no duration: they are matched one to one within half a second, and have no overlap, temporal precision or continuity.

References
----------
Segment overlap (SO), temporal precision (TP) and intra-bout continuity (IC): Chindemi, Bellone and Girard (2025), From eye to AI
(BANOS), arXiv:2508.04255. The suite ``banos`` computes them as published; here they are computed over matched bouts and in seconds.
Fragmented and merged bouts: Ward, Lukowicz and Gellersen (2011), ACM Transactions on Intelligent Systems and Technology 2, 6.
"""

from __future__ import annotations

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals
from ethobench.metrics.base import Array, ratio, register_metric, sum_tracks
from ethobench.metrics.matching import count_matches, greedy_partners, match_best, temporal_iou
from ethobench.metrics.pairs import AlignedPair, PointPair, TrackPair

COLUMNS = (
    "truth",
    "pred",
    "matched",
    "temporal_iou",
    "precision_frames",
    "precision_seconds",
    "continuity",
    "entered",
    "fragmented",
    "merged",
    "matched_50",
    "onset_distance",
    "offset_distance",
    "matched_spans",
)
TOLERANCE = 0.5  # seconds between matched point events
FINE_REACH = 5.0  # seconds up to which bins of onset and offset errors have equal width
FINE_WIDTH = 0.01  # seconds
GROWTH = 1.02  # ratio of the widths of neighboring bins beyond FINE_REACH
N_FINE, N_COARSE = round(FINE_REACH / FINE_WIDTH), 700  # bins on either side of zero
N_BINS = 2 * (N_FINE + N_COARSE) + 1


def counts(pair: AlignedPair) -> Array:
    """Count and sum over the bouts of each behavior, shape (n_behaviors, n_columns); the columns are `COLUMNS`."""
    table = sum_tracks(pair, len(COLUMNS), lambda track: _track_sums(track, pair.rate))
    for points in pair.points:
        i, j = matched_points(points, pair.rate)
        distance = np.abs(points.truth[i] - points.pred[j]).sum() / pair.rate
        table[points.behavior, [0, 1, 2, 11, 12]] += len(points.truth), len(points.pred), len(i), distance, distance
    return table


def onsets(pair: AlignedPair) -> Array:
    """Count the onset errors of matched bouts (seconds late) in bins: the number in each bin, then the sum in each bin.

    Bins are 10 ms wide up to 5 s, and grow by 2 % each beyond.
    """
    return _boundary_errors(pair, onset=True)


def offsets(pair: AlignedPair) -> Array:
    """Count the offset errors of matched bouts in bins, as `onsets` does for onset errors."""
    return _boundary_errors(pair, onset=False)


def _boundary_errors(pair: AlignedPair, *, onset: bool) -> Array:
    table = np.zeros((len(pair.ethogram), 2 * N_BINS))
    for track in pair.tracks:
        i, j, _ = matched_pairs(track)
        late = track.pred.start[j] - track.truth.start[i] if onset else track.pred.stop[j] - track.truth.stop[i]
        table[track.behavior] += _histogram(late / pair.rate)
    for points in pair.points:
        i, j = matched_points(points, pair.rate)
        table[points.behavior] += _histogram((points.pred[j] - points.truth[i]) / pair.rate)
    return table


def _histogram(late: Array) -> Array:
    size = np.abs(late)
    with np.errstate(divide="ignore"):
        coarse = np.minimum(np.floor(np.log(size / FINE_REACH) / np.log(GROWTH)) + 1, N_COARSE)
    steps = np.where(size <= FINE_REACH, np.floor(size / FINE_WIDTH + 0.5), N_FINE + coarse)
    bins = (N_FINE + N_COARSE + np.sign(late) * steps).astype(np.int64)
    return np.concatenate([np.bincount(bins, minlength=N_BINS), np.bincount(bins, weights=late, minlength=N_BINS)])


def matched_pairs(track: TrackPair) -> tuple[IntArray, IntArray, Array]:
    """Return the indices of matched true and predicted bouts, and their temporal intersection over union."""
    i, j = iv.overlapping_pairs(track.truth, track.pred)
    overlap = temporal_iou(track.truth, track.pred, i, j)
    matched = match_best(i, j, overlap)
    return i[matched], j[matched], overlap[matched]


def matched_points(points: PointPair, rate: float) -> tuple[IntArray, IntArray]:
    """Return the indices of true and predicted events that are matched within the tolerance."""
    reach = TOLERANCE * rate
    first = np.searchsorted(points.truth, points.pred - reach, side="left")
    last = np.searchsorted(points.truth, points.pred + reach, side="right") - 1
    partners = greedy_partners(first, last)
    return partners[partners >= 0], np.flatnonzero(partners >= 0)


def switches(truth: Intervals, pred: Intervals) -> IntArray:
    """Count, for each true bout, how often the prediction changes between its first and last frame."""
    changes = np.stack((pred.start, pred.stop), axis=1).ravel()
    return np.searchsorted(changes, truth.stop, side="left") - np.searchsorted(changes, truth.start, side="right")


def _track_sums(track: TrackPair, rate: float) -> tuple[float, ...]:
    truth, pred = track.truth, track.pred
    pair_i, pair_j = iv.overlapping_pairs(truth, pred)
    overlap = temporal_iou(truth, pred, pair_i, pair_j)
    matched = match_best(pair_i, pair_j, overlap)
    i, j = pair_i[matched], pair_j[matched]
    onset, offset = np.abs(truth.start[i] - pred.start[j]), np.abs(truth.stop[i] - pred.stop[j])
    error = onset + offset
    steps = truth.stop - truth.start - 1
    entered = (iv.overlap_with(truth, pred) > 0) & (steps > 0)
    continuity = 1 - switches(truth, pred)[entered] / steps[entered]
    return (
        len(truth.start),
        len(pred.start),
        len(i),
        float(overlap[matched].sum()),
        float((1 / (1 + error)).sum()),
        float((1 / (1 + error / rate)).sum()),
        float(continuity.sum()),
        int(entered.sum()),
        int((np.bincount(pair_i, minlength=1) > 1).sum()),
        int((np.bincount(pair_j, minlength=1) > 1).sum()),
        count_matches(pair_i[overlap >= 0.5], pair_j[overlap >= 0.5]),
        float(onset.sum() / rate),
        float(offset.sum() / rate),
        len(i),
    )


@register_metric(counts, points=True)
def precision(s: Array) -> Array:
    """Share of the predicted bouts that were matched."""
    return ratio(s[..., 2], s[..., 1])


@register_metric(counts, points=True)
def recall(s: Array) -> Array:
    """Share of the true bouts that were matched."""
    return ratio(s[..., 2], s[..., 0])


@register_metric(counts, symmetric=True, points=True)
def f1(s: Array) -> Array:
    """Harmonic mean of bout precision and recall; 0 if nothing was matched."""
    return ratio(2 * s[..., 2], s[..., 0] + s[..., 1])


@register_metric(counts, symmetric=True)
def f1_50(s: Array) -> Array:
    """F1 of bouts, of which only those that overlap by at least half of their union are matched."""
    return ratio(2 * s[..., 10], s[..., 0] + s[..., 1])


@register_metric(counts, symmetric=True)
def overlap(s: Array) -> Array:
    """Segment overlap: mean intersection over union of matched bouts."""
    return ratio(s[..., 3], s[..., 13])


@register_metric(counts, symmetric=True, rate_free=False)
def temporal_precision_frames(s: Array) -> Array:
    """Mean over matched bouts of 1 / (1 + start error + stop error), errors in frames, as in BANOS."""
    return ratio(s[..., 4], s[..., 13])


@register_metric(counts, symmetric=True)
def temporal_precision(s: Array) -> Array:
    """Mean over matched bouts of 1 / (1 + start error + stop error), errors in seconds."""
    return ratio(s[..., 5], s[..., 13])


@register_metric(counts, rate_free=False)
def continuity(s: Array) -> Array:
    """Mean of 1 - switches per frame step, over true bouts in which the behavior was predicted at all."""
    return ratio(s[..., 6], s[..., 7])


@register_metric(counts, best=0.0, worst=1.0)
def fragmented(s: Array) -> Array:
    """Share of the true bouts that overlap several predicted ones."""
    return ratio(s[..., 8], s[..., 0])


@register_metric(counts, best=0.0, worst=1.0)
def merged(s: Array) -> Array:
    """Share of the predicted bouts that overlap several true ones."""
    return ratio(s[..., 9], s[..., 1])


@register_metric(onsets, kind="histogram", best=0.0, worst=np.inf, signed=True, points=True)
def onset_error(s: Array) -> Array:
    """Median onset error of matched bouts in seconds; positive is too late, negative too early."""
    return _median(s)


@register_metric(offsets, kind="histogram", best=0.0, worst=np.inf, signed=True, points=True)
def offset_error(s: Array) -> Array:
    """Median offset error of matched bouts in seconds; positive is too late, negative too early."""
    return _median(s)


@register_metric(counts, best=0.0, worst=np.inf, symmetric=True, points=True)
def onset_distance(s: Array) -> Array:
    """Mean absolute onset error of matched bouts in seconds."""
    return ratio(s[..., 11], s[..., 2])


@register_metric(counts, best=0.0, worst=np.inf, symmetric=True, points=True)
def offset_distance(s: Array) -> Array:
    """Mean absolute offset error of matched bouts in seconds."""
    return ratio(s[..., 12], s[..., 2])


def _median(s: Array) -> Array:
    """Return the median from counts and sums by bin; exact if a bin holds one value, as up to 5 s at 100 Hz or less."""
    count, total = s[..., :N_BINS], s[..., N_BINS:]
    half = count.sum(axis=-1, keepdims=True) / 2
    cumulative = np.cumsum(count, axis=-1)
    middles = []
    for below in (cumulative < half, cumulative <= half):
        bins = np.minimum(below.sum(axis=-1, keepdims=True), N_BINS - 1)
        middles.append(ratio(np.take_along_axis(total, bins, -1), np.take_along_axis(count, bins, -1))[..., 0])
    return np.where(half[..., 0] == 0, np.nan, (middles[0] + middles[1]) / 2)
