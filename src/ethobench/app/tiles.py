"""What a page draws, cut into tiles: 512 stretches of time, each of 1, 2, 4, 8, ... frames.

A tile with few bouts carries them as they are, so that they stay sharp and can be clicked; one with many carries the share of
each stretch that each behavior takes. So a tile is small however long the recording is, and no bout is too short to leave a trace.
"""

from __future__ import annotations

import base64
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.app.summaries import Summary
from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import NotFoundError
from ethobench.core.intervals import IntArray, Intervals

STRETCHES = 512
BOUTS = 400
MISSING = 255
LEVELS = 40
NOBODY = -1


def tile_edges(level: int, index: int, n_frames: int) -> IntArray:
    """Return the frame numbers between which a tile's stretches lie; they end with the recording."""
    step = 1 << level if 0 <= level < LEVELS else 0
    first = index * STRETCHES * step
    if not step or not 0 <= first < max(n_frames, 1):
        raise NotFoundError(f"no tile {index} at level {level} in {n_frames} frames")
    return np.minimum(first + step * np.arange(STRETCHES + 1, dtype=np.int64), n_frames)


class TrackTiles:
    """Tiles of what one annotator says of one subject.

    Parameters
    ----------
    annotation : Annotation
    subject : str, optional
        Only this animal's bouts; "" for those that name none. All pooled unless given.
    """

    def __init__(self, annotation: Annotation, subject: str | None = None) -> None:
        self.whole = annotation
        places = np.flatnonzero(_of_subject(annotation, subject))
        self.annotation, self._places = annotation.take(places), places
        self.subject = subject or None
        self._reach = np.maximum.accumulate(self.annotation.stop) if len(places) else self.annotation.stop

    def tile(self, edges: IntArray) -> dict[str, Any]:
        """Return ``bouts`` (rows of place, start, stop, behavior, target) and ``hidden`` stretches, or ``shares`` and ``points``."""
        a, first, last = self.annotation, int(edges[0]), int(edges[-1])
        begin, end = np.searchsorted(self._reach, first, side="left"), np.searchsorted(a.start, last, side="right")
        inside = np.arange(begin, end)
        inside = inside[(a.stop[inside] > first) | ((a.start[inside] == a.stop[inside]) & (a.start[inside] >= first))]
        hidden = iv.clip(self._hidden, first, last)
        if len(inside) + len(hidden.start) > BOUTS:
            return {"shares": encode(self._shares(edges)), "points": self._points(inside, edges)}
        rows = np.stack((self._places[inside], a.start[inside], a.stop[inside], a.behavior[inside], a.target[inside]), axis=1)
        return {"bouts": rows.tolist(), "hidden": np.stack(hidden, axis=1).tolist()}

    def _shares(self, edges: IntArray) -> NDArray[np.uint8]:
        """Return shares in 254ths, rounded up so that nothing vanishes: a column per behavior, and one for what was not looked at."""
        length = np.maximum(np.diff(edges), 1)
        covered = [np.diff(iv.covered_before(spans, edges)) / length for spans in (*self._spans, self._hidden)]
        return np.ceil(np.stack(covered, axis=1) * (MISSING - 1)).astype(np.uint8)

    def _points(self, inside: IntArray, edges: IntArray) -> list[list[int]]:
        """List the stretches that hold point events, with the behavior of each."""
        a = self.annotation
        points = inside[a.start[inside] == a.stop[inside]]
        stretch = np.minimum(np.searchsorted(edges, a.start[points], side="right") - 1, STRETCHES - 1)
        found: list[list[int]] = np.unique(np.stack((stretch, a.behavior[points]), axis=1), axis=0).tolist()
        return found

    @cached_property
    def _hidden(self) -> Intervals:
        seen = self.whole.observed.of_all(self.whole.ethogram.names, self.subject)
        return iv.complement(seen, self.whole.n_frames)

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
    """Tiles of a few channels: the least, greatest and mean value of each stretch, scaled to each lane's range.

    Parameters
    ----------
    summary : Summary
    columns : list of int
        Which channels.
    low, high : float
        The range that the lane shows; what lies beyond is cut.
    """

    def __init__(self, summary: Summary, columns: list[int], low: float, high: float) -> None:
        self._summary, self._columns, self._low, self._scale = summary, columns, low, 1 / (high - low or 1)

    def tile(self, edges: IntArray) -> dict[str, Any]:
        """Return ``low``, ``high`` and ``mean``, one row per stretch and one column per channel."""
        found = self._summary.between(np.minimum(edges, len(self._summary.values)))
        sides = {name: (side[:, self._columns] - self._low) * self._scale for name, side in found._asdict().items()}
        return {name: encode(_bytes(side)) for name, side in sides.items()}


def share_tile(spans: Intervals, edges: IntArray) -> dict[str, Any]:
    """Return the share of each stretch that a disjoint set covers."""
    shares = np.diff(iv.covered_before(spans, edges)) / np.maximum(np.diff(edges), 1)
    return {"shares": encode(np.ceil(shares * (MISSING - 1)).astype(np.uint8))}


def encode(array: NDArray[np.uint8]) -> str:
    """Put bytes into text that JSON can hold."""
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
