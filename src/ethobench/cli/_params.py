"""Hyper-parameters as they are written on the command line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from itertools import chain, product
from typing import Any

import typer

from ethobench.core.errors import EthobenchError

HINT = "--param"


def read_params(told: Sequence[str], models: Sequence[str], decode: str = "") -> dict[str, dict[str, Any]]:
    """Read ``name=value`` and ``model.name=value``: numbers, true, false and none as such, everything else as text.

    Parameters
    ----------
    told : sequence of str
        Without a model, it is meant for all that know the name.
    models : sequence of str
    decode : str
        The metric to decode for, of all models.

    Returns
    -------
    dict of str to dict
        Hyper-parameters by model.
    """
    from ethobench.models import models as known

    found: dict[str, dict[str, Any]] = {model: {"decode": decode} if decode else {} for model in models}
    for part in told:
        left, equals, right = part.partition("=")
        model, dot, name = left.strip().rpartition(".")
        if not equals:
            raise typer.BadParameter(f"{part!r} is not name=value", param_hint=HINT)
        if dot and model not in found:
            raise typer.BadParameter(f"{part!r} is for {model!r}, but the models are {', '.join(models)}", param_hint=HINT)
        meant = [model] if dot else [m for m in models if name in {f.name for f in dataclasses.fields(known[m].Params)}]
        if not meant and len(models) > 1:
            raise EthobenchError(f"none of the models {', '.join(models)} takes {name}")
        for each in meant or models:  # the model itself says best what it takes
            found[each][name] = _value(right)
    return found


def read_variations(told: Sequence[str]) -> list[list[str]]:
    """Read ``name=a,b`` into all that is to be tried: lists of ``name=value``, one of each for every combination.

    Names that vary together are joined by ``+``.

    Examples
    --------
    >>> read_variations(["gap=1,2", "past+future=50,100"])[1]
    ['gap=1', 'past=100', 'future=100']
    """
    choices = []
    for part in told:
        names, equals, values = part.partition("=")
        if not (equals and names.strip() and values.strip()):
            raise typer.BadParameter(f"{part!r} is not name=value,value", param_hint="--vary")
        choices.append([[f"{name.strip()}={value.strip()}" for name in names.split("+")] for value in values.split(",")])
    return [[*chain(*cell)] for cell in product(*choices)]


def read_options(told: Sequence[str]) -> dict[str, Any]:
    """Read ``name=value``, as for hyper-parameters."""
    found = {}
    for part in told:
        name, equals, value = part.partition("=")
        if not equals:
            raise typer.BadParameter(f"{part!r} is not name=value", param_hint="--option")
        found[name.strip()] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        value = json.loads({"none": "null"}.get(text.lower(), text))
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value
