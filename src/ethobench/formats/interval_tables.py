"""Columns and rows of generic interval tables: the role of each column, and which rows are bouts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np

from ethobench.core import Annotation, Behavior, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.messages import Message, ReaderOption
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.base import ignored_columns
from ethobench.formats.bouts import BoutRows, to_clock
from ethobench.formats.interval_times import IntervalTimes, is_blank, kind_of_time, read_interval_times, starts_after_first_hour
from ethobench.formats.sample_times import NANOSECONDS, to_datetime
from ethobench.formats.tables import Table, normalize_name
from ethobench.formats.text import format_clock, parse_clock

STARTS = ("start", "from", "begin", "onset", "t start", "t begin", "bout start", "time start", "time from", "in")
STOPS = (
    "stop",
    "to",
    "end",
    "offset",
    "t stop",
    "t end",
    "bout stop",
    "bout end",
    "time stop",
    "time end",
    "time to",
    "until",
    "finish",
    "out",
)
DURATIONS = ("duration", "dur", "length", "bout duration")
UNIT_SUFFIXES = {
    "seconds": ("", "time", "s", "sec", "secs", "second", "seconds", "time s", "time sec", "times"),
    "milliseconds": ("ms", "msec", "millis", "milliseconds", "time ms"),
    "frames": ("frame", "frames", "frame number", "f", "idx"),
    "days": ("day", "days"),
}
FIRST_FRAME, LAST_FRAME = ("first frame", "frame first"), ("last frame", "frame last")
SYNONYMS = {
    "behavior": (
        *("behavior", "behaviour", "behavior name", "behaviour name", "type", "label", "event", "event type", "action", "code"),
        *("class", "category", "activity", "annotation", "state", "name"),
    ),
    "rater": ("rater", "annotator", "experimenter", "observer", "coder", "scorer", "labeler", "rater id", "annotator id", "observer id"),
    "recording": (
        *("recording", "recording id", "video", "video id", "video name", "observation", "observation id", "media", "media file"),
        *("session", "session id", "trial", "clip", "id", "file", "file name"),
    ),
    "subject": ("subject", "subject id", "animal", "animal id", "individual", "agent", "agent id", "actor", "focal", "mouse", "mouse id"),
    "target": ("target", "target id", "partner", "recipient", "receiver"),
    "modifiers": ("modifiers", "modifier"),
    "comment": ("comment", "comments", "remark", "remarks", "note", "notes"),
    "confidence": ("confidence", "probability", "score"),
    "date": ("date", "recording date", "session date", "observation date", "date of observation"),
}
ROLES = ("start", "stop", "duration", *SYNONYMS)
NO_LABEL = frozenset({"", "na", "nan", "none given", "default", "unlabeled", "unlabelled"})
MARKER = "startend"
MAX_UNAMBIGUOUS = 600.0  # seconds; larger integers may be frame numbers
ON_ITSELF = "self"  # target of a behavior that is directed at no other animal


def is_no_label(name: str) -> bool:
    """Return whether a cell of the behavior column names no behavior: it is blank or a placeholder."""
    return not name.strip() or normalize_name(name) in {normalize_name(word) for word in NO_LABEL if word}


def is_marker(name: str) -> bool:
    """Return whether a cell of the behavior column marks the beginning or the end of the observed period."""
    return normalize_name(name) == MARKER


def find_columns(header: Sequence[str]) -> dict[str, str]:
    """Return the column of each role, guessed from the column names; the key "unit" holds the unit of times."""
    columns = {normalize_name(name): name for name in reversed(header)}

    def first(names: Collection[str]) -> str | None:
        return next((columns[normalize_name(name)] for name in names if normalize_name(name) in columns), None)

    roles = {role: name for role, names in SYNONYMS.items() if (name := first(names)) is not None}
    for unit, endings in UNIT_SUFFIXES.items():
        times = {
            role: first(
                [f"{name} {ending}" for ending in endings for name in names] + [f"{ending} {name}" for ending in endings for name in names]
            )
            for role, names in (("start", STARTS), ("stop", STOPS), ("duration", DURATIONS))
        }
        if unit == "frames":
            times["start"] = times["start"] or first(FIRST_FRAME)
            times["stop"] = times["stop"] or first(LAST_FRAME)
        if times["start"] and (times["stop"] or times["duration"]):
            roles["start"], roles["unit"] = times["start"], unit
            end = "stop" if times["stop"] else "duration"
            roles[end] = str(times[end])
            break
    return roles


@dataclass
class IntervalRows:
    """The rows of an interval table, grouped by recording and rater.

    Parameters
    ----------
    path : Path
    table : Table
    chosen : mapping of str to str
        Columns that the user specifies, by role.
    inclusive : bool, optional
        Whether the stop frame belongs to the bout.
    time_unit, date_format : str, optional
        See `ethobench.formats.interval_times.read_interval_times`.
    """

    path: Path
    table: Table
    chosen: Mapping[str, str]
    inclusive: bool | None = None
    notes: list[Note] = field(default_factory=list)
    unit: str = "seconds"
    start_times: dict[str, datetime] = field(default_factory=dict)
    time_unit: InitVar[str | None] = None
    date_format: InitVar[str | None] = None

    def __post_init__(self, time_unit: str | None, date_format: str | None) -> None:
        self.columns = self._columns()
        self.unit = self.columns.pop("unit", "seconds")
        self.label = [cell.strip() for cell in self.table.column(self.columns["behavior"])]
        self.recording = self._texts("recording", self.path.stem)
        self.rater = self._texts("rater", DEFAULT_ANNOTATOR)
        for row, name in enumerate(self.recording):
            if not name:
                raise FormatError(self.path, f"column {self.columns['recording']!r} is blank", self.location(row))
        self.texts = {role: self._texts(role, "") for role in ("subject", "target", "modifiers", "comment")}
        self.texts["target"] = ["" if name.lower() == ON_ITSELF else name for name in self.texts["target"]]
        self.confidence = (
            self.table.numbers(self.columns["confidence"]) if "confidence" in self.columns else np.full(len(self.table), np.nan)
        )
        self.groups: dict[str, dict[str, list[int]]] = {}
        for row, (name, rater) in enumerate(zip(self.recording, self.rater, strict=True)):
            self.groups.setdefault(name, {}).setdefault(rater or DEFAULT_ANNOTATOR, []).append(row)
        self.start, self.stop = self._times(time_unit, date_format)
        self.kind = np.full(len(self.table), "bout", dtype=object)
        self.points: set[str] = set()

    def location(self, row: int) -> str:
        """Return the location of a row in the file, for messages."""
        return f"row {self.table.row_numbers[row]}"

    def classify_rows(self, *, drop: Collection[str] | None, markers: Collection[str] | None, points: Collection[str] | None) -> None:
        """Classify rows as bouts, markers of the observed period, rows without a label, and rows to drop."""
        dropped: dict[str, int] = {}
        for row, name in enumerate(self.label):
            if drop is not None and name in drop:
                self.kind[row] = "drop"
                dropped[name] = dropped.get(name, 0) + 1
            elif is_marker(name) if markers is None else (name in markers):
                self.kind[row] = "marker"
            elif is_no_label(name):
                self.kind[row] = "unlabeled"
        if dropped:
            counts = ", ".join(f"{name!r} ({n} rows)" for name, n in dropped.items())
            self.notes.append(Note(Message("dropped (see ", ReaderOption("drop"), f"): {counts}"), code="dropped-rows"))
        bouts = self.kind == "bout"
        lasting = {self.label[row] for row in np.flatnonzero(bouts & (self.start != self.stop))}
        zero = {*self.label} - lasting
        self.points = {*(points or ()), *zero}
        open_points = [i for i in np.flatnonzero(bouts & np.isnan(self.stop)) if self.label[i] in self.points]
        self.stop[open_points] = self.start[open_points]

    def ethogram(self) -> Ethogram:
        """Return one ethogram for all raters, with the behaviors of all rows."""
        names = list(dict.fromkeys(name for name, kind in zip(self.label, self.kind, strict=True) if kind == "bout"))
        return Ethogram([Behavior(name, point=name in self.points) for name in names], guess_background(names))

    def length(self, recording: str, rate: float) -> int:
        """Return the number of frames up to the last time of any rater."""
        rows = [row for rater_rows in self.groups[recording].values() for row in rater_rows]
        times = np.concatenate((self.start[rows], self.stop[rows]))
        times = times[np.isfinite(times)]
        return int(to_clock(times, rate, self.unit != "frames").max(initial=0))

    def annotation(self, recording: str, rater: str, ethogram: Ethogram, rate: float, length: int) -> tuple[Annotation, list[Note]]:
        """Return the annotation of one recording by one rater, and notes."""
        bout_rows = BoutRows(self.path)
        rows = self.groups[recording][rater]
        unlabeled = [i for i in rows if self.kind[i] == "unlabeled"]
        bouts = [i for i in rows if self.kind[i] == "bout"]
        unfinished = [i for i in bouts if not np.isfinite(self.start[i] + self.stop[i])]
        for i in bouts:
            if np.isfinite(self.start[i] + self.stop[i]):
                texts = {role: column[i] for role, column in self.texts.items()}
                bout_rows.add(
                    self.start[i], self.stop[i], self.label[i], confidence=float(self.confidence[i]), location=self.location(i), **texts
                )
        frames, notes = self._observed_frames(rows, unlabeled, rate, length)
        tracks, track_notes = self._open_tracks(unfinished, frames, rate, length)
        subjects = sorted({self.texts["subject"][i] for i in unfinished} - {""})
        annotation, bout_notes = bout_rows.to_annotation(
            ethogram, rate, seconds=self.unit != "frames", n_frames=length, observed=Observed(frames, tracks), subjects=subjects
        )
        return annotation, [*bout_notes, *notes, *track_notes]

    def _observed_frames(self, rows: list[int], unlabeled: list[int], rate: float, length: int) -> tuple[iv.Intervals, list[Note]]:
        """Return the frames that a rater observed for all behaviors, and notes."""
        seconds = self.unit != "frames"
        frames, notes = iv.full(length), []
        markers = [i for i in rows if self.kind[i] == "marker" and np.isfinite(self.start[i])]
        if len(markers) >= 2:
            inside = [i for i in rows if self.kind[i] in ("marker", "bout")]
            ends = np.concatenate((self.start[inside], self.stop[inside]))
            low, high = to_clock([np.nanmin(ends), np.nanmax(ends)], rate, seconds)
            frames = iv.intervals([low], [high])
            message = f"{len(markers)} rows {self.label[markers[0]]!r} mark the observed period: frames {low} to {high}"
            notes.append(Note(message, self.location(markers[0]), "observed-markers"))
        elif markers:
            message = f"only one row {self.label[markers[0]]!r}, which cannot mark both ends of the observed period; dropped"
            notes.append(Note(message, self.location(markers[0]), "dropped-rows"))
        spans = [i for i in unlabeled if np.isfinite(self.start[i]) and self.stop[i] > self.start[i]]
        if spans:
            hole = iv.union(iv.Intervals(to_clock(self.start[spans], rate, seconds), to_clock(self.stop[spans], rate, seconds)))
            frames = iv.difference(frames, hole)
            more = f" ({len(spans)} such rows)" if len(spans) > 1 else ""
            message = f"{self.label[spans[0]]!r} is not a behavior; its frames are read as unobserved{more}"
            notes.append(Note(message, self.location(spans[0]), "no-behavior"))
        message = "no behavior and no valid start and stop; dropped"
        notes += [Note(message, self.location(i), "dropped-rows") for i in unlabeled if i not in spans]
        return frames, notes

    def _open_tracks(self, rows: list[int], frames: iv.Intervals, rate: float, length: int) -> tuple[dict[Track, iv.Intervals], list[Note]]:
        """Return the observed frames of the tracks that have a bout without a start or without a stop, and notes."""
        tracks: dict[Track, iv.Intervals] = {}
        notes = []
        for i in rows:
            track = Track(self.label[i], self.texts["subject"][i] or None, self.texts["target"][i] or None)
            before = tracks.get(track, frames)
            if np.isfinite(self.start[i]):
                start = int(to_clock(self.start[i : i + 1], rate, self.unit != "frames")[0])
                tracks[track] = iv.clip(before, 0, start)
                problem = "has no stop; read as unobserved from its start on"
            elif np.isfinite(self.stop[i]):
                stop = int(to_clock(self.stop[i : i + 1], rate, self.unit != "frames")[0])
                tracks[track] = iv.clip(before, stop, length)
                problem = "has no start; read as unobserved until its stop"
            else:
                problem = "has no start and no stop; dropped"
            notes.append(Note(f"{self.label[i]!r} {problem}", self.location(i), "open-bouts"))
        return tracks, notes

    def _columns(self) -> dict[str, str]:
        unknown = [role for role in self.chosen if role not in (*ROLES, "unit")]
        if unknown:
            raise EthobenchError(f"unknown role in `columns`: {', '.join(unknown)}; roles: {', '.join(ROLES)}")
        for name in (name for role, name in self.chosen.items() if role != "unit"):
            self.table.column(name)
        columns = find_columns(self.table.header)
        if columns.get("recording") and normalize_name(columns["recording"]) == "id" and "recording" not in self.chosen:
            cells = self.table.column(columns["recording"])
            if len(cells) > 1 and len({*cells}) == len(cells):  # a number for each bout, not a recording
                columns.pop("recording")
        if "start" in self.chosen or "stop" in self.chosen:
            names = [normalize_name(self.chosen[role]) for role in ("start", "stop") if role in self.chosen]
            columns["unit"] = "frames" if any("frame" in name for name in names) else columns.get("unit", "seconds")
        if "stop" in self.chosen:
            columns.pop("duration", None)
        columns |= self.chosen
        if "date" in columns and "date" not in self.chosen and not self._has_times_of_day(columns):
            columns.pop("date")
        missing = [role for role in ("start", "stop", "behavior") if role not in columns and not (role == "stop" and "duration" in columns)]
        if missing:
            header = " ".join(", ".join(self.table.header).split())
            chosen = ReaderOption("columns", dict.fromkeys(missing, "..."))
            message = Message(f"no column for {', '.join(missing)}; specify with ", chosen, f" (columns: {header})")
            raise FormatError(self.path, message, "header")
        used = {name for role, name in columns.items() if role != "unit"}
        durations = {normalize_name(name) for name in DURATIONS}
        ignored = [name for name in self.table.header if name and name not in used and normalize_name(name) not in durations]
        self.notes += ignored_columns(ignored)
        return columns

    def _times(self, time_unit: str | None, date_format: str | None) -> tuple[np.ndarray, np.ndarray]:
        times = read_interval_times(self.table, self.columns, self.unit, self.groups, time_unit=time_unit, date_format=date_format)
        self.notes += times.notes
        self.unit = times.unit
        start, stop = times.start, times.stop
        if times.origin is not None or times.is_time_of_day:
            self._count_from_first_bout(times)
        elif times.kind == "numbers" and time_unit is None and self._may_be_frames(start, stop):
            message = "integers without a unit are read as seconds; if they are frames, name the columns start_frame and stop_frame"
            self.notes.append(Note(Message(message, ", or set ", ReaderOption("time_unit", "frames")), code="assumed-unit"))
        if self.unit == "frames" and "stop" in self.columns:
            by_name = normalize_name(self.columns["stop"]) in {normalize_name(name) for name in LAST_FRAME}
            if self.inclusive is None and not by_name:
                message = Message(
                    "the stop frame is read as the first frame after the bout (use ",
                    ReaderOption("inclusive", True),
                    " if it is the last frame of the bout)",
                )
                self.notes.append(Note(message, code="assumed-exclusive"))
            stop = stop + (1 if self.inclusive or (by_name and self.inclusive is None) else 0)
        return start, stop

    def _has_times_of_day(self, columns: Mapping[str, str]) -> bool:
        """Return whether clock times are of the dates beside them: they are not, if the first is in the first hour of a recording."""
        if "start" not in columns:
            return False
        cells = ["" if is_blank(cell) else cell.strip() for cell in self.table.column(columns["start"])]
        if not all(kind_of_time(cell) == "clock" for cell in cells if cell):
            return False
        names = self.table.column(columns["recording"]) if "recording" in columns else [""] * len(cells)
        groups: dict[str, dict[str, list[int]]] = {}
        for row, name in enumerate(names):
            groups.setdefault(name, {}).setdefault("", []).append(row)
        start = np.array([parse_clock(cell) if cell else np.nan for cell in cells], dtype=np.float64)
        return starts_after_first_hour(cells, start, groups)

    def _may_be_frames(self, start: np.ndarray, stop: np.ndarray) -> bool:
        """Return whether times look like frame numbers: large integers in a column whose name states no unit."""
        times = np.concatenate([start, stop])
        times = times[np.isfinite(times)]
        cells = self.table.column(self.columns["start"])
        has_unit = normalize_name(self.columns["start"]) not in {normalize_name(name) for name in STARTS}
        if has_unit or any("." in cell or ":" in cell for cell in cells):
            return False
        return bool(len(times) and times.max() > MAX_UNAMBIGUOUS and (times == np.round(times)).all())

    def _count_from_first_bout(self, times: IntervalTimes) -> None:
        """Count the time of each recording from its first bout, if times are dates or times of day."""
        for name, raters in self.groups.items():
            rows = [row for numbers in raters.values() for row in numbers]
            of_recording = np.concatenate((times.start[rows], times.stop[rows]))
            if not np.isfinite(of_recording).any():
                continue
            first = float(np.nanmin(of_recording))
            times.start[rows] -= first
            times.stop[rows] -= first
            if times.origin is not None:
                self.start_times[name] = to_datetime(times.origin + round(first * NANOSECONDS), has_zone=times.has_zone)
            moment = self.start_times.get(name, format_clock(first, hours=True))
            dates = f"times are dates; frames are counted from the first bout, at {moment}"
            clock = f"times are times of day; frames are counted from the first bout, at {moment}"
            self.notes.append(Note(clock if times.origin is None else dates, code="absolute-times"))

    def _texts(self, role: str, default: str) -> list[str]:
        if role not in self.columns:
            return [default] * len(self.table)
        return [cell.strip() for cell in self.table.column(self.columns[role])]
