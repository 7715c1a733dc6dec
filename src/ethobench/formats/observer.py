"""Event logs exported by Noldus The Observer XT (XLSX, CSV): one row per start or stop of a state, or per point event.

Observations are the entries; several event logs of one observation are its annotators. The duration that stands beside a
start tells which stop belongs to it, so that bouts of one behavior may overlap. Nothing tells the length of the recording
or a frame rate: it ends with its last event, and times are read to the millisecond unless ``rate=`` is given.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Ethogram, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import event_logs
from ethobench.formats.base import Format, not_understood, pick_entry, register_format
from ethobench.formats.boris_tables import modifier_cells, modifier_count
from ethobench.formats.bouts import SECONDS_RATE
from ethobench.formats.event_logs import POINT, START, STOP, Event
from ethobench.formats.tables import Table, other_sheets, read_table, write_rows
from ethobench.formats.text import Head

TITLE = "Observer XT event log"
TIMES = ("Time_Relative_sf", "Time_Relative_hmsf")
REQUIRED = ("Behavior", "Event_Type")
KINDS = {"state start": START, "start": START, "state stop": STOP, "stop": STOP, "point": POINT, "point event": POINT, "state point": POINT}
TYPES = {START: "State start", STOP: "State stop", POINT: "Point"}
CLOSE = 0.002
NUMBERED_LOG = re.compile(r"event log\s*\d*", re.IGNORECASE)
UNDERSTOOD = re.compile(
    r"date_.*|time_.*|duration_.*|result_container|observation|event_log|subject|behavior|modifier_\d+|event_type|comment"
)


@register_format("observer")
class Observer(Format):
    """One row per event."""

    title = TITLE
    suffixes = (".xlsx", ".csv")
    keeps = ("subjects", "overlaps", "touching", "points", "modifiers", "comments")
    several = True
    annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        first = next(iter(head.sheet), head.header)
        header = {cell.strip() for cell in first}
        return 1.0 if {*REQUIRED} <= header and header & {*TIMES} else 0.0

    def entries(self, path: Path) -> list[str]:
        return list(_Log.open(path).observations())

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        log = _Log.open(path)
        rows = log.observations()
        events = log.events()
        ethogram = event_logs.ethogram_of(events)
        return [log.recording(name, rows[name], events, ethogram, rate or SECONDS_RATE) for name in pick_entry(path, entry, list(rows))]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        event_logs.check_ids(TITLE, [r.id for r in recordings])
        annotations = [a for r in recordings for a in r.annotations.values()]
        notes = event_logs.ethogram_losses(TITLE, annotations)
        points = event_logs.point_behaviors(annotations)
        n_modifiers = modifier_count(recordings)
        header = ["Time_Relative_sf", "Duration_sf", "Result_Container", "Observation", "Event_Log", "Subject", "Behavior"]
        header += [*(f"Modifier_{i + 1}" for i in range(n_modifiers)), "Event_Type", "Comment"]
        rows: list[list[Any]] = []
        for recording in recordings:
            for annotator, a in recording.annotations.items():
                event_logs.check_rate(TITLE, a.rate)
                if not len(a):
                    notes.append(Note(f"an {TITLE} lists events, so a recording without bouts is lost", recording.id))
                rows += _rows(recording.id, annotator, a, points, n_modifiers)
        if not rows:
            raise EthobenchError(f"an {TITLE} lists events, so it cannot hold recordings without bouts")
        write_rows(path, header, rows)
        return notes


def _rows(recording: str, annotator: str, a: Annotation, points: set[str], n_modifiers: int) -> list[list[Any]]:
    events, _ = event_logs.events_of(a, points, layers=True)
    times = [event_logs.seconds_of(e, a.rate) for e in events]
    stops = {e.layer: time for e, time in zip(events, times, strict=True) if e.kind == STOP}
    rows = []
    for e, time in zip(events, times, strict=True):
        duration = round(stops[e.layer] - time, 6) if e.kind == START else 0.0
        who = [e.subject, e.behavior, *modifier_cells(e.modifiers, n_modifiers), TYPES[e.kind], e.comment]
        rows.append([time, duration, "Results", recording, annotator, *who])
    return rows


@dataclass
class _Log:
    """The table of an export."""

    table: Table
    times: list[float]

    @classmethod
    def open(cls, path: Path) -> _Log:
        table = read_table(path)
        missing = [name for name in REQUIRED if name not in table]
        if missing or not any(name in table for name in TIMES):
            not_understood(path, f"this is no {TITLE}: no column {', '.join(missing or TIMES[:1])}; there are: {', '.join(table.header)}")
        if not len(table):
            not_understood(path, "the table has a header, but no events")
        times = table.numbers(TIMES[0]).tolist() if TIMES[0] in table else _clock_times(table)
        return cls(table, times)

    def observations(self) -> dict[str, list[int]]:
        default = self.table.path.name.split(".")[0]
        found: dict[str, list[int]] = {}
        for i, name in enumerate(self._text("Observation")):
            found.setdefault(name or default, []).append(i)
        return found

    def events(self) -> list[Event]:
        modifiers = [self.table.column(name) for name in self.table.header if name.startswith("Modifier_")]
        columns = (self._text(name) for name in ("Event_Type", "Behavior", "Subject", "Comment"))
        found = []
        for i, (kind, behavior, subject, comment) in enumerate(zip(*columns, strict=True)):
            location = f"row {self.table.row_numbers[i]}"
            if kind.strip().lower() not in KINDS:
                not_understood(self.table.path, f"the event type {kind!r} is none of: {', '.join(TYPES.values())}", location)
            modifier = "|".join(column[i] for column in modifiers).rstrip("|")
            found.append(Event(self.times[i], KINDS[kind.strip().lower()], behavior, subject, modifier, comment, location=location))
        return found

    def recording(self, name: str, rows: Sequence[int], events: Sequence[Event], ethogram: Ethogram, rate: float) -> Recording:
        logs: dict[str, list[int]] = {}
        texts = self._text("Event_Log")
        for i in rows:
            logs.setdefault(texts[i] or DEFAULT_ANNOTATOR, []).append(i)
        unknown = [column for column in self.table.header if column and not UNDERSTOOD.fullmatch(column.lower())]
        notes = [*other_sheets(self.table.path), *([Note(f"columns not understood and left out: {', '.join(unknown)}")] if unknown else [])]
        observations = {}
        for annotator, mine in logs.items():
            matched, more = self._match(mine, events)
            observations[annotator] = event_logs.pair(self.table.path, matched)
            notes += more
        end = max(observation.end for observation in observations.values())
        annotations = {}
        for annotator, observation in observations.items():
            numbered = len(logs) == 1 and NUMBERED_LOG.fullmatch(annotator)
            annotations[DEFAULT_ANNOTATOR if numbered else annotator], more = observation.to_annotation(ethogram, rate, length=end)
            notes += more
        subjects = dict.fromkeys(subject for a in annotations.values() for subject in a.subjects)
        return Recording(
            name,
            annotations=annotations,
            subjects=tuple(subjects),
            start_time=self._began(rows[0]),
            notes=tuple(notes),
            clock_origin=ClockOrigin.ASSUMED,
        )

    def _match(self, rows: Sequence[int], every: Sequence[Event]) -> tuple[list[Event], list[Note]]:
        """Give a start and the stop at the end of its duration a layer of their own; a stop that is missing is made from the duration."""
        events = [every[i] for i in rows]
        if "Duration_sf" not in self.table:
            return events, []
        durations = self.table.numbers("Duration_sf")[list(rows)]
        stops: dict[Any, list[tuple[float, int]]] = {}
        for i, event in enumerate(events):
            if event.kind == STOP:
                stops.setdefault(event.track, []).append((event.time, i))
        for times in stops.values():
            times.sort()
        taken: dict[int, int] = {}
        added: list[Event] = []
        for i, event in enumerate(events):
            if event.kind != START or not np.isfinite(durations[i]):
                continue
            end = event.time + durations[i]
            mine = stops.get(event.track, [])
            near = range(bisect_left(mine, (end - CLOSE, -1)), bisect_left(mine, (end + CLOSE, len(events))))
            free = [j for time, j in (mine[k] for k in near) if j not in taken]
            if free:
                taken[free[0]] = taken[i] = i + 1
            elif durations[i] > 0:
                taken[i] = i + 1
                added.append(replace(event, time=end, kind=STOP, comment="", layer=i + 1))
        notes = [Note(f"{added[0].behavior!r} has no stop; its duration is used ({len(added)} such)", added[0].location)] if added else []
        return [*(replace(event, layer=taken.get(i, 0)) for i, event in enumerate(events)), *added], notes

    def _began(self, row: int) -> datetime | None:
        """Return when the observation began, if its first event tells its date and time."""
        try:
            return datetime.fromisoformat(self._text("Date_Time_Absolute_dmy_hmsf")[row]) - timedelta(seconds=self.times[row])
        except ValueError:
            return None

    def _text(self, name: str) -> list[str]:
        return self.table.column(name) if name in self.table else [""] * len(self.table)


def _clock_times(table: Table) -> list[float]:
    """Read times such as ``0:01:02.500`` as seconds."""
    times = []
    for i, cell in enumerate(table.column(TIMES[1])):
        found = re.fullmatch(r"(?:(\d+):)?(\d+):(\d+(?:[.,]\d+)?)", cell.strip(), re.ASCII)
        if found is None:
            raise FormatError(table.path, f"{cell!r} is no time such as 0:01:02.500", f"row {table.row_numbers[i]}")
        hours, minutes, seconds = found.groups()
        times.append(int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", ".")))
    return times
