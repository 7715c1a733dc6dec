"""How measures are called and explained on the page, and the tables of their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ethobench.metrics import Ceiling, Scores
from ethobench.metrics.base import Measure
from ethobench.metrics.suites import Suite
from ethobench.reports.shape import Figure, crowded, make_figure, per_model

ALL = ""
LABELS = {
    "f1": "F1",
    "f1_score": "bout F1",
    "bout_f1": "bout F1",
    "bout_f1_50": "bout F1 at IoU 0.5",
    "so": "overlap",
    "tp": "temporal precision",
    "ic": "continuity",
    "map": "mAP",
    "mcc": "MCC",
    "auroc": "AUROC",
    "macro_f1": "macro F1",
    "onset_error": "onset late by (s)",
    "offset_error": "offset late by (s)",
    "onset_distance": "onset distance (s)",
    "offset_distance": "offset distance (s)",
    "latency_error": "latency error (s)",
}


def label(measure: str) -> str:
    """Return what a measure is called on the page."""
    return LABELS.get(measure, measure.replace("_", " "))


def describe(suite: Suite, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Describe measures: what they are called, what they mean, and their range where it is bounded."""
    chosen = {m.name: m for m in suite.measures if m.name in names}
    return [{"name": name, "label": label(name), "definition": _definition(chosen[name]), "range": _range(chosen[name])} for name in names]


def headline(scores: Mapping[str, Scores], ceilings: Mapping[str, Ceiling]) -> Figure:
    """Make the first table: the suite's headline measures, overall and by behavior, with intervals and the human ceiling."""
    first = next(iter(scores.values()))
    shown = tuple(first.suite.headline)
    rows = []
    for name, scored in scores.items():
        human = {(row["measure"], row["behavior"]): row["human"] for row in _humans(ceilings.get(name))}
        for behavior, figures, between in _by_behavior(scored):
            for measure in shown:
                low, high = between.get(measure) or (None, None)
                rows.append((name, behavior, measure, figures.get(measure, np.nan), low, high, human.get((measure, behavior))))
    definition = f"{first.suite.title} ({first.interval_note})." + (
        " The tick is the human ceiling: what annotators reach against each other." if ceilings else ""
    )
    return make_figure(
        "scores",
        "pivot",
        "Scores",
        definition,
        ["model", "behavior", "measure", "value", "low", "high", "human"],
        rows,
        {"group": "model", "row": "behavior", "column": "measure", "value": "value", "low": "low", "high": "high", "reference": "human"},
        measures=describe(first.suite, shown),
        reference="human",
        folded=crowded(scores),
    )


def every_measure(scores: Mapping[str, Scores]) -> Figure:
    """Make the table of all measures of the suite, overall and by behavior."""
    first = next(iter(scores.values()))
    shown = tuple(m.name for m in first.suite.measures)
    rows = []
    for name, scored in scores.items():
        for behavior, figures, between in _by_behavior(scored):
            known = [measure for measure in shown if measure in figures]
            rows += [(name, behavior, measure, figures[measure], *(between.get(measure) or (None, None))) for measure in known]
    return make_figure(
        "measures",
        "pivot",
        "All measures",
        f"Every measure of the suite {first.suite.name}, overall and by behavior; a dash is undefined.",
        ["model", "behavior", "measure", "value", "low", "high"],
        rows,
        {"group": "model", "row": "measure", "column": "behavior", "value": "value", "low": "low", "high": "high"},
        measures=describe(first.suite, shown),
        folded=True,
    )


def spread(scores: Mapping[str, Scores]) -> Figure | None:
    """Show every individual's figures; None where there is only one."""
    first = next(iter(scores.values()))
    if len(first.individuals) < 2:
        return None
    shown = tuple(first.suite.headline)
    rows = []
    for name, scored in scores.items():
        for behavior, figures, between in _by_behavior(scored):
            rows += [(name, m, behavior, ALL, figures.get(m, np.nan), *(between.get(m) or (None, None))) for m in shown]
        for who, part in scored.per("individual").items():
            for behavior, figures in {ALL: part["overall"], **part["behaviors"]}.items():
                rows += [(name, m, behavior, who, figures.get(m, np.nan), None, None) for m in shown]
    return make_figure(
        "individuals",
        "dots",
        "Spread over individuals",
        f"Small dots are {first.unit} scored on their own; the large dot is the score of all together"
        + (f" ({first.interval_note})." if first.intervals["reason"] else ", the line its 95 % interval."),
        ["model", "measure", "behavior", "individual", "value", "low", "high"],
        [row for row in rows if row[4] is not None and np.isfinite(row[4])],
        {
            **per_model(scores, "measure"),
            "y": "behavior",
            "x": "value",
            "low": "low",
            "high": "high",
            "small": "individual",
            "color": "behavior",
        },
        measures=describe(first.suite, shown),
    )


def _humans(ceiling: Ceiling | None) -> list[dict[str, Any]]:
    return [] if ceiling is None else [row for row in ceiling.rows if row["annotator"] == ""]


def _by_behavior(scores: Scores) -> list[tuple[str, Mapping[str, float], Mapping[str, tuple[float, float] | None]]]:
    """List the figures and intervals of all behaviors together, then of each."""
    between = scores.intervals
    return [
        (ALL, scores.overall, between["overall"]),
        *((name, figures, between["behaviors"][name]) for name, figures in scores.behaviors.items()),
    ]


def _definition(measure: Measure) -> str:
    metric = measure.metric
    means = {
        "pooled": "",
        "individuals": " Mean over individuals.",
        "recordings": " Mean over recordings.",
        "cells": " Mean over recordings and behaviors.",
    }
    return metric.definition + (" Standard deviation over individuals." if measure.spread else means[measure.over])


def _range(measure: Measure) -> list[float] | None:
    ends = sorted((measure.metric.best, measure.metric.worst))
    return ends if ends == [0.0, 1.0] and not measure.spread else None
