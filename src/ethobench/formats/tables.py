"""Tables of text cells: reading CSV of any dialect and XLSX from untrusted sources, and writing them."""

from __future__ import annotations

import csv
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.formats.size_limits import SMALL_FILE, check_table
from ethobench.formats.text import DELIMITERS, guess_delimiter, is_number, parse_number, read_text, split_rows

MAX_UNZIPPED = 1 << 30
MIN_UNZIPPED = 1 << 27
MAX_RATIO = 200
MAX_PARSED_AT_ONCE = 1 << 22  # bytes of a member that openpyxl parses into objects at once, such as the styles
STREAMED = ("xl/worksheets/", "xl/sharedStrings", "xl/media/", "xl/drawings/", "xl/charts/")
MAX_MISSING_ROWS = 100_000
MAX_SHEET_CELLS = 1_000_000
MAX_SHEET_COLUMNS = 1 << 14
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
SHEET_SUFFIXES = (".xlsx", ".xlsm")
MAX_HEADER_ROW = 500
MAX_ELAPSED_DAYS = 60  # from the epoch of a workbook; earlier dates are elapsed times


@dataclass
class Table:
    """A header and rows of text cells, with the row numbers in the file.

    Attributes
    ----------
    path : Path
    header : list of str
    rows : list of list of str
        Padded to the length of the header.
    row_numbers : list of int
        One-based line (or sheet row) of each row.
    decimal : str
        Decimal mark of the file: ``","`` or ``"."``.
    """

    path: Path
    header: list[str]
    rows: list[list[str]]
    row_numbers: list[int]
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, name: object) -> bool:
        return name in self.header

    def find(self, *names: str) -> str | None:
        """Return the first of these columns that exists, spelled as in the header; case, spaces and punctuation are ignored."""
        columns = {normalize_name(column): column for column in reversed(self.header)}
        return next((columns[normalize_name(name)] for name in names if normalize_name(name) in columns), None)

    def column(self, name: str) -> list[str]:
        """Return a column's cells."""
        if name not in self.header:
            raise FormatError(self.path, f"no column {name!r}; columns: {', '.join(self.header)}")
        i = self.header.index(name)
        return [row[i] for row in self.rows]

    def numbers(self, name: str, missing: Iterable[str] = ("", "NA", "NaN", "nan")) -> NDArray[np.float64]:
        """Return a column as numbers, with NaN for the texts in `missing`; any other text is an error with its row number."""
        empty = set(missing)
        values = np.full(len(self), np.nan)
        for i, cell in enumerate(self.column(name)):
            text = cell.strip()
            if text in empty:
                continue
            try:
                values[i] = parse_number(text.replace(",", ".") if self.decimal == "," else text)
            except ValueError:
                raise FormatError(self.path, f"{text!r} in column {name!r} is not a number", f"row {self.row_numbers[i]}") from None
        return values


def read_table(path: Path, *, skip: int = 0, delimiter: str | None = None) -> Table:
    """Read a delimited text file or the first sheet of an XLSX file.

    Empty lines, and lines that begin with ``#`` above the header, are skipped.

    Parameters
    ----------
    path : Path
    skip : int
        Number of lines (or sheet rows) above the header.
    delimiter : str, optional
        Detected by default.
    """
    if path.suffix.lower() in SHEET_SUFFIXES:
        numbered = list(enumerate(read_sheet(path), start=1))[skip:]
        delimiter = "\t"
    else:
        text = read_text(path)
        stated = re.match(r"\s*sep=(.)\n", text)
        if stated:  # Excel states the delimiter in a first line such as "sep=;"
            delimiter, skip = stated.group(1), max(skip, text.count("\n", 0, stated.end()))
        delimiter = delimiter or guess_delimiter("\n".join(text.split("\n")[skip:]))
        numbered = [row for row in _csv_rows(path, text, delimiter) if row[0] > skip]
    filled = [(number, row) for number, row in numbered if any(cell.strip() for cell in row)]
    while filled and filled[0][1][0].startswith("#"):
        filled.pop(0)
    if not filled:
        raise FormatError(path, "the table is empty")
    header = [cell.strip() for cell in filled[0][1]]
    width = len(header)
    check_table(path, len(filled), width, path.stat().st_size)
    for number, row in filled[1:]:
        if any(cell.strip() for cell in row[width:]):
            raise FormatError(path, f"{len(row)} cells, but the header has {width}", f"row {number}")
    rows = [(row + [""] * width)[:width] for _, row in filled[1:]]
    decimal = _guess_decimal(rows) if delimiter != "," else "."
    return Table(path, header, rows, [number for number, _ in filled[1:]], decimal)


def read_sheet(path: Path, first_rows: int | None = None) -> list[list[str]]:
    """Return the cells of the first sheet of an XLSX file as text: all rows, or the first `first_rows`."""
    check_workbook(path)
    from openpyxl import load_workbook

    try:
        book = load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # the stated size of the sheet may be out of date
        rows = _sheet_rows(path, sheet, first_rows, book.epoch)
        book.close()
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(path, f"not a valid XLSX file ({error})") from None
    return rows


def _sheet_rows(path: Path, sheet: Any, first_rows: int | None, epoch: datetime) -> list[list[str]]:
    """Read the cells row by row; rows that the sheet omits are empty.

    A sheet states the number of each row and the column of each cell, so a few bytes can imply any number of empty cells.
    """
    limit = max(MAX_SHEET_CELLS, path.stat().st_size // 5)
    rows: list[list[str]] = []
    cells = missing = 0
    for row in islice(sheet.iter_rows(values_only=True), first_rows):
        missing = 0 if row else missing + 1
        if missing > MAX_MISSING_ROWS:
            raise FormatError(path, f"refused: more than {MAX_MISSING_ROWS:,} rows are omitted", f"row {len(rows) + 1}")
        cells += 1 + len(row)
        if len(row) > MAX_SHEET_COLUMNS:
            raise FormatError(
                path, f"refused: {len(row):,} columns, more than the maximum of {MAX_SHEET_COLUMNS:,}", f"row {len(rows) + 1}"
            )
        if cells > limit:
            raise FormatError(path, f"refused: the sheet claims more than {limit:,} cells, too many for the size of the file")
        rows.append(["" if cell is None else _cell_text(cell, epoch) for cell in row])
    return rows


def _cell_text(cell: object, epoch: datetime) -> str:
    """Return a cell of a sheet as text; elapsed times as hours, minutes and seconds, however many hours.

    Excel stores 26:30 h as 1.1 days. In a cell with a format of times of day that is a moment in the first days of its calendar.
    """
    if isinstance(cell, datetime) and (days := (cell - epoch).total_seconds() / 86_400) < MAX_ELAPSED_DAYS:
        has_day_zero = epoch.year < 1900  # day 1 is 1900-01-01, and the epoch two days before
        return _elapsed_text(timedelta(days=days) - timedelta(days=1 if has_day_zero else 0))
    return _elapsed_text(cell) if isinstance(cell, timedelta) else str(cell).strip()


def _elapsed_text(elapsed: timedelta) -> str:
    microseconds = round(elapsed.total_seconds() * 1e6)
    minutes, rest = divmod(abs(microseconds), 60_000_000)
    seconds = f"{rest / 1e6:09.6f}".removesuffix(".000000")
    return f"{'-' if microseconds < 0 else ''}{minutes // 60:02d}:{minutes % 60:02d}:{seconds}"


def write_table(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[object]], *, delimiter: str = ",", preamble: Sequence[str] = ()
) -> None:
    """Write a delimited UTF-8 text file; the lines of `preamble` precede the header unchanged."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(line + "\n" for line in preamble)
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_sheet(path: Path, rows: Iterable[Sequence[object]], title: str = "events") -> None:
    """Write rows to the only sheet of an XLSX file."""
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    rows = [list(row) for row in rows]
    bad = next((cell for row in rows for cell in row if isinstance(cell, str) and ILLEGAL_CHARACTERS_RE.search(cell)), None)
    if bad is not None:
        raise EthobenchError(f"XLSX files cannot store the control characters in {bad!r}; write a CSV file")
    book = Workbook(write_only=True)
    sheet = book.create_sheet(title)
    for row in rows:
        sheet.append([_sheet_cell(sheet, cell) for cell in row])
    book.save(path)


def _sheet_cell(sheet: Any, value: object) -> object:
    """Return a cell that stays text; spreadsheets would read text that begins with = as a formula."""
    if not isinstance(value, str):
        return value
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value)
    cell.data_type = "s"
    return cell


def check_workbook(path: Path) -> None:
    """Raise `FormatError` for an XLSX file that is damaged or decompresses to far more than its size, whatever sizes it states."""
    stored = path.stat().st_size
    limit = min(MAX_UNZIPPED, MAX_RATIO * max(stored, 10_000), max(MIN_UNZIPPED, MAX_RATIO * (stored - SMALL_FILE)))
    total = 0
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            stated = sum(info.file_size for info in archive.infolist())
            if stated > limit:
                raise FormatError(path, f"refused: its {stored:,} bytes would decompress to {stated:,}")
            for info in archive.infolist():
                is_streamed = info.filename.startswith(STREAMED)
                size = _unpacked_size(file, info, min(limit - total, limit if is_streamed else MAX_PARSED_AT_ONCE))
                total += size
                if size != info.file_size:
                    raise FormatError(
                        path, f"refused: {info.filename} states {info.file_size:,} bytes, but would decompress to {size:,} or more"
                    )
    except FormatError:
        raise
    except _TooLargeError as error:
        raise FormatError(path, f"refused: its {stored:,} bytes would decompress to far more ({error})") from None
    except Exception as error:  # zipfile raises errors of many classes for damaged archives
        raise FormatError(path, f"damaged, or not a zip archive ({error})") from None


class _TooLargeError(Exception):
    """A member of an archive that decompresses to more than its limit."""


def _unpacked_size(file: IO[bytes], info: zipfile.ZipInfo, limit: int) -> int:
    """Return the decompressed size of a member of an archive, in bytes, without keeping its content."""
    file.seek(info.header_offset)
    header = file.read(LOCAL_HEADER.size)
    *_, name_length, extra_length = LOCAL_HEADER.unpack(header)
    file.seek(name_length + extra_length, io.SEEK_CUR)
    if info.compress_type == zipfile.ZIP_STORED:
        return info.compress_size
    if info.compress_type != zipfile.ZIP_DEFLATED:
        raise ValueError(f"{info.filename} is compressed by a method that XLSX files do not use")
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    size, remaining = 0, info.compress_size
    while remaining > 0 and not unpacker.eof:
        packed = file.read(min(remaining, 1 << 16))
        remaining -= len(packed)
        if not packed:
            break
        while packed:
            size += len(unpacker.decompress(packed, 1 << 20))
            if size > limit:
                raise _TooLargeError(f"{info.filename} alone to more than {limit:,} bytes")
            packed = unpacker.unconsumed_tail
    while not unpacker.eof:
        piece = unpacker.decompress(b"", 1 << 20)
        size += len(piece)
        if not piece or size > limit:
            break
    return size


def format_time(seconds: float) -> str:
    """Return seconds as text with at most six decimals (enough for a clock of 1 MHz) and no trailing zeros."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def _csv_rows(path: Path, text: str, delimiter: str) -> Iterable[tuple[int, list[str]]]:
    line = 0
    try:
        for line, row in split_rows(text, delimiter):
            yield line, row
    except csv.Error as error:
        raise FormatError(path, str(error), f"row {line + 1}") from None


def _guess_decimal(rows: Sequence[Sequence[str]]) -> str:
    """Return the decimal mark: a comma if more cells look like ``3,25`` than like ``3.25``."""
    cells = [cell.strip() for row in rows[:200] for cell in row]
    comma = sum(is_number(cell.replace(",", ".", 1)) for cell in cells if "," in cell)
    point = sum(is_number(cell) for cell in cells if "." in cell)
    return "," if comma > point else "."


def locate_header(path: Path, is_header: Callable[[set[str]], bool]) -> tuple[str, int, list[list[str]]] | None:
    """Search a file for a header row, as `find_header` does."""
    is_sheet = path.suffix.lower() in SHEET_SUFFIXES
    return find_header(read_sheet(path) if is_sheet else [], "" if is_sheet else read_text(path), is_header)


def find_header(sheet: list[list[str]], text: str, is_header: Callable[[set[str]], bool]) -> tuple[str, int, list[list[str]]] | None:
    """Search a sheet, or else a text, for a header row that may follow other rows.

    Parameters
    ----------
    sheet : list of list of str
        Rows of a sheet; empty for a text file.
    text : str
        Content of a text file.
    is_header : callable
        Receives the normalized cells of a row and returns whether the row is the header.

    Returns
    -------
    delimiter : str
        Empty for a sheet.
    row_number : int
        One-based row of the header.
    rows_above : list of list of str
        None is returned instead of the three if there is no such row.
    """
    tables: dict[str, Iterable[tuple[int, list[str]]]] = {"": enumerate(sheet, start=1)} if sheet else {}
    if "behavior" in text.lower():
        tables |= {delimiter: _numbered_rows(text, delimiter) for delimiter in DELIMITERS}
    for delimiter, rows in tables.items():
        above: list[list[str]] = []
        for line, row in rows:
            if len(row) > 2 and is_header({normalize_name(cell) for cell in row}):
                return delimiter, line, above
            above.append(row)
    return None


def _numbered_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first rows of a text with their line numbers."""
    with suppress(csv.Error):
        yield from islice(split_rows(text, delimiter), MAX_HEADER_ROW)


def other_sheets(path: Path) -> tuple[Note, ...]:
    """Return a note that names the sheets of a workbook that are not read."""
    if path.suffix.lower() not in SHEET_SUFFIXES:
        return ()
    from openpyxl import load_workbook

    book = load_workbook(path, read_only=True)
    names = book.sheetnames[1:]
    book.close()
    return (Note(f"only the first sheet is read; other sheets: {', '.join(names)}", code="ignored-sheets"),) if names else ()


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table as XLSX, TSV or CSV, depending on the suffix."""
    if path.suffix.lower() not in SHEET_SUFFIXES:
        write_table(path, header, rows, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        return
    write_sheet(path, [header, *rows])


@lru_cache(maxsize=1 << 14)
def normalize_name(name: str) -> str:
    """Return the letters and digits of a column name in lower case, for comparison with other names."""
    return "".join(c for c in name.lower() if c.isalnum())
