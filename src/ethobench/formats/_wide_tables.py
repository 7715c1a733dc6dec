"""Wide tables of numbers in text files: many columns under one or several header rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError
from ethobench.formats._sizes import check_table
from ethobench.formats._text import HEAD_BYTES, encoding_of

MISSING = ["", "NaN", "nan", "NA", "N/A", "null", "None"]


@dataclass
class WideTable:
    """A CSV table of numbers under several header rows, with text columns at its left."""

    header: list[list[str]]
    index: list[list[str]]
    values: NDArray[np.float64]
    first_row: int


def first_rows(path: Path, most: int) -> tuple[list[list[str]], str, str]:
    """Return the first rows of a table as cells, the delimiter and the encoding; only what is needed is read."""
    with path.open("rb") as binary:
        head = binary.read(HEAD_BYTES)
    if not head.strip():
        raise FormatError(path, "the file is empty")
    encoding = encoding_of(head)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        lines = [line for _, line in zip(range(most), file, strict=False)]
    if any("\0" in line for line in lines):
        raise FormatError(path, "this is a binary file, where text was expected")
    delimiter = max(",;\t|", key=lines[0].count)
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter)], delimiter, encoding
    except csv.Error as error:
        raise FormatError(path, str(error), "header") from None


def read_wide(path: Path, n_header: int, text_columns: Sequence[int]) -> WideTable:
    """Read a table of numbers quickly.

    Parameters
    ----------
    path : Path
    n_header : int
        Number of rows above the numbers.
    text_columns : sequence of int
        Columns that are returned as text; all others must be numbers or empty.
    """
    from pyarrow import ArrowInvalid, float64, string
    from pyarrow import csv as arrow

    rows, delimiter, encoding = first_rows(path, n_header + 20)
    header, body = rows[:n_header], [row for row in rows[n_header:] if row]
    width = max((len(row) for row in header), default=0)
    check_table(path, 0, width, path.stat().st_size)
    numeric = [i for i in range(width) if i not in text_columns]
    comma = delimiter != "," and any("," in cell for row in body for i, cell in enumerate(row) if i in numeric)
    try:
        table = arrow.read_csv(
            path,
            arrow.ReadOptions(
                use_threads=False,
                skip_rows=n_header,
                column_names=[str(i) for i in range(width)],
                encoding="utf8" if encoding.startswith("utf-8") else encoding,
            ),
            arrow.ParseOptions(delimiter=delimiter),
            arrow.ConvertOptions(
                column_types={str(i): string() if i in text_columns else float64() for i in range(width)},
                null_values=MISSING,
                strings_can_be_null=False,
                decimal_point="," if comma else ".",
            ),
        )
    except ArrowInvalid as error:
        raise _arrow_trouble(path, str(error)) from None
    values = np.empty((table.num_rows, len(numeric)))
    for n, i in enumerate(numeric):
        values[:, n] = table.column(i).to_numpy(zero_copy_only=False)
    return WideTable(header, [table.column(i).to_pylist() for i in text_columns], values, n_header + 1)


def _arrow_trouble(path: Path, message: str) -> FormatError:
    """Say in our words what the CSV parser found wrong, and where."""
    row = re.search(r"Row #(\d+)", message)
    place = f"row {row[1]}" if row else ""
    if cells := re.search(r"Expected (\d+) columns, got (\d+)", message):
        return FormatError(path, f"{cells[2]} cells where the header has {cells[1]}; the file may be cut off", place)
    if cell := re.search(r"invalid value '(.*)'", message, re.DOTALL):
        column = re.search(r"column #(\d+)", message)
        where = f"column {int(column[1]) + 1}" if column else ""
        return FormatError(path, f"{cell[1]!r} is not a number", ", ".join(part for part in (place, where) if part))
    return FormatError(path, f"no table of numbers ({message.splitlines()[0]})", place)
