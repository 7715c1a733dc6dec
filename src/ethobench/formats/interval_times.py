"""Start and stop times of interval tables: numbers, clock times, dates, times since 1970, days of Excel.

All times of a table must be written in the same way. What numbers are is decided by the option ``time_unit``, by the names of the columns,
and then by their size:

- at least 1e8: time since 1970, in seconds, milliseconds, microseconds or nanoseconds;
- 20,000 to 80,000 with bouts shorter than 0.01: days of Excel (noon of 1 May 2024 is 45413.5);
- below 1, with bouts shorter than 0.005 and at whole seconds of the day: fractions of a day, as spreadsheets store durations;
- anything else: seconds.

Clock times (``0:59``, ``12:30:05``, time cells of XLSX) are elapsed times. They are times of day if they pass midnight, or if a column with
dates is beside them and the first is not within the first hour. Times with a date, and times of day, are counted from the first bout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError, Note
from ethobench.core.messages import Message, ReaderOption
from ethobench.core.wording import plural
from ethobench.formats.regular_clock import unwrap_days
from ethobench.formats.sample_times import (
    DAYS,
    EARLIEST,
    ISO_DATE,
    NUMBERED_DATE,
    SCALES,
    UNIT_NAME,
    TimeParser,
    day_number_unit,
    join_date_and_time,
)
from ethobench.formats.tables import Table, normalize_name
from ethobench.formats.text import is_number, parse_clock

TIME_OF_DAY = "time_of_day"
TIME_UNITS = (*SCALES, *DAYS, "frames", TIME_OF_DAY)
"""Values of the option ``time_unit``."""

MAX_DAY_BOUT = 0.01
"""Median duration of bouts in days (14 minutes) up to which large numbers may be days; as seconds, bouts would be shorter than 10 ms."""
MAX_FRACTION_BOUT = 0.005
FIRST_HOUR = 3600.0
DAY = 86_400.0
NO_TIME = frozenset({"", "na", "nan", "none", "nonegiven", "default", "unlabeled", "unlabelled"})
KINDS = {"number": "a number", "clock": "a clock time", "date": "a date"}


@dataclass
class IntervalTimes:
    """Times of the rows of an interval table.

    Attributes
    ----------
    start, stop : array of float64 (n_rows,)
        In seconds or frames; NaN where a cell is blank.
    unit : str
        ``"seconds"`` or ``"frames"``.
    origin : int or None
        Nanoseconds since 1970 of time zero, if times are dates.
    has_zone : bool
        Whether dates state their time zone.
    is_time_of_day : bool
        Whether times are times of day without a date; zero is midnight.
    kind : str
        What times are, for messages.
    notes : list of Note
    """

    start: NDArray[np.float64]
    stop: NDArray[np.float64]
    unit: str = "seconds"
    origin: int | None = None
    has_zone: bool = False
    is_time_of_day: bool = False
    kind: str = ""
    notes: list[Note] = field(default_factory=list)


def is_blank(cell: str) -> bool:
    """Return whether a cell states no time."""
    return not cell.strip() or normalize_name(cell) in NO_TIME


def kind_of_time(cell: str, decimal: str = ".") -> str:
    """Return ``"number"``, ``"clock"`` or ``"date"``; empty for a cell that is no time.

    Examples
    --------
    >>> [kind_of_time(cell) for cell in ("12.5", "0:12.5", "2024-05-01 10:00", "soon")]
    ['number', 'clock', 'date', '']
    """
    text = cell.strip()
    if is_number(text.replace(",", ".", 1) if decimal == "," else text):
        return "number"
    if ":" in text and parse_clock(text) is not None:
        return "clock"
    return "date" if ISO_DATE.fullmatch(text) or NUMBERED_DATE.fullmatch(text) else ""


def read_interval_times(
    table: Table,
    columns: Mapping[str, str],
    unit: str,
    groups: Mapping[str, Mapping[str, Sequence[int]]],
    *,
    time_unit: str | None = None,
    date_format: str | None = None,
) -> IntervalTimes:
    """Parse the times of an interval table.

    Parameters
    ----------
    table : Table
    columns : mapping of str to str
        Names of the columns: ``start``, and ``stop`` or ``duration``; ``date`` if clock times are of the dates in another column.
    unit : str
        Unit of numbers by the names of columns: ``"seconds"``, ``"milliseconds"``, ``"days"`` or ``"frames"``.
    groups : mapping of str to mapping of str to sequence of int
        Rows by recording and rater.
    time_unit : str, optional
        What times are, one of `TIME_UNITS`, if it is not what the names of columns or the times suggest.
    date_format : str, optional
        Format of dates, as in `datetime.strptime`.

    Raises
    ------
    FormatError
        If a cell is no time, or not of the same kind as the others; names row and column.
    """
    if time_unit is not None and time_unit not in TIME_UNITS:
        raise FormatError(table.path, f"time_unit must be one of {', '.join(TIME_UNITS)}, got {time_unit!r}")
    return _TimeReader(table, columns, unit, groups, time_unit, date_format).read()


@dataclass
class _TimeReader:
    table: Table
    columns: Mapping[str, str]
    unit: str
    groups: Mapping[str, Mapping[str, Sequence[int]]]
    time_unit: str | None
    date_format: str | None

    def __post_init__(self) -> None:
        self.notes: list[Note] = []
        self.end = "stop" if "stop" in self.columns else "duration"

    def read(self) -> IntervalTimes:
        names = [self.columns["start"], *([self.columns["stop"]] if self.end == "stop" else [])]
        kind = "date" if self.date_format is not None else self._common_kind(names)
        if kind == "date":
            return self._with_dates(self._cells("start"), self._cells("stop"))
        if kind == "clock":
            return self._with_clock_times()
        return self._with_numbers()

    # Cells

    def _cells(self, role: str) -> list[str]:
        """Return the cells of a column, empty where there is no time; no cells if the table has no such column."""
        name = self.columns.get(role, "")
        return ["" if is_blank(cell) else cell.strip() for cell in self.table.column(name)] if name else []

    def _location(self, row: int) -> str:
        return f"row {self.table.row_numbers[row]}"

    def _common_kind(self, names: Sequence[str]) -> str:
        """Return the kind of all times in some columns; zero may stand among times of any kind."""
        cells = [(name, row, cell.strip()) for name in names for row, cell in enumerate(self.table.column(name)) if not is_blank(cell)]
        kinds = [kind_of_time(cell, self.table.decimal) for *_, cell in cells]
        is_zero = [kind == "number" and parse_clock(cell) == 0 for kind, (*_, cell) in zip(kinds, cells, strict=True)]
        first = next((i for i, kind in enumerate(kinds) if kind and not is_zero[i]), None)
        common = "number" if first is None else kinds[first]
        for i, (name, row, cell) in enumerate(cells):
            if not kinds[i]:
                numbers, times = f"{cell!r} in column {name!r} is not a number", f"{cell!r} in column {name!r} is not a time"
                raise FormatError(self.table.path, numbers if common == "number" else times, self._location(row))
            if kinds[i] != common and not is_zero[i] and first is not None:
                other_name, other_row, other = cells[first]
                in_column = "" if other_name == name else f" in column {other_name!r}"
                message = f"{cell!r} in column {name!r} is {KINDS[kinds[i]]}, but {other!r}{in_column} ({self._location(other_row)})"
                raise FormatError(self.table.path, f"{message} is {KINDS[common]}; write all times in the same way", self._location(row))
        return common

    def _seconds(self, cells: Sequence[str]) -> NDArray[np.float64]:
        """Return elapsed clock times as seconds."""
        return np.array([np.nan if not cell else parse_clock(cell) for cell in cells], dtype=np.float64)

    # Times with a date

    def _with_dates(self, start: Sequence[str], stop: Sequence[str], unit: str | None = None) -> IntervalTimes:
        """Parse dates, times since 1970, or days of Excel or MATLAB, as seconds since the first."""
        import pandas as pd

        cells = [*start, *stop]
        rows = [i for i, cell in enumerate(cells) if cell]
        parser = TimeParser(self.table.path, self.columns["start"], unit, self.date_format)
        parser.row_numbers = [self.table.row_numbers[i % len(start)] for i in rows]
        values = np.full(len(cells), np.nan)
        values[rows] = parser.parse(pd.Series([cells[i] for i in rows], dtype=object))
        times = values[: len(start)]
        ends = values[len(start) :] if stop else times + self._durations(has_dates=True)
        return IntervalTimes(times, ends, "seconds", parser.origin, parser.has_zone, kind=parser.kind, notes=self.notes)

    def _durations(self, *, has_dates: bool) -> NDArray[np.float64]:
        """Return the column of durations in seconds."""
        name = self.columns["duration"]
        cells = self._cells("duration")
        if self._common_kind([name]) == "clock":
            return self._seconds(cells)
        values = self.table.numbers(name)
        if self.unit == "milliseconds" or self.time_unit == "ms":
            return values / 1000
        lengths = values[values > 0]
        is_short = has_dates and len(lengths) > 0 and float(np.median(lengths)) < MAX_FRACTION_BOUT
        if self.unit == "days" or self.time_unit == "days" or (is_short and UNIT_NAME.search(name.strip().lower()) is None):
            if self.unit != "days" and self.time_unit != "days":
                self.notes.append(Note(f"durations in column {name!r} are read as fractions of a day", code="assumed-unit"))
            return values * DAY
        return values

    # Clock times

    def _with_clock_times(self) -> IntervalTimes:
        start_cells, stop_cells = self._cells("start"), self._cells("stop")
        dates = self._cells("date")
        if dates and self._common_kind([self.columns["date"]]) == "date":
            return self._on_dates(dates, start_cells, stop_cells)
        is_stated = self.time_unit == TIME_OF_DAY
        if self.time_unit not in (None, "s", TIME_OF_DAY):
            message = f"time_unit is {self.time_unit!r}, but {next(filter(None, start_cells))!r} in column {self.columns['start']!r}"
            raise FormatError(self.table.path, f"{message} is a clock time")
        start = self._times_of_day(start_cells) if is_stated else self._seconds(start_cells)
        if stop_cells:
            stop = self._times_of_day(stop_cells) if is_stated else self._seconds(stop_cells)
        else:
            stop = start + self._durations(has_dates=False)
        may_be = starts_after_first_hour(start_cells, start, self.groups) and self.time_unit is None
        if is_stated or (may_be and self._passes_midnight(start, stop)):
            n_days = self._unwrap(start, stop)
            if n_days:
                message = plural(
                    n_days, "times are times of day and pass midnight once", "times are times of day and pass midnight {n} times"
                )
                self.notes.append(Note(message, code="midnight"))
            return IntervalTimes(start, stop, is_time_of_day=True, kind="times of day", notes=self.notes)
        if may_be:
            message = f"times are read as time since the start of the recording, and the first bout is at {next(filter(None, start_cells))}"
            chosen = ReaderOption("time_unit", TIME_OF_DAY)
            advice = Message("if they are times of day, set ", chosen, ", which counts from the first bout")
            self.notes.append(Note(Message(message, "; ", advice), code="assumed-unit"))
        return IntervalTimes(start, stop, kind="clock times", notes=self.notes)

    def _times_of_day(self, cells: Sequence[str]) -> NDArray[np.float64]:
        """Return times of day as seconds since midnight; two numbers are hours and minutes."""
        return np.array([(parse_clock(cell) or 0.0) * (60 if cell.count(":") == 1 else 1) if cell else np.nan for cell in cells])

    def _on_dates(self, dates: Sequence[str], start: Sequence[str], stop: Sequence[str]) -> IntervalTimes:
        """Parse clock times together with the dates in another column; a stop before the start is on the next day."""
        for row, (date, time) in enumerate(zip(dates, start, strict=True)):
            if time and not date:
                raise FormatError(self.table.path, f"no date in column {self.columns['date']!r}", self._location(row))
        times = self._with_dates(
            [join_date_and_time(d, t) if t else "" for d, t in zip(dates, start, strict=True)],
            [join_date_and_time(d, t) if t and d else "" for d, t in zip(dates, stop, strict=True)] if stop else [],
        )
        if stop:
            times.stop = np.where(times.stop < times.start, times.stop + DAY, times.stop)
        return times

    def _passes_midnight(self, start: NDArray[np.float64], stop: NDArray[np.float64]) -> bool:
        """Return whether a bout stops before it starts, or bouts go back by more than half a day."""
        if (stop < start).any():
            return True
        in_order = [start[rows][np.isfinite(start[rows])] for raters in self.groups.values() for rows in map(list, raters.values())]
        return any((np.diff(times) < -DAY / 2).any() for times in in_order)

    def _unwrap(self, start: NDArray[np.float64], stop: NDArray[np.float64]) -> int:
        """Continue times of day after midnight, in place; return how many midnights are passed."""
        for raters in self.groups.values():
            timed = [[row for row in rows if np.isfinite(start[row])] for rows in raters.values()]
            timed = [rows for rows in timed if rows]
            latest_first = max((start[rows[0]] for rows in timed), default=0.0)
            for rows in timed:
                is_next_day = latest_first - start[rows[0]] > DAY / 2  # the first bout of another rater is before midnight
                days = unwrap_days(start[rows]) - start[rows] + (DAY if is_next_day else 0.0)
                start[rows] += days
                stop[rows] += days
        if self.end == "stop":
            stop[stop < start] += DAY
        last = np.nanmax(np.concatenate([start, stop]), initial=0.0)
        return int(last // DAY)

    # Numbers

    def _with_numbers(self) -> IntervalTimes:
        start, last = self.table.numbers(self.columns["start"]), self.table.numbers(self.columns[self.end])
        stop = last if self.end == "stop" else start + last
        unit = self.time_unit or {"frames": "frames", "milliseconds": "ms", "days": "days"}.get(self.unit) or self._guess_unit(start, stop)
        if unit == TIME_OF_DAY:
            raise FormatError(self.table.path, f"time_unit is {unit!r}, but column {self.columns['start']!r} has numbers")
        finite = np.concatenate([start, stop if self.end == "stop" else []])
        finite = finite[np.isfinite(finite)]
        if unit in DAYS or (unit != "frames" and len(finite) and finite.min() >= EARLIEST):
            return self._with_dates(self._cells("start"), self._cells("stop"), unit if unit in DAYS else self.time_unit)
        scale = 1.0 if unit == "frames" else SCALES[unit]
        kind = "frames" if unit == "frames" else "numbers"
        return IntervalTimes(start * scale, stop * scale, "frames" if unit == "frames" else "seconds", kind=kind, notes=self.notes)

    def _guess_unit(self, start: NDArray[np.float64], stop: NDArray[np.float64]) -> str:
        """Return the unit of numbers in columns whose names do not state it."""
        times, lengths = start[np.isfinite(start)], (stop - start)[stop > start]
        if UNIT_NAME.search(self.columns["start"].strip().lower()) or not len(times) or not len(lengths):
            return "s"
        length, size = float(np.median(lengths)), float(np.median(np.abs(times)))
        is_all_overlapping = self.end == "duration" and len(times) > 1 and float(np.ptp(times)) < length
        is_fractional = bool((times != np.round(times)).any())
        if is_fractional and (length < MAX_DAY_BOUT or is_all_overlapping) and (unit := day_number_unit(size)):
            return unit
        if length < MAX_FRACTION_BOUT and np.nanmax(stop) < 1 and self._has_many_digits():
            return self._guess_fraction(np.concatenate([times, stop[np.isfinite(stop)]]))
        return "s"

    def _guess_fraction(self, times: NDArray[np.float64]) -> str:
        """Return the unit of numbers below 1: days if all are whole seconds (or milliseconds) of the day, else seconds."""
        seconds = times * DAY
        is_rounded = bool(np.abs(seconds - np.round(seconds)).max() < 0.005 or np.abs(seconds - np.round(seconds, 3)).max() < 1e-6)
        if is_rounded:
            fractions = Message(
                "times are read as fractions of a day, as in spreadsheets; if they are seconds, set ",
                ReaderOption("time_unit", "s"),
            )
            self.notes.append(Note(fractions, code="assumed-unit"))
            return "days"
        message = "all times are below one second and bouts take a few milliseconds; if these are fractions of a day, set "
        self.notes.append(Note(Message(message, ReaderOption("time_unit", "days")), code="assumed-unit"))
        return "s"

    def _has_many_digits(self) -> bool:
        """Return whether times have more than six decimals, unlike times that people or programs write in seconds."""
        cells = [*self._cells("start"), *self._cells(self.end)]
        return any(len(cell.replace(",", ".").partition(".")[2]) > 6 or "e-" in cell.lower() for cell in cells)


def starts_after_first_hour(cells: Sequence[str], start: NDArray[np.float64], groups: Mapping[str, Mapping[str, Sequence[int]]]) -> bool:
    """Return whether clock times may be times of day: HH:MM:SS, and the first one of each recording is not in the first hour."""
    filled = [cell for cell in cells if cell]
    is_full = bool(filled) and all(cell.count(":") == 2 for cell in filled) and float(np.nanmax(start)) < DAY
    firsts = [
        next((start[row] for row in sorted(r for rows in raters.values() for r in rows) if np.isfinite(start[row])), np.inf)
        for raters in groups.values()
    ]
    return is_full and all(first >= FIRST_HOUR for first in firsts)
