"""`ethobench run`: benchmarks that can be stopped, resumed and queried."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def run(
    benchmark: Annotated[str, typer.Argument(help="synthetic", metavar="BENCHMARK")],
    store: Annotated[Path, typer.Option(help="Folder for what is done; a run that is started again does only what is missing.")],
    datasets: Annotated[str | None, typer.Option(help="Only these, separated by commas.")] = None,
    models: Annotated[str | None, typer.Option(help="Only these, separated by commas.")] = None,
    search: Annotated[str, typer.Option(help="grid: search each model's published grid on the first fold.")] = "",
    workers: Annotated[int, typer.Option(help="Processes; one for each core unless given.", min=1)] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(help="Of the first fold; fold k has seed + k.")] = 0,
) -> None:
    """Run a benchmark into a store; what is there already is not done again.

    Example: [bold]ethobench run synthetic --models chance,rf --store runs/first[/bold]
    """
    from ethobench.benchmarks import synthetic
    from ethobench.core.errors import NotFoundError
    from ethobench.runs import Engine, Store
    from ethobench.runs.execute import process_pool

    if benchmark != "synthetic":
        raise NotFoundError(f"no benchmark {benchmark!r}; there is: synthetic")
    if search not in ("", "grid"):
        raise typer.BadParameter(f"a search is 'grid', not {search!r}", param_hint="--search")
    place = Store(store)
    chosen = synthetic.plans(_list(datasets) or synthetic.DATASETS, _list(models) or synthetic.MODELS, search=search, seed=seed)
    engine = Engine(place, lambda: process_pool(workers), workers, typer.echo)
    try:
        outcome = engine.run(list(chosen))
    except KeyboardInterrupt:
        typer.secho("stopped; the same command goes on from here", err=True, fg=typer.colors.YELLOW)
        raise typer.Exit(130) from None
    typer.echo(f"{outcome.done} jobs done, {outcome.there} were there, {len(outcome.failed)} failed; see: ethobench results {store}")
    if outcome.failed:
        raise typer.Exit(1)


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []
