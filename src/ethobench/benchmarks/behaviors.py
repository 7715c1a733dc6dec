"""Behavior by behavior: the figures of a store, and what becomes of them from one setting to another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ethobench.benchmarks.results import Row, grouped_scores
from ethobench.core.errors import NotFoundError
from ethobench.core.occurrence import Occurrence
from ethobench.runs import Store

COLUMNS = ("benchmark", "dataset", "model", "setting", "suite", "behavior", "metric", "value")
COMPARED = ("benchmark", "dataset", "model", "suite", "behavior")
SETTINGS = ("reduced", "full")


def behaviors_table(store: Store, metrics: Sequence[str] = ()) -> list[Row]:
    """Return the figures of every behavior.

    Parameters
    ----------
    store : Store
    metrics : sequence of str
        Which measures; of each suite the first that scores behaviors on their own unless given.

    Returns
    -------
    list of dict
        Sorted rows of ``benchmark, dataset, model, setting, suite, behavior, metric, value``; the suite's own figure of all
        test recordings together.
    """
    rows = []
    for name, _, scores in grouped_scores(store):
        usual = next((measure.name for measure in scores.suite.measures if measure.behaviors), "")
        for behavior, figures in scores.behaviors.items():
            for metric in metrics or (usual,):
                if metric in figures:
                    value = float(figures[metric])
                    rows.append(dict(zip(COLUMNS, (*name, behavior, metric, value if np.isfinite(value) else None), strict=True)))
    return rows


def occurrences(store: Store, only: Collection[str] | None = None) -> dict[str, Occurrence]:
    """Count how often each behavior occurs in the test recordings, in annotations and in the predictions of all models.

    Parameters
    ----------
    store : Store
    only : collection of str, optional
        Keys of the jobs to look at.

    Returns
    -------
    dict of str to Occurrence
        By dataset; without datasets whose suites store no counts.
    """
    found: dict[str, Occurrence] = {}
    for (_, dataset, *_), _, scores in grouped_scores(store, only):
        if scores.occurrence is not None:
            found[dataset] = found[dataset].join(scores.occurrence) if dataset in found else scores.occurrence
    return found


def compare_settings(store: Store, settings: Sequence[str] = SETTINGS, metric: str = "f1") -> list[Row]:
    """Set behaviors under one setting beside the same under another, as BEBE's Fig. 6 does with little and all data.

    Parameters
    ----------
    store : Store
    settings : sequence of str
        The two settings: from, to.
    metric : str

    Returns
    -------
    list of dict
        Rows of ``benchmark, dataset, model, suite, behavior``, the value under each setting, and their ``difference``.
    """
    before, after = settings
    values: dict[tuple[str, ...], dict[str, float]] = {}
    for row in behaviors_table(store, [metric]):
        if row["value"] is not None and row["setting"] in settings:
            values.setdefault(tuple(row[name] for name in COMPARED), {})[row["setting"]] = row["value"]
    pairs = {name: pair for name, pair in values.items() if len(pair) == 2}
    if not pairs:
        raise NotFoundError(f"no model of this store was scored with {metric!r} under both {before!r} and {after!r}")
    return [
        {**dict(zip(COMPARED, name, strict=True)), before: pair[before], after: pair[after], "difference": pair[after] - pair[before]}
        for name, pair in pairs.items()
    ]


def summarize_comparison(rows: Sequence[Row], settings: Sequence[str] = SETTINGS) -> list[Row]:
    """Sum a comparison up for each suite and model: behaviors, correlation, median and largest difference.

    Parameters
    ----------
    rows : list of dict
        As `compare_settings` returns them.
    settings : sequence of str
    """
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["benchmark"], row["suite"], row["model"]), []).append(row)
    summary = []
    for (benchmark, suite, model), found in sorted(groups.items()):
        before, after = (np.array([row[setting] for row in found]) for setting in settings)
        best = max(found, key=lambda row: float(row["difference"]))
        facts: dict[str, Any] = {"benchmark": benchmark, "suite": suite, "model": model, "behaviors": len(found)}
        facts["correlation"] = _correlation(before, after)
        facts["median_difference"] = float(np.median(after - before))
        facts["largest_difference"] = f"{best['difference']:+.3f} ({best['behavior']})"
        summary.append(facts)
    return summary


def _correlation(x: np.ndarray, y: np.ndarray) -> float | None:
    """Return Pearson's correlation, where there is one."""
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 2 and x.std() > 0 and y.std() > 0 else None
