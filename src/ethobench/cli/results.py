"""`ethobench results`: results of one store, or of several in comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.output import echo, echo_json, make_console

if TYPE_CHECKING:
    from ethobench.benchmarks.base import Row, Table
    from ethobench.runs import Store


def run(
    stores: Annotated[list[Path], typer.Argument(help="The store of a run, or several stores to compare.", metavar="STORE")],
    table: Annotated[str, typer.Option(help="Table to show; see above.")] = "results",
    against: Annotated[str, typer.Option(help="Model to compare with in the table comparison; the best model by default.")] = "",
    metrics: Annotated[str | None, typer.Option(help="Metrics to show, separated by commas; 'all' for all metrics.")] = None,
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
        print_table(columns, [[row.get(c) for c in columns] for row in rows])
    elif chosen.name == "results":
        _print_results(columns, rows, names, latex=latex)
    else:
        _print_other(store, chosen, columns, rows)


def _check_options(table: Table, n_stores: int, *, against: str, timings: bool, latex: bool, sql: str | None) -> None:
    """Refuse options that would be ignored."""
    if against and table.name != "comparison":
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


def _print_results(columns: Sequence[str], rows: Sequence[Row], metrics: Sequence[str], *, latex: bool) -> None:
    from ethobench.metrics.suites import suites

    shown = [row for row in rows if "all" in metrics or row["metric"] in (metrics or suites[row["suite"]].headline)]
    if latex:
        echo(_latex(shown))
        return
    filled = [c for c in columns if c != "over" and any(row[c] is not None for row in shown)]
    print_table(filled, [[row[c] for c in filled] for row in shown])


def _print_other(store: Store, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
    if table.layout is not None:
        print_table(*table.layout(rows))
    elif table.per_behavior:
        print_behaviors(store, columns, rows)
    else:
        print_table(columns, [[row.get(c) for c in columns] for row in rows])
    summary = table.summarize(rows) if table.summarize is not None else []
    if summary:
        print_table(list(summary[0]), [list(row.values()) for row in summary])


def print_behaviors(store: Store, columns: Sequence[str], rows: Sequence[Row], only: Collection[str] | None = None) -> None:
    """Print a table of behaviors; behaviors that never occur in a dataset and have no value are listed in one line below it."""
    from ethobench.benchmarks.tables import count_occurrences
    from ethobench.cli.output import print_lines

    occurrences = count_occurrences(store, only)
    never = {(dataset, name) for dataset, occurrence in occurrences.items() for name in occurrence.never_annotated}

    def is_empty(row: Row) -> bool:
        return (row["dataset"], row["behavior"]) in never and not any(isinstance(value, float) for value in row.values())

    print_table(columns, [[row.get(c) for c in columns] for row in rows if not is_empty(row)])
    datasets = {row["dataset"] for row in rows}
    for dataset, occurrence in occurrences.items():
        if dataset in datasets:
            print_lines(f"{dataset}: {line}" if len(datasets) > 1 else line for line in occurrence.lines())


def print_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table, to the width of the terminal, or as wide as it needs to be elsewhere."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    table = RichTable(*names, box=SIMPLE_HEAD)
    for row in rows:
        table.add_row(*("-" if v is None else f"{v:.3f}" if isinstance(v, float) else str(v) for v in row))
    make_console(plain_width=180).print(table)


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
