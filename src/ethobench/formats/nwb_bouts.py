"""Bouts in NWB sessions: tables of intervals, epochs, and annotations written by Ethobench."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Annotation, Behavior, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.messages import Message, ReaderOption
from ethobench.formats import hdf5
from ethobench.formats.base import ignored_columns
from ethobench.formats.bouts import SECONDS_RATE, BoutRows, to_clock
from ethobench.formats.frame_clock import at_rate
from ethobench.formats.text import parse_number

if TYPE_CHECKING:
    import h5py

SUMMARY_TABLE = "ethobench_annotations"
UNKNOWN_START = datetime(1970, 1, 1, tzinfo=UTC)
MAX_GROUPS = 200_000
LABELS = (
    "behavior",
    "behaviour",
    "label",
    "labels",
    "behavior_label",
    "behavior_name",
    "event",
    "event_name",
    "state",
    "motif",
    "syllable",
)
SUBJECTS = ("subject", "subject_id", "agent", "animal", "individual")
TARGETS = ("target", "target_id", "recipient", "receiver")
COMMENTS = ("comment", "comments", "notes")
CONFIDENCES = ("confidence", "probability", "score")
OTHER_COLUMNS = ("id", "start_time", "stop_time", "timeseries", "timeseries_index", "tags", "tags_index")
DETAIL_COLUMNS = {"subject": SUBJECTS, "target": TARGETS, "modifiers": ("modifiers",), "comment": COMMENTS, "confidence": CONFIDENCES}
BEHAVIOR_COLUMNS = ("definition", "behavior_type", "key", "channel", "background")


class Content:
    """Groups of a session that hold bouts or poses; links to other files are noted, never followed.

    Attributes
    ----------
    tables, epochs, poses, spatial : list of h5py.Group
        Interval tables, ``BehavioralEpochs``, ``PoseEstimation`` and ``SpatialSeries``.
    summary : h5py.Group or None
        Table ``ethobench_annotations`` of files written by Ethobench.
    """

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path, self.file = path, file
        self.notes: list[Note] = []
        self.tables: list[h5py.Group] = []
        self.epochs: list[h5py.Group] = []
        self.poses: list[h5py.Group] = []
        self.spatial: list[h5py.Group] = []
        self._visited: set[int] = set()
        for name in ("intervals", "processing", "acquisition", "analysis", "scratch"):
            if name in {*file}:
                self._visit(file, name)
        self.summary = hdf5.member(path, file, f"processing/behavior/{SUMMARY_TABLE}")

    def _visit(self, parent: h5py.Group, name: str) -> None:
        import h5py

        link = parent.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            self.notes.append(Note("ignored a link to another file", f"{parent.name}/{name}", "ignored-link"))
        if not isinstance(link, h5py.HardLink):
            return
        node = parent[name]
        address = h5py.h5o.get_info(node.id).addr
        if not isinstance(node, h5py.Group) or address in self._visited:
            return
        self._visited.add(address)
        if len(self._visited) > MAX_GROUPS:
            raise FormatError(self.path, f"refused: more than {MAX_GROUPS:,} groups")
        kind = kind_of(node)
        if kind == "PoseEstimation":
            self.poses.append(node)
        elif kind == "SpatialSeries":
            self.spatial.append(node)
        elif kind == "BehavioralEpochs":
            self.epochs.append(node)
        elif kind in ("TimeIntervals", "EthogramBouts") or {"start_time", "stop_time"} <= {*node}:
            self.tables.append(node)
        else:
            for inner in hdf5.names(node):
                self._visit(node, inner)


def kind_of(node: Any) -> str:
    """Return the NWB type of a node; empty if it states none."""
    return "" if node is None else hdf5.plain_text(node.attrs.get("neurodata_type", ""))


def last_name(node: Any) -> str:
    """Return the name of a node without its parent groups."""
    return str(node.name.rpartition("/")[2])


def read_annotations(
    path: Path, content: Content, rate: float | None, label: str | None, pose_rate: float | None, begin: float, length: int | None
) -> list[tuple[str, Annotation, list[Note]]]:
    """Return annotator, annotation and notes of every table of bouts."""
    if content.summary is not None:
        return _read_summary(path, content, rate)
    clock = rate or pose_rate or SECONDS_RATE
    annotations = []
    for table in content.tables:
        name = last_name(table)
        rows, blanks, notes = _bout_rows(path, table, label, begin)
        if rows is None:
            content.notes += notes
            continue
        ethogram = _ethogram(path, hdf5.member(path, table, "ethogram"), rows.behavior)
        observed = hdf5.member(path, table, "observation_intervals")
        spans = None if observed is None else _spans(path, observed, clock, begin)
        annotation, more_notes = _annotation(rows, ethogram, clock, length, spans, blanks)
        annotator = hdf5.plain_text(table.attrs.get("annotator", "")) or name
        annotations.append((annotator, annotation, [*notes, *more_notes]))
    for epochs in content.epochs:
        rows = _epoch_rows(path, epochs, begin)
        annotation, more_notes = _annotation(rows, _ethogram(path, None, rows.behavior), clock, length, None, [])
        annotations.append((last_name(epochs), annotation, more_notes))
    return annotations


def _annotation(
    rows: BoutRows,
    ethogram: Ethogram,
    rate: float,
    length: int | None,
    observed_spans: iv.Intervals | None,
    blanks: list[tuple[float, float]],
) -> tuple[Annotation, list[Note]]:
    """Return an annotation and notes; a bout without a stop makes its track unobserved from its start on."""
    annotation, notes = rows.to_annotation(ethogram, rate, seconds=True, n_frames=length)
    n_frames = annotation.n_frames
    opened = [
        (start, i) for i, (start, stop) in enumerate(zip(rows.start, rows.stop, strict=True)) if np.isfinite(start) and np.isnan(stop)
    ]
    tracks: dict[Track, iv.Intervals] = {}
    for start, i in sorted(opened, reverse=True):
        n_frames = max(n_frames, int(to_clock(start, rate, seconds=True)))
        tracks[Track(rows.behavior[i], rows.subject[i] or None)] = iv.full(int(to_clock(start, rate, seconds=True)))
    if observed_spans is not None:
        n_frames = max(n_frames, int(observed_spans.stop.max(initial=0)))
    frames = iv.full(n_frames) if observed_spans is None else iv.union(observed_spans)
    if blanks:
        unobserved = iv.intervals(*(to_clock(times, rate, seconds=True) for times in zip(*blanks, strict=True)))
        n_frames = max(n_frames, int(unobserved.stop.max()))
        frames = iv.difference(iv.full(n_frames) if observed_spans is None else frames, iv.union(unobserved))
    observed = Observed(frames, {track: iv.intersection(track_frames, frames) for track, track_frames in tracks.items()})
    return annotation.extend(n_frames).with_observed(observed), notes


def _bout_rows(
    path: Path, table: h5py.Group, label: str | None, begin: float, *, nan_is_blank: bool = True
) -> tuple[BoutRows | None, list[tuple[float, float]], list[Note]]:
    """Return the bouts of a table, the spans of rows without a behavior, and notes; None for the bouts if no column holds behaviors."""
    columns = {name: name for name in hdf5.names(table) if name not in ("ethogram", "observation_intervals")}
    location = last_name(table)
    if label is not None and label not in columns:
        return None, [], [Note(f"ignored table without a column {label!r} (columns: {', '.join(columns)})", location, "ignored-table")]
    key = label or next((name for name in LABELS if name in columns), None)
    if key is None:
        others = ", ".join(name for name in columns if name not in OTHER_COLUMNS) or "none"
        unlabeled = Message("ignored table without a column of behaviors; specify it with ", ReaderOption("label"), f" (columns: {others})")
        return None, [], [Note(unlabeled, location, "ignored-table")]
    start, stop = (hdf5.array(path, table, name, 1).astype(float) - begin for name in ("start_time", "stop_time"))
    names = _column(path, table, key)
    if not len(names) == len(start) == len(stop):
        raise FormatError(path, f"{len(names)} labels for {len(start)} starts and {len(stop)} stops", location)
    picked = {detail: next((n for n in options if n in columns), None) for detail, options in DETAIL_COLUMNS.items()}
    texts = {detail: _column(path, table, n) for detail, n in picked.items() if n is not None}
    texts = {detail: cells for detail, cells in texts.items() if len(cells) == len(start)}
    ignored = [n for n in columns if n not in (*OTHER_COLUMNS, key) and n not in [picked[detail] for detail in texts]]
    notes = ignored_columns(ignored, location=location)
    early = np.isfinite(stop) & (stop < 0)
    cut = ~early & (start < 0)
    if early.any() or cut.any():
        message = f"{int(early.sum())} bouts before the first pose are dropped, {int(cut.sum())} are shortened to start with it"
        notes.append(Note(message, location, "dropped-bouts"))
    rows, blanks = BoutRows(path), []
    for i in np.flatnonzero(~early):
        begins, ends = max(float(start[i]), 0.0), float(stop[i])
        if not names[i].strip() or (nan_is_blank and names[i] in ("nan", "NaN")):
            if begins < ends:
                blanks.append((begins, ends))
            continue
        extra: dict[str, Any] = {detail: cells[i] for detail, cells in texts.items()}
        if "confidence" in extra:
            extra["confidence"] = _number(extra["confidence"])
        rows.add(begins, ends, names[i], location=f"{location}, row {i + 1}", **extra)
    if blanks:
        notes.append(Note(f"{len(blanks)} rows have no behavior; their frames are read as unobserved", location, "no-behavior"))
    return rows, blanks, notes


def _column(path: Path, table: h5py.Group, name: str) -> list[str]:
    """Return a column as text; the codes of an enumerated column are replaced by their meanings."""
    node = hdf5.member(path, table, name)
    cells = hdf5.texts(path, table, name)
    elements = None if node is None else node.attrs.get("elements")
    if elements is not None and cells:
        meanings = hdf5.texts_at(path, table.file, elements)
        cells = [meanings[int(cell)] if cell.isdecimal() and int(cell) < len(meanings) else "" for cell in cells]
    return cells


def _number(text: str) -> float:
    try:
        return parse_number(text)
    except ValueError:
        return float("nan")


def _epoch_rows(path: Path, epochs: h5py.Group, begin: float) -> BoutRows:
    """Return the bouts of ``IntervalSeries``, which mark starts by positive and stops by negative numbers."""
    rows = BoutRows(path)
    for name in epochs:
        series = hdf5.member(path, epochs, name)
        if kind_of(series) != "IntervalSeries":
            continue
        marks, times = hdf5.array(path, series, "data", 1), hdf5.array(path, series, "timestamps", 1).astype(float) - begin
        if len(marks) != len(times):
            raise FormatError(path, f"{len(marks)} marks at {len(times)} times", series.name)
        open_since: float | None = None
        for i, (mark, time) in enumerate(zip(marks.tolist(), times.tolist(), strict=True)):
            if (mark > 0) != (open_since is None):
                raise FormatError(path, "two consecutive starts or stops", f"{series.name}, row {i + 1}")
            if open_since is not None and time >= 0:
                rows.add(max(open_since, 0.0), time, name, location=f"{name}, row {i + 1}")
            open_since = time if mark > 0 else None
        if open_since is not None:
            rows.add(max(open_since, 0.0), np.nan, name, location=f"{name}, row {len(marks)}")
    return rows


def _ethogram(path: Path, table: h5py.Group | None, used: Sequence[str]) -> Ethogram:
    """Return an ethogram of the behaviors in a table of behaviors, if there is one, and of the behaviors used."""
    if table is None:
        names = list(dict.fromkeys(used))
        return Ethogram(names, guess_background(names))
    cells = {name: _column(path, table, name) for name in table}
    names = cells.get("behavior", [])
    get = {name: cells[name] if len(cells.get(name, [])) == len(names) else [""] * len(names) for name in BEHAVIOR_COLUMNS}
    listed = [
        Behavior(name, get["definition"][i], get["behavior_type"][i] == "point", get["key"][i], get["channel"][i])
        for i, name in enumerate(names)
    ]
    more = [Behavior(name) for name in dict.fromkeys(used) if name not in names]
    stated = next((name for i, name in enumerate(names) if get["background"][i] == "True"), None)
    return Ethogram([*listed, *more], stated if "background" in cells else guess_background([*names, *(b.name for b in more)]))


def _spans(path: Path, table: h5py.Group, rate: float, begin: float = 0.0) -> iv.Intervals:
    if not {"start_time", "stop_time"} <= {*table}:
        return iv.empty()
    start, stop = (to_clock(hdf5.array(path, table, name, 1) - begin, rate, seconds=True) for name in ("start_time", "stop_time"))
    return iv.intervals(np.maximum(start, 0), np.maximum(stop, 0))


def _read_summary(path: Path, content: Content, rate: float | None) -> list[tuple[str, Annotation, list[Note]]]:
    """Return the annotations of a file written by Ethobench, as `read_annotations` does."""
    summary, annotations = content.summary, []
    module = summary.parent
    names = ("bouts", "annotator", "subjects", "ethogram", "observed", "observed_tracks")
    cells = {name: _column(path, summary, name) for name in names}
    rates, lengths = hdf5.array(path, summary, "rate", 1).tolist(), hdf5.array(path, summary, "n_frames", 1).tolist()
    if len({*map(len, cells.values()), len(rates), len(lengths)}) != 1:
        raise FormatError(path, "the columns differ in length", summary.name)
    for i, name in enumerate(cells["bouts"]):
        clock, n_frames = float(rates[i]), int(lengths[i])
        bouts = hdf5.member(path, module, name)
        if bouts is None:
            raise FormatError(path, f"missing table of bouts {name!r}", summary.name)
        rows = _bout_rows(path, bouts, None, 0.0, nan_is_blank=False)[0] if {"start_time", "stop_time"} <= {*bouts} else None
        rows = rows or BoutRows(path)
        ethogram = _ethogram(path, hdf5.member(path, module, cells["ethogram"][i]), rows.behavior)
        observed_table = hdf5.member(path, module, cells["observed"][i]) if cells["observed"][i] else None
        frames = iv.full(n_frames) if observed_table is None else _spans(path, observed_table, clock)
        exceptions = hdf5.member(path, module, cells["observed_tracks"][i]) if cells["observed_tracks"][i] else None
        observed = Observed(frames, {} if exceptions is None else _tracks(path, exceptions, clock))
        subjects = json.loads(cells["subjects"][i])
        annotation, notes = rows.to_annotation(ethogram, clock, seconds=True, n_frames=n_frames, observed=observed, subjects=subjects)
        annotation, resampling = at_rate(annotation, rate)
        annotations.append((cells["annotator"][i], annotation, [*notes, *resampling]))
    return annotations


def _tracks(path: Path, table: h5py.Group, rate: float) -> dict[Track, iv.Intervals]:
    spans = _spans(path, table, rate)
    cells = [_column(path, table, name) for name in ("behavior", "subject", "target")]
    tracks: dict[Track, list[int]] = {}
    for i, names in enumerate(zip(*cells, strict=True)):
        tracks.setdefault(Track(*(name or None for name in names)), []).append(i)
    return {track: iv.Intervals(spans.start[rows], spans.stop[rows]) for track, rows in tracks.items()}
