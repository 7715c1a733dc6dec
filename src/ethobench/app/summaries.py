"""Long arrays of numbers, seen from afar: minimum, maximum and mean of equal stretches."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.core.intervals import IntArray

BLOCK = 64
ROWS = 2**18

Floats = NDArray[np.float32]


class Stretches(NamedTuple):
    """One row per stretch, one column per channel; NaN where a stretch has no value."""

    low: Floats
    high: Floats
    mean: Floats


class Summary:
    """Answers what happens between frames, from the values themselves or from blocks of 64 of them.

    Blocks are made when first needed, a chunk of rows at a time, so that memory-mapped recordings stay on the disk.

    Parameters
    ----------
    values : array (n_frames, n_channels)
        NaN where nothing is known.
    """

    def __init__(self, values: NDArray[np.floating]) -> None:
        self.values = values

    def between(self, edges: IntArray) -> Stretches:
        """Summarise the stretches between consecutive frame numbers, which rise in equal steps up to the end.

        Steps of at least 64 frames must be multiples of 64, beginning at one.
        """
        step = int(edges[1] - edges[0]) if len(edges) > 1 else 1
        if step >= BLOCK and edges[0] % BLOCK == 0 and step % BLOCK == 0:
            return _gather(self._blocks, -(-edges // BLOCK))
        first, last = int(edges[0]), int(edges[-1])
        raw = np.asarray(self.values[first:last], dtype=np.float32)
        return _gather(Stretches(raw, raw, raw), edges - first)

    @cached_property
    def _blocks(self) -> Stretches:
        parts = []
        for first in range(0, max(len(self.values), 1), ROWS):
            rows = np.asarray(self.values[first : first + ROWS], dtype=np.float32)
            edges = np.minimum(np.arange(0, len(rows) + BLOCK, BLOCK), len(rows))
            parts.append(_gather(Stretches(rows, rows, rows), edges))
        return Stretches(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _gather(rows: Stretches, edges: IntArray) -> Stretches:
    """Reduce rows between edges; stretches without rows are NaN."""
    n, count = len(edges) - 1, rows.low.shape[1]
    result = Stretches(*(np.full((n, count), np.nan, dtype=np.float32) for _ in range(3)))
    filled = np.flatnonzero(edges[1:] > edges[:-1])
    if not filled.size or not count:
        return result
    first = edges[:-1][filled]
    last = int(edges[-1])
    result.low[filled] = np.fmin.reduceat(rows.low[:last], first, axis=0)
    result.high[filled] = np.fmax.reduceat(rows.high[:last], first, axis=0)
    known = ~np.isnan(rows.mean[:last])
    total = np.add.reduceat(np.where(known, rows.mean[:last], 0), first, axis=0)
    number = np.add.reduceat(known, first, axis=0, dtype=np.int64)
    result.mean[filled] = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return result
