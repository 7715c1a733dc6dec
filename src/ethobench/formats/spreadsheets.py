"""Tables in spreadsheets or text whose header stands somewhere below other rows, and writing such tables."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from ethobench.core.errors import Note
from ethobench.formats.tables import read_sheet, write_sheet, write_table
from ethobench.formats.text import DELIMITERS, read_text, split_rows

SHEETS = (".xlsx", ".xlsm")
DEEPEST_HEADER = 500


def locate_header(path: Path, wanted: Callable[[set[str]], bool]) -> tuple[str, int, list[list[str]]] | None:
    """Look for a header in a file, as `find_header` does."""
    is_sheet = path.suffix.lower() in SHEETS
    return find_header(read_sheet(path) if is_sheet else [], "" if is_sheet else read_text(path), wanted)


def find_header(sheet: list[list[str]], text: str, wanted: Callable[[set[str]], bool]) -> tuple[str, int, list[list[str]]] | None:
    """Return the delimiter, the line of the header and the rows above it, if a sheet or else a text has such a header."""
    tables = {"": list(enumerate(sheet, start=1))} if sheet else {}
    if "behavior" in text.lower():
        tables |= {delimiter: _numbered_rows(text, delimiter) for delimiter in DELIMITERS}
    for delimiter, rows in tables.items():
        for i, (line, row) in enumerate(rows):
            if len(row) > 2 and wanted({plain(cell) for cell in row}):
                return delimiter, line, [cells for _, cells in rows[:i]]
    return None


def _numbered_rows(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Split the beginning of a text into cells; each row comes with the number of its line."""
    try:
        return list(islice(split_rows(text, delimiter), DEEPEST_HEADER))
    except csv.Error:
        return []


def other_sheets(path: Path) -> tuple[Note, ...]:
    """Say which sheets of a workbook are not read."""
    if path.suffix.lower() not in SHEETS:
        return ()
    from openpyxl import load_workbook

    book = load_workbook(path, read_only=True)
    names = book.sheetnames[1:]
    book.close()
    return (Note(f"only the first sheet is read; there are also: {', '.join(names)}"),) if names else ()


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table in the form that the suffix stands for."""
    if path.suffix.lower() not in SHEETS:
        write_table(path, header, rows, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        return
    write_sheet(path, [header, *rows])


def plain(name: str) -> str:
    """Return the letters and digits of a name in lower case."""
    return "".join(c for c in name.lower() if c.isalnum())
