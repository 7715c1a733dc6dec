"""`ethobench status`: what of a run is done, under way, failed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethobench.cli._output import echo, echo_json


def run(
    store: Annotated[Path, typer.Argument(help="The store of a run.", metavar="STORE")],
    tracebacks: Annotated[bool, typer.Option("--tracebacks", help="Show where failed jobs failed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Show what of a run is done, under way and failed; works while it runs.

    Example: [bold]ethobench status runs/first[/bold]
    """
    from ethobench.cli._options import open_store

    place = open_store(store)
    failures = place.failures()
    running = place.claims.living()
    done = sum(place.verify(key, thorough=False) for key in list(place.finished()))
    quarantined = place.quarantined()
    if as_json:
        failed = {key: failure["error"] for key, failure in failures.items()}
        summary = {"done": done, "running": running, "failed": failed, "quarantined": quarantined, "damaged": place.describe_damage()}
        echo_json(summary, ensure_ascii=True)
        return
    echo(f"{done} done, {len(running)} running, {len(failures)} failed, {len(quarantined)} found damaged")
    for key, failure in failures.items():
        job = failure["job"]
        echo(f"  {key} {job['dataset']} {job['model']} {job['params']} fold {job['fold']}: {failure['error']}")
        if tracebacks:
            echo(failure["traceback"])
    for message in place.describe_damage():
        echo(f"  {message}")
    for name in quarantined:
        echo(f"  damaged, put aside: {place.root / 'quarantine' / name}")
