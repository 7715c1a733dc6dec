"""Statistics of the window around each frame, for all frames of a recording at once.

Windows are centred on the frame and cut at the ends of the recording. Missing values are left out; a window without any value
gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STATISTICS = ("mean", "std", "min", "max")


def window_frames(seconds: float, rate: float) -> int:
    """Return the odd number of frames that comes closest to a duration, at least 3."""
    return max(3, 2 * round((seconds * rate - 1) / 2) + 1)


def rolling(values: Array, frames: int, statistic: str) -> Array:
    """Return one statistic of the centred window of each frame.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    frames : int
        Length of the window, odd.
    statistic : {"mean", "std", "min", "max"}

    Examples
    --------
    >>> rolling(np.array([[0.0], [3.0], [6.0]]), 3, "mean")[:, 0].tolist()
    [1.5, 3.0, 4.5]
    """
    import bottleneck as bn

    function = {"mean": bn.move_mean, "std": bn.move_std, "min": bn.move_min, "max": bn.move_max}[statistic]
    half = frames // 2
    padded = np.concatenate([np.asarray(values, dtype=np.float64), np.full((half, values.shape[1]), np.nan)])
    moved = function(padded, min(frames, len(padded)), min_count=1, axis=0)
    return np.asarray(moved[half:])


def window_features(values: Array, names: Sequence[str], rate: float, seconds: Sequence[float]) -> tuple[Array, tuple[str, ...]]:
    """Return values and their window statistics at several scales.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    names : sequence of str
        Of the channels.
    rate : float
        Frames per second.
    seconds : sequence of float
        Lengths of the windows.

    Returns
    -------
    features : array (n_frames, n_features)
    names : tuple of str
    """
    parts, labels = [np.asarray(values, dtype=np.float64)], list(names)
    for length in seconds:
        frames = window_frames(length, rate)
        for statistic in STATISTICS:
            parts.append(rolling(values, frames, statistic))
            labels += [f"{name}/{statistic}/{length:g}s" for name in names]
    return np.concatenate(parts, axis=1), tuple(labels)


Array = NDArray[np.float64]
Columns = NDArray[np.float32]
SHORTEST = 0.5  # seconds
FEWEST = 5  # frames that the shortest window has at least, where recordings are slow
GROWTH = 4
SMALL = 1e-9


def window_lengths(rate: float, scales: int) -> list[int]:
    """Return odd numbers of frames, each about four times the one before; the first is half a second, or five frames.

    Examples
    --------
    >>> window_lengths(50, 4), window_lengths(1, 3)
    ([25, 101, 401, 1601], [5, 21, 81])
    """
    first = max(SHORTEST * rate, FEWEST)
    return [int(first * GROWTH**scale) | 1 for scale in range(scales)]


def window_statistics(signals: Array, length: int, kept: slice, *, shape: bool = True) -> Iterator[tuple[str, Columns]]:
    """Yield statistics of the window around each frame, cut at the ends; missing values are left out.

    Parameters
    ----------
    signals : array (n_signals, n_frames)
    length : int
        Of the window in frames, odd.
    kept : slice
        The frames that are wanted.
    shape : bool
        Add the skewness, and the rise of the deviation.

    Yields
    ------
    statistic : str
        ``_rise``: by how much it is larger in the half after the frame than in the half before.
    columns : array (n_signals, n_frames_kept)
    """
    import bottleneck as bn

    half = length // 2
    padded = _padded(signals, half)

    def centred(function: Callable[..., Array], values: Array) -> Array:
        moved = function(values, min(length, values.shape[1]), min_count=1, axis=1)
        return np.asarray(moved[:, half:][:, kept])

    mean, std = (centred(function, padded) for function in (bn.move_mean, bn.move_std))
    yield "mean", mean.astype(np.float32)
    yield "std", std.astype(np.float32)
    yield "min", centred(bn.move_min, padded).astype(np.float32)
    yield "max", centred(bn.move_max, padded).astype(np.float32)
    yield "mean_rise", _rise(bn.move_mean, padded, half, signals.shape[1], kept)
    if not shape:
        return
    yield "std_rise", _rise(bn.move_std, padded, half, signals.shape[1], kept)
    level = _level(signals)
    around = padded - level
    square = around * around
    mean -= level
    third = centred(bn.move_mean, square * around) - 3 * mean * centred(bn.move_mean, square) + 2 * mean**3
    yield "skew", np.clip(third / (std + SMALL) ** 3, -10, 10).astype(np.float32)


def axis_correlations(axes: Array, length: int, kept: slice) -> Iterator[tuple[str, Columns]]:
    """Yield how each two of three axes go together in the window around each frame.

    Parameters
    ----------
    axes : array (3, n_frames)
    length, kept
        As for `window_statistics`.

    Yields
    ------
    pair : str
        ``xy``, ``xz``, ``yz``.
    correlation : array (n_frames_kept,)
    """
    import bottleneck as bn

    half = length // 2
    padded = _padded(axes - _level(axes), half)

    def mean(values: Array) -> Array:
        return np.asarray(bn.move_mean(values, min(length, len(values)), min_count=1)[half:][kept])

    means = [mean(axis) for axis in padded]
    spread = [np.sqrt(np.maximum(mean(axis * axis) - m * m, 0)) for axis, m in zip(padded, means, strict=True)]
    for a, b in combinations(range(3), 2):
        together = mean(padded[a] * padded[b]) - means[a] * means[b]
        yield "xyz"[a] + "xyz"[b], np.clip(together / (spread[a] * spread[b] + SMALL), -1, 1).astype(np.float32)


def standardize(columns: Columns, middle: Sequence[float] | Array, spread: Sequence[float] | Array) -> Columns:
    """Measure signals from what is usual in their recording, in units of how they usually vary there."""
    return np.asarray((columns - np.asarray(middle)[:, None]) / np.asarray(spread)[:, None], dtype=np.float32)


def _rise(function: Callable[..., Array], padded: Array, half: int, n: int, kept: slice) -> Columns:
    """Return a statistic of the half after each frame, less that of the half before it; the frame is in both."""
    side = function(padded, min(half + 1, padded.shape[1]), min_count=1, axis=1)
    before, after = side[:, :n], side[:, half:]
    return np.asarray((after[:, kept] - before[:, kept]).astype(np.float32))


def _padded(signals: Array, after: int) -> Array:
    return np.concatenate([signals, np.full((len(signals), after), np.nan)], axis=1)


def _level(signals: Array) -> Array:
    """Return about the mean of each signal, so that powers of what is left keep their digits."""
    known = np.isfinite(signals)
    return np.asarray(np.where(known, signals, 0).sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1))


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


def centered_mean(rows: Array, frames: int) -> Array:
    """Return the mean of the known values in the window around each frame, along the last axis."""
    import bottleneck as bn

    half = frames // 2
    padded = np.concatenate([rows, np.full((*rows.shape[:-1], half), np.nan)], axis=-1)
    return np.asarray(bn.move_mean(padded, min(frames, padded.shape[-1]), min_count=1, axis=-1)[..., half:])
