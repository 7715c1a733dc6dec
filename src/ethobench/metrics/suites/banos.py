"""BANOS as its package computes it (0.2.3 to 1.0.0), quirks included.

What differs from the `ethobench` suite: a total miss has no F1 and drops out of the averages; segment overlap and temporal
precision are over all overlapping pairs, not over matched ones; continuity is 1 where nothing was predicted; a behavior
that is absent from the truth scores 1 in everything if it was not predicted and 0 if it was; temporal precision is per frame;
all averages are over (recording, behavior) cells, the background among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals
from ethobench.metrics.base import Array, mean_of, register_metric
from ethobench.metrics.bouts import switches
from ethobench.metrics.cases import Case, Track
from ethobench.metrics.matching import matched_first, tiou
from ethobench.metrics.measures import Measure
from ethobench.metrics.suites.base import Suite, register_suite

NAMES = ("precision", "recall", "f1_score", "so", "tp", "ic")


class Timeline(NamedTuple):
    """Bouts of many cells (a behavior of a recording) laid out one after the other, so that cells never meet."""

    truth: Intervals
    pred: Intervals
    ends: IntArray


def cells(case: Case) -> Array:
    """Give the six scores of each behavior, each with the weight 1, or 0 where it is undefined."""
    values = np.array(score_timeline(_lay_out(case.tracks, case.truth.n_frames))).reshape(-1, len(NAMES))
    known = ~np.isnan(values)
    table = np.zeros((len(case.ethogram), 2 * len(NAMES)))
    np.add.at(table, [track.behavior for track in case.tracks], np.hstack([np.where(known, values, 0), known]))
    return table


def _lay_out(tracks: Sequence[Track], n_frames: int) -> Timeline:
    width = n_frames + 1
    sides = []
    for side in ("truth", "pred"):
        parts = [getattr(track, side) for track in tracks]
        shift = np.repeat(np.arange(len(parts)) * width, [len(p.start) for p in parts])
        sides.append(Intervals(np.concatenate([p.start for p in parts]) + shift, np.concatenate([p.stop for p in parts]) + shift))
    return Timeline(sides[0], sides[1], (np.arange(len(tracks)) + 1) * width)


def score_timeline(line: Timeline) -> list[tuple[float, ...]]:
    """Return precision, recall, F1, SO, TP and IC of each cell; NaN where BANOS says so."""
    truth, pred, ends = line
    i, j = iv.overlapping_pairs(truth, pred)
    truth_cut, pred_cut = np.searchsorted(truth.start, ends).tolist(), np.searchsorted(pred.start, ends).tolist()
    pair_cut = np.searchsorted(i, truth_cut).tolist()
    matched = np.searchsorted(np.sort(matched_first(i, j)), truth_cut).tolist()
    overlaps, closeness = (values.tolist() for values in pair_scores(truth, pred, i, j))
    steps = truth.stop - truth.start - 1
    long = np.flatnonzero(steps > 0)
    whole = (1.0 - switches(truth, pred)[long] / steps[long]).tolist()
    whole_cut = np.searchsorted(long, truth_cut).tolist()
    result: list[tuple[float, ...]] = []
    t = p = k = m = w = 0
    for t1, p1, k1, m1, w1 in zip(truth_cut, pred_cut, pair_cut, matched, whole_cut, strict=True):
        if t1 == t:
            result.append((0.0 if p1 > p else 1.0,) * len(NAMES))
        else:
            right = m1 - m
            figures = detection(right, p1 - p - right, t1 - t - right)
            result.append((*figures, mean(overlaps[k:k1]), mean(closeness[k:k1]), mean(whole[w:w1])))
        t, p, k, m, w = t1, p1, k1, m1, w1
    return result


def detection(right: int, invented: int, missed: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of counts; NaN where a denominator is zero."""
    nan = float("nan")
    precision = right / (right + invented) if right + invented else nan
    recall = right / (right + missed) if right + missed else nan
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else nan
    return precision, recall, f1


def continuity(truth: Intervals, pred: Intervals) -> float:
    """Return the mean over true bouts of more than one frame of 1 - switches / (length - 1)."""
    steps = truth.stop - truth.start - 1
    long = steps > 0
    return mean((1.0 - switches(truth, pred)[long] / steps[long]).tolist())


def pair_scores(truth: Intervals, pred: Intervals, i: IntArray, j: IntArray) -> tuple[Array, Array]:
    """Return intersection over union, and 1 / (1 + start error + stop error), of pairs of bouts."""
    apart = np.abs(truth.start[i] - pred.start[j]) + np.abs(truth.stop[i] - pred.stop[j])
    return tiou(truth, pred, i, j), np.asarray(1.0 / (1.0 + apart))


def mean(values: Sequence[float]) -> float:
    """Add one by one, as BANOS does, so that results are equal to the last bit."""
    return sum(values) / len(values) if values else float("nan")


def _part(s: Array, k: int) -> Array:
    return mean_of(np.stack([s[..., k], s[..., len(NAMES) + k]], axis=-1))


@register_metric(cells, kind="rows")
def precision(s: Array) -> Array:
    """Share of the predicted bouts that overlap a true one of their own (BANOS)."""
    return _part(s, 0)


@register_metric(cells, kind="rows")
def recall(s: Array) -> Array:
    """Share of the true bouts that overlap a predicted one of their own (BANOS)."""
    return _part(s, 1)


@register_metric(cells, kind="rows")
def f1_score(s: Array) -> Array:
    """Harmonic mean of precision and recall; a total miss has none (BANOS)."""
    return _part(s, 2)


@register_metric(cells, kind="rows")
def so(s: Array) -> Array:
    """Segment overlap: mean intersection over union of all overlapping pairs (BANOS)."""
    return _part(s, 3)


@register_metric(cells, kind="rows", rate_free=False)
def tp(s: Array) -> Array:
    """Temporal precision: mean of 1 / (1 + start error + stop error) in frames over all overlapping pairs (BANOS)."""
    return _part(s, 4)


@register_metric(cells, kind="rows", rate_free=False)
def ic(s: Array) -> Array:
    """Intra-bout continuity: mean of 1 - switches per frame step; 1 where nothing was predicted (BANOS)."""
    return _part(s, 5)


@register_suite("banos")
class Banos(Suite):
    """The six figures of BANOS."""

    title = "BANOS: bouts, as the banos package computes them"
    measures = tuple(Measure(name, f"banos.{name}", over="cells", background=True) for name in NAMES)
    headline = NAMES
    lengths = True
    fill_background = False
