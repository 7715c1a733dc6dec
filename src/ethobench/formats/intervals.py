"""Generic interval tables: a row per bout with start, stop and behavior; often also rater, recording, subject, target.

Columns are found by their usual names, in any order; delimiter and decimal sign are found out. Times are seconds (also
"MM:SS"), milliseconds or frames, as the columns' names say. A row without a behavior (blank, or a tool's placeholder)
makes its stretch unobserved; a row without a stop leaves its behavior unobserved from there on. Rows named "Start/End"
mark where the test begins and ends: what lies outside was not observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Recording
from ethobench.core.errors import EthobenchError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import interval_tables as table_of
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.bouts import SECONDS_RATE, frames_rate
from ethobench.formats.clock_text import seconds_of
from ethobench.formats.per_frame import background_notes
from ethobench.formats.spreadsheets import other_sheets
from ethobench.formats.tables import format_time, read_table, write_table
from ethobench.formats.text import Head

Names = Sequence[str] | str | None


@register_format("intervals")
class IntervalTable(Format):
    """A row per bout.

    Options for reading: ``rate``, the clock to read on (1000 Hz unless given, 30 Hz with a note where times are frames);
    ``columns``, where guessing fails, such as ``{"start": "from", "behavior": "type"}``; ``inclusive``, whether the stop
    frame still belongs to the bout; ``drop``, names that are no behaviors; ``markers``, names that mark the beginning
    and the end of what was observed ("Start/End" in any spelling unless given); ``points``, behaviors without duration.
    """

    title = "interval table"
    suffixes = (".csv", ".tsv")
    keeps = ("subjects", "targets", "overlaps", "touching", "points", "modifiers", "comments", "confidence")
    several = True
    annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        filled = [row for row in head.sheet if any(row)]
        header, rows = (filled[0], filled[1:]) if filled else (head.header, head.body)
        if not rows:
            return 0.0
        found = table_of.find_columns(header)
        if "behavior" not in found or "start" not in found or not {"stop", "duration"} & {*found}:
            return 0.0
        start_column = header.index(found["start"])
        cells = [row[start_column] for row in rows[:20] if len(row) > start_column and row[start_column].strip()]
        return 0.6 if cells and all(seconds_of(cell) is not None for cell in cells) else 0.0

    def read(
        self,
        path: Path,
        entry: str | None = None,
        *,
        rate: float | None = None,
        columns: Mapping[str, str] | None = None,
        inclusive: bool | None = None,
        drop: Names = None,
        markers: Names = None,
        points: Names = None,
    ) -> list[Recording]:
        table = table_of.IntervalRows(path, read_table(path), columns or {}, inclusive)
        clock, notes = (rate or SECONDS_RATE, []) if table.unit != "frames" else frames_rate(rate)
        table.sort_out(drop=_names(drop), markers=_names(markers), points=_names(points))
        recordings = []
        ethogram = table.ethogram()
        for name in pick_entry(path, entry, list(table.groups)):
            made: dict[str, Annotation] = {}
            found = [*notes, *other_sheets(path), *table.notes]
            length = table.length(name, clock)
            for rater in table.groups[name]:
                made[rater], more = table.annotation(name, rater, ethogram, clock, length)
                found += [
                    Note(n.message, f"{rater}, {n.location}".strip(", ") if len(table.groups[name]) > 1 else n.location) for n in more
                ]
            subjects = tuple(dict.fromkeys(s for a in made.values() for s in a.subjects))
            recordings.append(Recording(name, subjects=subjects, annotations=made, notes=tuple(found), clock_origin=ClockOrigin.ASSUMED))
        return recordings

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        annotations = [(r.id, name, a) for r in recordings for name, a in r.annotations.items()]
        for name in dict.fromkeys(name for *_, a in annotations for name in a.ethogram.names):
            if table_of.is_no_label(name) or table_of.is_marker(name):
                raise EthobenchError(f"in an {self.title} {name!r} does not name a behavior, so it would be lost; rename it")
        used = {
            "recording": True,
            "rater": any(name != DEFAULT_ANNOTATOR for _, name, _ in annotations),
            **dict.fromkeys(("start", "stop", "behavior"), True),
            "subject": any((a.subject >= 0).any() for *_, a in annotations),
            "target": any((a.target >= 0).any() for *_, a in annotations),
            **{column: any(getattr(a, column) is not None for *_, a in annotations) for column in ("modifiers", "comment", "confidence")},
        }
        header = [name for name, there in used.items() if there]
        rows = [[row[name] for name in header] for id, name, a in annotations for row in _rows(id, name, a)]
        write_table(path, header, rows, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        notes = []
        for *_, a in annotations:
            notes += background_notes(self.title, a.ethogram)
            unused = [name for code, name in enumerate(a.ethogram.names) if not (a.behavior == code).any()]
            if unused and not any(
                name in b.ethogram and (b.behavior == b.ethogram.code(name)).any() for *_, b in annotations for name in unused
            ):
                notes.append(Note(f"{self.title} names only what occurs: {', '.join(unused)} will be unknown"))
        return notes


def _rows(recording: str, rater: str, a: Annotation) -> list[dict[str, Any]]:
    subject, target = a.names(a.subject), a.names(a.target)
    rows = []
    for i in np.argsort(a.order, kind="stable"):
        confidence = np.nan if a.confidence is None else a.confidence[i]
        rows.append(
            {
                "recording": recording,
                "rater": rater,
                "start": format_time(int(a.start[i]) / a.rate),
                "stop": format_time(int(a.stop[i]) / a.rate),
                "behavior": a.ethogram[int(a.behavior[i])].name,
                "subject": subject[i] or "",
                "target": target[i] or "",
                "modifiers": "" if a.modifiers is None else a.modifiers[i],
                "comment": "" if a.comment is None else a.comment[i],
                "confidence": "" if np.isnan(confidence) else confidence,
            }
        )
    return rows


def _names(option: Names) -> list[str] | None:
    return [option] if isinstance(option, str) else None if option is None else list(option)
