"""MABe 2025 annotation tables: one row per bout with agent, target, action, start frame and stop frame.

The training set has one Parquet file per video, named after it, with numbers for mice. A submission is one CSV with ``row_id`` and
``video_id``. In both, mouse 1 is read as "mouse1", and an action directed at the agent (target "self", or the number of the agent) has no
target. As in the scorer of the challenge, ``stop_frame`` is the first frame after the bout. Videos are labeled for some actions of some
mice only; ``labeled=`` takes that list (``behaviors_labeled`` of the metadata), and everything else is then unobserved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Observed, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.arrow_tables import plain_columns, read_parquet, read_schema
from ethobench.formats.base import Format, ignored_columns, register_format, select_entries
from ethobench.formats.bouts import BoutRows, background_notes, frames_rate, named_ethogram, unused_behavior_notes
from ethobench.formats.mabe2025_tables import BOUT_COLUMNS, PARQUET, SELF, id_text, mouse_name, parse_labeled
from ethobench.formats.per_frame import rate_notes
from ethobench.formats.tables import read_table, write_table
from ethobench.formats.text import Head, parse_number

COLUMNS = BOUT_COLUMNS
ALL_COLUMNS = (*COLUMNS, "row_id", "video_id")

Labeled = Sequence[str] | str | Mapping[str, Sequence[str] | str] | None


@register_format("mabe2025")
class Mabe2025(Format):
    """Bouts with agent and target; entries are videos.

    Options for reading: ``rate``, because the file does not state it; ``labeled``, the labeled actions, each as
    "mouse1,mouse2,sniff" or "mouse1,self,rear" (a list, its JSON text, or a mapping from videos to these).
    """

    title = "MABe 2025 table"
    suffixes = (".parquet", ".csv")
    keeps = ("subjects", "targets", "overlaps", "touching")
    multiple_recordings = True

    def sniff(self, path: Path, head: Head) -> float:
        if not head.raw.startswith(PARQUET):
            return 0.95 if {*COLUMNS} <= {*head.header} else 0.0
        return 0.95 if {*COLUMNS} <= {*read_schema(path).names} else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None, labeled: Labeled = None) -> list[Recording]:
        columns, locations = _columns(path)
        clock, notes = frames_rate(rate)
        notes += ignored_columns([name for name in columns if name and name not in ALL_COLUMNS])
        tables: dict[str, BoutRows] = {} if "video_id" in columns else {path.stem: BoutRows(path)}
        for i, location in enumerate(locations):
            agent, target = mouse_name(columns["agent_id"][i]), mouse_name(columns["target_id"][i])
            video = id_text(columns["video_id"][i]) if "video_id" in columns else path.stem
            action = id_text(columns["action"][i])
            if not action or not video:
                raise FormatError(path, "blank action" if video else "blank video_id", location)
            tables.setdefault(video, BoutRows(path)).add(
                _frame(path, columns["start_frame"][i], location),
                _frame(path, columns["stop_frame"][i], location),
                action,
                subject=agent,
                target="" if target in (SELF, agent) else target,
                location=location,
            )
        recordings = []
        for video in select_entries(path, entry, list(tables)):
            annotation, more_notes = _annotation(tables[video], clock, _tracks(video, labeled))
            recordings.append(
                Recording(
                    video,
                    subjects=annotation.subjects,
                    annotations={DEFAULT_ANNOTATOR: annotation},
                    notes=(*notes, *more_notes),
                    clock_origin=ClockOrigin.ASSUMED,
                )
            )
        return recordings

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        parquet = path.suffix.lower() == ".parquet"
        named = not parquet or len(recordings) > 1
        rows = [row for r in recordings for row in _rows(r.id, r.annotation())]
        header = [*(["row_id", "video_id"] if named else []), *COLUMNS]
        table = [[number, *row] if named else row[1:] for number, row in enumerate(rows)]
        if parquet:
            import pyarrow as pa
            import pyarrow.parquet as pq

            cells = {name: [row[i] for row in table] for i, name in enumerate(header)}
            integers = ("row_id", "start_frame", "stop_frame")
            pq.write_table(pa.table({n: pa.array(c, type=pa.int64() if n in integers else pa.string()) for n, c in cells.items()}), path)
        else:
            write_table(path, header, table)
        notes = rate_notes(self.title, "none", recordings[0].annotation().rate)
        for recording in recordings:
            a = recording.annotation()
            notes += background_notes(self.title, a.ethogram)
            notes += unused_behavior_notes(self.title, a)
            if ((a.target == a.subject) & (a.subject >= 0)).any():
                message = f"a target equal to the subject is written as {SELF!r} and will be read as no target"
                notes.append(Note(message, code="lost-targets"))
        return notes


def _columns(path: Path) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the columns of a Parquet or CSV table by name, and the location of each row."""
    with path.open("rb") as file:
        parquet = file.read(4) == PARQUET
    if parquet:
        table = read_parquet(path)
        columns = plain_columns(path, table)
        locations = [f"row {i + 1}" for i in range(table.num_rows)]
    else:
        text = read_table(path)
        columns = {name: list(text.column(name)) for name in text.header}
        locations = [f"row {number}" for number in text.row_numbers]
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise FormatError(path, f"no column {', '.join(missing)}; columns: {', '.join(columns)}", "header")
    return columns, locations


def _annotation(rows: BoutRows, rate: float, tracks: Sequence[Track] | None) -> tuple[Annotation, list[Note]]:
    names = dict.fromkeys([*(str(t.behavior) for t in tracks or []), *rows.behavior])
    subjects = sorted({name for t in tracks or [] for name in (t.subject, t.target) if name})
    annotation, notes = rows.to_annotation(named_ethogram(list(names)), rate, seconds=False, subjects=subjects)
    if tracks is not None:
        all_frames = iv.full(annotation.n_frames)
        annotation = annotation.with_observed(Observed(iv.empty(), dict.fromkeys(tracks, all_frames)))
        unlabeled = [track for track in annotation.tracks() if track not in tracks]
        if unlabeled:
            actions = ", ".join(_words(Track(*track)) for track in unlabeled)
            notes.append(Note(f"bouts of actions that are not in labeled=; read as unobserved: {actions}", code="unlabeled-bouts"))
    return annotation, notes


def _tracks(video: str, labeled: Labeled) -> tuple[Track, ...] | None:
    """Return the labeled tracks of a video; None if all actions are labeled."""
    if isinstance(labeled, Mapping):
        if video not in labeled:
            raise EthobenchError(f"labeled= has no entry for video {video!r}; entries: {', '.join(map(str, labeled))}")
        labeled = labeled[video]
    return None if labeled is None else parse_labeled(labeled)


def _words(track: Track) -> str:
    return f"{track.subject or '?'},{track.target or SELF},{track.behavior}"


def _rows(video: str, a: Annotation) -> list[list[Any]]:
    subject, target = a.names(a.subject), a.names(a.target)
    rows = []
    for i in np.argsort(a.order, kind="stable"):
        if a.stop[i] > a.start[i]:
            on = target[i] if target[i] and target[i] != subject[i] else SELF if subject[i] else ""
            rows.append([video, subject[i] or "", on, a.ethogram[int(a.behavior[i])].name, int(a.start[i]), int(a.stop[i])])
    return rows


def _frame(path: Path, value: Any, location: str) -> float:
    if value is None or value == "":
        return float("nan")
    try:
        return parse_number(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        raise FormatError(path, f"{value!r} is not a frame number", location) from None
