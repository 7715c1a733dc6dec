"""Tables of any store: results, comparison of models, single behaviors, comparison of stores, and SQL queries."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ethobench.benchmarks.base import Row, Table, benchmark_tables, find_benchmark
from ethobench.benchmarks.results import COLUMNS, GROUP, group_jobs, results_table
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.occurrence import Occurrence
from ethobench.metrics import Scores
from ethobench.metrics.suites import suites
from ethobench.runs import Store

BEHAVIOR_COLUMNS = (*GROUP, "behavior", "metric", "value")
COMPARISON_COLUMNS = (
    "benchmark", "dataset", "suite", "metric", "model", "setting", "against", "value", "other", "difference", "low", "high", "better",
    "n", "reason"
)  # fmt: skip
RESAMPLES = 2000
States = list[dict[str, Any]]


def find_table(name: str) -> Table:
    """Return a table by name: one of every store, or one of a benchmark.

    Raises
    ------
    NotFoundError
        If there is no such table.
    """
    tables = {**{table.name: table for table in GENERAL_TABLES}, **benchmark_tables()}
    if name not in tables:
        raise NotFoundError(f"no table {name!r}. Available: {', '.join(tables)}")
    return tables[name]


# ------------------------------------------------------------------------------------------------------------- comparison of models


def comparison_table(store: Store, against: str = "", metrics: Sequence[str] = ()) -> list[Row]:
    """Compare the models of a store pairwise, in the same setting and on the recordings on which both were tested.

    Parameters
    ----------
    store : Store
    against : str
        The model that others are compared with. By default the one with the highest first headline metric, for each dataset and suite.
    metrics : sequence of str
        The headline metrics of each suite if empty.

    Returns
    -------
    list of dict
        ``value`` is that of the model, ``other`` that of the model in ``against``, both on the common recordings; ``difference`` is
        ``value - other``, ``low`` and ``high`` are its paired 95 % bootstrap interval over ``n`` individuals, and ``better`` is the
        probability that the model has the higher value on new individuals. Where these are withheld, for instance with fewer than five
        individuals, ``reason`` says why. Sorted, and the same for the same jobs.
    """
    settings: dict[tuple[str, str, str, str, float], dict[tuple[str, str], States]] = {}
    for group in group_jobs(store):
        if not find_benchmark(group.benchmark).tests_repeatedly:
            key = (group.benchmark, group.dataset, group.suite, group.setting.name, group.setting.train_share)
            settings.setdefault(key, {})[group.model, str(group.setting)] = group.states()
    if against and not any(model == against for candidates in settings.values() for model, _ in candidates):
        raise NotFoundError(f"{store.root} contains no model {against!r} to compare with")
    rows = []
    for (benchmark, dataset, suite, *_), candidates in settings.items():
        for other in _references(suite, candidates, against):
            for candidate, states in candidates.items():
                if candidate != other:
                    rows += _compare((benchmark, dataset, suite), candidate, other, states, candidates[other], metrics)
    return rows


def _references(suite: str, candidates: Mapping[tuple[str, str], States], against: str) -> list[tuple[str, str]]:
    """Return the models and settings that the others are compared with."""
    if against:
        return [candidate for candidate in candidates if candidate[0] == against]
    metric = suites[suite].headline[0]
    values = {candidate: Scores.from_states(states, resamples=0).overall[metric] for candidate, states in candidates.items()}
    finite = {candidate: value for candidate, value in values.items() if np.isfinite(value)}
    return [max(finite, key=lambda candidate: finite[candidate])] if finite else []


def _compare(
    names: tuple[str, str, str],
    candidate: tuple[str, str],
    other: tuple[str, str],
    candidate_states: States,
    other_states: States,
    metrics: Sequence[str],
) -> list[Row]:
    common = {json.dumps(state["recordings"]) for state in candidate_states} & {json.dumps(state["recordings"]) for state in other_states}
    if not common:
        return []
    scores, reference = (
        Scores.from_states([state for state in states if json.dumps(state["recordings"]) in common], resamples=RESAMPLES)
        for states in (candidate_states, other_states)
    )
    metrics = metrics or scores.suite.headline
    try:
        comparison = scores.compare(reference, metrics)
    except MismatchError:
        return []
    against = other[0] if other[1] == candidate[1] else f"{other[0]}, {other[1]}"
    rows = []
    for metric in metrics:
        if metric in comparison:
            result = comparison[metric]
            values = (scores.overall[metric], reference.overall[metric], *(result[key] for key in ("difference", "low", "high", "better")))
            cells = (*names, metric, *candidate, against, *map(_finite, values), result["n"], result["reason"])
            rows.append(dict(zip(COMPARISON_COLUMNS, cells, strict=True)))
    return rows


def _summarize_reasons(rows: Sequence[Row]) -> list[Row]:
    """Return for each number of individuals why intervals are withheld."""
    return [{"n": n, "reason": reason} for n, reason in sorted({(row["n"], row["reason"]) for row in rows if row["reason"]})]


def _layout_comparison(rows: Sequence[Row]) -> tuple[list[str], list[list[Any]]]:
    columns = [name for name in COMPARISON_COLUMNS if name != "reason"]
    return columns, [[row[name] for name in columns] for row in rows]


# --------------------------------------------------------------------------------------------------------------- single behaviors


def behaviors_table(store: Store, metrics: Sequence[str] = ()) -> list[Row]:
    """Return the metric values of every behavior.

    Parameters
    ----------
    store : Store
    metrics : sequence of str
        If empty, the first metric of each suite that is defined for single behaviors.

    Returns
    -------
    list of dict
        Sorted rows of ``benchmark, dataset, model, setting, suite, behavior, metric, value``; values are of all test recordings together.
    """
    rows = []
    for group in group_jobs(store):
        scores = group.scores()
        default = next((measure.name for measure in scores.suite.measures if measure.behaviors), "")
        for behavior, values in scores.behaviors.items():
            for metric in metrics or (default,):
                if metric in values:
                    cells = (*group.names, behavior, metric, _finite(values[metric]))
                    rows.append(dict(zip(BEHAVIOR_COLUMNS, cells, strict=True)))
    return rows


def count_occurrences(store: Store, only: Collection[str] | None = None) -> dict[str, Occurrence]:
    """Count how often each behavior occurs in the test recordings, in annotations and in the predictions of all models.

    Parameters
    ----------
    store : Store
    only : collection of str, optional
        Keys of the jobs to use.

    Returns
    -------
    dict of str to Occurrence
        By dataset; without datasets whose suites store no counts.
    """
    occurrences: dict[str, Occurrence] = {}
    for group in group_jobs(store, only):
        occurrence = group.scores().occurrence
        if occurrence is not None:
            previous = occurrences.get(group.dataset)
            occurrences[group.dataset] = occurrence if previous is None else previous.join(occurrence)
    return occurrences


# ------------------------------------------------------------------------------------------------------------ comparison of stores


def compare_stores(stores: Mapping[str, Store], metrics: Sequence[str] = ()) -> list[Row]:
    """Compare the results of several stores.

    Parameters
    ----------
    stores : mapping of str to Store
        Stores by the name of their column.
    metrics : sequence of str
        The headline metrics of each suite if empty; ``"all"`` for all metrics.

    Returns
    -------
    list of dict
        Rows of ``benchmark, dataset, model, setting, suite, metric``, the mean of each store (None where it has no such result), and
        ``difference``, the last mean minus the first.
    """
    means: dict[tuple[str, ...], dict[str, float | None]] = {}
    for name, store in stores.items():
        for row in results_table(store):
            if "all" in metrics or row["metric"] in (metrics or suites[row["suite"]].headline):
                means.setdefault(tuple(row[column] for column in (*GROUP, "metric")), {})[name] = row["mean"]
    rows = []
    for key, values in sorted(means.items()):
        first, last = (values.get(name) for name in (next(iter(stores)), list(stores)[-1]))
        difference = None if first is None or last is None else last - first
        rows.append(
            {**dict(zip((*GROUP, "metric"), key, strict=True)), **{name: values.get(name) for name in stores}, "difference": difference}
        )
    return rows


# ---------------------------------------------------------------------------------------------------------------------------- SQL


def query_results(store: Store, rows: Sequence[Row], query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run an SQL query on the tables ``results`` (as returned by `results_table`) and ``jobs`` (a row for each finished job and metric).

    Parameters
    ----------
    store : Store
    rows : sequence of dict
        Rows of the table ``results``.
    query : str
        DuckDB's SQL; it cannot read or write files.

    Returns
    -------
    names : list of str
    rows : list of tuple
    """
    try:
        import duckdb
    except ImportError:
        raise EthobenchError('SQL queries need another package: pip install "ethobench[sql]"') from None
    import pyarrow as pa

    names = list(rows[0]) if rows else list(COLUMNS)
    results = pa.table({name: pa.array([row[name] for row in rows]) for name in names})
    tables = {"results": results, "jobs": pa.Table.from_pylist(_job_rows(store))}
    with duckdb.connect(config={"enable_external_access": False}) as connection:
        for name, table in tables.items():
            connection.register(f"arrow_{name}", table)
            connection.execute(f"create table {name} as select * from arrow_{name}")  # noqa: S608 - two fixed names
        try:
            answer = connection.execute(query)
            return [column[0] for column in answer.description or ()], answer.fetchall()
        except duckdb.Error as error:
            raise EthobenchError(f"DuckDB: {error}") from None


def _job_rows(store: Store) -> list[Row]:
    """Return one row for each finished job, jobs of searches included, and metric."""
    rows = []
    for key in list(store.finished()):
        job, scores = store.job(key), store.scores(key)
        if job is None or scores is None:
            continue
        columns = {name: getattr(job, name) for name in ("benchmark", "dataset", "model", "stage", "fold", "seed")}
        params = ", ".join(f"{name}={value}" for name, value in sorted(job.params.items()))
        columns |= {"setting": str(job.setting), "params": params}
        for suite, values in scores["suites"].items():
            rows += [{"key": key, **columns, "suite": suite, "metric": m, "value": v} for m, v in values["overall"].items()]
    return rows


def _finite(value: float) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None


GENERAL_TABLES = (
    Table("results", "means and standard deviations, with published scores", lambda store, options: results_table(store)),
    Table(
        "comparison",
        "whether one model is better than another, with intervals over individuals",
        lambda store, options: comparison_table(store, options.against, options.metrics),
        layout=_layout_comparison,
        summarize=_summarize_reasons,
    ),
    Table(
        "behaviors",
        "each behavior",
        lambda store, options: behaviors_table(store, options.metrics),
        per_behavior=True,
    ),
)
