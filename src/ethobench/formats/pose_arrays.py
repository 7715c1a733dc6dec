"""Conversion of poses in tracker files to arrays: columns to keypoints, rows to frames, timestamps to a regular clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording
from ethobench.core.errors import FormatError, Note
from ethobench.formats.base import ignored_columns
from ethobench.formats.size_limits import check_size
from ethobench.formats.text import is_number, parse_numbers

ONLY_INDIVIDUAL = "individual"
SHARED_POINTS = "single"
AXES = ("x", "y", "z")
CONFIDENCE = "likelihood"
MAX_JITTER = 0.4  # frames by which the timestamps of a regular clock may be off
MAX_FRAME = 2**53  # beyond, not every integer is a float


def pose_recording(path: Path, poses: Poses, notes: Sequence[Note], metadata: Mapping[str, Any], entry: str | None = None) -> Recording:
    """Return the recording of a pose file, or of one of its entries."""
    named = [name for name in poses.individuals if name not in (ONLY_INDIVIDUAL, SHARED_POINTS)]
    return Recording(
        path.stem if entry is None else f"{path.stem}/{entry}",
        rate=poses.rate,
        n_frames=len(poses),
        subjects=tuple(named),
        signals=poses,
        metadata=dict(metadata),
        notes=tuple(notes),
    )


def poses_of_columns(
    path: Path, columns: Sequence[tuple[str, str, str]], values: NDArray[Any], rate: float | None
) -> tuple[Poses, list[Note]]:
    """Return poses from a table with one column for each individual, keypoint and axis (x, y, z, likelihood).

    Keypoints that only some individuals have are missing in the others. Points at 0, 0 with likelihood 0 become missing, with a note,
    because some trackers write missing points that way.

    Parameters
    ----------
    path : Path
    columns : sequence of (individual, keypoint, axis)
    values : array, (n_frames, n_columns)
    rate : float or None
        Frames per second.
    """
    kinds = (*AXES, CONFIDENCE)
    used = [i for i, column in enumerate(columns) if column[2] in kinds]
    notes = ignored_columns(sorted({axis or "(none)" for *_, axis in columns if axis not in kinds}), "coordinates")
    individuals = tuple(dict.fromkeys(columns[i][0] for i in used))
    keypoints = tuple(dict.fromkeys(columns[i][1] for i in used))
    if not used:
        raise FormatError(path, "no columns of coordinates (x, y)", "header")
    names = {columns[i] for i in used}
    if len(names) != len(used):
        repeated = next(column for column, count in Counter(columns[i] for i in used).items() if count > 1)
        raise FormatError(path, f"duplicate column {' '.join(filter(None, repeated))}", "header")
    n_axes = 3 if any(axis == "z" for *_, axis in names) else 2
    for individual, keypoint in dict.fromkeys(column[:2] for column in names):
        absent = [axis for axis in AXES[:n_axes] if (individual, keypoint, axis) not in names]
        if absent:
            raise FormatError(path, f"keypoint {keypoint!r} has no {' and no '.join(absent)}", "header")
    shape = (len(values), len(individuals), len(keypoints))
    check_size(path, int(np.prod(shape)) * (n_axes + 1) * 8, values.nbytes)
    cells = np.full((*shape, n_axes + 1), np.nan)
    axis_index = {**{axis: n for n, axis in enumerate(AXES[:n_axes])}, CONFIDENCE: n_axes}
    individual_index, keypoint_index = ({name: n for n, name in enumerate(names)} for names in (individuals, keypoints))
    cell_indices = np.array([(individual_index[columns[i][0]], keypoint_index[columns[i][1]], axis_index[columns[i][2]]) for i in used])
    cells[:, cell_indices[:, 0], cell_indices[:, 1], cell_indices[:, 2]] = values[:, used]
    positions, confidence = np.ascontiguousarray(cells[..., :n_axes]), np.ascontiguousarray(cells[..., n_axes])
    blank = (confidence == 0) & (positions == 0).all(axis=-1)
    if blank.any():
        positions[blank] = np.nan
        message = f"{int(blank.sum())} of {blank.size} points are at 0, 0 with likelihood 0; read as missing"
        notes.append(Note(message, code="missing-points"))
    return Poses(positions, confidence, individuals, keypoints, rate), notes


def frame_numbers(path: Path, cells: Sequence[str], first_row: int) -> NDArray[np.int64] | None:
    """Return an index column as frame numbers; None if no cell is a number, as in a column of image paths."""
    try:
        numbers = parse_numbers(cells)
    except ValueError:
        is_text = [not is_number(cell) for cell in cells]
        if all(is_text):
            return None
        i = is_text.index(True)
        raise FormatError(path, f"{cells[i]!r} is not a frame number", f"row {first_row + i}") from None
    valid = np.isfinite(numbers) & (numbers >= 0) & (numbers < MAX_FRAME) & (numbers == np.floor(numbers))
    if not valid.all():
        i = int(np.flatnonzero(~valid)[0])
        raise FormatError(path, f"{cells[i]!r} is not a frame number", f"row {first_row + i}")
    return numbers.astype(np.int64)


def on_frames(path: Path, frames: NDArray[np.int64], *arrays: NDArray[Any], first_row: int) -> tuple[list[NDArray[Any]], list[Note]]:
    """Return arrays with one row per frame, from rows with frame numbers; frames without a row are NaN, with a note."""
    n_rows = len(frames)
    if n_rows == 0 or np.array_equal(frames, np.arange(n_rows)):
        return list(arrays), []
    order = np.argsort(frames, kind="stable")
    repeated = np.flatnonzero(np.diff(frames[order]) == 0)
    if repeated.size:
        i = int(order[repeated[0] + 1])
        raise FormatError(path, f"duplicate frame {frames[i]}", f"row {first_row + i}")
    n_frames = int(frames.max()) + 1
    for array in arrays:
        check_size(path, n_frames * array[:1].nbytes, array.nbytes)
    spread = []
    for array in arrays:
        full = np.full((n_frames, *array.shape[1:]), np.nan)
        full[frames] = array
        spread.append(full)
    first = f", including the first {frames.min()}" if frames.min() > 0 else ""
    gap = n_frames - n_rows
    message = f"{gap} of {n_frames} frames have no row{first}; their points are missing"
    return spread, [Note(message, code="missing-frames")] if gap else []


def regular_clock(
    path: Path, times: NDArray[np.float64], stated: float | None, requested: float | None, location: str
) -> tuple[NDArray[np.int64], float | None, list[Note]]:
    """Resample timestamps to a regular clock.

    Parameters
    ----------
    path : Path
    times : array
        Increasing times in seconds.
    stated : float, optional
        Rate stated by the file, in Hz. By default it is estimated from the times.
    requested : float, optional
        Rate of the result, in Hz. By default the rate of the file.
    location : str
        Location for notes and errors.

    Returns
    -------
    samples : array of int
        Index of the nearest sample of each frame, or -1 in a gap.
    rate : float or None
        None if the times are frame numbers (0, 1, 2, ...) and no rate is requested.
    notes : list of Note
    """
    n = len(times)
    every_sample = np.arange(n)
    if n < 2:
        return every_sample, requested or stated, []
    step = np.diff(times)
    if not (np.isfinite(times).all() and (step > 0).all()):
        raise FormatError(path, "the timestamps do not increase", location)
    if stated is None and np.array_equal(times, np.rint(times)) and float(np.median(step)) == 1.0 and times[0] >= 0:
        check_size(path, 8 * (int(times[-1]) + 1), path.stat().st_size)
        gaps, full = int(times[-1] - times[0]) + 1 - n, np.full(int(times[-1]) + 1, -1)
        full[times.astype(np.int64)] = every_sample
        missing = f"; {gaps} frames are missing" if gaps else ""
        message = f"timestamps are frame numbers (0, 1, 2, ...), not seconds, so the rate is unknown{missing}"
        return full, requested, [Note(message, location, "unknown-rate")]
    mean, median = ((n - 1) / float(times[-1] - times[0]), 1 / float(np.median(step)))
    file_rate = stated or next((_round_rate(r) for r in (mean, median) if _is_regular(times, _round_rate(r))), _round_rate(median))
    rate = requested or file_rate
    length = int(np.floor((times[-1] - times[0]) * rate + 0.5)) + 1
    check_size(path, length * 8, path.stat().st_size)
    if rate == file_rate and np.array_equal(np.rint((times - times[0]) * rate), every_sample):
        return every_sample, rate, []
    frames = times[0] + np.arange(length) / rate
    after = np.clip(np.searchsorted(times, frames), 1, n - 1)
    nearest = np.where(frames - times[after - 1] <= times[after] - frames, after - 1, after)
    gap = np.abs(times[nearest] - frames) > 0.5 / min(rate, file_rate) * 1.001
    change = f"resampled from {file_rate:g} Hz to {rate:g} Hz with the nearest sample for each frame"
    if rate == file_rate:
        change = f"irregular timestamps resampled to {rate:g} Hz with the nearest sample for each frame"
    message = f"{change}; {int(gap.sum())} of {length} frames have none"
    return np.where(gap, -1, nearest), rate, [Note(message, location, "resampled")]


def _is_regular(times: NDArray[np.float64], rate: float) -> bool:
    """Return whether the times are those of a regular clock at this rate.

    The tolerance is below half a frame, because the mean rate of times with a gap is off by that much around the gap.
    """
    return bool(np.abs((times - times[0]) * rate - np.arange(len(times))).max() < MAX_JITTER)


def _round_rate(rate: float) -> float:
    """Return a measured rate rounded to two decimals, if the difference is within the noise of timestamps."""
    near = round(rate, 2)
    return near if near and abs(rate - near) < 1e-4 * rate else rate
