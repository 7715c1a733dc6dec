"""Regular clocks from the frame numbers or times of a table with one row per frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, ClockOrigin
from ethobench.core.errors import FormatError, Note
from ethobench.formats.bouts import frames_rate
from ethobench.formats.per_frame import TIME_NAMES, FrameTable
from ethobench.formats.text import parse_number

MAX_FRAMES_PER_ROW = 100
MAX_INDEX = 1e12
MAX_JITTER = 0.1  # frames


@dataclass
class FrameClock:
    """The frame of each row of a table.

    Attributes
    ----------
    rate : float
        Frames per second.
    n_frames : int
    position : array of int64
        The frame of each row. Frames without a row are unobserved.
    notes : list of Note
    origin : ClockOrigin
        STATED if the table has a time for each row, ASSUMED if it has only frame numbers.
    """

    rate: float
    n_frames: int
    position: NDArray[np.int64]
    notes: list[Note]
    origin: ClockOrigin = ClockOrigin.ASSUMED

    def spread(self, values: NDArray[Any], fill: float) -> NDArray[Any]:
        """Return an array with one value per frame from one value per row; frames without a row hold `fill`."""
        if len(values) == self.n_frames:
            return values
        frames = np.full((self.n_frames, *values.shape[1:]), fill, dtype=values.dtype)
        frames[self.position] = values
        return frames


def clock_of(table: FrameTable, rate: float | None) -> FrameClock:
    """Return the clock of a table whose first column may hold frame numbers or times.

    Times determine the rate; callers resample if the user requests another one. Frame numbers begin with 0 or 1. Missing frame
    numbers are unobserved frames.
    """
    n = len(table.cells)
    if table.index is None:
        clock, notes = frames_rate(rate)
        return FrameClock(clock, n, np.arange(n), notes)
    values = _numbers(table)
    backward = np.flatnonzero(np.diff(values) <= 0)
    name = table.header[0]
    if backward.size:
        row = int(backward[0]) + 1
        message = f"{values[row]:g} in column {name or 'index'!r} is not larger than in the previous row"
        raise FormatError(table.path, message, table.location(row))
    timed = name.strip().lower() in TIME_NAMES or bool((values != np.floor(values)).any())
    if timed and n > 1:
        return _from_times(table, values)
    clock, notes = frames_rate(rate)
    if values[0] < 0:
        raise FormatError(table.path, f"negative frame number {values[0]:g}", table.location(0))
    base = values[0] if timed or values[0] == 1 else 0
    position = (values - base).astype(np.int64)
    if position[0] > 0:
        message = f"the first row is frame {values[0]:g}; earlier frames are read as unobserved"
        notes.append(Note(message, table.location(0), "missing-frames"))
    return _check_gaps(table, FrameClock(clock, int(position[-1]) + 1, position, notes))


def at_rate(annotation: Annotation, rate: float | None) -> tuple[Annotation, list[Note]]:
    """Return the annotation at the requested rate, with a note if the rate of the file differs and it is resampled."""
    if rate is None or rate == annotation.rate:
        return annotation, []
    return annotation.resample(rate), [Note(f"resampled from {annotation.rate:g} Hz to {rate:g} Hz", code="resampled")]


def _from_times(table: FrameTable, times: NDArray[np.float64]) -> FrameClock:
    step = np.diff(times)
    counts = np.clip(np.floor(step / np.median(step) + 0.5), 1, MAX_INDEX).astype(np.int64)
    position = np.concatenate(([0], np.cumsum(counts)))
    span = times[-1] - times[0]
    rate = snap_rate(position[-1] / span, resolution(times) / span)
    notes = []
    if times[0] > 1.5 / rate:
        notes.append(Note(f"the first row is at {times[0]:g} s; frames are counted from there", code="late-start"))
    off = np.abs((times - times[0]) * rate - position)
    if off.max() > max(MAX_JITTER, resolution(times) * rate):
        message = f"irregular times (off by up to {off.max():.2f} frames at {rate:g} Hz); each row is read as one frame of a regular clock"
        notes.append(Note(message, code="irregular-times"))
    return _check_gaps(table, FrameClock(rate, int(position[-1]) + 1, position, notes, ClockOrigin.STATED))


def _check_gaps(table: FrameTable, clock: FrameClock) -> FrameClock:
    """Return the clock with a note for gaps; raise `FormatError` if the gaps are implausibly long."""
    if clock.n_frames > MAX_FRAMES_PER_ROW * len(table.cells) + 100_000:
        message = f"{len(table.cells)} rows span {clock.n_frames} frames; is the first column really a frame index?"
        raise FormatError(table.path, message)
    gap = np.diff(clock.position) - 1
    if gap.size and gap.max() > 0:
        row = int(np.argmax(gap > 0)) + 1
        message = f"{int(gap.sum())} frames have no row (the first gap is before this row); read as unobserved"
        clock.notes.append(Note(message, table.location(row), "missing-frames"))
    return clock


def _numbers(table: FrameTable) -> NDArray[np.float64]:
    column = table.cells[0]
    values = np.full(len(column), np.nan)
    if column.dtype.kind in "biuf":
        values[:] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        for row, cell in enumerate(column.tolist()):
            try:
                values[row] = parse_number(str(cell).replace(",", "."))
            except ValueError:
                raise FormatError(table.path, f"{cell!r} in column {table.header[0]!r} is not a number", table.location(row)) from None
    bad = ~(np.abs(values) < MAX_INDEX)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise FormatError(table.path, f"missing or implausible number in column {table.header[0] or 'index'!r}", table.location(row))
    return values


def resolution(times: NDArray[np.float64]) -> float:
    """Return the resolution of times as written, in seconds: 1, 0.1, 0.01, ..."""
    sample = times[:1000]
    return next((10.0**-digits for digits in range(9) if np.abs(np.round(sample, digits) - sample).max() < 1e-9), 1e-9)


def snap_rate(rate: float, tolerance: float) -> float:
    """Return the standard frame rate (an integer, or of NTSC) within the relative tolerance, else the rate itself."""
    for standard in (round(rate), round(rate * 1.001) * 1000 / 1001):
        if standard > 0 and abs(rate - standard) <= max(tolerance, 1e-9) * standard:
            return float(standard)
    return round(rate, 6)
