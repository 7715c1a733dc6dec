"""What a saved model may do, as stated on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ethobench.cli._output import secho

if TYPE_CHECKING:
    from ethobench.models import Model

AllowNetworkOption: TypeAlias = Annotated[
    bool,
    typer.Option("--allow-network", help="Let a model that asks a provider (mllm) send video to it; says first what goes where."),
]
ExternalOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        help="A setting that is never taken from a model folder: base_url, key_variable, answers or address; may be repeated.",
        metavar="NAME=VALUE",
    ),
]


def read_external(pairs: Iterable[str] | None) -> dict[str, str]:
    """Read ``NAME=VALUE`` pairs."""
    settings: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals):
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE, such as base_url=http://localhost:8000/v1", param_hint="--param")
        settings[name] = value
    return settings


def announce_network(label: str, model: Model, n_recordings: int) -> None:
    """Say on stderr what a model will send over the network, before it does.

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
