"""Tidy bouts as Parquet: the same table as `tidy`, for millions of bouts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ethobench.core import Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.formats import tidy_rows
from ethobench.formats.base import DETAILS, Format, pick_entry, register_format
from ethobench.formats.parquet import plain_columns, read_parquet, read_schema
from ethobench.formats.text import Head

KEY = b"ethobench"
NUMBERS = ("start", "stop", "confidence")


@register_format("tidy_parquet")
class TidyParquet(Format):
    """One row per bout, with the description in the file's metadata."""

    title = "tidy bouts Parquet"
    suffixes = (".parquet",)
    keeps = DETAILS
    several = True
    annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        if not head.raw.startswith(b"PAR1"):
            return 0.0
        return 1.0 if KEY in (read_schema(path).metadata or {}) else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        import pyarrow as pa

        try:
            table = read_parquet(path)
            fields = json.loads(table.schema.metadata[KEY])
        except EthobenchError:
            raise
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
            raise FormatError(path, f"this is not a sound tidy Parquet file ({error})") from None
        description = tidy_rows.check_description(path, fields)
        columns = plain_columns(path, table)
        if missing := [name for name in tidy_rows.COLUMNS[:4] if name not in columns]:
            raise FormatError(path, f"no column {' and no '.join(missing)}; there are: {', '.join(columns) or 'none'}")
        for name, column in columns.items():
            blank: Any = float("nan") if name in NUMBERS else ""
            columns[name] = [blank if value is None else value for value in column]
        recordings = tidy_rows.assemble(path, description, columns, [f"row {i + 1}" for i in range(table.num_rows)], rate)
        wanted = pick_entry(path, entry, [r.id for r in recordings])
        return [r for r in recordings if r.id in wanted]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        header, rows = tidy_rows.rows_of(recordings)
        types = {"start": pa.int64(), "stop": pa.int64(), "confidence": pa.float64()}
        columns = {}
        for i, name in enumerate(header):
            cells = [None if row[i] == "" and name == "confidence" else row[i] for row in rows]
            columns[name] = pa.array(cells, type=types.get(name, pa.string()))
        description = tidy_rows.describe(recordings).model_dump_json(exclude_defaults=True)
        table = pa.table(columns).replace_schema_metadata({KEY: description.encode()})
        pq.write_table(table, path, compression="zstd")
        return []
