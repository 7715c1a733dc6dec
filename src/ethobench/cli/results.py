"""`ethobench results`: the figures of a run in one table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def run(
    store: Annotated[Path, typer.Argument(help="The store of a run.", metavar="STORE")],
    metrics: Annotated[str | None, typer.Option(help="Show these measures, separated by commas; 'all' for every one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only: a list of rows.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
) -> None:
    """Show the figures of the final jobs: the suite's own figure, and its standard deviation over individuals.

    Example: [bold]ethobench results runs/first[/bold]
    """
    from ethobench.benchmarks.results import COLUMNS, results_table
    from ethobench.cli._files import existing_store
    from ethobench.core.errors import EthobenchError
    from ethobench.metrics import suites

    rows = results_table(existing_store(store))
    if csv is not None:
        from ethobench.formats._tables import write_table

        if csv.exists():
            raise EthobenchError(f"{csv} exists and is left alone; choose another name")
        csv.parent.mkdir(parents=True, exist_ok=True)
        write_table(csv, COLUMNS, [["" if row[c] is None else row[c] for c in COLUMNS] for row in rows])
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    wanted = [name.strip() for name in metrics.split(",")] if metrics else []
    table = Table(*COLUMNS[:-1], box=SIMPLE_HEAD)
    for row in rows:
        shown = metrics == "all" or row["metric"] in (wanted or suites[row["suite"]].headline)
        if shown:
            table.add_row(*("-" if row[c] is None else f"{row[c]:.3f}" if isinstance(row[c], float) else str(row[c]) for c in COLUMNS[:-1]))
    Console(markup=False, width=None if Console().is_terminal else 160).print(table)
