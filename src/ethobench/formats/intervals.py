"""Intervals with start, stop and behavior: generic tables (``intervals``) and the JSON of Rodent-Bench (``segments``).

Interval tables have one row per bout, often also with rater, recording, subject and target. Columns are recognized by common names,
in any order; the delimiter and the decimal mark are detected. Times are seconds (also "MM:SS"), milliseconds or frames, according to
the column names, dates, time since 1970, or dates, times and durations of Excel (`ethobench.formats.interval_times`). Dates are kept as the
start time of the recording: a study aligns them with signals that have dates, too. The frames of a row without a behavior (blank, or a
placeholder) are unobserved. The behavior of a row without a stop is unobserved from its start on. Rows named "Start/End" mark the
observed period.

Segment JSON is a list of segments, either at the top level or under the key ``segments``. A segment has ``segment_number``,
``start_time``, ``end_time`` and ``behavior``. Times are "MM:SS" (minutes may exceed 59), "HH:MM:SS" or seconds. The order of the file
is kept (`Annotation.order`), because in Rodent-Bench the first of overlapping segments wins. This reader is strict; `ethobench.mllm`
repairs the answers of language models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import interval_tables
from ethobench.formats.base import Format, ignored_columns, register_format, select_entries
from ethobench.formats.bouts import SECONDS_RATE, BoutRows, background_notes, frames_rate, named_ethogram, unused_behavior_notes
from ethobench.formats.interval_times import kind_of_time
from ethobench.formats.per_frame import rate_notes
from ethobench.formats.tables import format_time, other_sheets, read_table, write_table
from ethobench.formats.text import Head, format_clock, parse_clock, read_json

Names = Sequence[str] | str | None
KEYS = ("start_time", "end_time", "behavior")
START = re.compile(r'\s*(\{\s*"segments"\s*:\s*\[|\[\s*\{)')
FRAME_COLUMNS = ("first_frame", "last_frame")
STYLES = ("seconds", "MM:SS", "HH:MM:SS")


@register_format("intervals")
class IntervalTable(Format):
    """One row per bout.

    Options for reading: ``rate``, the frame rate of the result (default: 1000 Hz, or 30 Hz with a note if times are frames);
    ``columns``, the column of each role if it is not recognized, such as ``{"start": "from", "behavior": "type"}``; ``inclusive``,
    whether the stop frame belongs to the bout; ``drop``, names in the behavior column to ignore; ``markers``, names that mark the
    beginning and the end of the observed period (default: "Start/End" in any spelling); ``points``, behaviors without duration;
    ``time_unit``, what times are if that is not recognized: s, ms, us, ns, days, excel or datenum (day numbers), frames, or time_of_day;
    ``date_format``, the format of dates that are not ISO 8601, as in `datetime.strptime`, or ``day_first``, ``month_first``.

    Option for writing: ``inclusive``, whether to write the first and the last frame of each bout in place of times.
    """

    title = "interval table"
    suffixes = (".csv", ".tsv")
    keeps = ("subjects", "targets", "overlaps", "touching", "points", "modifiers", "comments", "confidence")
    multiple_recordings = True
    multiple_annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        filled = [row for row in head.sheet if any(row)]
        header, rows = (filled[0], filled[1:]) if filled else (head.header, head.body)
        if not rows:
            return 0.0
        roles = interval_tables.find_columns(header)
        if "behavior" not in roles or "start" not in roles or not {"stop", "duration"} & {*roles}:
            return 0.0
        start_column = header.index(roles["start"])
        cells = [row[start_column] for row in rows[:20] if len(row) > start_column and row[start_column].strip()]
        is_timed = all(kind_of_time(cell) or parse_clock(cell) is not None for cell in cells)
        return 0.6 if cells and is_timed else 0.0

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
        time_unit: str | None = None,
        date_format: str | None = None,
    ) -> list[Recording]:
        table = interval_tables.IntervalRows(path, read_table(path), columns or {}, inclusive, time_unit=time_unit, date_format=date_format)
        clock, notes = (rate or SECONDS_RATE, []) if table.unit != "frames" else frames_rate(rate)
        table.classify_rows(drop=_names(drop), markers=_names(markers), points=_names(points))
        recordings = []
        ethogram = table.ethogram()
        for name in select_entries(path, entry, list(table.groups)):
            annotations: dict[str, Annotation] = {}
            recording_notes = [*notes, *other_sheets(path), *table.notes]
            length = table.length(name, clock)
            for rater in table.groups[name]:
                annotations[rater], rater_notes = table.annotation(name, rater, ethogram, clock, length)
                if len(table.groups[name]) > 1:
                    rater_notes = [replace(note, location=f"{rater}, {note.location}".strip(", ")) for note in rater_notes]
                recording_notes += rater_notes
            recordings.append(
                Recording(
                    name,
                    subjects=tuple(dict.fromkeys(s for a in annotations.values() for s in a.subjects)),
                    annotations=annotations,
                    start_time=table.start_times.get(name),
                    notes=tuple(recording_notes),
                    clock_origin=ClockOrigin.ASSUMED,
                )
            )
        return recordings

    def write(self, recordings: Sequence[Recording], path: Path, *, inclusive: bool = False) -> list[Note]:
        annotations = [(r.id, name, a) for r in recordings for name, a in r.annotations.items()]
        for name in dict.fromkeys(name for *_, a in annotations for name in a.ethogram.names):
            if interval_tables.is_no_label(name) or interval_tables.is_marker(name):
                raise EthobenchError(f"an {self.title} cannot store {name!r}, which readers do not treat as a behavior; rename it")
        used = {
            "recording": True,
            "rater": any(name != DEFAULT_ANNOTATOR for _, name, _ in annotations),
            **dict.fromkeys((*(FRAME_COLUMNS if inclusive else ("start", "stop")), "behavior"), True),
            "subject": any((a.subject >= 0).any() for *_, a in annotations),
            "target": any((a.target >= 0).any() for *_, a in annotations),
            **{column: any(getattr(a, column) is not None for *_, a in annotations) for column in ("modifiers", "comment", "confidence")},
        }
        header = [name for name, is_used in used.items() if is_used]
        rows = [[row[name] for name in header] for id, name, a in annotations for row in _rows(id, name, a, inclusive)]
        write_table(path, header, rows, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        notes = []
        for *_, a in annotations:
            notes += background_notes(self.title, a.ethogram)
            notes += rate_notes(self.title, "frame" if inclusive else "time", a.rate)
            if inclusive and (a.start == a.stop).any():
                notes.append(Note("a first and a last frame do not store point events; they are lost", code="lost-points"))
            unused = [name for code, name in enumerate(a.ethogram.names) if not (a.behavior == code).any()]
            if unused and not any(
                name in b.ethogram and (b.behavior == b.ethogram.code(name)).any() for *_, b in annotations for name in unused
            ):
                notes += unused_behavior_notes(self.title, a)
        return notes


@register_format("segments")
class SegmentJson(Format):
    """A list of segments with start, end and behavior.

    Option for reading: ``rate``, the frame rate of the result (default: 1000 Hz).
    Option for writing: ``times``, "seconds" (exact), "MM:SS" or "HH:MM:SS" (rounded to seconds, as the prompts require).
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
        select_entries(path, entry, [path.stem])
        content = read_json(path)
        segments = content.get("segments") if isinstance(content, dict) else content
        if not isinstance(segments, list):
            raise FormatError(path, "expected a list of segments, at the top level or under the key 'segments'")
        rows = BoutRows(path)
        extra = {str(key) for key in content if key != "segments"} if isinstance(content, dict) else set()
        for number, segment in enumerate(segments, start=1):
            _add_segment(rows, segment, f"segment {number}")
            extra |= {str(key) for key in segment if key not in (*KEYS, "segment_number")}
        ethogram = named_ethogram(list(dict.fromkeys(rows.behavior)))
        annotation, notes = rows.to_annotation(ethogram, rate or SECONDS_RATE, seconds=True)
        notes += ignored_columns(sorted(extra), "keys")
        return [Recording(path.stem, annotations={DEFAULT_ANNOTATOR: annotation}, notes=tuple(notes), clock_origin=ClockOrigin.ASSUMED)]

    def write(self, recordings: Sequence[Recording], path: Path, *, times: str = "seconds") -> list[Note]:
        if times not in STYLES:
            raise EthobenchError(f"`times` must be one of {', '.join(STYLES)}, got {times!r}")
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
        rounding = [Note(f"{rounded} of {2 * len(lasting)} times are rounded to seconds", code="rounded-times")] if rounded else []
        return [*rounding, *unused_behavior_notes(self.title, a), *background_notes(self.title, a.ethogram)]


def _rows(recording: str, rater: str, a: Annotation, inclusive: bool) -> list[dict[str, Any]]:
    subject, target = a.names(a.subject), a.names(a.target)
    rows = []
    for i in np.argsort(a.order, kind="stable"):
        if inclusive and a.stop[i] == a.start[i]:
            continue
        confidence = np.nan if a.confidence is None else a.confidence[i]
        rows.append(
            {
                "recording": recording,
                "rater": rater,
                "start": format_time(int(a.start[i]) / a.rate),
                "stop": format_time(int(a.stop[i]) / a.rate),
                **dict(zip(FRAME_COLUMNS, (int(a.start[i]), int(a.stop[i]) - 1), strict=True)),
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


def _add_segment(rows: BoutRows, segment: Any, location: str) -> None:
    if not isinstance(segment, dict):
        raise FormatError(rows.path, f"expected an object with {', '.join(KEYS)}, got {json.dumps(segment)[:40]}", location)
    missing = [key for key in KEYS if key not in segment]
    if missing:
        raise FormatError(rows.path, f"missing {', '.join(missing)}; keys: {', '.join(map(str, segment)) or 'none'}", location)
    if not isinstance(segment["behavior"], str) or not segment["behavior"].strip():
        raise FormatError(rows.path, f"behavior must be a name, got {json.dumps(segment['behavior'])[:40]}", location)
    start, stop = (_time(rows.path, segment[key], f"{location}, {key}") for key in KEYS[:2])
    rows.add(start, stop, segment["behavior"].strip(), location=location)


def _time(path: Path, value: Any, location: str) -> float:
    seconds = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        seconds = parse_clock(value)
    if seconds is None or not np.isfinite(seconds):
        raise FormatError(path, f"{json.dumps(value)[:40]} is not a time; expected MM:SS, HH:MM:SS or seconds", location)
    return seconds
