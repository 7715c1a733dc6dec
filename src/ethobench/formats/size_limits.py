"""Bounds on the memory that a file may ask for.

Whoever wrote the file chose every number in it, so sizes are checked before anything is allocated. A file below `SMALL_FILE` bytes is
read within 2 GB and 20 s, or refused; larger files may ask for memory in proportion to their size.
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
    """Tell whether numbers would take far more memory than the bytes that are stored can stand for."""
    return claimed > max(MOST_UNSTORED, MOST_TIMES_STORED * (stored - SMALL_FILE))


def check_size(path: Path, claimed: int, stored: int) -> None:
    """Refuse what would take far more memory than its file can stand for."""
    if is_too_large(claimed, stored):
        raise FormatError(path, f"refused: it claims {claimed:,} bytes of numbers, and holds {stored:,}")


def check_rows(path: Path, rows: int, stored: int) -> None:
    """Refuse a compressed table with far more rows than its bytes can stand for."""
    if rows > max(MAX_ROWS, stored // BYTES_PER_ROW):
        raise FormatError(path, f"refused: its {stored:,} bytes would unpack to {rows:,} rows")


def check_table(path: Path, rows: int, columns: int, stored: int) -> None:
    """Refuse a table with too many columns, or whose short rows would be padded to far more cells than the file has bytes.

    Parameters
    ----------
    path : Path
        Named in the error.
    rows, columns : int
        Shape of the table once every row is padded to the header's length.
    stored : int
        Size of the file in bytes.
    """
    if columns > MAX_COLUMNS:
        raise FormatError(path, f"refused: the table has {columns:,} columns, and at most {MAX_COLUMNS:,} can be read")
    if rows * columns > max(MAX_CELLS, 2 * stored):
        raise FormatError(path, f"refused: {rows:,} rows of {columns:,} columns are far more cells than its {stored:,} bytes can hold")


def check_label(path: Path, code: int, location: str = "") -> None:
    """Refuse a label whose number would make a file without names define an absurd number of behaviors."""
    if code > MAX_BEHAVIORS:
        raise FormatError(path, f"label {code} is too high: a file without names can have at most {MAX_BEHAVIORS} behaviors", location)
