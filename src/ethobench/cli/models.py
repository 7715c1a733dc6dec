"""`ethobench models`: list the models, or the hyper-parameters of one."""

from __future__ import annotations

import dataclasses
import inspect
import re
from textwrap import fill
from typing import Annotated

import typer

from ethobench.cli.output import echo


def run(
    name: Annotated[str | None, typer.Argument(help="Model whose hyper-parameters to show; all models by default.")] = None,
) -> None:
    """List the models, or the hyper-parameters of one.

    Example: [bold]ethobench models auto[/bold]
    """
    from ethobench.models import models
    from ethobench.models.auto import DEFAULT, default_model
    from ethobench.models.registry import install_command

    if name is None:
        for each in models.names():
            needed = install_command(models[each].packages)
            echo(f"{each:<14} {models[each].title}{' (default)' if each == DEFAULT else ''}{f' [{needed}]' if needed else ''}")
        default = default_model()
        echo(f"\nWithout --model, ethobench train uses {default.name}.")
        if default.note:
            echo(fill(f"Note: {default.note}", 100, break_long_words=False, break_on_hyphens=False))
        return
    model = models[name]
    echo(f"{name}: {model.title}")
    descriptions = _describe_params(model.Params)
    for field in dataclasses.fields(model.Params):
        grid = f"   grid: {', '.join(map(str, model.grid[field.name]))}" if field.name in model.grid else ""
        echo(f"  {field.name} = {field.default!r}{grid}")
        if field.name in descriptions:
            echo(fill(descriptions[field.name], 100, initial_indent=" " * 6, subsequent_indent=" " * 6))


def _describe_params(params: type) -> dict[str, str]:
    """Return descriptions of hyper-parameters, from the docstrings of a class and its bases."""
    descriptions: dict[str, str] = {}
    for each in reversed(params.__mro__[:-1]):
        names: list[str] = []
        for line in (inspect.getdoc(each) or "").partition("Attributes\n----------\n")[2].splitlines():
            head = re.fullmatch(r"([a-z_]+(?:, [a-z_]+)*) : .*", line)
            if head:
                names = head[1].split(", ")
                descriptions |= dict.fromkeys(names, "")
            elif line.strip():
                descriptions |= {name: f"{descriptions[name]} {line.strip()}".strip() for name in names}
    return {name: text for name, text in descriptions.items() if text}
