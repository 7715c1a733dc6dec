"""Generic interval tables: a row per bout with start, stop and behavior; often also rater, recording, subject, target.

Columns are found by their usual names, in any order; delimiter and decimal sign are found out. Times are seconds (also
"MM:SS"), milliseconds or frames, as the columns' names say. A row without a behavior (blank, or a tool's placeholder)
makes its stretch unobserved; a row without a stop leaves its behavior unobserved from there on. Rows named "Start/End"
mark where the test begins and ends: what lies outside was not observed.

MERGED: Rodent-Bench segment JSON: a list of segments, bare or under the key ``segments``.

A segment has ``segment_number``, ``start_time``, ``end_time`` and ``behavior``. Times are "MM:SS" (minutes may exceed
59), "HH:MM:SS" or seconds as a number. Segments are kept in the file's order (`Annotation.order`), since Rodent-Bench
lets the first one win where some overlap. This reader is strict; answers of language models are mended elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import interval_tables as table_of
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.bouts import SECONDS_RATE, BoutRows, frames_rate
from ethobench.formats.per_frame import background_notes, named_ethogram
from ethobench.formats.tables import format_time, other_sheets, read_table, write_table
from ethobench.formats.text import Head, format_clock, parse_clock, read_json

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
        return 0.6 if cells and all(parse_clock(cell) is not None for cell in cells) else 0.0

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


KEYS = ("start_time", "end_time", "behavior")
START = re.compile(r'\s*(\{\s*"segments"\s*:\s*\[|\[\s*\{)')
STYLES = ("seconds", "MM:SS", "HH:MM:SS")


@register_format("segments")
class SegmentJson(Format):
    """A list of segments with start, end and behavior.

    Option for reading: ``rate``, the clock to read on (1000 Hz unless given).
    Option for writing: ``times``, "seconds" (exact), "MM:SS" or "HH:MM:SS" (to the nearest second, as the prompts ask).
    """

    title = "segment JSON"
    suffixes = (".json",)
    keeps = ("overlaps", "touching")

    def sniff(self, path: Path, head: Head) -> float:
        text = head.text or head.raw.decode("utf-8", errors="replace")
        start = START.match(text.lstrip("\ufeff"))
        if not start:
            return 0.0
        if all(f'"{key}"' in text[:4000] for key in KEYS):
            return 0.95
        return 0.9 if re.fullmatch(r'\s*\{\s*"segments"\s*:\s*\[\s*\]\s*\}\s*', text) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        pick_entry(path, entry, [path.stem])
        content = read_json(path)
        segments = content.get("segments") if isinstance(content, dict) else content
        if not isinstance(segments, list):
            raise FormatError(path, "a list of segments was expected, bare or under the key 'segments'")
        rows = BoutRows(path)
        extra = {str(key) for key in content if key != "segments"} if isinstance(content, dict) else set()
        for location, segment in enumerate(segments, start=1):
            _add(rows, segment, location)
            extra |= {str(key) for key in segment if key not in (*KEYS, "segment_number")}
        ethogram = named_ethogram(list(dict.fromkeys(rows.behavior)))
        annotation, notes = rows.to_annotation(ethogram, rate or SECONDS_RATE, seconds=True)
        if extra:
            notes.append(Note(f"keys not understood and left out: {', '.join(sorted(extra))}"))
        return [Recording(path.stem, annotations={DEFAULT_ANNOTATOR: annotation}, notes=tuple(notes), clock_origin=ClockOrigin.ASSUMED)]

    def write(self, recordings: Sequence[Recording], path: Path, *, times: str = "seconds") -> list[Note]:
        if times not in STYLES:
            raise EthobenchError(f"times are one of {', '.join(STYLES)}, not {times!r}")
        a = recordings[0].annotation()
        segments = []
        rounded = 0
        lasting = [i for i in np.argsort(a.order, kind="stable") if a.stop[i] > a.start[i]]
        for number, i in enumerate(lasting, start=1):
            seconds = [round(int(frame) / a.rate, 6) for frame in (a.start[i], a.stop[i])]
            rounded += sum(s != int(s) for s in seconds) if times != "seconds" else 0
            start, stop = seconds if times == "seconds" else [format_clock(s, hours=times == "HH:MM:SS") for s in seconds]
            segments.append(
                {"segment_number": number, "start_time": start, "end_time": stop, "behavior": a.ethogram[int(a.behavior[i])].name}
            )
        path.write_text(json.dumps({"segments": segments}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
        notes = [Note(f"{rounded} of {2 * len(lasting)} times are rounded to whole seconds")] if rounded else []
        unused = [name for code, name in enumerate(a.ethogram.names) if not (a.behavior == code).any()]
        if unused:
            notes.append(Note(f"{self.title} names only what occurs: {', '.join(unused)} will be unknown"))
        return [*notes, *background_notes(self.title, a.ethogram)]


def _add(rows: BoutRows, segment: Any, location: int) -> None:
    where = f"segment {location}"
    if not isinstance(segment, dict):
        raise FormatError(rows.path, f"a segment is an object with {', '.join(KEYS)}, not {json.dumps(segment)[:40]}", where)
    missing = [key for key in KEYS if key not in segment]
    if missing:
        raise FormatError(rows.path, f"no {', '.join(missing)}; there are: {', '.join(map(str, segment)) or 'no keys at all'}", where)
    if not isinstance(segment["behavior"], str) or not segment["behavior"].strip():
        raise FormatError(rows.path, f"behavior is the name of one, not {json.dumps(segment['behavior'])[:40]}", where)
    start, stop = (_time(rows.path, segment[key], f"{where}, {key}") for key in KEYS[:2])
    rows.add(start, stop, segment["behavior"].strip(), location=where)


def _time(path: Path, value: Any, where: str) -> float:
    seconds = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        seconds = parse_clock(value)
    if seconds is None or not np.isfinite(seconds):
        raise FormatError(path, f"{json.dumps(value)[:40]} is no time; write MM:SS, HH:MM:SS or seconds", where)
    return seconds
