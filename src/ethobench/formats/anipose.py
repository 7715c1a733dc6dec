"""Anipose 3-D poses as CSV: ``nose_x, nose_y, nose_z, nose_error, nose_ncams, nose_score`` and so on, and ``fnum``.

The score is the confidence. Reprojection errors, camera counts and the frame of reference (``M_..``, ``center_..``) are kept as
metadata, as arrays with a value per frame. Files do not state a frame rate.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ethobench.core import Recording
from ethobench.core.errors import FormatError, Note
from ethobench.formats import arrow_tables, pose_arrays
from ethobench.formats.base import Format, ignored_columns, register_format, select_entries
from ethobench.formats.text import Head, duplicates

AXIS_OF_SUFFIX = {"x": "x", "y": "y", "z": "z", "score": pose_arrays.CONFIDENCE}
EXTRA_COLUMN = re.compile(r"M_\d\d|center_\d|.+_(error|ncams)")


@register_format("anipose")
class Anipose(Format):
    """Triangulated keypoints of one animal."""

    title = "Anipose"
    suffixes = (".csv",)
    contents = ("poses",)

    def sniff(self, path: Path, head: Head) -> float:
        names = {*head.header}
        keypoints = _keypoints([*names])
        if not keypoints:
            return 0.0
        return 0.95 if "fnum" in names or any(f"{keypoint}_ncams" in names for keypoint in keypoints) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        select_entries(path, entry, [path.stem])
        header = arrow_tables.first_rows(path, 1)[0][0]
        keypoints = _keypoints(header)
        if not keypoints:
            raise FormatError(path, "no keypoint has columns ending in _x, _y and _z", "header")
        repeated = duplicates(header)
        if repeated:
            raise FormatError(path, f"duplicate column {repeated[0]!r}", "header")
        columns = {
            f"{keypoint}_{suffix}": (pose_arrays.ONLY_INDIVIDUAL, keypoint, axis)
            for keypoint in keypoints
            for suffix, axis in AXIS_OF_SUFFIX.items()
        }
        unknown = [i for i, name in enumerate(header) if name not in columns and name != "fnum" and not EXTRA_COLUMN.fullmatch(name)]
        table = arrow_tables.read_wide(path, 1, unknown)
        if not len(table.values):
            raise FormatError(path, "no rows of poses below the header", "row 1")
        numbers = {name: table.values[:, n] for n, name in enumerate(name for i, name in enumerate(header) if i not in unknown)}
        values = table.values
        notes: list[Note] = []
        if "fnum" in numbers:
            frames = pose_arrays.frame_numbers(path, [str(v) for v in numbers["fnum"]], table.first_row)
            if frames is not None:
                (values,), notes = pose_arrays.on_frames(path, frames, values, first_row=table.first_row)
        spread = dict(zip(numbers, values.T, strict=True))
        used = [name for name in spread if name in columns]
        poses, more_notes = pose_arrays.poses_of_columns(
            path, [columns[name] for name in used], np.stack([spread[n] for n in used], axis=1), rate
        )
        extra_columns = {name: spread[name] for name in spread if name not in columns and name != "fnum"}
        more_notes += ignored_columns([header[i] for i in unknown])
        metadata = {"source_software": "Anipose", "columns": extra_columns}
        return [pose_arrays.pose_recording(path, poses, [*notes, *more_notes], metadata)]


def _keypoints(header: list[str]) -> list[str]:
    """Return the keypoints that have all three coordinates, in the order of the columns."""
    names = {*header}
    return [name[:-2] for name in header if name.endswith("_x") and {f"{name[:-2]}_y", f"{name[:-2]}_z"} <= names and len(name) > 2]
