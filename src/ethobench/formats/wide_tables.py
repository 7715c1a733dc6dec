"""Wide tables of numbers in text files: many columns under one or several header rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice, takewhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError
from ethobench.formats.size_limits import check_table
from ethobench.formats.text import HEAD_BYTES, encoding_of, has_spaced_cells, read_text, strip_cells

MISSING = ["", "NaN", "nan", "NA", "N/A", "null", "None"]


@dataclass
class WideTable:
    """A CSV table of numbers under several header rows, with text columns at its left."""

    header: list[list[str]]
    index: list[list[str]]
    values: NDArray[np.float64]
    first_row: int


def first_rows(path: Path, most: int) -> tuple[list[list[str]], str, str]:
    """Return the first rows of a table as cells, the delimiter and the encoding; only what is needed is read.

    Blank lines above the table are dropped; `blank_lines` counts them.
    """
    with path.open("rb") as binary:
        head = binary.read(HEAD_BYTES)
    if not head.strip():
        raise FormatError(path, "the file is empty")
    encoding = encoding_of(head)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        filled = dropwhile(lambda line: not line.strip(), file)
        lines = list(islice(filled, most))
    if any("\0" in line for line in lines):
        raise FormatError(path, "this is a binary file, where text was expected")
    if not lines:
        raise FormatError(path, "the file is empty")
    delimiter = max(",;\t|", key=lines[0].count)
    try:
        rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        return [[cell.strip() for cell in row] for row in rows], delimiter, encoding
    except csv.Error as error:
        raise FormatError(path, str(error), "header") from None


def blank_lines(path: Path, encoding: str) -> int:
    """Return the number of blank lines above a table."""
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        return sum(1 for _ in takewhile(lambda line: not line.strip(), file))


def plain_source(path: Path, delimiter: str, encoding: str) -> Path | bytes:
    """Return what a fast CSV parser can read: the file itself, or its text in UTF-8 without blanks around the cells.

    The beginning and the end of the file tell which; lines keep their numbers.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        file.seek(max(0, size - HEAD_BYTES))
        tail = file.read()
    texts = [raw.decode(encoding, errors="replace").replace("\r", "\n").strip("\ufeff") for raw in {head, tail}]
    has_lines = b"\n" in head or b"\r" not in head
    if encoding != "utf-16" and has_lines and not any(has_spaced_cells(text, delimiter) for text in texts):
        return path
    try:
        return strip_cells(read_text(path), delimiter).encode()
    except csv.Error as error:
        raise FormatError(path, str(error)) from None


def opened(source: Path | bytes) -> Path | io.BytesIO:
    """Return a plain source as CSV parsers take it."""
    return io.BytesIO(source) if isinstance(source, bytes) else source


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
    source, skip = plain_source(path, delimiter, encoding), blank_lines(path, encoding) + n_header
    try:
        table = arrow.read_csv(
            opened(source),
            arrow.ReadOptions(
                use_threads=False,
                skip_rows=skip,
                column_names=[str(i) for i in range(width)],
                encoding="utf8" if encoding.startswith("utf-8") or source is not path else encoding,
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
    except UnicodeDecodeError as error:
        raise FormatError(path, f"its text is damaged: byte 0x{error.object[error.start]:02x} is no letter in {encoding}") from None
    values = np.empty((table.num_rows, len(numeric)))
    for n, i in enumerate(numeric):
        values[:, n] = table.column(i).to_numpy(zero_copy_only=False)
    return WideTable(header, [table.column(i).to_pylist() for i in text_columns], values, skip + 1)


def _arrow_trouble(path: Path, message: str) -> FormatError:
    """Say in our words what the CSV parser found wrong, and where."""
    row = re.search(r"Row #(\d+)", message)
    location = f"row {row[1]}" if row else ""
    if cells := re.search(r"Expected (\d+) columns, got (\d+)", message):
        return FormatError(path, f"{cells[2]} cells where the header has {cells[1]}; the file may be cut off", location)
    if cell := re.search(r"invalid value '(.*)'", message, re.DOTALL):
        column = re.search(r"column #(\d+)", message)
        where = f"column {int(column[1]) + 1}" if column else ""
        return FormatError(path, f"{cell[1]!r} is not a number", ", ".join(part for part in (location, where) if part))
    return FormatError(path, f"no table of numbers ({message.splitlines()[0]})", location)
