"""`ethobench view`: look at recordings, compare annotators, and correct labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli.options import (
    AllowNetworkOption,
    AnnotatorsOption,
    EntryOption,
    ExternalOption,
    MatchOption,
    ReadOption,
    RenameOption,
    announce_network,
    parse_external,
    parse_options,
    parse_renames,
)
from ethobench.cli.output import echo, print_note

if TYPE_CHECKING:
    from ethobench.models import Model


def run(
    sources: Annotated[list[str], typer.Argument(help="A dataset, the store of a run, or files.", metavar="SOURCE")],
    port: Annotated[int, typer.Option(help="Port of the local server; any free port by default.", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address of the page instead of opening it.")] = False,
    corrections: Annotated[
        Path | None, typer.Option(help="Folder for corrections; next to recordings.csv by default.", metavar="DIR")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second, for files that do not state it.", metavar="HZ")] = None,
    behaviors: Annotated[str | None, typer.Option(help="Further behaviors to label, separated by commas.")] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option(help="A saved model whose predictions are shown (out-of-fold for its training recordings); may be repeated."),
    ] = None,
    videos: Annotated[
        list[Path] | None, typer.Option(help="A further folder from which videos may be shown; may be repeated.", metavar="DIR")
    ] = None,
    annotator: AnnotatorsOption = None,
    rename: RenameOption = None,
    match: MatchOption = None,
    entry: EntryOption = None,
    option: ReadOption = None,
    blind: Annotated[bool, typer.Option("--blind", help="Show neither other annotators nor models.")] = False,
    allow_network: AllowNetworkOption = False,
    param: ExternalOption = None,
) -> None:
    """View recordings, compare annotators and models, label and correct. Opens a local page in the browser.

    A video alone is enough to begin: the page asks for the behaviors to label.

    Example: [bold]ethobench view my_study/[/bold]   (in the page, ? lists the keys)
    """
    from ethobench.core.errors import EthobenchError

    try:
        from ethobench.app.server import serve
    except ModuleNotFoundError as error:
        raise EthobenchError(f"the viewer needs {error.name}; pip install 'ethobench[app]'") from None
    from ethobench.app.opening import open_project

    project = open_project(
        sources,
        corrections=corrections,
        rate=rate,
        behaviors=[name.strip() for name in (behaviors or "").split(",") if name.strip()],
        models=_load_models(model or [], parse_external(param), allow_network=allow_network),
        before_predicting=announce_network,
        videos=videos or [],
        rename=parse_renames(rename),
        match=match,
        entry=entry,
        annotators=annotator,
        options=parse_options(option),
        blind=blind,
        notify=print_note,
    )
    for note in project.notes:
        print_note(note)
    print_note("the viewer runs until Ctrl-C")
    serve(project, port, browser=not no_browser, ready=echo)
    for line in project.progress():
        print_note(line)
    print_note(f"stopped; corrections are in {project.corrections.folder}")


def _load_models(paths: list[Path], external: dict[str, str], *, allow_network: bool) -> dict[Path, Model]:
    if not paths:
        return {}
    from ethobench.models import load_model

    return {path: load_model(path, allow_network=allow_network, **external) for path in paths}
