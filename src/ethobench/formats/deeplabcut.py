"""Poses of DeepLabCut (CSV or H5, one or several animals) and of Lightning Pose (CSV in the same layout).

The table has one row per frame below three header rows (scorer, bodyparts, coords), or four for several animals (individuals). The index
is the frame number; rows with image names as index are counted in order. If a project distinguishes animals by prefixes of body parts,
they remain one individual. Points that belong to no animal are those of the individual "single". Files do not state a frame rate.

Lightning Pose writes the scorer ``heatmap_tracker`` or similar, and one file per camera. Views of one mirrored video remain one
individual, whose keypoints have the view in their names. The ``set`` column of predictions on labeled frames is kept as metadata.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.messages import Message, rate_option
from ethobench.formats import arrow_tables, hdf5, pose_arrays
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.safe_pickle import load_plain
from ethobench.formats.text import HEAD_BYTES, Head

if TYPE_CHECKING:
    import h5py


LEVELS = ("scorer", "individuals", "bodyparts", "coords")
INDEX_NAMES = ("", "n.", "index", "frame", "frames")
TRACKER = "_tracker"
H5_KEYS = {"df_with_missing", "tracks", "tracked"}
MAX_PICKLED = 1 << 24  # bytes


@register_format("deeplabcut")
class DeepLabCut(Format):
    """Rows of x, y, likelihood for every body part."""

    title = "DeepLabCut"
    suffixes = (".csv", ".h5")
    contents = ("poses",)

    def sniff(self, path: Path, head: Head) -> float:
        if head.is_hdf5:
            names = hdf5.top_names(head)
            return (0.95 if H5_KEYS & names else 0.5) if "@PYTABLES_FORMAT_VERSION" in names else 0.0
        scorer = scorer_of(head)
        return 0.0 if scorer is None or scorer.endswith(TRACKER) else 1.0 if scorer.startswith("DLC") else 0.95

    def entries(self, path: Path) -> list[str]:
        if not _is_hdf5(path):
            return [path.stem]
        with hdf5.open_file(path) as file:
            groups = _frames_in(path, file)
        return groups if len(groups) > 1 else [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        if not _is_hdf5(path):
            select_entries(path, entry, [path.stem])
            return [read_table(path, rate, "DeepLabCut")]
        with hdf5.open_file(path) as file:
            groups = _frames_in(path, file)
            has_several = len(groups) > 1
            selected = select_entries(path, entry, groups if has_several else [path.stem])
            return [_read_frame(path, file, name, rate, has_several) for name in (selected if has_several else groups)]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        recording = recordings[0]
        poses = recording.signals
        if not isinstance(poses, Poses):
            raise EthobenchError(f"DeepLabCut files store poses, but recording {recording.id!r} has none")
        if path.suffix.lower() != ".csv":
            raise EthobenchError("DeepLabCut files are written as CSV; choose a file name that ends in .csv")
        return _write_table(recording, poses, path)


@register_format("lightning_pose")
class LightningPose(Format):
    """Rows of x, y, likelihood for every keypoint."""

    title = "Lightning Pose"
    suffixes = (".csv",)
    contents = ("poses",)

    def sniff(self, path: Path, head: Head) -> float:
        scorer = scorer_of(head)
        return 1.0 if scorer is not None and scorer.endswith(TRACKER) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        select_entries(path, entry, [path.stem])
        return [read_table(path, rate, "LightningPose")]


def scorer_of(head: Head) -> str | None:
    """Return the scorer of a table in the layout of DeepLabCut; None if the file is not such a table."""
    lines = [[cell.strip().strip('"').strip() for cell in re.split(r"[,;\t|]", line)] for line in head.lines[:4]]
    first = [line[0].lower() for line in lines]
    if not head.text:  # the first row is longer than the head
        return "" if re.match(rb'(\xef\xbb\xbf)?"?scorer"?[,;\t|]', head.raw) and b"\0" not in head.raw[:1000] else None
    is_truncated = len(head.raw) == HEAD_BYTES and len(lines) < 4
    if first[:1] != ["scorer"] or not (is_truncated or "bodyparts" in first[1:3]):
        return None
    return next((cell for cell in lines[0][1:] if cell), "")


def read_table(path: Path, rate: float | None, software: str) -> Recording:
    """Read a CSV table with the header rows of DeepLabCut, which other trackers write too."""
    rows, *_ = arrow_tables.first_rows(path, len(LEVELS) + 1)
    levels = {row[0].lower(): row for row in rows if row and row[0].lower() in LEVELS}
    missing = [name for name in ("bodyparts", "coords") if name not in levels]
    if missing:
        raise FormatError(path, f"no header row {' and no '.join(missing)}", "header")
    n_header = len(levels)
    width = max(len(row) for row in levels.values())
    cells = {name: (row + [""] * width)[:width] for name, row in levels.items()}
    n_index = 1 + next((i for i in range(width - 1) if any(row[i + 1] for row in cells.values())), 0)
    extra = [i for i in range(n_index, width) if not cells["bodyparts"][i] and not cells["coords"][i]]
    after = rows[n_header] if len(rows) > n_header else []
    n_header += bool(after) and after[0].lower() in INDEX_NAMES and not any(after[1:])
    table = arrow_tables.read_wide(path, n_header, [*range(n_index), *extra])
    if not len(table.values):
        raise FormatError(path, "no rows of poses below the header", f"row {n_header}")
    blank = [""] * width
    individuals, scorer = cells.get("individuals", blank), cells.get("scorer", blank)
    points = [i for i in range(n_index, width) if i not in extra]
    columns = [(individuals[i] or pose_arrays.ONLY_INDIVIDUAL, cells["bodyparts"][i], cells["coords"][i].lower()) for i in points]
    index = ["/".join(row) for row in zip(*table.text_columns[:n_index], strict=True)]
    extra_columns = {scorer[i] or f"column {i + 1}": table.text_columns[n_index + n] for n, i in enumerate(extra)}
    scorers = dict.fromkeys(re.sub(r"\.\d+$", "", scorer[i]) for i in points)
    metadata = {"source_software": software, "scorer": ", ".join(s for s in scorers if s), **extra_columns}
    return _recording(path, columns, index, table.values, rate, metadata, table.first_row)


def _recording(
    path: Path,
    columns: Sequence[tuple[str, str, str]],
    index: Sequence[str],
    values: NDArray[Any],
    rate: float | None,
    metadata: dict[str, Any],
    first_row: int,
    entry: str | None = None,
) -> Recording:
    frames = pose_arrays.frame_numbers(path, index, first_row)
    notes: list[Note] = []
    if frames is None:
        metadata["images"] = list(index)
        notes.append(Note(f"the index holds images such as {index[0]!r}, not frames; rows are counted in order", code="no-frame-numbers"))
    else:
        (values,), notes = pose_arrays.on_frames(path, frames, values, first_row=first_row)
    poses, more_notes = pose_arrays.poses_of_columns(path, columns, values, rate)
    return pose_arrays.pose_recording(path, poses, [*notes, *more_notes], metadata, entry)


def _write_table(recording: Recording, poses: Poses, path: Path) -> list[Note]:
    axes = (*pose_arrays.AXES[: poses.positions.shape[3]], pose_arrays.CONFIDENCE)
    columns = [(individual, keypoint, axis) for individual in poses.individuals for keypoint in poses.keypoints for axis in axes]
    scorer = str(recording.metadata.get("scorer") or "")
    scorer = scorer if scorer and not scorer.endswith(TRACKER) else "ethobench"
    levels = {"scorer": [scorer] * len(columns)}
    if poses.individuals != (pose_arrays.ONLY_INDIVIDUAL,):
        levels["individuals"] = [individual for individual, *_ in columns]
    levels |= {"bodyparts": [keypoint for _, keypoint, _ in columns], "coords": [axis for *_, axis in columns]}
    cells = np.concatenate((poses.positions, poses.confidence[..., None]), axis=-1).reshape(len(poses), -1)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([name, *row] for name, row in levels.items())
        writer.writerows([i, *("" if isnan(value) else value for value in row)] for i, row in enumerate(cells.tolist()))
    origin = (poses.confidence == 0) & (poses.positions == 0).all(axis=-1)
    losses = {
        "lost-annotations": ("annotations; they are lost", bool(recording.annotations)),
        "lost-features": ("features; they are lost", recording.features is not None),
        "lost-rate": (Message("the frame rate; read them with ", rate_option(poses.rate or 0)), poses.rate is not None),
        "lost-points": (f"points at 0, 0 with confidence 0; {int(origin.sum())} will be read as missing", bool(origin.any())),
    }
    return [Note(Message("DeepLabCut files do not store ", message), code=code) for code, (message, is_lost) in losses.items() if is_lost]


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x89HDF"


def _frames_in(path: Path, file: h5py.File) -> list[str]:
    """Return the names of the tables that pandas wrote to an H5 file."""
    import h5py

    groups = []
    for name in hdf5.names(file):
        node = hdf5.member(path, file, name)
        if isinstance(node, h5py.Group) and hdf5.plain_text(node.attrs.get("pandas_type", b"")) in ("frame", "frame_table"):
            groups.append(name)
    if not groups:
        raise FormatError(path, f"no table of poses; the file contains: {', '.join(hdf5.names(file)) or 'nothing'}")
    return groups


def _read_frame(path: Path, file: h5py.File, name: str, rate: float | None, has_several: bool) -> Recording:
    import h5py

    group = hdf5.member(path, file, name)
    as_table = isinstance(hdf5.member(path, group, "table"), h5py.Dataset)
    labels, index, values = _queryable(path, group) if as_table else _fixed(path, group)
    if not len(values):
        raise FormatError(path, "the table of poses has no rows", name)
    depth = {len(label) for label in labels}
    if depth not in ({3}, {4}):
        raise FormatError(path, "the column names must consist of scorer, (individual,) body part and coordinate", name)
    columns = [(label[1] if len(label) == 4 else pose_arrays.ONLY_INDIVIDUAL, label[-2], label[-1].lower()) for label in labels]
    scorers = dict.fromkeys(label[0] for label in labels)
    metadata = {"source_software": "DeepLabCut", "scorer": ", ".join(scorers)}
    return _recording(path, columns, index, values, rate, metadata, 1, name if has_several else None)


def _fixed(path: Path, group: h5py.Group) -> tuple[list[list[str]], list[str], NDArray[Any]]:
    """Read the "fixed" layout of pandas: blocks of values, and column names as levels and codes."""
    labels: list[list[str]] = []
    blocks = []
    for b in range(int(group.attrs.get("nblocks", 0))):
        blocks.append(hdf5.array(path, group, f"block{b}_values", 2))
        labels += _names(path, group, f"block{b}_items")
        if blocks[-1].dtype.kind not in "fiub" or len(labels) != sum(block.shape[1] for block in blocks):
            raise FormatError(path, "the numbers of columns and of column names differ", f"{group.name}/block{b}_values")
    if not blocks:
        raise FormatError(path, "the table has no values", group.name)
    index = ["/".join(levels) for levels in _names(path, group, "axis1")]
    values = np.concatenate(blocks, axis=1).astype(np.float64)
    if len(index) != len(values):
        raise FormatError(path, f"{len(index)} names for {len(values)} rows", group.name)
    return labels, index, values


def _names(path: Path, group: h5py.Group, axis: str) -> list[list[str]]:
    """Return the names along an axis, each as a list of its levels."""
    if hdf5.plain_text(group.attrs.get(f"{axis}_variety", b"regular")) != "multi":
        return [[text] for text in hdf5.texts(path, group, axis)]
    levels = []
    for level in range(int(group.attrs.get(f"{axis}_nlevels", 0))):
        names = hdf5.texts(path, group, f"{axis}_level{level}")
        codes = hdf5.array(path, group, f"{axis}_label{level}", 1)
        if codes.size and (codes.min() < -1 or codes.max() >= len(names)):
            raise FormatError(path, f"invalid codes in level {level}", f"{group.name}/{axis}")
        levels.append([names[code] if code >= 0 else "" for code in codes])
    return [list(label) for label in zip(*levels, strict=True)]


def _queryable(path: Path, group: h5py.Group) -> tuple[list[list[str]], list[str], NDArray[Any]]:
    """Read the "table" layout of pandas, which DeepLabCut writes: records, with pickled column names."""
    table = hdf5.member(path, group, "table")
    records = hdf5.array(path, group, "table", 1)
    blocks = [name for name in records.dtype.names or () if name.startswith("values_block_")]
    if not blocks or "index" not in (records.dtype.names or ()):
        raise FormatError(path, "the table has no values or no index", table.name)
    labels: list[list[str]] = []
    for name in blocks:
        pickled = table.attrs.get(f"{name}_kind", b"")
        raw = pickled if isinstance(pickled, bytes) else bytes(pickled)
        if len(raw) > MAX_PICKLED:
            raise FormatError(path, f"refused: the column names take {len(raw):,} bytes", table.name)
        block_labels = load_plain(path, raw, f"{table.name}, column names")
        if not isinstance(block_labels, list) or not all(map(_is_label, block_labels)):
            raise FormatError(path, "invalid column names", table.name)
        labels += [[str(level) for level in label] for label in block_labels]
    values = np.concatenate([records[name].reshape(len(records), -1) for name in blocks], axis=1).astype(np.float64)
    if len(labels) != values.shape[1]:
        raise FormatError(path, f"{len(labels)} names for {values.shape[1]} columns", table.name)
    return labels, [hdf5.plain_text(value) for value in records["index"].tolist()], values


def _is_label(label: Any) -> bool:
    return isinstance(label, (tuple, list)) and all(isinstance(level, (str, bytes, int, float)) for level in label)
