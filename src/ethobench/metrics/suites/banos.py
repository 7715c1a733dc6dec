"""BANOS as its package computes it (0.2.3 to 1.0.0), quirks included.

What differs from the `ethobench` suite: a total miss has no F1 and drops out of the averages; segment overlap and temporal
precision are over all overlapping pairs, not over matched ones; continuity is 1 where nothing was predicted; a behaviour
that is absent from the truth scores 1 in everything if it was not predicted and 0 if it was; temporal precision is per frame;
all averages are over (recording, behaviour) cells, the background among them.
"""

from __future__ import annotations

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals
from ethobench.metrics._base import Array, mean_of, per_behavior, register_metric
from ethobench.metrics._cases import Case, Track
from ethobench.metrics._matching import count_matches, tiou
from ethobench.metrics._measures import Measure
from ethobench.metrics.bouts import switches
from ethobench.metrics.suites._base import Suite, register_suite

NAMES = ("precision", "recall", "f1_score", "so", "tp", "ic")


def cells(case: Case) -> Array:
    """Give the six scores of each behaviour, each with the weight 1, or 0 where it is undefined."""
    return per_behavior(case, 2 * len(NAMES), _track_cells)


def _track_cells(track: Track) -> Array:
    values = np.array(score_bouts(track.truth, track.pred))
    known = ~np.isnan(values)
    return np.concatenate([np.where(known, values, 0), known])


def score_bouts(truth: Intervals, pred: Intervals) -> tuple[float, float, float, float, float, float]:
    """Return precision, recall, F1, SO, TP and IC of two sorted sets of bouts; NaN where BANOS says so."""
    n_truth, n_pred = len(truth.start), len(pred.start)
    if n_truth == 0:
        value = 0.0 if n_pred else 1.0
        return value, value, value, value, value, value
    i, j = iv.overlapping_pairs(truth, pred)
    matched = count_matches(i, j)
    return *detection(matched, n_pred - matched, n_truth - matched), *overlap_scores(truth, pred, i, j), continuity(truth, pred)


def detection(right: int, invented: int, missed: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of counts; NaN where a denominator is zero."""
    nan = float("nan")
    precision = right / (right + invented) if right + invented else nan
    recall = right / (right + missed) if right + missed else nan
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else nan
    return precision, recall, f1


def overlap_scores(truth: Intervals, pred: Intervals, i: IntArray, j: IntArray) -> tuple[float, float]:
    """Return segment overlap and temporal precision: means over all overlapping pairs."""
    apart = np.abs(truth.start[i] - pred.start[j]) + np.abs(truth.stop[i] - pred.stop[j])
    return mean(tiou(truth, pred, i, j)), mean(1.0 / (1.0 + apart))


def continuity(truth: Intervals, pred: Intervals) -> float:
    """Return the mean over true bouts of more than one frame of 1 - switches / (length - 1)."""
    steps = truth.stop - truth.start - 1
    long = steps > 0
    return mean(1.0 - switches(truth, pred)[long] / steps[long])


def mean(values: Array) -> float:
    """Add one by one, as BANOS does, so that results are equal to the last bit."""
    cells = values.tolist()
    return sum(cells) / len(cells) if cells else float("nan")


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


@register_suite
class Banos(Suite):
    """The six figures of BANOS."""

    title = "BANOS: bouts, as the banos package computes them"
    measures = tuple(Measure(name, f"banos.{name}", over="cells", background=True) for name in NAMES)
    headline = NAMES
    lengths = True
