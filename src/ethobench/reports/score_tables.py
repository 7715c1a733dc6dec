"""Tables of scores: headline measures, all measures, spread over individuals; names and definitions of measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ethobench.metrics import Ceiling, Scores
from ethobench.metrics.base import Measure, measure_label
from ethobench.metrics.suites import Suite
from ethobench.reports.report_data import Figure, make_figure, per_model, too_many_panels

ALL = ""  # all behaviors, or all individuals, together


def describe(suite: Suite, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the display names, definitions and (if bounded) ranges of measures."""
    chosen = {m.name: m for m in suite.measures if m.name in names}
    return [
        {"name": name, "label": measure_label(name), "definition": _definition(chosen[name]), "range": _range(chosen[name])}
        for name in names
    ]


def headline(scores: Mapping[str, Scores], ceilings: Mapping[str, Ceiling]) -> Figure:
    """Return the first table: headline measures, overall and by behavior, with intervals and the human ceiling."""
    first = next(iter(scores.values()))
    measures = tuple(first.suite.headline)
    rows = []
    for name, scored in scores.items():
        human = {(row["measure"], row["behavior"]): row["human"] for row in _humans(ceilings.get(name))}
        for behavior, values, intervals in _by_behavior(scored):
            for measure in measures:
                low, high = intervals.get(measure) or (None, None)
                rows.append((name, behavior, measure, values.get(measure, np.nan), low, high, human.get((measure, behavior))))
    definition = f"{first.suite.title} ({first.interval_note})." + (
        " The tick is the human ceiling: the score of annotators against each other." if ceilings else ""
    )
    return make_figure(
        "scores",
        "pivot",
        "Scores",
        definition,
        ["model", "behavior", "measure", "value", "low", "high", "human"],
        rows,
        {"group": "model", "row": "behavior", "column": "measure", "value": "value", "low": "low", "high": "high", "reference": "human"},
        measures=describe(first.suite, measures),
        reference="human",
        folded=too_many_panels(scores),
    )


def every_measure(scores: Mapping[str, Scores]) -> Figure:
    """Return the table of all measures of the suite, overall and by behavior."""
    first = next(iter(scores.values()))
    measures = tuple(m.name for m in first.suite.measures)
    rows = []
    for name, scored in scores.items():
        for behavior, values, intervals in _by_behavior(scored):
            available = [measure for measure in measures if measure in values]
            rows += [(name, behavior, measure, values[measure], *(intervals.get(measure) or (None, None))) for measure in available]
    return make_figure(
        "measures",
        "pivot",
        "All measures",
        f"Every measure of the suite {first.suite.name}, overall and by behavior. A dash is undefined.",
        ["model", "behavior", "measure", "value", "low", "high"],
        rows,
        {"group": "model", "row": "measure", "column": "behavior", "value": "value", "low": "low", "high": "high"},
        measures=describe(first.suite, measures),
        folded=True,
    )


def spread(scores: Mapping[str, Scores]) -> Figure | None:
    """Return the scores of every individual; None if there is only one."""
    first = next(iter(scores.values()))
    if len(first.individuals) < 2:
        return None
    measures = tuple(first.suite.headline)
    rows = []
    for name, scored in scores.items():
        for behavior, values, intervals in _by_behavior(scored):
            rows += [(name, m, behavior, ALL, values.get(m, np.nan), *(intervals.get(m) or (None, None))) for m in measures]
        for individual, result in scored.per("individual").items():
            for behavior, values in {ALL: result["overall"], **result["behaviors"]}.items():
                rows += [(name, m, behavior, individual, values.get(m, np.nan), None, None) for m in measures]
    return make_figure(
        "individuals",
        "dots",
        "Spread over individuals",
        f"Small dots are single {first.unit}; the large dot is the score of all together ({first.interval_note})."
        if first.intervals["reason"]
        else f"Small dots are single {first.unit}; the large dot is the score of all together, the line its 95 % interval.",
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
        measures=describe(first.suite, measures),
    )


def _humans(ceiling: Ceiling | None) -> list[dict[str, Any]]:
    return [] if ceiling is None else [row for row in ceiling.rows if row["annotator"] == ""]


def _by_behavior(scores: Scores) -> list[tuple[str, Mapping[str, float], Mapping[str, tuple[float, float] | None]]]:
    """Return scores and intervals of all behaviors together, then of each."""
    intervals = scores.intervals
    return [
        (ALL, scores.overall, intervals["overall"]),
        *((name, values, intervals["behaviors"][name]) for name, values in scores.behaviors.items()),
    ]


def _definition(measure: Measure) -> str:
    metric = measure.metric
    aggregation = {
        "pooled": "",
        "individuals": " Mean over individuals.",
        "recordings": " Mean over recordings.",
        "cells": " Mean over recordings and behaviors.",
    }
    return metric.definition + (" Standard deviation over individuals." if measure.spread else aggregation[measure.over])


def _range(measure: Measure) -> list[float] | None:
    ends = sorted((measure.metric.best, measure.metric.worst))
    return ends if ends == [0.0, 1.0] and not measure.spread else None
