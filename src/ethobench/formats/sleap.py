"""SLEAP poses: project files (``.slp``), analysis H5 and analysis CSV.

A track is an individual. If no instance has a track, the instances of each frame are numbered in order. If some have one, instances
without a track are dropped, with a note. Instances labeled by a person replace predicted instances of the same track and have no
confidence. Project files are read with sleap-io, without opening the videos. Project files with events are read by
`ethobench.formats.sleap_events`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note, describe_exception
from ethobench.formats import arrow_tables, hdf5, pose_arrays
from ethobench.formats.base import Format, ignored_columns, register_format, select_entries
from ethobench.formats.size_limits import check_size, is_too_large
from ethobench.formats.text import Head

if TYPE_CHECKING:
    import h5py

AXES = ("frame", "track", "node", "xy")
STORED_AXES = ("track", "xy", "node", "frame")  # the order of MATLAB
SOFTWARE = {"source_software": "SLEAP"}
EVENT_GROUPS = ("events", "event_types")
"""Groups of a project file with events."""


@register_format("sleap")
class Sleap(Format):
    """Instances of a skeleton, frame by frame."""

    title = "SLEAP"
    suffixes = (".slp", ".h5", ".csv")
    contents = ("poses",)

    def sniff(self, path: Path, head: Head) -> float:
        if head.is_hdf5:
            names = hdf5.top_names(head)
            if {"frames", "instances", "metadata"} <= names and {"points", "pred_points"} & names:
                return 0.9 if {*EVENT_GROUPS} & names else 1.0
            return 0.95 if {"tracks", "node_names"} <= names else 0.0
        is_csv = {"track", "frame_idx"} <= {*head.header} and any(name.endswith(".x") for name in head.header)
        return 0.95 if is_csv else 0.0

    def entries(self, path: Path) -> list[str]:
        if _kind(path) != "slp":
            return [path.stem]
        names = video_names(load_slp(path))
        return names if len(names) > 1 else [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        kind = _kind(path)
        if kind == "slp":
            return _read_slp(path, entry, rate)
        select_entries(path, entry, [path.stem])
        return [_read_csv(path, rate) if kind == "csv" else _read_analysis(path, rate)]


def _kind(path: Path) -> str:
    head = Head(path)
    if not head.is_hdf5:
        if path.suffix.lower() in (".slp", ".h5"):
            raise FormatError(path, "not a valid HDF5 file")
        return "csv"
    with hdf5.open_file(path) as file:
        return "slp" if {"frames", "instances"} <= {*file} else "h5"


def _poses_of(path: Path, instances: _Instances, nodes: Sequence[str], n_frames: int, rate: float | None) -> tuple[Poses, list[Note]]:
    """Return poses, as an array by frame and individual, and notes."""
    tracks, notes = instances.individuals(path)
    stored = max(path.stat().st_size, 1)
    needed = n_frames * max(len(tracks), 1) * len(nodes) * 3 * 8
    if is_too_large(needed, stored):
        message = f"refused: {len(tracks)} tracks over {n_frames} frames would take {needed:,} bytes; merge the tracks in SLEAP first"
        raise FormatError(path, message)
    cells = np.full((n_frames, len(tracks), len(nodes), 3), np.nan)
    tracked = [i for i, track in enumerate(instances.track) if track is not None]
    if tracked:
        track_index = {name: i for i, name in enumerate(tracks)}
        indices = [track_index[str(instances.track[i])] for i in tracked]
        cells[np.array(instances.frame)[tracked], indices] = np.stack([instances.points[i] for i in tracked])
    return Poses(np.ascontiguousarray(cells[..., :2]), np.ascontiguousarray(cells[..., 2]), tuple(tracks), tuple(nodes), rate), notes


class _Instances:
    """Columns of instances: frame, track, points (x, y, score for each node), and location in the file."""

    def __init__(self) -> None:
        self.frame: list[int] = []
        self.track: list[str | None] = []
        self.points: list[NDArray[np.float64]] = []
        self.location: list[str] = []

    def add(self, frame: int, track: str | None, points: NDArray[np.float64], location: str) -> None:
        self.frame.append(frame)
        self.track.append(track)
        self.points.append(points)
        self.location.append(location)

    def individuals(self, path: Path) -> tuple[list[str], list[Note]]:
        """Return the names of the individuals, and notes; numbers the instances of each frame if no instance has a track."""
        tracked = [track for track in self.track if track is not None]
        if not tracked:
            return self._number_instances()
        first_instance: dict[tuple[int, str], int] = {}
        for i, track in enumerate(self.track):
            if track is not None and (first := first_instance.setdefault((self.frame[i], track), i)) != i:
                location = self.location[i] or self.location[first]
                raise FormatError(path, f"duplicate track {track!r} in frame {self.frame[i]}", location)
        n_dropped = len(self.track) - len(tracked)
        message = f"{n_dropped} of {len(self.track)} instances have no track; dropped"
        return list(dict.fromkeys(tracked)), [Note(message, code="dropped-instances")] if n_dropped else []

    def _number_instances(self) -> tuple[list[str], list[Note]]:
        counts: dict[int, int] = {}
        for i, frame in enumerate(self.frame):
            counts[frame] = counts.get(frame, 0) + 1
            self.track[i] = f"instance{counts[frame]}"
        most = max(counts.values(), default=1)
        if most == 1:
            self.track = [pose_arrays.ONLY_INDIVIDUAL] * len(self.track)
            return [pose_arrays.ONLY_INDIVIDUAL], []
        message = f"no instance has a track; the up to {most} instances of a frame are numbered, so a number may be several animals"
        return [f"instance{n + 1}" for n in range(most)], [Note(message, code="shared-individuals")]


def load_slp(path: Path) -> Any:
    """Return the labels of a project file, as an object of sleap-io; links to other files and impossible sizes are refused."""
    try:
        import sleap_io
    except ImportError:
        raise EthobenchError(f'{path}: reading .slp files requires sleap-io (pip install "ethobench[pose]")') from None
    with hdf5.open_file(path) as file:
        hdf5.refuse_external_links(path, file)
        events = [f"{group}/{name}" for group in EVENT_GROUPS if group in file for name in hdf5.names(hdf5.member(path, file, group))]
        for name in ("frames", "instances", "points", "pred_points", *events):
            if name in file:
                check_size(path, file[name].size * file[name].dtype.itemsize, path.stat().st_size)
    try:
        return sleap_io.load_slp(str(path), open_videos=False)
    except Exception as error:
        raise FormatError(path, f"sleap-io cannot read this file: {describe_exception(error)}") from None


def video_names(labels: Any) -> list[str]:
    """Return the names of the videos of a project, which are unique."""
    names: list[str] = []
    for i, video in enumerate(labels.videos):
        stem = PureWindowsPath(video_text(video)).stem or f"video{i}"
        names.append(stem if stem not in names else f"{stem}-{i}")
    return names


def video_text(video: Any) -> str:
    """Return the file name of a video, as the project states it."""
    name = video.filename
    return str(name[0] if isinstance(name, list) and name else name or "")


def _read_slp(path: Path, entry: str | None, rate: float | None) -> list[Recording]:
    labels = load_slp(path)
    recordings = [video_poses(path, labels, video, name, rate) for name, video in select_videos(path, labels, entry)]
    n_events = len(getattr(labels, "events", ()))
    if n_events:
        note = Note(f"{n_events} events are ignored; read the file as sleap_events", code="ignored-events")
        for recording in recordings:
            recording.notes = (*recording.notes, note)
    return recordings


def select_videos(path: Path, labels: Any, entry: str | None) -> list[tuple[str | None, Any]]:
    """Return the videos to read and their names; the name of the only video of a project is None."""
    names = video_names(labels)
    has_several_animals = len(names) > 1
    selected = select_entries(path, entry, names if has_several_animals else [path.stem])
    return [
        (name if has_several_animals else None, video)
        for name, video in zip(names, labels.videos, strict=True)
        if not has_several_animals or name in selected
    ]


def video_poses(path: Path, labels: Any, video: Any, name: str | None, rate: float | None) -> Recording:
    """Return the poses of one video of a project."""
    frames = [frame for frame in labels.labeled_frames if frame.video is video]
    skeleton = next((i.skeleton for frame in frames for i in frame.instances), labels.skeletons[0] if labels.skeletons else None)
    nodes = [] if skeleton is None else [node.name for node in skeleton.nodes]
    instances = _instances_of(path, frames, skeleton)
    length = max((int(frame.frame_idx) + 1 for frame in frames), default=0)
    shape = video.backend_metadata.get("shape") or [0]
    poses, notes = _poses_of(path, instances, nodes, max(length, int(shape[0] or 0)), rate)
    return pose_arrays.pose_recording(path, poses, notes, {**SOFTWARE, "video": video_text(video)}, name)


def _instances_of(path: Path, frames: Sequence[Any], skeleton: Any) -> _Instances:
    """Return the instances of labeled frames; instances labeled by a person replace predicted ones."""
    instances = _Instances()
    for frame in frames:
        user_labeled = [i for i in frame.instances if not hasattr(i, "score")]
        tracks = {i.track for i in user_labeled if i.track is not None}
        corrected = {id(i.from_predicted) for i in user_labeled if i.from_predicted is not None}
        predicted = [i for i in frame.instances if hasattr(i, "score") and i.track not in tracks and id(i) not in corrected]
        for instance in [*user_labeled, *predicted]:
            if instance.skeleton is not skeleton:
                raise FormatError(path, "instances with different skeletons are not supported", f"frame {frame.frame_idx}")
            points = np.full((len(instance.points), 3), np.nan)
            visible = instance.points["visible"]
            points[visible, :2] = instance.points["xy"][visible]
            if hasattr(instance, "score"):
                points[:, 2] = instance.points["score"]
            track = None if instance.track is None else str(instance.track.name)
            instances.add(int(frame.frame_idx), track, points, f"frame {frame.frame_idx}")
    return instances


def _read_analysis(path: Path, rate: float | None) -> Recording:
    with hdf5.open_file(path) as file:
        nodes, tracks = hdf5.texts(path, file, "node_names"), hdf5.texts(path, file, "track_names")
        positions = _in_order(path, file, "tracks", len(nodes), AXES)
        has_scores = "point_scores" in {*file}
        confidence = _in_order(path, file, "point_scores", len(nodes), AXES[:3]) if has_scores else np.full(positions.shape[:3], np.nan)
        video = hdf5.texts(path, file, "video_path")
    if confidence.shape != positions.shape[:3]:
        raise FormatError(path, f"scores of shape {confidence.shape} for positions of shape {positions.shape}")
    n_tracks = positions.shape[1]
    if len(tracks) != n_tracks:
        tracks = [pose_arrays.ONLY_INDIVIDUAL] if n_tracks == 1 else [f"instance{n + 1}" for n in range(n_tracks)]
    poses = Poses(positions, confidence, tuple(tracks), tuple(nodes), rate)
    return pose_arrays.pose_recording(path, poses, [], {**SOFTWARE, "video": video[0] if video else ""})


def _in_order(path: Path, file: h5py.File, name: str, n_nodes: int, order: tuple[str, ...]) -> NDArray[np.float64]:
    """Return an array with its axes in this order; the file stores them in the order of SLEAP, or in the one it states."""
    values = hdf5.array(path, file, name, len(order))
    stated = file[name].attrs.get("dims")
    axes = tuple(axis for axis in STORED_AXES if axis in order)
    if stated is not None:
        try:
            axes = tuple(json.loads(hdf5.plain_text(stated)))
        except ValueError:
            raise FormatError(path, f"invalid order of axes ({stated!r})", name) from None
    if sorted(axes) != sorted(order):
        raise FormatError(path, f"expected axes {order}, got {axes}", name)
    ordered = values.transpose([axes.index(axis) for axis in order]).astype(np.float64)
    if ordered.shape[2] != n_nodes or ordered.shape[3:] not in ((), (2,)):
        raise FormatError(path, f"shape {values.shape} does not fit {n_nodes} nodes and the axes {', '.join(axes)}", name)
    return np.ascontiguousarray(ordered)


def _read_csv(path: Path, rate: float | None) -> Recording:
    rows, *_ = arrow_tables.first_rows(path, 1)
    header = rows[0]
    absent = [name for name in ("track", "frame_idx") if name not in header]
    if absent:
        raise FormatError(path, f"no column {' and no '.join(absent)}; columns: {', '.join(header)}", "header")
    nodes = [name.removesuffix(".x") for name in header if name.endswith(".x") and f"{name.removesuffix('.x')}.y" in header]
    if not nodes:
        raise FormatError(path, f"no columns of points (such as nose.x and nose.y); columns: {', '.join(header)}", "header")
    keys = [f"{node}.{field}" for node in nodes for field in ("x", "y", "score")]
    text = [i for i, name in enumerate(header) if name not in {"frame_idx", "instance.score", *keys}]
    table = arrow_tables.read_wide(path, 1, text)
    if not len(table.values):
        raise FormatError(path, "no instances below the header", "row 1")
    column_of = {name: n for n, name in enumerate(name for i, name in enumerate(header) if i not in text)}
    blank = np.full(len(table.values), np.nan)
    columns = [table.values[:, column_of[key]] if key in column_of else blank for key in keys]
    points = np.stack(columns, axis=1).reshape(len(blank), len(nodes), 3)
    frames = pose_arrays.frame_numbers(path, [str(v) for v in table.values[:, column_of["frame_idx"]]], table.first_row)
    tracks = table.text_columns[text.index(header.index("track"))]
    instances = _Instances()
    for i, (frame, track) in enumerate(zip([] if frames is None else frames.tolist(), tracks, strict=True)):
        instances.add(frame, track.strip() or None, points[i], f"row {table.first_row + i}")
    poses, notes = _poses_of(path, instances, nodes, max(instances.frame) + 1, rate)
    notes += ignored_columns([header[i] for i in text if header[i] != "track"])
    return pose_arrays.pose_recording(path, poses, notes, SOFTWARE)
