"""BANOS as its package computes it (versions 0.2.3 to 1.0.0), including its quirks.

Differences from the `ethobench` suite: F1 is undefined if nothing was matched, and is excluded from the averages; segment overlap and
temporal precision are over all overlapping pairs, not over matched ones; continuity is 1 if nothing was predicted; a behavior
that is absent from the truth has 1 in all scores if it was not predicted and 0 if it was; temporal precision is in frames;
all averages are over (recording, behavior) cells, including the background.

References
----------
Chindemi, Bellone and Girard (2025), From eye to AI: studying rodent social behavior in the era of machine learning, arXiv:2508.04255;
its code, github.com/BelloneLab/BANOS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals
from ethobench.metrics.base import Array, Measure, register_metric, weighted_mean
from ethobench.metrics.bouts import switches
from ethobench.metrics.matching import greedy_matched, temporal_iou
from ethobench.metrics.pairs import AlignedPair, TrackPair
from ethobench.metrics.suites import Suite, register_suite

NAMES = ("precision", "recall", "f1_score", "so", "tp", "ic")


class Timeline(NamedTuple):
    """Bouts of many cells (a behavior of a recording) on one time axis, one cell after the other, so that cells never overlap."""

    truth: Intervals
    pred: Intervals
    ends: IntArray


def cells(pair: AlignedPair) -> Array:
    """Return the six scores of each behavior, then their weights: 1, or 0 if undefined. Shape (n_behaviors, 12)."""
    values = np.array(score_timeline(_concatenate(pair.tracks, pair.truth.n_frames))).reshape(-1, len(NAMES))
    defined = ~np.isnan(values)
    table = np.zeros((len(pair.ethogram), 2 * len(NAMES)))
    np.add.at(table, [track.behavior for track in pair.tracks], np.hstack([np.where(defined, values, 0), defined]))
    return table


def _concatenate(tracks: Sequence[TrackPair], n_frames: int) -> Timeline:
    width = n_frames + 1
    sides = []
    for side in ("truth", "pred"):
        spans = [getattr(track, side) for track in tracks]
        shift = np.repeat(np.arange(len(spans)) * width, [len(s.start) for s in spans])
        sides.append(Intervals(np.concatenate([s.start for s in spans]) + shift, np.concatenate([s.stop for s in spans]) + shift))
    return Timeline(sides[0], sides[1], (np.arange(len(tracks)) + 1) * width)


def score_timeline(line: Timeline) -> list[tuple[float, ...]]:
    """Return precision, recall, F1, SO, TP and IC of each cell; NaN where BANOS returns NaN."""
    truth, pred, ends = line
    i, j = iv.overlapping_pairs(truth, pred)
    truth_ends, pred_ends = np.searchsorted(truth.start, ends).tolist(), np.searchsorted(pred.start, ends).tolist()
    pair_ends = np.searchsorted(i, truth_ends).tolist()
    matched_ends = np.searchsorted(np.sort(greedy_matched(i, j)), truth_ends).tolist()
    overlaps, precisions = (values.tolist() for values in pair_scores(truth, pred, i, j))
    steps = truth.stop - truth.start - 1
    long = np.flatnonzero(steps > 0)
    continuities = (1.0 - switches(truth, pred)[long] / steps[long]).tolist()
    long_ends = np.searchsorted(long, truth_ends).tolist()
    result: list[tuple[float, ...]] = []
    t = p = k = m = c = 0  # end of the previous cell in truth, pred, pairs, matches and continuities
    for t1, p1, k1, m1, c1 in zip(truth_ends, pred_ends, pair_ends, matched_ends, long_ends, strict=True):
        if t1 == t:
            result.append((0.0 if p1 > p else 1.0,) * len(NAMES))
        else:
            n_matched = m1 - m
            precision_recall_f1 = detection(n_matched, p1 - p - n_matched, t1 - t - n_matched)
            result.append((*precision_recall_f1, mean(overlaps[k:k1]), mean(precisions[k:k1]), mean(continuities[c:c1])))
        t, p, k, m, c = t1, p1, k1, m1, c1
    return result


def detection(n_tp: int, n_fp: int, n_fn: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 for counts of bouts; NaN if a denominator is zero."""
    nan = float("nan")
    precision = n_tp / (n_tp + n_fp) if n_tp + n_fp else nan
    recall = n_tp / (n_tp + n_fn) if n_tp + n_fn else nan
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else nan
    return precision, recall, f1


def continuity(truth: Intervals, pred: Intervals) -> float:
    """Return the mean over true bouts of more than one frame of 1 - switches / (length - 1)."""
    steps = truth.stop - truth.start - 1
    long = steps > 0
    return mean((1.0 - switches(truth, pred)[long] / steps[long]).tolist())


def pair_scores(truth: Intervals, pred: Intervals, i: IntArray, j: IntArray) -> tuple[Array, Array]:
    """Return the temporal intersection over union, and 1 / (1 + start error + stop error), of pairs of bouts."""
    error = np.abs(truth.start[i] - pred.start[j]) + np.abs(truth.stop[i] - pred.stop[j])
    return temporal_iou(truth, pred, i, j), np.asarray(1.0 / (1.0 + error))


def mean(values: Sequence[float]) -> float:
    """Return the mean, added one by one as BANOS does, so that results are equal to the last bit."""
    return sum(values) / len(values) if values else float("nan")


def _mean_of_column(s: Array, k: int) -> Array:
    return weighted_mean(np.stack([s[..., k], s[..., len(NAMES) + k]], axis=-1))


@register_metric(cells, kind="rows")
def precision(s: Array) -> Array:
    """Share of the predicted bouts that are matched with a true one (BANOS)."""
    return _mean_of_column(s, 0)


@register_metric(cells, kind="rows")
def recall(s: Array) -> Array:
    """Share of the true bouts that are matched with a predicted one (BANOS)."""
    return _mean_of_column(s, 1)


@register_metric(cells, kind="rows")
def f1_score(s: Array) -> Array:
    """Harmonic mean of precision and recall; undefined if no bout is matched (BANOS)."""
    return _mean_of_column(s, 2)


@register_metric(cells, kind="rows")
def so(s: Array) -> Array:
    """Segment overlap: mean intersection over union of all overlapping pairs (BANOS)."""
    return _mean_of_column(s, 3)


@register_metric(cells, kind="rows", rate_free=False)
def tp(s: Array) -> Array:
    """Temporal precision: mean of 1 / (1 + start error + stop error) in frames over all overlapping pairs (BANOS)."""
    return _mean_of_column(s, 4)


@register_metric(cells, kind="rows", rate_free=False)
def ic(s: Array) -> Array:
    """Intra-bout continuity: mean of 1 - switches per frame step; 1 if nothing was predicted (BANOS)."""
    return _mean_of_column(s, 5)


@register_suite("banos")
class Banos(Suite):
    """The six scores of BANOS."""

    title = "BANOS: bouts, as the banos package computes them"
    measures = tuple(Measure(name, f"banos.{name}", over="cells", background=True) for name in NAMES)
    headline = NAMES
    lengths = True
    fill_background = False
