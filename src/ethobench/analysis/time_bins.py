"""Time bins: of equal duration, equal parts of a recording, by time of day, or relative to an event.

Conventions
-----------
A bin is a set of frames of a recording. Bins are numbered from 0; those before an event have negative numbers. Edges are in seconds: from
the start of the recording, from midnight, or from the event. The last bin of a recording may be shorter than the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, NotFoundError, ParameterError
from ethobench.core.intervals import Intervals

if TYPE_CHECKING:
    from ethobench.core import Annotation

UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
PARTS = {"halves": 2, "thirds": 3, "quarters": 4, "fifths": 5, "tenths": 10}
DAY = 86400.0
MAX_BINS = 100_000
SYNTAX = "5m, 30s, 1h; thirds, quarters, parts:6; clock:1h for the time of day; event:BEHAVIOR:5m for the time since its first bout"


class BinKind(StrEnum):
    """How bins are counted."""

    DURATION = "duration"
    PARTS = "parts"
    CLOCK = "clock"
    EVENT = "event"


class TimeBin(NamedTuple):
    """One bin of a recording: its number, its edges in seconds, and its frames."""

    number: int
    start: float
    stop: float
    frames: Intervals


@dataclass(frozen=True)
class TimeBins:
    """A division of recordings into time bins.

    Attributes
    ----------
    kind : BinKind
    seconds : float
        Duration of a bin; unused for parts.
    parts : int
        Number of parts of equal length.
    event : str
        Behavior whose first bout is time 0.

    Examples
    --------
    >>> TimeBins.parse("5m").seconds
    300.0
    >>> TimeBins.parse("thirds").parts
    3
    >>> TimeBins.parse("event:injection:10m")
    TimeBins(kind=<BinKind.EVENT: 'event'>, seconds=600.0, parts=0, event='injection')
    """

    kind: BinKind
    seconds: float = 0.0
    parts: int = 0
    event: str = ""

    @classmethod
    def parse(cls, value: str | float | TimeBins) -> TimeBins:
        """Return the bins that a text such as ``"5m"``, or a number of seconds, describes.

        Raises
        ------
        ParameterError
            If the text does not describe bins.
        """
        if isinstance(value, TimeBins):
            return value
        text = str(value).strip()
        if text in PARTS:
            return cls(BinKind.PARTS, parts=PARTS[text])
        if match := re.fullmatch(r"parts:(\d{1,5})", text):
            if (parts := int(match[1])) < 1:
                raise ParameterError(f"time bins {text!r}: the number of parts must be at least 1")
            return cls(BinKind.PARTS, parts=parts)
        if text.startswith("clock:"):
            return cls(BinKind.CLOCK, _clock_seconds(text))
        if text.startswith("event:") and text.count(":") >= 2:
            event, _, duration = text.removeprefix("event:").rpartition(":")
            return cls(BinKind.EVENT, parse_duration(duration), event=event)
        return cls(BinKind.DURATION, parse_duration(text))

    def divide(self, annotation: Annotation, start_time: datetime | None, name: str, subject: str = "") -> list[TimeBin]:
        """Return the bins of one recording, in order.

        Parameters
        ----------
        annotation : Annotation
        start_time : datetime, optional
            Date and time of the first frame; needed for the time of day.
        name : str
            The recording in error messages.
        subject : str
            The first bout of the event is that of this subject, if it has one, else that of any.

        Returns
        -------
        list of TimeBin
            Empty if the event does not occur.
        """
        n_frames, rate = annotation.n_frames, annotation.rate
        if self.kind is BinKind.PARTS:
            edges = np.round(np.linspace(0, n_frames, self.parts + 1)).astype(np.int64)
            return [
                TimeBin(k, edges[k] / rate, edges[k + 1] / rate, iv.union(iv.intervals([edges[k]], [edges[k + 1]])))
                for k in range(self.parts)
            ]
        if self.kind is BinKind.CLOCK:
            if start_time is None:
                raise EthobenchError(
                    f"recording {name!r} has no date and time of its first frame, so the time of day is not known; "
                    "use bins from the start of the recording, such as 1h"
                )
            offset = (start_time - start_time.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
        else:
            event = self._event_frame(annotation, subject) if self.kind is BinKind.EVENT else 0
            if event is None:
                return []
            offset = -event / rate
        first, last = int(np.floor(offset / self.seconds)), int(np.ceil(round((offset + n_frames / rate) / self.seconds, 9)))
        if last - first > MAX_BINS:
            raise ParameterError(f"recording {name!r} would have {last - first:,} time bins of {self.seconds:g} s; choose longer ones")
        index = np.arange(first, last)
        edges = np.clip(np.round((np.arange(first, last + 1) * self.seconds - offset) * rate), 0, n_frames).astype(np.int64)
        pieces = [
            TimeBin(int(k), k * self.seconds, (k + 1) * self.seconds, iv.union(iv.intervals([a], [b])))
            for k, a, b in zip(index, edges[:-1], edges[1:], strict=True)
        ]
        return _by_time_of_day(pieces, self.seconds) if self.kind is BinKind.CLOCK else pieces

    def _event_frame(self, annotation: Annotation, subject: str) -> int | None:
        if self.event not in annotation.ethogram:
            raise NotFoundError(
                f"no behavior {self.event!r} that time could be relative to; available: {', '.join(annotation.ethogram.names)}"
            )
        spans = annotation.select(subject=subject).spans(self.event) if subject in annotation.subjects else annotation.spans(self.event)
        spans = spans if len(spans.start) else annotation.spans(self.event)
        return int(spans.start.min()) if len(spans.start) else None


def parse_duration(text: str) -> float:
    """Return seconds from a text such as ``"5m"``, ``"30 s"``, ``"1.5h"`` or ``"90"``.

    Raises
    ------
    ParameterError
        If the text is not a positive duration.

    Examples
    --------
    >>> parse_duration("1.5h"), parse_duration("90")
    (5400.0, 90.0)
    """
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]*)", str(text).strip().lower())
    unit = UNITS.get(match[2] or "s") if match else None
    if match is None or unit is None or float(match[1]) <= 0:
        raise ParameterError(f"{text!r} does not describe time bins; write {SYNTAX}")
    return float(match[1]) * unit


def _clock_seconds(text: str) -> float:
    seconds = parse_duration(text.removeprefix("clock:"))
    if abs(DAY / seconds - round(DAY / seconds)) > 1e-9:
        raise ParameterError(f"time bins {text!r}: a day is not a multiple of {seconds:g} s; use 15m, 30m, 1h, 2h, ...")
    return seconds


def _by_time_of_day(pieces: list[TimeBin], seconds: float) -> list[TimeBin]:
    """Join the bins of several days."""
    per_day = round(DAY / seconds)
    frames: dict[int, list[Intervals]] = {}
    for piece in pieces:
        frames.setdefault(piece.number % per_day, []).append(piece.frames)
    return [TimeBin(k, k * seconds, (k + 1) * seconds, iv.union_all(sets)) for k, sets in sorted(frames.items())]
