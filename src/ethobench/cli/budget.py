"""`ethobench budget`: how animals spend their time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ethobench.core import Annotation

COLUMNS = ("recording", "annotator", "behavior", "bouts", "seconds", "share", "mean", "median", "latency")
CORRECTED = ("corrected", "low", "high")


def run(
    paths: Annotated[list[Path], typer.Argument(help="Annotation files, or folders of them.", metavar="FILE...")],
    confusion: Annotated[
        Path | None, typer.Option(help="JSON of `ethobench score --json`: correct shares by what the annotator is known to mistake.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second, where files do not tell.", metavar="HZ")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
) -> None:
    """Show time budgets: bouts, seconds, share of the time looked at, bout durations, latency to the first bout.

    Example: [bold]ethobench budget annotations/ --csv budget.csv[/bold]
    """
    from ethobench.cli._files import read_annotations
    from ethobench.core.errors import EthobenchError

    matrices = _read_confusion(confusion) if confusion else None
    rows = []
    for path in paths:
        for name, group in read_annotations(path, rate).items():
            for who, (annotation, _) in group.items():
                rows += budget_rows(name, who, annotation, matrices)
    if csv is not None:
        if csv.exists():
            raise EthobenchError(f"{csv} exists and is left alone; choose another name")
        from ethobench.formats._tables import write_table

        write_table(csv, list(rows[0]) if rows else list(COLUMNS), [list(row.values()) for row in rows])
    if as_json:
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    header = [*COLUMNS, *(CORRECTED if matrices else ())]
    table = Table(*header, box=SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(_cell(name, row[name]) for name in header))
    Console(width=None if Console().is_terminal else 160).print(table)


def budget_rows(recording: str, annotator: str, a: Annotation, matrices: Any = None) -> list[dict[str, Any]]:
    """Return one row per behaviour; seconds unless the name says otherwise."""
    import numpy as np

    from ethobench.core import intervals as iv

    rows = []
    for code, behavior in enumerate(a.ethogram):
        spans = a.spans(code) if behavior.point else iv.union(a.spans(code))
        lengths = (spans.stop - spans.start) / a.rate
        looked = iv.total(a.observed.of(behavior.name)) / a.rate
        has_length = len(lengths) > 0 and not behavior.point
        rows.append(
            {
                "recording": recording,
                "annotator": annotator,
                "behavior": behavior.name,
                "bouts": len(lengths),
                "seconds": float(lengths.sum()),
                "share": float(lengths.sum() / looked) if looked else None,
                "mean": float(lengths.mean()) if has_length else None,
                "median": float(np.median(lengths)) if has_length else None,
                "latency": float(spans.start[0] / a.rate) if len(lengths) else None,
            }
        )
    return rows if matrices is None else _correct(rows, matrices)


def _correct(rows: list[dict[str, Any]], matrices: tuple[list[str], Any]) -> list[dict[str, Any]]:
    import numpy as np

    from ethobench.core.errors import MismatchError
    from ethobench.metrics.correction import corrected_shares

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
    from ethobench.formats._text import read_json

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
