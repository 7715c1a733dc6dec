"""Smoothing of probabilities and decisions, and the shortest gaps and bouts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.features.windows import window_frames

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
HIDDEN = -1  # the code of frames that were not predicted
FOREVER = np.iinfo(np.int64).max


def smooth(columns: Array, frames: int, kind: str) -> Array:
    """Take the mean or median of the window around each frame, without what is hidden."""
    import bottleneck as bn

    if frames < 2 or not len(columns):
        return columns
    half = window_frames(frames, 1.0) // 2
    move = bn.move_mean if kind == "mean" else bn.move_median
    padded = np.concatenate([columns, np.full((half, columns.shape[1]), np.nan)])
    return np.asarray(move(padded, min(2 * half + 1, len(padded)), min_count=1, axis=0)[half:])


def majority(codes: Codes, n_codes: int, frames: int, hidden: NDArray[np.bool_]) -> Codes:
    """Take the code that fills most of the window around each frame; where several do, the frame's own."""
    if frames < 2 or not len(codes):
        return codes
    chosen = (codes[:, None] == np.arange(n_codes)).astype(np.float64)
    chosen[hidden] = np.nan
    share = smooth(chosen, frames, "mean") + 1e-6 * np.nan_to_num(chosen)
    return np.asarray(np.where(hidden, codes, np.nan_to_num(share, nan=-1.0).argmax(axis=1)))


def without_short_gaps(codes: Codes, shortest: list[int], nothing: int) -> Codes:
    """Close stretches of nothing between two bouts of one behavior that are shorter than its shortest gap."""
    runs = iv.encode_runs(codes)
    if len(runs.start) < 3:
        return codes
    values = runs.values.astype(np.int64)
    around, length = values[:-2], (runs.stop - runs.start)[1:-1]
    short = (values[1:-1] == nothing) & (around == values[2:]) & (around != HIDDEN) & (length < np.array([*shortest, 0])[around])
    values[1:-1] = np.where(short, around, values[1:-1])
    return np.repeat(values, runs.stop - runs.start)


def without_short_bouts(codes: Codes, shortest: list[int], nothing: int) -> Codes:
    """Give the frames of bouts that are too short to what comes before and after, the shortest bouts first."""
    least = np.array([0 if code == nothing else frames for code, frames in enumerate(shortest)] + [0])  # the last is hidden
    while True:
        runs = iv.encode_runs(codes)
        values, length = runs.values.astype(np.int64), runs.stop - runs.start
        short = length < least[values] if len(values) else np.zeros(0, dtype=bool)
        if not short.any():
            return codes
        size = np.concatenate([[FOREVER], np.where(short, length, FOREVER), [FOREVER]])
        chosen = short & (size[1:-1] < size[:-2]) & (size[1:-1] <= size[2:])
        before, after = (np.append([HIDDEN], values[:-1]), np.append(values[1:], HIDDEN))
        before, after = (np.where(before == HIDDEN, after, before), np.where(after == HIDDEN, before, after))
        before, after = (np.where(side == HIDDEN, nothing, side) for side in (before, after))
        codes = codes.copy()
        for run in np.flatnonzero(chosen):
            middle = (runs.start[run] + runs.stop[run] + 1) // 2
            codes[runs.start[run] : middle], codes[middle : runs.stop[run]] = before[run], after[run]
