"""Figures of distributions: bout durations, onset and offset errors, precision and recall, reliability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from ethobench.metrics import Scores, bouts, probabilities
from ethobench.metrics.base import Array, ratio
from ethobench.metrics.budgets import DURATION_BINS, LONGEST, SHORTEST
from ethobench.reports.report_data import Figure, make_figure, per_model, too_many_panels

DURATION_STEPS = 8
ERROR_RANGES = (0.5, 1.0, 2.0, 5.0)  # seconds
ERROR_BINS = 20  # on either side of zero
COVERED = 0.95  # share of the errors that the range must contain
CURVE_POINTS = 100
DurationRow: TypeAlias = tuple[str, str, str, float, float, int]


def durations(scores: Mapping[str, Scores], truth: str) -> Figure | None:
    """Count true and predicted bouts by duration in logarithmic bins."""
    rows: list[DurationRow] = []
    many = too_many_panels(scores)
    edges = SHORTEST * (LONGEST / SHORTEST) ** ((np.arange(0, DURATION_BINS + 1, DURATION_STEPS) - 0.5) / (DURATION_BINS - 1))
    for index, (name, scored) in enumerate(scores.items()):
        table = scored.pooled_statistics("budgets.duration_distance")
        if table is None:
            return None
        for code, behavior in enumerate(scored.ethogram):
            if behavior.point or code == scored.ethogram.background:
                continue
            sides = table[code].reshape(2, -1, DURATION_STEPS).sum(axis=2)
            for source, counts in ((truth, sides[0]), (name, sides[1])):
                if source != truth or index == 0 or many:
                    rows += [(name, behavior.name, source, float(edges[k]), float(edges[k + 1]), int(n)) for k, n in enumerate(counts)]
    return make_figure(
        "durations",
        "histograms",
        "Bout durations",
        "Number of bouts by duration, for each behavior; the axis is logarithmic.",
        [*(["model"] if many else []), "behavior", "source", "low_s", "high_s", "bouts"],
        [row if many else row[1:] for row in _without_empty_ends(rows)],
        {"choose": ["model"] if many else [], "facet": "behavior", "series": "source", "low": "low_s", "high": "high_s", "count": "bouts"},
        log=True,
        axis="bout duration",
        area=truth,
    )


def boundary_errors(scores: Mapping[str, Scores]) -> Figure | None:
    """Count onset and offset errors of matched bouts in bins; None if no bouts are matched."""
    tables: dict[tuple[str, str], tuple[Scores, Array]] = {}
    for name, scored in scores.items():
        for edge in ("onset", "offset"):
            table = scored.pooled_statistics(f"bouts.{edge}_error")
            if table is None:
                return None
            tables[edge, name] = scored, table[:, : bouts.N_BINS]
    if not any(table.any() for _, table in tables.values()):
        return None
    limit = min(_error_range(table.sum(axis=0)) for _, table in tables.values())
    width = limit / ERROR_BINS
    bins = np.clip(np.floor(_seconds_late() / width + 0.5), -ERROR_BINS - 1, ERROR_BINS + 1).astype(np.int64) + ERROR_BINS + 1
    low = np.array([np.nan, *((np.arange(-ERROR_BINS, ERROR_BINS + 1) - 0.5) * width), limit + width / 2])
    high = np.array([*low[1:], np.nan])
    rows = []
    for (edge, name), (scored, table) in tables.items():
        for code, behavior in enumerate(scored.ethogram):
            counts = np.bincount(bins, weights=table[code], minlength=len(low))
            if code != scored.ethogram.background:
                rows += [(edge, behavior.name, name, low[k], high[k], int(n)) for k, n in enumerate(counts)]
    return make_figure(
        "boundary-errors",
        "histograms",
        "Onset and offset errors",
        "Seconds by which matched bouts start (or stop) too late; negative is too early. Bouts are matched one to one by overlap.",
        ["edge", "behavior", "model", "low_s", "high_s", "bouts"],
        rows,
        {
            "choose": ["edge", "model"] if too_many_panels(scores) else ["edge"],
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
    """Return precision against recall over all thresholds; None without probabilities."""
    rows = []
    for name, scored, table in _probabilistic(scores):
        positive, negative = table[:, : probabilities.BINS], table[:, probabilities.BINS : 2 * probabilities.BINS]
        correct, false = (np.cumsum(counts[:, ::-1], axis=1) for counts in (positive, negative))
        recall, precision = ratio(correct, correct[:, -1:]), ratio(correct, correct + false)
        areas = probabilities.average_precision(table)
        for code, behavior in enumerate(scored.ethogram):
            if code == scored.ethogram.background or not correct[code, -1]:
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
        "Share of the frames above a threshold that are correct, against the share of the true frames that are above it. "
        "Beside each name, the average precision: the area under its curve.",
        ["model", "behavior", "threshold", "recall", "precision", "average_precision"],
        rows,
        {**per_model(scores), "line": "behavior", "x": "recall", "y": "precision", "note": "average_precision"},
        unit_square=True,
    )


def reliabilities(scores: Mapping[str, Scores]) -> Figure | None:
    """Return how often a behavior occurs in frames with a given predicted probability; None without probabilities."""
    rows = []
    for name, scored, table in _probabilistic(scores):
        true, frames, total = probabilities.reliability(table)
        for code, behavior in enumerate(scored.ethogram):
            if code == scored.ethogram.background or not true[code].sum():
                continue
            for n_true, n, expected in zip(true[code], frames[code], total[code], strict=True):
                rows += [(name, behavior.name, expected / n, n_true / n, int(n))] if n else []
    if not rows:
        return None
    return make_figure(
        "reliability",
        "curves",
        "Reliability",
        "Share of frames with the behavior, against its mean predicted probability, in ten equal bins. "
        "A calibrated model follows the diagonal.",
        ["model", "behavior", "probability", "share", "frames"],
        rows,
        {**per_model(scores), "line": "behavior", "x": "probability", "y": "share", "size": "frames"},
        unit_square=True,
        diagonal=True,
    )


def _probabilistic(scores: Mapping[str, Scores]) -> list[tuple[str, Scores, Array]]:
    """Return the scores that have probabilities, with their pooled histograms."""
    result = []
    for name, scored in scores.items():
        table = scored.pooled_statistics("probabilities.average_precision")
        if table is not None and not np.isnan(table).any():
            result.append((name, scored, table))
    return result


def _thinned(recall: Array, precision: Array) -> list[int]:
    """Choose the points of a curve to draw: the first and the last, and the first of each small step of recall."""
    defined = np.flatnonzero(~np.isnan(precision) & (np.diff(recall, prepend=-1) > 0))
    step = np.round(recall[defined] * CURVE_POINTS)
    kept = defined[np.flatnonzero(np.diff(step, prepend=-1) > 0)]
    return [*kept.tolist(), *([int(defined[-1])] if len(defined) and defined[-1] != kept[-1] else [])]


def _seconds_late() -> Array:
    """Return the error in seconds of each bin of `bouts.onsets`; infinite beyond the fine bins."""
    steps = np.arange(bouts.N_BINS) - (bouts.N_FINE + bouts.N_COARSE)
    return np.where(np.abs(steps) <= bouts.N_FINE, steps * bouts.FINE_WIDTH, np.copysign(np.inf, steps))


def _error_range(counts: Array) -> float:
    """Return the narrowest range in seconds that contains nearly all errors."""
    late = np.abs(_seconds_late())
    for limit in ERROR_RANGES:
        if counts[late <= limit].sum() >= COVERED * counts.sum():
            return limit
    return ERROR_RANGES[-1]


def _without_empty_ends(rows: list[DurationRow]) -> list[DurationRow]:
    """Drop the bins below the shortest and above the longest bout."""
    used = [row for row in rows if row[5]]
    if not used:
        return []
    low, high = min(row[3] for row in used), max(row[4] for row in used)
    return [row for row in rows if row[3] >= low and row[4] <= high]
