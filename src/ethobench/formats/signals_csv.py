"""Signals of a tag as a table: CSV or Parquet with a header, one row per sample, one column per channel.

A column called time (or timestamp) is the clock: in seconds or as dates. A regular one gives the rate; an irregular one
is resampled to `rate`, and stretches without samples become NaN.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Recording, Signals
from ethobench.core.errors import FormatError, Note
from ethobench.formats._base import Format, register_format
from ethobench.formats._text import Head, encoding_of, guess_delimiter

CLOCKS = ("time", "timestamp", "datetime", "t", "seconds", "time_s", "time (s)")
COUNTERS = ("", "frame", "index", "sample", "unnamed: 0")
LOOKED_AT = 20
REGULAR = 0.01
GAP = 1.5


@register_format
class SignalsCsv(Format):
    """Channels of a bio-logger in a plain table."""

    title = "table of signals"
    suffixes = (".csv", ".parquet")
    contents = ("signals",)

    def sniff(self, path: Path, head: Head) -> float:
        names = [name.lower() for name in head.header]
        if len(names) < 2 or any(_is_number(name) for name in names):
            return 0.0
        rows = [row for row in head.rows if row and not row[0].startswith("#")][1 : LOOKED_AT + 1]
        channels = [i for i, name in enumerate(names) if name not in (*CLOCKS, *COUNTERS)]
        cells = [row[i] for row in rows for i in channels if len(row) == len(names)]
        filled = [cell.replace(",", ".") for cell in cells if cell.strip() not in ("", "NA", "nan", "NaN")]
        if not filled or not all(_is_number(cell) for cell in filled):
            return 0.0
        measured = any(float(cell) not in (0.0, 1.0) for cell in filled)
        return 0.3 if measured else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        names, columns = _read_columns(path)
        clock = next((name for name in names if name.strip().lower() in CLOCKS), None)
        channels = [name for name in names if name.strip().lower() not in (*CLOCKS, *COUNTERS)]
        if not channels:
            raise FormatError(path, "no column of signals")
        values = np.column_stack([_numbers(path, name, columns[name]) for name in channels])
        notes: list[Note] = []
        if clock is not None:
            values, rate, notes = _regular(path, _seconds(path, clock, columns[clock]), values, rate)
        if rate is None:
            raise FormatError(path, "the table tells no sampling rate: give rate=, or a column called time")
        return [Recording(path.stem, rate=rate, signals=Signals(values, tuple(channels), rate), notes=tuple(notes))]


def _read_columns(path: Path) -> tuple[list[str], dict[str, Any]]:
    import pandas as pd

    try:
        if path.suffix.lower() == ".parquet":
            table = pd.read_parquet(path)
        else:
            with path.open("rb") as file:
                raw = file.read(1 << 16)
            encoding = encoding_of(raw)
            delimiter = guess_delimiter(raw.decode(encoding, errors="replace"))
            table = pd.read_csv(path, sep=delimiter, encoding=encoding, comment="#", decimal="." if delimiter == "," else _decimal(raw))
    except (ValueError, OSError) as error:
        raise FormatError(path, f"the table cannot be read ({error})") from None
    names = [str(name) for name in table.columns]
    return names, {name: table[column].to_numpy() for name, column in zip(names, table.columns, strict=True)}


def _decimal(raw: bytes) -> str:
    return "," if raw.count(b",") > raw.count(b".") else "."


def _numbers(path: Path, name: str, column: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return column.astype(np.float64)
    except (ValueError, TypeError):
        bad = next(i for i, cell in enumerate(column) if not _is_number(str(cell)))
        raise FormatError(path, f"{column[bad]!r} in channel {name!r} is not a number", f"row {bad + 2}") from None


def _seconds(path: Path, name: str, column: NDArray[Any]) -> NDArray[np.float64]:
    import pandas as pd

    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    try:
        stamps = pd.to_datetime(pd.Series(column), utc=True, format="ISO8601")
    except (ValueError, TypeError):
        raise FormatError(path, f"column {name!r} holds neither seconds nor dates such as 2024-05-01T12:00:00.25") from None
    return np.asarray((stamps - stamps.iloc[0]).dt.total_seconds(), dtype=np.float64)


def _regular(
    path: Path, time: NDArray[np.float64], values: NDArray[np.float64], rate: float | None
) -> tuple[NDArray[np.float64], float, list[Note]]:
    """Put samples on a regular clock; an already regular one is left alone."""
    if len(time) < 2 or not np.isfinite(time).all() or (np.diff(time) <= 0).any():
        at = int(np.flatnonzero(np.diff(time) <= 0)[0]) + 3 if len(time) > 1 and (np.diff(time) <= 0).any() else 2
        raise FormatError(path, "times must rise from row to row", f"row {at}")
    step = float(np.median(np.diff(time)))
    own = 1.0 / step
    if np.abs(np.diff(time) - step).max() <= REGULAR * step and (rate is None or abs(rate - own) < REGULAR * own):
        return values, rate or float(np.round(own, 6)), []
    if rate is None:
        raise FormatError(path, f"samples are not evenly spaced (about {own:.4g} Hz): give rate= to resample them")
    grid = np.arange(time[0], time[-1] + 0.5 / rate, 1.0 / rate)
    resampled = np.column_stack([np.interp(grid, time, channel) for channel in values.T])
    before = np.searchsorted(time, grid, side="right") - 1
    after = np.minimum(before + 1, len(time) - 1)
    missing = (time[after] - time[before] > GAP * max(step, 1.0 / rate)) & (grid > time[before]) & (grid < time[after])
    resampled[missing] = np.nan
    return (
        resampled,
        rate,
        [Note(f"irregular samples (about {own:.4g} Hz) were resampled to {rate:g} Hz; {int(missing.sum())} frames in gaps")],
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
