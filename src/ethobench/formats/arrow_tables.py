"""Tables read with Apache Arrow: wide CSV tables of numbers, and Parquet tables from untrusted sources."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError
from ethobench.formats.size_limits import check_rows, check_size, check_table
from ethobench.formats.text import HEAD_BYTES, encoding_of, has_spaced_cells, read_text, strip_cells

if TYPE_CHECKING:
    import pyarrow as pa


MISSING = ["", "NaN", "nan", "NA", "N/A", "null", "None"]
BATCH = 1 << 16


@dataclass
class WideTable:
    """A CSV table of numbers with one or more header rows, and columns of text.

    Attributes
    ----------
    header : list of list of str
        Cells of the header rows.
    text_columns : list of list of str
        Cells of the columns that are not numbers.
    values : array of float64, (n_rows, n_columns)
        All other columns.
    first_row : int
        One-based line of the first row of numbers.
    """

    header: list[list[str]]
    text_columns: list[list[str]]
    values: NDArray[np.float64]
    first_row: int


def first_rows(path: Path, count: int) -> tuple[list[list[str]], str, str]:
    """Return the first rows of a table as cells, the delimiter and the encoding, without reading the rest of the file.

    Blank lines above the table are skipped; `blank_lines` counts them.
    """
    with path.open("rb") as binary:
        head = binary.read(HEAD_BYTES)
    if not head.strip():
        raise FormatError(path, "the file is empty")
    encoding = encoding_of(head)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        filled = dropwhile(lambda line: not line.strip(), file)
        lines = list(islice(filled, count))
    if any("\0" in line for line in lines):
        raise FormatError(path, "expected text, got a binary file")
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
    """Return what Arrow can parse: the path itself, or the text in UTF-8 without spaces around the cells.

    The beginning and the end of the file decide which. Line numbers do not change.
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
    """Return a source from `plain_source` in the form that CSV parsers accept."""
    return io.BytesIO(source) if isinstance(source, bytes) else source


def read_wide(path: Path, n_header: int, text_columns: Sequence[int]) -> WideTable:
    """Read a wide table of numbers.

    Parameters
    ----------
    path : Path
    n_header : int
        Number of header rows.
    text_columns : sequence of int
        Indices of the columns that are returned as text. All others must be numbers or empty.
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
        raise _error_of_arrow(path, str(error)) from None
    except UnicodeDecodeError as error:
        raise FormatError(path, f"invalid {encoding} text: byte 0x{error.object[error.start]:02x} is not a character") from None
    values = np.empty((table.num_rows, len(numeric)))
    for n, i in enumerate(numeric):
        values[:, n] = table.column(i).to_numpy(zero_copy_only=False)
    return WideTable(header, [table.column(i).to_pylist() for i in text_columns], values, skip + 1)


def _error_of_arrow(path: Path, message: str) -> FormatError:
    """Return an error with a readable message and a location for an error message of Arrow's CSV parser."""
    row = re.search(r"Row #(\d+)", message)
    location = f"row {row[1]}" if row else ""
    if cells := re.search(r"Expected (\d+) columns, got (\d+)", message):
        return FormatError(path, f"{cells[2]} cells, but the header has {cells[1]}; the file may be truncated", location)
    if cell := re.search(r"invalid value '(.*)'", message, re.DOTALL):
        column = re.search(r"column #(\d+)", message)
        column_location = f"column {int(column[1]) + 1}" if column else ""
        return FormatError(path, f"{cell[1]!r} is not a number", ", ".join(filter(None, (location, column_location))))
    return FormatError(path, f"not a table of numbers ({message.splitlines()[0]})", location)


def read_parquet(path: Path) -> pa.Table:
    """Read a table of bouts; text columns stay dictionary-encoded, so that a repeated text is in memory once.

    In Parquet, repeated rows and texts take a few bytes, so the decoded size is checked while reading.

    Raises
    ------
    FormatError
        If the table has implausibly many rows or bytes for the size of the file, or the file is damaged.
    """
    import pyarrow as pa

    try:
        return _read_batches(path)
    except FormatError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _not_parquet(path, error) from None


def _read_batches(path: Path) -> pa.Table:
    """Read a Parquet file batch by batch, and check the size of what has been read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stored = path.stat().st_size
    with pq.ParquetFile(path) as file:
        check_rows(path, file.metadata.num_rows, stored)
        schema = file.schema_arrow
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        check_size(path, sum(group.total_byte_size for group in groups), stored)
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        batches, rows, size = [], 0, 0
        for batch in file.iter_batches(BATCH):
            rows, size = rows + batch.num_rows, size + batch.nbytes
            check_rows(path, rows, stored)
            check_size(path, size, stored)
            batches.append(batch)
        return pa.Table.from_batches(batches, None if batches else file.schema_arrow).replace_schema_metadata(schema.metadata)


def read_schema(path: Path) -> pa.Schema:
    """Return the column names, types and metadata of a Parquet file; raise `FormatError` if it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _not_parquet(path, error) from None


def _not_parquet(path: Path, error: Exception) -> FormatError:
    return FormatError(path, f"not a valid Parquet file ({' '.join(str(error).splitlines()[:1])})")


def plain_columns(path: Path, table: pa.Table) -> dict[str, list[Any]]:
    """Return the columns of a table as lists of Python values, by name."""
    columns = {}
    for name in table.column_names:
        try:
            columns[name] = _plain_values(table.column(name))
        except UnicodeDecodeError as error:
            raise FormatError(path, f"invalid UTF-8 text: {error.object[:50]!r}", f"column {name}") from None
    return columns


def _plain_values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values; equal texts of a chunk share one object."""
    import pyarrow as pa

    values: list[Any] = []
    for chunk in column.chunks:
        if isinstance(chunk, pa.DictionaryArray):
            texts = chunk.dictionary.to_pylist()
            values += [None if i is None else texts[i] for i in chunk.indices.to_pylist()]
        else:
            values += chunk.to_pylist()
    return values
