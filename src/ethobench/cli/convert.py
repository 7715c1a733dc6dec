"""`ethobench convert`: from one annotation format to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli._options import RenameOption
from ethobench.cli._output import echo, secho

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ethobench.core import Recording
    from ethobench.core.errors import Note


def run(
    source: Annotated[Path, typer.Argument(help="The file to read.", metavar="IN")],
    target: Annotated[Path, typer.Argument(help="The file to write; a folder where several are needed.", metavar="OUT")],
    to: Annotated[str | None, typer.Option(help="Format to write; from the ending of OUT unless given.")] = None,
    format: Annotated[str | None, typer.Option("--from", help="Format of IN; found out unless given.")] = None,
    entry: Annotated[str | None, typer.Option(help="Only this observation, channel or recording.")] = None,
    rate: Annotated[float | None, typer.Option(help="Clock of the result in Hz, or of IN where it does not tell.", metavar="HZ")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="What the format of IN takes besides, as name=value; may be repeated. See: ethobench formats."),
    ] = None,
    rename: RenameOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Convert annotations; tells what the new format cannot hold.

    For example:

    [bold]ethobench convert project.boris annotations/ --to bento[/bold]

    [bold]ethobench convert bouts.csv bouts.tidy.csv --to tidy --option inclusive=true --option 'columns={"behavior": "Code"}'[/bold]
    """
    from ethobench.cli._options import parse_options, parse_renames
    from ethobench.core.errors import EthobenchError
    from ethobench.core.names import file_stems
    from ethobench.datasets.collate import rename_behaviors
    from ethobench.formats import detect, formats, read_at_rate, write_recordings
    from ethobench.formats.io import format_for

    reader = formats[format] if format else detect(source)
    recordings = [r for r in read_at_rate(source, rate, reader.name, entry=entry, **parse_options(option or [])) if r.annotations]
    if not recordings:
        raise EthobenchError(f"{source} holds no annotation to convert")
    recordings = rename_behaviors(recordings, parse_renames(rename))
    into_folder = target.is_dir() or not target.suffix
    if into_folder and to is None:
        raise EthobenchError(f"{target} is a folder, so name the format with --to")
    writer = formats[to] if to else format_for(target)
    if rate:
        recordings = [r.copy(rate=rate, annotations={k: a.resample(rate) for k, a in r.annotations.items()}) for r in recordings]
    for recording in recordings:
        _tell(recording.notes, f"{source}: {recording.id}")
    if not into_folder:
        if len(recordings) > 1 and not writer.several:
            names = ", ".join(r.id for r in recordings)
            raise EthobenchError(f"{writer.title} holds one recording; give a folder as OUT, or choose one with --entry: {names}")
        _tell(write_recordings(recordings, target, writer.name, overwrite=overwrite), str(target))
        echo(f"{target}: {len(recordings)} recording{'s' if len(recordings) > 1 else ''}")
        return
    for name, recording in zip(file_stems(r.id for r in recordings), recordings, strict=True):
        for annotator, single in _one_by_one(recording, writer.annotators):
            path = target / f"{name}{annotator}{writer.suffixes[0]}"
            _tell(write_recordings([single], path, writer.name, overwrite=overwrite), str(path))
            echo(str(path))


def _one_by_one(recording: Recording, together: bool) -> list[tuple[str, Recording]]:
    """Part a recording into one for each annotator, where a file cannot hold several."""
    from ethobench.core.names import file_stems

    if together or len(recording.annotations) == 1:
        return [("", recording)]
    names = file_stems(recording.annotations)
    return [
        (f".{name}", recording.copy(annotations={annotator: a}))
        for name, (annotator, a) in zip(names, recording.annotations.items(), strict=True)
    ]


def _tell(notes: Iterable[Note], where: str) -> None:
    for note in notes:
        secho(f"note: {where}: {note}", err=True, fg=typer.colors.YELLOW)
