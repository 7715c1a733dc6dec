"""`ethobench clips`: clips of bouts, grids, overlay videos and timelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import AnnotatorsOption, EntryOption, MatchOption, RenameOption
from ethobench.core.errors import EthobenchError
from ethobench.core.wording import plural

if TYPE_CHECKING:
    from ethobench.core import Recording
    from ethobench.figures.clips import ClipSummary
    from ethobench.figures.scenes import ClipStyle


TIMELINE_FORMATS = ("svg", "pdf", "png")
UNUSED = {
    "--timeline": ("grid", "overlay", "behavior", "margin", "max_bouts", "seed", "poses", "no_labels", "no_time", "height", "camera"),
    "--overlay": ("grid", "behavior", "margin", "max_bouts", "seed", "poses"),
    "--grid": ("height", "no_time"),
}
"""Parameters that have no meaning with an option."""


def run(
    context: typer.Context,
    sources: Annotated[
        list[Path],
        typer.Argument(help="A study, a dataset, or files: labels with their videos or poses.", metavar="SOURCE"),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the files.", metavar="DIR")],
    behavior: Annotated[
        list[str] | None, typer.Option(help="Only bouts of this behavior; may be repeated. Default: all.", metavar="NAME")
    ] = None,
    annotator: AnnotatorsOption = None,
    grid: Annotated[bool, typer.Option("--grid", help="One video per behavior with its bouts side by side.")] = False,
    overlay: Annotated[bool, typer.Option("--overlay", help="A video of each complete recording with its labels and poses.")] = False,
    timeline: Annotated[str | None, typer.Option(help="Write the timeline of each recording as svg, pdf or png.", metavar="FORMAT")] = None,
    margin: Annotated[str, typer.Option(help="Time before and after each bout.", metavar="TIME")] = "1s",
    max_bouts: Annotated[
        int | None,
        typer.Option("--max", help="At most N bouts per behavior, drawn at random. Default: all; 16 in a grid.", metavar="N", min=1),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of --max.", min=0)] = 0,
    poses: Annotated[
        bool, typer.Option("--poses", help="Draw the keypoints over the video; without a video they are always drawn.")
    ] = False,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Do not draw behaviors.")] = False,
    no_time: Annotated[bool, typer.Option("--no-time", help="Do not draw time and frame.")] = False,
    height: Annotated[int, typer.Option(help="Maximum height of the pictures in pixels.", metavar="PIXELS")] = 720,
    camera: Annotated[int, typer.Option(help="Which camera, from 1.", min=1)] = 1,
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    rename: RenameOption = None,
    match: MatchOption = None,
    entry: EntryOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Cut clips of bouts from videos or poses, with labels and time burned in. Also grids, overlay videos and timelines.

    Example: [bold]ethobench clips my_study/ --behavior attack --out clips/[/bold]

    Side by side: [bold]ethobench clips my_study/ --grid --max 9 --out grids/[/bold]

    For a paper: [bold]ethobench clips my_study/ --timeline svg --out timelines/[/bold]
    """
    from ethobench.cli.options import parse_renames
    from ethobench.cli.output import echo, echo_json, print_note
    from ethobench.figures.scenes import ClipStyle

    chosen = {"--timeline": timeline is not None, "--overlay": overlay, "--grid": grid}
    _refuse_unused(context, next((option for option, is_set in chosen.items() if is_set), ""))
    if timeline is not None and timeline not in TIMELINE_FORMATS:
        raise typer.BadParameter(f"{timeline!r} is none of {', '.join(TIMELINE_FORMATS)}", param_hint="--timeline")
    seconds = _parse_margin(margin)
    style = ClipStyle(poses=poses or overlay, labels=not no_labels, time=not no_time, height=height)
    recordings = _read(sources, rate=rate, rename=parse_renames(rename), match=match, entry=entry, annotators=annotator)
    with _show_progress() as listen, listen:
        if timeline is not None:
            summary = _write_timelines(recordings, out, timeline, overwrite=overwrite)
        elif overlay:
            summary = _write_overlays(recordings, out, style, camera - 1, overwrite=overwrite)
        else:
            summary = _write_bouts(recordings, out, behavior, seconds, max_bouts, seed, style, camera - 1, grid=grid, overwrite=overwrite)
    for note in summary.notes:
        print_note(note)
    if as_json:
        echo_json({"files": [str(path) for path in summary.files], "bouts": len(summary.bouts), "notes": summary.notes})
        return
    if summary.bouts:
        line = plural(
            len(summary.files),
            "{n} file of {bouts} bouts in {out}",
            "{n} files of {bouts} bouts in {out}",
            bouts=len(summary.bouts),
            out=out,
        )
    else:
        line = plural(len(summary.files), "{n} file in {out}", "{n} files in {out}", out=out)
    echo(line)


def _refuse_unused(context: typer.Context, option: str) -> None:
    """Refuse parameters that would be ignored."""
    for name in UNUSED.get(option, ()):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            flag = "--max" if name == "max_bouts" else f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{flag} has no meaning with {option}; omit one of them", param_hint=flag)


def _parse_margin(text: str) -> float:
    """Parse a time such as 1s, 0.5s or 0."""
    from ethobench.core.deadline import parse_seconds

    try:
        return float(text)
    except ValueError:
        return 0.0 if text.strip() == "0s" else parse_seconds(text)


def _read(paths: Sequence[Path], **options: Any) -> list[Recording]:
    """Read the recordings of a study, or of loose files, with their videos and poses."""
    from ethobench.cli.output import print_notes
    from ethobench.datasets.collate import collate_files
    from ethobench.datasets.video_clock import with_video_clock

    collation = collate_files(paths, **options)
    print_notes(collation.notes)
    recordings = [with_video_clock(recording) for recording in collation.recordings]
    print_notes(note for recording in recordings for note in recording.notes)
    if not recordings:
        raise EthobenchError(f"{', '.join(map(str, paths))}: no recording")
    return recordings


def _write_bouts(
    recordings: list[Recording],
    out: Path,
    behaviors: list[str] | None,
    margin: float,
    max_bouts: int | None,
    seed: int,
    style: ClipStyle,
    camera: int,
    *,
    grid: bool,
    overwrite: bool,
) -> ClipSummary:
    from ethobench.figures.clips import GRID_SIZE, select_bouts, write_clips, write_grids

    bouts = select_bouts(recordings, behaviors, max_bouts=max_bouts or (GRID_SIZE if grid else None), seed=seed)
    if grid:
        return write_grids(bouts, out, margin=margin, style=style, camera=camera, overwrite=overwrite)
    return write_clips(bouts, out, margin=margin, style=style, camera=camera, overwrite=overwrite)


def _write_overlays(recordings: list[Recording], out: Path, style: ClipStyle, camera: int, *, overwrite: bool) -> ClipSummary:
    from ethobench.core.files import check_new_path
    from ethobench.core.names import file_stems
    from ethobench.core.progress import progress_range
    from ethobench.figures.clips import ClipSummary, can_show, write_overlay

    summary = ClipSummary(notes=[f"{r.id!r} has neither a video nor poses; skipped" for r in recordings if not can_show(r)])
    shown = [recording for recording in recordings if can_show(recording)]
    if not shown:
        raise EthobenchError(f"{recordings[0].id!r} has neither a video nor poses, so there is nothing to show")
    paths = [out / f"{stem}.overlay.mp4" for stem in file_stems(recording.id for recording in shown)]
    for path in paths:
        check_new_path(path, overwrite=overwrite)
    for number, (recording, path) in enumerate(zip(shown, paths, strict=True)):
        with progress_range(number / len(shown), (number + 1) / len(shown)):
            written = write_overlay(recording, path, style=style, camera=camera, overwrite=overwrite)
        summary.files += written.files
        summary.add_notes(written.notes)
    return summary


def _write_timelines(recordings: list[Recording], out: Path, format: str, *, overwrite: bool) -> ClipSummary:
    from ethobench.core.names import file_stems
    from ethobench.figures.clips import ClipSummary
    from ethobench.figures.timelines import write_timeline

    annotated = [recording for recording in recordings if recording.annotations]
    if not annotated:
        raise EthobenchError("no recording has an annotation, so there is no timeline")
    stems = file_stems(recording.id for recording in annotated)
    files = [write_timeline(r, out / f"{stem}.{format}", overwrite=overwrite) for r, stem in zip(annotated, stems, strict=True)]
    return ClipSummary(files, notes=[f"{r.id!r} has no annotation; skipped" for r in recordings if not r.annotations])


@contextmanager
def _show_progress() -> Iterator[Any]:
    """Yield a context in which progress is shown as a bar on a terminal, and not at all elsewhere."""
    from contextlib import nullcontext

    from ethobench.cli.output import make_console, make_visible
    from ethobench.core.progress import progress_listener

    console = make_console(stderr=True)
    if not console.is_terminal:
        yield nullcontext()
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}", markup=False)
    with Progress(BarColumn(), TaskProgressColumn(), TextColumn("left"), TimeRemainingColumn(), text, console=console) as progress:
        task = progress.add_task("starting", total=1.0)
        yield progress_listener(lambda stage, fraction: progress.update(task, completed=fraction, description=make_visible(stage)))
