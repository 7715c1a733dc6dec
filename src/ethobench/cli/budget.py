"""`ethobench budget`: time budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import AnnotatorsOption, EntryOption, ReadOption, RenameOption
from ethobench.cli.output import echo_json
from ethobench.cli.tables import Number, format_number, format_percent, print_table, print_wrapped
from ethobench.core.errors import EthobenchError, Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ethobench.cli.output import Row
    from ethobench.core import Annotation, Recording

PER = ("recording", "individual")
NAMES = ("recording", "individual", "annotator", "subject", "behavior")
"""Columns of text; those that are the same in all rows are above the table."""
HEADERS = {
    "bouts": "bouts",
    "seconds": "total s",
    "share": "% of time",
    "mean": "mean s",
    "median": "median s",
    "latency": "latency s",
    "corrected": "corrected %",
    "interval": "95 % interval",
}
COMPACT = ("bouts", "seconds", "share", "median", "latency")
CORRECTED = ("bouts", "seconds", "share", "corrected", "interval")


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
    option: ReadOption = None,
    per: Annotated[str, typer.Option(help="One budget per recording, or per individual over all its recordings.")] = "recording",
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns, however wide the table gets.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
) -> None:
    """Show time budgets: bouts, seconds, share of the observed time, bout durations, latency to the first bout.

    Example: [bold]ethobench budget annotations/ --csv budget.csv[/bold]

    Of each animal: [bold]ethobench budget my_study/ --per individual[/bold]
    """
    from ethobench.cli.options import parse_options, parse_renames
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
    if per not in PER:
        raise typer.BadParameter(f"{per!r} is neither {' nor '.join(PER)}", param_hint="--per")
    recordings = _collate(paths, rate=rate, rename=parse_renames(rename), entry=entry, annotators=annotator, options=parse_options(option))
    in_study = any(is_dataset(path) for path in paths)
    groups: dict[tuple[str, str, str], list[Annotation]] = {}
    for recording in recordings:
        individual = recording.individual if in_study or recording.individual != recording.id else ""
        for name, annotation in recording.annotations.items():
            key = (recording.id, individual, name) if per == "recording" or not individual else ("", individual, name)
            groups.setdefault(key, []).append(annotation)
    if per == "individual" and any(not individual for _, individual, _ in groups):
        print_note("some files do not name the individual; their budgets are per recording")
    rows: list[dict[str, Any]] = []
    for (name, individual, who), group in groups.items():
        budget = time_budget(*group)
        budget = budget if matrices is None else correct_time_budget(budget, *matrices)
        rows += [{"recording": name, "individual": individual, "annotator": who, **row} for row in budget]
    if not rows:
        raise EthobenchError(f"{', '.join(map(str, paths))}: no behavior is annotated, so there is no time budget")
    if csv is not None:
        write_table(csv, list(rows[0]), [list(row.values()) for row in rows])
    if as_json:
        echo_json(rows)
        return
    occurring, never = drop_empty_rows(rows, lambda row: not row["bouts"] and not row.get("corrected"))
    _print(occurring or rows, is_corrected=matrices is not None, wide=wide)
    print_never_annotated(never)


def _print(rows: Sequence[Row], *, is_corrected: bool, wide: bool) -> None:
    """Print time budgets. Names that are the same in all rows are above the table."""
    constant = [name for name in NAMES if name != "behavior" and len({row[name] for row in rows}) == 1]
    names = [name for name in NAMES if name not in constant]
    columns = [*HEADERS] if wide else CORRECTED if is_corrected else COMPACT
    columns = [c for c in columns if c not in ("corrected", "interval") or is_corrected]
    title = ", ".join(f"{name} {rows[0][name]}" for name in constant if rows[0][name] not in ("", None, name))
    cells = [[*(row[name] or "" for name in names), *(_cell(name, row) for name in columns)] for row in rows]
    print_table([*names, *(HEADERS[name] for name in columns)], cells, title=title, wide=wide, n_groups=len(names) - 1)
    latency = "; latency: to the first bout" if "latency" in columns else ""
    print_wrapped([f"s: seconds; % of time: of the observed time{latency}"])


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


def _cell(column: str, row: Row) -> Number:
    if column == "bouts":
        return Number(f"{row[column]:,}")
    if column == "interval":
        low, high = row["low"], row["high"]
        return Number("-" if low is None else f"{format_percent(low)} to {format_percent(high)}")
    if column in ("share", "corrected"):
        return format_percent(row[column])
    return format_number(row[column], 1 if column == "seconds" else 2)
