"""`ethobench report`: a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethobench.cli._output import echo


def run(
    store: Annotated[Path, typer.Argument(help="The store of a run.", metavar="STORE")],
    out: Annotated[Path, typer.Option(help="The page to write.", metavar="FILE.html")],
    title: Annotated[str, typer.Option(help="Title of the page.")] = "",
    recordings: Annotated[
        int, typer.Option(help="Ethograms of each dataset at most, where the data are on this machine; 0: none.", min=0)
    ] = 10,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a page that is there.")] = False,
) -> None:
    """Write a run as one HTML page: results beside published ones, ethograms, errors, curves, times. It works offline.

    Example: [bold]ethobench report runs/first --out first.html[/bold]
    """
    from ethobench.cli._options import open_store
    from ethobench.core.files import check_new_path
    from ethobench.reports import datasets_at_hand, summarize_store, write_report

    check_new_path(out, overwrite=overwrite)
    found = open_store(store)
    data = datasets_at_hand(found) if recordings else {}
    report = summarize_store(found, datasets=data, title=title, recordings=recordings)
    write_report(out, report, overwrite=overwrite)
    echo(f"{out}: {out.stat().st_size / 1e6:.2f} MB")
