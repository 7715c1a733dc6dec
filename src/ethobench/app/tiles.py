"""Tiles of the timeline: 512 bins of 1, 2, 4, 8, ... frames each.

A tile with few bouts contains the bouts themselves, which stay sharp and can be clicked. A tile with many bouts contains the share of each
bin that each behavior takes. A tile is therefore small for recordings of any length, and even short bouts remain visible.
"""

from __future__ import annotations

import base64
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import NotFoundError
from ethobench.core.intervals import IntArray, Intervals

BINS = 512
MAX_BOUTS = 400
MISSING = 255
MAX_LEVELS = 40
NOBODY = -1
BLOCK_FRAMES = 64
CHUNK_ROWS = 2**18

Floats = NDArray[np.float32]


def tile_edges(level: int, index: int, n_frames: int) -> IntArray:
    """Return the edges of the bins of a tile, in frames; the last bin ends with the recording."""
    step = 1 << level if 0 <= level < MAX_LEVELS else 0
    first = index * BINS * step
    if not step or not 0 <= first < max(n_frames, 1):
        raise NotFoundError(f"no tile {index} at level {level} in {n_frames} frames")
    return np.minimum(first + step * np.arange(BINS + 1, dtype=np.int64), n_frames)


class TrackTiles:
    """Tiles of one track, optionally of one subject only.

    Parameters
    ----------
    annotation : Annotation
    subject : str, optional
        Only bouts of this subject; "" for bouts without a subject; all bouts if None.
    """

    def __init__(self, annotation: Annotation, subject: str | None = None) -> None:
        self.full_annotation = annotation
        indices = np.flatnonzero(_of_subject(annotation, subject))
        self.annotation, self._indices = annotation.take(indices), indices
        self.subject = subject or None
        self._reach = np.maximum.accumulate(self.annotation.stop) if len(indices) else self.annotation.stop

    def tile(self, edges: IntArray) -> dict[str, Any]:
        """Return ``bouts`` (index, start, stop, behavior, target) and ``hidden`` (unobserved) spans, or ``shares`` and ``points``."""
        a, first, last = self.annotation, int(edges[0]), int(edges[-1])
        begin, end = np.searchsorted(self._reach, first, side="left"), np.searchsorted(a.start, last, side="right")
        inside = np.arange(begin, end)
        inside = inside[(a.stop[inside] > first) | ((a.start[inside] == a.stop[inside]) & (a.start[inside] >= first))]
        hidden = iv.clip(self._hidden, first, last)
        if len(inside) + len(hidden.start) > MAX_BOUTS:
            return {"shares": encode(self._shares(edges)), "points": self._points(inside, edges)}
        rows = np.stack((self._indices[inside], a.start[inside], a.stop[inside], a.behavior[inside], a.target[inside]), axis=1)
        return {"bouts": rows.tolist(), "hidden": np.stack(hidden, axis=1).tolist()}

    def _shares(self, edges: IntArray) -> NDArray[np.uint8]:
        """Return shares in 254ths, rounded up so that short bouts stay visible; one column per behavior and one for unobserved frames."""
        length = np.maximum(np.diff(edges), 1)
        covered = [np.diff(iv.covered_before(spans, edges)) / length for spans in (*self._spans, self._hidden)]
        return np.ceil(np.stack(covered, axis=1) * (MISSING - 1)).astype(np.uint8)

    def _points(self, inside: IntArray, edges: IntArray) -> list[list[int]]:
        """Return (bin, behavior) of the point events."""
        a = self.annotation
        points = inside[a.start[inside] == a.stop[inside]]
        bins = np.minimum(np.searchsorted(edges, a.start[points], side="right") - 1, BINS - 1)
        pairs: list[list[int]] = np.unique(np.stack((bins, a.behavior[points]), axis=1), axis=0).tolist()
        return pairs

    @cached_property
    def _hidden(self) -> Intervals:
        observed = self.full_annotation.observed.of_all(self.full_annotation.ethogram.names, self.subject)
        return iv.complement(observed, self.full_annotation.n_frames)

    @cached_property
    def _spans(self) -> list[Intervals]:
        return [iv.difference(iv.union(self.annotation.spans(code)), self._hidden) for code in range(len(self.annotation.ethogram))]


class ProbabilityTiles:
    """Tiles of a model's mean probabilities, one column per behavior of `names`; 255 where nothing was predicted."""

    def __init__(self, prediction: Prediction, names: tuple[str, ...]) -> None:
        self._columns = [prediction.ethogram.names.index(name) if name in prediction.ethogram else -1 for name in names]
        self._summary = Summary(prediction.probabilities)

    def tile(self, edges: IntArray) -> dict[str, Any]:
        """Return ``shares``."""
        mean = self._summary.between(np.minimum(edges, len(self._summary.values))).mean
        chosen = np.stack([mean[:, c] if c >= 0 else np.where(np.isnan(mean[:, 0]), np.nan, 0) for c in self._columns], axis=1)
        return {"shares": encode(_bytes(chosen))}


class TraceTiles:
    """Tiles of one or a few channels: minimum, maximum and mean of each bin, scaled to the range of the lane.

    Parameters
    ----------
    summary : Summary
    columns : list of int
        Indices of the channels.
    low, high : float
        Range of the lane; values outside are clipped.
    """

    def __init__(self, summary: Summary, columns: list[int], low: float, high: float) -> None:
        self._summary, self._columns, self._low, self._scale = summary, columns, low, 1 / (high - low or 1)

    def tile(self, edges: IntArray) -> dict[str, Any]:
        """Return ``low``, ``high`` and ``mean``, one row per bin and one column per channel."""
        bins = self._summary.between(np.minimum(edges, len(self._summary.values)))
        sides = {name: (side[:, self._columns] - self._low) * self._scale for name, side in bins._asdict().items()}
        return {name: encode(_bytes(side)) for name, side in sides.items()}


def share_tile(spans: Intervals, edges: IntArray) -> dict[str, Any]:
    """Return the share of each bin that disjoint spans cover."""
    shares = np.diff(iv.covered_before(spans, edges)) / np.maximum(np.diff(edges), 1)
    return {"shares": encode(np.ceil(shares * (MISSING - 1)).astype(np.uint8))}


def encode(array: NDArray[np.uint8]) -> str:
    """Encode bytes as base64 text."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def _bytes(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    missing = np.isnan(values)
    scaled = np.clip(np.where(missing, 0, values), 0, 1) * (MISSING - 1)
    return np.where(missing, MISSING, np.round(scaled)).astype(np.uint8)


def _of_subject(annotation: Annotation, subject: str | None) -> NDArray[np.bool_]:
    if subject is None:
        return np.ones(len(annotation), dtype=bool)
    if subject and subject not in annotation.subjects:
        return np.zeros(len(annotation), dtype=bool)
    return np.asarray(annotation.subject == (annotation.subjects.index(subject) if subject else NOBODY))


class Bins(NamedTuple):
    """Statistics of bins: one row per bin, one column per channel; NaN for bins without values."""

    low: Floats
    high: Floats
    mean: Floats


class Summary:
    """Minimum, maximum and mean between frames, computed from the values or from blocks of 64 frames.

    Blocks are computed on first use, one chunk of rows at a time, so that memory-mapped recordings are not loaded completely.

    Parameters
    ----------
    values : array (n_frames, n_channels)
        NaN marks missing values.
    """

    def __init__(self, values: NDArray[np.floating]) -> None:
        self.values = values

    def between(self, edges: IntArray) -> Bins:
        """Summarize the bins between consecutive edges, which are equally spaced except for the last one.

        Bins of at least 64 frames must have a multiple of 64 frames and start at one.
        """
        step = int(edges[1] - edges[0]) if len(edges) > 1 else 1
        if step >= BLOCK_FRAMES and edges[0] % BLOCK_FRAMES == 0 and step % BLOCK_FRAMES == 0:
            return _gather(self._blocks, -(-edges // BLOCK_FRAMES))
        first, last = int(edges[0]), int(edges[-1])
        raw = np.asarray(self.values[first:last], dtype=np.float32)
        return _gather(Bins(raw, raw, raw), edges - first)

    @cached_property
    def _blocks(self) -> Bins:
        chunks = []
        for first in range(0, max(len(self.values), 1), CHUNK_ROWS):
            rows = np.asarray(self.values[first : first + CHUNK_ROWS], dtype=np.float32)
            edges = np.minimum(np.arange(0, len(rows) + BLOCK_FRAMES, BLOCK_FRAMES), len(rows))
            chunks.append(_gather(Bins(rows, rows, rows), edges))
        return Bins(*(np.concatenate(columns) for columns in zip(*chunks, strict=True)))


def _gather(rows: Bins, edges: IntArray) -> Bins:
    """Reduce rows between edges; bins without rows are NaN."""
    n, count = len(edges) - 1, rows.low.shape[1]
    result = Bins(*(np.full((n, count), np.nan, dtype=np.float32) for _ in range(3)))
    filled = np.flatnonzero(edges[1:] > edges[:-1])
    if not filled.size or not count:
        return result
    first = edges[:-1][filled]
    last = int(edges[-1])
    result.low[filled] = np.fmin.reduceat(rows.low[:last], first, axis=0)
    result.high[filled] = np.fmax.reduceat(rows.high[:last], first, axis=0)
    finite = ~np.isnan(rows.mean[:last])
    total = np.add.reduceat(np.where(finite, rows.mean[:last], 0), first, axis=0)
    number = np.add.reduceat(finite, first, axis=0, dtype=np.int64)
    result.mean[filled] = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return result
