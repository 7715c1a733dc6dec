"""`ethobench budget`: how animals spend their time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli._options import RenameOption
from ethobench.cli._output import echo_json, make_console
from ethobench.core.errors import EthobenchError, Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ethobench.core import Annotation, Recording

COLUMNS = ("recording", "individual", "annotator", "subject", "behavior", "bouts", "seconds", "share", "mean", "median", "latency")
CORRECTED = ("corrected", "low", "high")


def run(
    paths: Annotated[list[Path], typer.Argument(help="Annotation files, folders of them, or a recordings.csv.", metavar="FILE...")],
    confusion: Annotated[
        Path | None, typer.Option(help="JSON of `ethobench score --json`: correct shares by what the annotator is known to mistake.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second, where files do not tell.", metavar="HZ")] = None,
    rename: RenameOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
) -> None:
    """Show time budgets: bouts, seconds, share of the time looked at, bout durations, latency to the first bout.

    Example: [bold]ethobench budget annotations/ --csv budget.csv[/bold]
    """
    from ethobench.cli._options import parse_renames
    from ethobench.cli._output import drop_empty_rows, print_never_annotated, print_note
    from ethobench.core.files import check_new_path
    from ethobench.datasets.collate import is_dataset
    from ethobench.metrics.bootstrap import too_few

    matrices = _read_confusion(confusion) if confusion else None
    if matrices is not None and (few := too_few(len(matrices[1]))):
        print_note(f"{confusion}: n = {len(matrices[1])} individuals; {few}")
    rows, in_study = [], any(is_dataset(path) for path in paths)
    for recording in _read(paths, rate, parse_renames(rename)):
        individual = recording.individual if in_study or recording.individual != recording.id else ""
        for who, annotation in recording.annotations.items():
            about = {"recording": recording.id, "individual": individual, "annotator": who}
            rows += [{**about, **row} for row in budget_rows(annotation, matrices)]
    if not rows:
        raise EthobenchError(f"{', '.join(map(str, paths))}: no behavior is annotated here, so there is no time budget")
    if csv is not None:
        check_new_path(csv)
        from ethobench.formats.tables import write_table

        write_table(csv, list(rows[0]) if rows else list(COLUMNS), [list(row.values()) for row in rows])
    if as_json:
        echo_json(rows)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    header = [c for c in COLUMNS if c not in ("individual", "subject") or any(row[c] for row in rows)]
    header += CORRECTED if matrices else ()
    table = Table(*header, box=SIMPLE_HEAD)
    shown, never = drop_empty_rows(rows, lambda row: not row["bouts"] and not row.get("corrected"))
    for row in shown:
        table.add_row(*(_cell(name, row[name]) for name in header))
    make_console(plain_width=160).print(table)
    print_never_annotated(never)


def _read(paths: list[Path], rate: float | None, rename: dict[str, str]) -> Sequence[Recording]:
    """Read the recordings of files, folders and studies; print what readers noted, and labels that may mean the same behavior."""
    from ethobench.cli._output import print_notes
    from ethobench.datasets.collate import collate_quietly
    from ethobench.metrics.label_mismatches import find_label_mismatches, similar_label_notes

    collation = collate_quietly(paths, rate=rate, same_recording=False, annotations_only=True, rename=rename)
    print_notes(note for recording in collation.recordings for note in recording.notes)
    print_notes(collation.notes)
    mismatches = [m for m in find_label_mismatches({r.id: r.annotations for r in collation.recordings}) if m.counterpart]
    similar = similar_label_notes(a for r in collation.recordings for a in r.annotations.values())
    print_notes([Note(str(m)) for m in mismatches] or similar)
    return collation.recordings


def budget_rows(a: Annotation, matrices: Any = None) -> list[dict[str, Any]]:
    """Return one row for each behavior of each subject; times in seconds, of what was looked at."""
    named = a.subjects if (a.subject >= 0).any() else ()
    subjects = [*named, *([""] if (a.subject < 0).any() or not named else [])]
    rows: list[dict[str, Any]] = []
    for subject in subjects:
        mine = [_budget_row(a, code, subject) for code in range(len(a.ethogram))]
        rows += mine if matrices is None else _correct(mine, matrices)
    return rows


def _budget_row(a: Annotation, code: int, subject: str) -> dict[str, Any]:
    import numpy as np

    from ethobench.core import intervals as iv

    behavior = a.ethogram[code]
    seen = a.observed.of(behavior.name, subject or None)
    own = a.select(subject=subject)
    if behavior.point:
        at = own.spans(code).start
        inside = iv.covered_before(seen, np.minimum(at, a.n_frames - 1) + 1) > iv.covered_before(seen, np.minimum(at, a.n_frames - 1))
        start, lengths = at[inside], np.zeros(int(inside.sum()))
    else:
        spans = iv.union(own.spans(code))
        if code == a.ethogram.background:
            spans = iv.union_all([spans, iv.complement(iv.union(iv.Intervals(own.start, own.stop)), a.n_frames)])
        spans = iv.intersection(spans, seen)
        start, lengths = spans.start, (spans.stop - spans.start) / a.rate
    looked, lasts = iv.total(seen) / a.rate, len(lengths) > 0 and not behavior.point
    return {
        "subject": subject,
        "behavior": behavior.name,
        "bouts": len(lengths),
        "seconds": float(lengths.sum()),
        "share": float(lengths.sum() / looked) if looked else None,
        "mean": float(lengths.mean()) if lasts else None,
        "median": float(np.median(lengths)) if lasts else None,
        "latency": float(start[0] / a.rate) if len(start) else None,
    }


def _correct(rows: list[dict[str, Any]], matrices: tuple[list[str], Any]) -> list[dict[str, Any]]:
    import numpy as np

    from ethobench.core.errors import MismatchError
    from ethobench.metrics.budgets import corrected_shares

    labels, confusion = matrices
    shares = {row["behavior"]: row["share"] or 0.0 for row in rows}
    unknown = [name for name, share in shares.items() if name not in labels and share]
    if unknown:
        raise MismatchError(f"the confusion matrix does not know {', '.join(unknown)}")
    vector = np.array([shares.get(label, 0.0) for label in labels])
    if "" in labels:
        vector[labels.index("")] = max(0.0, 1 - vector.sum())
    value, low, high = corrected_shares(vector, confusion)
    for row in rows:
        known = row["behavior"] in labels
        place = labels.index(row["behavior"]) if known else 0
        figures = (value[place], low[place], high[place]) if known else (np.nan,) * 3
        row.update({name: None if np.isnan(v) else float(v) for name, v in zip(CORRECTED, figures, strict=True)})
    return rows


def _read_confusion(path: Path) -> tuple[list[str], Any]:
    import numpy as np

    from ethobench.core.errors import FormatError
    from ethobench.core.files import read_json

    facts = read_json(path)
    confusion = facts.get("confusion") if isinstance(facts, dict) else None
    if not isinstance(confusion, dict):
        raise FormatError(path, "no confusion matrix here; make one with `ethobench score PRED TRUTH --json`")
    try:
        return list(confusion["labels"]), np.array(list(confusion["individuals"].values()), dtype=float)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormatError(path, "the confusion matrix is damaged") from None


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in ("share", *CORRECTED):
        return f"{value:.2%}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
