"""Parquet tables that are not trusted: repeated rows and texts take a few bytes in the file, and must not fill the memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethobench.core.errors import FormatError
from ethobench.formats.size_limits import check_rows, check_size

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1 << 16


def read_parquet(path: Path) -> pa.Table:
    """Read a table of bouts; columns of text stay dictionaries, so that a text which occurs often is in memory once.

    Raises
    ------
    FormatError
        For far more rows or bytes than the file can stand for.
    pyarrow.ArrowException or OSError
        For a damaged file.
    """
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
    """Return names, types and metadata of a table's columns; a damaged file is an error that says so."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(path, f"this is not a valid Parquet file ({' '.join(str(error).splitlines()[:1])})") from None


def plain_columns(path: Path, table: pa.Table) -> dict[str, list[Any]]:
    """Return the columns of a table as Python values."""
    columns = {}
    for name in table.column_names:
        try:
            columns[name] = _plain_values(table.column(name))
        except UnicodeDecodeError as error:
            raise FormatError(path, f"its text is damaged: {error.object[:50]!r} is not UTF-8", f"column {name}") from None
    return columns


def _plain_values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values; equal texts of a chunk are one object."""
    import pyarrow as pa

    values: list[Any] = []
    for chunk in column.chunks:
        if isinstance(chunk, pa.DictionaryArray):
            texts = chunk.dictionary.to_pylist()
            values += [None if i is None else texts[i] for i in chunk.indices.to_pylist()]
        else:
            values += chunk.to_pylist()
    return values
