"""`ethobench clean`: clean poses, and say what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethobench.cli.output import echo, echo_json
from ethobench.cli.tables import Number, print_table, print_wrapped

HEADERS = {
    "low_confidence": "uncertain",
    "swapped": "animals swapped",
    "jumps": "jumps removed",
    "interpolated": "filled",
    "smoothed": "smoothed",
    "missing": "still missing",
}


def run(
    paths: Annotated[list[Path], typer.Argument(help="Files of poses, or folders of them.", metavar="POSES")],
    out: Annotated[Path, typer.Option(help="Folder for the cleaned copies; existing files are never replaced.", metavar="DIR")],
    min_confidence: Annotated[float, typer.Option(help="Keypoints with a lower confidence are missing.")] = 0.6,
    max_jump: Annotated[
        float, typer.Option(help="Largest distance from the median position within 0.5 s, in body lengths; 0 keeps jumps.")
    ] = 0.5,
    max_gap: Annotated[float, typer.Option(help="Longest gap to interpolate, in seconds.")] = 0.5,
    smooth: Annotated[str, typer.Option(help="Smoothing filter: median, savgol or none.")] = "median",
    window: Annotated[float, typer.Option(help="Window of the smoothing filter, in seconds.")] = 0.2,
    keep_swaps: Annotated[bool, typer.Option("--keep-swaps", help="Do not exchange animals back that the tracker swapped.")] = False,
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Clean poses: confidence filter, identity swaps, jumps, gaps, smoothing. Writes copies and shows what changed.

    Example: [bold]ethobench clean poses/ --out cleaned/ --rate 30[/bold]
    """
    from ethobench.analysis.clean_files import clean_files
    from ethobench.cli.output import print_notes
    from ethobench.features.cleaning import CleanOptions

    options = CleanOptions(min_confidence, max_jump, max_gap, smooth, window, repair_swaps=not keep_swaps)
    files = clean_files(paths, out, options, rate=rate)
    print_notes(note for file in files for note in file.notes)
    if as_json:
        echo_json(
            [
                {
                    "source": str(f.source),
                    "path": str(f.path),
                    "recording": f.recording,
                    "points": f.report.n_points,
                    "changed": f.report.counts,
                }
                for f in files
            ]
        )
        return
    steps = [step for step in HEADERS if step in ("interpolated", "missing") or any(f.report.total(step) for f in files)]
    for file in files:
        rows = [[name, *(_cell(counts[step], file.report.n_points) for step in steps)] for name, counts in file.report.counts.items()]
        n = len(file.report.counts) * file.report.n_points
        rows.append(["all", *(_cell(file.report.total(step), n) for step in steps)])
        print_table(
            ["keypoint", *(HEADERS[step] for step in steps)], rows, title=f"{file.source.name}: {file.report.n_points:,} points each"
        )
    print_wrapped(["number of points that each step changed (% of all); uncertain: confidence below the threshold"])
    echo()
    for file in files:
        echo(str(file.path))


def _cell(n: int, n_points: int) -> Number:
    """Return a number of points with its share in percent."""
    return Number(f"{n:,} ({100 * n / n_points:.1f})" if n_points else f"{n:,}")
