"""`ethobench study`: draft and check the ``recordings.csv`` of your own study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import ReadOption, parse_options
from ethobench.cli.output import VisibleCommand, VisibleGroup, echo, echo_json, print_note, secho
from ethobench.core.messages import text_for_command_line
from ethobench.core.wording import join_names, plural

if TYPE_CHECKING:
    from ethobench.datasets.discover import StudyDraft
    from ethobench.datasets.draft_lengths import LengthComparison
    from ethobench.datasets.study_check import StudyCheck

app = typer.Typer(cls=VisibleGroup, help="Draft and check the recordings.csv of your own study.", no_args_is_help=True)

WIDTH = 80
MAX_SHOWN = 12


@app.command(cls=VisibleCommand)
def make(
    folder: Annotated[
        Path, typer.Argument(help="Folder with videos, poses, signals and annotations, in any subfolders.", metavar="FOLDER")
    ],
    rate: Annotated[
        float | None, typer.Option(help="Frames per second. Default: as annotations, videos or signals state.", min=1e-6, metavar="HZ")
    ] = None,
    entry: Annotated[
        str | None, typer.Option(help="Stream or channel of annotation files with several. Default: the one with the most bouts.")
    ] = None,
    option: ReadOption = None,
    annotator: Annotated[str | None, typer.Option(help="Name of the annotator of files that name none.", metavar="NAME")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Pattern of files to skip, such as '*_old*'; may be repeated.")] = None,
    out: Annotated[Path | None, typer.Option(help="Other name of the manifest, in the same folder.", metavar="FILE.csv")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing recordings.csv.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the draft; write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Draft recordings.csv and ethogram.csv from the files in a folder, and show what was matched, what was not, and why.

    Example: [bold]ethobench study make my_study/ --dry-run[/bold]
    """
    from ethobench.core.errors import PathExistsError
    from ethobench.datasets.discover import check_not_open, discover_study
    from ethobench.datasets.manifest_tables import MANIFEST

    manifest = folder / MANIFEST if out is None else out if out.parent != Path() else folder / out
    if manifest.suffix.lower() != ".csv":
        raise typer.BadParameter("the name of a manifest ends in .csv", param_hint="--out")
    if not dry_run:
        if manifest.exists() and not overwrite:
            raise PathExistsError(
                f"{manifest} already exists. Check it with `ethobench study check {folder}`, write the draft to another file with "
                "--out draft.csv, replace it with --overwrite, or look at the draft with --dry-run"
            )
        check_not_open(manifest)
    options = parse_options(option)
    draft = discover_study(folder, rate=rate, entry=entry, exclude=exclude or (), options=options, annotator=annotator)
    written = [] if dry_run else draft.write(manifest, overwrite=overwrite)
    if as_json:
        echo_json({**draft.to_dict(), "written": [str(path) for path in written]})
        return
    _print_draft(draft)
    if dry_run:
        echo("nothing is written (--dry-run)")
        return
    echo(f"wrote {join_names(written)}")
    target = folder if manifest.name == MANIFEST else manifest
    echo(f"next: ethobench study check {target}")


def _print_draft(draft: StudyDraft) -> None:
    """Print what a draft has, what was guessed, and which files are not used."""
    reasons = Counter((match.role, match.reason) for match in draft.matches)
    echo(f"{len(draft.recordings)} recordings from {draft.n_files} files in {draft.folder}")
    shown = draft.rows[:MAX_SHOWN]
    columns = [
        column for column in ("recording", "individual", "rate", "annotator", "entry", "options") if any(row.get(column) for row in shown)
    ]
    cells = [[row.get(column, "") for column in columns] + [_files(row)] for row in shown]
    _print_rows([*columns, "files"], cells)
    if len(draft.rows) > MAX_SHOWN:
        echo(f"  ... and {len(draft.rows) - MAX_SHOWN} more rows")
    for role in ("signals", "signals and annotations", "annotations", "video"):
        rules = ", ".join(f"{n} by {reason}" for (of_role, reason), n in reasons.items() if of_role == role)
        if rules:
            _print_field("matched", f"{role}: {rules}")
    if len(draft.ethogram):
        _print_field("behaviors", ", ".join(draft.ethogram.names))
    for guess in map(text_for_command_line, draft.guesses):
        label, _, text = guess.partition(": ") if guess.startswith(("rate:", "individuals:", "annotators:")) else ("note", "", guess)
        _print_field(label, text)
    if draft.lengths.total:
        _print_field("lengths", _describe_lengths(draft.lengths))
    for problem in draft.lengths.problems[:MAX_SHOWN]:
        _print_field("problem", problem)
    for reason, paths in _by_reason(draft).items():
        _print_field("not used", f"{join_names(paths, '', most=3)}: {reason}")


def _describe_lengths(lengths: LengthComparison) -> str:
    """Return in how many recordings annotations were compared with poses or signals, and how many do not fit."""
    count = f"{len(lengths.problems)} do not fit" if lengths.problems else "no problems"
    rest = "" if lengths.compared == lengths.total else "; `ethobench study check` compares all"
    return f"of annotations and poses or signals, compared in {lengths.compared} of {lengths.total} recordings: {count}{rest}"


def _by_reason(draft: StudyDraft) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for unused in draft.unused:
        reasons.setdefault(unused.reason, []).append(unused.path.as_posix())
    return reasons


def _files(row: Mapping[str, str]) -> str:
    """Return the names of the files of a row, without folders."""
    return " + ".join(
        dict.fromkeys(row[column].rpartition("/")[2] for column in ("signals", "annotations", "video", "features") if row.get(column))
    )


def _print_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in at most 80 columns; long cells are shortened in the middle."""
    widths = [min(max(len(row[i]) for row in (header, *rows)), 16) for i in range(len(header) - 1)]
    last = max(WIDTH - 2 - sum(width + 2 for width in widths), 20)
    for row in (header, *rows):
        cells = [f"{_shorten(cell, width):<{width}}" for cell, width in zip(row, widths, strict=False)]
        echo(f"  {'  '.join([*cells, _shorten(row[-1], last)])}".rstrip())


def _shorten(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    head = (width - 3) // 2
    return f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"


@app.command(cls=VisibleCommand)
def check(
    folder: Annotated[Path, typer.Argument(help="Folder with a recordings.csv, or the manifest itself.", metavar="FOLDER")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Read everything that a recordings.csv lists, and show all problems row by row, or what the study has.

    Example: [bold]ethobench study check my_study/[/bold]
    """
    from ethobench.datasets.study_check import check_study

    result = check_study(folder)
    if as_json:
        echo_json(result.to_dict())
    else:
        _print_check(result, folder)
    if not result.is_valid:
        raise typer.Exit(1)


def _print_check(result: StudyCheck, folder: Path) -> None:
    from ethobench.core.errors import summarize_notes
    from ethobench.datasets.study_check import summarize_study

    if len(result.dataset):
        _print_summary(summarize_study(result.dataset))
    for text in (*result.warnings, *summarize_notes(result.notes)):
        print_note(text)
    if result.problems:
        n = len(result.problems)
        message = plural(n, "error: {path} has {n} problem:", "error: {path} has {n} problems:", path=result.path)
        secho(message, err=True, fg=typer.colors.RED)
        for problem in result.problems:
            secho(f"  {problem}", err=True, fg=typer.colors.RED)
        return
    echo("no problems")
    echo(f"next: {_next_command(result, folder)}")


def _next_command(result: StudyCheck, folder: Path) -> str:
    """Return the command to run after a successful check."""
    data = result.dataset
    if any(r.has_signals and r.annotations for r in data):
        return f"ethobench train {folder} --out models/first"
    if any(len(r.annotations) > 1 for r in data):
        return f"ethobench agreement {folder}"
    return f"ethobench view {folder}"


def _print_summary(summary: dict[str, Any]) -> None:
    """Print what a study has, in at most 80 columns."""
    frames, hours = summary["frames"], summary["seconds"] / 3600
    with_files = [f"{summary[f'with_{kind}']} with {kind}" for kind in ("signals", "features", "video") if summary[f"with_{kind}"]]
    _print_field("recordings", "; ".join([str(summary["recordings"]), *with_files]))
    _print_field("individuals", str(summary["individuals"]))
    duration = f"{hours:.2f} h" if hours >= 1 else f"{summary['seconds'] / 60:.1f} min"
    _print_field("length", f"{frames:,} frames" + (f", {duration}" if hours else ""))
    rates = [(f"{r['rate']:g} Hz" if r["rate"] else "unknown") + f" ({r['recordings']})" for r in summary["rates"]]
    _print_field("rate", ", ".join(rates))
    _print_field("annotators", ", ".join(f"{name} ({n} recordings)" for name, n in summary["annotators"].items()) or "none")
    for annotator, bouts in summary["bouts"].items():
        label = "bouts" if len(summary["bouts"]) == 1 else f"bouts of {annotator}"
        _print_field(label, ", ".join(f"{name} {n:,}" for name, n in bouts.items()))


def _print_field(label: str, text: str) -> None:
    """Print a label and a text that is wrapped beside it."""
    from textwrap import wrap

    lines = wrap(text, WIDTH - 14, break_on_hyphens=False)
    if len(label) > 12:
        echo(label)
        label = ""
    for i, line in enumerate(lines):
        echo(f"{label if i == 0 else '':<14}{line}")
