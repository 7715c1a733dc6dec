"""Statistics of the window around each frame, for all frames of a recording at once.

Windows are centered on the frame and cut at the ends of the recording. Missing values (NaN) are ignored; a window without values gives
NaN. Three families: `window_features` (mean, standard deviation, minimum, maximum), `window_statistics` (the same at long scales, with
the difference between the two halves), and `window_moments` (higher moments, autocorrelation, trend and correlations).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Columns = NDArray[np.float32]
STATISTICS = ("mean", "std", "min", "max")
SHORTEST_SECONDS = 0.5  # of the windows of `window_lengths`
MIN_WINDOW_FRAMES = 5  # of the shortest window, in recordings with a low frame rate
SCALE_FACTOR = 4  # between the lengths of successive windows
EPSILON = 1e-9  # added to divisors
MAX_SKEWNESS = 10.0
MOMENTS = ("mean", "std", "skewness", "kurtosis", "max", "min", "autocorrelation", "trend")
MOMENT_EPSILON = 1e-12  # added to divisors, as in BEBE: constant windows have skewness 0 and kurtosis -3
BLOCKS_PER_BATCH, MIN_BATCH_FRAMES, MAX_BATCH_FRAMES = 16, 4096, 32768  # many blocks in parallel, in arrays that fit the cache


def window_frames(seconds: float, rate: float) -> int:
    """Return the odd number of frames that is nearest to a duration, at least 3."""
    return max(3, 2 * round((seconds * rate - 1) / 2) + 1)


def rolling(values: Array, frames: int, statistic: str) -> Array:
    """Return one statistic of the centered window of each frame.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    frames : int
        Length of the window, odd.
    statistic : {"mean", "std", "min", "max"}

    Returns
    -------
    array (n_frames, n_channels)

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


def centered_mean(rows: Array, frames: int) -> Array:
    """Return the mean of the centered window of each frame, along the last axis.

    Parameters
    ----------
    rows : array (..., n_frames)
    frames : int
        Length of the window, odd.
    """
    import bottleneck as bn

    half = frames // 2
    padded = np.concatenate([rows, np.full((*rows.shape[:-1], half), np.nan)], axis=-1)
    return np.asarray(bn.move_mean(padded, min(frames, padded.shape[-1]), min_count=1, axis=-1)[..., half:])


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
        ``channel`` and ``channel/statistic/length``.
    """
    columns, labels = [np.asarray(values, dtype=np.float64)], list(names)
    for length in seconds:
        frames = window_frames(length, rate)
        for statistic in STATISTICS:
            columns.append(rolling(values, frames, statistic))
            labels += [f"{name}/{statistic}/{length:g}s" for name in names]
    return np.concatenate(columns, axis=1), tuple(labels)


# -- windows of several scales --------------------------------------------------------------------------------------------------


def window_lengths(rate: float, scales: int) -> list[int]:
    """Return odd numbers of frames, each about four times the one before, from half a second (at least 5 frames) on.

    Examples
    --------
    >>> window_lengths(50, 4), window_lengths(1, 3)
    ([25, 101, 401, 1601], [5, 21, 81])
    """
    first = max(SHORTEST_SECONDS * rate, MIN_WINDOW_FRAMES)
    return [int(first * SCALE_FACTOR**scale) | 1 for scale in range(scales)]


def window_statistics(
    signals: Array, length: int, kept: slice, *, shape: bool = True, extremes: tuple[Columns, Columns] | None = None
) -> Iterator[tuple[str, Columns]]:
    """Yield statistics of the window around each frame.

    Parameters
    ----------
    signals : array (n_signals, n_frames)
    length : int
        Length of the window in frames, odd.
    kept : slice
        The frames to return.
    shape : bool
        Whether to add the skewness and the rise of the standard deviation.
    extremes : tuple of two arrays, optional
        The minimum and the maximum, from `window_extremes`.

    Yields
    ------
    statistic : str
        ``mean_rise`` and ``std_rise`` are the value in the half after the frame minus that in the half before it.
    columns : array of float32 (n_signals, n_kept_frames)
    """
    import bottleneck as bn

    half = length // 2
    padded = _pad_end(signals, half)

    def centered(function: Callable[..., Array], values: Array) -> Array:
        moved = function(values, min(length, values.shape[1]), min_count=1, axis=1)
        return np.asarray(moved[:, half:][:, kept])

    mean, std = (centered(function, padded) for function in (bn.move_mean, bn.move_std))
    yield "mean", mean.astype(np.float32)
    yield "std", std.astype(np.float32)
    low, high = extremes or window_extremes(signals, [length], kept)[0]
    yield "min", low
    yield "max", high
    yield "mean_rise", _rise(bn.move_mean, padded, half, signals.shape[1], kept)
    if not shape:
        return
    yield "std_rise", _rise(bn.move_std, padded, half, signals.shape[1], kept)
    offset = _row_means(signals)  # powers of values near 0 keep their precision
    shifted = padded - offset
    square = shifted * shifted
    mean -= offset
    third_moment = centered(bn.move_mean, square * shifted) - 3 * mean * centered(bn.move_mean, square) + 2 * mean**3
    yield "skew", np.clip(third_moment / (std + EPSILON) ** 3, -MAX_SKEWNESS, MAX_SKEWNESS).astype(np.float32)


def window_extremes(signals: Array, lengths: Sequence[int], kept: slice) -> list[tuple[Columns, Columns]]:
    """Return the minimum and the maximum of the windows around each frame, for windows of several lengths.

    Extremes of 2, 4, 8, ... frames are those of two halves. A window is covered by two of the largest that fit into it. One row at a
    time stays in the processor's cache, so this is several times faster than a running extreme. Rounding to 32 bits keeps the order
    of values, so it comes first.

    Parameters
    ----------
    signals : array (n_signals, n_frames)
    lengths : sequence of int
        Lengths of the windows in frames, odd and increasing.
    kept : slice
        The frames to return.

    Returns
    -------
    list of (minima, maxima)
        For each length; arrays of float32 (n_signals, n_kept_frames).
    """
    n, margin = signals.shape[1], lengths[-1] // 2
    shape = len(signals), len(range(*kept.indices(n)))
    extremes = [(np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)) for _ in lengths]
    padded = np.full(n + 2 * margin, np.nan, dtype=np.float32)
    for row, signal in enumerate(signals):
        padded[margin : margin + n] = signal
        for side, function in enumerate((np.fmin, np.fmax)):
            spans, size = padded, 1  # the extremes of the next `size` frames
            for length, columns in zip(lengths, extremes, strict=True):
                while 2 * size <= length:
                    spans = function(spans[:-size], spans[size:])
                    size *= 2
                first = margin - length // 2
                last = first + length - size
                function(spans[first : first + n][kept], spans[last : last + n][kept], out=columns[side][row])
    return extremes


def axis_correlations(axes: Array, length: int, kept: slice) -> Iterator[tuple[str, Columns]]:
    """Yield the correlation of each pair of three axes in the window around each frame.

    Parameters
    ----------
    axes : array (3, n_frames)
    length, kept
        As for `window_statistics`.

    Yields
    ------
    pair : {"xy", "xz", "yz"}
    correlation : array of float32 (n_kept_frames,)
    """
    import bottleneck as bn

    half = length // 2
    padded = _pad_end(axes - _row_means(axes), half)

    def mean(values: Array) -> Array:
        return np.asarray(bn.move_mean(values, min(length, len(values)), min_count=1)[half:][kept])

    means = [mean(axis) for axis in padded]
    stds = [np.sqrt(np.maximum(mean(axis * axis) - m * m, 0)) for axis, m in zip(padded, means, strict=True)]
    for a, b in combinations(range(3), 2):
        covariance = mean(padded[a] * padded[b]) - means[a] * means[b]
        yield "xyz"[a] + "xyz"[b], np.clip(covariance / (stds[a] * stds[b] + EPSILON), -1, 1).astype(np.float32)


def standardize(columns: Columns, center: Sequence[float] | Array, scale: Sequence[float] | Array) -> Columns:
    """Subtract a center from each row and divide by a scale.

    Parameters
    ----------
    columns : array (n_signals, n_frames)
    center, scale : array-like (n_signals,)
    """
    return np.asarray((columns - np.asarray(center)[:, None]) / np.asarray(scale)[:, None], dtype=np.float32)


def _rise(function: Callable[..., Array], padded: Array, half: int, n: int, kept: slice) -> Columns:
    """Return a statistic of the half after each frame minus that of the half before; the frame is in both."""
    one_sided = function(padded, min(half + 1, padded.shape[1]), min_count=1, axis=1)
    before, after = one_sided[:, :n], one_sided[:, half:]
    return np.asarray((after[:, kept] - before[:, kept]).astype(np.float32))


def _pad_end(signals: Array, frames: int) -> Array:
    return np.concatenate([signals, np.full((len(signals), frames), np.nan)], axis=1)


def _row_means(signals: Array) -> Array:
    finite = np.isfinite(signals)
    return np.asarray(np.where(finite, signals, 0).sum(axis=1, keepdims=True) / np.maximum(finite.sum(axis=1, keepdims=True), 1))


# -- moments --------------------------------------------------------------------------------------------------------------------


def window_moments(
    channels: Array, half: int, pairs: Sequence[tuple[int, int]], others: Array, slope: bool = False
) -> Iterator[tuple[slice, Array]]:
    """Compute moments of the window around each frame, at a cost that hardly depends on the length of the window.

    The frames are cut into blocks of one frame less than a window, so each window starts in one block and ends in the next. Sums run
    outwards from the border of the two blocks, and the sum of a window is the run to its first frame plus the run to its last one.
    Nothing is subtracted, and values are relative to the first one after the border, which is in all these windows. Thus neither a
    spike that has left the window nor a large offset costs precision, as they do with cumulative sums.

    Parameters
    ----------
    channels : array (n_channels, n_frames)
        Finite, with at least one frame.
    half : int
        Frames of the window to each side, at least 1.
    pairs : sequence of (int, int)
        Channels to correlate.
    others : array (n_others, n_frames)
        Values of which only the mean is computed.
    slope : bool
        Whether the trend is the slope of a line fitted by least squares, per frame. Otherwise it is the sum of products of frame
        and value, as in BEBE.

    Yields
    ------
    frames : slice
    statistics : array (n_statistics, n_frames of this batch)
        Each of `MOMENTS` for all channels, then the correlations, then the means.
    """
    n = channels.shape[1]
    half = max(min(half, n - 1), 1)
    size = 2 * half
    n_blocks = -(-n // size)
    batch = max(1, min(max(BLOCKS_PER_BATCH, MIN_BATCH_FRAMES // size), MAX_BATCH_FRAMES // size))
    extremes = [rolling(channels.T, size + 1, statistic).T for statistic in ("max", "min")]
    for block in range(0, n_blocks, batch):
        frame_index = np.arange(block * size, (min(block + batch, n_blocks) + 1) * size) - half
        inside, frame_index = (frame_index >= 0) & (frame_index < n), np.clip(frame_index, 0, n - 1)
        values = _pair_blocks(channels[:, frame_index], size)
        values -= values[size].copy()
        values *= _pair_blocks(inside[None], size)
        sums = _sum_windows(_terms_to_sum(values, pairs, _pair_blocks(others[:, frame_index] * inside, size)))
        frames = slice(block * size, min((block + batch) * size, n))
        yield frames, _moments_from_sums(sums, channels, [extreme[:, frames] for extreme in extremes], pairs, frames, half, slope)


def _pair_blocks(rows: NDArray[np.number | np.bool_], size: int) -> Array:
    """Return an array (two blocks of frames, rows, blocks): each block is followed by the next one on axis 0."""
    blocks = rows.reshape(len(rows), rows.shape[1] // size, size).transpose(2, 0, 1)
    return np.concatenate([blocks[..., :-1], blocks[..., 1:]])


def _terms_to_sum(values: Array, pairs: Sequence[tuple[int, int]], others: Array) -> Array:
    """Return powers 1 to 4, products with the next frame, with the time and of pairs, and the other rows."""
    size, c = len(values) // 2, values.shape[1]
    terms = np.empty((len(values), 6 * c + len(pairs) + others.shape[1], values.shape[2]))
    first, second, third, fourth, lagged, timed = (terms[:, i * c : (i + 1) * c] for i in range(6))
    first[:] = values
    np.multiply(values, values, out=second)
    np.multiply(second, values, out=third)
    np.multiply(second, second, out=fourth)
    np.multiply(values[: size - 1], values[1:size], out=lagged[: size - 1])
    lagged[size - 1] = 0.0  # the product across the border is the first of the run to the right
    np.multiply(values[size - 1 : -1], values[size:], out=lagged[size:])
    np.multiply(values, np.arange(-size, size, dtype=np.float64)[:, None, None], out=timed)
    for row, (a, b) in enumerate(pairs, start=6 * c):
        np.multiply(values[:, a], values[:, b], out=terms[:, row])
    terms[:, 6 * c + len(pairs) :] = others
    return terms


def _sum_windows(terms: Array) -> Array:
    """Sum outwards from the border, in place, and add the two sides of each window; return one column per frame.

    Each step adds all rows and blocks at once, which is several times faster than `numpy.cumsum`, whose single sums depend on each other.
    """
    size = len(terms) // 2
    frames = list(terms)
    for run in (frames[size - 1 :: -1], frames[size:]):
        for near, far in pairwise(run):
            np.add(near, far, out=far)
    return (terms[:size] + terms[size:]).transpose(1, 2, 0).reshape(terms.shape[1], -1)


def _moments_from_sums(
    sums: Array, channels: Array, extremes: list[Array], pairs: Sequence[tuple[int, int]], batch: slice, half: int, slope: bool
) -> Array:
    """Compute statistics from sums of values that are relative to the one at each block's border."""
    c, n = channels.shape
    frames = np.arange(batch.start, batch.stop)
    sums = sums[:, : len(frames)]
    sum1, sum2, sum3, sum4, lagged, timed = (sums[i * c : (i + 1) * c] for i in range(6))
    products, others = sums[6 * c : 6 * c + len(pairs)], sums[6 * c + len(pairs) :]
    first, last = np.maximum(frames - half, 0), np.minimum(frames + half, n - 1)
    count = (last - first + 1).astype(np.float64)
    degrees_of_freedom = np.maximum(count - 1, 1)
    border = frames // (2 * half) * (2 * half) + half
    offset = channels[:, np.minimum(border, n - 1)]
    ends = (channels[:, first] - offset) + (channels[:, last] - offset)

    mean = sum1 / count
    square, sum_of_squares = mean * mean, np.maximum(sum2 - sum1 * mean, 0.0)
    variance = sum_of_squares / degrees_of_freedom
    std = np.sqrt(variance)
    scale = std + MOMENT_EPSILON
    cube = scale * scale * scale
    trend = timed - sum1 * ((first + last) / 2 - border)
    if slope:
        trend /= np.maximum(count * (count * count - 1) / 12, 0.5)  # a single frame has no slope; two frames have a divisor of 0.5
    correlations = [
        (product - sum1[a] * mean[b]) / (np.sqrt(sum_of_squares[a] * sum_of_squares[b]) + MOMENT_EPSILON)
        for product, (a, b) in zip(products, pairs, strict=True)
    ]
    statistics = [
        mean + offset,
        std,
        ((sum3 - 3 * mean * sum2) / count + 2 * mean * square) / cube,
        ((sum4 - 4 * mean * sum3 + 6 * square * sum2) / count - 3 * square * square) / (cube * scale) - 3,
        *extremes,
        ((lagged - mean * (2 * sum1 - ends)) / degrees_of_freedom + square) / (variance + MOMENT_EPSILON),
        trend,
        *(row[None] for row in correlations),
        others / count,
    ]
    return np.concatenate(statistics)
