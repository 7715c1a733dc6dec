"""Predictions beside people and beside the truth: the human ceiling, time budgets, kinds of errors, confusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ethobench.core import intervals as iv
from ethobench.metrics import Ceiling, Scores
from ethobench.metrics.pairs import AlignedPair
from ethobench.reports.errors import KINDS, subject_errors, track_errors
from ethobench.reports.measures import ALL, label
from ethobench.reports.shape import Figure, crowded, make_figure, per_model
from ethobench.reports.statistics import pooled

NOTHING = "(none)"


def ceiling_figure(ceilings: Mapping[str, Ceiling]) -> Figure | None:
    """Set each model's closeness to the annotators beside theirs to each other; None without a ceiling."""
    rows = []
    for name, found in ceilings.items():
        for row in found.rows:
            if row["annotator"] == "":
                place = (name, row["measure"], row["behavior"])
                rows.append((*place, "annotators", row["human"], None, None, None, None))
                rows.append((*place, "model", row["model"], row["difference"], row["low"], row["high"], row["reached"]))
    if not rows:
        return None
    all_rows = [row for found in ceilings.values() for row in found.rows]
    withheld = all_rows[0]["reason"] if all(row["low"] is None for row in all_rows) else None
    return make_figure(
        "ceiling",
        "dots",
        "The human ceiling",
        "How close the model is to each annotator (mean over them), and they to each other; right, the difference"
        + (f" ({withheld})." if withheld else " and its 95 % interval: the ceiling is reached unless all of it lies below zero."),
        ["model", "measure", "behavior", "between", "value", "difference", "low", "high", "reached"],
        rows,
        {**per_model(ceilings, "measure"), "y": "behavior", "x": "value", "series": "between", "note": ["difference", "low", "high"]},
        measures=[{"name": m, "label": label(m), "range": [0.0, 1.0]} for m in dict.fromkeys(str(row[1]) for row in rows)],
        connect=True,
    )


def budgets(scores: Mapping[str, Scores], truth: str) -> Figure | None:
    """Compare the share of time and number of bouts of each behavior."""
    rows = []

    def chosen(name: str) -> tuple[str, ...]:
        return (name,) if crowded(scores) else ()

    for place, (name, scored) in enumerate(scores.items()):
        table = pooled(scored, "budgets.time_error")
        if table is None:
            return None
        for code, behavior in enumerate(scored.ethogram):
            seen, true, said, true_bouts, said_bouts = table[code]
            if behavior.point or not seen:
                continue
            if place == 0 or crowded(scores):
                rows.append((*chosen(name), truth, behavior.name, true / seen, true, int(true_bouts)))
            rows.append((*chosen(name), name, behavior.name, said / seen, said, int(said_bouts)))
    return make_figure(
        "budgets",
        "dots",
        "Time budgets",
        "Share of the time looked at that each behavior takes, all recordings together.",
        [*chosen("model"), "source", "behavior", "share", "seconds", "bouts"],
        rows,
        {"choose": list(chosen("model")), "y": "behavior", "x": "share", "series": "source"},
        connect=True,
        percent=True,
    )


def error_kinds(pairs: Mapping[str, Sequence[AlignedPair]]) -> Figure:
    """Divide the wrong time of each behavior, and of all together, by kind."""
    rows = []
    for name, several in pairs.items():
        seconds: dict[str, dict[str, float]] = {ALL: dict.fromkeys(KINDS, 0.0)}
        for pair in several:
            tracks = track_errors(pair)
            for track in tracks:
                own = seconds.setdefault(pair.ethogram[track.behavior].name, dict.fromkeys(KINDS, 0.0))
                for kind, frames in track.kinds.items():
                    own[kind] += iv.total(frames) / pair.rate
            for kinds in subject_errors(tracks).values():
                for kind, frames in kinds.items():
                    seconds[ALL][kind] += iv.total(frames) / pair.rate
        for behavior, times in seconds.items():
            total = sum(times.values())
            rows += [(name, behavior, kind, time, time / total if total else np.nan) for kind, time in times.items()]
    return make_figure(
        "errors",
        "bars",
        "Where the errors are",
        "Every wrong frame has one kind: at an end of a bout and no longer than its right part (boundary), between right parts "
        "(fragmentation: broken up or run together), else another behavior in its place (confusion), or none where there is one "
        "(missed), or one where there is none (invented).",
        ["model", "behavior", "kind", "seconds", "share"],
        rows,
        {**per_model(pairs), "y": "behavior", "part": "kind", "x": "share", "total": "seconds"},
        parts=list(KINDS),
        percent=True,
        unit="s",
    )


def confusion(scores: Mapping[str, Scores]) -> Figure | None:
    """Count frames by true and predicted behavior; None where behaviors overlap."""
    rows = []
    for name, scored in scores.items():
        matrix = pooled(scored, "frames.accuracy")
        if matrix is None or np.isnan(matrix).any():
            return None
        labels = [*scored.ethogram.names, *([NOTHING] if scored.ethogram.background is None else [])]
        for true, row in zip(labels, matrix, strict=True):
            whole = row.sum()
            rows += [(name, true, said, int(n), n / whole if whole else np.nan) for said, n in zip(labels, row, strict=True)]
    return make_figure(
        "confusion",
        "matrix",
        "Confusion",
        "Of the frames in which a behavior truly goes on (row), the share predicted as each behavior (column).",
        ["model", "truth", "prediction", "frames", "share"],
        rows,
        {**per_model(scores), "y": "truth", "x": "prediction", "value": "share", "total": "frames"},
    )
