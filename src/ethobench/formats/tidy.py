"""Tidy bouts as CSV, our own format: one row per bout, read by any spreadsheet.

Lines that begin with ``#`` stand above the table and say the rest: the unit (frames or seconds), the rate, each
recording's length and what was observed, the behaviors. All of them but ``# ethobench bouts 1`` may be left out.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ethobench.core import Recording
from ethobench.core.errors import FormatError, Note
from ethobench.formats import tidy_rows
from ethobench.formats.base import DETAILS, Format, pick_entry, register_format
from ethobench.formats.tables import read_table, write_table
from ethobench.formats.text import Head, read_text

MAGIC = "# ethobench bouts"
LISTS = {"recording": "recordings", "behavior": "behaviors"}


@register_format("tidy")
class TidyCsv(Format):
    """One row per bout: ``recording, behavior, start, stop, subject, target``."""

    title = "tidy bouts CSV"
    suffixes = (".csv",)
    keeps = DETAILS
    several = True
    annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if head.text.lstrip(' "').startswith(MAGIC) else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        description = _read_description(path)
        table = read_table(path, delimiter=_delimiter(path))
        unknown = [name for name in table.header if name and name not in (*tidy_rows.COLUMNS, *tidy_rows.OPTIONAL)]
        missing = [name for name in tidy_rows.COLUMNS[:4] if name not in table]
        if missing:
            raise FormatError(path, f"no column {', '.join(missing)}; there are: {', '.join(table.header)}", "header")
        columns: dict[str, list[Any]] = {name: table.column(name) for name in table.header if name and name not in unknown}
        for name in {"start", "stop", "confidence"} & {*columns}:
            columns[name] = table.numbers(name).tolist()
        recordings = tidy_rows.assemble(path, description, columns, [f"row {p}" for p in table.row_numbers], rate)
        if unknown:
            for recording in recordings:
                recording.notes = (*recording.notes, Note(f"columns not understood and left out: {', '.join(unknown)}"))
        wanted = pick_entry(path, entry, [r.id for r in recordings])
        return [r for r in recordings if r.id in wanted]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        description = tidy_rows.describe(recordings)
        preamble = [f"{MAGIC} {description.version}", f"# unit: {description.unit}"]
        if description.rate:
            preamble.append(f"# rate: {description.rate!r}")
        preamble += [f"# recording: {_line(info)}" for info in description.recordings]
        preamble += [f"# behavior: {_line(info)}" for info in description.behaviors]
        header, rows = tidy_rows.rows_of(recordings)
        write_table(path, header, rows, preamble=preamble)
        return []


def _line(info: Any) -> str:
    return json.dumps(info.model_dump(exclude_defaults=True), ensure_ascii=False)


def _as_written(line: str) -> str:
    """Undo what a spreadsheet does to a line of the description: it takes commas for cells, and puts quotes around them."""
    if not line.startswith('"#'):
        return line
    ways = [",".join(next(csv.reader([line], delimiter=delimiter))).rstrip(", ") for delimiter in ",;\t"]
    return next((way for way in ways if _is_json(way.partition(":")[2])), ways[0])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _delimiter(path: Path) -> str:
    """Return what stands between cells: a comma, unless a spreadsheet has put something else there."""
    header = next((line for line in read_text(path).split("\n") if line.strip() and not line.lstrip(' "').startswith("#")), "")
    return next((mark for mark in ",;\t" if mark in header), ",")


def _read_description(path: Path) -> tidy_rows.Description:
    fields: dict[str, Any] = {"recordings": [], "behaviors": []}
    for number, written in enumerate(read_text(path).split("\n"), start=1):
        if not written.strip(" ,;\t"):
            continue
        line = _as_written(written.strip())
        if not line.startswith("#"):
            break
        if line.startswith(MAGIC):
            fields["version"] = line.removeprefix(MAGIC).strip(' ,;\t"') or 1
            continue
        key, _, value = line.lstrip("# ").partition(":")
        key, value = key.strip(), value.strip()
        if key in LISTS:
            try:
                fields[LISTS[key]].append(json.loads(value))
            except json.JSONDecodeError as error:
                raise FormatError(path, f"the description of the {key} is damaged ({error.msg})", f"line {number}") from None
        elif key in ("unit", "rate"):
            fields[key] = value.rstrip(",;\t")
    return tidy_rows.check_description(path, fields)
