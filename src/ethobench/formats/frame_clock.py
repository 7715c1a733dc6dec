"""From the frame numbers or times beside the rows of a per-frame table to a regular clock."""

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

MAX_LEAP = 100
MOST = 1e12
JITTER = 0.1


@dataclass
class FrameClock:
    """Where each row of a table stands on the clock.

    Attributes
    ----------
    rate : float
        Frames per second.
    n_frames : int
    position : array of int64
        The frame of each row; frames without a row were not observed.
    notes : list of Note
    origin : ClockOrigin
        Whether the table has a time for each row, or only frame numbers.
    """

    rate: float
    n_frames: int
    position: NDArray[np.int64]
    notes: list[Note]
    origin: ClockOrigin = ClockOrigin.ASSUMED

    def spread(self, values: NDArray[Any], fill: float) -> NDArray[Any]:
        """Put the rows' values on the clock; frames without a row hold `fill`."""
        if len(values) == self.n_frames:
            return values
        frames = np.full((self.n_frames, *values.shape[1:]), fill, dtype=values.dtype)
        frames[self.position] = values
        return frames


def clock_of(table: FrameTable, rate: float | None) -> FrameClock:
    """Read the clock from the table's first column, where that counts frames or tells times.

    Times give the rate, unless they are too few; a rate that was asked for is then applied by resampling.
    Frame numbers begin with 0 or 1; a number that is left out is a frame that was not observed.
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
        raise FormatError(
            table.path, f"{values[row]:g} in column {name or 'index'!r} does not rise above the row before", table.location(row)
        )
    timed = name.strip().lower() in TIME_NAMES or bool((values != np.floor(values)).any())
    if timed and n > 1:
        return _from_times(table, values)
    clock, notes = frames_rate(rate)
    if values[0] < 0:
        raise FormatError(table.path, f"the first row is frame {values[0]:g}, before the recording", table.location(0))
    base = values[0] if timed or values[0] == 1 else 0
    position = (values - base).astype(np.int64)
    if position[0] > 0:
        notes.append(Note(f"the first row is frame {values[0]:g}; the frames before it count as not observed", table.location(0)))
    return _checked(table, FrameClock(clock, int(position[-1]) + 1, position, notes))


def at_rate(annotation: Annotation, rate: float | None) -> tuple[Annotation, list[Note]]:
    """Resample to the rate asked for, where the file has one of its own."""
    if rate is None or rate == annotation.rate:
        return annotation, []
    return annotation.resample(rate), [Note(f"resampled from the file's {annotation.rate:g} Hz to {rate:g} Hz")]


def _from_times(table: FrameTable, times: NDArray[np.float64]) -> FrameClock:
    step = np.diff(times)
    counts = np.clip(np.floor(step / np.median(step) + 0.5), 1, MOST).astype(np.int64)
    position = np.concatenate(([0], np.cumsum(counts)))
    span = times[-1] - times[0]
    rate = snapped(position[-1] / span, resolution(times) / span)
    notes = []
    if times[0] > 1.5 / rate:
        notes.append(Note(f"the first row is at {times[0]:g} s; frames are counted from there"))
    off = np.abs((times - times[0]) * rate - position)
    if off.max() > max(JITTER, resolution(times) * rate):
        notes.append(
            Note(f"times are not regular (by up to {off.max():.2f} frames at {rate:g} Hz); each row is one frame of a regular clock")
        )
    return _checked(table, FrameClock(rate, int(position[-1]) + 1, position, notes, ClockOrigin.STATED))


def _checked(table: FrameTable, clock: FrameClock) -> FrameClock:
    """Note gaps, and refuse leaps that no recording makes."""
    if clock.n_frames > MAX_LEAP * len(table.cells) + 100_000:
        raise FormatError(table.path, f"{len(table.cells)} rows are spread over {clock.n_frames} frames; is the first column an index?")
    gap = np.diff(clock.position) - 1
    if gap.size and gap.max() > 0:
        row = int(np.argmax(gap > 0)) + 1
        note = f"{int(gap.sum())} frames have no row (the first before this one); they count as not observed"
        clock.notes.append(Note(note, table.location(row)))
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
    bad = ~(np.abs(values) < MOST)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise FormatError(table.path, f"no sensible number in column {table.header[0] or 'index'!r}", table.location(row))
    return values


def resolution(times: NDArray[np.float64]) -> float:
    """Return the step in which the times were written down."""
    sample = times[:1000]
    return next((10.0**-digits for digits in range(9) if np.abs(np.round(sample, digits) - sample).max() < 1e-9), 1e-9)


def snapped(rate: float, tolerance: float) -> float:
    """Return the usual frame rate (whole, or of NTSC) that lies within the relative tolerance, else the rate itself."""
    for usual in (round(rate), round(rate * 1.001) * 1000 / 1001):
        if usual > 0 and abs(rate - usual) <= max(tolerance, 1e-9) * usual:
            return float(usual)
    return round(rate, 6)
