"""Keypoints that were not tracked: found, bridged for a short while, and left out beyond that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError
from ethobench.core.signals import Poses

Array = NDArray[np.float64]
MAX_GAP_SECONDS = 0.5
MIN_CONFIDENCE = 0.2
SAMPLE = 5_000  # frames that tell enough about a whole recording


def interpolate_poses(
    poses: Poses, max_gap_seconds: float = MAX_GAP_SECONDS, *, min_confidence: float = MIN_CONFIDENCE, rate: float | None = None
) -> Poses:
    """Interpolate keypoints that are missing for a short while; longer gaps stay missing.

    A keypoint is missing where its position is NaN, where the tracker's confidence is below `min_confidence` (an unknown confidence
    counts as enough), and where it lies exactly at (0, 0) though the animals never come near there, as some tools write what they
    did not find.

    Parameters
    ----------
    poses : Poses
    max_gap_seconds : float
        The longest gap to interpolate_poses; gaps at the beginning and the end of a recording are not.
    min_confidence : float
    rate : float, optional
        Frames per second, where the poses do not tell.

    Returns
    -------
    Poses
        The same confidence, other positions.
    """
    rate = resolve_rate(poses, rate)
    positions = valid_positions(poses, min_confidence, zeros_are_missing(poses.positions))
    interpolate_gaps(positions, max_gap_frames(max_gap_seconds, rate))
    return replace(poses, positions=positions)


def resolve_rate(poses: Poses, rate: float | None) -> float:
    """Return the rate that is given, or that of the poses."""
    rate = poses.rate if rate is None else rate
    if rate is None or not np.isfinite(rate) or rate <= 0:
        raise EthobenchError(f"these poses need a rate in frames per second, not {rate!r}; give rate=")
    return float(rate)


def max_gap_frames(max_gap_seconds: float, rate: float) -> int:
    """Return the longest gap to interpolate_poses, in frames."""
    if not max_gap_seconds >= 0:
        raise EthobenchError(f"gaps are bridged up to a number of seconds, 0 or more, not {max_gap_seconds!r}")
    return int(np.floor(max_gap_seconds * rate + 1e-9))


def valid_positions(poses: Poses, min_confidence: float, zeros_missing: bool) -> Array:
    """Return a copy of the positions with NaN wherever a keypoint is not to be trusted."""
    positions = np.array(poses.positions, dtype=np.float64, order="C")
    doubtful = ~np.isfinite(positions[..., 0])
    for axis in range(1, positions.shape[3]):
        doubtful |= ~np.isfinite(positions[..., axis])
    if min_confidence > 0:
        doubtful |= poses.confidence < min_confidence
    if zeros_missing:
        doubtful |= (positions[..., 0] == 0) & (positions[..., 1] == 0)
    positions[doubtful] = np.nan
    return positions


def zeros_are_missing(positions: NDArray[Any]) -> bool:
    """Tell whether keypoints at exactly (0, 0) were not found.

    They were, where the origin lies among the other places (the middle 98 % of each axis): then an animal may well be there.
    """
    points = np.asarray(positions[:: max(1, len(positions) // SAMPLE), ..., :2]).reshape(-1, 2)
    at_zero = (points == 0).all(axis=1)
    others = points[~at_zero & np.isfinite(points).all(axis=1)]
    if not len(others):
        return True
    low, high = np.percentile(others, [1, 99], axis=0)
    return not bool(((low <= 0) & (high >= 0)).all())


def interpolate_gaps(positions: Array, most: int) -> None:
    """Interpolate, in place, the gaps of at most `most` frames between two known positions of a keypoint.

    The array is contiguous, frames first, coordinates last.
    """
    n = len(positions)
    points = positions.reshape(n, int(np.prod(positions.shape[1:-1])), positions.shape[-1])
    missing = np.zeros((points.shape[1], n + 2), dtype=bool)  # a column before and after, so that no gap runs on into the next row
    missing[:, 1:-1] = np.isnan(points[..., 0]).T
    edges = np.flatnonzero(missing.ravel()[1:] != missing.ravel()[:-1])
    row, start = np.divmod(edges[::2], n + 2)
    length = edges[1::2] - edges[::2]
    stop = start + length
    short = (length <= most) & (start > 0) & (stop < n)
    row, start, length, stop = row[short], start[short], length[short], stop[short]
    step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    share = ((step + 1) / np.repeat(length + 1, length))[:, None]
    before, after = (np.repeat(points[at, row], length, axis=0) for at in (start - 1, stop))
    points[np.repeat(start, length) + step, np.repeat(row, length)] = before + share * (after - before)


def nan_mean(values: NDArray[Any], axis: int) -> NDArray[Any]:
    """Take the mean of what is known along an axis; NaN where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0).sum(axis=axis)
    with np.errstate(invalid="ignore"):  # complex numbers warn where real ones do not
        return np.asarray(total / np.where(count > 0, count, np.nan))
