"""Finding one's way in an interval table: which column is what, which rows are no bouts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ethobench.core import Annotation, Behavior, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.bouts import BoutRows, to_clock
from ethobench.formats.tables import Table
from ethobench.formats.text import parse_clock

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
ENDINGS = {
    "seconds": ("", "time", "s", "sec", "secs", "second", "seconds", "time s", "time sec", "times"),
    "milliseconds": ("ms", "msec", "millis", "milliseconds", "time ms"),
    "frames": ("frame", "frames", "frame number", "f", "idx"),
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
}
ROLES = ("start", "stop", "duration", *SYNONYMS)
NO_LABEL = frozenset({"", "na", "nan", "none given", "default", "unlabeled", "unlabelled"})
MARKER = "startend"
LONG = 600.0  # seconds; whole numbers beyond that may as well count frames


def plain(name: str) -> str:
    """Return a name without case, blanks and signs."""
    return "".join(c for c in name.lower() if c.isalnum())


def is_no_label(name: str) -> bool:
    """Tell whether a cell of behaviors names none: blank, or a tool's placeholder."""
    return not name.strip() or plain(name) in {plain(word) for word in NO_LABEL if word}


def is_marker(name: str) -> bool:
    """Tell whether a cell of behaviors marks the beginning or the end of what was observed."""
    return plain(name) == MARKER


def find_columns(header: Sequence[str]) -> dict[str, str]:
    """Guess which column is what; "unit" tells what times are in."""
    known = {plain(name): name for name in reversed(header)}

    def first(names: Collection[str]) -> str | None:
        return next((known[plain(name)] for name in names if plain(name) in known), None)

    found = {role: name for role, names in SYNONYMS.items() if (name := first(names)) is not None}
    for unit, endings in ENDINGS.items():
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
            found["start"], found["unit"] = times["start"], unit
            end = "stop" if times["stop"] else "duration"
            found[end] = str(times[end])
            break
    return found


@dataclass
class IntervalRows:
    """The rows of an interval table, sorted out by recording and rater.

    Parameters
    ----------
    path : Path
    table : Table
    chosen : mapping of str to str
        Columns that the user names, by role.
    inclusive : bool, optional
        Whether the stop frame still belongs to the bout.
    """

    path: Path
    table: Table
    chosen: Mapping[str, str]
    inclusive: bool | None = None
    notes: list[Note] = field(default_factory=list)
    unit: str = "seconds"

    def __post_init__(self) -> None:
        self.columns = self._columns()
        self.unit = self.columns.pop("unit", "seconds")
        self.start, self.stop = self._times()
        self.label = [cell.strip() for cell in self.table.column(self.columns["behavior"])]
        self.recording = self._texts("recording", self.path.stem)
        self.rater = self._texts("rater", DEFAULT_ANNOTATOR)
        for row, name in enumerate(self.recording):
            if not name:
                raise FormatError(self.path, f"column {self.columns['recording']!r} names no recording", self.location(row))
        self.texts = {role: self._texts(role, "") for role in ("subject", "target", "modifiers", "comment")}
        self.confidence = (
            self.table.numbers(self.columns["confidence"]) if "confidence" in self.columns else np.full(len(self.table), np.nan)
        )
        self.groups: dict[str, dict[str, list[int]]] = {}
        for row, (name, rater) in enumerate(zip(self.recording, self.rater, strict=True)):
            self.groups.setdefault(name, {}).setdefault(rater or DEFAULT_ANNOTATOR, []).append(row)
        self.kind = np.full(len(self.table), "bout", dtype=object)
        self.points: set[str] = set()

    def location(self, row: int) -> str:
        """Say where a row stands in the file."""
        return f"row {self.table.row_numbers[row]}"

    def sort_out(self, *, drop: Collection[str] | None, markers: Collection[str] | None, points: Collection[str] | None) -> None:
        """Tell bouts from marks of beginning and end, from rows without a label, and from names to drop."""
        dropped: dict[str, int] = {}
        for row, name in enumerate(self.label):
            if drop is not None and name in drop:
                self.kind[row] = "drop"
                dropped[name] = dropped.get(name, 0) + 1
            elif is_marker(name) if markers is None else (name in markers):
                self.kind[row] = "marker"
            elif is_no_label(name):
                self.kind[row] = "unlabelled"
        if dropped:
            self.notes.append(Note("dropped as asked: " + ", ".join(f"{name!r} ({n} rows)" for name, n in dropped.items())))
        bouts = self.kind == "bout"
        lasting = {self.label[row] for row in np.flatnonzero(bouts & (self.start != self.stop))}
        zero = {*self.label} - lasting
        self.points = {*(points or ()), *zero}
        open_points = [i for i in np.flatnonzero(bouts & np.isnan(self.stop)) if self.label[i] in self.points]
        self.stop[open_points] = self.start[open_points]

    def ethogram(self) -> Ethogram:
        """Return the behaviors of all rows, so that raters share one ethogram."""
        names = list(dict.fromkeys(name for name, kind in zip(self.label, self.kind, strict=True) if kind == "bout"))
        return Ethogram([Behavior(name, point=name in self.points) for name in names], guess_background(names))

    def length(self, recording: str, rate: float) -> int:
        """Return the last frame that any rater mentions."""
        mine = [row for rows in self.groups[recording].values() for row in rows]
        times = np.concatenate((self.start[mine], self.stop[mine]))
        times = times[np.isfinite(times)]
        return int(to_clock(times, rate, self.unit != "frames").max(initial=0))

    def annotation(self, recording: str, rater: str, ethogram: Ethogram, rate: float, length: int) -> tuple[Annotation, list[Note]]:
        """Return what one rater says of one recording."""
        rows = BoutRows(self.path)
        mine = self.groups[recording][rater]
        hidden = [i for i in mine if self.kind[i] == "unlabelled"]
        bouts = [i for i in mine if self.kind[i] == "bout"]
        unfinished = [i for i in bouts if not np.isfinite(self.start[i] + self.stop[i])]
        for i in bouts:
            if np.isfinite(self.start[i] + self.stop[i]):
                texts = {role: column[i] for role, column in self.texts.items()}
                rows.add(
                    self.start[i], self.stop[i], self.label[i], confidence=float(self.confidence[i]), location=self.location(i), **texts
                )
        seen, notes = self._seen(mine, hidden, rate, length)
        tracks, more = self._open_tracks(unfinished, seen, rate, length)
        subjects = sorted({self.texts["subject"][i] for i in unfinished} - {""})
        made, last = rows.to_annotation(
            ethogram, rate, seconds=self.unit != "frames", n_frames=length, observed=Observed(seen, tracks), subjects=subjects
        )
        return made, [*last, *notes, *more]

    def _seen(self, mine: list[int], hidden: list[int], rate: float, length: int) -> tuple[iv.Intervals, list[Note]]:
        """Return the frames that a rater looked at for all behaviors."""
        seconds = self.unit != "frames"
        seen, notes = iv.full(length), []
        marks = [i for i in mine if self.kind[i] == "marker" and np.isfinite(self.start[i])]
        if len(marks) >= 2:
            inside = [i for i in mine if self.kind[i] in ("marker", "bout")]
            ends = np.concatenate((self.start[inside], self.stop[inside]))
            low, high = to_clock([np.nanmin(ends), np.nanmax(ends)], rate, seconds)
            seen = iv.intervals([low], [high])
            notes.append(
                Note(f"{len(marks)} rows {self.label[marks[0]]!r} mark what was observed: frames {low} to {high}", self.location(marks[0]))
            )
        elif marks:
            message = f"only one row {self.label[marks[0]]!r}, so it cannot mark both ends; dropped"
            notes.append(Note(message, self.location(marks[0])))
        spans = [i for i in hidden if np.isfinite(self.start[i]) and self.stop[i] > self.start[i]]
        if spans:
            hole = iv.union(iv.Intervals(to_clock(self.start[spans], rate, seconds), to_clock(self.stop[spans], rate, seconds)))
            seen = iv.difference(seen, hole)
            more = f" ({len(spans)} such rows)" if len(spans) > 1 else ""
            notes.append(
                Note(f"{self.label[spans[0]]!r} names no behavior; its stretch counts as not observed{more}", self.location(spans[0]))
            )
        notes += [Note("says neither which behavior nor from when to when; dropped", self.location(i)) for i in hidden if i not in spans]
        return seen, notes

    def _open_tracks(self, rows: list[int], seen: iv.Intervals, rate: float, length: int) -> tuple[dict[Track, iv.Intervals], list[Note]]:
        """Return what was observed of behaviors with a bout that has no start or no stop."""
        tracks: dict[Track, iv.Intervals] = {}
        notes = []
        for i in rows:
            track = Track(self.label[i], self.texts["subject"][i] or None, self.texts["target"][i] or None)
            before = tracks.get(track, seen)
            if np.isfinite(self.start[i]):
                start = int(to_clock(self.start[i : i + 1], rate, self.unit != "frames")[0])
                tracks[track] = iv.clip(before, 0, start)
                what = "has no stop; not observed from its start on"
            elif np.isfinite(self.stop[i]):
                stop = int(to_clock(self.stop[i : i + 1], rate, self.unit != "frames")[0])
                tracks[track] = iv.clip(before, stop, length)
                what = "has no start; not observed until its stop"
            else:
                what = "has no start and no stop; dropped"
            notes.append(Note(f"{self.label[i]!r} {what}", self.location(i)))
        return tracks, notes

    def _columns(self) -> dict[str, str]:
        unknown = [role for role in self.chosen if role not in (*ROLES, "unit")]
        if unknown:
            raise EthobenchError(f"columns= takes {', '.join(ROLES)}, not {', '.join(unknown)}")
        for name in (name for role, name in self.chosen.items() if role != "unit"):
            self.table.column(name)
        found = find_columns(self.table.header)
        if found.get("recording") and plain(found["recording"]) == "id" and "recording" not in self.chosen:
            cells = self.table.column(found["recording"])
            if len(cells) > 1 and len({*cells}) == len(cells):
                found.pop("recording")
        if "start" in self.chosen or "stop" in self.chosen:
            names = [plain(self.chosen[role]) for role in ("start", "stop") if role in self.chosen]
            found["unit"] = "frames" if any("frame" in name for name in names) else found.get("unit", "seconds")
        if "stop" in self.chosen:
            found.pop("duration", None)
        found |= self.chosen
        missing = [role for role in ("start", "stop", "behavior") if role not in found and not (role == "stop" and "duration" in found)]
        if missing:
            there = " ".join(", ".join(self.table.header).split())
            message = (
                f"which column is the {missing[0]}? Give columns={{{missing[0]!r}: ...}} (one of {there}; convert takes it as --option)"
            )
            raise FormatError(self.path, message, "header")
        used = {name for role, name in found.items() if role != "unit"}
        lengths = {plain(name) for name in DURATIONS}
        left = [name for name in self.table.header if name and name not in used and plain(name) not in lengths]
        if left:
            self.notes.append(Note(f"columns not understood and left out: {', '.join(left)}"))
        return found

    def _times(self) -> tuple[np.ndarray, np.ndarray]:
        start = self._numbers(self.columns["start"])
        last = self._numbers(self.columns.get("stop", self.columns.get("duration", "")))
        stop = last if "stop" in self.columns else start + last
        if self.unit == "milliseconds":
            return start / 1000, stop / 1000
        if self.unit == "seconds" and self._may_be_frames(start, stop):
            self.notes.append(
                Note("whole numbers without a unit are read as seconds; if they count frames, call the columns start_frame and stop_frame")
            )
        if self.unit == "frames" and "stop" in self.columns:
            by_name = plain(self.columns["stop"]) in {plain(name) for name in LAST_FRAME}
            if self.inclusive is None and not by_name:
                self.notes.append(
                    Note("the stop frame is read as the first one after the bout (give inclusive=True if it is the last of it)")
                )
            stop = stop + (1 if self.inclusive or (by_name and self.inclusive is None) else 0)
        return start, stop

    def _may_be_frames(self, start: np.ndarray, stop: np.ndarray) -> bool:
        """Whether times look like frame numbers: large, whole, and under a heading that names no unit."""
        known = np.concatenate([start, stop])
        known = known[np.isfinite(known)]
        cells = self.table.column(self.columns["start"])
        unnamed = plain(self.columns["start"]) in {plain(name) for name in STARTS} and not any("." in cell or ":" in cell for cell in cells)
        return bool(unnamed and len(known) and known.max() > LONG and (known == np.round(known)).all())

    def _numbers(self, name: str) -> np.ndarray:
        cells = self.table.column(name)
        if not any(":" in cell for cell in cells):
            return self.table.numbers(name)
        values = np.full(len(cells), np.nan)
        for row, cell in enumerate(cells):
            seconds = parse_clock(cell)
            if cell.strip() and plain(cell) not in NO_LABEL:
                if seconds is None:
                    raise FormatError(self.path, f"{cell!r} in column {name!r} is no time", self.location(row))
                values[row] = seconds
        return values

    def _texts(self, role: str, default: str) -> list[str]:
        if role not in self.columns:
            return [default] * len(self.table)
        return [cell.strip() for cell in self.table.column(self.columns[role])]
