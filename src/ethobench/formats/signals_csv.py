"""Signals of a bio-logger as a table: CSV or Parquet with a header, one row per sample, one column per channel.

A column called time (or timestamp) holds seconds or dates. Regular times determine the rate; irregular times are resampled to `rate`,
and periods without samples become NaN. Without times, a column called frame, index or sample numbers the samples: a missing number is a
missing sample (NaN).
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
from ethobench.formats.frame_clock import resolution, snap_rate
from ethobench.formats.size_limits import check_size, check_table
from ethobench.formats.text import Head, encoding_of, guess_delimiter, is_number, parse_number

if TYPE_CHECKING:
    import pandas as pd

CLOCKS = ("time", "timestamp", "datetime", "t", "seconds", "time_s", "time (s)")
COUNTERS = ("", "frame", "index", "sample", "unnamed: 0", "__index_level_0__")
RESTARTING = ("sample",)  # may restart in each burst of a tag
SNIFFED_ROWS = 20
MAX_JITTER = 0.01  # of a step
MIN_GAP = 1.5  # steps
MAX_DRIFT = 0.5  # frames by which a stated rate may be off at the end
MAX_GAP_SHARE = 0.1  # of steps; if more steps are long, the times are irregular rather than incomplete
CHUNK = 1 << 17  # rows
LARGE = 1 << 26  # bytes of a file whose channels are kept on disk


@register_format("signals_csv")
class SignalsCsv(Format):
    """Channels of a bio-logger in a plain table.

    Option for reading: ``rate``, the sampling rate, if the table has no regular times.
    """

    title = "table of signals"
    suffixes = (".csv", ".parquet")
    contents = ("signals",)

    def sniff(self, path: Path, head: Head) -> float:
        if path.suffix.lower() == ".parquet":
            return _sniff_parquet(path)
        names = [name.lower() for name in head.header]
        if len(names) < 2 or any(is_number(name) for name in names):
            return 0.0
        rows = [row for row in head.body if not row[0].startswith("#")][:SNIFFED_ROWS]
        channels = [i for i, name in enumerate(names) if name not in (*CLOCKS, *COUNTERS)]
        cells = [row[i] for row in rows for i in channels if len(row) == len(names)]
        filled = [cell.replace(",", ".") for cell in cells if cell.strip() not in ("", "NA", "nan", "NaN")]
        if not filled or not all(is_number(cell) for cell in filled):
            return 0.0
        is_binary = all(float(cell) in (0.0, 1.0) for cell in filled)
        return 0.0 if is_binary else 0.3

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        channels, values, times, numbers = _read(path)
        notes: list[Note] = []
        if times is not None:
            values, rate, notes = _regular(path, times, values, rate)
        elif numbers is not None:
            values, notes = _on_samples(path, *numbers, values)
        if rate is None:
            raise FormatError(path, "no sampling rate; set rate=, or add a column called time")
        return [Recording(path.stem, rate=rate, signals=Signals(values, channels, rate), notes=tuple(notes))]


def _sniff_parquet(path: Path) -> float:
    """Return the confidence that a Parquet file holds signals: only numbers, some of them floating point."""
    import pyarrow as pa

    schema = read_schema(path)
    kinds = [field.type for field in schema if field.name.strip().lower() not in (*CLOCKS, *COUNTERS)]
    numbers = [pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in kinds]
    return 0.3 if kinds and all(numbers) and any(map(pa.types.is_floating, kinds)) else 0.0


def _read(
    path: Path,
) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64] | None, tuple[str, NDArray[np.float64]] | None]:
    """Return channels, values, times, and name and content of the column that numbers the samples.

    The file is read in chunks. The values of a large file are on disk, not in memory.
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
                    yield batch.to_pandas(ignore_metadata=True)  # the index is read as a column
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
        named = list(range(len(Head(path).header))) or None  # without the empty columns that spreadsheets add
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
        raise FormatError(path, f"not a valid table ({error})") from None


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
    """Return times in seconds, dates relative to the first one of the table, and that first date."""
    import pandas as pd

    if column.dtype.kind in "iuf":
        return column.astype(np.float64), first
    try:
        stamps = pd.to_datetime(pd.Series(column), utc=True, format="ISO8601")
    except (ValueError, TypeError):
        raise FormatError(path, f"column {name!r} must hold seconds or dates such as 2024-05-01T12:00:00.25") from None
    first = stamps.iloc[0] if first is None else first
    return np.asarray((stamps - first).dt.total_seconds(), dtype=np.float64), first


def _regular(
    path: Path, time: NDArray[np.float64], values: NDArray[np.float64], rate: float | None
) -> tuple[NDArray[np.float64], float, list[Note]]:
    """Return samples on a regular clock, the rate, and notes; samples that are already regular are not changed."""
    if len(time) < 2 or not np.isfinite(time).all() or (np.diff(time) <= 0).any():
        at = int(np.flatnonzero(np.diff(time) <= 0)[0]) + 3 if len(time) > 1 and (np.diff(time) <= 0).any() else 2
        raise FormatError(path, "times must increase from row to row", f"row {at}")
    step, span, finest = float(np.median(np.diff(time))), float(time[-1] - time[0]), resolution(time)
    estimated_rate = snap_rate((len(time) - 1) / span, finest / span)
    is_regular = np.abs(np.diff(time) - step).max() <= max(MAX_JITTER * step, 1.5 * finest)
    gaps = (
        0 < np.count_nonzero(np.diff(time) > MIN_GAP * step) < MAX_GAP_SHARE * len(time)
    )  # rows are missing, even if the times are coarse
    counted = rate is not None and abs(rate * span - (len(time) - 1)) < MAX_DRIFT
    if is_regular and (counted or (not gaps and (rate is None or abs(rate - estimated_rate) * span < MAX_DRIFT))):
        message = f"the first sample is at {time[0]:g} s; frames are counted from there"
        return values, rate or estimated_rate, [Note(message, code="late-start")] if time[0] > 1.5 * step else []
    if rate is None:
        raise FormatError(path, f"irregular times (about {estimated_rate:.4g} Hz); set rate= to resample")
    position = np.rint((time - time[0]) * rate)
    if np.abs(position / rate - (time - time[0])).max() <= max(MAX_JITTER / rate, 0.51 * finest) and (np.diff(position) > 0).all():
        values, gap = _spread(path, position.astype(np.int64), values)
        return values, rate, [Note(f"{gap} of {len(values)} frames have no sample; their signals are missing", code="missing-frames")]
    grid = np.arange(time[0], time[-1] + 0.5 / rate, 1.0 / rate)
    resampled = _empty_like(values, len(grid))
    for channel in range(values.shape[1]):
        resampled[:, channel] = np.interp(grid, time, values[:, channel])
    before = np.searchsorted(time, grid, side="right") - 1
    after = np.minimum(before + 1, len(time) - 1)
    missing = (time[after] - time[before] > MIN_GAP * max(step, 1.0 / rate)) & (grid > time[before]) & (grid < time[after])
    resampled[missing] = np.nan
    message = f"resampled from about {estimated_rate:.4g} Hz to {rate:g} Hz; {int(missing.sum())} frames are in gaps"
    return resampled, rate, [Note(message, code="resampled")]


def _on_samples(path: Path, name: str, numbers: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[Note]]:
    """Return rows at the positions of their sample numbers, and notes."""
    column = f"column {name or 'index'!r}"
    if np.isnan(numbers).all():
        return values, [Note(f"{column} does not hold sample numbers; rows are counted in order", code="ignored-index")]
    bad = np.flatnonzero(~np.isfinite(numbers) | (np.diff(numbers, prepend=-np.inf) <= 0))
    if bad.size and name.lower() in RESTARTING and np.isfinite(numbers).all():
        message = f"{column} does not increase from row to row; rows are counted in order"
        return values, [Note(message, f"row {bad[0] + 2}", "ignored-index")]
    if bad.size:
        raise FormatError(path, f"{numbers[bad[0]]:g} in {column} is not larger than in the previous row", f"row {bad[0] + 2}")
    step = float(np.median(np.diff(numbers))) if len(numbers) > 1 else 1.0
    position = np.rint((numbers - numbers[0]) / step).astype(np.int64)
    uneven = np.flatnonzero(position * step != numbers - numbers[0])
    if uneven.size:
        raise FormatError(path, f"numbers in {column} increase by {step:g}, but not here", f"row {uneven[0] + 2}")
    message = f"{column} increases by {step:g} from row to row; each row is read as one sample"
    notes = [Note(message, code="index-step")] if step != 1 else []
    if numbers[0] > 1:
        notes.append(Note(f"the first row is number {numbers[0]:g} in {column}; frames are counted from there", code="late-start"))
    values, gap = _spread(path, position, values)
    if gap:
        first = int(np.flatnonzero(np.diff(position) > 1)[0]) + 3
        message = f"{gap} of {len(values)} frames have no row (the first gap is before this row); their signals are missing"
        notes.append(Note(message, f"row {first}", "missing-frames"))
    return values, notes


def _spread(path: Path, position: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return rows at their positions, with NaN for missing rows, and the number of missing rows."""
    n_frames = int(position[-1]) + 1
    if n_frames == len(values):
        return values, 0
    check_size(path, n_frames * values[:1].nbytes, values.nbytes)
    spread = _empty_like(values, n_frames)
    spread[:] = np.nan
    spread[position] = values
    return spread, n_frames - len(values)


def _empty_like(values: NDArray[np.float64], n_frames: int) -> NDArray[np.float64]:
    """Return an uninitialized array with as many channels and `n_frames` frames; on disk if the values are on disk."""
    shape = (n_frames, values.shape[1])
    if not isinstance(values, np.memmap):
        return np.empty(shape)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, np.float64, "w+", shape=shape)
