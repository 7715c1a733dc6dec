"""Anipose 3-D poses as CSV: ``nose_x, nose_y, nose_z, nose_error, nose_ncams, nose_score`` and so on, and ``fnum``.

The score is the confidence. Reprojection errors, camera counts and the frame of reference (``M_..``, ``center_..``) are
kept in the metadata, as arrays with a value per frame. The file tells no frame rate.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ethobench.core import Recording
from ethobench.core.errors import FormatError, Note
from ethobench.formats import arrow_tables, pose_arrays
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.text import Head

PARTS = {"x": "x", "y": "y", "z": "z", "score": pose_arrays.CONFIDENCE}
BESIDE = re.compile(r"M_\d\d|center_\d|.+_(error|ncams)")


@register_format("anipose")
class Anipose(Format):
    """Triangulated keypoints of one animal."""

    title = "Anipose"
    suffixes = (".csv",)
    contents = ("poses",)

    def sniff(self, path: Path, head: Head) -> float:
        names = {*head.header}
        points = _points([*names])
        if not points:
            return 0.0
        return 0.95 if "fnum" in names or any(f"{point}_ncams" in names for point in points) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        pick_entry(path, entry, [path.stem])
        header = arrow_tables.first_rows(path, 1)[0][0]
        points = _points(header)
        if not points:
            raise FormatError(path, "no keypoint has columns ending in _x, _y and _z", "header")
        column_index = {name: i for i, name in enumerate(header)}
        if len(column_index) != len(header):
            raise FormatError(path, "a column stands twice", "header")
        columns = {f"{point}_{part}": (pose_arrays.ONLY_INDIVIDUAL, point, axis) for point in points for part, axis in PARTS.items()}
        strange = [i for i, name in enumerate(header) if name not in columns and name != "fnum" and not BESIDE.fullmatch(name)]
        table = arrow_tables.read_wide(path, 1, strange)
        if not len(table.values):
            raise FormatError(path, "no rows of poses below the header", "row 1")
        numbers = {name: table.values[:, n] for n, name in enumerate(name for i, name in enumerate(header) if i not in strange)}
        values = table.values
        notes: list[Note] = []
        if "fnum" in numbers:
            frames = pose_arrays.frame_numbers(path, [str(v) for v in numbers["fnum"]], table.first_row)
            if frames is not None:
                (values,), notes = pose_arrays.on_frames(path, frames, values, first_row=table.first_row)
        spread = dict(zip(numbers, values.T, strict=True))
        used = [name for name in spread if name in columns]
        poses, more = pose_arrays.poses_of_columns(
            path, [columns[name] for name in used], np.stack([spread[n] for n in used], axis=1), rate
        )
        beside = {name: spread[name] for name in spread if name not in columns and name != "fnum"}
        if strange:
            more.append(Note(f"columns not understood and left out: {', '.join(header[i] for i in strange)}"))
        metadata = {"source_software": "Anipose", "columns": beside}
        return [pose_arrays.pose_recording(path, poses, [*notes, *more], metadata)]


def _points(header: list[str]) -> list[str]:
    """Return the keypoints that have all three coordinates, in the order of their columns."""
    names = {*header}
    return [name[:-2] for name in header if name.endswith("_x") and {f"{name[:-2]}_y", f"{name[:-2]}_z"} <= names and len(name) > 2]
