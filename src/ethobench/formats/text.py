"""Text of unknown encoding: the beginning of a file, cells, JSON, numbers and clock times."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError
from ethobench.core.files import parse_json

HEAD_BYTES = 1 << 16
SHEET_HEAD = 500  # rows of a sheet that are read to detect a format
DELIMITERS = ",;\t|"
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?nan", re.IGNORECASE)
CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d{1,2}(?:[.,]\d*)?)", re.ASCII)
CLOCK_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?", re.ASCII)
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class Head:
    """The beginning of a file, read once for all formats that may recognize it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_dir = path.is_dir()

    @cached_property
    def raw(self) -> bytes:
        """The first `HEAD_BYTES` bytes; empty for a folder."""
        if self.is_dir:
            return b""
        with self.path.open("rb") as file:
            return file.read(HEAD_BYTES)

    @cached_property
    def text(self) -> str:
        r"""The first bytes as text, with ``\n`` line ends and without blank lines at the top; empty for binary files."""
        encoding = encoding_of(self.raw)
        if encoding == "utf-8" and b"\0" in self.raw:
            return ""
        text = self.raw.decode(encoding, errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        text = text[count_blank_lines(text)[1] :]
        is_complete = len(self.raw) < HEAD_BYTES
        return text if is_complete or "\n" not in text else text[: text.rfind("\n") + 1]

    @cached_property
    def lines(self) -> list[str]:
        """The first complete lines."""
        return self.text.split("\n")

    @cached_property
    def rows(self) -> list[list[str]]:
        """The first lines as stripped cells, split at the most likely delimiter, without blank lines at the end."""
        try:
            rows = [row for _, row in split_rows(self.text, guess_delimiter(self.text))]
        except csv.Error:
            return []
        while rows and not any(rows[-1]):
            rows.pop()
        return rows

    @cached_property
    def header(self) -> list[str]:
        """The cells of the first line that is neither blank nor a ``#`` comment, without empty cells at its end."""
        i = self._header_row
        return [] if i is None else without_empty_end(self.rows[i])

    @cached_property
    def body(self) -> list[list[str]]:
        """The non-blank rows below the header, without the empty cells that spreadsheets add at their ends."""
        i, width = self._header_row, len(self.header)
        return [] if i is None else [row[:width] + without_empty_end(row[width:]) for row in self.rows[i + 1 :] if any(row)]

    @cached_property
    def _header_row(self) -> int | None:
        return next((i for i, row in enumerate(self.rows) if any(row) and not row[0].startswith("#")), None)

    @cached_property
    def sheet(self) -> list[list[str]]:
        """The first rows of the first sheet of an XLSX file; empty for other files.

        Raises
        ------
        FormatError
            If the XLSX file is damaged.
        """
        from ethobench.formats.tables import read_sheet

        if not self.is_zip or self.path.suffix.lower() not in (".xlsx", ".xlsm"):
            return []
        return read_sheet(self.path, SHEET_HEAD)

    @property
    def is_hdf5(self) -> bool:
        """Whether this is an HDF5 file."""
        return self.raw.startswith(b"\x89HDF\r\n\x1a\n")

    @property
    def is_zip(self) -> bool:
        """Whether this is a zip file, as XLSX and NPZ are."""
        return self.raw.startswith(b"PK\x03\x04")


def encoding_of(raw: bytes) -> str:
    """Return the encoding of the byte order mark, else UTF-8, or Windows-1252 if the bytes are not valid UTF-8."""
    for mark, name in _BOMS:
        if raw.startswith(mark):
            return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def read_text(path: Path) -> str:
    """Read a text file with any byte order mark and any line ends.

    Raises
    ------
    FormatError
        For an empty or a binary file.
    """
    raw = path.read_bytes()
    if not raw.strip():
        raise FormatError(path, f"the file is empty ({len(raw)} bytes)")
    encoding = encoding_of(raw)
    if encoding in ("utf-8", "cp1252") and b"\0" in raw:
        raise FormatError(path, "expected text, got a binary file")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise FormatError(path, f"invalid {encoding} text ({error.reason})", f"byte {error.start}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def count_blank_lines(text: str) -> tuple[int, int]:
    """Return the number of blank lines at the top of a text, and the number of characters in them."""
    blank = re.match(r"(?:[ \ufeff]*\n)*\ufeff?", text)
    end = blank.end() if blank else 0
    return text.count("\n", 0, end), end


def split_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of delimited text as stripped cells, each with the number of its last line.

    Quotes and spaces around cells (``"a" , "b"``) are removed here for all readers.

    Raises
    ------
    csv.Error
        If the quoting is invalid.
    """
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        yield reader.line_num, [cell.strip() for cell in row]


def without_empty_end(row: list[str]) -> list[str]:
    """Return a row without the empty cells at its end."""
    end = len(row)
    while end and not row[end - 1]:
        end -= 1
    return row[:end]


def has_spaced_cells(text: str, delimiter: str) -> bool:
    """Return whether cells or lines begin or end with spaces, which fast CSV parsers treat as content."""
    d = re.escape(delimiter)
    return re.search(rf"(?:^|[{d}\n])[ ]|[ ](?:[{d}\n\"]|$)", text) is not None


def strip_cells(text: str, delimiter: str) -> str:
    """Return delimited text with the same lines and without spaces around its cells."""
    stripped = io.StringIO()
    writer = csv.writer(stripped, delimiter=delimiter, lineterminator="\n")
    for _, row in split_rows(text, delimiter):
        writer.writerow(row if any(row) or len(row) != 1 else [])
    return stripped.getvalue()


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    FormatError
        If the file is not valid JSON (with line and column), or an object has a duplicate key.
    """
    return parse_json(path, read_text(path))


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in the order of their first occurrence."""
    return [name for name, count in Counter(names).items() if count > 1]


def guess_delimiter(text: str) -> str:
    """Return the delimiter that splits the first lines into the same, largest number of cells."""
    lines = [line for line in text.split("\n")[:50] if line.strip() and not line.startswith("#")][:20]

    def score(delimiter: str) -> tuple[bool, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        return (len(set(counts)) == 1 and counts[0] > 1, sum(counts)) if counts else (False, 0)

    try:
        return max(DELIMITERS, key=score)
    except csv.Error:
        return ","


def parse_number(text: str) -> float:
    """Return the number in a cell.

    Stricter than ``float``, which also accepts underscores, digits of other scripts and infinity.

    Raises
    ------
    ValueError
        If the text is not a number.

    Examples
    --------
    >>> parse_number(" 2.5e3 ")
    2500.0
    >>> parse_number("1_000")
    Traceback (most recent call last):
    ...
    ValueError: '1_000' is not a number
    """
    if NUMBER.fullmatch(text.strip()) is None:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def parse_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Return the numbers in many cells, as `parse_number` does but faster; accepts infinity."""
    text = "".join(cells)
    if "_" in text or not text.isascii():
        return np.array([parse_number(cell) for cell in cells])
    return np.array(cells, dtype=np.float64)


def parse_integer(text: str) -> int:
    """Return the integer in a cell, written with the digits 0 to 9; raise `ValueError` for any other text."""
    if re.fullmatch(r"[+-]?[0-9]+", text.strip()) is None:
        raise ValueError(f"{text!r} is not an integer")
    return int(text)


def is_number(text: str) -> bool:
    """Return whether a cell is a number."""
    return NUMBER.fullmatch(text.strip()) is not None


def parse_clock(text: str) -> float | None:
    """Return the seconds of a clock time ("MM:SS", "HH:MM:SS.fff") or of a number; None for any other text.

    >>> parse_clock("61:05"), parse_clock("1:02:03.5"), parse_clock("7.25"), parse_clock("soon")
    (3665.0, 3723.5, 7.25, None)
    """
    text = text.strip()
    clock = CLOCK.fullmatch(text)
    if clock:
        hours, minutes, seconds = clock.groups(default="0")
        rest = float(seconds.replace(",", "."))
        if rest >= 60 or (clock[1] is not None and int(minutes) >= 60):
            return None
        return 3600.0 * int(hours) + 60.0 * int(minutes) + rest
    return float(text.replace(",", ".")) if CLOCK_NUMBER.fullmatch(text) else None


def format_clock(seconds: float, *, hours: bool = False) -> str:
    """Return seconds, rounded to the nearest integer, as "MM:SS" or "HH:MM:SS".

    >>> format_clock(3665.4), format_clock(3665.4, hours=True)
    ('61:05', '01:01:05')
    """
    minutes, rest = divmod(int(seconds + 0.5), 60)
    if not hours:
        return f"{minutes:02d}:{rest:02d}"
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"
