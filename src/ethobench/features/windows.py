"""Statistics of the window around each frame, for all frames of a recording at once.

Windows are centred on the frame and cut at the ends of the recording. Missing values are left out; a window without any value
gives NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

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
