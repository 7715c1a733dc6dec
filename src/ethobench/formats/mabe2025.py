"""MABe 2025 annotation tables: a row per bout with agent, target, action, first frame and stop frame.

The training set has one Parquet file per video, named after it, with numbers for mice; a submission is one CSV with
``row_id`` and ``video_id``. Both read alike: mouse 1 is "mouse1", and an action on oneself (target "self", or the agent's
own number) has no target. The challenge's scorer counts frames from ``start_frame`` up to, not including, ``stop_frame``, and so
does this reader. Videos were labelled for some actions of some mice only; ``labeled=`` takes that list (the metadata's
``behaviors_labeled``), and everything else then counts as not observed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Observed, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.arrow_tables import plain_columns, read_parquet, read_schema
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.bouts import BoutRows, frames_rate
from ethobench.formats.per_frame import background_notes, named_ethogram, rate_notes
from ethobench.formats.tables import read_table, write_table
from ethobench.formats.text import Head, parse_number

COLUMNS = ("agent_id", "target_id", "action", "start_frame", "stop_frame")
KNOWN = (*COLUMNS, "row_id", "video_id")
SELF = "self"
PARQUET = b"PAR1"

Labeled = Sequence[str] | str | Mapping[str, Sequence[str] | str] | None


@register_format("mabe2025")
class Mabe2025(Format):
    """Bouts with agent and target; videos are entries.

    Options for reading: ``rate``, since the file tells none; ``labeled``, the actions that were labelled, each as
    "mouse1,mouse2,sniff" or "mouse1,self,rear" (a list, its JSON text, or a mapping of videos to these).
    """

    title = "MABe 2025 table"
    suffixes = (".parquet", ".csv")
    keeps = ("subjects", "targets", "overlaps", "touching")
    several = True

    def sniff(self, path: Path, head: Head) -> float:
        if not head.raw.startswith(PARQUET):
            return 0.95 if {*COLUMNS} <= {*head.header} else 0.0
        return 0.95 if {*COLUMNS} <= {*read_schema(path).names} else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None, labeled: Labeled = None) -> list[Recording]:
        columns, locations = _columns(path)
        clock, notes = frames_rate(rate)
        extra = [name for name in columns if name and name not in KNOWN]
        if extra:
            notes.append(Note(f"columns not understood and left out: {', '.join(extra)}"))
        tables: dict[str, BoutRows] = {} if "video_id" in columns else {path.stem: BoutRows(path)}
        for i, location in enumerate(locations):
            agent, target = _mouse(columns["agent_id"][i]), _mouse(columns["target_id"][i])
            video = _text(columns["video_id"][i]) if "video_id" in columns else path.stem
            action = _text(columns["action"][i])
            if not action or not video:
                raise FormatError(path, f"no {'action' if video else 'video_id'} is named", location)
            tables.setdefault(video, BoutRows(path)).add(
                _frame(path, columns["start_frame"][i], location),
                _frame(path, columns["stop_frame"][i], location),
                action,
                subject=agent,
                target="" if target in (SELF, agent) else target,
                location=location,
            )
        recordings = []
        for video in pick_entry(path, entry, list(tables)):
            annotation, more = _annotation(tables[video], clock, _tracks(video, labeled))
            made = {DEFAULT_ANNOTATOR: annotation}
            recordings.append(
                Recording(video, subjects=annotation.subjects, annotations=made, notes=(*notes, *more), clock_origin=ClockOrigin.ASSUMED)
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
            whole = ("row_id", "start_frame", "stop_frame")
            pq.write_table(pa.table({n: pa.array(c, type=pa.int64() if n in whole else pa.string()) for n, c in cells.items()}), path)
        else:
            write_table(path, header, table)
        notes = rate_notes(self.title, "none", recordings[0].annotation().rate)
        for recording in recordings:
            a = recording.annotation()
            notes += background_notes(self.title, a.ethogram)
            unused = [name for code, name in enumerate(a.ethogram.names) if not (a.behavior == code).any()]
            if unused:
                notes.append(Note(f"{self.title} names only what occurs: {', '.join(unused)} will be unknown"))
            if ((a.target == a.subject) & (a.subject >= 0)).any():
                notes.append(Note(f"an animal that is its own target is written as {SELF!r}, and will read as without target"))
        return notes


def _columns(path: Path) -> tuple[dict[str, list[Any]], list[str]]:
    """Read the table, whichever of the two file kinds it is."""
    with path.open("rb") as file:
        parquet = file.read(4) == PARQUET
    if parquet:
        import pyarrow as pa

        try:
            table = read_parquet(path)
        except EthobenchError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FormatError(path, f"this is not a sound Parquet file ({' '.join(str(error).splitlines()[:1])})") from None
        columns = plain_columns(path, table)
        locations = [f"row {i + 1}" for i in range(table.num_rows)]
    else:
        text = read_table(path)
        columns = {name: list(text.column(name)) for name in text.header}
        locations = [f"row {number}" for number in text.row_numbers]
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise FormatError(path, f"no column {', '.join(missing)}; there are: {', '.join(columns)}", "header")
    return columns, locations


def _annotation(rows: BoutRows, rate: float, tracks: list[Track] | None) -> tuple[Annotation, list[Note]]:
    names = dict.fromkeys([*(str(t.behavior) for t in tracks or []), *rows.behavior])
    subjects = sorted({name for t in tracks or [] for name in (t.subject, t.target) if name})
    annotation, notes = rows.to_annotation(named_ethogram(list(names)), rate, seconds=False, subjects=subjects)
    if tracks is not None:
        whole = iv.full(annotation.n_frames)
        annotation = annotation.with_observed(Observed(iv.empty(), dict.fromkeys(tracks, whole)))
        stray = [track for track in annotation.tracks() if track not in tracks]
        if stray:
            words = ", ".join(_words(Track(*track)) for track in stray)
            notes.append(Note(f"bouts of actions that are not in labeled, so they count as not observed: {words}"))
    return annotation, notes


def _tracks(video: str, labeled: Labeled) -> list[Track] | None:
    """Return the tracks that a video was labelled for."""
    if isinstance(labeled, Mapping):
        if video not in labeled:
            raise EthobenchError(f"labeled= says nothing of video {video!r}; it has: {', '.join(map(str, labeled))}")
        labeled = labeled[video]
    if labeled is None:
        return None
    items: Sequence[Any] = [labeled] if isinstance(labeled, str) else labeled
    if isinstance(labeled, str) and labeled.lstrip().startswith("["):
        try:
            items = json.loads(labeled)
        except json.JSONDecodeError as error:
            raise EthobenchError(f"labeled= is no valid JSON list ({error.msg})") from None
    tracks = []
    for item in items:
        parts = [part.strip() for part in str(item).replace("'", "").split(",")]
        if len(parts) != 3 or not all(parts):
            raise EthobenchError(f"labeled= takes entries such as 'mouse1,mouse2,sniff', not {item!r}")
        agent, target = _mouse(parts[0]), _mouse(parts[1])
        tracks.append(Track(parts[2], agent, None if target in (SELF, agent) else target))
    return list(dict.fromkeys(tracks))


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


def _text(value: Any) -> str:
    blank = value is None or (isinstance(value, float) and np.isnan(value))
    return "" if blank else str(value).strip()


def _mouse(value: Any) -> str:
    """Name a mouse: numbers are written out as submissions do."""
    text = _text(value)
    text = text.removesuffix(".0")
    return f"mouse{text}" if text.isdecimal() else text


def _frame(path: Path, value: Any, location: str) -> float:
    if value is None or value == "":
        return float("nan")
    try:
        return parse_number(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        raise FormatError(path, f"{value!r} is no frame number", location) from None
