"""Regular clocks from the times of samples: which sample is at each frame, and periods without samples."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError, Note
from ethobench.core.messages import Message, Option
from ethobench.formats.frame_clock import resolution, snap_rate
from ethobench.formats.size_limits import check_size

MAX_JITTER = 0.01  # of a step, for samples that are taken as regular
MAX_SHIFT = 0.3  # frames by which a sample may be off a regular clock that has one row per frame
MIN_GAP = 1.5  # steps
MAX_DRIFT = 0.5  # frames by which a stated rate may be off at the end
MAX_GAP_SHARE = 0.1  # of steps; if more steps are long, the times are irregular rather than incomplete
LONG_GAP = 3600.0  # seconds; a new recording begins after it
MAX_FILLED = 10  # frames per sample; if more frames would be empty, each burst is a recording of its own
MIN_BURST_GAP = 1.0  # seconds


@dataclass
class RegularClock:
    """The sample at each frame of a regular clock.

    Attributes
    ----------
    rate : float
        Frames per second.
    n_frames : int
    rows : array of int64 or None
        The nearest sample of each frame, -1 where there is none. None: each sample is one frame.
    times : array of float64 or None
        Times of the samples in seconds since the first, if signals are to be interpolated.
    notes : list of Note
    """

    rate: float
    n_frames: int
    rows: NDArray[np.int64] | None = None
    times: NDArray[np.float64] | None = None
    notes: list[Note] = field(default_factory=list)

    def signals(self, path: Path, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the signals at each frame, NaN where there is no sample; `values` itself if each sample is one frame."""
        if self.rows is None:
            return values
        check_size(path, self.n_frames * values[:1].nbytes, max(values.nbytes, path.stat().st_size))
        frames = _empty_like(values, self.n_frames)
        missing = self.rows < 0
        if self.times is None:
            frames[:] = np.nan
            frames[~missing] = values[self.rows[~missing]]
            return frames
        grid = np.arange(self.n_frames) / self.rate
        for channel in range(values.shape[1]):
            frames[:, channel] = np.interp(grid, self.times, values[:, channel])
        frames[missing] = np.nan
        return frames

    def labels(self, codes: NDArray[np.int32] | NDArray[np.int8], missing: int) -> NDArray[np.int32] | NDArray[np.int8]:
        """Return the labels at each frame, `missing` where there is no sample."""
        if self.rows is None:
            return codes
        frames = codes[np.maximum(self.rows, 0)]
        frames[self.rows < 0] = missing
        return frames


def _empty_like(values: NDArray[np.float64], n_frames: int) -> NDArray[np.float64]:
    """Return an uninitialized array with as many channels and `n_frames` frames; on disk if the values are on disk."""
    shape = (n_frames, values.shape[1])
    if not isinstance(values, np.memmap) or not n_frames * values.shape[1]:
        return np.empty(shape)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, np.float64, "w+", shape=shape)


def spread_repeated(time: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[Note]]:
    """Spread samples that share a time stamp evenly over the time to the next stamp; unchanged if no stamp is repeated regularly.

    Many loggers write whole seconds for samples at 25 Hz.
    """
    step = np.diff(time)
    if len(time) < 4 or (step > 0).all() or (step < 0).any():
        return time, []
    first = np.flatnonzero(np.concatenate(([True], step > 0)))
    counts = np.diff(np.append(first, len(time)))
    inner = counts[1:-1]
    if len(inner) < 1 or np.median(inner) < 2 or np.abs(inner - np.median(inner)).max() > max(1, 0.1 * np.median(inner)):
        return time, []
    per_stamp = float(np.median(inner))
    length = float(np.median(np.diff(time[first])))
    divisor = np.where(np.arange(len(counts)) % (len(counts) - 1) == 0, np.maximum(counts, per_stamp), counts)
    within = np.arange(len(time)) - np.repeat(first, counts)
    within[: counts[0]] += int(max(0, per_stamp - counts[0]))  # the first samples are the last of their stamp
    message = f"{per_stamp:g} samples share each time stamp; they are spread evenly over {length:g} s"
    return time + within * (length / np.repeat(divisor, counts)), [Note(message, code="repeated-times")]


def unwrap_days(time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return times of day as seconds that continue after midnight."""
    return time + 86_400.0 * np.concatenate(([0], np.cumsum(np.diff(time) < -43_200)))


def find_periods(time: NDArray[np.float64], rate: float | None, split: float | None) -> list[slice]:
    """Return the periods between long gaps, as slices of the samples.

    Parameters
    ----------
    time : array of float64
        Increasing times of the samples, in seconds.
    rate : float, optional
        Sampling rate, if it is known.
    split : float, optional
        Gaps longer than this begin a new period. By default an hour; if samples are less than a tenth of the time, every gap.
    """
    gap = np.diff(time)
    positive = gap[gap > 0]
    if not len(positive):
        return [slice(0, len(time))]
    step = 1 / rate if rate else float(np.median(positive))
    limit = LONG_GAP if split is None else split
    breaks = np.flatnonzero(gap > max(limit, 2 * step)) + 1
    edges = [0, *breaks.tolist(), len(time)]
    periods = [slice(a, b) for a, b in pairwise(edges)]
    if split is None:
        filled = sum((time[p.stop - 1] - time[p.start]) / step for p in periods)
        n_gaps = np.count_nonzero(gap > max(MIN_BURST_GAP, 3 * step))
        if filled > MAX_FILLED * len(time) + 1000 and n_gaps < 2 * MAX_GAP_SHARE * len(time):
            return find_periods(time, rate, MIN_BURST_GAP)
    return periods


def estimate_rate(time: NDArray[np.float64]) -> float:
    """Return the sampling rate from the steps that are not gaps."""
    step = np.diff(time)
    typical = float(np.median(step))
    inner = step[step < MIN_GAP * typical]
    duration = float(inner.sum())
    return snap_rate(len(inner) / duration, max(resolution(time), 1e-9) / duration)


def regular_clock(
    path: Path, time: NDArray[np.float64], rate: float | None, *, common_rate: float | None = None, location: str = "", offset: int = 0
) -> RegularClock:
    """Return the clock of samples at given times.

    Parameters
    ----------
    path : Path
        Named in errors.
    time : array of float64
        In seconds.
    rate : float, optional
        Requested rate. Samples at other times are resampled by linear interpolation.
    common_rate : float, optional
        Rate of the other recordings in the file; used if it fits.
    location : str
        Names the animal in errors.
    offset : int
        Row of the first sample, for the location of errors.

    Raises
    ------
    FormatError
        If times do not increase, or are irregular and no rate is requested.
    """
    if len(time) == 1 and (rate or common_rate):
        return RegularClock(float(rate or common_rate or 1), 1)
    steps = np.diff(time)
    if len(time) < 2 or not np.isfinite(time).all() or (steps <= 0).any():
        row = offset + int(np.flatnonzero(steps <= 0)[0]) + 3 if (steps <= 0).any() else offset + 2
        of = f" of {location}" if location else ""
        raise FormatError(
            path,
            f"times{of} must increase from row to row (several animals in one table: call the column with their names animal, or set id=)",
            f"row {row}",
        )
    step, span, finest = float(np.median(steps)), float(time[-1] - time[0]), resolution(time - np.floor(time[0]))
    mean_rate = snap_rate((len(time) - 1) / span, finest / span)
    is_regular = np.abs(steps - step).max() <= max(MAX_JITTER * step, 1.5 * finest)
    gaps = 0 < np.count_nonzero(steps > MIN_GAP * step) < MAX_GAP_SHARE * len(time)  # rows are missing, even if the times are coarse
    n = len(time)
    counted = rate is not None and abs(rate * span - (n - 1)) < MAX_DRIFT
    if is_regular and (counted or (not gaps and (rate is None or abs(rate - mean_rate) * span < MAX_DRIFT))):
        if rate is None and common_rate and abs(common_rate * span - (n - 1)) < MAX_DRIFT:
            mean_rate = common_rate
        return RegularClock(rate or mean_rate, n)
    if rate is None:
        for candidate in dict.fromkeys(r for r in (common_rate, estimate_rate(time)) if r):
            clock = _one_row_per_frame(path, time - time[0], candidate, max(MAX_SHIFT, min(0.51 * finest * candidate, 0.49)))
            if clock is not None:
                return clock
        of = f" of {location}" if location else ""
        raise FormatError(path, Message(f"irregular times (about {mean_rate:.4g} Hz){of}; set ", Option("rate"), " to resample"))
    position = np.rint((time - time[0]) * rate)
    if np.abs(position / rate - (time - time[0])).max() <= max(MAX_JITTER / rate, 0.51 * finest) and (np.diff(position) > 0).all():
        return _at_positions(path, position.astype(np.int64), rate)
    return _resampled(path, time - time[0], rate, step, mean_rate)


def _one_row_per_frame(path: Path, time: NDArray[np.float64], rate: float, tolerance: float) -> RegularClock | None:
    """Return the clock on which each sample is at its nearest frame; None if samples are too far off."""
    position = np.rint(time * rate)
    shift = float(np.abs(time * rate - position).max())
    if shift > tolerance or (np.diff(position) <= 0).any():
        return None
    clock = _at_positions(path, position.astype(np.int64), rate)
    if shift > 10 * MAX_JITTER:
        message = f"times are irregular by up to {shift:.2f} frames at {rate:g} Hz; each row is read as one frame of a regular clock"
        clock.notes.append(Note(message, code="irregular-times"))
    return clock


def _at_positions(path: Path, position: NDArray[np.int64], rate: float) -> RegularClock:
    n_frames = int(position[-1]) + 1
    if n_frames == len(position):
        return RegularClock(rate, n_frames)
    check_size(path, 8 * n_frames, max(8 * len(position), path.stat().st_size))
    rows = np.full(n_frames, -1, dtype=np.int64)
    rows[position] = np.arange(len(position))
    message = f"{n_frames - len(position)} of {n_frames} frames have no sample; their signals are missing"
    return RegularClock(rate, n_frames, rows, None, [Note(message, code="missing-frames")])


def _resampled(path: Path, time: NDArray[np.float64], rate: float, step: float, mean_rate: float) -> RegularClock:
    n_frames = int(np.floor(time[-1] * rate + 0.5)) + 1
    check_size(path, 8 * n_frames, max(8 * len(time), path.stat().st_size))
    grid = np.arange(n_frames) / rate
    before = np.clip(np.searchsorted(time, grid, side="right") - 1, 0, len(time) - 1)
    after = np.minimum(before + 1, len(time) - 1)
    missing = (time[after] - time[before] > MIN_GAP * max(step, 1.0 / rate)) & (grid > time[before]) & (grid < time[after])
    rows = np.where(grid - time[before] <= time[after] - grid, before, after)
    rows[missing] = -1
    message = f"resampled from about {mean_rate:.4g} Hz to {rate:g} Hz; {int(missing.sum())} frames are in gaps"
    return RegularClock(rate, n_frames, rows, time, [Note(message, code="resampled")])


def counted_clock(path: Path, name: str, numbers: NDArray[np.float64], rate: float, *, may_restart: bool) -> RegularClock:
    """Return the clock of samples that a column numbers; a missing number is a missing sample.

    Parameters
    ----------
    path : Path
        Named in errors.
    name : str
        Name of the column.
    numbers : array of float64
    rate : float
        Frames per second.
    may_restart : bool
        Whether numbers may begin anew, as in bursts of a tag; samples are then counted in order.
    """
    column, n = f"column {name or 'index'!r}", len(numbers)
    if np.isnan(numbers).all():
        message = f"{column} does not hold sample numbers; rows are counted in order"
        return RegularClock(rate, n, notes=[Note(message, code="ignored-index")])
    bad = np.flatnonzero(~np.isfinite(numbers) | (np.diff(numbers, prepend=-np.inf) <= 0))
    if bad.size and may_restart and np.isfinite(numbers).all():
        message = f"{column} does not increase from row to row; rows are counted in order"
        return RegularClock(rate, n, notes=[Note(message, f"row {bad[0] + 2}", "ignored-index")])
    if bad.size:
        raise FormatError(path, f"{numbers[bad[0]]:g} in {column} is not larger than in the previous row", f"row {bad[0] + 2}")
    step = float(np.median(np.diff(numbers))) if n > 1 else 1.0
    position = np.rint((numbers - numbers[0]) / step).astype(np.int64)
    uneven = np.flatnonzero(position * step != numbers - numbers[0])
    if uneven.size:
        raise FormatError(path, f"numbers in {column} increase by {step:g}, but not here", f"row {uneven[0] + 2}")
    message = f"{column} increases by {step:g} from row to row; each row is read as one sample"
    notes = [Note(message, code="index-step")] if step != 1 else []
    if numbers[0] > 1:
        notes.append(Note(f"the first row is number {numbers[0]:g} in {column}; frames are counted from there", code="late-start"))
    clock = _at_positions(path, position, rate)
    if clock.rows is not None:
        first = int(np.flatnonzero(np.diff(position) > 1)[0]) + 3
        message = (
            f"{clock.n_frames - n} of {clock.n_frames} frames have no row (the first gap is before this row); their signals are missing"
        )
        clock.notes = [Note(message, f"row {first}", "missing-frames")]
    clock.notes = [*notes, *clock.notes]
    return clock
