"""Numbers in the cells of text files, and the bounds of what a tracker or tag can have measured."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording, Signals
from ethobench.core.errors import Note, ReadWarning
from ethobench.core.recording import Data

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?nan", re.IGNORECASE)
MAX_COORDINATE = 1e7  # a video is at most some 10,000 pixels wide, and an arena of 10 m is 1e7 micrometres
MAX_CONFIDENCE = 100.0  # heat maps of SLEAP and JABS peak at 1 to 6, and some trackers write percent


def parse_number(text: str) -> float:
    """Return the number that a cell holds.

    Python's own ``float`` also takes underscores, digits of other scripts and infinity, which no program writes as a number.

    Raises
    ------
    ValueError
        For any other text.

    Examples
    --------
    >>> parse_number(" 2.5e3 ")
    2500.0
    >>> parse_number("1_000")
    Traceback (most recent call last):
    ...
    ValueError: '1_000' is not a number
    """
    if NUMBER.fullmatch(text.strip()) is None:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def parse_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Return the numbers that many cells hold, as `parse_number` does, only quicker; infinity is let through."""
    text = "".join(cells)
    if "_" in text or not text.isascii():
        return np.array([parse_number(cell) for cell in cells])
    return np.array(cells, dtype=np.float64)


def parse_integer(text: str) -> int:
    """Return the whole number that a cell holds, written with the digits 0 to 9 alone; a `ValueError` for any other text."""
    if re.fullmatch(r"[+-]?[0-9]+", text.strip()) is None:
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def is_number(text: str) -> bool:
    """Tell whether a cell holds a number."""
    return NUMBER.fullmatch(text.strip()) is not None


def check_measurements(recordings: Sequence[Recording]) -> None:
    """Make values that nothing can have measured missing, and note it; signals that are loaded later are checked then.

    These are infinite values; coordinates beyond `MAX_COORDINATE`; and confidences that are negative or beyond `MAX_CONFIDENCE`.
    """
    for recording in recordings:
        if callable(recording._signals):
            recording._signals = partial(_load_checked, recording, recording._signals)  # can be pickled, as closures cannot
        elif recording._signals is not None:
            recording._signals, notes = without_impossible_values(recording._signals)
            recording.notes = (*recording.notes, *notes)


def _load_checked(recording: Recording, load: Callable[[], Data]) -> Data:
    data, notes = without_impossible_values(load())
    recording.notes = (*recording.notes, *notes)
    for note in notes:
        warnings.warn(f"{recording.id}: {note}", ReadWarning, stacklevel=3)
    return data


def without_impossible_values(data: Data) -> tuple[Data, list[Note]]:
    """Return signals or poses whose impossible values are missing, and notes; the same object where there are none."""
    if isinstance(data, Signals):
        bad = _outside(data.values, -np.finfo(np.float64).max, np.finfo(np.float64).max)
        if bad is None:
            return data, []
        frame, channel = (int(i) for i in np.argwhere(bad)[0])
        first = f"the first: frame {frame}, channel {data.channels[channel]!r}"
        values = np.where(bad, np.nan, data.values)
        return replace(data, values=values), [Note(f"{_count(bad)} values are infinite; taken as missing ({first})")]
    notes = []
    bad = _outside(data.positions, -MAX_COORDINATE, MAX_COORDINATE)
    if bad is not None:
        points: NDArray[np.bool_] = np.logical_or.reduce(bad, axis=-1)
        what = f"infinite or beyond {MAX_COORDINATE:g}"
        notes.append(Note(f"{_count(points)} points have a coordinate that is {what}; taken as missing ({_first(data, points)})"))
        data = replace(data, positions=np.where(points[..., None], np.nan, data.positions))
    bad = _outside(data.confidence, 0.0, MAX_CONFIDENCE)
    if bad is not None:
        what = f"negative, infinite or above {MAX_CONFIDENCE:g}"
        notes.append(Note(f"{_count(bad)} confidences are {what}; taken as not given ({_first(data, bad)})"))
        data = replace(data, confidence=np.where(bad, np.nan, data.confidence))
    return data, notes


def _outside(values: NDArray[np.float64], least: float, most: float) -> NDArray[np.bool_] | None:
    """Return where values lie outside bounds, or None where none does; missing values lie within."""
    if values.size == 0 or values.dtype.kind != "f":
        return None
    lowest, highest = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if not (lowest < least or highest > most):
        return None
    outside: NDArray[np.bool_] = (values < least) | (values > most)
    return outside


def _count(bad: NDArray[np.bool_]) -> str:
    return f"{int(bad.sum())} of {bad.size}"


def _first(poses: Poses, bad: NDArray[np.bool_]) -> str:
    frame, individual, keypoint = (int(i) for i in np.argwhere(bad)[0])
    return f"the first: frame {frame}, {poses.individuals[individual]!r}, {poses.keypoints[keypoint]!r}"
