"""Scores of predicted probabilities, before they are decoded into bouts: average precision, AUROC, calibration.

Conventions
-----------
Each behavior is a separate binary problem. A frame counts if the truth observed it and the model predicted a probability for it.
Average precision follows scikit-learn (one step for every distinct probability), AUROC counts ties as half. Both are exact for pooled
recordings; their intervals are computed from histograms with 1,000 bins. Both are undefined for a behavior that never occurs. The
calibration error compares the mean probability with the share of true frames in ten equal bins. `binned_average_precision` follows
the definition in the CalMS21 paper: 10,000 equal bins over the range of the probabilities.

References
----------
Average precision by bins: Sun et al. (2021), The Multi-Agent Behavior Dataset (CalMS21), NeurIPS Datasets and Benchmarks, equation 4.
AUROC: Hanley and McNeil (1982), Radiology 143, 29-36. Expected calibration error: Naeini, Cooper and Hauskrecht (2015), Obtaining well
calibrated probabilities using Bayesian binning, AAAI.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.metrics.base import Array, ratio, register_metric
from ethobench.metrics.pairs import AlignedPair

BINS = 1000
CALIBRATION_BINS = 10
PAPER_BINS = 10_000


@dataclass(frozen=True)
class Ranking:
    """Sorted probabilities of the frames with a behavior (`positive`), and of those without it (`negative`)."""

    positive: NDArray[np.floating]
    negative: NDArray[np.floating]

    @classmethod
    def sort(cls, scores: NDArray[np.floating], truth: NDArray[np.bool_]) -> Ranking:
        """Sort the probabilities of both kinds of frames."""
        positive, negative = scores[truth], scores[~truth]
        positive.sort()
        negative.sort()
        return cls(positive, negative)

    @cached_property
    def at_positives(self) -> tuple[NDArray[np.floating], Array, Array]:
        """The distinct probabilities of positives, and the numbers of positives and negatives at least as high."""
        first = np.concatenate(([True], self.positive[1:] != self.positive[:-1])) if len(self.positive) else np.zeros(0, dtype=bool)
        score = self.positive[first]
        above = len(self.positive) - np.flatnonzero(first)
        false = len(self.negative) - np.searchsorted(self.negative, score, side="left")
        return score, above.astype(float), false.astype(float)


def average_precision_of(ranking: Ranking) -> float:
    """Return the area under the precision-recall curve, with one step for each distinct probability."""
    if len(ranking.positive) == 0:
        return float("nan")
    _, above, false = ranking.at_positives
    equal = above - np.append(above[1:], 0)
    return float((equal * (above / (above + false))).sum() / len(ranking.positive))


def auroc_of(ranking: Ranking) -> float:
    """Return the probability that a random positive is ranked above a random negative; ties count as half."""
    if len(ranking.positive) == 0 or len(ranking.negative) == 0:
        return float("nan")
    score, above, not_below = ranking.at_positives
    equal = above - np.append(above[1:], 0)
    above_or_none = len(ranking.negative) - np.searchsorted(ranking.negative, score, side="right")
    below, ties = len(ranking.negative) - not_below, not_below - above_or_none
    return float((equal * (below + ties / 2)).sum() / len(ranking.positive) / len(ranking.negative))


def binned_average_precision_of(ranking: Ranking) -> float:
    """Return the average precision at 10,001 equally spaced thresholds from the lowest to the highest probability."""
    if len(ranking.positive) == 0:
        return float("nan")
    ends = [scores[[0, -1]] for scores in (ranking.positive, ranking.negative) if len(scores)]
    thresholds = np.linspace(min(e[0] for e in ends), max(e[1] for e in ends), PAPER_BINS + 1)
    correct = len(ranking.positive) - np.searchsorted(ranking.positive, thresholds, side="left")
    false = len(ranking.negative) - np.searchsorted(ranking.negative, thresholds, side="left")
    recall = correct / len(ranking.positive)
    precision = np.nan_to_num(ratio(correct.astype(float), (correct + false).astype(float)))
    return float((precision * (recall - np.append(recall[1:], 0))).sum())


def best_threshold_of(ranking: Ranking) -> tuple[float, float]:
    """Return the threshold with the highest frame F1, and that F1."""
    if len(ranking.positive) == 0:
        return float("nan"), float("nan")
    score, above, false = ranking.at_positives
    f1 = 2 * above / (above + false + len(ranking.positive))
    best = int(np.argmax(f1))
    return float(score[best]), float(f1[best])


def rank_frames(pairs: Sequence[AlignedPair], code: int) -> Ranking:
    """Pool the frames of all recordings and rank them by the probability of one behavior."""
    frames = [_counted_frames(pair, code) for pair in pairs]
    scores = frames[0][0] if len(frames) == 1 else np.concatenate([one[0] for one in frames])
    truth = frames[0][1] if len(frames) == 1 else np.concatenate([one[1] for one in frames])
    return Ranking.sort(scores, truth)


def _counted_frames(pair: AlignedPair, code: int) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Return the probabilities and the truth of the frames that count for one behavior, subjects pooled."""
    if pair.probabilities is None:
        return np.empty(0), np.empty(0, dtype=bool)
    scores = pair.probabilities[:, code]
    tracks = [track for track in pair.tracks if track.behavior == code]
    n = pair.truth.n_frames
    truth = iv.to_mask(iv.union_all([track.truth for track in tracks]), n)
    observed = iv.union_all([track.observed for track in tracks])
    if iv.total(observed) == n and not np.isnan(scores).any():
        return scores, truth
    keep = iv.to_mask(observed, n) & ~np.isnan(scores)
    return scores[keep], truth[keep]


def histogram(pair: AlignedPair) -> Array:
    """Count frames of each behavior by probability in 1,000 bins: true frames, other frames, and the sum of probabilities by bin."""
    table = np.zeros((len(pair.ethogram), 3 * BINS))
    if pair.probabilities is None:
        return np.full_like(table, np.nan)
    for code in range(len(pair.ethogram)):
        scores, truth = _counted_frames(pair, code)
        bins = np.clip((scores * BINS).astype(np.int64), 0, BINS - 1)
        table[code, :BINS] = np.bincount(bins[truth], minlength=BINS)
        table[code, BINS : 2 * BINS] = np.bincount(bins[~truth], minlength=BINS)
        table[code, 2 * BINS :] = np.bincount(bins, weights=scores, minlength=BINS)
    return table


@register_metric(histogram, kind="histogram", probabilistic=True, exact=average_precision_of)
def average_precision(s: Array) -> Array:
    """Area under the precision-recall curve."""
    correct, false = _cumulative_counts(s)
    precision = np.nan_to_num(ratio(correct, correct + false))
    steps = np.diff(correct, axis=-1, prepend=0)
    return ratio((precision * steps).sum(axis=-1), correct[..., -1])


@register_metric(histogram, kind="histogram", probabilistic=True, exact=binned_average_precision_of)
def binned_average_precision(s: Array) -> Array:
    """Area under the precision-recall curve at 10,000 equal bins over the range of probabilities, as defined in the CalMS21 paper."""
    return average_precision(s)


@register_metric(histogram, kind="histogram", probabilistic=True, exact=auroc_of)
def auroc(s: Array) -> Array:
    """Probability that a frame with the behavior is ranked above one without it (area under the ROC curve)."""
    positive, negative = s[..., :BINS], s[..., BINS : 2 * BINS]
    below = np.cumsum(negative, axis=-1) - negative / 2
    return ratio((positive * below).sum(axis=-1), positive.sum(axis=-1) * negative.sum(axis=-1))


@register_metric(histogram, kind="histogram", probabilistic=True, best=0.0, worst=1.0, distance=True)
def calibration_error(s: Array) -> Array:
    """Mean absolute difference of probability and share of true frames, over ten equal bins weighted by their frames."""
    true, frames, total = reliability(s)
    return ratio(np.nansum(np.abs(true - total), axis=-1), frames.sum(axis=-1))


@register_metric(histogram, kind="histogram", probabilistic=True, best=np.inf, exact=lambda ranking: best_threshold_of(ranking)[0])
def best_threshold(s: Array) -> Array:
    """Threshold with the highest frame F1."""
    correct, false = _cumulative_counts(s)
    f1 = ratio(2 * correct, correct + false + correct[..., -1:])
    best = np.argmax(np.nan_to_num(f1, nan=-1), axis=-1)
    return np.where(correct[..., -1] == 0, np.nan, (BINS - 1 - best) / BINS)


def reliability(s: Array) -> tuple[Array, Array, Array]:
    """Return the numbers of true and of all frames, and the sum of probabilities, in ten equal bins of probability."""
    positive, negative, total = (s[..., k * BINS : (k + 1) * BINS] for k in range(3))
    shape = (*s.shape[:-1], CALIBRATION_BINS, BINS // CALIBRATION_BINS)
    true = positive.reshape(shape).sum(axis=-1)
    return true, true + negative.reshape(shape).sum(axis=-1), total.reshape(shape).sum(axis=-1)


def _cumulative_counts(s: Array) -> tuple[Array, Array]:
    """Return cumulative numbers of true and other frames from the highest bin down."""
    positive, negative = s[..., :BINS], s[..., BINS : 2 * BINS]
    return np.cumsum(positive[..., ::-1], axis=-1), np.cumsum(negative[..., ::-1], axis=-1)
