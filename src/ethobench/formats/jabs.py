"""JABS poses (``_pose_est_v2.h5`` and later): twelve keypoints of one or several mice.

The content of a file matters, not the version it states. Long-term identities, if there are any, are the individuals; instances without
one are dropped, with a note. If there are only tracklets, those that do not overlap in time share an individual, which may therefore be
different animals at different times; a note says so. Coordinates are stored as y, x and read as x, y. A confidence of 0 means that the
point is missing; other values may exceed 1. Files do not state a frame rate.
"""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording
from ethobench.core.errors import FormatError, Note
from ethobench.formats import hdf5, pose_arrays
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.size_limits import check_size
from ethobench.formats.text import Head

if TYPE_CHECKING:
    import h5py

KEYPOINTS = (
    "nose",
    "left_ear",
    "right_ear",
    "base_neck",
    "left_front_paw",
    "right_front_paw",
    "center_spine",
    "left_rear_paw",
    "right_rear_paw",
    "base_tail",
    "mid_tail",
    "tip_tail",
)
STORED_AS_XY = ("corners",)


@register_format("jabs")
class Jabs(Format):
    """Twelve keypoints of every mouse in an arena."""

    title = "JABS"
    suffixes = (".h5",)
    contents = ("poses",)

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if "poseest" in hdf5.top_names(head) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        select_entries(path, entry, [path.stem])
        with hdf5.open_file(path) as file:
            group = hdf5.member(path, file, "poseest")
            if group is None:
                raise FormatError(path, f"no group 'poseest'; groups: {', '.join(hdf5.names(file)) or 'none'}")
            points = hdf5.array(path, group, "points").astype(np.float64)
            confidence = hdf5.array(path, group, "confidence").astype(np.float64)
            if points.ndim == 3:
                points, confidence = points[:, None], confidence[:, None]
            if points.ndim != 4 or points.shape[2:] != (len(KEYPOINTS), 2) or confidence.shape != points.shape[:3]:
                raise FormatError(path, f"points of shape {points.shape} with confidence of shape {confidence.shape}", "poseest")
            individual_of, individuals, notes = _individuals(path, group, points.shape[:2])
            metadata = {"source_software": "JABS", **_attributes(group), "static_objects": _static_objects(path, file)}
        shape = (len(points), len(individuals))
        positions, confidences = np.full((*shape, len(KEYPOINTS), 2), np.nan), np.full((*shape, len(KEYPOINTS)), np.nan)
        frame, slot = np.nonzero(individual_of >= 0)
        xy = points[frame, slot][..., ::-1]
        positions[frame, individual_of[frame, slot]] = np.where(confidence[frame, slot, :, None] > 0, xy, np.nan)
        confidences[frame, individual_of[frame, slot]] = confidence[frame, slot]
        return [pose_arrays.pose_recording(path, Poses(positions, confidences, tuple(individuals), KEYPOINTS, rate), notes, metadata)]


def _individuals(path: Path, group: h5py.Group, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], list[str], list[Note]]:
    """Return the index of the individual of each frame and instance (-1: none), the names of the individuals, and notes."""
    datasets = {*group}
    if "instance_embed_id" in datasets:
        ids = _table(path, group, "instance_embed_id", shape)
        valid = ids > 0
        usable = valid & (_table(path, group, "id_mask", shape) == 0) if "id_mask" in datasets else valid
        if "instance_id_center" in datasets:
            usable &= ids <= len(hdf5.array(path, group, "instance_id_center"))
        most = int(ids[usable].max()) if usable.any() else 0
        check_size(path, shape[0] * most * len(KEYPOINTS) * 24, path.stat().st_size)
        n_dropped = int((valid & ~usable).sum())
        message = f"{n_dropped} of {int(valid.sum())} instances have no identity; dropped"
        notes = [Note(message, code="dropped-instances")] if n_dropped else []
        return _check_unique(path, np.where(usable, ids - 1, -1)), [f"mouse{n + 1}" for n in range(most)], notes
    if "instance_track_id" in datasets:
        ids = _table(path, group, "instance_track_id", shape)
        count = np.full(shape[0], shape[1], dtype=np.int64)
        if "instance_count" in datasets:
            count = hdf5.array(path, group, "instance_count", 1).astype(np.int64)
        if len(count) != shape[0]:
            raise FormatError(path, f"{len(count)} instance counts for {shape[0]} frames", "poseest")
        return _share_slots(path, np.where(np.arange(shape[1]) < count[:, None], ids, -1))
    if shape[1] == 1:
        return np.zeros(shape, dtype=np.int64), [pose_arrays.ONLY_INDIVIDUAL], []
    raise FormatError(path, f"{shape[1]} instances in a frame, and neither instance_embed_id nor instance_track_id", "poseest")


def _share_slots(path: Path, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str], list[Note]]:
    """Assign each tracklet the lowest individual that is free while the tracklet lasts."""
    frame, slot = np.nonzero(ids >= 0)
    tracklets, which = np.unique(ids[frame, slot], return_inverse=True)
    first = np.full(len(tracklets), len(ids))
    last = np.full(len(tracklets), -1)
    np.minimum.at(first, which, frame)
    np.maximum.at(last, which, frame)
    individual_slot = np.zeros(len(tracklets), dtype=np.int64)
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    n_slots = 0
    for t in np.argsort(first, kind="stable"):
        while busy and busy[0][0] < first[t]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, n_slots)
            n_slots += 1
        individual_slot[t] = heapq.heappop(free)
        heapq.heappush(busy, (int(last[t]), int(individual_slot[t])))
    individual_of = np.full(ids.shape, -1, dtype=np.int64)
    individual_of[frame, slot] = individual_slot[which]
    notes = []
    if len(tracklets) > n_slots:
        message = f"{len(tracklets)} tracklets without identities share {n_slots} individuals, each of which may be several animals"
        notes = [Note(message, code="shared-individuals")]
    return _check_unique(path, individual_of), [f"place{n + 1}" for n in range(n_slots)], notes


def _check_unique(path: Path, individual_of: NDArray[np.int64]) -> NDArray[np.int64]:
    ordered = np.sort(individual_of, axis=1)
    repeated = np.flatnonzero(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1))
    if repeated.size:
        raise FormatError(path, f"duplicate identity in frame {repeated[0]}", "poseest")
    return individual_of


def _table(path: Path, group: h5py.Group, name: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
    values = hdf5.array(path, group, name, 2).astype(np.int64)
    if values.shape != shape:
        raise FormatError(path, f"{name} of shape {values.shape} for points of {shape[0]} frames and {shape[1]} instances", "poseest")
    return values


def _attributes(group: h5py.Group) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    if "version" in group.attrs:
        attributes["version"] = ".".join(str(int(number)) for number in np.ravel(group.attrs["version"]))
    if "cm_per_pixel" in group.attrs:
        attributes["cm_per_pixel"] = float(np.ravel(group.attrs["cm_per_pixel"])[0])
    if "cm_per_pixel_source" in group.attrs:
        attributes["cm_per_pixel_source"] = hdf5.plain_text(group.attrs["cm_per_pixel_source"])
    return attributes


def _static_objects(path: Path, file: h5py.File) -> dict[str, list[list[float]]]:
    """Return the corners, spouts and so on of the arena, as x, y."""
    objects = hdf5.member(path, file, "static_objects")
    if objects is None:
        return {}
    corners = {}
    for name in hdf5.names(objects):
        points = hdf5.array(path, objects, name, 2).astype(float)
        corners[name] = (points if name in STORED_AS_XY else points[:, ::-1]).tolist()
    return corners
