"""Functions on sorted interval arrays, the basis of all metrics.

Conventions
-----------
An interval set is two int64 arrays ``start`` and ``stop`` of half-open frames ``[start, stop)``.
A *disjoint* set is sorted and its intervals neither overlap nor touch: what `union` returns.
Empty intervals (``start == stop``) cover no frame and are dropped by every function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


class Intervals(NamedTuple):
    """Two parallel arrays of half-open frame ranges ``[start, stop)``."""

    start: IntArray
    stop: IntArray


class Runs(NamedTuple):
    """Maximal runs of equal values: ``values[i]`` on ``[start[i], stop[i])``."""

    start: IntArray
    stop: IntArray
    values: NDArray[np.generic]


def intervals(start: ArrayLike, stop: ArrayLike) -> Intervals:
    """Create an interval set from array-likes, as int64."""
    return Intervals(np.asarray(start, dtype=np.int64), np.asarray(stop, dtype=np.int64))


def full(n_frames: int) -> Intervals:
    """Return the set that covers frames 0 to `n_frames`."""
    return intervals([0], [n_frames]) if n_frames > 0 else empty()


def empty() -> Intervals:
    """Return the set that covers nothing."""
    return intervals([], [])


def encode_runs(values: ArrayLike) -> Runs:
    """Run-length encode a one-dimensional array.

    Examples
    --------
    >>> encode_runs([7, 7, 2]).stop.tolist()
    [2, 3]
    """
    values = np.asarray(values)
    if values.size == 0:
        return Runs(*empty(), values)
    change = np.flatnonzero(values[1:] != values[:-1]) + 1
    start = np.concatenate(([0], change)).astype(np.int64)
    stop = np.concatenate((change, [len(values)])).astype(np.int64)
    return Runs(start, stop, values[start])


def from_mask(mask: ArrayLike) -> Intervals:
    """Return the runs of true frames in a boolean array."""
    mask = np.asarray(mask, dtype=bool)
    edges = np.flatnonzero(mask[1:] != mask[:-1]) + 1
    first = [0] if mask.size and mask[0] else []
    last = [mask.size] if mask.size and mask[-1] else []
    bounds = np.concatenate((first, edges, last)).astype(np.int64)
    return Intervals(bounds[::2], bounds[1::2])


def to_mask(a: Intervals, n_frames: int) -> BoolArray:
    """Return a boolean array that is true inside the intervals (which may overlap)."""
    steps = np.zeros(n_frames + 1, dtype=np.int32)
    np.add.at(steps, np.clip(a.start, 0, n_frames), 1)
    np.add.at(steps, np.clip(a.stop, 0, n_frames), -1)
    return np.cumsum(steps[:-1]) > 0


def union(a: Intervals) -> Intervals:
    """Return the disjoint set that covers the same frames as `a` (in any order, overlapping or not)."""
    if _is_disjoint(a) and (a.stop[:-1] < a.start[1:]).all():
        return a
    keep = a.stop > a.start
    start, stop = a.start[keep], a.stop[keep]
    if start.size == 0:
        return empty()
    order = np.argsort(start)  # the order of equal starts does not matter, and unstable sorting is faster
    start, stop = start[order], stop[order]
    reach = np.maximum.accumulate(stop)
    opens = np.concatenate(([True], start[1:] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return Intervals(start[opens], reach[closes])


def union_all(sets: Sequence[Intervals]) -> Intervals:
    """Return the disjoint set that covers every frame of any of the sets."""
    if not sets:
        return empty()
    return union(Intervals(np.concatenate([s.start for s in sets]), np.concatenate([s.stop for s in sets])))


def intersection(a: Intervals, b: Intervals) -> Intervals:
    """Return the frames covered by both; `a` and `b` are disjoint sets, and so is the result."""
    i, j = overlapping_pairs(a, b)
    start = np.maximum(a.start[i], b.start[j])
    stop = np.minimum(a.stop[i], b.stop[j])
    order = np.argsort(start, kind="stable")
    return Intervals(start[order], stop[order])


def complement(a: Intervals, n_frames: int) -> Intervals:
    """Return the frames of ``[0, n_frames)`` that the disjoint set `a` does not cover."""
    start = np.concatenate(([0], a.stop)).astype(np.int64)
    stop = np.concatenate((a.start, [n_frames])).astype(np.int64)
    start, stop = np.clip(start, 0, n_frames), np.clip(stop, 0, n_frames)
    keep = stop > start
    return Intervals(start[keep], stop[keep])


def difference(a: Intervals, b: Intervals) -> Intervals:
    """Return the frames in the disjoint set `a` and not in the disjoint set `b`."""
    if a.start.size == 0 or b.start.size == 0:
        return a
    end = int(max(a.stop[-1], b.stop[-1]))
    low = int(min(a.start[0], b.start[0], 0))
    free = complement(shift(b, -low), end - low)
    return intersection(a, shift(free, low))


def shift(a: Intervals, n_frames: int) -> Intervals:
    """Move all intervals by a number of frames."""
    return Intervals(a.start + n_frames, a.stop + n_frames)


def clip(a: Intervals, low: int, high: int) -> Intervals:
    """Clip intervals to ``[low, high)``."""
    start, stop = np.clip(a.start, low, high), np.clip(a.stop, low, high)
    keep = stop > start
    return Intervals(start[keep], stop[keep])


def total(a: Intervals) -> int:
    """Return the summed length of the intervals."""
    return int((a.stop - a.start).sum())


def covered_before(a: Intervals, frames: ArrayLike) -> IntArray:
    """For each frame number, count the frames below it that the disjoint set `a` covers."""
    frames = np.asarray(frames, dtype=np.int64)
    lengths = np.concatenate(([0], np.cumsum(a.stop - a.start)))
    if a.start.size == 0:
        return np.zeros(frames.shape, dtype=np.int64)
    i = np.searchsorted(a.start, frames, side="right")
    last = np.maximum(i - 1, 0)
    beyond = np.maximum(a.stop[last] - frames, 0) * (i > 0)
    return np.asarray(lengths[i] - np.where(i > 0, beyond, 0), dtype=np.int64)


def overlap_with(a: Intervals, b: Intervals) -> IntArray:
    """For each interval of `a` (any order), count the frames it shares with the disjoint set `b`."""
    return covered_before(b, a.stop) - covered_before(b, a.start)


def overlap(a: Intervals, b: Intervals) -> int:
    """Count the frames covered by both disjoint sets."""
    small, large = (a, b) if a.start.size <= b.start.size else (b, a)
    return int(overlap_with(small, large).sum())


def overlapping_pairs(a: Intervals, b: Intervals) -> tuple[IntArray, IntArray]:
    """Return all index pairs ``(i, j)`` whose intervals share at least one frame, sorted by i, then j.

    Both sets must be sorted by start; within a set, intervals may overlap or nest. Every pair is found once, from the interval that starts
    later, so the cost is O(n log n + number of pairs).
    """
    if _is_disjoint(a) and _is_disjoint(b):
        return _ranges(np.searchsorted(b.stop, a.start, side="right"), np.searchsorted(b.start, a.stop, side="left"))
    keep_a, keep_b = np.flatnonzero(a.stop > a.start), np.flatnonzero(b.stop > b.start)
    a0, a1 = a.start[keep_a], a.stop[keep_a]
    b0, b1 = b.start[keep_b], b.stop[keep_b]
    i_first, j_later = _ranges(np.searchsorted(b0, a0, side="left"), np.searchsorted(b0, a1, side="left"))
    j_first, i_later = _ranges(np.searchsorted(a0, b0, side="right"), np.searchsorted(a0, b1, side="left"))
    i = keep_a[np.concatenate((i_first, i_later))]
    j = keep_b[np.concatenate((j_later, j_first))]
    order = np.lexsort((j, i))
    return i[order], j[order]


def boundaries(*frames: IntArray) -> IntArray:
    """Return the unique frame numbers of several arrays, sorted; faster than `numpy.unique` on sorted input."""
    ordered = np.sort(np.concatenate(frames))
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if ordered.size else ordered


def fill_gaps(a: Intervals, shorter_than: int) -> Intervals:
    """Join neighbors of a disjoint set whose gap is shorter than `shorter_than` frames."""
    if a.start.size == 0:
        return a
    wide = a.start[1:] - a.stop[:-1] >= shorter_than
    return Intervals(a.start[np.concatenate(([True], wide))], a.stop[np.concatenate((wide, [True]))])


def _is_disjoint(a: Intervals) -> bool:
    """Whether intervals are sorted, not empty, and do not overlap; they may touch."""
    return bool((a.start < a.stop).all() and (a.stop[:-1] <= a.start[1:]).all())


def _ranges(first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Expand ranges ``[first, last)``: the index of the range, repeated, and every integer in it."""
    counts = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return owner, np.repeat(first, counts) + offset
