"""Times as tables state them: seconds, dates, times of day, time since 1970, days of Excel or MATLAB."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.messages import Message, ReaderOption
from ethobench.formats.text import is_number, parse_clock, parse_number

if TYPE_CHECKING:
    import pandas as pd

ISO_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]+\d{1,2}:\d{2}.*)?")
NUMBERED_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})[./-](\d{4}|\d{2})[T ,]*(\d{1,2}:\d{2}.*)?")
TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(:\d{1,2}([.,]\d*)?)?")
MIDNIGHT = re.compile(r"[T ]+0?0:00(:00([.,]0*)?)?$")
ZONE = re.compile(r"(Z|[+-]\d{2}:?\d{2}| ?UTC)$")
UNIT_NAME = re.compile(r"(?:^|[\s_\[(.])(s|secs?|seconds?|ms|msecs?|millis|milliseconds?|us|µs|microseconds?|ns|nanoseconds?)[\])]?$")
SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "days": 86_400.0}
DAYS = {"excel": 25_569, "datenum": 719_529}  # day number of 1970-01-01
UNITS = (*SCALES, *DAYS)
LONG_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds", "days": "days"}
NANOSECONDS = 1_000_000_000
EARLIEST, LATEST = 1e8, 1e10  # seconds since 1970: from 1973 to 2286
MAX_DAY_STEP = 0.002  # days, about three minutes; as seconds this would be a rate of 500 Hz
MAX_SECONDS = 1e10


def looks_like_times(cells: Sequence[str]) -> bool:
    """Return whether cells hold dates with a time of day, times of day, or dates alone."""
    return bool(cells) and all(ISO_DATE.fullmatch(c) or NUMBERED_DATE.fullmatch(c) or TIME_OF_DAY.fullmatch(c) for c in cells)


def is_time_of_day(cells: Sequence[str]) -> bool:
    """Return whether cells hold times of day without a date."""
    return bool(cells) and all(TIME_OF_DAY.fullmatch(cell) for cell in cells[:50])


def day_number_unit(size: float) -> str | None:
    """Return the kind of day numbers of a size, a key of `DAYS`: from 1954 to 2119 for Excel, from 1916 to 2190 for MATLAB.

    Examples
    --------
    >>> day_number_unit(45_413.5), day_number_unit(739_373.5), day_number_unit(120.0)
    ('excel', 'datenum', None)
    """
    return "excel" if 20_000 < size < 80_000 else "datenum" if 700_000 < size < 800_000 else None


def join_date_and_time(date: str, time: str) -> str:
    """Return a date and a time of day as one text; spreadsheets add midnight to dates.

    Examples
    --------
    >>> join_date_and_time("2024-05-01 00:00:00", "12:30:05")
    '2024-05-01 12:30:05'
    """
    return f"{MIDNIGHT.sub('', date.strip())} {time.strip()}"


def to_datetime(nanoseconds: int, *, has_zone: bool) -> datetime:
    """Return a date from nanoseconds since 1970, with time zone UTC or without a time zone."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)
    return moment if has_zone else moment.replace(tzinfo=None)


DATE_ORDERS = {"day_first": True, "month_first": False}
"""Values of the option ``date_format`` for dates that begin with the day or the month."""


class TimeParser:
    """Converts a column of times to seconds, chunk by chunk; the first chunk decides what the times are.

    Parameters
    ----------
    path : Path
        Named in errors.
    name : str
        Name of the column, which may state the unit.
    unit : str, optional
        Unit of numbers, one of `UNITS`.
    date_format : str, optional
        Format of dates, as in `datetime.strptime`; or ``"day_first"`` or ``"month_first"``, for dates such as 03/04/2024.

    Attributes
    ----------
    origin : int or None
        Nanoseconds since 1970 of time zero; None if times are not dates.
    kind : str
        What times are, for messages.
    has_zone : bool
        Whether dates state a time zone, as times since 1970 do.
    row_numbers : sequence of int, optional
        Row of each cell in the file, for the location of errors. By default rows follow each other below a header.
    """

    def __init__(self, path: Path, name: str, unit: str | None = None, date_format: str | None = None) -> None:
        if unit is not None and unit not in UNITS:
            raise FormatError(path, f"time_unit must be one of {', '.join(UNITS)}, got {unit!r}")
        self.path, self.name, self.unit = path, name, unit
        self.date_format = None if date_format in DATE_ORDERS else date_format
        self.origin: int | None = None
        self.kind, self.has_zone = "", False
        self.is_number: bool | None = None
        self.day_first: bool | None = DATE_ORDERS.get(date_format or "")
        self.row_numbers: Sequence[int] | None = None

    def parse(self, column: pd.Series, before: int = 0) -> NDArray[np.float64]:
        """Return times in seconds since `origin`.

        Parameters
        ----------
        column : Series
            Numbers, dates or text.
        before : int
            Number of rows before this chunk, for the location of errors.
        """
        if column.dtype.kind == "M" or str(column.dtype).startswith("datetime64"):
            self.kind, self.has_zone = "dates", getattr(column.dtype, "tz", None) is not None
            return self._since_origin(self._nanoseconds(column, before), before)
        if column.dtype.kind in "iuf":
            return self._numbers(column.to_numpy(), before)
        texts = column.astype(object).where(column.notna(), "").astype(str).str.strip()
        filled = [text for text in texts.iloc[:50] if text]
        if self.is_number is None:
            self.is_number = bool(filled) and all(is_number(text.replace(",", ".", 1)) for text in filled)
        if self.is_number:
            return self._numbers(self._parsed(texts, before), before)
        if self.date_format is None and is_time_of_day(filled):
            self.kind = "times of day"
            return np.array([self._clock(text, before + i) for i, text in enumerate(texts)], dtype=np.float64)
        return self._since_origin(self._dates(texts, before), before)

    def _parsed(self, texts: pd.Series, before: int) -> NDArray[Any]:
        if all(re.fullmatch(r"-?\d+", text) for text in texts.iloc[:50]):  # exact, unlike floating point, for time since 1970
            try:
                return np.array([int(text) for text in texts], dtype=np.int64)
            except (ValueError, OverflowError):
                pass
        values = np.full(len(texts), np.nan)
        for i, text in enumerate(texts):
            try:
                values[i] = parse_number(text.replace(",", ".", 1))
            except ValueError:
                self._refuse(text, before + i)
        return values

    def _clock(self, text: str, row: int) -> float:
        seconds = parse_clock(text)
        if seconds is None:
            self._refuse(text, row)
        return seconds if text.count(":") > 1 else seconds * 60  # HH:MM, not MM:SS

    def _numbers(self, values: NDArray[Any], before: int) -> NDArray[np.float64]:
        """Return numbers as seconds; time since 1970 and days are dates."""
        bad = ~np.isfinite(values)
        if bad.any():
            self._refuse("", before + int(np.flatnonzero(bad)[0]))
        if not self.kind:
            self._decide_unit(values)
        if self.unit in DAYS:
            nanoseconds = np.rint((values.astype(np.float64) - DAYS[self.unit]) * 86_400e6).astype(np.int64) * 1000
            return self._since_origin(nanoseconds, before)
        scale = SCALES[self.unit or "s"]
        if self.origin is None and not self.has_zone:
            return values.astype(np.float64) * scale
        if values.dtype.kind in "iu":
            factor = round(scale * NANOSECONDS)
            largest = int(np.abs(values).max(initial=0))
            if largest * factor >= 1 << 63:
                self._refuse(str(largest), before)
            return self._since_origin(values.astype(np.int64) * factor, before)
        return self._since_origin(np.rint(values * scale * 1e6).astype(np.int64) * 1000, before)

    def _decide_unit(self, values: NDArray[Any]) -> None:
        """Decide what numbers are: by the unit that is set or in the name of the column, else by their size."""
        size = float(np.median(np.abs(values.astype(np.float64)))) if len(values) else 0.0
        steps = np.abs(np.diff(values.astype(np.float64)))
        steps = steps[steps > 0]
        step = float(np.median(steps)) if len(steps) else 0.0
        if self.unit is None and (match := UNIT_NAME.search(self.name.strip().lower())):
            word = match[1].replace("µ", "u")
            self.unit = {"s": "s", "m": "ms", "u": "us", "n": "ns"}[word[0]]
        if self.unit is None and size >= LATEST:
            self.unit = next((unit for unit, scale in SCALES.items() if EARLIEST <= size * scale < LATEST), None)
        if self.unit is None and 0 < step < MAX_DAY_STEP:
            self.unit = day_number_unit(size)
        self.unit = self.unit or "s"
        if self.unit in DAYS:
            self.kind = "days of Excel" if self.unit == "excel" else "days of MATLAB"
            return
        self.has_zone = EARLIEST <= size * SCALES[self.unit] < LATEST
        self.kind = LONG_NAMES[self.unit] + (" since 1970" if self.has_zone else "")

    def _dates(self, texts: pd.Series, before: int) -> NDArray[np.int64]:
        import pandas as pd

        first = next((text for text in texts if text), "")
        if not self.kind:
            self.kind, self.has_zone = "dates", ZONE.search(first) is not None
        try:
            if self.date_format is not None:
                return self._nanoseconds(pd.to_datetime(texts, utc=True, format=self.date_format), before)
            if not ISO_DATE.fullmatch(first):
                texts = self._reordered(texts, before)
            elif "/" in first or first[4] == ".":
                texts = texts.str.replace(r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})", r"\1-\2-\3", regex=True)
            return self._nanoseconds(pd.to_datetime(texts.str.replace(",", "."), utc=True, format="ISO8601"), before)
        except EthobenchError:
            raise
        except (ValueError, TypeError, OverflowError):
            bad = next((i for i, text in enumerate(texts) if not self._is_date(text)), 0)
            self._refuse(str(texts.iloc[bad]), before + bad)

    def _is_date(self, text: str) -> bool:
        import pandas as pd

        try:
            return not pd.isna(pd.to_datetime(text, utc=True, format=self.date_format or "ISO8601"))
        except (ValueError, TypeError, OverflowError):
            return False

    def _reordered(self, texts: pd.Series, before: int) -> pd.Series:
        """Return dates such as 31.12.2024 or 12/31/2024 as ISO dates."""
        parts = texts.str.extract(r"^(\d{1,2})([./-])(\d{1,2})[./-](\d{4}|\d{2})[T ,]*(.*)$")
        if parts.isna().to_numpy().any():
            row = int(np.flatnonzero(parts.isna().any(axis=1))[0])
            self._refuse(str(texts.iloc[row]), before + row)
        one, two = (parts[i].astype(int).to_numpy() for i in (0, 2))
        if self.day_first is None:
            if (one > 12).any() or parts[1].iloc[0] == ".":
                self.day_first = True
            elif (two > 12).any():
                self.day_first = False
            else:
                message = f"{texts.iloc[0]!r} in column {self.name!r} may begin with the day or the month; set "
                orders = [ReaderOption("date_format", order) for order in DATE_ORDERS]
                raise FormatError(self.path, Message(message, orders[0], " or ", orders[1]), self._location(before))
        day, month = (parts[0], parts[2]) if self.day_first else (parts[2], parts[0])
        year = parts[3].where(parts[3].str.len() == 4, "20" + parts[3])
        joined = year + "-" + month.str.zfill(2) + "-" + day.str.zfill(2)
        times = parts[4].str.strip()
        return joined + ("T" + times.str.replace(r"^(\d):", r"0\1:", regex=True)).where(times != "", "")

    def _nanoseconds(self, dates: Any, before: int) -> NDArray[np.int64]:
        missing = dates.isna().to_numpy()
        if missing.any():
            self._refuse("", before + int(np.flatnonzero(missing)[0]))
        import pandas as pd

        naive = pd.Series(dates).dt.tz_convert(None) if getattr(dates.dtype, "tz", None) is not None else pd.Series(dates)
        return naive.to_numpy(dtype="datetime64[ns]").astype(np.int64)

    def _since_origin(self, nanoseconds: NDArray[np.int64], before: int) -> NDArray[np.float64]:
        if self.origin is None and len(nanoseconds):
            self.origin = int(nanoseconds[0])
        seconds = (nanoseconds - (self.origin or 0)) / NANOSECONDS
        if len(seconds) and np.abs(seconds).max() > MAX_SECONDS:
            self._refuse("", before + int(np.argmax(np.abs(seconds))))
        return np.asarray(seconds, dtype=np.float64)

    def _refuse(self, text: str, row: int) -> NoReturn:
        problem = f"{text!r} is not a time" if text else "missing or impossible time"
        expected = f"column {self.name!r} must hold seconds or dates such as 2024-05-01T12:00:00.25"
        raise FormatError(
            self.path, Message(f"{problem}: {expected} (set ", ReaderOption("time"), " to use another column)"), self._location(row)
        )

    def _location(self, row: int) -> str:
        return f"row {row + 2 if self.row_numbers is None else self.row_numbers[row]}"
