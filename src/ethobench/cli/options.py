"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ethobench.cli.output import secho
from ethobench.core.errors import EthobenchError

if TYPE_CHECKING:
    from ethobench.models import Model
    from ethobench.runs import Store

RenameOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--rename", help="Rename a behavior, such as i=interact; may be repeated.", metavar="OLD=NEW"),
]
MatchOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--match",
        help="Table of names that belong together although they differ: columns left, right (names in the first path, in the second).",
        metavar="FILE.csv",
    ),
]
EntryOption: TypeAlias = Annotated[
    str | None, typer.Option("--entry", help="Read only this observation, channel or recording.", metavar="NAME")
]
AnnotatorsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--annotator", help="Only this annotator. Where files name none, the name to use. May be repeated.", metavar="NAME"),
]
ReadOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="Option of the reader, such as label=behaviour (see the page of the format); may be repeated.",
        metavar="NAME=VALUE",
    ),
]
AllowNetworkOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-network", help="Allow a multimodal-LLM model to send video to its provider. Prints what is sent, and where, first."
    ),
]
ExternalOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        help="A setting that is never read from a model folder: base_url, key_variable, answers or video_url; may be repeated.",
        metavar="NAME=VALUE",
    ),
]


def parse_renames(pairs: Iterable[str] | None) -> dict[str, str]:
    """Parse ``OLD=NEW`` pairs."""
    names: dict[str, str] = {}
    for pair in pairs or ():
        old, equals, new = (text.strip() for text in pair.partition("="))
        if not (old and equals and new):
            raise typer.BadParameter(f"{pair!r} is not OLD=NEW, such as i=interact", param_hint="--rename")
        if names.setdefault(old, new) != new:
            raise typer.BadParameter(f"{old!r} is renamed to both {names[old]!r} and {new!r}", param_hint="--rename")
    return names


def parse_external(pairs: Iterable[str] | None) -> dict[str, str]:
    """Parse ``NAME=VALUE`` pairs of external settings."""
    settings: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = (text.strip() for text in pair.partition("="))
        if not (name and equals):
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE, such as base_url=http://localhost:8000/v1", param_hint="--param")
        settings[name] = value
    return settings


def parse_params(pairs: Sequence[str], models: Sequence[str], decode: str = "") -> dict[str, dict[str, Any]]:
    """Parse hyper-parameters: ``name=value`` for all models that have the parameter, ``model.name=value`` for one model.

    Parameters
    ----------
    pairs : sequence of str
        Values are parsed as JSON (numbers, true, false, lists) or ``none``; anything else is text.
    models : sequence of str
    decode : str
        The metric that decoders are chosen for, the same for all models.

    Returns
    -------
    dict of str to dict
        Hyper-parameters by model.
    """
    from ethobench.models import models as registry

    params: dict[str, dict[str, Any]] = {model: {"decode": decode} if decode else {} for model in models}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        model, dot, name = key.strip().rpartition(".")
        if not equals:
            raise typer.BadParameter(f"{pair!r} is not name=value", param_hint="--param")
        if dot and model not in params:
            raise typer.BadParameter(
                f"{pair!r} sets a parameter of {model!r}, but the models are {', '.join(models)}", param_hint="--param"
            )
        targets = [model] if dot else [m for m in models if name in {f.name for f in dataclasses.fields(registry[m].Params)}]
        if not targets and len(models) > 1:
            raise EthobenchError(f"none of the models {', '.join(models)} has a parameter {name}")
        for target in targets or models:  # the only model: its own error message lists the valid parameters
            params[target][name] = _parse_value(value)
    return params


def parse_variations(pairs: Sequence[str]) -> list[list[str]]:
    """Parse ``name=a,b`` into a list of ``name=value`` for every combination of values.

    Names joined by ``+`` vary together.

    Examples
    --------
    >>> parse_variations(["epochs=1,2", "past+future=50,100"])[1]
    ['epochs=1', 'past=100', 'future=100']
    """
    choices = []
    for pair in pairs:
        names, equals, values = pair.partition("=")
        if not (equals and names.strip() and values.strip()):
            raise typer.BadParameter(f"{pair!r} is not name=value,value", param_hint="--vary")
        choices.append([[f"{name.strip()}={value.strip()}" for name in names.split("+")] for value in values.split(",")])
    return [[*chain(*combination)] for combination in product(*choices)]


def parse_options(pairs: Iterable[str] | None) -> dict[str, str]:
    """Parse ``NAME=VALUE`` pairs of options for reading; `options_for` converts the values for each format."""
    from ethobench.core.errors import ParameterError
    from ethobench.formats.reader_options import parse_option_pairs

    try:
        return parse_option_pairs(pairs or ())
    except ParameterError as error:
        raise typer.BadParameter(str(error), param_hint="--option") from None


def _parse_value(text: str) -> Any:
    try:
        value = json.loads({"none": "null"}.get(text.lower(), text))
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def open_store(path: Path) -> Store:
    """Open the store of an earlier run; a folder that is not a store is an error."""
    from ethobench.runs import Store

    return Store.open(path)


def announce_network(label: str, model: Model, n_recordings: int) -> None:
    """Print to stderr what a model is about to send over the network.

    Raises
    ------
    ConsentError
        If the model may not use the network.
    """
    from ethobench.models.network_use import check_consent

    use = model.network_use()
    check_consent(label, use, allowed=model.allow_network, n_recordings=n_recordings)
    if use is not None:
        secho(f"network: {label} sends {use.describe(n_recordings)}", err=True, fg=typer.colors.YELLOW)
