"""Event logs exported by Noldus The Observer XT (XLSX, CSV): one row per start or stop of a state, or per point event.

Entries are observations; several event logs of one observation are annotators. The duration beside a start identifies its stop, so that
bouts of one behavior may overlap. Files state neither a length nor a frame rate: a recording ends with its last event, and times are
read in milliseconds unless ``rate=`` is set.
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
from ethobench.formats.base import Format, ignored_columns, register_format, select_entries
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
MAX_DIFFERENCE = 0.002  # seconds between a stop and the end of the duration of its start
NUMBERED_LOG = re.compile(r"event log\s*\d*", re.IGNORECASE)
USED_COLUMNS = re.compile(
    r"date_.*|time_.*|duration_.*|result_container|observation|event_log|subject|behavior|modifier_\d+|event_type|comment"
)


@register_format("observer")
class Observer(Format):
    """One row per event."""

    title = TITLE
    suffixes = (".xlsx", ".csv")
    keeps = ("subjects", "overlaps", "touching", "points", "modifiers", "comments")
    multiple_recordings = True
    multiple_annotators = True

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
        return [log.recording(name, rows[name], events, ethogram, rate or SECONDS_RATE) for name in select_entries(path, entry, list(rows))]

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
                    message = f"an {TITLE} cannot store a recording without bouts; it is lost"
                    notes.append(Note(message, recording.id, "lost-recording"))
                rows += _rows(recording.id, annotator, a, points, n_modifiers)
        if not rows:
            raise EthobenchError(f"an {TITLE} cannot store recordings without bouts")
        write_rows(path, header, rows)
        return notes


def _rows(recording: str, annotator: str, a: Annotation, points: set[str], n_modifiers: int) -> list[list[Any]]:
    events, _ = event_logs.events_of(a, points, layers=True)
    times = [event_logs.event_seconds(e, a.rate) for e in events]
    stops = {e.layer: time for e, time in zip(events, times, strict=True) if e.kind == STOP}
    rows = []
    for e, time in zip(events, times, strict=True):
        duration = round(stops[e.layer] - time, 6) if e.kind == START else 0.0
        event = [e.subject, e.behavior, *modifier_cells(e.modifiers, n_modifiers), TYPES[e.kind], e.comment]
        rows.append([time, duration, "Results", recording, annotator, *event])
    return rows


@dataclass
class _Log:
    """An exported table and the times of its rows in seconds."""

    table: Table
    times: list[float]

    @classmethod
    def open(cls, path: Path) -> _Log:
        table = read_table(path)
        missing = [name for name in REQUIRED if name not in table]
        if missing or not any(name in table for name in TIMES):
            columns = ", ".join(table.header)
            raise FormatError(path, f"not an {TITLE}: no column {', '.join(missing or TIMES[:1])}; columns: {columns}")
        if not len(table):
            raise FormatError(path, "the table has a header but no events")
        times = table.numbers(TIMES[0]).tolist() if TIMES[0] in table else _clock_times(table)
        return cls(table, times)

    def observations(self) -> dict[str, list[int]]:
        default = self.table.path.name.split(".")[0]
        rows: dict[str, list[int]] = {}
        for i, name in enumerate(self._text("Observation")):
            rows.setdefault(name or default, []).append(i)
        return rows

    def events(self) -> list[Event]:
        modifiers = [self.table.column(name) for name in self.table.header if name.startswith("Modifier_")]
        columns = (self._text(name) for name in ("Event_Type", "Behavior", "Subject", "Comment"))
        events = []
        for i, (kind, behavior, subject, comment) in enumerate(zip(*columns, strict=True)):
            location = f"row {self.table.row_numbers[i]}"
            if kind.strip().lower() not in KINDS:
                raise FormatError(self.table.path, f"expected event type {', '.join(TYPES.values())}, got {kind!r}", location)
            modifier = "|".join(column[i] for column in modifiers).rstrip("|")
            events.append(Event(self.times[i], KINDS[kind.strip().lower()], behavior, subject, modifier, comment, location=location))
        return events

    def recording(self, name: str, rows: Sequence[int], events: Sequence[Event], ethogram: Ethogram, rate: float) -> Recording:
        logs: dict[str, list[int]] = {}
        texts = self._text("Event_Log")
        for i in rows:
            logs.setdefault(texts[i] or DEFAULT_ANNOTATOR, []).append(i)
        unknown = [column for column in self.table.header if column and not USED_COLUMNS.fullmatch(column.lower())]
        notes = [*other_sheets(self.table.path), *ignored_columns(unknown)]
        observations = {}
        for annotator, log_rows in logs.items():
            matched, more_notes = self._match(log_rows, events)
            observations[annotator] = event_logs.pair_events(self.table.path, matched)
            notes += more_notes
        end = max(observation.end for observation in observations.values())
        annotations = {}
        for annotator, observation in observations.items():
            numbered = len(logs) == 1 and NUMBERED_LOG.fullmatch(annotator)
            annotations[DEFAULT_ANNOTATOR if numbered else annotator], more_notes = observation.to_annotation(ethogram, rate, length=end)
            notes += more_notes
        subjects = dict.fromkeys(subject for a in annotations.values() for subject in a.subjects)
        return Recording(
            name,
            annotations=annotations,
            subjects=tuple(subjects),
            start_time=self._start_time(rows[0]),
            notes=tuple(notes),
            clock_origin=ClockOrigin.ASSUMED,
        )

    def _match(self, rows: Sequence[int], all_events: Sequence[Event]) -> tuple[list[Event], list[Note]]:
        """Give each start and the stop at the end of its duration a common layer; a missing stop is derived from the duration."""
        events = [all_events[i] for i in rows]
        if "Duration_sf" not in self.table:
            return events, []
        durations = self.table.numbers("Duration_sf")[list(rows)]
        stops: dict[Any, list[tuple[float, int]]] = {}
        for i, event in enumerate(events):
            if event.kind == STOP:
                stops.setdefault(event.track, []).append((event.time, i))
        for times in stops.values():
            times.sort()
        layers: dict[int, int] = {}
        added: list[Event] = []
        for i, event in enumerate(events):
            if event.kind != START or not np.isfinite(durations[i]):
                continue
            end = event.time + durations[i]
            track_stops = stops.get(event.track, [])
            low = bisect_left(track_stops, (end - MAX_DIFFERENCE, -1))
            high = bisect_left(track_stops, (end + MAX_DIFFERENCE, len(events)))
            free = [j for _, j in track_stops[low:high] if j not in layers]
            if free:
                layers[free[0]] = layers[i] = i + 1
            elif durations[i] > 0:
                layers[i] = i + 1
                added.append(replace(event, time=end, kind=STOP, comment="", layer=i + 1))
        notes = []
        if added:
            message = f"{added[0].behavior!r} has no stop; using its duration ({len(added)} such events)"
            notes.append(Note(message, added[0].location, "open-bouts"))
        return [*(replace(event, layer=layers.get(i, 0)) for i, event in enumerate(events)), *added], notes

    def _start_time(self, row: int) -> datetime | None:
        """Return the start of the observation, if its first event states a date and time."""
        try:
            return datetime.fromisoformat(self._text("Date_Time_Absolute_dmy_hmsf")[row]) - timedelta(seconds=self.times[row])
        except ValueError:
            return None

    def _text(self, name: str) -> list[str]:
        return self.table.column(name) if name in self.table else [""] * len(self.table)


def _clock_times(table: Table) -> list[float]:
    """Return times such as ``0:01:02.500`` in seconds."""
    times = []
    for i, cell in enumerate(table.column(TIMES[1])):
        match = re.fullmatch(r"(?:(\d+):)?(\d+):(\d+(?:[.,]\d+)?)", cell.strip(), re.ASCII)
        if match is None:
            raise FormatError(table.path, f"{cell!r} is not a time such as 0:01:02.500", f"row {table.row_numbers[i]}")
        hours, minutes, seconds = match.groups()
        times.append(int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", ".")))
    return times
