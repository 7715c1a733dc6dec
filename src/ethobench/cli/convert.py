"""`ethobench convert`: convert annotations between formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli.options import AnnotatorsOption, ReadOption, RenameOption
from ethobench.cli.output import echo, secho
from ethobench.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ethobench.core import Recording
    from ethobench.core.errors import Note


def run(
    source: Annotated[Path, typer.Argument(help="The file to read.", metavar="IN")],
    target: Annotated[Path, typer.Argument(help="The file to write, or a folder to write one file per recording.", metavar="OUT")],
    to: Annotated[str | None, typer.Option(help="Format to write, or mabe2025_submission. Default: from the suffix of OUT.")] = None,
    format: Annotated[str | None, typer.Option("--from", help="Format of IN. Default: detected.")] = None,
    entry: Annotated[str | None, typer.Option(help="Only this observation, channel or recording.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="Frame rate of the result, and of IN if the file does not state it.", metavar="HZ")
    ] = None,
    option: ReadOption = None,
    annotator: AnnotatorsOption = None,
    rename: RenameOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """Convert annotations to another format. Notes say what the new format cannot store.

    Example: [bold]ethobench convert project.boris annotations/ --to bento[/bold]

    Example: [bold]ethobench convert bouts.csv bouts.tidy.csv --to tidy --option inclusive=true
    --option 'columns={"behavior": "Code"}'[/bold]

    Example: [bold]ethobench convert predictions.csv submission.csv --to mabe2025_submission[/bold]
    """
    from ethobench.cli.options import parse_options, parse_renames
    from ethobench.core.errors import EthobenchError
    from ethobench.core.names import file_stems
    from ethobench.datasets.collate import rename_behaviors, select_annotators
    from ethobench.formats import detect, formats, read_at_rate, write_recordings
    from ethobench.formats.io import format_for
    from ethobench.formats.mabe2025_submission import SUBMISSION

    reader = formats[format] if format else detect(source)
    recordings = [r for r in read_at_rate(source, rate, reader.name, entry=entry, **parse_options(option)) if r.annotations]
    if not recordings:
        raise EthobenchError(f"{source} contains no annotation to convert")
    if annotator:
        recordings = [r for r in select_annotators(recordings, annotator) if r.annotations]
    recordings = rename_behaviors(recordings, parse_renames(rename))
    if rate:
        recordings = [r.copy(rate=rate, annotations={k: a.resample(rate) for k, a in r.annotations.items()}) for r in recordings]
    if to == SUBMISSION:
        return _write_submission(recordings, target, overwrite=overwrite)
    into_folder = target.is_dir() or not target.suffix
    if into_folder and to is None:
        raise EthobenchError(f"{target} is a folder; specify the format with --to")
    writer = formats[to] if to else format_for(target)
    for recording in recordings:
        _print_notes(recording.notes, f"{source}: {recording.id}")
    if not into_folder:
        if len(recordings) > 1 and not writer.multiple_recordings:
            names = ", ".join(r.id for r in recordings)
            raise EthobenchError(f"{writer.title} stores one recording; use a folder as OUT, or select one with --entry: {names}")
        _print_notes(write_recordings(recordings, target, writer.name, overwrite=overwrite), str(target))
        echo(f"{target}: {plural(len(recordings), '{n} recording', '{n} recordings')}")
        return None
    for name, recording in zip(file_stems(r.id for r in recordings), recordings, strict=True):
        for suffix, single in _split_annotators(recording, writer.multiple_annotators):
            path = target / f"{name}{suffix}{writer.suffixes[0]}"
            _print_notes(write_recordings([single], path, writer.name, overwrite=overwrite), str(path))
            echo(str(path))
    return None


def _write_submission(recordings: list[Recording], target: Path, *, overwrite: bool) -> None:
    """Write one submission of MABe 2025 with the bouts of all recordings."""
    from ethobench.formats.mabe2025_submission import write_submission

    for recording in recordings:
        _print_notes(recording.notes, recording.id)
    _print_notes(write_submission({r.id: r.annotation() for r in recordings}, target, overwrite=overwrite), str(target))
    echo(f"{target}: {plural(len(recordings), '{n} recording', '{n} recordings')}")


def _split_annotators(recording: Recording, multiple_annotators: bool) -> list[tuple[str, Recording]]:
    """Return one recording per annotator with a suffix for its file name; the recording itself if a file can store several."""
    from ethobench.core.names import file_stems

    if multiple_annotators or len(recording.annotations) == 1:
        return [("", recording)]
    names = file_stems(recording.annotations)
    return [
        (f".{name}", recording.copy(annotations={annotator: a}))
        for name, (annotator, a) in zip(names, recording.annotations.items(), strict=True)
    ]


def _print_notes(notes: Iterable[Note], source: str) -> None:
    for note in notes:
        secho(f"note: {source}: {note}", err=True, fg=typer.colors.YELLOW)
