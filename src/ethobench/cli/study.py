"""`ethobench study`: draft and check the ``recordings.csv`` of your own study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.output import echo, echo_json, print_note, secho

if TYPE_CHECKING:
    from ethobench.datasets.study_check import StudyCheck

app = typer.Typer(help="Draft and check the recordings.csv of your own study.", no_args_is_help=True)

WIDTH = 80


@app.command()
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
        secho(f"error: {result.path} has {n} problem{'s' * (n > 1)}:", err=True, fg=typer.colors.RED)
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
    with_files = [f"{summary[f'with_{kind}']} with {kind}" for kind in ("signals", "video") if summary[f"with_{kind}"]]
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
