"""BORIS "tabular events" (CSV, TSV, XLSX): one row per start, stop or point.

Two layouts are read. The older one holds one observation, described in rows above the table; the flat one of BORIS 8 and
later repeats the description in every row, and may hold several observations, which are the entries. It is also the one
that is written. The clock has the frame rate of the video. Times count from the beginning of the first media file, the time
offset taken out. Columns between the frame rate and the subject are independent variables, kept as metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ethobench.core import Ethogram, Recording
from ethobench.core.errors import Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import event_tables, event_writing
from ethobench.formats.base import Format, not_understood, pick_entry, register_format
from ethobench.formats.boris_tables import (
    NO_FOCAL_SUBJECT,
    OBSERVATION_COLUMNS,
    SOURCE,
    Export,
    modifier_cells,
    modifier_count,
    observation_cells,
    written,
)
from ethobench.formats.bouts import frames_rate, origin_of
from ethobench.formats.event_tables import Event
from ethobench.formats.spreadsheets import find_header, locate_header, other_sheets, write_rows
from ethobench.formats.tables import format_time, read_table
from ethobench.formats.text import Head

TITLE = "BORIS events table"


@register_format("boris_tabular")
class BorisTabular(Format):
    """One row per event."""

    title = TITLE
    suffixes = (".tsv", ".csv", ".xlsx")
    keeps = ("subjects", "overlaps", "touching", "points", "modifiers", "comments", "length")
    several = True

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if find_header(head.sheet, head.text, is_header) else 0.0

    def entries(self, path: Path) -> list[str]:
        return list(_export(path).observations())

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        export = _export(path)
        rows = export.observations()
        events = _event_rows(export)
        ethogram = event_tables.ethogram_of(events)
        return [_read(export, name, rows[name], events, ethogram, rate) for name in pick_entry(path, entry, list(rows))]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        n_modifiers = modifier_count(recordings)
        header = [
            *OBSERVATION_COLUMNS,
            *("Subject", "Behavior", "Behavioral category"),
            *(f"Modifier #{i + 1}" for i in range(n_modifiers)),
            *("Behavior type", "Time", "Media file name", "Image index", "Image file path", "Comment"),
        ]
        kept, notes = written(recordings, TITLE)
        points = event_writing.point_behaviors(a for _, a in kept)
        rows = []
        for recording, a in kept:
            events, more = event_writing.events_of(a, points)
            notes += more
            about = observation_cells(recording)
            for e in events:
                who = [e.subject or NO_FOCAL_SUBJECT, e.behavior, "", *modifier_cells(e.modifiers, n_modifiers)]
                time = format_time(event_writing.seconds_of(e, a.rate))
                rows.append([*about, *who, e.kind, time, about[SOURCE], str(int(e.time)), "NA", e.comment])
        write_rows(path, header, rows)
        return notes


def is_header(cells: set[str]) -> bool:
    """Tell the header of either layout from other rows."""
    return {"time", "behavior"} <= cells and ({"subject", "status"} <= cells or {"observationid", "behaviortype"} <= cells)


def _export(path: Path) -> Export:
    found = locate_header(path, is_header)
    if found is None:
        not_understood(path, f"this is no {TITLE}: no row names the columns Time, Subject, Behavior and Status (or Behavior type)")
    delimiter, line, rows = found
    above = {row[0].strip(): (row[1] if len(row) > 1 else "") for row in rows if row and row[0].strip()}
    return Export(read_table(path, skip=line - 1, delimiter=delimiter or None), above=above, notes=other_sheets(path))


def _event_rows(export: Export) -> list[Event]:
    """Return every row of the table as an event, its time as it stands there."""
    times = export.numbers("Time")
    kinds, comments = export.text("Status", "Behavior type"), export.text("Comment")
    behaviors, subjects, modifiers = export.behaviors, export.subjects, export.modifiers
    return [
        Event(times[i], kinds[i].strip().upper(), behaviors[i], subjects[i], modifiers[i], comments[i], location=export.location(i))
        for i in range(len(export.table))
    ]


def _read(export: Export, name: str, rows: Sequence[int], every: Sequence[Event], ethogram: Ethogram, rate: float | None) -> Recording:
    facts = export.facts(rows)
    events = [every[i] for i in rows]
    images = export.numbers("Image index")[rows]
    in_images = bool(rows) and all(np.isnan(e.time) for e in events) and bool(np.isfinite(images).all())
    if in_images:
        events = [replace(event, time=float(image)) for event, image in zip(events, images, strict=True)]
        clock, notes = frames_rate(rate)
        length: float | None = float(images.max()) + 1
    else:
        times, notes = event_tables.without_offset([event.time for event in events], facts.offset, facts.length)
        events = [replace(event, time=time) for event, time in zip(events, times, strict=True)]
        clock, length = facts.clock(rate), facts.length_for(max(times, default=0.0))
    if not rows:
        notes.append(Note("there is no event; how long the recording is, and whether it was looked at, is not known"))
    observation = event_tables.pair(export.table.path, events)
    annotation, more = observation.to_annotation(ethogram, clock, seconds=not in_images, length=length)
    return Recording(
        name,
        annotations={DEFAULT_ANNOTATOR: annotation},
        subjects=annotation.subjects,
        metadata=facts.metadata,
        notes=(*facts.notes, *notes, *more),
        clock_origin=origin_of(None if in_images else facts.fps),
    )
