"""Figures that compare predictions with annotators and with the truth: human ceiling, time budgets, kinds of errors, confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ethobench.core import intervals as iv
from ethobench.metrics import Ceiling, Scores
from ethobench.metrics.base import measure_label
from ethobench.metrics.pairs import AlignedPair
from ethobench.reports.error_kinds import KINDS, subject_errors, track_errors
from ethobench.reports.report_data import Figure, make_figure, per_model, too_many_panels
from ethobench.reports.score_tables import ALL

NO_BEHAVIOR = "(none)"


def ceiling_figure(ceilings: Mapping[str, Ceiling]) -> Figure | None:
    """Compare the scores of each model against the annotators with those of the annotators against each other; None without a ceiling."""
    rows = []
    for name, ceiling in ceilings.items():
        for row in ceiling.rows:
            if row["annotator"] == "":
                key = (name, row["measure"], row["behavior"])
                rows.append((*key, "annotators", row["human"], None, None, None, None))
                rows.append((*key, "model", row["model"], row["difference"], row["low"], row["high"], row["reached"]))
    if not rows:
        return None
    all_rows = [row for ceiling in ceilings.values() for row in ceiling.rows]
    withheld = all_rows[0]["reason"] if all(row["low"] is None for row in all_rows) else None
    return make_figure(
        "ceiling",
        "dots",
        "Human ceiling",
        "Scores of the model against each annotator (mean), and of the annotators against each other; right, the difference"
        + (f" ({withheld})." if withheld else " and its 95 % interval. The ceiling is reached unless the interval lies below zero."),
        ["model", "measure", "behavior", "between", "value", "difference", "low", "high", "reached"],
        rows,
        {**per_model(ceilings, "measure"), "y": "behavior", "x": "value", "series": "between", "note": ["difference", "low", "high"]},
        measures=[{"name": m, "label": measure_label(m), "range": [0.0, 1.0]} for m in dict.fromkeys(str(row[1]) for row in rows)],
        connect=True,
    )


def budgets(scores: Mapping[str, Scores], truth: str) -> Figure | None:
    """Compare the share of time and number of bouts of each behavior."""
    rows = []

    many = too_many_panels(scores)

    def model_cell(name: str) -> tuple[str, ...]:
        return (name,) if many else ()

    for k, (name, scored) in enumerate(scores.items()):
        table = scored.pooled_statistics("budgets.time_error")
        if table is None:
            return None
        for code, behavior in enumerate(scored.ethogram):
            observed, true, predicted, true_bouts, predicted_bouts = table[code]
            if behavior.point or not observed:
                continue
            if k == 0 or many:
                rows.append((*model_cell(name), truth, behavior.name, true / observed, true, int(true_bouts)))
            rows.append((*model_cell(name), name, behavior.name, predicted / observed, predicted, int(predicted_bouts)))
    return make_figure(
        "budgets",
        "dots",
        "Time budgets",
        "Share of the observed time that each behavior takes, all recordings together.",
        [*model_cell("model"), "source", "behavior", "share", "seconds", "bouts"],
        rows,
        {"choose": list(model_cell("model")), "y": "behavior", "x": "share", "series": "source"},
        connect=True,
        percent=True,
    )


def error_kinds(pairs: Mapping[str, Sequence[AlignedPair]]) -> Figure:
    """Divide the erroneous time of each behavior, and of all together, by kind of error."""
    rows = []
    for name, pair_list in pairs.items():
        seconds: dict[str, dict[str, float]] = {ALL: dict.fromkeys(KINDS, 0.0)}
        for pair in pair_list:
            tracks = track_errors(pair)
            for track in tracks:
                by_kind = seconds.setdefault(pair.ethogram[track.behavior].name, dict.fromkeys(KINDS, 0.0))
                for kind, frames in track.kinds.items():
                    by_kind[kind] += iv.total(frames) / pair.rate
            for kinds in subject_errors(tracks).values():
                for kind, frames in kinds.items():
                    seconds[ALL][kind] += iv.total(frames) / pair.rate
        for behavior, times in seconds.items():
            total = sum(times.values())
            rows += [(name, behavior, kind, time, time / total if total else np.nan) for kind, time in times.items()]
    return make_figure(
        "errors",
        "bars",
        "Kinds of errors",
        "Every wrong frame has one kind: at an end of a bout and not longer than its correct frames (boundary), between correct frames "
        "(fragmentation: a bout is split, or two are merged), otherwise another behavior is predicted (confusion), the behavior is not "
        "predicted (missed), or it is predicted but does not occur (invented).",
        ["model", "behavior", "kind", "seconds", "share"],
        rows,
        {**per_model(pairs), "y": "behavior", "part": "kind", "x": "share", "total": "seconds"},
        parts=list(KINDS),
        percent=True,
        unit="s",
    )


def confusion(scores: Mapping[str, Scores]) -> Figure | None:
    """Count frames by true and predicted behavior; None if behaviors overlap."""
    rows = []
    for name, scored in scores.items():
        matrix = scored.pooled_statistics("frames.accuracy")
        if matrix is None or np.isnan(matrix).any():
            return None
        labels = [*scored.ethogram.names, *([NO_BEHAVIOR] if scored.ethogram.background is None else [])]
        for true, row in zip(labels, matrix, strict=True):
            total = row.sum()
            rows += [(name, true, predicted, int(n), n / total if total else np.nan) for predicted, n in zip(labels, row, strict=True)]
    return make_figure(
        "confusion",
        "matrix",
        "Confusion matrix",
        "Of the frames of a true behavior (row), the share predicted as each behavior (column).",
        ["model", "truth", "prediction", "frames", "share"],
        rows,
        {**per_model(scores), "y": "truth", "x": "prediction", "value": "share", "total": "frames"},
    )
