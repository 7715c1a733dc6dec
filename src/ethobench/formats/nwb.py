"""Neurodata Without Borders (NWB): bouts and poses of one session.

Bouts are tables of intervals in seconds (``TimeIntervals``, ``EthogramBouts`` of ndx-ethogram) with a column of behaviors, and
``BehavioralEpochs``; each table is an annotator. Poses are ``PoseEstimation`` of ndx-pose and plain ``SpatialSeries``; those of one
processing module on one clock are one recording. Its first frame is the first pose, or the start of the session if there are no poses.
Irregular timestamps are resampled to a regular clock; gaps become missing points.

Bouts are written as ``EthogramBouts`` if ndx-ethogram is installed and all bouts have a duration, else as ``TimeIntervals``. A table
``ethobench_annotations`` stores the rate, the length and everything else that the bouts do not state. Reading requires h5py, writing pynwb.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, ClockOrigin, Ethogram, Poses, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.formats import hdf5, pose_arrays
from ethobench.formats.base import DETAILS, Format, register_format, select_entries
from ethobench.formats.nwb_bouts import SUMMARY_TABLE, UNKNOWN_START, Content, kind_of, last_name, read_annotations
from ethobench.formats.size_limits import check_size
from ethobench.formats.text import Head

if TYPE_CHECKING:
    import h5py


@register_format("nwb")
class Nwb(Format):
    """One session: intervals with behaviors, and poses.

    Options for reading: ``rate``, the frame rate of the result; ``label``, the column of behaviors if it is not recognized.
    """

    title = "NWB"
    suffixes = (".nwb",)
    contents = ("annotations", "poses")
    keeps = DETAILS
    multiple_annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if "@nwb_version" in hdf5.top_names(head) else 0.0

    def entries(self, path: Path) -> list[str]:
        with hdf5.open_file(path) as file:
            names = [poses.name for poses in find_poses(path, Content(path, file))]
            return names if len(names) > 1 else [_session_name(path, file)]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None, label: str | None = None) -> list[Recording]:
        with hdf5.open_file(path) as file:
            content = Content(path, file)
            pose_sets = find_poses(path, content)
            session = _session_name(path, file)
            has_several_sets = len(pose_sets) > 1
            names = select_entries(path, entry, [s.name for s in pose_sets] if has_several_sets else [session])
            chosen: list[PoseSet | None] = [s for s in pose_sets if not has_several_sets or s.name in names] or [None]
            return [_recording(path, content, s, f"{session}/{s.name}" if s and has_several_sets else session, rate, label) for s in chosen]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        return write_session(recordings[0], path)


def _session_name(path: Path, file: h5py.File) -> str:
    """Return the identifier in files written by Ethobench, else the file name, because other identifiers are often random."""
    named = hdf5.texts(path, file, "identifier")
    return named[0] if named and hdf5.member(path, file, f"processing/behavior/{SUMMARY_TABLE}") is not None else path.stem


def _recording(path: Path, content: Content, poses: PoseSet | None, name: str, rate: float | None, label: str | None) -> Recording:
    file = content.file
    notes: list[Note] = []
    signals, begin, length = None, 0.0, None
    if poses is not None:
        signals, begin, more_notes = poses.to_poses(path, rate)
        notes += more_notes
        length = len(signals) if signals.rate else None
    annotations: dict[str, Annotation] = {}
    for annotator, annotation, more_notes in read_annotations(path, content, rate, label, signals.rate if signals else None, begin, length):
        annotations[annotator if annotator not in annotations else f"{annotator}-{len(annotations)}"] = annotation
        notes += more_notes
    individual = hdf5.texts(path, file, "general/subject/subject_id")
    start = hdf5.texts(path, file, "session_start_time")
    names = [] if signals is None else [n for n in signals.individuals if n != pose_arrays.ONLY_INDIVIDUAL]
    return Recording(
        name,
        individual=individual[0] if individual else "",
        subjects=tuple(dict.fromkeys([*names, *(s for a in annotations.values() for s in a.subjects)])),
        signals=signals,
        annotations=annotations,
        start_time=_start_time(start[0]) if start else None,
        metadata={
            "source_software": "NWB",
            **{key: texts[0] for key in ("identifier", "session_description") if (texts := hdf5.texts(path, file, key))},
            **({} if poses is None else poses.metadata),
            **({"starting_time": begin} if begin else {}),
        },
        notes=tuple(dict.fromkeys([*content.notes, *notes])),
        clock_origin=ClockOrigin.STATED if content.summary is not None or (signals is not None and signals.rate) else ClockOrigin.ASSUMED,
    )


def _start_time(text: str) -> datetime | None:
    try:
        start = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if start == UNKNOWN_START else start


@dataclass
class Series:
    """The track of one keypoint: times in seconds, positions of shape (n_times, 2 or 3), and confidence."""

    individual: str
    keypoint: str
    times: NDArray[np.float64]
    rate: float | None
    positions: NDArray[np.float64]
    confidence: NDArray[np.float64]


@dataclass
class PoseSet:
    """Keypoint tracks on one clock."""

    name: str
    series: list[Series]
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def longest(self) -> Series:
        """The track with the most samples."""
        return max(self.series, key=lambda s: len(s.times))

    def fits(self, other: Series) -> bool:
        """Return whether all times of another track are on this clock."""
        times = self.longest.times
        if len(other.times) == 0 or np.array_equal(times, other.times):
            return True
        if len(times) < 2:
            return False
        steps_from_start = (other.times - times[0]) / float(np.median(np.diff(times)))
        return bool((np.abs(steps_from_start - np.rint(steps_from_start)) < 0.001).all())

    def to_poses(self, path: Path, rate: float | None) -> tuple[Poses, float, list[Note]]:
        """Return the poses on a regular clock, the time of their first frame in seconds, and notes."""
        first = self.longest
        times, rows = first.times, {id(s): np.arange(len(s.times)) for s in self.series}
        if not all(np.array_equal(s.times, times) for s in self.series):
            step = float(np.median(np.diff(times)))
            steps_from_start = {id(s): np.rint((s.times - times[0]) / step) for s in self.series}
            filled_steps = np.unique(np.concatenate([*steps_from_start.values()]))
            times, rows = (
                times[0] + filled_steps * step,
                {key: np.searchsorted(filled_steps, steps) for key, steps in steps_from_start.items()},
            )
        chosen, clock, notes = pose_arrays.regular_clock(path, times, first.rate, rate, self.name)
        individuals = tuple(dict.fromkeys(s.individual for s in self.series))
        keypoints = tuple(dict.fromkeys(s.keypoint for s in self.series))
        n_axes = max(s.positions.shape[1] for s in self.series)
        shape = (len(times), len(individuals), len(keypoints), n_axes + 1)
        check_size(path, int(np.prod(shape, dtype=float)) * 8, path.stat().st_size)
        cells = np.full(shape, np.nan)
        for s in self.series:
            cell_index = (individuals.index(s.individual), keypoints.index(s.keypoint))
            cells[rows[id(s)], *cell_index, : s.positions.shape[1]] = s.positions
            cells[rows[id(s)], *cell_index, n_axes] = s.confidence
        even = np.where((chosen >= 0)[:, None, None, None], cells[chosen], np.nan)
        positions, confidence = np.ascontiguousarray(even[..., :n_axes]), np.ascontiguousarray(even[..., n_axes])
        return Poses(positions, confidence, individuals, keypoints, clock), float(times[0]) if clock and len(times) else 0.0, notes


def find_poses(path: Path, content: Content) -> list[PoseSet]:
    """Return the keypoint tracks of a session, grouped by processing module and clock."""
    modules, metadata = _tracks_by_module(path, content)
    pose_sets: list[PoseSet] = []
    for module, tracks in modules.items():
        module_sets: list[PoseSet] = []
        usable = [s for s in tracks if s is not None]
        for s in sorted(usable, key=lambda s: -len(s.times)):
            names = (s.individual, s.keypoint)
            pose_set = next((p for p in module_sets if p.fits(s) and names not in [(t.individual, t.keypoint) for t in p.series]), None)
            if pose_set is None:
                pose_set = PoseSet(f"{module}-{len(module_sets)}" if module_sets else module, [], metadata.get(module, {}))
                module_sets.append(pose_set)
            pose_set.series.append(s)
        for pose_set in module_sets:
            pose_set.series.sort(key=lambda s: next(i for i, other in enumerate(usable) if other is s))
        pose_sets += module_sets
    return pose_sets


def _tracks_by_module(path: Path, content: Content) -> tuple[dict[str, list[Series | None]], dict[str, dict[str, Any]]]:
    """Return the keypoint tracks and the metadata of each processing module."""
    modules: dict[str, list[Series | None]] = {}
    metadata: dict[str, dict[str, Any]] = {}
    for group in content.poses:
        module = last_name(group.parent)
        alone = sum(other.parent == group.parent for other in content.poses) == 1
        individual = pose_arrays.ONLY_INDIVIDUAL if alone else last_name(group).removeprefix("track=")
        order = hdf5.texts(path, group, "nodes") or hdf5.texts(path, group, "skeleton/nodes")
        series = [s for name in hdf5.names(group) if kind_of(s := hdf5.member(path, group, name)) == "PoseEstimationSeries"]
        if {*order} >= {*map(last_name, series)}:
            series.sort(key=lambda s: order.index(last_name(s)))
        modules.setdefault(module, []).extend(_read_series(path, content, s, *_individual_and_keypoint(s, individual)) for s in series)
        metadata[module] = {key: texts[0] for key in ("scorer", "source_software") if (texts := hdf5.texts(path, group, key))}
    for one in content.spatial:
        above = one.parent if kind_of(one.parent) == "Position" else one
        modules.setdefault(last_name(above.parent), []).append(
            _read_series(path, content, one, pose_arrays.ONLY_INDIVIDUAL, last_name(one))
        )
    return modules, metadata


def _individual_and_keypoint(series: h5py.Group, individual: str) -> tuple[str, str]:
    """Return individual and keypoint; the converter of DeepLabCut states both in the description and joins them in the name."""
    name = last_name(series)
    description = hdf5.plain_text(series.attrs.get("description", "")).removesuffix(".")
    keypoint, separator, animal = description.removeprefix("Keypoint ").partition(" from individual ")
    if separator and description.startswith("Keypoint ") and name == f"{animal}_{keypoint}":
        return animal, keypoint
    return individual, name.removeprefix("PoseEstimationSeries") or name


def _read_series(path: Path, content: Content, series: h5py.Group, individual: str, keypoint: str) -> Series | None:
    """Return the track of one keypoint; None, with a note, if its positions or times cannot be used."""
    data = hdf5.member(path, series, "data")
    if data is None or data.ndim != 2 or data.shape[1] not in (2, 3):
        content.notes.append(Note("ignored positions that are neither 2-D nor 3-D", series.name, "ignored-poses"))
        return None
    positions = hdf5.array(path, series, "data", 2).astype(np.float64)
    positions = positions * float(data.attrs.get("conversion", 1.0)) + float(data.attrs.get("offset", 0.0))
    n = len(positions)
    names = {*series}
    confidence = hdf5.array(path, series, "confidence", 1).astype(np.float64) if "confidence" in names else np.full(n, np.nan)
    rate: float | None = None
    if "timestamps" in names:
        times = hdf5.array(path, series, "timestamps", 1).astype(np.float64)
    else:
        begin = float(hdf5.array(path, series, "starting_time", 0))
        rate = float(series["starting_time"].attrs.get("rate", 0.0))
        if not rate > 0 and n > 1:
            content.notes.append(Note(f"ignored {n} positions without timestamps or a rate", series.name, "ignored-poses"))
            return None
        times = begin + np.arange(n) / (rate or 1.0)
        if rate == 1.0 and kind_of(series) == "PoseEstimationSeries":
            rate = None  # converters write 1 Hz for videos of unknown rate
    if not len(times) == len(confidence) == n:
        raise FormatError(path, f"{n} positions, {len(confidence)} confidences and {len(times)} timestamps", series.name)
    return Series(individual, keypoint, times, rate or None, positions, confidence)


def write_session(recording: Recording, path: Path) -> list[Note]:
    """Write the annotations of a recording as a session; return notes on what is lost."""
    try:
        import pynwb
    except ImportError:
        raise EthobenchError('writing NWB files requires pynwb (pip install "ethobench[nwb]")') from None
    notes = [] if recording.signals is None else [Note("poses and signals are not written to NWB; they are lost", code="lost-signals")]
    start = recording.start_time
    if start is not None and start.tzinfo is None:
        notes.append(Note("the start time has no time zone; written as UTC", code="assumed-time-zone"))
        start = start.replace(tzinfo=UTC)
    nwb = pynwb.NWBFile(
        session_description=f"behavior annotations of {recording.id}",
        identifier=recording.id,
        session_start_time=start or UNKNOWN_START,
        subject=pynwb.file.Subject(subject_id=recording.individual),
    )
    try:
        _write_annotations(nwb, recording)
        with pynwb.NWBHDF5IO(str(path), "w") as io:
            io.write(nwb)
    except OSError:
        raise
    except Exception as error:
        raise EthobenchError(f"pynwb cannot write {recording.id!r} ({_reason(error)})") from error
    return notes


def _reason(error: BaseException) -> str:
    """Return the first line of the message of the root cause, such as a NUL character in a text."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).partition("\n")[0]


def _write_annotations(nwb: Any, recording: Recording) -> None:
    from hdmf.common import DynamicTable

    module = nwb.create_processing_module("behavior", "behavior annotations")
    columns: dict[str, list[Any]] = {
        n: [] for n in ("bouts", "annotator", "rate", "n_frames", "subjects", "ethogram", "observed", "observed_tracks")
    }
    for i, (annotator, a) in enumerate(recording.annotations.items()):
        name = f"bouts{i or ''}"
        behaviors, observed, tracks = _behavior_table(f"ethogram{i or ''}", a.ethogram), None, None
        module.add(behaviors)
        if not (a.observed.is_complete(a.n_frames) and not a.observed.tracks):
            observed = _time_table(f"{name}_observed", "observed intervals", _times(a.observed.frames, a.rate))
            module.add(observed)
        if a.observed.tracks:
            tracks = _time_table(f"{name}_observed_tracks", "exceptions: observed intervals of single tracks", _track_columns(a))
            module.add(tracks)
        module.add(_bouts_table(name, annotator, a, behaviors, observed))
        row = (name, annotator, a.rate, a.n_frames, json.dumps(a.subjects), behaviors.name)
        for key, value in zip(
            columns, (*row, "" if observed is None else observed.name, "" if tracks is None else tracks.name), strict=True
        ):
            columns[key].append(value)
    module.add(DynamicTable(name=SUMMARY_TABLE, description="properties of the annotations", columns=_vectors(columns)))


def _bouts_table(name: str, annotator: str, a: Annotation, behaviors: Any, observed: Any) -> Any:
    order = np.argsort(a.order, kind="stable")
    label = "behavior"
    animals = {"subject": a.names(a.subject[order]), "target": a.names(a.target[order])}
    columns: dict[str, Any] = {
        **_times(iv.Intervals(a.start[order], a.stop[order]), a.rate),
        label: [a.ethogram[int(code)].name for code in a.behavior[order]],
        **{key: [n or "" for n in names] for key, names in animals.items()},
        **{key: values[order].tolist() for key in ("confidence", "modifiers", "comment") if (values := getattr(a, key)) is not None},
    }
    if (a.stop > a.start).all() and type(behaviors).__name__ == "Ethogram" and len(a):
        from ndx_ethogram import EthogramBouts

        columns["label"] = columns.pop(label)
        links = {"ethogram": behaviors, **({} if observed is None else {"observation_intervals": observed})}
        attributes = {"description": "bouts", "labeling_method": "manual", "annotator": annotator, **links}
        return EthogramBouts(name=name, columns=_vectors(columns), colnames=[*columns], **attributes)
    return _time_table(name, f"bouts by {annotator}", columns)


def _behavior_table(name: str, ethogram: Ethogram) -> Any:
    """Return the table of behaviors, of the type of ndx-ethogram if that is installed."""
    from hdmf.common import DynamicTable

    kind: Any = DynamicTable
    try:
        from ndx_ethogram import Ethogram as NdxEthogram

        kind = NdxEthogram
    except ImportError:
        pass
    listed = [asdict(b) for b in ethogram]
    columns = {
        "behavior": [b["name"] for b in listed],
        "definition": [b["definition"] for b in listed],
        "behavior_type": ["point" if b["point"] else "state" for b in listed],
        "key": [b["key"] for b in listed],
        "channel": [b["channel"] for b in listed],
        "background": [str(b["name"] == ethogram.background_name) for b in listed],
    }
    return kind(name=name, description="behaviors that may occur", columns=_vectors(columns), colnames=[*columns])


def _time_table(name: str, description: str, columns: Mapping[str, Any]) -> Any:
    from pynwb.epoch import TimeIntervals

    return TimeIntervals(name=name, description=description, columns=_vectors(columns), colnames=[*columns])


def _vectors(columns: Mapping[str, Any]) -> list[Any]:
    from hdmf.common import VectorData

    text_if_empty = {
        name: values if len(values) or isinstance(values, np.ndarray) else np.empty(0, "U1") for name, values in columns.items()
    }
    return [VectorData(name=name, description=name, data=values) for name, values in text_if_empty.items()]


def _times(spans: iv.Intervals, rate: float) -> dict[str, Any]:
    return {"start_time": spans.start / rate, "stop_time": spans.stop / rate}


def _track_columns(a: Annotation) -> dict[str, Any]:
    """Return the observed intervals of single tracks as columns; a track that is never observed has an empty interval."""
    rows = [
        (start / a.rate, stop / a.rate, *(name or "" for name in track))
        for track, frames in a.observed.tracks.items()
        for start, stop in zip(frames.start.tolist() or [0], frames.stop.tolist() or [0], strict=True)
    ]
    return dict(zip(("start_time", "stop_time", "behavior", "subject", "target"), map(list, zip(*rows, strict=True)), strict=True))
