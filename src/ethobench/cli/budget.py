"""`ethobench budget`: time budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import AnnotatorsOption, EntryOption, RenameOption
from ethobench.cli.output import echo_json, make_console
from ethobench.core.errors import EthobenchError, Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ethobench.core import Recording

COLUMNS = ("recording", "individual", "annotator", "subject", "behavior", "bouts", "seconds", "share", "mean", "median", "latency")
CORRECTED = ("corrected", "low", "high")


def run(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Annotation files, folders of them, a recordings.csv, or a dataset such as banos.", metavar="FILE..."),
    ],
    confusion: Annotated[
        Path | None,
        typer.Option(help="Output of `ethobench score --json`: correct the shares by its confusion matrix.", metavar="SCORES.json"),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    annotator: AnnotatorsOption = None,
    rename: RenameOption = None,
    entry: EntryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
) -> None:
    """Show time budgets: bouts, seconds, share of the observed time, bout durations, latency to the first bout.

    Example: [bold]ethobench budget annotations/ --csv budget.csv[/bold]
    """
    from ethobench.cli.options import parse_renames
    from ethobench.cli.output import drop_empty_rows, print_never_annotated, print_note
    from ethobench.core.files import check_new_path
    from ethobench.datasets.loose_files import is_dataset
    from ethobench.formats.tables import write_table
    from ethobench.metrics.bootstrap import too_few
    from ethobench.metrics.budgets import correct_time_budget, time_budget

    if csv is not None:
        check_new_path(csv)
    matrices = _read_confusion(confusion) if confusion else None
    if matrices is not None and (reason := too_few(len(matrices[1]))):
        print_note(f"{confusion}: n = {len(matrices[1])} individuals; {reason}")
    rows: list[dict[str, Any]] = []
    in_study = any(is_dataset(path) for path in paths)
    for recording in _collate(paths, rate=rate, rename=parse_renames(rename), entry=entry, annotators=annotator):
        individual = recording.individual if in_study or recording.individual != recording.id else ""
        for name, annotation in recording.annotations.items():
            budget = time_budget(annotation)
            budget = budget if matrices is None else correct_time_budget(budget, *matrices)
            rows += [{"recording": recording.id, "individual": individual, "annotator": name, **row} for row in budget]
    if not rows:
        raise EthobenchError(f"{', '.join(map(str, paths))}: no behavior is annotated, so there is no time budget")
    if csv is not None:
        write_table(csv, list(rows[0]), [list(row.values()) for row in rows])
    if as_json:
        echo_json(rows)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    columns = [c for c in COLUMNS if c not in ("individual", "subject") or any(row[c] for row in rows)]
    columns += CORRECTED if matrices else ()
    table = Table(*columns, box=SIMPLE_HEAD)
    occurring, never = drop_empty_rows(rows, lambda row: not row["bouts"] and not row.get("corrected"))
    for row in occurring:
        table.add_row(*(_cell(name, row[name]) for name in columns))
    make_console(plain_width=160).print(table)
    print_never_annotated(never)


def _collate(paths: list[Path], **options: Any) -> Sequence[Recording]:
    """Read the recordings of files, folders and studies; print notes of the readers, and labels that may mean the same behavior."""
    from ethobench.cli.output import print_notes
    from ethobench.datasets.collate import collate_files
    from ethobench.metrics.label_mismatches import find_label_mismatches, similar_label_notes

    collation = collate_files(paths, same_recording=False, annotations_only=True, **options)
    print_notes(note for recording in collation.recordings for note in recording.notes)
    print_notes(collation.notes)
    mismatches = [m for m in find_label_mismatches({r.id: r.annotations for r in collation.recordings}) if m.counterpart]
    similar = similar_label_notes(a for r in collation.recordings for a in r.annotations.values())
    print_notes([Note(str(m)) for m in mismatches] or similar)
    return collation.recordings


def _read_confusion(path: Path) -> tuple[list[str], Any]:
    """Return the labels and the confusion matrices by individual from the output of `ethobench score --json`."""
    import numpy as np

    from ethobench.core.errors import FormatError
    from ethobench.core.files import read_json

    content = read_json(path)
    confusion = content.get("confusion") if isinstance(content, dict) else None
    if not isinstance(confusion, dict):
        raise FormatError(path, "no confusion matrix; write one with `ethobench score PRED TRUTH --json`")
    try:
        return list(confusion["labels"]), np.array(list(confusion["individuals"].values()), dtype=float)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormatError(path, "the confusion matrix is damaged") from None


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "-"
    if column in ("share", *CORRECTED):
        return f"{value:.2%}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
