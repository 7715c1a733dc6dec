"""`ethobench models`: which models there are."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer


def run(
    name: Annotated[str | None, typer.Argument(help="Show the hyper-parameters of this model.")] = None,
) -> None:
    """List the models, or the hyper-parameters of one.

    Example: [bold]ethobench models rf[/bold]
    """
    from ethobench.models import models

    if name is None:
        for each in models.names():
            typer.echo(f"{each:<14} {models[each].title}")
        return
    chosen = models[name]
    typer.echo(f"{name}: {chosen.title}")
    for field in dataclasses.fields(chosen.Params):
        tried = f"   grid: {', '.join(map(str, chosen.grid[field.name]))}" if field.name in chosen.grid else ""
        typer.echo(f"  {field.name} = {field.default!r}{tried}")
