"""`ethobench results`: results of one store, or of several in comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.output import echo, echo_json
from ethobench.cli.tables import Number, format_interval, format_score, print_table, print_wrapped

if TYPE_CHECKING:
    from ethobench.benchmarks.base import Row, Table
    from ethobench.runs import Store


LINE = ("benchmark", "dataset", "model", "setting", "suite")
"""What distinguishes the lines of the table of results."""
INTERVAL = "95 % interval"
COMPARISON = "comparison"
VALUES = ("metric", "mean", "std", "n", "over", "published", "difference")


def run(
    stores: Annotated[list[Path], typer.Argument(help="The store of a run, or several stores to compare.", metavar="STORE")],
    table: Annotated[str, typer.Option(help="Table to show; see above.")] = "results",
    against: Annotated[str, typer.Option(help="Model to compare with in the table comparison; the best model by default.")] = "",
    metrics: Annotated[str | None, typer.Option(help="Metrics to show, separated by commas; 'all' for all metrics.")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="All headline metrics with standard deviations, and tables of any width.")] = False,
    timings: Annotated[bool, typer.Option("--timings", help="Also show the number of jobs, durations and hosts.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only: a list of rows.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs) of the headline metrics.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to a CSV file.", metavar="FILE")] = None,
    sql: Annotated[
        str | None,
        typer.Option(help="Query the tables 'results' and 'jobs' in SQL (DuckDB).", metavar="QUERY", show_default=False),
    ] = None,
) -> None:
    """Show the results of a store, or compare several stores. Stores are never changed.

    Tables of every store:

    - [bold]results[/bold]: means and standard deviations, with published scores
    - [bold]comparison[/bold]: is one model better than another? Paired intervals
    - [bold]behaviors[/bold]: each behavior

    Tables of benchmarks:

    - [bold]settings[/bold]: behaviors with reduced and with full data (bebe)
    - [bold]claims[/bold]: claims of the paper and the same numbers here (bebe)
    - [bold]calms21[/bold]: means over seeds, annotators and behaviors
    - [bold]difficulty[/bold]: new behaviors by frequency and length (calms21)
    - [bold]styles[/bold]: differences between annotators (calms21)
    - [bold]rodentbench[/bold]: failures, repairs and human agreement
    - [bold]curve[/bold]: would more labels help? (study)
    - [bold]labs[/bold], [bold]lab-actions[/bold]: each lab, and each action of each lab (mabe2025)
    - [bold]few-shot[/bold]: new behaviors from few recordings

    Example: [bold]ethobench results runs/first[/bold]

    Example: [bold]ethobench results runs/first --table comparison --against rf[/bold]

    Example: [bold]ethobench results runs/before runs/after[/bold]

    Example: [bold]ethobench results runs/first --sql "select model, max(mean) from results where metric = 'f1' group by model"[/bold]
    """
    from ethobench.benchmarks.base import TableOptions
    from ethobench.benchmarks.tables import find_table
    from ethobench.cli.options import open_store
    from ethobench.core.errors import NotFoundError

    try:
        chosen = find_table(table)
    except NotFoundError as error:
        raise typer.BadParameter(str(error), param_hint="--table") from None
    _check_options(chosen, len(stores), against=against, timings=timings, latex=latex, sql=sql)
    opened = {str(path): open_store(path) for path in stores}
    names = tuple(name.strip() for name in metrics.split(",")) if metrics else ()
    options = TableOptions(names, against)
    if len(opened) > 1:
        rows = _rows_of_stores(opened, chosen, options)
        columns: Sequence[str] = _columns(rows)
    else:
        (store,) = opened.values()
        rows, columns = _rows_of_store(store, chosen, options, timings=timings, sql=sql)
    if csv is not None:
        _write(csv, columns, rows)
    if as_json:
        echo_json(rows, ensure_ascii=True, default=str)
    elif len(opened) > 1 or sql is not None:
        print_rows(columns, rows, wide=wide)
    elif chosen.name == COMPARISON and not (names or wide):
        _print_other(store, chosen, columns, [row for row in rows if row["metric"] in _compact(row["suite"])], wide=False)
    elif chosen.name == "results":
        _print_results(rows, names, latex=latex, wide=wide)
    else:
        _print_other(store, chosen, columns, rows, wide=wide)


def _check_options(table: Table, n_stores: int, *, against: str, timings: bool, latex: bool, sql: str | None) -> None:
    """Refuse options that would be ignored."""
    if against and table.name != COMPARISON:
        raise typer.BadParameter("needs --table comparison", param_hint="--against")
    for name, value in {"--timings": timings, "--latex": latex, "--sql": sql}.items():
        if value and (n_stores > 1 or table.name != "results"):
            raise typer.BadParameter("works for the table results of one store", param_hint=name)


def _rows_of_store(store: Store, table: Table, options: Any, *, timings: bool, sql: str | None) -> tuple[list[Row], Sequence[str]]:
    """Return the rows and columns of a table, or of a query."""
    from ethobench.benchmarks.results import COLUMNS, TIMINGS, results_table
    from ethobench.benchmarks.tables import query_results
    from ethobench.core.errors import NotFoundError

    if table.name == "results":
        rows, columns = results_table(store, timings=timings), (*COLUMNS, *(TIMINGS if timings else ()))
    else:
        rows = table.make(store, options)
        columns = _columns(rows)
    if sql is not None:
        names, answers = query_results(store, rows, sql)
        rows, columns = [dict(zip(names, answer, strict=True)) for answer in answers], tuple(names)
    _print_damage(store)
    if not rows and table.name != "results":
        raise NotFoundError(f"{store.root} contains nothing for the table {table.name!r}; without --table, all results are shown")
    return rows, columns


def _rows_of_stores(stores: dict[str, Store], table: Table, options: Any) -> list[Row]:
    """Return the results of several stores side by side, or the rows of another table of each of them."""
    from ethobench.benchmarks.tables import compare_stores

    if table.name == "results":
        rows = compare_stores(stores, options.metrics)
    else:
        rows = [{"store": name, **row} for name, store in stores.items() for row in table.make(store, options)]
    for store in stores.values():
        _print_damage(store)
    return rows


def _print_results(rows: Sequence[Row], metrics: Sequence[str], *, latex: bool, wide: bool) -> None:
    """Print one line for each model with its metrics as columns, and published scores below it."""
    from ethobench.metrics.suites import suites

    def default(suite: str) -> Sequence[str]:
        return suites[suite].headline if wide or latex else _compact(suite)

    shown = [row for row in rows if "all" in metrics or row["metric"] in (metrics or default(row["suite"]))]
    if latex:
        echo(_latex(shown))
        return
    if not shown:
        echo("no results" if not rows else f"no results for the metrics {', '.join(metrics)}")
        return
    for suite in dict.fromkeys(row["suite"] for row in shown):
        _print_models([row for row in shown if row["suite"] == suite], wide=wide)
    if any(row["std"] is not None for row in shown) and not wide:
        print_wrapped(["more: --wide (standard deviations), --table comparison, --table behaviors"])


def _compact(suite: str) -> Sequence[str]:
    from ethobench.metrics.suites import suites

    return suites[suite].compact or suites[suite].headline


def _print_models(rows: Sequence[Row], *, wide: bool) -> None:
    """Print the results in one suite. What is the same in all lines is in the title."""
    from ethobench.metrics.base import measure_label

    lines: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault(tuple(row[name] for name in LINE), {})[row["metric"]] = row
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    timings = [name for name in rows[0] if name not in (*LINE, *VALUES)]
    counts = {(row["n"], row["over"]) for row in rows}
    constant = [k for k, name in enumerate(LINE) if len({key[k] for key in lines}) == 1 and name != "model"]
    title = ", ".join(f"{LINE[k]} {next(iter(lines))[k]}" for k in constant if next(iter(lines))[k])
    if len(counts) == 1:
        title += "; " + "{} {}".format(*next(iter(counts)))
    varying = [k for k in range(len(LINE)) if k not in constant]
    cells: list[list[Any]] = []
    for key, by_metric in lines.items():
        first = next(iter(by_metric.values()))
        n = [] if len(counts) == 1 else [max(row["n"] for row in by_metric.values())]
        values = [_value_and_std(by_metric.get(metric), wide=wide) for metric in metrics]
        cells.append([*(key[k] for k in varying), *n, *values, *(first[name] for name in timings)])
        if any(row["published"] is not None for row in by_metric.values()):
            published = [format_score(by_metric[m]["published"], 3) if m in by_metric else Number("") for m in metrics]
            names = ["  published" if LINE[k] == "model" else "" for k in varying]
            cells.append([*names, *(Number("") for _ in n), *published, *("" for _ in timings)])
    columns = [*(LINE[k] for k in varying), *([] if len(counts) == 1 else ["n"]), *map(measure_label, metrics), *timings]
    print_table(columns, cells, title=title, wide=wide)


def _value_and_std(row: Row | None, *, wide: bool) -> Number:
    value = format_score(None if row is None else row["mean"], 3)
    return value if row is None or row["std"] is None or not wide else Number(f"{value} ± {format_score(row['std'], 3)}")


def _print_other(store: Store, table: Table, columns: Sequence[str], rows: Sequence[Row], *, wide: bool) -> None:
    if table.layout is not None:
        names, cells = table.layout(rows)
        print_rows(names, [dict(zip(names, row, strict=True)) for row in cells], wide=wide)
    elif table.per_behavior:
        print_behaviors(store, columns, rows, wide=wide)
    else:
        print_rows(columns, rows, wide=wide)
    summary = table.summarize(rows) if table.summarize is not None else []
    if summary:
        print_rows(list(summary[0]), summary, wide=wide)


def print_rows(columns: Sequence[str], rows: Sequence[Row], *, wide: bool = False) -> None:
    """Print rows as a table; columns of text that is the same in all rows are in the title."""
    if {"low", "high"} <= {*columns}:
        columns = [INTERVAL if c == "low" else c for c in columns if c != "high"]
        rows = [{**row, INTERVAL: None if row["low"] is None else format_interval((row["low"], row["high"]), 3)} for row in rows]
    constant = [c for c in columns if len(rows) > 1 and isinstance(rows[0].get(c), str) and len({row.get(c) for row in rows}) == 1]
    title = ", ".join(f"{c.replace('_', ' ')} {rows[0][c]}" for c in constant if rows[0][c])
    shown = [c for c in columns if c not in constant]
    print_table(shown, [[row.get(c) for c in shown] for row in rows], title=title, wide=wide)


def print_behaviors(
    store: Store,
    columns: Sequence[str],
    rows: Sequence[Row],
    only: Collection[str] | None = None,
    *,
    wide: bool = False,
    list_never: bool = True,
) -> None:
    """Print a table of behaviors; behaviors that never occur in a dataset and have no value are listed in one line below it.

    `list_never` is False if the caller lists them.
    """
    from ethobench.benchmarks.tables import count_occurrences

    occurrences = count_occurrences(store, only)
    never = {(dataset, name) for dataset, occurrence in occurrences.items() for name in occurrence.never_annotated}

    def is_empty(row: Row) -> bool:
        return (row["dataset"], row["behavior"]) in never and not any(isinstance(value, float) for value in row.values())

    print_rows(columns, [row for row in rows if not is_empty(row)], wide=wide)
    datasets = {row["dataset"] for row in rows}
    for dataset, occurrence in occurrences.items():
        if dataset in datasets and list_never:
            print_wrapped(f"{dataset}: {line}" if len(datasets) > 1 else line for line in occurrence.lines())


def _print_damage(store: Store) -> None:
    from ethobench.cli.output import print_note

    for message in store.describe_damage():
        print_note(message)


def _columns(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row))


def _write(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    from ethobench.core.files import check_new_path
    from ethobench.formats.tables import write_table

    check_new_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(path, columns, [["" if row.get(c) is None else row[c] for c in columns] for row in rows])


def _latex(rows: Sequence[Row]) -> str:
    """Return a LaTeX table with one line for each dataset, model and setting, and one column for each metric."""
    metrics = list(dict.fromkeys((row["suite"], row["metric"]) for row in rows))
    lines: dict[tuple[str, str, str], dict[tuple[str, str], str]] = {}
    for row in rows:
        mean, std, published = ("--" if row[c] is None else f"{row[c]:.3f}" for c in ("mean", "std", "published"))
        cell = f"${mean} \\pm {std}$" if row["std"] is not None else mean
        cell += f" ({published})" if row["published"] is not None else ""
        lines.setdefault((row["dataset"], row["model"], row["setting"]), {})[row["suite"], row["metric"]] = cell
    head = ["dataset", "model", "setting", *(metric for _, metric in metrics)]
    body = [[*map(_escape, names), *(cells.get(metric, "--") for metric in metrics)] for names, cells in lines.items()]
    start = [r"\begin{tabular}{lll" + "r" * len(metrics) + "}", r"\toprule", " & ".join(map(_escape, head)) + r" \\", r"\midrule"]
    return "\n".join([*start, *(" & ".join(line) + r" \\" for line in body), r"\bottomrule", r"\end{tabular}"])


def _escape(text: str) -> str:
    """Escape the special characters of LaTeX."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)
