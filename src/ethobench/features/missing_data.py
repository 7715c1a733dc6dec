"""Missing keypoints: detection, and interpolation of short gaps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.signals import Poses

Array = NDArray[np.float64]
MAX_GAP_SECONDS = 0.5
MIN_CONFIDENCE = 0.2
SAMPLE_FRAMES = 5_000  # enough frames to measure a recording


def interpolate_poses(
    poses: Poses, max_gap_seconds: float = MAX_GAP_SECONDS, *, min_confidence: float = MIN_CONFIDENCE, rate: float | None = None
) -> Poses:
    """Interpolate keypoints that are missing for a short time; longer gaps stay missing.

    A keypoint is missing where its position is NaN, where the tracker's confidence is below `min_confidence` (NaN counts as high
    confidence), and where it is exactly at (0, 0) while all other keypoints are elsewhere, as some trackers write missing keypoints.

    Parameters
    ----------
    poses : Poses
    max_gap_seconds : float
        The longest gap to interpolate. Gaps at the start and the end of a recording stay missing.
    min_confidence : float
    rate : float, optional
        Frames per second, where the poses have no rate.

    Returns
    -------
    Poses
        With the same confidence.

    See Also
    --------
    valid_positions, interpolate_gaps : the two steps, on arrays.
    """
    rate = resolve_rate(poses, rate)
    positions = valid_positions(poses, min_confidence, zeros_are_missing(poses.positions))
    interpolate_gaps(positions, max_gap_frames(max_gap_seconds, rate))
    return replace(poses, positions=positions)


def resolve_rate(poses: Poses, rate: float | None) -> float:
    """Return the rate argument if there is one, else the rate of the poses."""
    rate = poses.rate if rate is None else rate
    if rate is None or not np.isfinite(rate) or rate <= 0:
        raise EthobenchError(f"the poses have no valid frame rate ({rate!r}); pass `rate` in frames per second")
    return float(rate)


def max_gap_frames(max_gap_seconds: float, rate: float) -> int:
    """Return the longest gap to interpolate, in frames."""
    if not max_gap_seconds >= 0:
        raise ParameterError(f"`max_gap_seconds` must be >= 0, got {max_gap_seconds!r}")
    return int(np.floor(max_gap_seconds * rate + 1e-9))


def valid_positions(poses: Poses, min_confidence: float, zeros_missing: bool) -> Array:
    """Return a copy of the positions with NaN where a keypoint is missing.

    Parameters
    ----------
    poses : Poses
    min_confidence : float
        Keypoints with a lower confidence are missing.
    zeros_missing : bool
        Whether keypoints at exactly (0, 0) are missing.

    Returns
    -------
    array (n_frames, n_individuals, n_keypoints, 2 or 3)
    """
    positions = np.array(poses.positions, dtype=np.float64, order="C")
    missing = ~np.isfinite(positions[..., 0])
    for axis in range(1, positions.shape[3]):
        missing |= ~np.isfinite(positions[..., axis])
    if min_confidence > 0:
        missing |= poses.confidence < min_confidence
    if zeros_missing:
        missing |= (positions[..., 0] == 0) & (positions[..., 1] == 0)
    positions[missing] = np.nan
    return positions


def zeros_are_missing(positions: NDArray[Any]) -> bool:
    """Return whether keypoints at exactly (0, 0) are missing.

    They are not where the origin lies within the central 98 % of the other positions on both axes, since animals may be there.
    """
    sample = np.asarray(positions[:: max(1, len(positions) // SAMPLE_FRAMES)])
    x, y = sample[..., 0], sample[..., 1]
    others = np.isfinite(x) & np.isfinite(y) & ((x != 0) | (y != 0))
    if not others.any():
        return True
    for axis in (x, y):
        low, high = np.percentile(axis[others], [1, 99])
        if not low <= 0 <= high:
            return True
    return False


def interpolate_gaps(positions: Array, max_frames: int) -> None:
    """Interpolate, in place, gaps of at most `max_frames` frames between two positions of a keypoint.

    Parameters
    ----------
    positions : array (n_frames, ..., n_coordinates)
        C-contiguous.
    max_frames : int
    """
    n = len(positions)
    points = positions.reshape(n, int(np.prod(positions.shape[1:-1])), positions.shape[-1])
    missing = np.zeros((points.shape[1], n + 2), dtype=bool)  # a column before and after, so that no gap extends into the next row
    missing[:, 1:-1] = np.isnan(points[..., 0]).T
    edges = np.flatnonzero(missing.ravel()[1:] != missing.ravel()[:-1])
    row, start = np.divmod(edges[::2], n + 2)
    length = edges[1::2] - edges[::2]
    stop = start + length
    short = (length <= max_frames) & (start > 0) & (stop < n)
    row, start, length, stop = row[short], start[short], length[short], stop[short]
    step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    fraction = ((step + 1) / np.repeat(length + 1, length))[:, None]
    before, after = (np.repeat(points[frame, row], length, axis=0) for frame in (start - 1, stop))
    points[np.repeat(start, length) + step, np.repeat(row, length)] = before + fraction * (after - before)


def nan_mean(values: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return the mean along an axis without NaN, of real or complex values; NaN, without a warning, where all values are NaN."""
    valid = ~np.isnan(values)
    count = valid.sum(axis=axis)
    total = np.where(valid, values, 0).sum(axis=axis)
    with np.errstate(invalid="ignore"):  # complex numbers warn where real ones do not
        return np.asarray(total / np.where(count > 0, count, np.nan))
