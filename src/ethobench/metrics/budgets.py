"""Whether a prediction leads to the same conclusions: how long, how often, in what order, how soon.

Conventions
-----------
Shares are of the frames that were looked at. Distributions of bout durations are compared over 200 bins, evenly spaced in
the logarithm from 10 ms to 10,000 s. A transition leads from a bout to the next one of the same subject, background
included where it is a behavior. A behavior that does not occur in a recording has the recording's end as latency.
"""

from __future__ import annotations

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals
from ethobench.metrics.base import Array, mean_of, per_behavior, ratio, register_metric
from ethobench.metrics.cases import Case, Track

DURATION_BINS = 200
SHORTEST, LONGEST = 0.01, 10_000.0


def sums(case: Case) -> Array:
    """Sum for each behavior: seconds looked at, true, predicted; true and predicted bouts."""

    def of(track: Track) -> list[float]:
        seconds = [iv.total(a) / case.rate for a in (track.seen, track.truth, track.pred)]
        return [*seconds, len(track.truth.start), len(track.pred.start)]

    return per_behavior(case, 5, of)


def durations(case: Case) -> Array:
    """Sort the durations of true and of predicted bouts into bins."""
    return per_behavior(case, 2 * DURATION_BINS, lambda t: np.concatenate([_bins(t.truth, case.rate), _bins(t.pred, case.rate)]))


def _bins(a: Intervals, rate: float) -> Array:
    seconds = np.clip((a.stop - a.start) / rate, SHORTEST, LONGEST)
    place = np.log(seconds / SHORTEST) / np.log(LONGEST / SHORTEST) * (DURATION_BINS - 1)
    return np.bincount(np.round(place).astype(np.int64), minlength=DURATION_BINS).astype(float)


def transitions(case: Case) -> Array:
    """Count which behavior follows which, in the truth and in the prediction."""
    size = len(case.ethogram)
    counts = np.zeros((2, size, size))
    for which, side in enumerate(("truth", "pred")):
        for subject in {track.subject for track in case.tracks}:
            tracks = [track for track in case.tracks if track.subject == subject]
            spans = [getattr(track, side) for track in tracks]
            start = np.concatenate([np.zeros(0, dtype=np.int64), *(s.start for s in spans)])
            codes = np.repeat([track.behavior for track in tracks], [len(s.start) for s in spans]).astype(np.int64)
            order = codes[np.lexsort((codes, start))]
            changed = order[1:] != order[:-1]
            np.add.at(counts[which], (order[:-1][changed], order[1:][changed]), 1)
    return counts


def latencies(case: Case) -> Array:
    """Give for each behavior the distance between the first true and first predicted start in seconds, and the weight 1."""
    table = np.zeros((len(case.ethogram), 2))
    for code in range(len(case.ethogram)):
        tracks = [track for track in case.tracks if track.behavior == code]
        if any(len(t.truth.start) or len(t.pred.start) for t in tracks):
            end = case.truth.n_frames
            truth = min((int(t.truth.start[0]) for t in tracks if len(t.truth.start)), default=end)
            pred = min((int(t.pred.start[0]) for t in tracks if len(t.pred.start)), default=end)
            table[code] = abs(truth - pred) / case.rate, 1
    return table


@register_metric(sums, best=0.0, worst=1.0, symmetric=True, distance=True)
def time_error(s: Array) -> Array:
    """Distance between the predicted and the true share of time."""
    present = (s[..., 1] > 0) | (s[..., 2] > 0)
    return np.where(present, np.abs(ratio(s[..., 2] - s[..., 1], s[..., 0])), np.nan)


@register_metric(sums, best=0.0, worst=np.inf, distance=True)
def count_error(s: Array) -> Array:
    """Distance between the predicted and the true number of bouts, relative to the true one."""
    return np.abs(ratio(s[..., 4] - s[..., 3], s[..., 3]))


@register_metric(durations, kind="histogram", best=0.0, worst=1.0, symmetric=True, distance=True)
def duration_distance(s: Array) -> Array:
    """Kolmogorov-Smirnov distance between the durations of true and predicted bouts; undefined where a side has none."""
    parts = [s[..., :DURATION_BINS], s[..., DURATION_BINS:]]
    shares = [ratio(np.cumsum(p, axis=-1), p.sum(axis=-1, keepdims=True)) for p in parts]
    return np.asarray(np.abs(shares[0] - shares[1]).max(axis=-1))


@register_metric(transitions, joint=True, best=0.0, worst=1.0, distance=True)
def transition_distance(s: Array) -> Array:
    """Mean distance between what follows a behavior in the truth and in the prediction (total variation)."""
    truth, pred = s[..., 0, :, :], s[..., 1, :, :]
    shares = [np.nan_to_num(ratio(p, p.sum(axis=-1, keepdims=True))) for p in (truth, pred)]
    apart = np.abs(shares[0] - shares[1]).sum(axis=-1) / 2
    apart = np.where((truth.sum(axis=-1) > 0) & (pred.sum(axis=-1) == 0), 1.0, apart)
    weight = truth.sum(axis=-1)
    return ratio((apart * weight).sum(axis=-1), weight.sum(axis=-1))


@register_metric(latencies, kind="rows", best=0.0, worst=np.inf, symmetric=True)
def latency_error(s: Array) -> Array:
    """Mean distance in seconds between the first true and the first predicted bout of a recording."""
    return mean_of(s)
