"""Event tables exported by BORIS (CSV, TSV, XLSX): tabular events (``boris_tabular``) and aggregated events (``boris_aggregated``).

Tabular events have one row per start, stop or point. Two layouts are read. The older one holds one observation, described in rows above
the table. The flat one of BORIS 8 and later repeats the description in every row and may hold several observations; it is the one that
is written. Aggregated events have one row per bout, with start and stop. The layouts of BORIS 5 to 9 differ in some columns; in tables
without a header row, columns are identified by their position.

Entries are observations. The frame rate is that of the video. Times count from the beginning of the first media file, without the time
offset. Columns between the frame rate and the subject are independent variables, which are kept as metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core.errors import FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import event_logs
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.boris_tables import (
    NO_FOCAL_SUBJECT,
    OBSERVATION_COLUMNS,
    SOURCE,
    Export,
    ObservationFacts,
    modifier_cells,
    modifier_count,
    observation_cells,
    writable_annotations,
)
from ethobench.formats.bouts import BoutRows, frames_rate, origin_of
from ethobench.formats.event_logs import POINT, START, Event, Gap, Observation
from ethobench.formats.tables import Table, find_header, format_time, locate_header, other_sheets, read_table, write_rows
from ethobench.formats.text import Head, is_number

TABULAR_TITLE = "BORIS events table"
AGGREGATED_TITLE = "BORIS aggregated events table"
Times: TypeAlias = NDArray[np.float64]
STATE = "STATE"
COLUMNS = (
    "Start (s)", "Stop (s)", "Duration (s)", "Image index start", "Image index stop", "Image file path start", "Image file path stop",
    "Comment start", "Comment stop",
)  # fmt: skip


@register_format("boris_tabular")
class BorisTabular(Format):
    """One row per event."""

    title = TABULAR_TITLE
    suffixes = (".tsv", ".csv", ".xlsx")
    keeps = ("subjects", "overlaps", "touching", "points", "modifiers", "comments", "length")
    multiple_recordings = True

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if find_header(head.sheet, head.text, _is_tabular_header) else 0.0

    def entries(self, path: Path) -> list[str]:
        return list(_open_tabular(path).observations())

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        export = _open_tabular(path)
        rows = export.observations()
        events = _event_rows(export)
        ethogram = event_logs.ethogram_of(events)
        return [_read_tabular(export, name, rows[name], events, ethogram, rate) for name in select_entries(path, entry, list(rows))]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        n_modifiers = modifier_count(recordings)
        header = [*_common_header(n_modifiers), "Time", "Media file name", "Image index", "Image file path", "Comment"]
        kept, notes = writable_annotations(recordings, TABULAR_TITLE)
        points = event_logs.point_behaviors(a for _, a in kept)
        rows = []
        for recording, a in kept:
            events, more_notes = event_logs.events_of(a, points)
            notes += more_notes
            observation = observation_cells(recording)
            for e in events:
                subject = [e.subject or NO_FOCAL_SUBJECT, e.behavior, "", *modifier_cells(e.modifiers, n_modifiers)]
                time = format_time(event_logs.event_seconds(e, a.rate))
                rows.append([*observation, *subject, e.kind, time, observation[SOURCE], str(int(e.time)), "NA", e.comment])
        write_rows(path, header, rows)
        return notes


@register_format("boris_aggregated")
class BorisAggregated(Format):
    """One row per bout."""

    title = AGGREGATED_TITLE
    suffixes = (".xlsx", ".tsv", ".csv")
    keeps = ("subjects", "overlaps", "touching", "points", "modifiers", "comments", "length")
    multiple_recordings = True

    def sniff(self, path: Path, head: Head) -> float:
        if find_header(head.sheet, head.text, _is_aggregated_header):
            return 1.0
        return 0.9 if _type_column([row for row in head.rows[:50] if any(row)]) else 0.0

    def entries(self, path: Path) -> list[str]:
        return list(_open_aggregated(path).observations())

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        export = _open_aggregated(path)
        rows = export.observations()
        kinds = [kind.strip().upper() for kind in export.text("Behavior type")]
        for i, kind in enumerate(kinds):
            if kind not in (STATE, POINT):
                raise FormatError(path, f"expected behavior type STATE or POINT, got {kind!r} (is the file truncated?)", export.location(i))
        scored = [Event(0.0, POINT if kind == POINT else START, name) for kind, name in zip(kinds, export.behaviors, strict=True)]
        ethogram = event_logs.ethogram_of(scored)
        return [_read_aggregated(export, name, rows[name], kinds, ethogram, rate) for name in select_entries(path, entry, list(rows))]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        n_modifiers = modifier_count(recordings)
        header = [*_common_header(n_modifiers), *COLUMNS[:3], "Media file name", *COLUMNS[3:]]
        kept, notes = writable_annotations(recordings, AGGREGATED_TITLE)
        points = event_logs.point_behaviors(a for _, a in kept)
        rows = []
        for recording, a in kept:
            observation = observation_cells(recording)
            subject = a.names(a.subject)
            for i in np.argsort(a.order, kind="stable"):
                name, start, stop = a.ethogram[int(a.behavior[i])].name, int(a.start[i]), int(a.stop[i])
                modifiers = modifier_cells("" if a.modifiers is None else a.modifiers[i], n_modifiers)
                duration = "NA" if name in points else format_time((stop - start) / a.rate)
                times = [format_time(start / a.rate), format_time(stop / a.rate), duration]
                details = [observation[SOURCE], str(start), str(stop), "NA", "NA", "" if a.comment is None else a.comment[i], ""]
                bout = [subject[i] or NO_FOCAL_SUBJECT, name, "", *modifiers, POINT if name in points else STATE]
                rows.append([*observation, *bout, *times, *details])
        write_rows(path, header, rows)
        return notes


def _is_tabular_header(cells: set[str]) -> bool:
    """Return whether a row is the header of either layout of tabular events."""
    return {"time", "behavior"} <= cells and ({"subject", "status"} <= cells or {"observationid", "behaviortype"} <= cells)


def _open_tabular(path: Path) -> Export:
    header = locate_header(path, _is_tabular_header)
    if header is None:
        message = f"not a {TABULAR_TITLE}: no header row with the columns Time, Subject, Behavior and Status (or Behavior type)"
        raise FormatError(path, message)
    delimiter, line, rows = header
    above = {row[0].strip(): (row[1] if len(row) > 1 else "") for row in rows if row and row[0].strip()}
    return Export(read_table(path, skip=line - 1, delimiter=delimiter or None), above=above, notes=other_sheets(path))


def _common_header(n_modifiers: int) -> list[str]:
    """Return the columns that both kinds of tables begin with."""
    modifiers = [f"Modifier #{i + 1}" for i in range(n_modifiers)]
    return [*OBSERVATION_COLUMNS, "Subject", "Behavior", "Behavioral category", *modifiers, "Behavior type"]


def _recording(name: str, annotation: Annotation, facts: ObservationFacts, notes: Sequence[Note], stated_rate: float | None) -> Recording:
    return Recording(
        name,
        annotations={DEFAULT_ANNOTATOR: annotation},
        subjects=annotation.subjects,
        metadata=facts.metadata,
        notes=(*facts.notes, *notes),
        clock_origin=origin_of(stated_rate),
    )


def _event_rows(export: Export) -> list[Event]:
    """Return every row of the table as an event, with the time as stated."""
    times = export.numbers("Time").tolist()
    kinds, comments = export.text("Status", "Behavior type"), export.text("Comment")
    behaviors, subjects, modifiers = export.behaviors, export.subjects, export.modifiers
    return [
        Event(times[i], kinds[i].strip().upper(), behaviors[i], subjects[i], modifiers[i], comments[i], location=export.location(i))
        for i in range(len(export.table))
    ]


def _read_tabular(
    export: Export, name: str, rows: Sequence[int], all_events: Sequence[Event], ethogram: Ethogram, rate: float | None
) -> Recording:
    facts = export.facts(rows)
    events = [all_events[i] for i in rows]
    images = export.numbers("Image index")[rows]
    in_images = bool(rows) and all(np.isnan(e.time) for e in events) and bool(np.isfinite(images).all())
    if in_images:
        events = [replace(event, time=float(image)) for event, image in zip(events, images, strict=True)]
        clock, notes = frames_rate(rate)
        length: float | None = float(images.max()) + 1
    else:
        times, notes = event_logs.without_offset([event.time for event in events], facts.offset, facts.length)
        events = [event if event.time == time else replace(event, time=time) for event, time in zip(events, times, strict=True)]
        clock, length = facts.clock(rate), facts.length_for(max(times, default=0.0))
    if not rows:
        notes.append(Note("no events; the length and the observed period are unknown", code="no-events"))
    observation = event_logs.pair_events(export.table.path, events)
    annotation, more_notes = observation.to_annotation(ethogram, clock, seconds=not in_images, length=length)
    return _recording(name, annotation, facts, [*notes, *more_notes], None if in_images else facts.fps)


def _read_aggregated(
    export: Export, name: str, rows: Sequence[int], kinds: Sequence[str], ethogram: Ethogram, rate: float | None
) -> Recording:
    facts = export.facts(rows)
    start, stop = export.numbers("Start (s)")[rows], export.numbers("Stop (s)")[rows]
    first, last = export.numbers("Image index start")[rows], export.numbers("Image index stop")[rows]
    points = np.array([kinds[i] == POINT for i in rows], dtype=bool)
    in_images = bool(np.isnan(start).all() and np.isfinite(first).all())
    if in_images:
        start, stop = first, np.where(points, first, last)
        clock, notes = frames_rate(rate)
        length: float | None = float(np.nanmax(np.concatenate((start, stop)))) + 1
    else:
        stop = np.where(points, start, stop)
        times, notes = event_logs.without_offset([*start, *stop], facts.offset, facts.length)
        start, stop = np.array(times[: len(rows)]), np.array(times[len(rows) :])
        clock, length = facts.clock(rate), facts.length_for(float(np.nanmax(times, initial=0.0)))
    observation = _observation(export, rows, start, stop, points)
    annotation, more_notes = observation.to_annotation(ethogram, clock, seconds=not in_images, length=length)
    return _recording(name, annotation, facts, [*notes, *more_notes], None if in_images else facts.fps)


def _observation(export: Export, rows: Sequence[int], start: Times, stop: Times, points: NDArray[np.bool_]) -> Observation:
    """Return the bouts of an observation; a bout without a stop or without a behavior becomes a gap."""
    behaviors, subjects, modifiers = export.behaviors, export.subjects, export.modifiers
    opening, closing = export.text("Comment start", "Comment"), export.text("Comment stop")
    observation = Observation(BoutRows(export.table.path), end=float(np.nanmax(np.concatenate((start, stop)), initial=0.0)))
    for k, i in enumerate(rows):
        name, location = behaviors[i], export.location(i)
        for time in (start[k], 0.0 if np.isnan(stop[k]) else stop[k]):
            event_logs.check_time(export.table.path, Event(float(time), START, name, location=location))
        if np.isnan(stop[k]):
            observation.gaps.append(Gap(name, subjects[i], float(start[k]), inf))
            message = f"{name!r} has no stop; dropped, and read as unobserved from there on"
            observation.notes.append(Note(message, location, "open-bouts"))
        elif not name.strip():
            observation.gaps.append(Gap("", "", float(start[k]), float(stop[k])))
            observation.notes.append(Note("bout without a behavior; its frames are read as unobserved", location, "no-behavior"))
        else:
            comment = event_logs.join_comments(opening[i], "" if points[k] else closing[i])
            observation.bouts.add(
                float(start[k]), float(stop[k]), name, subject=subjects[i], modifiers=modifiers[i], comment=comment, location=location
            )
    return observation


def _is_aggregated_header(cells: set[str]) -> bool:
    return {"behavior", "behaviortype", "starts", "stops"} <= cells


def _open_aggregated(path: Path) -> Export:
    header = locate_header(path, _is_aggregated_header)
    if header:
        delimiter, line, _ = header
        return Export(read_table(path, skip=line - 1, delimiter=delimiter or None), extra=COLUMNS, notes=other_sheets(path))
    table = read_table(path)
    rows = [table.header, *table.rows]
    column = _type_column(rows)
    if column is None:
        columns = "Behavior, Behavior type, Start (s) and Stop (s)"
        raise FormatError(path, f"not a {AGGREGATED_TITLE}: no header row with the columns {columns}")
    named = Table(path, _header_by_position(rows, column), rows, [1, *table.row_numbers], table.decimal)
    notes = (Note("no header row; columns are identified by their position", code="no-header"), *other_sheets(path))
    return Export(named, extra=COLUMNS, notes=notes)


def _type_column(rows: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the column with STATE or POINT; None if these are not rows of aggregated events."""
    if not rows or len({len(row) for row in rows}) != 1:
        return None
    for column in range(8, len(rows[0]) - 4):
        if all(row[column] in (STATE, POINT) and _is_number(row[column + 1]) and _is_number(row[column + 2]) for row in rows):
            return column
    return None


def _header_by_position(rows: Sequence[Sequence[str]], column: int) -> list[str]:
    """Return column names in the order of BORIS, from the position of the behavior type and of the length and frame rate."""
    header = [f"column {i + 1}" for i in range(len(rows[0]))]
    header[:2] = ["Observation id", "Observation date"]
    header[column - 4 : column + 4] = ["Subject", "Behavior", "Behavioral category", "Modifiers", "Behavior type", *COLUMNS[:3]]
    header[-2:] = COLUMNS[-2:]
    for i in range(2, column - 5):
        if all(_is_number(row[i]) and _is_number(row[i + 1]) for row in rows):
            header[i - 1 : i + 2] = ["Media file", "Total length", "FPS"]
            break
    return header


def _is_number(cell: str) -> bool:
    return is_number(cell) and bool(np.isfinite(float(cell)))
