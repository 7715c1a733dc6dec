"""Moments of the window around every frame, at a cost that hardly depends on the window's length.

The frames are cut into blocks of one frame less than a window, so each window begins in one block and ends in the next. From the
border between the two, sums are run outwards to both sides; a window's sum is the run that reaches its first frame plus the run
that reaches its last. Nothing is ever subtracted, and values are taken relative to the first one beyond the border, which lies in
all these windows. So neither a spike that has left the window nor a large offset costs digits, as they do with cumulative sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ethobench.features.windows import rolling

Array = NDArray[np.float64]
BASICS = ("mean", "std", "skewness", "kurtosis", "max", "min", "autocorrelation", "trend")
TINY = 1e-12  # added to what divides, as BEBE does: constant windows get 0, and -3 as kurtosis
BLOCKS, FEWEST_FRAMES, MOST_FRAMES = 16, 4096, 32768  # of one batch: many blocks side by side, yet arrays that fit the caches


def window_moments(
    channels: Array, half: int, pairs: Sequence[tuple[int, int]], others: Array, slope: bool = False
) -> Iterator[tuple[slice, Array]]:
    """Compute statistics of windows that reach `half` frames to both sides and are cut at the ends of the clip, batch by batch.

    Parameters
    ----------
    channels : array (n_channels, n_frames)
        Finite, at least one frame.
    half : int
        At least 1.
    pairs : sequence of (int, int)
        Channels to correlate.
    others : array (n_others, n_frames)
        Values of which only the mean is wanted.
    slope : bool
        Divide the trend, a sum of products of frame and value, to the slope of the best line, per frame.

    Yields
    ------
    frames : slice
    statistics : array (n_statistics, n_frames of this batch)
        Each of `BASICS` for all channels, then the correlations, then the means.
    """
    n = channels.shape[1]
    half = max(min(half, n - 1), 1)
    size = 2 * half
    n_blocks = -(-n // size)
    batch = max(1, min(max(BLOCKS, FEWEST_FRAMES // size), MOST_FRAMES // size))
    extremes = [rolling(channels.T, size + 1, statistic).T for statistic in ("max", "min")]
    for block in range(0, n_blocks, batch):
        places = np.arange(block * size, (min(block + batch, n_blocks) + 1) * size) - half
        inside, places = (places >= 0) & (places < n), np.clip(places, 0, n - 1)
        values = _two_blocks(channels[:, places], size)
        values -= values[size].copy()
        values *= _two_blocks(inside[None], size)
        sums = _run(_terms(values, pairs, _two_blocks(others[:, places] * inside, size)))
        frames = slice(block * size, min((block + batch) * size, n))
        yield frames, _statistics(sums, channels, [extreme[:, frames] for extreme in extremes], pairs, frames, half, slope)


def _two_blocks(rows: NDArray[np.number | np.bool_], size: int) -> Array:
    """Lay each block and the next on axis 0, the rows on axis 1, the blocks side by side on axis 2."""
    blocks = rows.reshape(len(rows), rows.shape[1] // size, size).transpose(2, 0, 1)
    return np.concatenate([blocks[..., :-1], blocks[..., 1:]])


def _terms(values: Array, pairs: Sequence[tuple[int, int]], others: Array) -> Array:
    """Return what to sum: powers 1 to 4, products with the next frame, with the place, of pairs; and the other rows."""
    size, c = len(values) // 2, values.shape[1]
    terms = np.empty((len(values), 6 * c + len(pairs) + others.shape[1], values.shape[2]))
    one, two, three, four, lagged, timed = (terms[:, i * c : (i + 1) * c] for i in range(6))
    one[:] = values
    np.multiply(values, values, out=two)
    np.multiply(two, values, out=three)
    np.multiply(two, two, out=four)
    np.multiply(values[: size - 1], values[1:size], out=lagged[: size - 1])
    lagged[size - 1] = 0.0  # the product across the border opens the run to the right
    np.multiply(values[size - 1 : -1], values[size:], out=lagged[size:])
    np.multiply(values, np.arange(-size, size, dtype=np.float64)[:, None, None], out=timed)
    for row, (a, b) in enumerate(pairs, start=6 * c):
        np.multiply(values[:, a], values[:, b], out=terms[:, row])
    terms[:, 6 * c + len(pairs) :] = others
    return terms


def _run(terms: Array) -> Array:
    """Sum outwards from the border, in place, and add what each window has on its two sides; return one column per frame.

    A step adds all rows and blocks at once, which is several times the speed of `numpy.cumsum`: that waits for each single sum.
    """
    size = len(terms) // 2
    places = list(terms)
    for run in (places[size - 1 :: -1], places[size:]):
        for near, far in pairwise(run):
            np.add(near, far, out=far)
    return (terms[:size] + terms[size:]).transpose(1, 2, 0).reshape(terms.shape[1], -1)


def _statistics(
    sums: Array, channels: Array, extremes: list[Array], pairs: Sequence[tuple[int, int]], batch: slice, half: int, slope: bool
) -> Array:
    """Turn sums of values relative to that at each block's border into statistics."""
    c, n = channels.shape
    frames = np.arange(batch.start, batch.stop)
    sums = sums[:, : len(frames)]
    one, two, three, four, lagged, timed = (sums[i * c : (i + 1) * c] for i in range(6))
    products, others = sums[6 * c : 6 * c + len(pairs)], sums[6 * c + len(pairs) :]
    first, last = np.maximum(frames - half, 0), np.minimum(frames + half, n - 1)
    count = (last - first + 1).astype(np.float64)
    less_one = np.maximum(count - 1, 1)
    border = frames // (2 * half) * (2 * half) + half
    level = channels[:, np.minimum(border, n - 1)]
    ends = (channels[:, first] - level) + (channels[:, last] - level)

    mean = one / count
    square, spread = mean * mean, np.maximum(two - one * mean, 0.0)
    variance = spread / less_one
    std = np.sqrt(variance)
    scale = std + TINY
    cube = scale * scale * scale
    trend = timed - one * ((first + last) / 2 - border)
    if slope:
        trend /= np.maximum(count * (count * count - 1) / 12, 0.5)  # one frame has no slope, two have 0.5 here
    correlations = [
        (product - one[a] * mean[b]) / (np.sqrt(spread[a] * spread[b]) + TINY) for product, (a, b) in zip(products, pairs, strict=True)
    ]
    parts = [
        mean + level,
        std,
        ((three - 3 * mean * two) / count + 2 * mean * square) / cube,
        ((four - 4 * mean * three + 6 * square * two) / count - 3 * square * square) / (cube * scale) - 3,
        *extremes,
        ((lagged - mean * (2 * one - ends)) / less_one + square) / (variance + TINY),
        trend,
        *(row[None] for row in correlations),
        others / count,
    ]
    return np.concatenate(parts)
