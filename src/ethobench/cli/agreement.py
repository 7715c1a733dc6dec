"""`ethobench agreement`: agreement of annotators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import AnnotatorsOption, EntryOption, MatchOption, RenameOption
from ethobench.cli.output import echo_json, make_console, print_never_annotated, print_note, print_notes

if TYPE_CHECKING:
    from ethobench.core import Annotation


def run(
    paths: Annotated[
        list[Path],
        typer.Argument(help="A file or folder for each annotator, files with several, or a dataset such as banos.", metavar="FILE..."),
    ],
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    tolerance: Annotated[float, typer.Option(help="Exclude frames within this many seconds of a start or stop.", metavar="SECONDS")] = 0.0,
    annotator: AnnotatorsOption = None,
    rename: RenameOption = None,
    match: MatchOption = None,
    entry: EntryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Measure agreement of annotators: Cohen's kappa and F1 of each pair, Fleiss' kappa, Krippendorff's alpha, ICC.

    Example: [bold]ethobench agreement anna.boris ben.boris[/bold]

    Example: [bold]ethobench agreement anna/ ben/ carla/ --rename i=interact[/bold]
    """
    from ethobench.cli.options import parse_renames
    from ethobench.metrics import agreement

    recordings = _collate(paths, rate=rate, rename=parse_renames(rename), match=match, entry=entry, annotators=annotator)
    result = agreement(recordings, tolerance=tolerance)
    print_notes(result.notes)
    if as_json:
        echo_json(result.to_dict())
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ethobench.metrics.scores import format_value

    console = make_console(plain_width=160)
    pairs = Table("annotators", "behavior", "kappa", "f1", "agreement", "frames", title="Each pair", box=SIMPLE_HEAD, title_justify="left")
    for row in (row for row in result.pairs if row["behavior"] not in result.never_annotated):
        names = f"{row['annotator_1']}, {row['annotator_2']}"
        values = (format_value(row[key]) for key in ("kappa", "f1", "agreement"))
        pairs.add_row(names, row["behavior"] or "(all)", *values, f"{row['frames']:,}")
    all_annotators = Table(
        "behavior", "Fleiss", "alpha", "ICC counts", "ICC durations", title="All annotators", box=SIMPLE_HEAD, title_justify="left"
    )
    for name, fleiss in ((name, value) for name, value in result.fleiss.items() if name not in result.never_annotated):
        others = (result.alpha.get(name), result.icc_count.get(name), result.icc_duration.get(name))
        all_annotators.add_row(name or "(all)", *(format_value(value) for value in (fleiss, *others)))
    console.print(pairs)
    console.print(all_annotators)
    print_never_annotated(result.never_annotated)


def _collate(paths: list[Path], **options: Any) -> dict[str, dict[str, Annotation]]:
    """Match the recordings of annotators (one path each, or several in a file): recording to annotator to annotation."""
    from ethobench.core.errors import EthobenchError
    from ethobench.datasets.collate import collate_files
    from ethobench.datasets.match_file import describe_unmatched

    collation = collate_files(paths, same_recording=True, annotations_only=True, **options)
    print_notes(note for recording in collation.recordings for note in recording.notes)
    print_notes(collation.notes)
    single = [recording.id for recording in collation.recordings if len(recording.annotations) == 1]
    if len(single) == len(collation.recordings) and len(paths) > 1:
        raise EthobenchError(f"no recording has two annotators: {describe_unmatched(collation.names_by_source(paths))}")
    if single:
        print_note(f"{len(single)} recordings have only one annotator and are skipped: {', '.join(single[:5])}")
    return {r.id: dict(r.annotations) for r in collation.recordings if len(r.annotations) > 1}
