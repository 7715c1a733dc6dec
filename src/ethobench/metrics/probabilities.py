"""Scores of probabilities, before any decision.

Conventions
-----------
Each behavior is a yes-or-no question of its own; frames count where the truth observed it and the model gave a probability.
Average precision is scikit-learn's (a step for every distinct score), AUROC counts ties as half. Both are exact for pooled
recordings; their intervals come from 1,000 bins. A behavior that never occurs has neither. The calibration error compares
the mean probability with the share of true frames in ten equal bins. CalMS21's text defines average precision over 10,000
equal bins of the score's range, which `binned_average_precision` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.metrics.base import Array, ratio, register_metric
from ethobench.metrics.cases import Case

BINS = 1000
CALIBRATION_BINS = 10
PAPER_BINS = 10_000


@dataclass(frozen=True)
class Ranking:
    """Sorted scores of the frames in which a behavior goes on, and of those in which it does not."""

    positive: NDArray[np.floating]
    negative: NDArray[np.floating]

    @classmethod
    def of(cls, scores: NDArray[np.floating], truth: NDArray[np.bool_]) -> Ranking:
        """Sort the scores of both kinds of frames."""
        positive, negative = scores[truth], scores[~truth]
        positive.sort()
        negative.sort()
        return cls(positive, negative)

    @cached_property
    def at_positives(self) -> tuple[NDArray[np.floating], Array, Array]:
        """The distinct scores of positives, and how many positives and negatives score at least as high."""
        first = np.concatenate(([True], self.positive[1:] != self.positive[:-1])) if len(self.positive) else np.zeros(0, dtype=bool)
        score = self.positive[first]
        above = len(self.positive) - np.flatnonzero(first)
        false = len(self.negative) - np.searchsorted(self.negative, score, side="left")
        return score, above.astype(float), false.astype(float)


def average_precision_of(ranking: Ranking) -> float:
    """Area under the precision-recall steps, one for each distinct score."""
    if len(ranking.positive) == 0:
        return float("nan")
    _, above, false = ranking.at_positives
    equal = above - np.append(above[1:], 0)
    return float((equal * (above / (above + false))).sum() / len(ranking.positive))


def auroc_of(ranking: Ranking) -> float:
    """Probability that a random positive scores above a random negative; ties count as half."""
    if len(ranking.positive) == 0 or len(ranking.negative) == 0:
        return float("nan")
    score, above, not_below = ranking.at_positives
    equal = above - np.append(above[1:], 0)
    above_or_none = len(ranking.negative) - np.searchsorted(ranking.negative, score, side="right")
    below, ties = len(ranking.negative) - not_below, not_below - above_or_none
    return float((equal * (below + ties / 2)).sum() / len(ranking.positive) / len(ranking.negative))


def binned_average_precision_of(ranking: Ranking) -> float:
    """Average precision at 10,001 equally spaced thresholds from the lowest to the highest score."""
    if len(ranking.positive) == 0:
        return float("nan")
    ends = [scores[[0, -1]] for scores in (ranking.positive, ranking.negative) if len(scores)]
    thresholds = np.linspace(min(e[0] for e in ends), max(e[1] for e in ends), PAPER_BINS + 1)
    right = len(ranking.positive) - np.searchsorted(ranking.positive, thresholds, side="left")
    false = len(ranking.negative) - np.searchsorted(ranking.negative, thresholds, side="left")
    recall = right / len(ranking.positive)
    precision = np.nan_to_num(ratio(right.astype(float), (right + false).astype(float)))
    return float((precision * (recall - np.append(recall[1:], 0))).sum())


def best_threshold_of(ranking: Ranking) -> tuple[float, float]:
    """Return the threshold with the highest F1, and that F1."""
    if len(ranking.positive) == 0:
        return float("nan"), float("nan")
    score, above, false = ranking.at_positives
    f1 = 2 * above / (above + false + len(ranking.positive))
    best = int(np.argmax(f1))
    return float(score[best]), float(f1[best])


def ranking_of(cases: Sequence[Case], code: int) -> Ranking:
    """Pool the frames of all recordings and rank them by the scores of one behavior."""
    parts = [_frames_of(case, code) for case in cases]
    scores = parts[0][0] if len(parts) == 1 else np.concatenate([part[0] for part in parts])
    truth = parts[0][1] if len(parts) == 1 else np.concatenate([part[1] for part in parts])
    return Ranking.of(scores, truth)


def _frames_of(case: Case, code: int) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Return the scores and truth of the frames that count for one behavior (subjects pooled)."""
    if case.probabilities is None:
        return np.empty(0), np.empty(0, dtype=bool)
    scores = case.probabilities[:, code]
    tracks = [track for track in case.tracks if track.behavior == code]
    n = case.truth.n_frames
    truth = iv.to_mask(iv.union_all([track.truth for track in tracks]), n)
    seen = iv.union_all([track.seen for track in tracks])
    if iv.total(seen) == n and not np.isnan(scores).any():
        return scores, truth
    keep = iv.to_mask(seen, n) & ~np.isnan(scores)
    return scores[keep], truth[keep]


def histogram(case: Case) -> Array:
    """Sort the scores of each behavior into 1,000 bins: true frames, other frames, and the sum of scores by bin."""
    table = np.zeros((len(case.ethogram), 3 * BINS))
    if case.probabilities is None:
        return np.full_like(table, np.nan)
    for code in range(len(case.ethogram)):
        scores, truth = _frames_of(case, code)
        place = np.clip((scores * BINS).astype(np.int64), 0, BINS - 1)
        table[code, :BINS] = np.bincount(place[truth], minlength=BINS)
        table[code, BINS : 2 * BINS] = np.bincount(place[~truth], minlength=BINS)
        table[code, 2 * BINS :] = np.bincount(place, weights=scores, minlength=BINS)
    return table


@register_metric(histogram, kind="histogram", probabilistic=True, exact=average_precision_of)
def average_precision(s: Array) -> Array:
    """Area under the precision-recall curve."""
    right, false = _from_above(s)
    precision = np.nan_to_num(ratio(right, right + false))
    gained = np.diff(right, axis=-1, prepend=0)
    return ratio((precision * gained).sum(axis=-1), right[..., -1])


@register_metric(histogram, kind="histogram", probabilistic=True, exact=binned_average_precision_of)
def binned_average_precision(s: Array) -> Array:
    """Area under the precision-recall curve at 10,000 equal bins of the score's range, as CalMS21's text has it."""
    return average_precision(s)


@register_metric(histogram, kind="histogram", probabilistic=True, exact=auroc_of)
def auroc(s: Array) -> Array:
    """Probability that a frame with the behavior scores above one without."""
    positive, negative = s[..., :BINS], s[..., BINS : 2 * BINS]
    below = np.cumsum(negative, axis=-1) - negative / 2
    return ratio((positive * below).sum(axis=-1), positive.sum(axis=-1) * negative.sum(axis=-1))


@register_metric(histogram, kind="histogram", probabilistic=True, best=0.0, worst=1.0, distance=True)
def calibration_error(s: Array) -> Array:
    """Mean distance between probability and share of true frames, over ten equal bins weighted by their frames."""
    true, frames, total = reliability(s)
    return ratio(np.nansum(np.abs(true - total), axis=-1), frames.sum(axis=-1))


@register_metric(histogram, kind="histogram", probabilistic=True, best=np.inf, exact=lambda ranking: best_threshold_of(ranking)[0])
def best_threshold(s: Array) -> Array:
    """Threshold with the highest frame F1."""
    right, false = _from_above(s)
    f1 = ratio(2 * right, right + false + right[..., -1:])
    best = np.argmax(np.nan_to_num(f1, nan=-1), axis=-1)
    return np.where(right[..., -1] == 0, np.nan, (BINS - 1 - best) / BINS)


def reliability(s: Array) -> tuple[Array, Array, Array]:
    """Return, for ten equal bins of probability, the true frames, all frames, and the sum of probabilities."""
    positive, negative, total = (s[..., k * BINS : (k + 1) * BINS] for k in range(3))
    shape = (*s.shape[:-1], CALIBRATION_BINS, BINS // CALIBRATION_BINS)
    true = positive.reshape(shape).sum(axis=-1)
    return true, true + negative.reshape(shape).sum(axis=-1), total.reshape(shape).sum(axis=-1)


def _from_above(s: Array) -> tuple[Array, Array]:
    """Count true and other frames from the highest bin down."""
    positive, negative = s[..., :BINS], s[..., BINS : 2 * BINS]
    return np.cumsum(positive[..., ::-1], axis=-1), np.cumsum(negative[..., ::-1], axis=-1)
