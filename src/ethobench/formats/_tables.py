"""Reading tables (CSV of any dialect, XLSX) whose cells are not trusted."""

from __future__ import annotations

import csv
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.formats._text import guess_delimiter, read_text, split_rows

MAX_UNZIPPED = 1 << 30
MAX_RATIO = 200


@dataclass
class Table:
    """Text cells with a header, and where each row stands in its file.

    Attributes
    ----------
    path : Path
    header : list of str
    rows : list of list of str
        Padded to the header's length.
    places : list of int
        One-based line (or sheet row) of each row.
    decimal : str
        ``","`` where the file writes numbers so, else ``"."``.
    """

    path: Path
    header: list[str]
    rows: list[list[str]]
    places: list[int]
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, name: object) -> bool:
        return name in self.header

    def find(self, *names: str) -> str | None:
        """Return the header's spelling of the first of these columns that is there, ignoring case and blanks."""
        known = {_plain(column): column for column in reversed(self.header)}
        return next((known[_plain(name)] for name in names if _plain(name) in known), None)

    def column(self, name: str) -> list[str]:
        """Return a column's cells."""
        if name not in self.header:
            raise FormatError(self.path, f"no column {name!r}; there are: {', '.join(self.header)}")
        i = self.header.index(name)
        return [row[i] for row in self.rows]

    def numbers(self, name: str, missing: Iterable[str] = ("", "NA", "NaN", "nan")) -> NDArray[np.float64]:
        """Return a column as numbers, NaN where a cell says so; any other text is an error that names the row."""
        empty = set(missing)
        values = np.full(len(self), np.nan)
        for i, cell in enumerate(self.column(name)):
            text = cell.strip()
            if text in empty:
                continue
            try:
                values[i] = float(text.replace(",", ".") if self.decimal == "," else text)
            except ValueError:
                raise FormatError(self.path, f"{text!r} in column {name!r} is not a number", f"row {self.places[i]}") from None
        return values


def read_table(path: Path, *, skip: int = 0, delimiter: str | None = None) -> Table:
    """Read a delimited text file or the first sheet of an XLSX file.

    Lines that begin with ``#`` before the header, and empty lines, are passed over.

    Parameters
    ----------
    path : Path
    skip : int
        Number of lines (or sheet rows) before the header.
    delimiter : str, optional
        Found out unless given.
    """
    if path.suffix.lower() in (".xlsx", ".xlsm"):
        numbered = list(enumerate(read_sheet(path), start=1))[skip:]
        found = "\t"
    else:
        text = read_text(path)
        stated = re.match(r"\s*sep=(.)\n", text)
        if stated:  # Excel's way of naming the delimiter
            delimiter, skip = stated.group(1), max(skip, text.count("\n", 0, stated.end()))
        found = delimiter or guess_delimiter("\n".join(text.split("\n")[skip:]))
        numbered = list(_csv_rows(path, text, found))[skip:] if not skip else [r for r in _csv_rows(path, text, found) if r[0] > skip]
    filled = [(place, row) for place, row in numbered if any(cell.strip() for cell in row)]
    while filled and filled[0][1][0].startswith("#"):
        filled.pop(0)
    if not filled:
        raise FormatError(path, "the table is empty")
    header = [cell.strip() for cell in filled[0][1]]
    width = len(header)
    for place, row in filled[1:]:
        if any(cell.strip() for cell in row[width:]):
            raise FormatError(path, f"{len(row)} cells where the header has {width}", f"row {place}")
    rows = [(row + [""] * width)[:width] for _, row in filled[1:]]
    table = Table(path, header, rows, [place for place, _ in filled[1:]])
    table.decimal = _guess_decimal(rows) if found != "," else "."
    return table


def read_sheet(path: Path) -> list[list[str]]:
    """Return all cells of the first sheet of an XLSX file as text."""
    check_zip(path)
    from openpyxl import load_workbook

    try:
        book = load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # what the file says of its size may be out of date
        rows = [["" if cell is None else str(cell).strip() for cell in row] for row in sheet.iter_rows(values_only=True)]
        book.close()
    except Exception as error:
        raise FormatError(path, f"this is not a readable XLSX file ({error})") from None
    return rows


def write_table(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[object]], *, delimiter: str = ",", preamble: Sequence[str] = ()
) -> None:
    """Write a delimited UTF-8 text file, preceded by lines that are taken as they are."""
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
        raise EthobenchError(f"a spreadsheet cannot hold the control characters in {bad!r}; write a CSV file")
    book = Workbook(write_only=True)
    sheet = book.create_sheet(title)
    for row in rows:
        sheet.append([_sheet_cell(sheet, cell) for cell in row])
    book.save(path)


def _sheet_cell(sheet: Any, value: object) -> object:
    """Make text stay text: a spreadsheet would take one that begins with = for a formula."""
    if not isinstance(value, str):
        return value
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value)
    cell.data_type = "s"
    return cell


def check_zip(path: Path) -> None:
    """Refuse a zip file that is damaged or would unpack to far more than it is."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(info.file_size for info in archive.infolist())
    except Exception as error:  # zipfile raises many kinds for damaged archives
        raise FormatError(path, f"the file is damaged or no zip archive ({error})") from None
    if size > MAX_UNZIPPED or size > MAX_RATIO * max(path.stat().st_size, 10_000):
        raise FormatError(path, f"refused: its {path.stat().st_size:,} bytes would unpack to {size:,}")


def format_time(seconds: float) -> str:
    """Write seconds with as many digits as any clock up to 1 MHz needs, and no more."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def _csv_rows(path: Path, text: str, delimiter: str) -> Iterable[tuple[int, list[str]]]:
    line = 0
    try:
        for line, row in split_rows(text, delimiter):
            yield line, row
    except csv.Error as error:
        raise FormatError(path, str(error), f"row {line + 1}") from None


def _guess_decimal(rows: Sequence[Sequence[str]]) -> str:
    """Tell whether cells such as ``3,25`` are numbers here."""
    cells = [cell.strip() for row in rows[:200] for cell in row]
    comma = sum(_is_number(cell.replace(",", ".", 1)) for cell in cells if "," in cell)
    point = sum(_is_number(cell) for cell in cells if "." in cell)
    return "," if comma > point else "."


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())
