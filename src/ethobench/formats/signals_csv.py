"""Signals of a tag as a table: CSV or Parquet with a header, one row per sample, one column per channel.

A column called time (or timestamp) is the clock: in seconds or as dates. A regular one gives the rate; an irregular one
is resampled to `rate`, and stretches without samples become NaN. Without times, a column called frame, index or sample numbers the
samples: a number that is left out is a sample that is missing (NaN).
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
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.formats.arrow_tables import opened, plain_source, read_schema
from ethobench.formats.base import Format, register_format
from ethobench.formats.frame_clock import resolution, snapped
from ethobench.formats.size_limits import check_size, check_table
from ethobench.formats.text import Head, encoding_of, guess_delimiter, is_number, parse_number

if TYPE_CHECKING:
    import pandas as pd

CLOCKS = ("time", "timestamp", "datetime", "t", "seconds", "time_s", "time (s)")
COUNTERS = ("", "frame", "index", "sample", "unnamed: 0", "__index_level_0__")
RESTARTING = ("sample",)  # may be counted anew in each burst of a tag
LOOKED_AT = 20
REGULAR = 0.01
GAP = 1.5
DRIFT = 0.5  # frames by which a stated rate may be off in the end
RARE = 0.1  # share of steps; where fewer are twice as long as the others, rows are missing
CHUNK = 1 << 17  # rows that are read at a time
LARGE = 1 << 26  # bytes of a file whose channels are kept on the disk


@register_format("signals_csv")
class SignalsCsv(Format):
    """Channels of a bio-logger in a plain table."""

    title = "table of signals"
    suffixes = (".csv", ".parquet")
    contents = ("signals",)

    def sniff(self, path: Path, head: Head) -> float:
        if path.suffix.lower() == ".parquet":
            return _sniff_parquet(path)
        names = [name.lower() for name in head.header]
        if len(names) < 2 or any(is_number(name) for name in names):
            return 0.0
        rows = [row for row in head.body if not row[0].startswith("#")][:LOOKED_AT]
        channels = [i for i, name in enumerate(names) if name not in (*CLOCKS, *COUNTERS)]
        cells = [row[i] for row in rows for i in channels if len(row) == len(names)]
        filled = [cell.replace(",", ".") for cell in cells if cell.strip() not in ("", "NA", "nan", "NaN")]
        if not filled or not all(is_number(cell) for cell in filled):
            return 0.0
        measured = any(float(cell) not in (0.0, 1.0) for cell in filled)
        return 0.3 if measured else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        channels, values, times, numbers = _read(path)
        notes: list[Note] = []
        if times is not None:
            values, rate, notes = _regular(path, times, values, rate)
        elif numbers is not None:
            values, notes = _on_samples(path, *numbers, values)
        if rate is None:
            raise FormatError(path, "the table tells no sampling rate: give rate=, or a column called time")
        return [Recording(path.stem, rate=rate, signals=Signals(values, channels, rate), notes=tuple(notes))]


def _sniff_parquet(path: Path) -> float:
    """Return how sure it is that a file holds nothing but numbers, and measured ones among them."""
    import pyarrow as pa

    schema = read_schema(path)
    kinds = [field.type for field in schema if field.name.strip().lower() not in (*CLOCKS, *COUNTERS)]
    numbers = [pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in kinds]
    return 0.3 if kinds and all(numbers) and any(map(pa.types.is_floating, kinds)) else 0.0


def _read(
    path: Path,
) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64] | None, tuple[str, NDArray[np.float64]] | None]:
    """Read channels, values, times, and name and content of the column that numbers the samples, some rows at a time.

    The values of a large file lie on the disk, not in memory.
    """
    import pandas as pd

    large = path.stat().st_size > LARGE
    with tempfile.TemporaryFile() if large else io.BytesIO() as file:
        times: list[NDArray[np.float64]] = []
        numbers: list[NDArray[np.float64]] = []
        rows, first = 0, None
        for table in _chunks(path):
            channels = [name for name in table.columns if str(name).strip().lower() not in (*CLOCKS, *COUNTERS)]
            clock = next((name for name in table.columns if str(name).strip().lower() in CLOCKS), None)
            counter = next((name for name in table.columns if str(name).strip().lower() in COUNTERS), None)
            if not channels:
                raise FormatError(path, "no column of signals")
            columns = [_numbers(path, str(name), table[name].to_numpy(), rows) for name in channels]
            if clock is not None and len(table):
                seconds, first = _seconds(path, str(clock), table[clock].to_numpy(), first)
                times.append(seconds)
            elif counter is not None:
                numbers.append(pd.to_numeric(table[counter], errors="coerce").to_numpy(dtype=np.float64))
            file.write(np.column_stack(columns).tobytes())
            rows += len(table)
        if not rows:
            raise FormatError(path, "no row of signals")
        file.seek(0)
        shape = (rows, len(channels))
        values = np.memmap(file, np.float64, "r+", shape=shape) if large else np.frombuffer(bytearray(file.read())).reshape(shape)
    numbered = (str(counter).strip(), np.concatenate(numbers)) if numbers else None
    return tuple(map(str, channels)), values, np.concatenate(times) if times else None, numbered


def _chunks(path: Path) -> Iterator[pd.DataFrame]:
    import pandas as pd

    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(path, pre_buffer=False) as file:
                check_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns, path.stat().st_size)
                for batch in file.iter_batches(CHUNK):
                    yield batch.to_pandas(ignore_metadata=True)  # the index is a column like others
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
    except EthobenchError:
        raise
    except (ValueError, OSError) as error:
        raise FormatError(path, f"the table cannot be read ({error})") from None


def _decimal(raw: bytes) -> str:
    return "," if raw.count(b",") > raw.count(b".") else "."


def _numbers(path: Path, name: str, column: NDArray[Any], before: int) -> NDArray[np.float64]:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    values = np.full(len(column), np.nan)
    for i, cell in enumerate(column.tolist()):
        try:
            values[i] = np.nan if cell is None else parse_number(str(cell))
        except ValueError:
            raise FormatError(path, f"{cell!r} in channel {name!r} is not a number", f"row {before + i + 2}") from None
    return values


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
    gaps = 0 < np.count_nonzero(np.diff(time) > GAP * step) < RARE * len(time)  # rows are missing, though the times are coarse
    counted = rate is not None and abs(rate * span - (len(time) - 1)) < DRIFT
    if even and (counted or (not gaps and (rate is None or abs(rate - own) * span < DRIFT))):
        late = [Note(f"the first sample is at {time[0]:g} s; frames are counted from there")] if time[0] > 1.5 * step else []
        return values, rate or own, late
    if rate is None:
        raise FormatError(path, f"samples are not evenly spaced (about {own:.4g} Hz): give rate= to resample them")
    position = np.rint((time - time[0]) * rate)
    if np.abs(position / rate - (time - time[0])).max() <= max(REGULAR / rate, 0.51 * finest) and (np.diff(position) > 0).all():
        values, gap = _spread(path, position.astype(np.int64), values)
        return values, rate, [Note(f"{gap} of {len(values)} frames have no sample; their signals are missing")]
    grid = np.arange(time[0], time[-1] + 0.5 / rate, 1.0 / rate)
    resampled = _empty_like(values, len(grid))
    for channel in range(values.shape[1]):
        resampled[:, channel] = np.interp(grid, time, values[:, channel])
    before = np.searchsorted(time, grid, side="right") - 1
    after = np.minimum(before + 1, len(time) - 1)
    missing = (time[after] - time[before] > GAP * max(step, 1.0 / rate)) & (grid > time[before]) & (grid < time[after])
    resampled[missing] = np.nan
    return (
        resampled,
        rate,
        [Note(f"samples (about {own:.4g} Hz) were resampled to {rate:g} Hz; {int(missing.sum())} frames in gaps")],
    )


def _on_samples(path: Path, name: str, numbers: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[Note]]:
    """Put rows at the samples that their numbers name."""
    column = f"column {name or 'index'!r}"
    if np.isnan(numbers).all():
        return values, [Note(f"{column} does not number the samples; rows are counted in order")]
    bad = np.flatnonzero(~np.isfinite(numbers) | (np.diff(numbers, prepend=-np.inf) <= 0))
    if bad.size and name.lower() in RESTARTING and np.isfinite(numbers).all():
        return values, [Note(f"{column} does not rise from row to row; rows are counted in order", f"row {bad[0] + 2}")]
    if bad.size:
        raise FormatError(path, f"{numbers[bad[0]]:g} in {column} does not rise above the row before", f"row {bad[0] + 2}")
    step = float(np.median(np.diff(numbers))) if len(numbers) > 1 else 1.0
    position = np.rint((numbers - numbers[0]) / step).astype(np.int64)
    uneven = np.flatnonzero(position * step != numbers - numbers[0])
    if uneven.size:
        raise FormatError(path, f"numbers in {column} rise by {step:g}, but not here", f"row {uneven[0] + 2}")
    notes = [Note(f"{column} rises by {step:g} from row to row; each row is one sample")] if step != 1 else []
    if numbers[0] > 1:
        notes.append(Note(f"the first row is number {numbers[0]:g} in {column}; frames are counted from there"))
    values, gap = _spread(path, position, values)
    if gap:
        first = int(np.flatnonzero(np.diff(position) > 1)[0]) + 3
        notes.append(
            Note(f"{gap} of {len(values)} frames have no row (the first before this one); their signals are missing", f"row {first}")
        )
    return values, notes


def _spread(path: Path, position: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Put rows at their positions; return the rows, NaN where there was none, and how many these are."""
    n_frames = int(position[-1]) + 1
    if n_frames == len(values):
        return values, 0
    check_size(path, n_frames * values[:1].nbytes, values.nbytes)
    spread = _empty_like(values, n_frames)
    spread[:] = np.nan
    spread[position] = values
    return spread, n_frames - len(values)


def _empty_like(values: NDArray[np.float64], n_frames: int) -> NDArray[np.float64]:
    """Return room for as many channels over other frames; on the disk where the values are."""
    shape = (n_frames, values.shape[1])
    if not isinstance(values, np.memmap):
        return np.empty(shape)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, np.float64, "w+", shape=shape)
