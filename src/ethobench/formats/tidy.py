"""Tidy bouts as CSV, our own format: one row per bout, read by any spreadsheet.

Lines that begin with ``#`` stand above the table and say the rest: the unit (frames or seconds), the rate, each
recording's length and what was observed, the behaviors. All of them but ``# ethobench bouts 1`` may be left out.

MERGED: What the tidy CSV and Parquet formats share: one row per bout, and a description of everything else.

MERGED: Tidy bouts as Parquet: the same table as `tidy`, for millions of bouts.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from ethobench.core import Annotation, Behavior, Ethogram, Observed, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.arrow_tables import plain_columns, read_parquet, read_schema
from ethobench.formats.base import DETAILS, Format, pick_entry, register_format
from ethobench.formats.bouts import SECONDS_RATE, BoutRows, frames_rate, origin_of
from ethobench.formats.tables import read_table, write_table
from ethobench.formats.text import Head, read_text

COLUMNS = ("recording", "behavior", "start", "stop", "subject", "target")
OPTIONAL = ("annotator", "confidence", "modifiers", "comment")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ObservedTrack(_Strict):
    """An exception to what was observed."""

    behavior: str | None = None
    subject: str | None = None
    target: str | None = None
    observed: list[tuple[int, int]]


class RecordingInfo(_Strict):
    """What the rows cannot tell of a recording."""

    id: str
    individual: str = ""
    annotator: str = DEFAULT_ANNOTATOR
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
    """Everything that stands above the rows."""

    version: int = 1
    unit: str = "seconds"
    rate: float | None = None
    recordings: list[RecordingInfo] = []
    behaviors: list[BehaviorInfo] = []


def check_description(path: Path, fields: dict[str, Any]) -> Description:
    """Validate what a file says of itself."""
    try:
        description = Description(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise FormatError(path, f"{first['msg']}", f"header, {'.'.join(map(str, first['loc']))}") from None
    if description.unit not in ("frames", "seconds"):
        raise FormatError(path, f"the unit is frames or seconds, not {description.unit!r}", "header")
    if description.version != 1:
        raise FormatError(path, f"written by a newer version (layout {description.version}); update ethobench", "header")
    return description


def describe(recordings: Sequence[Recording]) -> Description:
    """Describe recordings that are about to be written; times will be frames."""
    ethogram = Ethogram([])
    infos = []
    for recording in recordings:
        for annotator, a in recording.annotations.items():
            ethogram = ethogram.join(a.ethogram)
            whole = a.observed.is_complete(a.n_frames) and not a.observed.tracks
            infos.append(
                RecordingInfo(
                    id=recording.id,
                    individual="" if recording.individual == recording.id else recording.individual,
                    annotator=annotator,
                    rate=a.rate,
                    n_frames=a.n_frames,
                    subjects=list(a.subjects),
                    observed=None if whole else _pairs(a.observed.frames),
                    tracks=[ObservedTrack(**track._asdict(), observed=_pairs(where)) for track, where in a.observed.tracks.items()],
                )
            )
    rates = {info.rate for info in infos}
    shared = rates.pop() if len(rates) == 1 else None
    if shared:
        for info in infos:
            info.rate = None
    behaviors = [BehaviorInfo(**asdict(b), background=b.name == ethogram.background_name) for b in ethogram]
    return Description(unit="frames", rate=shared, recordings=infos, behaviors=behaviors)


def rows_of(recordings: Sequence[Recording]) -> tuple[list[str], list[list[Any]]]:
    """Return the header and one row per bout."""
    annotations = [(r.id, name, a) for r in recordings for name, a in r.annotations.items()]
    several = any(name != DEFAULT_ANNOTATOR for _, name, _ in annotations)
    extra = [
        *(["annotator"] if several else []),
        *(["confidence"] if any(a.confidence is not None for *_, a in annotations) else []),
        *(["modifiers"] if any(a.modifiers is not None for *_, a in annotations) else []),
        *(["comment"] if any(a.comment is not None for *_, a in annotations) else []),
    ]
    rows = [row for recording, name, a in annotations for row in _rows(recording, name, a, extra)]
    return [*COLUMNS, *extra], rows


def _rows(recording: str, annotator: str, a: Annotation, extra: Sequence[str]) -> list[list[Any]]:
    """List the bouts in the order of their source, so that it survives."""
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


def assemble(
    path: Path, description: Description, columns: dict[str, list[Any]], locations: Sequence[str], rate: float | None
) -> list[Recording]:
    """Make recordings from the columns of a tidy table."""
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
        made = recordings.setdefault(
            recording,
            Recording(
                recording,
                individual=info.individual,
                rate=annotation.rate,
                subjects=annotation.subjects,
                clock_origin=origin_of(info.rate or description.rate),
            ),
        )
        made.annotations = {**made.annotations, annotator: annotation}
        made.n_frames = max(made.n_frames or 0, annotation.n_frames)
        made.notes = (*made.notes, *notes)
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
    annotation, more = rows.to_annotation(
        ethogram, clock, seconds=description.unit == "seconds", n_frames=info.n_frames, observed=observed, subjects=info.subjects
    )
    if rate is not None and rate != annotation.rate:
        annotation = annotation.resample(rate)
        more = [*more, Note(f"resampled from the file's {clock:g} Hz to {rate:g} Hz")]
    return annotation, notes + more


def _ethogram(description: Description, used: Sequence[str]) -> Ethogram:
    listed = [Behavior(b.name, b.definition, b.point, b.key, b.channel) for b in description.behaviors]
    known = {b.name for b in listed}
    names = [*listed, *(Behavior(name) for name in dict.fromkeys(used) if name not in known)]
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


MAGIC = "# ethobench bouts"
LISTS = {"recording": "recordings", "behavior": "behaviors"}


@register_format("tidy")
class TidyCsv(Format):
    """One row per bout: ``recording, behavior, start, stop, subject, target``."""

    title = "tidy bouts CSV"
    suffixes = (".csv",)
    keeps = DETAILS
    several = True
    annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if head.text.lstrip(' "').startswith(MAGIC) else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        description = _read_description(path)
        table = read_table(path, delimiter=_delimiter(path))
        unknown = [name for name in table.header if name and name not in (*COLUMNS, *OPTIONAL)]
        missing = [name for name in COLUMNS[:4] if name not in table]
        if missing:
            raise FormatError(path, f"no column {', '.join(missing)}; there are: {', '.join(table.header)}", "header")
        columns: dict[str, list[Any]] = {name: table.column(name) for name in table.header if name and name not in unknown}
        for name in {"start", "stop", "confidence"} & {*columns}:
            columns[name] = table.numbers(name).tolist()
        recordings = assemble(path, description, columns, [f"row {p}" for p in table.row_numbers], rate)
        if unknown:
            for recording in recordings:
                recording.notes = (*recording.notes, Note(f"columns not understood and left out: {', '.join(unknown)}"))
        wanted = pick_entry(path, entry, [r.id for r in recordings])
        return [r for r in recordings if r.id in wanted]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        description = describe(recordings)
        preamble = [f"{MAGIC} {description.version}", f"# unit: {description.unit}"]
        if description.rate:
            preamble.append(f"# rate: {description.rate!r}")
        preamble += [f"# recording: {_line(info)}" for info in description.recordings]
        preamble += [f"# behavior: {_line(info)}" for info in description.behaviors]
        header, rows = rows_of(recordings)
        write_table(path, header, rows, preamble=preamble)
        return []


def _line(info: Any) -> str:
    return json.dumps(info.model_dump(exclude_defaults=True), ensure_ascii=False)


def _as_written(line: str) -> str:
    """Undo what a spreadsheet does to a line of the description: it takes commas for cells, and puts quotes around them."""
    if not line.startswith('"#'):
        return line
    ways = [",".join(next(csv.reader([line], delimiter=delimiter))).rstrip(", ") for delimiter in ",;\t"]
    return next((way for way in ways if _is_json(way.partition(":")[2])), ways[0])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _delimiter(path: Path) -> str:
    """Return what stands between cells: a comma, unless a spreadsheet has put something else there."""
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
                raise FormatError(path, f"the description of the {key} is damaged ({error.msg})", f"line {number}") from None
        elif key in ("unit", "rate"):
            fields[key] = value.rstrip(",;\t")
    return check_description(path, fields)


KEY = b"ethobench"
NUMBERS = ("start", "stop", "confidence")


@register_format("tidy_parquet")
class TidyParquet(Format):
    """One row per bout, with the description in the file's metadata."""

    title = "tidy bouts Parquet"
    suffixes = (".parquet",)
    keeps = DETAILS
    several = True
    annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        if not head.raw.startswith(b"PAR1"):
            return 0.0
        return 1.0 if KEY in (read_schema(path).metadata or {}) else 0.0

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        import pyarrow as pa

        try:
            table = read_parquet(path)
            fields = json.loads(table.schema.metadata[KEY])
        except EthobenchError:
            raise
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
            raise FormatError(path, f"this is not a sound tidy Parquet file ({error})") from None
        description = check_description(path, fields)
        columns = plain_columns(path, table)
        if missing := [name for name in COLUMNS[:4] if name not in columns]:
            raise FormatError(path, f"no column {' and no '.join(missing)}; there are: {', '.join(columns) or 'none'}")
        for name, column in columns.items():
            blank: Any = float("nan") if name in NUMBERS else ""
            columns[name] = [blank if value is None else value for value in column]
        recordings = assemble(path, description, columns, [f"row {i + 1}" for i in range(table.num_rows)], rate)
        wanted = pick_entry(path, entry, [r.id for r in recordings])
        return [r for r in recordings if r.id in wanted]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        header, rows = rows_of(recordings)
        types = {"start": pa.int64(), "stop": pa.int64(), "confidence": pa.float64()}
        columns = {}
        for i, name in enumerate(header):
            cells = [None if row[i] == "" and name == "confidence" else row[i] for row in rows]
            columns[name] = pa.array(cells, type=types.get(name, pa.string()))
        description = describe(recordings).model_dump_json(exclude_defaults=True)
        table = pa.table(columns).replace_schema_metadata({KEY: description.encode()})
        pq.write_table(table, path, compression="zstd")
        return []
