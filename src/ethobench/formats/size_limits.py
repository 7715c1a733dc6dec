"""Limits on the memory that reading a file may take.

A hostile file can state any size, so sizes are checked before memory is allocated. Files below `SMALL_FILE` bytes are read within 2 GB
and 20 s, or refused; larger files may take memory in proportion to their size.
"""

from __future__ import annotations

from pathlib import Path

from ethobench.core.errors import FormatError

SMALL_FILE = 5 << 20
MOST_UNSTORED = 1 << 28
MOST_TIMES_STORED = 200
MAX_COLUMNS = 20_000
MAX_ROWS = 1_000_000
BYTES_PER_ROW = 5
MAX_CELLS = 2_000_000
MAX_BEHAVIORS = 1000


def is_too_large(claimed: int, stored: int) -> bool:
    """Return whether `claimed` bytes of memory are implausible for `stored` bytes of a file."""
    return claimed > max(MOST_UNSTORED, MOST_TIMES_STORED * (stored - SMALL_FILE))


def check_size(path: Path, claimed: int, stored: int) -> None:
    """Raise `FormatError` if the data would take implausibly more memory than the file has bytes."""
    if is_too_large(claimed, stored):
        raise FormatError(path, f"refused: its data would take {claimed:,} bytes of memory, but the file has {stored:,} bytes")


def check_rows(path: Path, rows: int, stored: int) -> None:
    """Raise `FormatError` if a compressed table has implausibly many rows for its size."""
    if rows > max(MAX_ROWS, stored // BYTES_PER_ROW):
        raise FormatError(path, f"refused: its {stored:,} bytes would decompress to {rows:,} rows")


def check_table(path: Path, rows: int, columns: int, stored: int) -> None:
    """Raise `FormatError` if a table has too many columns, or if padding its rows would make far more cells than the file has bytes.

    Parameters
    ----------
    path : Path
        Named in the error.
    rows, columns : int
        Shape of the table after every row is padded to the length of the header.
    stored : int
        Size of the file in bytes.
    """
    if columns > MAX_COLUMNS:
        raise FormatError(path, f"refused: the table has {columns:,} columns, more than the maximum of {MAX_COLUMNS:,}")
    if rows * columns > max(MAX_CELLS, 2 * stored):
        raise FormatError(path, f"refused: {rows:,} rows of {columns:,} columns are too many cells for {stored:,} bytes")


def check_label(path: Path, code: int, location: str = "") -> None:
    """Raise `FormatError` if a numeric label implies an implausible number of behaviors."""
    if code > MAX_BEHAVIORS:
        raise FormatError(path, f"label {code} is too high: a file without names can have at most {MAX_BEHAVIORS} behaviors", location)
