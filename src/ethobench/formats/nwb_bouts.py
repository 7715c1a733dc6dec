"""Bouts in NWB: tables of intervals and epochs of others, and the annotations that we wrote ourselves.

MERGED: What of an NWB session concerns us: its tables of intervals, its epochs and its tracked points.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethobench.core.errors import FormatError, Note
from ethobench.formats import hdf5

if TYPE_CHECKING:
    import h5py


import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ethobench.core import Annotation, Behavior, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.ethogram import guess_background
from ethobench.formats.bouts import SECONDS_RATE, BoutRows, to_clock
from ethobench.formats.text import parse_number

if TYPE_CHECKING:
    import h5py

OURS = "ethobench_annotations"
UNKNOWN_START = datetime(1970, 1, 1, tzinfo=UTC)
MOST_NODES = 200_000


class Content:
    """The parts of a session that concern us; links to other files are noted, never followed."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path, self.file = path, file
        self.notes: list[Note] = []
        self.tables: list[h5py.Group] = []
        self.epochs: list[h5py.Group] = []
        self.poses: list[h5py.Group] = []
        self.spatial: list[h5py.Group] = []
        self._seen: set[int] = set()
        for name in ("intervals", "processing", "acquisition", "analysis", "scratch"):
            if name in {*file}:
                self._look(file, name)
        self.ours = hdf5.member(path, file, f"processing/behavior/{OURS}")

    def _look(self, parent: h5py.Group, name: str) -> None:
        import h5py

        link = parent.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            self.notes.append(Note("a link to another file is not followed", f"{parent.name}/{name}"))
        if not isinstance(link, h5py.HardLink):
            return
        node = parent[name]
        address = h5py.h5o.get_info(node.id).addr
        if not isinstance(node, h5py.Group) or address in self._seen:
            return
        self._seen.add(address)
        if len(self._seen) > MOST_NODES:
            raise FormatError(self.path, f"refused: more than {MOST_NODES:,} groups")
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
                self._look(node, inner)


def kind_of(node: Any) -> str:
    """Return the NWB type that a node states; empty if none."""
    return "" if node is None else hdf5.plain_text(node.attrs.get("neurodata_type", ""))


def last_name(node: Any) -> str:
    """Return the name of a node without the groups that it lies in."""
    return str(node.name.rpartition("/")[2])


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
OF_NO_CONCERN = ("id", "start_time", "stop_time", "timeseries", "timeseries_index", "tags", "tags_index")
PARTS = {"subject": SUBJECTS, "target": TARGETS, "modifiers": ("modifiers",), "comment": COMMENTS, "confidence": CONFIDENCES}
CATALOGUE = ("definition", "behavior_type", "key", "channel", "background")


def read_annotations(
    path: Path, content: Content, rate: float | None, label: str | None, pose_rate: float | None, begin: float, length: int | None
) -> list[tuple[str, Annotation, list[Note]]]:
    """Read every table of bouts: its annotator, its annotation and what there is to say of it."""
    if content.ours is not None:
        return _our_annotations(path, content, rate)
    clock = rate or pose_rate or SECONDS_RATE
    found = []
    for table in content.tables:
        name = last_name(table)
        rows, blanks, notes = _bout_rows(path, table, label, begin)
        if rows is None:
            content.notes += notes
            continue
        catalogue = hdf5.member(path, table, "ethogram")
        ethogram = _ethogram(path, catalogue, rows.behavior)
        looked = hdf5.member(path, table, "observation_intervals")
        spans = None if looked is None else _spans(path, looked, clock, begin)
        annotation, more = _annotation(rows, ethogram, clock, length, spans, blanks)
        annotator = hdf5.plain_text(table.attrs.get("annotator", "")) or name
        found.append((annotator, annotation, [*notes, *more]))
    for epochs in content.epochs:
        rows = _epoch_rows(path, epochs, begin)
        annotation, more = _annotation(rows, _ethogram(path, None, rows.behavior), clock, length, None, [])
        found.append((last_name(epochs), annotation, more))
    return found


def _annotation(
    rows: BoutRows, ethogram: Ethogram, rate: float, length: int | None, looked: iv.Intervals | None, blanks: list[tuple[float, float]]
) -> tuple[Annotation, list[Note]]:
    """Put bouts on the clock; a bout without a stop leaves its track unobserved from its start on."""
    annotation, notes = rows.to_annotation(ethogram, rate, seconds=True, n_frames=length)
    n_frames = annotation.n_frames
    opened = [
        (start, i) for i, (start, stop) in enumerate(zip(rows.start, rows.stop, strict=True)) if np.isfinite(start) and np.isnan(stop)
    ]
    tracks: dict[Track, iv.Intervals] = {}
    for start, i in sorted(opened, reverse=True):
        n_frames = max(n_frames, int(to_clock(start, rate, seconds=True)))
        tracks[Track(rows.behavior[i], rows.subject[i] or None)] = iv.full(int(to_clock(start, rate, seconds=True)))
    if looked is not None:
        n_frames = max(n_frames, int(looked.stop.max(initial=0)))
    frames = iv.full(n_frames) if looked is None else iv.union(looked)
    if blanks:
        hidden = iv.intervals(*(to_clock(times, rate, seconds=True) for times in zip(*blanks, strict=True)))
        n_frames = max(n_frames, int(hidden.stop.max()))
        frames = iv.difference(iv.full(n_frames) if looked is None else frames, iv.union(hidden))
    observed = Observed(frames, {track: iv.intersection(where, frames) for track, where in tracks.items()})
    return annotation.extend(n_frames).with_observed(observed), notes


def _bout_rows(
    path: Path, table: h5py.Group, label: str | None, begin: float, *, nan_is_blank: bool = True
) -> tuple[BoutRows | None, list[tuple[float, float]], list[Note]]:
    """Read the rows of a table; None if no column names behaviors."""
    columns = {name: name for name in hdf5.names(table) if name not in ("ethogram", "observation_intervals")}
    location = last_name(table)
    if label is not None and label not in columns:
        return None, [], [Note(f"no column {label!r}; left out (there are: {', '.join(columns)})", location)]
    key = label or next((name for name in LABELS if name in columns), None)
    if key is None:
        others = ", ".join(name for name in columns if name not in OF_NO_CONCERN) or "none"
        return None, [], [Note(f"no column names behaviors (others: {others}); left out, give label= to name one", location)]
    start, stop = (hdf5.array(path, table, name, 1).astype(float) - begin for name in ("start_time", "stop_time"))
    names = _column(path, table, key)
    if not len(names) == len(start) == len(stop):
        raise FormatError(path, f"{len(names)} labels for {len(start)} starts and {len(stop)} stops", location)
    picked = {part: next((n for n in options if n in columns), None) for part, options in PARTS.items()}
    texts = {part: _column(path, table, n) for part, n in picked.items() if n is not None}
    texts = {part: cells for part, cells in texts.items() if len(cells) == len(start)}
    strange = [n for n in columns if n not in (*OF_NO_CONCERN, key) and n not in [picked[part] for part in texts]]
    notes = [Note(f"columns not understood and left out: {', '.join(strange)}", location)] if strange else []
    early = np.isfinite(stop) & (stop < 0)
    cut = ~early & (start < 0)
    if early.any() or cut.any():
        notes.append(Note(f"{int(early.sum())} bouts before the first pose are left out, {int(cut.sum())} begin at it", location))
    rows, blanks = BoutRows(path), []
    for i in np.flatnonzero(~early):
        begins, ends = max(float(start[i]), 0.0), float(stop[i])
        if not names[i].strip() or (nan_is_blank and names[i] in ("nan", "NaN")):
            if begins < ends:
                blanks.append((begins, ends))
            continue
        extra: dict[str, Any] = {part: cells[i] for part, cells in texts.items()}
        if "confidence" in extra:
            extra["confidence"] = _number(extra["confidence"])
        rows.add(begins, ends, names[i], location=f"{location}, row {i + 1}", **extra)
    if blanks:
        notes.append(Note(f"{len(blanks)} rows name no behavior; their frames are taken as not looked at", location))
    return rows, blanks, notes


def _column(path: Path, table: h5py.Group, name: str) -> list[str]:
    """Return a column as text; codes of an enumerated one are replaced by what they stand for."""
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
    """Read ``IntervalSeries``: a positive number where an interval starts, a negative one where it stops."""
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
                raise FormatError(path, "a start or a stop stands twice", f"{series.name}, row {i + 1}")
            if open_since is not None and time >= 0:
                rows.add(max(open_since, 0.0), time, name, location=f"{name}, row {i + 1}")
            open_since = time if mark > 0 else None
        if open_since is not None:
            rows.add(max(open_since, 0.0), np.nan, name, location=f"{name}, row {len(marks)}")
    return rows


def _ethogram(path: Path, catalogue: h5py.Group | None, used: Sequence[str]) -> Ethogram:
    """Make an ethogram from a catalogue of behaviors, where there is one, and the behaviors used."""
    if catalogue is None:
        names = list(dict.fromkeys(used))
        return Ethogram(names, guess_background(names))
    cells = {name: _column(path, catalogue, name) for name in catalogue}
    names = cells.get("behavior", [])
    get = {name: cells[name] if len(cells.get(name, [])) == len(names) else [""] * len(names) for name in CATALOGUE}
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


def _our_annotations(path: Path, content: Content, rate: float | None) -> list[tuple[str, Annotation, list[Note]]]:
    ours, found = content.ours, []
    home = ours.parent
    told = {name: _column(path, ours, name) for name in ("bouts", "annotator", "subjects", "ethogram", "observed", "observed_tracks")}
    rates, lengths = hdf5.array(path, ours, "rate", 1).tolist(), hdf5.array(path, ours, "n_frames", 1).tolist()
    if len({*map(len, told.values()), len(rates), len(lengths)}) != 1:
        raise FormatError(path, "its columns differ in length", ours.name)
    for i, name in enumerate(told["bouts"]):
        clock, n_frames = float(rates[i]), int(lengths[i])
        bouts = hdf5.member(path, home, name)
        if bouts is None:
            raise FormatError(path, f"no table {name!r}, which should hold the bouts", ours.name)
        rows = _bout_rows(path, bouts, None, 0.0, nan_is_blank=False)[0] if {"start_time", "stop_time"} <= {*bouts} else None
        rows = rows or BoutRows(path)
        ethogram = _ethogram(path, hdf5.member(path, home, told["ethogram"][i]), rows.behavior)
        looked = hdf5.member(path, home, told["observed"][i]) if told["observed"][i] else None
        frames = iv.full(n_frames) if looked is None else _spans(path, looked, clock)
        exceptions = hdf5.member(path, home, told["observed_tracks"][i]) if told["observed_tracks"][i] else None
        observed = Observed(frames, {} if exceptions is None else _tracks(path, exceptions, clock))
        subjects = json.loads(told["subjects"][i])
        annotation, notes = rows.to_annotation(ethogram, clock, seconds=True, n_frames=n_frames, observed=observed, subjects=subjects)
        if rate is not None and rate != clock:
            annotation, notes = annotation.resample(rate), [*notes, Note(f"resampled from the file's {clock:g} Hz to {rate:g} Hz")]
        found.append((told["annotator"][i], annotation, notes))
    return found


def _tracks(path: Path, table: h5py.Group, rate: float) -> dict[Track, iv.Intervals]:
    spans = _spans(path, table, rate)
    cells = [_column(path, table, name) for name in ("behavior", "subject", "target")]
    tracks: dict[Track, list[int]] = {}
    for i, parts in enumerate(zip(*cells, strict=True)):
        tracks.setdefault(Track(*(part or None for part in parts)), []).append(i)
    return {track: iv.Intervals(spans.start[rows], spans.stop[rows]) for track, rows in tracks.items()}
