"""`ethobench agreement`: how well annotators agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli._options import RenameOption
from ethobench.cli._output import echo_json, make_console

if TYPE_CHECKING:
    from ethobench.core import Annotation


def run(
    paths: Annotated[list[Path], typer.Argument(help="A file or folder for each annotator, or files with several.", metavar="FILE...")],
    rate: Annotated[float | None, typer.Option(help="Frames per second, where files do not tell.", metavar="HZ")] = None,
    tolerance: Annotated[float, typer.Option(help="Seconds around borders that do not count.")] = 0.0,
    rename: RenameOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Say how well annotators agree: Cohen's kappa and F1 of each two, Fleiss' kappa, Krippendorff's alpha, ICC.

    For example:

    [bold]ethobench agreement anna.boris ben.boris[/bold]

    [bold]ethobench agreement anna/ ben/ carla/ --rename i=interact[/bold]
    """
    from ethobench.cli._options import parse_renames
    from ethobench.cli._output import print_never_annotated, print_notes
    from ethobench.metrics import agreement

    result = agreement(collect(paths, rate, parse_renames(rename)), tolerance=tolerance)
    print_notes(result.notes)
    if as_json:
        echo_json(result.to_dict())
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    console = make_console(plain_width=160)
    pairs = Table("annotators", "behavior", "kappa", "f1", "agreement", "frames", title="Each two", box=SIMPLE_HEAD, title_justify="left")
    for row in (row for row in result.pairs if row["behavior"] not in result.never_annotated):
        names = f"{row['annotator_1']}, {row['annotator_2']}"
        pairs.add_row(names, row["behavior"] or "(all)", *(_figure(row[k]) for k in ("kappa", "f1", "agreement")), f"{row['frames']:,}")
    together = Table("behavior", "Fleiss", "alpha", "ICC counts", "ICC durations", title="Together", box=SIMPLE_HEAD, title_justify="left")
    for name, value in ((name, value) for name, value in result.fleiss.items() if name not in result.never_annotated):
        others = (result.alpha.get(name), result.icc_count.get(name), result.icc_duration.get(name))
        together.add_row(name or "(all)", _figure(value), *(_figure(v) for v in others))
    console.print(pairs)
    console.print(together)
    print_never_annotated(result.never_annotated)


def collect(paths: list[Path], rate: float | None, rename: dict[str, str] | None = None) -> dict[str, dict[str, Annotation]]:
    """Match the recordings of annotators, a path each or several in a file: recording to annotator to annotation."""
    from ethobench.cli._output import print_note, print_notes
    from ethobench.datasets.collate import collate_quietly

    collation = collate_quietly(paths, rate=rate, same_recording=True, annotations_only=True, rename=rename)
    print_notes(note for recording in collation.recordings for note in recording.notes)
    print_notes(collation.notes)
    alone = [recording.id for recording in collation.recordings if len(recording.annotations) == 1]
    if alone:
        print_note(f"{len(alone)} recordings have one annotator only and are left out: {', '.join(alone[:5])}")
    return {r.id: dict(r.annotations) for r in collation.recordings if len(r.annotations) > 1}


def _figure(value: Any) -> str:
    from math import isnan

    return "-" if value is None or isnan(value) else f"{value:.3f}"
