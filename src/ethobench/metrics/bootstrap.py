"""Intervals by resampling individuals: one weight matrix times the statistics."""

from __future__ import annotations

import numpy as np

from ethobench.metrics._base import Array

RESAMPLES = 10_000
HISTOGRAM_RESAMPLES = 1_000
LEVEL = 0.95


def resampling_weights(n_individuals: int, resamples: int, seed: int = 0) -> Array:
    """Draw individuals with replacement; return how often each was drawn in each resample."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, n_individuals, (resamples, n_individuals))
    places = drawn + n_individuals * np.arange(resamples)[:, None]
    return np.bincount(places.ravel(), minlength=resamples * n_individuals).reshape(resamples, n_individuals).astype(float)


def interval(values: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """Return the percentile interval of resampled values (first axis); undefined where fewer than half are defined.

    Undefined values are left out. Percentiles are linearly interpolated between neighbours.
    """
    ordered = np.sort(np.where(np.isfinite(values), values, np.inf), axis=0)
    known = np.isfinite(ordered).sum(axis=0)
    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        place = share * np.maximum(known - 1, 0)
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, np.maximum(known - 1, 0))
        low, high = (np.take_along_axis(ordered, np.expand_dims(k, 0), axis=0)[0] for k in (below, above))
        enough = 2 * known >= len(values)
        with np.errstate(invalid="ignore"):
            ends.append(np.where(enough & (known > 0), low + (high - low) * (place - below), np.nan))
    return ends[0], ends[1]
