"""Ask a store in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethobench.benchmarks.results import COLUMNS, Row
from ethobench.core.errors import EthobenchError
from ethobench.runs import Store


def ask(store: Store, rows: Sequence[Row], query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Answer a query over the tables ``results`` (as `results_table` gives it) and ``jobs`` (one row per finished job and measure).

    Parameters
    ----------
    store : Store
    rows : sequence of dict
        Of `results_table`.
    query : str
        In DuckDB's SQL; it cannot read or write files.

    Returns
    -------
    names : list of str
    rows : list of tuple
    """
    try:
        import duckdb
    except ImportError:
        raise EthobenchError('asking in SQL needs one more package: pip install "ethobench[sql]"') from None
    import pyarrow as pa

    names = list(rows[0]) if rows else list(COLUMNS)
    results = pa.table({name: pa.array([row[name] for row in rows]) for name in names})
    tables = {"results": results, "jobs": pa.Table.from_pylist(_jobs(store))}
    with duckdb.connect(config={"enable_external_access": False}) as connection:
        for name, table in tables.items():
            connection.register(f"given_{name}", table)
            connection.execute(f"create table {name} as select * from given_{name}")  # noqa: S608 - our own two names
        try:
            answer = connection.execute(query)
            return [column[0] for column in answer.description or ()], answer.fetchall()
        except duckdb.Error as error:
            raise EthobenchError(f"DuckDB: {error}") from None


def _jobs(store: Store) -> list[Row]:
    """Return one row per finished job, searches included, and measure."""
    rows = []
    for key in list(store.finished()):
        known, scores = store.job(key), store.scores(key)
        if known is None or scores is None:
            continue
        job = {name: known[name] for name in ("benchmark", "dataset", "model", "setting", "stage", "fold", "seed")}
        params = {"params": ", ".join(f"{name}={value}" for name, value in sorted(known["params"].items()))}
        for suite, part in scores["suites"].items():
            rows += [{"key": key, **job, **params, "suite": suite, "metric": m, "value": v} for m, v in part["overall"].items()]
    return rows
