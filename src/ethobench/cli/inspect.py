"""`ethobench inspect`: show the content of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import AnnotatorsOption, ReadOption, RenameOption, parse_options, parse_renames
from ethobench.cli.output import echo_json, secho
from ethobench.cli.tables import print_wrapped
from ethobench.core.messages import text_for_command_line
from ethobench.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ethobench.core import Annotation, Dataset, Recording

DEEPER = "    "
LONG = 120.0  # seconds; longer durations are also shown in minutes


def run(
    paths: Annotated[list[Path], typer.Argument(help="Files, folders of files, or datasets such as bebe/HAR.", metavar="FILE")],
    format: Annotated[str | None, typer.Option("--from", help="Format of the files. Default: detected.")] = None,
    entry: Annotated[str | None, typer.Option(help="Only this observation, channel or recording.")] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second, for files that do not state a rate.")] = None,
    option: ReadOption = None,
    annotator: AnnotatorsOption = None,
    rename: RenameOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Show the content of files: format, rate, behaviors, bouts, unobserved time, and notes of the reader.

    Example: [bold]ethobench inspect project.boris[/bold]
    """
    from ethobench.core.errors import EthobenchError
    from ethobench.formats.io import UnknownFormatError

    chosen = _options_of_folder(paths, format, parse_options(option))
    results: list[dict[str, Any]] = []
    failed, skipped = 0, []
    for path in _files(paths):
        try:
            result = describe_file(path, format, entry, rate, annotators=annotator, rename=parse_renames(rename), options=chosen)
        except EthobenchError as error:
            if path not in paths and isinstance(error, UnknownFormatError):
                skipped.append(path.name)
                continue
            failed += 1
            result = {"file": str(path), "error": str(error)}
        results.append(result)
        if not as_json:
            _print(result)
    if as_json:
        echo_json(results)
    elif skipped:
        print_wrapped([f"skipped files of unknown format: {', '.join(skipped)}"], "")
    if failed:
        raise typer.Exit(1)


def describe_file(
    path: Path,
    format: str | None = None,
    entry: str | None = None,
    rate: float | None = None,
    *,
    annotators: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a description of the content of a file or dataset, as a JSON-compatible dict."""
    from ethobench.datasets.collate import rename_behaviors, select_annotators
    from ethobench.datasets.loose_files import check_source, is_dataset_name
    from ethobench.formats import detect, formats, read_at_rate
    from ethobench.formats.reader_options import options_for

    check_source(path)
    if format is None and ((path.suffix.lower() == ".csv" and _is_manifest(path)) or is_dataset_name(path)):
        data = _load(path)
        recordings = list(data if entry is None else [data[entry]])
        name, title = "manifest" if path.exists() else "dataset", f"{len(data)} recordings of {len(data.individuals)} individuals"
    else:
        reader = formats[format] if format else detect(path)
        recordings = read_at_rate(path, rate, reader.name, entry=entry, **options_for(reader, options))
        name, title = reader.name, reader.title
    if annotators:
        recordings = select_annotators(recordings, annotators)
    recordings = rename_behaviors(recordings, rename or {})
    return {
        "file": str(path),
        "format": name,
        "title": title,
        "recordings": [describe_recording(recording) for recording in recordings],
    }


def _is_manifest(path: Path) -> bool:
    from ethobench.formats.text import Head

    return (
        path.is_file()
        and "recording" in (names := {n.lower() for n in Head(path).header})
        and bool({"signals", "annotations", "video", "features"} & names)
    )


def _load(path: Path) -> Dataset:
    """Load a named dataset or that of a manifest; its notes are shown for each recording."""
    from warnings import catch_warnings, simplefilter

    from ethobench.datasets import load_dataset

    with catch_warnings():
        simplefilter("ignore")
        return load_dataset(path)


def describe_recording(recording: Recording) -> dict[str, Any]:
    """Return a description of a recording, as a JSON-compatible dict."""
    from ethobench.features.identity_swaps import identity_swap_notes

    length, rate = recording.n_frames, recording.rate
    return {
        "id": recording.id,
        "individual": recording.individual,
        "n_frames": length,
        "rate": rate,
        "seconds": None if length is None or not rate else length / rate,
        "signals": None if recording.signals is None else repr(recording.signals),
        "features": None if recording.features is None else repr(recording.features),
        "annotators": {name: describe_annotation(a) for name, a in recording.annotations.items()},
        "notes": [text_for_command_line(note) for note in (*recording.notes, *identity_swap_notes(recording))],
    }


def describe_annotation(a: Annotation) -> dict[str, Any]:
    """Return a description of an annotation, as a JSON-compatible dict."""
    from ethobench.core import intervals as iv

    behaviors = {}
    for code, behavior in enumerate(a.ethogram):
        spans = a.spans(code)
        behaviors[behavior.name] = {"bouts": len(spans.start), "seconds": iv.total(iv.union(spans)) / a.rate, "point": behavior.point}
    return {
        "bouts": len(a),
        "behaviors": behaviors,
        "background": a.ethogram.background_name,
        "exclusive": a.is_exclusive,
        "subjects": list(a.subjects),
        "unobserved_seconds": (a.n_frames - iv.total(a.observed.of_any())) / a.rate,
    }


def _options_of_folder(paths: list[Path], format: str | None, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return options after checking that the format of at least one file has each of them."""
    from contextlib import suppress

    from ethobench.core.errors import EthobenchError
    from ethobench.formats import detect, formats
    from ethobench.formats.reader_options import check_options

    if not options:
        return options
    readers = [formats[format]] if format else []
    for path in [] if format else _files(paths):
        with suppress(EthobenchError, OSError):  # reported when the file is described
            readers.append(detect(path))
    check_options(readers, options)
    return options


def _files(paths: list[Path]) -> list[Path]:
    """Return the files to inspect: folders are searched, except BEBE folders, which are one dataset."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir() and not (path / "dataset_metadata.yaml").is_file():
            files += sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        else:
            files.append(path)
    return files


def _print(result: dict[str, Any]) -> None:
    if "error" in result:
        secho(f"error: {result['error']}", err=True, fg=typer.colors.RED)
        return
    secho(result["file"], bold=True)
    print_wrapped([f"{result['title']} ({result['format']})"])
    if not result["recordings"]:
        print_wrapped(["no recordings: the file has no observations, so there is nothing to read yet"])
    for recording in result["recordings"]:
        print_wrapped([f"{recording['id']}: {_describe_length(recording)}"])
        for text in filter(None, (recording["signals"], recording["features"])):
            print_wrapped([text], DEEPER)
        for name, a in recording["annotators"].items():
            _print_annotation(name, a)
        if not recording["signals"] and not recording["annotators"]:
            print_wrapped(["neither signals nor annotations"], DEEPER)
        for note in recording["notes"]:
            print_wrapped([f"note: {note}"], DEEPER, fg=typer.colors.YELLOW)


def _describe_length(recording: dict[str, Any]) -> str:
    clock = "unknown rate" if recording["rate"] is None else f"{recording['rate']:g} Hz"
    length = "unknown length" if recording["n_frames"] is None else plural(recording["n_frames"], "{n} frame", "{n:,} frames")
    seconds = recording["seconds"]
    if seconds is None:
        return f"{length} at {clock}"
    minutes = f", {seconds / 60:,.1f} min" if seconds >= LONG else ""
    return f"{length} at {clock} ({seconds:,.1f} s{minutes})"


def _print_annotation(name: str, a: dict[str, Any]) -> None:
    used = {behavior: b for behavior, b in a["behaviors"].items() if b["bouts"]}
    unused = [behavior for behavior in a["behaviors"] if behavior not in used]
    counts = ", ".join(f"{name} {b['bouts']:,}" + (" points" if b["point"] else f" ({b['seconds']:,.1f} s)") for name, b in used.items())
    print_wrapped([f"{name}: {a['bouts']:,} bouts{': ' if counts else ''}{counts}"], DEEPER)
    extra = [
        f"never: {', '.join(unused)}" if unused else "",
        f"background: {a['background']}" if a["background"] else "",
        "" if a["exclusive"] else "behaviors overlap",
        f"subjects: {', '.join(a['subjects'])}" if a["subjects"] else "",
        f"unobserved: {a['unobserved_seconds']:,.1f} s" if a["unobserved_seconds"] else "",
    ]
    if any(extra):
        print_wrapped(["; ".join(text for text in extra if text)], f"{DEEPER}  ")
