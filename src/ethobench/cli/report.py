"""`ethobench report`: an HTML report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethobench.cli.output import echo


def run(
    store: Annotated[Path, typer.Argument(help="The store of a run.", metavar="STORE")],
    out: Annotated[Path, typer.Option(help="HTML file to write.", metavar="FILE.html")],
    title: Annotated[str, typer.Option(help="Title of the report.")] = "",
    recordings: Annotated[
        int, typer.Option(help="Maximum number of ethograms per dataset, if the data are on this machine; 0: none.", min=0)
    ] = 10,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Write an HTML report of a run: results beside published ones, ethograms, errors, curves, timings. It works offline.

    Example: [bold]ethobench report runs/first --out first.html[/bold]
    """
    from ethobench.cli.options import open_store
    from ethobench.core.files import check_new_path
    from ethobench.reports import load_available_datasets, summarize_store, write_report

    check_new_path(out, overwrite=overwrite)
    opened = open_store(store)
    datasets = load_available_datasets(opened) if recordings else {}
    write_report(out, summarize_store(opened, datasets=datasets, title=title, recordings=recordings), overwrite=overwrite)
    echo(f"{out}: {out.stat().st_size / 1e6:.2f} MB")
