"""The formats of Ethobench, with one row per bout: CSV (``tidy``), which any spreadsheet reads, and Parquet (``tidy_parquet``).

A description states the unit (frames or seconds), the rate, the length and observed frames of each recording, and the behaviors. In CSV
files it consists of lines that begin with ``#`` above the table; all of them except ``# ethobench bouts 1`` are optional. In Parquet
files, meant for millions of bouts, it is JSON in the metadata of the table.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from ethobench.core import Annotation, Behavior, Ethogram, Observed, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.arrow_tables import plain_columns, read_parquet, read_schema
from ethobench.formats.base import DETAILS, Format, ignored_columns, register_format, select_entries
from ethobench.formats.bouts import SECONDS_RATE, BoutRows, frames_rate, origin_of
from ethobench.formats.frame_clock import at_rate
from ethobench.formats.tables import read_table, write_table
from ethobench.formats.text import Head, read_text

COLUMNS = ("recording", "behavior", "start", "stop", "subject", "target")
OPTIONAL = ("annotator", "confidence", "modifiers", "comment")
MAGIC = "# ethobench bouts"
LISTS = {"recording": "recordings", "behavior": "behaviors"}
KEY = b"ethobench"
NUMBERS = ("start", "stop", "confidence")


@register_format("tidy")
class TidyCsv(Format):
    """One row per bout: ``recording, behavior, start, stop, subject, target``."""

    title = "tidy bouts CSV"
    suffixes = (".csv",)
    keeps = DETAILS
    multiple_recordings = True
    multiple_annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if head.text.lstrip(' "').startswith(MAGIC) else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        description = _read_description(path)
        table = read_table(path, delimiter=_delimiter(path))
        unknown = [name for name in table.header if name and name not in (*COLUMNS, *OPTIONAL)]
        missing = [name for name in COLUMNS[:4] if name not in table]
        if missing:
            raise FormatError(path, f"no column {', '.join(missing)}; columns: {', '.join(table.header)}", "header")
        columns: dict[str, list[Any]] = {name: table.column(name) for name in table.header if name and name not in unknown}
        for name in {"start", "stop", "confidence"} & {*columns}:
            columns[name] = table.numbers(name).tolist()
        recordings = _assemble(path, description, columns, [f"row {p}" for p in table.row_numbers], rate)
        for recording in recordings:
            recording.notes = (*recording.notes, *ignored_columns(unknown))
        selected = select_entries(path, entry, [r.id for r in recordings])
        return [r for r in recordings if r.id in selected]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        description = _describe(recordings)
        preamble = [f"{MAGIC} {description.version}", f"# unit: {description.unit}"]
        if description.rate:
            preamble.append(f"# rate: {description.rate!r}")
        preamble += [f"# recording: {_line(info)}" for info in description.recordings]
        preamble += [f"# behavior: {_line(info)}" for info in description.behaviors]
        header, rows = _table_of(recordings)
        write_table(path, header, rows, preamble=preamble)
        return []


@register_format("tidy_parquet")
class TidyParquet(Format):
    """One row per bout, with the description in the metadata of the file."""

    title = "tidy bouts Parquet"
    suffixes = (".parquet",)
    keeps = DETAILS
    multiple_recordings = True
    multiple_annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        if not head.raw.startswith(b"PAR1"):
            return 0.0
        return 1.0 if KEY in (read_schema(path).metadata or {}) else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        table = read_parquet(path)
        try:
            fields = json.loads(table.schema.metadata[KEY])
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(path, f"not a valid {self.title} file ({error})") from None
        description = _check_description(path, fields)
        columns = plain_columns(path, table)
        if missing := [name for name in COLUMNS[:4] if name not in columns]:
            raise FormatError(path, f"no column {' and no '.join(missing)}; columns: {', '.join(columns) or 'none'}")
        for name, column in columns.items():
            blank: Any = float("nan") if name in NUMBERS else ""
            columns[name] = [blank if value is None else value for value in column]
        recordings = _assemble(path, description, columns, [f"row {i + 1}" for i in range(table.num_rows)], rate)
        selected = select_entries(path, entry, [r.id for r in recordings])
        return [r for r in recordings if r.id in selected]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        header, rows = _table_of(recordings)
        types = {"start": pa.int64(), "stop": pa.int64(), "confidence": pa.float64()}
        columns = {}
        for i, name in enumerate(header):
            cells = [None if row[i] == "" and name == "confidence" else row[i] for row in rows]
            columns[name] = pa.array(cells, type=types.get(name, pa.string()))
        description = _describe(recordings).model_dump_json(exclude_defaults=True)
        table = pa.table(columns).replace_schema_metadata({KEY: description.encode()})
        pq.write_table(table, path, compression="zstd")
        return []


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ObservedTrack(_Strict):
    """Observed frames of one track that differ from those of the recording."""

    behavior: str | None = None
    subject: str | None = None
    target: str | None = None
    observed: list[tuple[int, int]]


class RecordingInfo(_Strict):
    """Properties of one annotation of a recording that its rows do not state."""

    id: str
    individual: str = ""
    annotator: str = DEFAULT_ANNOTATOR
    start_time: datetime | None = None
    rate: float | None = None
    n_frames: int | None = None
    subjects: list[str] = []
    observed: list[tuple[int, int]] | None = None
    tracks: list[ObservedTrack] = []


class BehaviorInfo(_Strict):
    """One behavior of the ethogram."""

    name: str
    definition: str = ""
    background: bool = False
    point: bool = False
    key: str = ""
    channel: str = ""


class Description(_Strict):
    """The description above the rows."""

    version: int = 1
    unit: str = "seconds"
    rate: float | None = None
    recordings: list[RecordingInfo] = []
    behaviors: list[BehaviorInfo] = []


def _check_description(path: Path, fields: dict[str, Any]) -> Description:
    """Validate the description of a file."""
    try:
        description = Description(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise FormatError(path, f"{first['msg']}", f"header, {'.'.join(map(str, first['loc']))}") from None
    if description.unit not in ("frames", "seconds"):
        raise FormatError(path, f"the unit must be frames or seconds, got {description.unit!r}", "header")
    if description.version != 1:
        raise FormatError(path, f"written by a newer version (layout {description.version}); update ethobench", "header")
    return description


def _describe(recordings: Sequence[Recording]) -> Description:
    """Return the description of recordings, for a table with times in frames."""
    ethogram = Ethogram([])
    infos = []
    for recording in recordings:
        for annotator, a in recording.annotations.items():
            ethogram = ethogram.join(a.ethogram)
            all_observed = a.observed.is_complete(a.n_frames) and not a.observed.tracks
            infos.append(
                RecordingInfo(
                    id=recording.id,
                    individual="" if recording.individual == recording.id else recording.individual,
                    annotator=annotator,
                    start_time=recording.start_time,
                    rate=a.rate,
                    n_frames=a.n_frames,
                    subjects=list(a.subjects),
                    observed=None if all_observed else _pairs(a.observed.frames),
                    tracks=[ObservedTrack(**track._asdict(), observed=_pairs(frames)) for track, frames in a.observed.tracks.items()],
                )
            )
    rates = {info.rate for info in infos}
    shared = rates.pop() if len(rates) == 1 else None
    if shared:
        for info in infos:
            info.rate = None
    behaviors = [BehaviorInfo(**asdict(b), background=b.name == ethogram.background_name) for b in ethogram]
    return Description(unit="frames", rate=shared, recordings=infos, behaviors=behaviors)


def _table_of(recordings: Sequence[Recording]) -> tuple[list[str], list[list[Any]]]:
    """Return the header and one row per bout."""
    annotations = [(r.id, name, a) for r in recordings for name, a in r.annotations.items()]
    names_annotators = any(name != DEFAULT_ANNOTATOR for _, name, _ in annotations)
    extra = [
        *(["annotator"] if names_annotators else []),
        *(["confidence"] if any(a.confidence is not None for *_, a in annotations) else []),
        *(["modifiers"] if any(a.modifiers is not None for *_, a in annotations) else []),
        *(["comment"] if any(a.comment is not None for *_, a in annotations) else []),
    ]
    rows = [row for recording, name, a in annotations for row in _rows(recording, name, a, extra)]
    return [*COLUMNS, *extra], rows


def _rows(recording: str, annotator: str, a: Annotation, extra: Sequence[str]) -> list[list[Any]]:
    """Return one row per bout, in the order of `Annotation.order`."""
    subject, target = a.names(a.subject), a.names(a.target)
    rows = []
    for i in np.argsort(a.order, kind="stable"):
        row: list[Any] = [
            recording,
            a.ethogram[int(a.behavior[i])].name,
            int(a.start[i]),
            int(a.stop[i]),
            subject[i] or "",
            target[i] or "",
        ]
        for name in extra:
            column = {"confidence": a.confidence, "modifiers": a.modifiers, "comment": a.comment}.get(name)
            row.append(annotator if name == "annotator" else "" if column is None or _missing(column[i]) else column[i])
        rows.append(row)
    return rows


def _assemble(
    path: Path, description: Description, columns: dict[str, list[Any]], locations: Sequence[str], rate: float | None
) -> list[Recording]:
    """Return recordings from the columns of a tidy table."""
    ethogram = _ethogram(description, columns["behavior"])
    infos = {(info.id, info.annotator): info for info in description.recordings}
    annotators = columns.get("annotator") or [DEFAULT_ANNOTATOR] * len(locations)
    tables: dict[tuple[str, str], BoutRows] = {key: BoutRows(path) for key in infos}
    for i, location in enumerate(locations):
        rows = tables.setdefault((columns["recording"][i], annotators[i] or DEFAULT_ANNOTATOR), BoutRows(path))
        rows.add(
            columns["start"][i],
            columns["stop"][i],
            columns["behavior"][i],
            location=location,
            **{name: columns[name][i] for name in ("subject", "target", "modifiers", "comment", "confidence") if name in columns},
        )
    recordings: dict[str, Recording] = {}
    for (recording, annotator), rows in tables.items():
        info = infos.get((recording, annotator), RecordingInfo(id=recording, annotator=annotator))
        annotation, notes = _annotation(rows, info, description, ethogram, rate)
        result = recordings.setdefault(
            recording,
            Recording(
                recording,
                individual=info.individual,
                rate=annotation.rate,
                start_time=info.start_time,
                subjects=annotation.subjects,
                clock_origin=origin_of(info.rate or description.rate),
            ),
        )
        result.annotations = {**result.annotations, annotator: annotation}
        result.n_frames = max(result.n_frames or 0, annotation.n_frames)
        result.notes = (*result.notes, *notes)
    return list(recordings.values())


def _annotation(
    rows: BoutRows, info: RecordingInfo, description: Description, ethogram: Ethogram, rate: float | None
) -> tuple[Annotation, list[Note]]:
    stated = info.rate or description.rate
    notes: list[Note] = []
    if stated is None and description.unit == "frames":
        stated, notes = frames_rate(rate)
    clock = stated or rate or SECONDS_RATE
    observed = None
    if info.observed is not None or info.tracks:
        frames = iv.full(info.n_frames or 0) if info.observed is None else _intervals(info.observed)
        observed = Observed(frames, {Track(t.behavior, t.subject, t.target): _intervals(t.observed) for t in info.tracks})
    annotation, more_notes = rows.to_annotation(
        ethogram, clock, seconds=description.unit == "seconds", n_frames=info.n_frames, observed=observed, subjects=info.subjects
    )
    annotation, resampling = at_rate(annotation, rate)
    return annotation, [*notes, *more_notes, *resampling]


def _ethogram(description: Description, used: Sequence[str]) -> Ethogram:
    listed = [Behavior(b.name, b.definition, b.point, b.key, b.channel) for b in description.behaviors]
    listed_names = {b.name for b in listed}
    names = [*listed, *(Behavior(name) for name in dict.fromkeys(used) if name not in listed_names)]
    background = next((b.name for b in description.behaviors if b.background), None)
    if not description.behaviors:
        background = guess_background(b.name for b in names)
    return Ethogram(names, background)


def _pairs(a: iv.Intervals) -> list[tuple[int, int]]:
    return list(zip(a.start.tolist(), a.stop.tolist(), strict=True))


def _intervals(pairs: Sequence[tuple[int, int]]) -> iv.Intervals:
    return iv.intervals([a for a, _ in pairs], [b for _, b in pairs])


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _line(info: Any) -> str:
    return json.dumps(info.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


def _as_written(line: str) -> str:
    """Undo the changes of spreadsheets to a line of the description, which they split at commas and quote."""
    if not line.startswith('"#'):
        return line
    candidates = [",".join(next(csv.reader([line], delimiter=delimiter))).rstrip(", ") for delimiter in ",;\t"]
    return next((candidate for candidate in candidates if _is_json(candidate.partition(":")[2])), candidates[0])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _delimiter(path: Path) -> str:
    """Return the delimiter: a comma, unless a spreadsheet has changed it."""
    header = next((line for line in read_text(path).split("\n") if line.strip() and not line.lstrip(' "').startswith("#")), "")
    return next((mark for mark in ",;\t" if mark in header), ",")


def _read_description(path: Path) -> Description:
    fields: dict[str, Any] = {"recordings": [], "behaviors": []}
    for number, written in enumerate(read_text(path).split("\n"), start=1):
        if not written.strip(" ,;\t"):
            continue
        line = _as_written(written.strip())
        if not line.startswith("#"):
            break
        if line.startswith(MAGIC):
            fields["version"] = line.removeprefix(MAGIC).strip(' ,;\t"') or 1
            continue
        key, _, value = line.lstrip("# ").partition(":")
        key, value = key.strip(), value.strip()
        if key in LISTS:
            try:
                fields[LISTS[key]].append(json.loads(value))
            except json.JSONDecodeError as error:
                raise FormatError(path, f"the description of the {key} is not valid JSON ({error.msg})", f"line {number}") from None
        elif key in ("unit", "rate"):
            fields[key] = value.rstrip(",;\t")
    return _check_description(path, fields)
