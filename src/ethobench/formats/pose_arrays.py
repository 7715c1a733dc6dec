"""Poses as the trackers' files hold them: columns made into arrays, rows put on their frames, timestamps on an even clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording
from ethobench.core.errors import FormatError, Note
from ethobench.formats.size_limits import check_size
from ethobench.formats.text import is_number, parse_numbers

ONLY_INDIVIDUAL = "individual"
SHARED_POINTS = "single"
AXES = ("x", "y", "z")
CONFIDENCE = "likelihood"
MAX_JITTER = 0.4  # frames by which timestamps of an even clock may be off
LARGEST_FRAME = 2**53  # from here on, not every whole number is a float


def pose_recording(path: Path, poses: Poses, notes: Sequence[Note], metadata: Mapping[str, Any], entry: str | None = None) -> Recording:
    """Make the recording of a pose file, or of one of its entries."""
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
    """Make poses from a table with one column for each individual, keypoint and axis (x, y, z, likelihood).

    Keypoints that only some individuals have are missing in the others. Trackers that write missing points as 0, 0 with
    likelihood 0 are understood: such points become missing, with a note.
    """
    kinds = (*AXES, CONFIDENCE)
    known = [i for i, column in enumerate(columns) if column[2] in kinds]
    notes = [Note(f"coordinates not understood and left out: {', '.join(strange)}")] if (strange := _strange(columns, kinds)) else []
    individuals = tuple(dict.fromkeys(columns[i][0] for i in known))
    keypoints = tuple(dict.fromkeys(columns[i][1] for i in known))
    if not known:
        raise FormatError(path, "no column holds coordinates (x, y)", "header")
    found = {columns[i] for i in known}
    if len(found) != len(known):
        twice = next(column for column, count in Counter(columns[i] for i in known).items() if count > 1)
        raise FormatError(path, f"{' '.join(part for part in twice if part)} stands twice", "header")
    n_axes = 3 if any(axis == "z" for *_, axis in found) else 2
    for who, point in dict.fromkeys(column[:2] for column in found):
        absent = [axis for axis in AXES[:n_axes] if (who, point, axis) not in found]
        if absent:
            raise FormatError(path, f"keypoint {point!r} has no {' and no '.join(absent)}", "header")
    shape = (len(values), len(individuals), len(keypoints))
    check_size(path, int(np.prod(shape)) * (n_axes + 1) * 8, values.nbytes)
    cells = np.full((*shape, n_axes + 1), np.nan)
    axis_index = {**{axis: n for n, axis in enumerate(AXES[:n_axes])}, CONFIDENCE: n_axes}
    individual_index, keypoint_index = ({name: n for n, name in enumerate(names)} for names in (individuals, keypoints))
    cell_indices = np.array([(individual_index[columns[i][0]], keypoint_index[columns[i][1]], axis_index[columns[i][2]]) for i in known])
    cells[:, cell_indices[:, 0], cell_indices[:, 1], cell_indices[:, 2]] = values[:, known]
    positions, confidence = np.ascontiguousarray(cells[..., :n_axes]), np.ascontiguousarray(cells[..., n_axes])
    blank = (confidence == 0) & (positions == 0).all(axis=-1)
    if blank.any():
        positions[blank] = np.nan
        notes.append(Note(f"{int(blank.sum())} of {blank.size} points stand at 0, 0 with likelihood 0; taken as missing"))
    return Poses(positions, confidence, individuals, keypoints, rate), notes


def frame_numbers(path: Path, cells: Sequence[str], first_row: int) -> NDArray[np.int64] | None:
    """Read an index column as frame numbers; None where no cell is a number, as in a column with the paths of images."""
    try:
        numbers = parse_numbers(cells)
    except ValueError:
        named = [not is_number(cell) for cell in cells]
        if all(named):
            return None
        i = named.index(True)
        raise FormatError(path, f"{cells[i]!r} is no frame number", f"row {first_row + i}") from None
    whole = np.isfinite(numbers) & (numbers >= 0) & (numbers < LARGEST_FRAME) & (numbers == np.floor(numbers))
    if not whole.all():
        i = int(np.flatnonzero(~whole)[0])
        raise FormatError(path, f"{cells[i]!r} is no frame number", f"row {first_row + i}")
    return numbers.astype(np.int64)


def on_frames(path: Path, frames: NDArray[np.int64], *arrays: NDArray[Any], first_row: int) -> tuple[list[NDArray[Any]], list[Note]]:
    """Put rows at the frames that they name; frames without a row are missing, and noted."""
    n_rows = len(frames)
    if n_rows == 0 or np.array_equal(frames, np.arange(n_rows)):
        return list(arrays), []
    order = np.argsort(frames, kind="stable")
    again = np.flatnonzero(np.diff(frames[order]) == 0)
    if again.size:
        i = int(order[again[0] + 1])
        raise FormatError(path, f"frame {frames[i]} stands twice", f"row {first_row + i}")
    n_frames = int(frames.max()) + 1
    for array in arrays:
        check_size(path, n_frames * array[:1].nbytes, array.nbytes)
    spread = []
    for array in arrays:
        full = np.full((n_frames, *array.shape[1:]), np.nan)
        full[frames] = array
        spread.append(full)
    begin = f", the first {frames.min()} among them" if frames.min() > 0 else ""
    gap = n_frames - n_rows
    return spread, [Note(f"{gap} of {n_frames} frames have no row{begin}; their points are missing")] if gap else []


def even_clock(
    path: Path, times: NDArray[np.float64], stated: float | None, wanted: float | None, location: str
) -> tuple[NDArray[np.int64], float | None, list[Note]]:
    """Bring timestamps to an even clock.

    Parameters
    ----------
    path : Path
    times : array
        Rising, in seconds.
    stated : float, optional
        The rate that the file tells; found from the times unless given.
    wanted : float, optional
        The rate to read at; the file's own unless given.
    location : str
        Named in notes and errors.

    Returns
    -------
    samples : array of int
        Which sample each frame takes: the nearest one, -1 where there is a gap.
    rate : float or None
        None where the times only count frames (0, 1, 2, ...) and no rate is wanted.
    notes : list of Note
    """
    n = len(times)
    each = np.arange(n)
    if n < 2:
        return each, wanted or stated, []
    step = np.diff(times)
    if not (np.isfinite(times).all() and (step > 0).all()):
        raise FormatError(path, "its timestamps do not rise", location)
    if stated is None and np.array_equal(times, np.rint(times)) and float(np.median(step)) == 1.0 and times[0] >= 0:
        check_size(path, 8 * (int(times[-1]) + 1), path.stat().st_size)
        gaps, full = int(times[-1] - times[0]) + 1 - n, np.full(int(times[-1]) + 1, -1)
        full[times.astype(np.int64)] = each
        lost = f"; {gaps} frames are missing" if gaps else ""
        return full, wanted, [Note(f"timestamps count frames (0, 1, 2, ...) rather than seconds, so the rate is not known{lost}", location)]
    mean, usual = ((n - 1) / float(times[-1] - times[0]), 1 / float(np.median(step)))
    own = stated or next((_neat(r) for r in (mean, usual) if _is_even(times, _neat(r))), _neat(usual))
    rate = wanted or own
    length = int(np.floor((times[-1] - times[0]) * rate + 0.5)) + 1
    check_size(path, length * 8, path.stat().st_size)
    if rate == own and np.array_equal(np.rint((times - times[0]) * rate), each):
        return each, rate, []
    frames = times[0] + np.arange(length) / rate
    after = np.clip(np.searchsorted(times, frames), 1, n - 1)
    nearest = np.where(frames - times[after - 1] <= times[after] - frames, after - 1, after)
    gap = np.abs(times[nearest] - frames) > 0.5 / min(rate, own) * 1.001
    what = f"resampled from {own:g} Hz to {rate:g} Hz" if rate != own else f"uneven timestamps brought to {rate:g} Hz"
    note = Note(f"{what}, each frame taking the nearest sample; {int(gap.sum())} of {length} frames have none", location)
    return np.where(gap, -1, nearest), rate, [note]


def _is_even(times: NDArray[np.float64], rate: float) -> bool:
    """Tell whether each time is that of its sample at this rate.

    The mean rate of times with a gap would fit too, but for half a frame before or after the gap, so less is allowed.
    """
    return bool(np.abs((times - times[0]) * rate - np.arange(len(times))).max() < MAX_JITTER)


def _neat(rate: float) -> float:
    """Round a measured rate that is a round number but for the noise of its timestamps."""
    near = round(rate, 2)
    return near if near and abs(rate - near) < 1e-4 * rate else rate


def _strange(columns: Sequence[tuple[str, str, str]], kinds: Sequence[str]) -> list[str]:
    return sorted({axis or "(none)" for *_, axis in columns if axis not in kinds})
