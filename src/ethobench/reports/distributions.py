"""How bouts and probabilities are distributed: durations, border errors, precision and recall, reliability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from ethobench.metrics import Scores, bouts, probabilities
from ethobench.metrics.base import Array, ratio
from ethobench.metrics.budgets import DURATION_BINS, LONGEST, SHORTEST
from ethobench.reports.shape import Figure, crowded, make_figure, per_model
from ethobench.reports.statistics import pooled

DURATION_STEPS = 8
BORDER_REACHES = (0.5, 1.0, 2.0, 5.0)
BORDER_STEPS = 20
COVERED = 0.95
CURVE_POINTS = 100
DurationRow: TypeAlias = tuple[str, str, str, float, float, int]


def durations(scores: Mapping[str, Scores], truth: str) -> Figure | None:
    """Sort the durations of true and predicted bouts into bins that are even in the logarithm."""
    rows: list[DurationRow] = []
    many = crowded(scores)
    edges = SHORTEST * (LONGEST / SHORTEST) ** ((np.arange(0, DURATION_BINS + 1, DURATION_STEPS) - 0.5) / (DURATION_BINS - 1))
    for place, (name, scored) in enumerate(scores.items()):
        table = pooled(scored, "budgets.duration_distance")
        if table is None:
            return None
        for code, behavior in enumerate(scored.ethogram):
            if behavior.point or code == scored.ethogram.background:
                continue
            sides = table[code].reshape(2, -1, DURATION_STEPS).sum(axis=2)
            for source, counts in ((truth, sides[0]), (name, sides[1])):
                if source != truth or place == 0 or many:
                    rows += [(name, behavior.name, source, float(edges[k]), float(edges[k + 1]), int(n)) for k, n in enumerate(counts)]
    return make_figure(
        "durations",
        "histograms",
        "Bout durations",
        "How many bouts last how long, by behavior; the axis is logarithmic.",
        [*(["model"] if many else []), "behavior", "source", "low_s", "high_s", "bouts"],
        [row if many else row[1:] for row in _without_empty_ends(rows)],
        {"choose": ["model"] if many else [], "facet": "behavior", "series": "source", "low": "low_s", "high": "high_s", "count": "bouts"},
        log=True,
        axis="bout duration",
        area=truth,
    )


def borders(scores: Mapping[str, Scores]) -> Figure | None:
    """Sort the start and stop errors of matched bouts into bins; None where no bouts match."""
    tables: dict[tuple[str, str], tuple[Scores, Array]] = {}
    for name, scored in scores.items():
        for edge in ("onset", "offset"):
            table = pooled(scored, f"bouts.{edge}_error")
            if table is None:
                return None
            tables[edge, name] = scored, table[:, : bouts.N_BINS]
    if not any(table.any() for _, table in tables.values()):
        return None
    reach = min(_reach(table.sum(axis=0)) for _, table in tables.values())
    width = reach / BORDER_STEPS
    place = np.clip(np.floor(_late() / width + 0.5), -BORDER_STEPS - 1, BORDER_STEPS + 1).astype(np.int64) + BORDER_STEPS + 1
    low = np.array([np.nan, *((np.arange(-BORDER_STEPS, BORDER_STEPS + 1) - 0.5) * width), reach + width / 2])
    high = np.array([*low[1:], np.nan])
    rows = []
    for (edge, name), (scored, table) in tables.items():
        for code, behavior in enumerate(scored.ethogram):
            counts = np.bincount(place, weights=table[code], minlength=len(low))
            if code != scored.ethogram.background:
                rows += [(edge, behavior.name, name, low[k], high[k], int(n)) for k, n in enumerate(counts)]
    return make_figure(
        "borders",
        "histograms",
        "Onset and offset errors",
        "How many seconds matched bouts start (or stop) too late, negative: too early; bouts are matched one to one by overlap.",
        ["edge", "behavior", "model", "low_s", "high_s", "bouts"],
        rows,
        {
            "choose": ["edge", "model"] if crowded(scores) else ["edge"],
            "facet": "behavior",
            "series": "model",
            "low": "low_s",
            "high": "high_s",
            "count": "bouts",
        },
        zero=True,
        axis="seconds late",
    )


def precision_recall(scores: Mapping[str, Scores]) -> Figure | None:
    """Draw precision against recall over all thresholds; None without probabilities."""
    rows = []
    for name, scored, table in _probabilistic(scores):
        positive, negative = table[:, : probabilities.BINS], table[:, probabilities.BINS : 2 * probabilities.BINS]
        right, false = (np.cumsum(counts[:, ::-1], axis=1) for counts in (positive, negative))
        recall, precision = ratio(right, right[:, -1:]), ratio(right, right + false)
        areas = probabilities.average_precision(table)
        for code, behavior in enumerate(scored.ethogram):
            if code == scored.ethogram.background or not right[code, -1]:
                continue
            for k in _thinned(recall[code], precision[code]):
                threshold = 1 - (k + 1) / probabilities.BINS
                rows.append((name, behavior.name, threshold, recall[code, k], precision[code, k], areas[code]))
    if not rows:
        return None
    return make_figure(
        "precision-recall",
        "curves",
        "Precision and recall",
        "Share of the frames above a threshold that are right, against the share of the true frames that are above it; "
        "beside each name the area below its curve, the average precision.",
        ["model", "behavior", "threshold", "recall", "precision", "average_precision"],
        rows,
        {**per_model(scores), "line": "behavior", "x": "recall", "y": "precision", "note": "average_precision"},
        unit_square=True,
    )


def reliabilities(scores: Mapping[str, Scores]) -> Figure | None:
    """Draw how often a behavior goes on where it was predicted with a certain probability; None without probabilities."""
    rows = []
    for name, scored, table in _probabilistic(scores):
        true, frames, total = probabilities.reliability(table)
        for code, behavior in enumerate(scored.ethogram):
            if code == scored.ethogram.background or not true[code].sum():
                continue
            for right, n, expected in zip(true[code], frames[code], total[code], strict=True):
                rows += [(name, behavior.name, expected / n, right / n, int(n))] if n else []
    if not rows:
        return None
    return make_figure(
        "reliability",
        "curves",
        "Reliability",
        "Share of frames in which the behavior goes on, against its mean predicted probability, in ten equal bins; "
        "a calibrated model follows the diagonal.",
        ["model", "behavior", "probability", "share", "frames"],
        rows,
        {**per_model(scores), "line": "behavior", "x": "probability", "y": "share", "size": "frames"},
        unit_square=True,
        diagonal=True,
    )


def _probabilistic(scores: Mapping[str, Scores]) -> list[tuple[str, Scores, Array]]:
    found = []
    for name, scored in scores.items():
        table = pooled(scored, "probabilities.average_precision")
        if table is not None and not np.isnan(table).any():
            found.append((name, scored, table))
    return found


def _thinned(recall: Array, precision: Array) -> list[int]:
    """Choose the points that a curve of this size can show: the first and last of all, and the first of each small step."""
    known = np.flatnonzero(~np.isnan(precision) & (np.diff(recall, prepend=-1) > 0))
    step = np.round(recall[known] * CURVE_POINTS)
    kept = known[np.flatnonzero(np.diff(step, prepend=-1) > 0)]
    return [*kept.tolist(), *([int(known[-1])] if len(known) and known[-1] != kept[-1] else [])]


def _late() -> Array:
    """Return the seconds that each bin of border errors stands for; those beyond the fine bins only tell their sign."""
    steps = np.arange(bouts.N_BINS) - (bouts.N_FINE + bouts.N_COARSE)
    return np.where(np.abs(steps) <= bouts.N_FINE, steps * bouts.FINE_WIDTH, np.copysign(np.inf, steps))


def _reach(counts: Array) -> float:
    """Choose the narrowest range that holds nearly all errors."""
    late = np.abs(_late())
    for reach in BORDER_REACHES:
        if counts[late <= reach].sum() >= COVERED * counts.sum():
            return reach
    return BORDER_REACHES[-1]


def _without_empty_ends(rows: list[DurationRow]) -> list[DurationRow]:
    """Leave out the bins beyond the shortest and longest bout of all."""
    used = [row for row in rows if row[5]]
    if not used:
        return []
    low, high = min(row[3] for row in used), max(row[4] for row in used)
    return [row for row in rows if row[3] >= low and row[4] <= high]
