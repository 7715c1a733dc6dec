"""Columns that describe an observation in the event tables of BORIS, shared by both kinds of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.messages import Message, Option
from ethobench.formats import event_logs
from ethobench.formats.base import ignored_columns
from ethobench.formats.bouts import SECONDS_RATE
from ethobench.formats.tables import Table, format_time, normalize_name
from ethobench.formats.text import parse_number

NO_FOCAL_SUBJECT = "No focal subject"
MISSING = ("", "NA", "NaN", "nan", "None")
DURATIONS = ("Media duration (s)", "Total length", "Total duration")
CODING_DURATIONS = ("Observation duration", "Coding duration")
RATES = ("FPS", "FPS (frame/s)")
OTHERS = (
    "Observation id", "Observation date", "Description", "Observation type", "Source", "Time offset (s)", "Media file",
    "Media file path", "Media file name", "Subject", "Behavior", "Behavioral category", "Modifiers", "Behavior type", "Status",
    "Observation duration by subject by observation", "Time", "Image index", "Image file path", "Comment",
)  # fmt: skip
MODIFIER = re.compile(r"modifiers?\s*(?:#\s*)?\d*", re.IGNORECASE)
OBSERVATION_COLUMNS = (
    "Observation id", "Observation date", "Description", "Observation duration", "Observation type", "Source", "Time offset (s)",
    "Media duration (s)", "FPS",
)  # fmt: skip
SOURCE = OBSERVATION_COLUMNS.index("Source")


@dataclass
class ObservationFacts:
    """Properties of one observation.

    Attributes
    ----------
    fps : float, optional
        Frame rate of the video, in Hz.
    length : float, optional
        Length of the media, in seconds.
    coding : float, optional
        Duration of the coded period, in seconds.
    offset : float
        Time offset, in seconds.
    metadata : dict
    notes : list of Note
    """

    fps: float | None = None
    length: float | None = None
    coding: float | None = None
    offset: float = 0.0
    metadata: dict[str, Any] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def clock(self, rate: float | None) -> float:
        """Return the frame rate to convert times with; adds a note if it is assumed."""
        if rate is None and self.fps is None and self.metadata.get("media"):
            message = Message(f"no frame rate in the file; assuming {SECONDS_RATE:g} Hz (set it with ", Option("rate"), ")")
            self.notes.append(Note(message, code="assumed-rate"))
        return rate or self.fps or SECONDS_RATE

    def length_for(self, end: float) -> float | None:
        """Return the length of the recording in seconds: that of the media, or the coded period if it includes the last event."""
        return self.length if self.length is not None or self.coding is None or self.coding < end else self.coding


@dataclass
class Export:
    """An exported table and the description above it.

    Parameters
    ----------
    table : Table
    extra : tuple of str
        Columns that the reader uses, besides those of every export.
    above : dict
        Names and values in the rows above the table.
    notes : tuple of Note
        Notes on the file.
    """

    table: Table
    extra: tuple[str, ...] = ()
    above: dict[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        # Every observation reads the same columns, and there may be many observations.
        self.text = cache(self._text)
        self.numbers = cache(self._numbers)

    def _text(self, *names: str) -> list[str]:
        """Return the cells of the first of these columns that exists; blank cells if none does."""
        column = self.table.find(*names)
        return [""] * len(self.table) if column is None else self.table.column(column)

    def _numbers(self, *names: str) -> NDArray[np.float64]:
        """Return the first of these columns that exists as numbers; NaN if none does."""
        column = self.table.find(*names)
        return np.full(len(self.table), np.nan) if column is None else self.table.numbers(column, MISSING)

    def observations(self) -> dict[str, list[int]]:
        """Return the row indices of each observation."""
        rows: dict[str, list[int]] = {}
        default = self.above.get("Observation id") or self.table.path.name.split(".")[0]
        for i, name in enumerate(self.text("Observation id")):
            rows.setdefault(name or default, []).append(i)
        if not rows and "Observation id" not in self.above:
            raise FormatError(self.table.path, "the table has a header but no events")
        return rows or {default: []}

    @cached_property
    def behaviors(self) -> list[str]:
        """The behavior of each row; empty if it has none."""
        return ["" if name.strip().lower() == "nan" else name for name in self.text("Behavior")]

    @cached_property
    def subjects(self) -> list[str]:
        """The subject of each row; empty if it has none."""
        return ["" if name == NO_FOCAL_SUBJECT else name for name in self.text("Subject")]

    @cached_property
    def modifiers(self) -> list[str]:
        """The modifiers of each row in the notation of BORIS projects, ``a|b``."""
        columns = [self.table.column(name) for name in self.table.header if MODIFIER.fullmatch(name)]
        return ["|".join(cells).rstrip("|") for cells in zip(*columns, strict=True)] if columns else [""] * len(self.table)

    def facts(self, rows: Sequence[int]) -> ObservationFacts:
        """Return the properties of one observation, from its rows."""
        facts = ObservationFacts(notes=list(self.notes))
        self._check_date(rows)
        lengths = self._values(rows, DURATIONS, sum)
        facts.length = max(lengths, default=None)
        if len(lengths) > 1:
            values = ", ".join(f"{n:g}" for n in lengths)
            facts.notes.append(Note(f"several lengths ({values}); using the longest", code="several-lengths"))
        facts.coding = max(self._values(rows, CODING_DURATIONS, sum), default=None)
        rates = [fps for fps in self._values(rows, RATES, lambda numbers: numbers[0]) if fps > 0]
        facts.fps = rates[0] if rates else None
        if len(rates) > 1:
            values = ", ".join(f"{n:g}" for n in rates)
            facts.notes.append(Note(f"several frame rates ({values}); using the first", code="several-rates"))
        offsets = self._values(rows, ("Time offset (s)",), sum) or numbers_in(self.above.get("Time offset (s)", ""), self.table.decimal)
        facts.offset = offsets[0] if offsets else 0.0
        self._describe(facts, rows)
        return facts

    def location(self, row: int) -> str:
        """Return the location of a row in the file, for messages."""
        return f"row {self.table.row_numbers[row]}"

    def _values(self, rows: Sequence[int], names: Sequence[str], combine: Callable[[list[float]], float]) -> list[float]:
        """Return the distinct values of a column such as ``25.000;25.000|30.000``, for the first player."""
        cells = self.text(*names)
        values = [numbers_in(cell, self.table.decimal) for cell in dict.fromkeys(cells[i] for i in rows)]
        return list(dict.fromkeys(float(combine(numbers)) for numbers in values if numbers))

    def _check_date(self, rows: Sequence[int]) -> None:
        dates = self.text("Observation date")
        for i in rows[1:]:
            if dates[i] != dates[rows[0]]:
                name = self.text("Observation id")[i]
                both = f"of {dates[rows[0]]} and {dates[i]}"
                raise FormatError(self.table.path, f"duplicate observation {name!r} ({both}); rename one of them", self.location(i))

    def _describe(self, facts: ObservationFacts, rows: Sequence[int]) -> None:
        header = self.table.header
        used = {normalize_name(name) for name in (*DURATIONS, *CODING_DURATIONS, *RATES, *OTHERS, *self.extra)}
        unknown = [name for name in header if name and normalize_name(name) not in used and not MODIFIER.fullmatch(name)]
        subject = self.table.find("Subject")
        subject_index = header.index(subject) if subject in header else 0
        variables = [name for name in unknown if header.index(name) < subject_index]
        facts.notes += ignored_columns([name for name in unknown if name not in variables])
        first = rows[0] if rows else None
        description = {
            "date": self._first("Observation date", first),
            "description": self._first("Description", first),
            "type": self._first("Observation type", first),
        }
        facts.metadata |= {key: value for key, value in description.items() if value not in MISSING}
        media = dict.fromkeys(
            cell for name in ("Media file path", "Media file", "Media file name") for cell in map(self.text(name).__getitem__, rows)
        )
        facts.metadata |= {"media": kept} if (kept := [name for name in media if name not in MISSING]) else {}
        values = {name: self._first(name, first) for name in variables} | _independent_variables(self.above)
        facts.metadata |= {"independent_variables": values} if values else {}

    def _first(self, name: str, row: int | None) -> str:
        return self.above.get(name) or ("" if row is None else self.text(name)[row])


def numbers_in(cell: str, decimal: str = ".") -> list[float]:
    """Return the numbers in a cell for the first player; empty if they are not finite numbers."""
    first_player = re.split(r"\||player\s*#[2-9]", re.sub(r"player\s*#1\s*:", "", cell))[0]
    texts = re.split(r"[;\s]+", first_player.replace(",", ".") if decimal == "," else first_player)
    try:
        numbers = [parse_number(text) for text in texts if text]
    except ValueError:
        return []
    return numbers if np.isfinite(numbers).all() else []


def writable_annotations(recordings: Sequence[Recording], title: str) -> tuple[list[tuple[Recording, Annotation]], list[Note]]:
    """Return the recordings that have bouts, each with its annotation, and notes on what a table cannot store."""
    event_logs.check_ids(title, [r.id for r in recordings])
    annotations = [r.annotation() for r in recordings]
    notes = event_logs.ethogram_losses(title, annotations)
    kept = []
    for recording, a in zip(recordings, annotations, strict=True):
        event_logs.check_rate(title, a.rate)
        if len(a):
            kept.append((recording, a))
        else:
            notes.append(Note(f"a {title} cannot store a recording without bouts; it is lost", recording.id, "lost-recording"))
    if not kept:
        raise EthobenchError(f"a {title} cannot store recordings without bouts")
    return kept, notes


def observation_cells(recording: Recording) -> list[str]:
    """Return the cells of `OBSERVATION_COLUMNS`, which are the same in each row of an observation."""
    a = recording.annotation()
    length = format_time(a.n_frames / a.rate)
    date, description = (str(recording.metadata.get(key) or "") for key in ("date", "description"))
    media = [str(name) for name in recording.metadata.get("media") or ()]
    source = recording.video.as_posix() if recording.video else next(iter(media), recording.id)
    return [recording.id, date, description, length, "Media file(s)", source, "0", length, repr(float(a.rate))]


def modifier_count(recordings: Sequence[Recording]) -> int:
    """Return the number of modifier columns needed."""
    cells = [m for r in recordings for a in r.annotations.values() if a.modifiers is not None for m in a.modifiers if m]
    return max((m.count("|") + 1 for m in cells), default=0)


def modifier_cells(modifiers: str, n: int) -> list[str]:
    """Return the cells of `n` modifier columns."""
    return (modifiers.split("|") + [""] * n)[:n]


def _independent_variables(above: dict[str, str]) -> dict[str, str]:
    """Return the names and values between the row "variable, value" and the table."""
    keys = list(above)
    return {key: above[key] for key in keys[keys.index("variable") + 1 :]} if "variable" in keys else {}
