"""`ethobench models`: which models there are."""

from __future__ import annotations

import dataclasses
import inspect
import re
from textwrap import fill
from typing import Annotated

import typer

from ethobench.cli._output import echo


def run(
    name: Annotated[str | None, typer.Argument(help="Show the hyper-parameters of this model.")] = None,
) -> None:
    """List the models, or the hyper-parameters of one.

    Example: [bold]ethobench models auto[/bold]
    """
    from ethobench.models import models
    from ethobench.models.auto import DEFAULT, default_model
    from ethobench.models.base import install_command

    if name is None:
        for each in models.names():
            needed = install_command(models[each].packages)
            echo(f"{each:<14} {models[each].title}{' (default)' if each == DEFAULT else ''}{f' [{needed}]' if needed else ''}")
        default = default_model()
        echo(f"\nWithout --model, ethobench train uses {default.name}.")
        if default.note:
            echo(fill(f"Note: {default.note}", 100, break_long_words=False, break_on_hyphens=False))
        return
    chosen = models[name]
    echo(f"{name}: {chosen.title}")
    meaning = _meanings(chosen.Params)
    for field in dataclasses.fields(chosen.Params):
        tried = f"   grid: {', '.join(map(str, chosen.grid[field.name]))}" if field.name in chosen.grid else ""
        echo(f"  {field.name} = {field.default!r}{tried}")
        if field.name in meaning:
            echo(fill(meaning[field.name], 100, initial_indent=" " * 6, subsequent_indent=" " * 6))


def _meanings(params: type) -> dict[str, str]:
    """Read what hyper-parameters mean from the docstrings of a class and those it builds on."""
    found: dict[str, str] = {}
    for each in reversed(params.__mro__[:-1]):
        names: list[str] = []
        for line in (inspect.getdoc(each) or "").partition("Attributes\n----------\n")[2].splitlines():
            head = re.fullmatch(r"([a-z_]+(?:, [a-z_]+)*) : .*", line)
            if head:
                names = head[1].split(", ")
                found |= dict.fromkeys(names, "")
            elif line.strip():
                found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return {name: text for name, text in found.items() if text}
