"""Neurodata Without Borders (NWB): bouts and poses of one session.

Bouts are tables of intervals in seconds (``TimeIntervals``, ndx-ethogram's ``EthogramBouts``) with a column that names the
behavior, and ``BehavioralEpochs``; each table is an annotator. Poses are ndx-pose's ``PoseEstimation`` and plain
``SpatialSeries``; what lies in one processing module on one clock is one recording. Its first frame is the first pose, or the
session's start where there are no poses. Uneven timestamps are brought to an even clock, gaps become missing points.

Bouts are written as ``EthogramBouts`` where ndx-ethogram is installed and none is without duration, else as ``TimeIntervals``,
beside a table ``ethobench_annotations`` with rate, length and what else bouts cannot tell. Reading needs h5py, writing pynwb.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ethobench.core import Annotation, ClockOrigin, Recording
from ethobench.core.errors import Note
from ethobench.formats import hdf5, pose_arrays
from ethobench.formats.base import DETAILS, Format, pick_entry, register_format
from ethobench.formats.nwb_bouts import read_annotations
from ethobench.formats.nwb_content import OURS, UNKNOWN_START, Content
from ethobench.formats.nwb_poses import PoseSet, find_poses
from ethobench.formats.nwb_writing import write_session
from ethobench.formats.text import Head

if TYPE_CHECKING:
    import h5py


@register_format("nwb")
class Nwb(Format):
    """One session: intervals that name behaviors, and tracked points."""

    title = "NWB"
    suffixes = (".nwb",)
    contents = ("annotations", "poses")
    keeps = DETAILS
    annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if "@nwb_version" in hdf5.top_names(head) else 0.0

    def entries(self, path: Path) -> list[str]:
        with hdf5.open_file(path) as file:
            names = [poses.name for poses in find_poses(path, Content(path, file))]
            return names if len(names) > 1 else [_session_name(path, file)]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None, label: str | None = None) -> list[Recording]:
        with hdf5.open_file(path) as file:
            content = Content(path, file)
            sets = find_poses(path, content)
            session = _session_name(path, file)
            wanted = pick_entry(path, entry, [s.name for s in sets] if len(sets) > 1 else [session])
            chosen: list[PoseSet | None] = [s for s in sets if len(sets) == 1 or s.name in wanted] or [None]
            return [_recording(path, content, s, f"{session}/{s.name}" if s and len(sets) > 1 else session, rate, label) for s in chosen]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        return write_session(recordings[0], path)


def _session_name(path: Path, file: h5py.File) -> str:
    """Return the identifier in files of ours, else the file's name: identifiers of others are often random."""
    named = hdf5.texts(path, file, "identifier")
    return named[0] if named and hdf5.member(path, file, f"processing/behavior/{OURS}") is not None else path.stem


def _recording(path: Path, content: Content, poses: PoseSet | None, name: str, rate: float | None, label: str | None) -> Recording:
    file = content.file
    notes: list[Note] = []
    signals, begin, length = None, 0.0, None
    if poses is not None:
        signals, begin, more = poses.to_poses(path, rate)
        notes += more
        length = len(signals) if signals.rate else None
    annotations: dict[str, Annotation] = {}
    for annotator, annotation, more in read_annotations(path, content, rate, label, signals.rate if signals else None, begin, length):
        annotations[annotator if annotator not in annotations else f"{annotator}-{len(annotations)}"] = annotation
        notes += more
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
            **{key: told[0] for key in ("identifier", "session_description") if (told := hdf5.texts(path, file, key))},
            **({} if poses is None else poses.metadata),
            **({"starting_time": begin} if begin else {}),
        },
        notes=tuple(dict.fromkeys([*content.notes, *notes])),
        clock_origin=ClockOrigin.STATED if content.ours is not None or (signals is not None and signals.rate) else ClockOrigin.ASSUMED,
    )


def _start_time(text: str) -> datetime | None:
    try:
        start = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if start == UNKNOWN_START else start
