"""`ethobench results`: the figures of a run in one table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ethobench.benchmarks.results import Row


def run(
    store: Annotated[Path, typer.Argument(help="The store of a run.", metavar="STORE")],
    metrics: Annotated[str | None, typer.Option(help="Show these measures, separated by commas; 'all' for every one.")] = None,
    timings: Annotated[bool, typer.Option("--timings", help="Also tell jobs, seconds and hosts.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only: a list of rows.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs) of the headline measures.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
    sql: Annotated[
        str | None, typer.Option(help="Ask the table 'results' (and 'jobs') in SQL, by DuckDB.", metavar="QUERY", show_default=False)
    ] = None,
) -> None:
    """Show the figures of the final jobs: the suite's own figure, and its standard deviation over individuals.

    Examples
    --------
    [bold]ethobench results runs/first[/bold]

    [bold]ethobench results runs/first --sql "select model, max(mean) from results where metric = 'f1' group by model"[/bold]
    """
    from ethobench.benchmarks.results import COLUMNS, TIMINGS, results_table
    from ethobench.cli._files import existing_store, tell_line
    from ethobench.core.errors import EthobenchError
    from ethobench.metrics import suites

    place = existing_store(store)
    rows = results_table(place, timings=timings)
    for damage in place.damaged:
        tell_line(damage)
    columns = (*COLUMNS, *TIMINGS) if timings else COLUMNS
    if csv is not None:
        from ethobench.formats._tables import write_table

        if csv.exists():
            raise EthobenchError(f"{csv} exists and is left alone; choose another name")
        csv.parent.mkdir(parents=True, exist_ok=True)
        write_table(csv, columns, [["" if row[c] is None else row[c] for c in columns] for row in rows])
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    if sql is not None:
        from ethobench.benchmarks.query import ask

        names, answers = ask(place, rows, sql)
        print_table(names, answers)
        return
    wanted = [name.strip() for name in metrics.split(",")] if metrics else []
    shown = [r for r in rows if metrics == "all" or r["metric"] in (wanted or suites[r["suite"]].headline)]
    if latex:
        typer.echo(_latex(shown))
        return
    told = [c for c in columns if c != "over" and any(row[c] is not None for row in shown)]
    print_table(told, [[row[c] for c in told] for row in shown])


def print_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table to the terminal, or as wide as it needs to be."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(*names, box=SIMPLE_HEAD)
    for row in rows:
        table.add_row(*("-" if v is None else f"{v:.3f}" if isinstance(v, float) else str(v) for v in row))
    console = Console(markup=False, highlight=False)
    Console(markup=False, highlight=False, width=None if console.is_terminal else 180).print(table)


def _latex(rows: Sequence[Row]) -> str:
    """Lay figures out for a paper: one line per dataset, model and setting, one column per measure."""
    measures = list(dict.fromkeys((row["suite"], row["metric"]) for row in rows))
    lines: dict[tuple[str, str, str], dict[tuple[str, str], str]] = {}
    for row in rows:
        mean, std, theirs = ("--" if row[c] is None else f"{row[c]:.3f}" for c in ("mean", "std", "published"))
        cell = f"${mean} \\pm {std}$" if row["std"] is not None else mean
        cell += f" ({theirs})" if row["published"] is not None else ""
        lines.setdefault((row["dataset"], row["model"], row["setting"]), {})[row["suite"], row["metric"]] = cell
    head = ["dataset", "model", "setting", *(metric for _, metric in measures)]
    body = [[*(_escaped(n) for n in name), *(cells.get(m, "--") for m in measures)] for name, cells in lines.items()]
    table = [r"\begin{tabular}{lll" + "r" * len(measures) + "}", r"\toprule", " & ".join(_escaped(h) for h in head) + r" \\", r"\midrule"]
    return "\n".join([*table, *(" & ".join(line) + r" \\" for line in body), r"\bottomrule", r"\end{tabular}"])


def _escaped(text: str) -> str:
    """Take from LaTeX's own characters their meaning."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)
