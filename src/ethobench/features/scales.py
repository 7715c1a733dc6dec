"""Statistics of windows of several lengths around some frames, and how their two halves differ, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

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


def scale_columns(signals: Array, length: int, kept: slice, *, shape: bool = True) -> Iterator[tuple[str, Columns]]:
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


def correlation_columns(axes: Array, length: int, kept: slice) -> Iterator[tuple[str, Columns]]:
    """Yield how each two of three axes go together in the window around each frame.

    Parameters
    ----------
    axes : array (3, n_frames)
    length, kept
        As for `scale_columns`.

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


def own_columns(columns: Columns, middle: Sequence[float] | Array, spread: Sequence[float] | Array) -> Columns:
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
