"""Signals of a tag as a table: CSV or Parquet with a header, one row per sample, one column per channel.

A column called time (or timestamp) is the clock: in seconds or as dates. A regular one gives the rate; an irregular one
is resampled to `rate`, and stretches without samples become NaN.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Recording, Signals
from ethobench.core.errors import FormatError, Note
from ethobench.formats._base import Format, register_format
from ethobench.formats._frameclock import resolution, snapped
from ethobench.formats._sizes import check_size, check_table
from ethobench.formats._text import Head, encoding_of, guess_delimiter
from ethobench.formats._wide_tables import opened, plain_source

if TYPE_CHECKING:
    import pandas as pd

CLOCKS = ("time", "timestamp", "datetime", "t", "seconds", "time_s", "time (s)")
COUNTERS = ("", "frame", "index", "sample", "unnamed: 0")
LOOKED_AT = 20
REGULAR = 0.01
GAP = 1.5
DRIFT = 0.5  # frames by which a stated rate may be off in the end
CHUNK = 1 << 17  # rows that are read at a time
LARGE = 1 << 26  # bytes of a file whose channels are kept on the disk


@register_format
class SignalsCsv(Format):
    """Channels of a bio-logger in a plain table."""

    title = "table of signals"
    suffixes = (".csv", ".parquet")
    contents = ("signals",)

    def sniff(self, path: Path, head: Head) -> float:
        if path.suffix.lower() == ".parquet":
            return _sniff_parquet(path)
        names = [name.lower() for name in head.header]
        if len(names) < 2 or any(_is_number(name) for name in names):
            return 0.0
        rows = [row for row in head.body if not row[0].startswith("#")][:LOOKED_AT]
        channels = [i for i, name in enumerate(names) if name not in (*CLOCKS, *COUNTERS)]
        cells = [row[i] for row in rows for i in channels if len(row) == len(names)]
        filled = [cell.replace(",", ".") for cell in cells if cell.strip() not in ("", "NA", "nan", "NaN")]
        if not filled or not all(_is_number(cell) for cell in filled):
            return 0.0
        measured = any(float(cell) not in (0.0, 1.0) for cell in filled)
        return 0.3 if measured else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        channels, values, times = _read(path)
        notes: list[Note] = []
        if times is not None:
            values, rate, notes = _regular(path, times, values, rate)
        if rate is None:
            raise FormatError(path, "the table tells no sampling rate: give rate=, or a column called time")
        return [Recording(path.stem, rate=rate, signals=Signals(values, channels, rate), notes=tuple(notes))]


def _sniff_parquet(path: Path) -> float:
    """Return how sure it is that a file holds nothing but numbers, and measured ones among them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    kinds = [field.type for field in schema if field.name.strip().lower() not in (*CLOCKS, *COUNTERS)]
    numbers = [pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in kinds]
    return 0.3 if kinds and all(numbers) and any(map(pa.types.is_floating, kinds)) else 0.0


def _read(path: Path) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64] | None]:
    """Read channels, their values and the clock some rows at a time; values of a large file lie on the disk, not in memory."""
    large = path.stat().st_size > LARGE
    with tempfile.TemporaryFile() if large else io.BytesIO() as file:
        times: list[NDArray[np.float64]] = []
        rows, first = 0, None
        for table in _chunks(path):
            channels = [name for name in table.columns if str(name).strip().lower() not in (*CLOCKS, *COUNTERS)]
            clock = next((name for name in table.columns if str(name).strip().lower() in CLOCKS), None)
            if not channels:
                raise FormatError(path, "no column of signals")
            numbers = [_numbers(path, str(name), table[name].to_numpy(), rows) for name in channels]
            if clock is not None and len(table):
                seconds, first = _seconds(path, str(clock), table[clock].to_numpy(), first)
                times.append(seconds)
            file.write(np.column_stack(numbers).tobytes())
            rows += len(table)
        if not rows:
            raise FormatError(path, "no row of signals")
        file.seek(0)
        shape = (rows, len(channels))
        values = np.memmap(file, np.float64, "r+", shape=shape) if large else np.frombuffer(bytearray(file.read())).reshape(shape)
    return tuple(map(str, channels)), values, np.concatenate(times) if times else None


def _chunks(path: Path) -> Iterator[pd.DataFrame]:
    import pandas as pd

    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(path, pre_buffer=False) as file:
                check_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns, path.stat().st_size)
                for batch in file.iter_batches(CHUNK):
                    yield batch.to_pandas()
            return
        with path.open("rb") as raw:
            head = raw.read(1 << 16)
        encoding = encoding_of(head)
        delimiter = guess_delimiter(head.decode(encoding, errors="replace"))
        decimal = "." if delimiter == "," else _decimal(head)
        with path.open("rb") as raw:
            header = next((line for line in raw if line.strip() and not line.startswith(b"#")), b"")
            check_table(path, sum(1 for _ in raw), header.count(delimiter.encode()) + 1, path.stat().st_size)
        source = plain_source(path, delimiter, encoding)
        named = list(range(len(Head(path).header))) or None  # without the empty columns that a spreadsheet adds
        with pd.read_csv(
            opened(source),
            sep=delimiter,
            encoding=encoding if source is path else "utf-8",
            usecols=named,
            comment="#",
            decimal=decimal,
            chunksize=CHUNK,
            skipinitialspace=True,
        ) as tables:
            yield from tables
    except (ValueError, OSError) as error:
        raise FormatError(path, f"the table cannot be read ({error})") from None


def _decimal(raw: bytes) -> str:
    return "," if raw.count(b",") > raw.count(b".") else "."


def _numbers(path: Path, name: str, column: NDArray[Any], before: int) -> NDArray[np.float64]:
    try:
        return column.astype(np.float64)
    except (ValueError, TypeError):
        bad = next(i for i, cell in enumerate(column) if not _is_number(str(cell)))
        raise FormatError(path, f"{column[bad]!r} in channel {name!r} is not a number", f"row {before + bad + 2}") from None


def _seconds(path: Path, name: str, column: NDArray[Any], first: Any) -> tuple[NDArray[np.float64], Any]:
    """Return a clock in seconds; dates relative to the first of the table, which is returned as well."""
    import pandas as pd

    if column.dtype.kind in "iuf":
        return column.astype(np.float64), first
    try:
        stamps = pd.to_datetime(pd.Series(column), utc=True, format="ISO8601")
    except (ValueError, TypeError):
        raise FormatError(path, f"column {name!r} holds neither seconds nor dates such as 2024-05-01T12:00:00.25") from None
    first = stamps.iloc[0] if first is None else first
    return np.asarray((stamps - first).dt.total_seconds(), dtype=np.float64), first


def _regular(
    path: Path, time: NDArray[np.float64], values: NDArray[np.float64], rate: float | None
) -> tuple[NDArray[np.float64], float, list[Note]]:
    """Put samples on a regular clock; an already regular one is left alone."""
    if len(time) < 2 or not np.isfinite(time).all() or (np.diff(time) <= 0).any():
        at = int(np.flatnonzero(np.diff(time) <= 0)[0]) + 3 if len(time) > 1 and (np.diff(time) <= 0).any() else 2
        raise FormatError(path, "times must rise from row to row", f"row {at}")
    step, span, finest = float(np.median(np.diff(time))), float(time[-1] - time[0]), resolution(time)
    own = snapped((len(time) - 1) / span, finest / span)
    even = np.abs(np.diff(time) - step).max() <= max(REGULAR * step, 1.5 * finest)
    if even and (rate is None or abs(rate - own) * span < DRIFT):
        late = [Note(f"the first sample is at {time[0]:g} s; frames are counted from there")] if time[0] > 1.5 * step else []
        return values, rate or own, late
    if rate is None:
        raise FormatError(path, f"samples are not evenly spaced (about {own:.4g} Hz): give rate= to resample them")
    grid = np.arange(time[0], time[-1] + 0.5 / rate, 1.0 / rate)
    shape = (len(grid), values.shape[1])
    resampled = np.empty(shape)
    if isinstance(values, np.memmap):
        with tempfile.TemporaryFile() as file:
            resampled = np.memmap(file, np.float64, "w+", shape=shape)
    for place in range(shape[1]):
        resampled[:, place] = np.interp(grid, time, values[:, place])
    before = np.searchsorted(time, grid, side="right") - 1
    after = np.minimum(before + 1, len(time) - 1)
    missing = (time[after] - time[before] > GAP * max(step, 1.0 / rate)) & (grid > time[before]) & (grid < time[after])
    resampled[missing] = np.nan
    return (
        resampled,
        rate,
        [Note(f"samples (about {own:.4g} Hz) were resampled to {rate:g} Hz; {int(missing.sum())} frames in gaps")],
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
