"""Is one model better than another? Differences on the same recordings, with intervals over individuals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ethobench.benchmarks.results import MIXED, Row, grouped_jobs, states_of
from ethobench.core.errors import MismatchError, NotFoundError
from ethobench.metrics import Scores
from ethobench.metrics.suites import suites
from ethobench.runs import Store

COLUMNS = (
    "benchmark", "dataset", "suite", "metric", "model", "setting", "against", "value", "other", "difference", "low", "high", "better",
    "n", "reason"
)  # fmt: skip
RESAMPLES = 2000
States = list[dict[str, Any]]


def comparison_table(store: Store, against: str = "", metrics: Sequence[str] = ()) -> list[Row]:
    """Compare the models of a store pairwise, in the same setting and on the recordings on which both were tested.

    Parameters
    ----------
    store : Store
    against : str
        With which model; or with the one of the highest first headline figure, for each dataset and suite.
    metrics : sequence of str
        Which measures; the headline ones of each suite unless given.

    Returns
    -------
    list of dict
        ``value`` is the model's, ``other`` that of the model it is set ``against``, both on the common recordings; ``difference``
        the first minus the second, ``low`` and ``high`` its 95 % interval over ``n`` individuals (paired), and ``better`` the
        probability that the model is ahead on further individuals. Where these three are withheld, ``reason`` says why, such as fewer
        than five individuals. Sorted; the same for the same jobs.
    """
    tables: dict[tuple[str, ...], dict[tuple[str, str], States]] = {}
    for name, jobs in grouped_jobs(store):
        benchmark, dataset, model, setting, suite = name
        if benchmark not in MIXED:
            kind = setting.split(", ", maxsplit=1)[0]  # what follows tells one try of a model from another
            tables.setdefault((benchmark, dataset, suite, kind), {})[model, setting] = states_of(name, jobs)
    if against and not any(model == against for table in tables.values() for model, _ in table):
        raise NotFoundError(f"{store.root} holds no model {against!r} to compare with")
    rows = []
    for place, table in tables.items():
        for other in _others(place[2], table, against):
            for tried, states in table.items():
                if tried != other:
                    rows += _compare(place[:3], tried, other, states, table[other], metrics)
    return rows


def _others(suite: str, table: Mapping[tuple[str, str], States], against: str) -> list[tuple[str, str]]:
    """Return what the others are compared with."""
    if against:
        return [tried for tried in table if tried[0] == against]
    first = suites[suite].headline[0]
    values = {tried: Scores.from_states(states, resamples=0).overall[first] for tried, states in table.items()}
    known = {tried: value for tried, value in values.items() if value == value}  # noqa: PLR0124 - not NaN
    return [max(known, key=lambda tried: known[tried])] if known else []


def _compare(
    place: tuple[str, ...], tried: tuple[str, str], other: tuple[str, str], mine: States, theirs: States, metrics: Sequence[str]
) -> list[Row]:
    common = {json.dumps(state["recordings"]) for state in mine} & {json.dumps(state["recordings"]) for state in theirs}
    if not common:
        return []
    sides = [[state for state in states if json.dumps(state["recordings"]) in common] for states in (mine, theirs)]
    ours, others = (Scores.from_states(states, resamples=RESAMPLES) for states in sides)
    try:
        found = ours.compare(others, metrics or ours.suite.headline)
    except MismatchError:
        return []
    against = other[0] if other[1] == tried[1] else f"{other[0]}, {other[1]}"
    rows = []
    for metric in metrics or ours.suite.headline:
        if metric in found:
            told = found[metric]
            figures = (ours.overall[metric], others.overall[metric], *(told[key] for key in ("difference", "low", "high", "better")))
            known = [value if value == value else None for value in figures]  # noqa: PLR0124 - not NaN
            rows.append(dict(zip(COLUMNS, (*place, metric, *tried, against, *known, told["n"], told["reason"]), strict=True)))
    return rows
