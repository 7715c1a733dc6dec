"""`ethobench status`: what of a run is done, under way, failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def run(
    store: Annotated[Path, typer.Argument(help="The store of a run.", metavar="STORE")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Show what of a run is done, under way and failed; works while it runs.

    Example: [bold]ethobench status runs/first[/bold]
    """
    from ethobench.cli._files import existing_store

    place = existing_store(store)
    failures = place.failures()
    facts = {
        "done": sum(1 for _ in place.finished()),
        "running": place.claimed(),
        "failed": {key: failure["error"] for key, failure in failures.items()},
        "quarantined": len(list((place.root / "quarantine").iterdir())),
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    typer.echo(f"{facts['done']} done, {len(facts['running'])} running, {len(failures)} failed, {facts['quarantined']} found damaged")  # type: ignore[arg-type]
    for key, failure in failures.items():
        typer.echo(f"  {key}: {failure['error']}")
