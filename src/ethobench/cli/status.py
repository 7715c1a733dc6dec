"""`ethobench status`: finished, running, failed and damaged jobs of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethobench.cli.output import echo, echo_json
from ethobench.cli.tables import print_wrapped


def run(
    store: Annotated[Path, typer.Argument(help="The store of a run.", metavar="STORE")],
    tracebacks: Annotated[bool, typer.Option("--tracebacks", help="Show the tracebacks of failed jobs.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Move damaged jobs to quarantine. The next run repeats them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Show how many jobs of a run are finished, running, failed or damaged. It can be used during a run.

    With --repair, all files are verified and damaged jobs are moved to quarantine; otherwise the store is not changed.

    Example: [bold]ethobench status runs/first[/bold]
    """
    from ethobench.cli.options import open_store

    opened = open_store(store)
    failures = opened.failures()
    running = opened.leases.active()
    done = sum(opened.verify(key, thorough=repair) for key in list(opened.finished()))
    damaged = opened.repair() if repair else opened.describe_damage()
    quarantined = opened.quarantine.entries()
    if as_json:
        failed = {key: failure.error for key, failure in failures.items()}
        summary = {"done": done, "running": running, "failed": failed, "quarantined": quarantined, "damaged": damaged}
        echo_json(summary, ensure_ascii=True)
        return
    echo(f"{done} done, {len(running)} running, {len(failures)} failed, {len(damaged)} damaged, {len(quarantined)} in quarantine")
    for key, failure in failures.items():
        job = failure.job
        params = ", ".join(f"{name}={value}" for name, value in job.params.items())
        named = f"{job.model} ({params})" if params else job.model
        print_wrapped([f"{job.dataset}, fold {job.fold + 1}: {named} failed: {failure.error}", f"  key {key}"])
        if tracebacks:
            echo(failure.traceback)
    for message in damaged:
        echo(f"  {message}")
    for name in quarantined:
        echo(f"  in quarantine: {opened.quarantine.folder / name}")
