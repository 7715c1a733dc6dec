"""Scores of bouts: found or not, how well they overlap, how exact their borders are, whether they are whole.

Conventions
-----------
A bout is a maximal run of frames of one track; touching bouts are one, so that a score does not depend on whether a file
holds bouts or frames. Two bouts meet if they share a frame. They are matched one to one so that as many as possible are
matched and, among those ways, their overlap is greatest. Times are compared at starts and stops of matched bouts. Point
events have no length: they are matched one to one within half a second, and have no overlap, closeness or continuity.
"""

from __future__ import annotations

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals
from ethobench.metrics.base import Array, per_behavior, ratio, register_metric
from ethobench.metrics.cases import Case, PointTrack, Track
from ethobench.metrics.matching import count_matches, match_best, match_first, tiou

COLUMNS = (
    "truth",
    "pred",
    "matched",
    "tiou",
    "closeness_frames",
    "closeness_seconds",
    "continuity",
    "entered",
    "fragmented",
    "merged",
    "matched_50",
    "onset_distance",
    "offset_distance",
    "matched_spans",
)
TOLERANCE = 0.5
REACH = 5.0
WIDTH = 0.01
GROWTH = 1.02
NEAR, FAR = round(REACH / WIDTH), 700
BINS = 2 * (NEAR + FAR) + 1


def counts(case: Case) -> Array:
    """Count and sum over the bouts of each behavior, as `COLUMNS` says."""
    table = per_behavior(case, len(COLUMNS), lambda track: _track_sums(track, case.rate))
    for points in case.points:
        i, j = matched_points(points, case.rate)
        distance = np.abs(points.truth[i] - points.pred[j]).sum() / case.rate
        table[points.behavior, [0, 1, 2, 11, 12]] += len(points.truth), len(points.pred), len(i), distance, distance
    return table


def onsets(case: Case) -> Array:
    """Sort the start errors of matched bouts (seconds late) into bins: how many, and their sum, by bin.

    Bins are 10 ms wide up to 5 s, and grow by 2 % beyond.
    """
    return _shifts(case, onset=True)


def offsets(case: Case) -> Array:
    """Sort the stop errors of matched bouts, as `onsets` does the start errors."""
    return _shifts(case, onset=False)


def _shifts(case: Case, *, onset: bool) -> Array:
    table = np.zeros((len(case.ethogram), 2 * BINS))
    for track in case.tracks:
        i, j, _ = matched_pairs(track)
        late = track.pred.start[j] - track.truth.start[i] if onset else track.pred.stop[j] - track.truth.stop[i]
        table[track.behavior] += _sorted_in(late / case.rate)
    for points in case.points:
        i, j = matched_points(points, case.rate)
        table[points.behavior] += _sorted_in((points.pred[j] - points.truth[i]) / case.rate)
    return table


def _sorted_in(late: Array) -> Array:
    size = np.abs(late)
    with np.errstate(divide="ignore"):
        beyond = np.minimum(np.floor(np.log(size / REACH) / np.log(GROWTH)) + 1, FAR)
    steps = np.where(size <= REACH, np.floor(size / WIDTH + 0.5), NEAR + beyond)
    place = (NEAR + FAR + np.sign(late) * steps).astype(np.int64)
    return np.concatenate([np.bincount(place, minlength=BINS), np.bincount(place, weights=late, minlength=BINS)])


def matched_pairs(track: Track) -> tuple[IntArray, IntArray, Array]:
    """Return the matched pairs of a track (truth, pred) and their temporal intersection over union."""
    i, j = iv.overlapping_pairs(track.truth, track.pred)
    overlap = tiou(track.truth, track.pred, i, j)
    matched = match_best(i, j, overlap)
    return i[matched], j[matched], overlap[matched]


def matched_points(points: PointTrack, rate: float) -> tuple[IntArray, IntArray]:
    """Return the pairs of true and predicted events that lie within the tolerance."""
    reach = TOLERANCE * rate
    first = np.searchsorted(points.truth, points.pred - reach, side="left")
    last = np.searchsorted(points.truth, points.pred + reach, side="right") - 1
    chosen = match_first(first, last)
    return chosen[chosen >= 0], np.flatnonzero(chosen >= 0)


def switches(truth: Intervals, pred: Intervals) -> IntArray:
    """Count, for each true bout, how often the prediction switches between its first and last frame."""
    changes = np.stack((pred.start, pred.stop), axis=1).ravel()
    return np.searchsorted(changes, truth.stop, side="left") - np.searchsorted(changes, truth.start, side="right")


def _track_sums(track: Track, rate: float) -> tuple[float, ...]:
    truth, pred = track.truth, track.pred
    pair_i, pair_j = iv.overlapping_pairs(truth, pred)
    overlap = tiou(truth, pred, pair_i, pair_j)
    matched = match_best(pair_i, pair_j, overlap)
    i, j = pair_i[matched], pair_j[matched]
    onset, offset = np.abs(truth.start[i] - pred.start[j]), np.abs(truth.stop[i] - pred.stop[j])
    apart = onset + offset
    steps = truth.stop - truth.start - 1
    entered = (iv.overlap_with(truth, pred) > 0) & (steps > 0)
    whole = 1 - switches(truth, pred)[entered] / steps[entered]
    return (
        len(truth.start),
        len(pred.start),
        len(i),
        float(overlap[matched].sum()),
        float((1 / (1 + apart)).sum()),
        float((1 / (1 + apart / rate)).sum()),
        float(whole.sum()),
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
    """Harmonic mean of bout precision and recall; 0 where nothing was matched."""
    return ratio(2 * s[..., 2], s[..., 0] + s[..., 1])


@register_metric(counts, symmetric=True)
def f1_50(s: Array) -> Array:
    """F1 where only bouts that overlap by at least half of their union count as found."""
    return ratio(2 * s[..., 10], s[..., 0] + s[..., 1])


@register_metric(counts, symmetric=True)
def overlap(s: Array) -> Array:
    """Segment overlap: mean intersection over union of matched bouts."""
    return ratio(s[..., 3], s[..., 13])


@register_metric(counts, symmetric=True, rate_free=False)
def temporal_precision_frames(s: Array) -> Array:
    """Mean over matched bouts of 1 / (1 + start error + stop error), in frames as BANOS has it."""
    return ratio(s[..., 4], s[..., 13])


@register_metric(counts, symmetric=True)
def temporal_precision(s: Array) -> Array:
    """Mean over matched bouts of 1 / (1 + start error + stop error), errors in seconds."""
    return ratio(s[..., 5], s[..., 13])


@register_metric(counts, rate_free=False)
def continuity(s: Array) -> Array:
    """Mean over true bouts in which something was predicted of 1 - switches per frame step."""
    return ratio(s[..., 6], s[..., 7])


@register_metric(counts, best=0.0, worst=1.0)
def fragmented(s: Array) -> Array:
    """Share of the true bouts that meet several predicted ones."""
    return ratio(s[..., 8], s[..., 0])


@register_metric(counts, best=0.0, worst=1.0)
def merged(s: Array) -> Array:
    """Share of the predicted bouts that meet several true ones."""
    return ratio(s[..., 9], s[..., 1])


@register_metric(onsets, kind="histogram", best=0.0, worst=np.inf, signed=True, points=True)
def onset_error(s: Array) -> Array:
    """Median of how many seconds matched bouts start too late (negative: too early)."""
    return _median(s)


@register_metric(offsets, kind="histogram", best=0.0, worst=np.inf, signed=True, points=True)
def offset_error(s: Array) -> Array:
    """Median of how many seconds matched bouts stop too late (negative: too early)."""
    return _median(s)


@register_metric(counts, best=0.0, worst=np.inf, symmetric=True, points=True)
def onset_distance(s: Array) -> Array:
    """Mean distance in seconds between the starts of matched bouts."""
    return ratio(s[..., 11], s[..., 2])


@register_metric(counts, best=0.0, worst=np.inf, symmetric=True, points=True)
def offset_distance(s: Array) -> Array:
    """Mean distance in seconds between the stops of matched bouts."""
    return ratio(s[..., 12], s[..., 2])


def _median(s: Array) -> Array:
    """Take the median from bins of counts and sums: exact where a bin holds one value, as up to 5 s below 100 Hz."""
    count, total = s[..., :BINS], s[..., BINS:]
    half = count.sum(axis=-1, keepdims=True) / 2
    cumulative = np.cumsum(count, axis=-1)
    middles = []
    for below in (cumulative < half, cumulative <= half):
        place = np.minimum(below.sum(axis=-1, keepdims=True), BINS - 1)
        middles.append(ratio(np.take_along_axis(total, place, -1), np.take_along_axis(count, place, -1))[..., 0])
    return np.where(half[..., 0] == 0, np.nan, (middles[0] + middles[1]) / 2)
