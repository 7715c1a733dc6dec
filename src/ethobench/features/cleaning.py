"""Cleaning of poses: confidence filter, identity swaps, jumps, gaps and smoothing.

Every function takes poses and returns changed poses; the input is not changed. The names follow those of `movement`. `clean_poses`
runs the steps in the order in which they depend on each other, and counts what each of them changed.

References
----------
Median filter: Tukey (1977), Exploratory Data Analysis. Savitzky and Golay (1964), Analytical Chemistry 36, 1627-1639.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.core.errors import ParameterError
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.body import estimate_scene
from ethobench.features.identity_swaps import find_identity_swaps
from ethobench.features.missing_data import interpolate_gaps as interpolate_array
from ethobench.features.missing_data import max_gap_frames, resolve_rate, valid_positions, zeros_are_missing

SMOOTHING = ("median", "savgol", "none")
STEPS = ("low_confidence", "swapped", "jumps", "interpolated", "smoothed", "missing")
"""What `clean_poses` counts; ``missing`` is what is missing at the end."""


def filter_by_confidence(poses: Poses, min_confidence: float = 0.6) -> Poses:
    """Set keypoints with a low confidence to missing; those at exactly (0, 0), as some trackers write missing keypoints, too.

    Parameters
    ----------
    poses : Poses
    min_confidence : float
        Keypoints with a lower confidence are missing; those without a confidence are kept.

    Examples
    --------
    >>> poses = Poses(np.ones((3, 1, 1, 2)), np.array([0.9, 0.1, np.nan])[:, None, None], ("m",), ("nose",), 30.0)
    >>> np.isnan(filter_by_confidence(poses).positions[:, 0, 0, 0]).tolist()
    [False, True, False]
    """
    if not 0 <= min_confidence <= 1:
        raise ParameterError(f"`min_confidence` must be between 0 and 1, got {min_confidence}")
    return replace(poses, positions=valid_positions(poses, min_confidence, zeros_are_missing(poses.positions)))


def repair_identity_swaps(poses: Poses, *, rate: float | None = None, keypoints: Mapping[str, Keypoint] | None = None) -> Poses:
    """Exchange animals back after frames in which two of them jump to each other's positions.

    The identities at the start are kept. Swaps of animals on top of each other are not found.

    Parameters
    ----------
    poses : Poses
    rate : float, optional
        Frames per second, where the poses have no rate.
    keypoints : mapping of name to Keypoint, optional
        Stated roles.

    See Also
    --------
    find_identity_swaps : the frames.
    """
    if len(poses.individuals) < 2:
        return poses
    track_of = np.arange(len(poses.individuals))  # the track on which each animal is
    positions, confidence = np.array(poses.positions, dtype=np.float64), np.array(poses.confidence, dtype=np.float64)
    for swap in find_identity_swaps(poses, rate=rate, keypoints=keypoints):
        first, second = (poses.individuals.index(name) for name in (swap.first, swap.second))
        on_first, on_second = track_of == first, track_of == second
        track_of[on_first], track_of[on_second] = second, first
        positions[swap.frame :] = poses.positions[swap.frame :][:, track_of]
        confidence[swap.frame :] = poses.confidence[swap.frame :][:, track_of]
    return replace(poses, positions=positions, confidence=confidence)


def remove_jumps(
    poses: Poses,
    max_distance: float = 0.5,
    *,
    window: float = 0.5,
    rate: float | None = None,
    keypoints: Mapping[str, Keypoint] | None = None,
) -> Poses:
    """Set keypoints to missing that are far from where they are shortly before and after.

    Parameters
    ----------
    poses : Poses
    max_distance : float
        Distance from the median position within the window, in body lengths.
    window : float
        In seconds. Jumps of up to half of it are found.
    rate : float, optional
        Frames per second, where the poses have no rate.
    keypoints : mapping of name to Keypoint, optional
        Stated roles.

    Examples
    --------
    >>> path = np.stack([np.linspace(0, 50, 60), np.full(60, 5.0)], axis=1)
    >>> positions = np.stack([path, path + [10.0, 0]], axis=1)[:, None]
    >>> positions[30, 0, 0] = 200.0
    >>> poses = Poses(positions, np.ones((60, 1, 2)), ("m",), ("nose", "tail_base"), 30.0)
    >>> np.argwhere(np.isnan(remove_jumps(poses).positions[..., 0])).tolist()
    [[30, 0, 0]]
    """
    if not max_distance > 0:
        raise ParameterError(f"`max_distance` must be > 0 body lengths, got {max_distance}")
    body_length = estimate_scene(poses, keypoints=keypoints).body_length
    positions = np.array(poses.positions, dtype=np.float64)
    median = _moving_median(positions, window_frames(window, resolve_rate(poses, rate)))
    with np.errstate(invalid="ignore"):
        is_jump = np.linalg.norm(positions - median, axis=-1) > max_distance * body_length
    positions[is_jump] = np.nan
    return replace(poses, positions=positions)


def interpolate_gaps(poses: Poses, max_gap: float = 0.5, *, rate: float | None = None) -> Poses:
    """Interpolate missing keypoints linearly over short gaps, and their confidence with them.

    Parameters
    ----------
    poses : Poses
    max_gap : float
        Longest gap in seconds. Gaps at the start and the end of a recording stay missing.
    rate : float, optional
        Frames per second, where the poses have no rate.

    Examples
    --------
    >>> positions = np.array([1.0, np.nan, np.nan, 4.0])[:, None, None, None] * np.ones(2)
    >>> poses = Poses(positions, np.ones((4, 1, 1)), ("m",), ("nose",), 10.0)
    >>> interpolate_gaps(poses).positions[:, 0, 0, 0].tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    positions = np.array(poses.positions, dtype=np.float64)
    confidence = np.where(np.isnan(positions[..., 0]), np.nan, poses.confidence)
    values = np.ascontiguousarray(np.concatenate([positions, confidence[..., None]], axis=-1))
    interpolate_array(values, max_gap_frames(max_gap, resolve_rate(poses, rate)))
    was_filled = np.isnan(positions[..., 0]) & ~np.isnan(values[..., 0])
    return replace(
        poses,
        positions=np.ascontiguousarray(values[..., :-1]),
        confidence=np.where(was_filled, values[..., -1], poses.confidence),
    )


def smooth_median(poses: Poses, window: float = 0.2, *, rate: float | None = None) -> Poses:
    """Smooth with a moving median, which removes spikes and keeps edges. Missing keypoints stay missing.

    Parameters
    ----------
    poses : Poses
    window : float
        In seconds; rounded to an odd number of frames.
    rate : float, optional
        Frames per second, where the poses have no rate.

    Examples
    --------
    >>> positions = np.array([1.0, 2.0, 90.0, 4.0, 5.0])[:, None, None, None] * np.ones(2)
    >>> poses = Poses(positions, np.ones((5, 1, 1)), ("m",), ("nose",), 10.0)
    >>> smooth_median(poses, window=0.3).positions[:, 0, 0, 0].tolist()
    [1.5, 2.0, 4.0, 5.0, 4.5]
    """
    positions = np.array(poses.positions, dtype=np.float64)
    smoothed = _moving_median(positions, window_frames(window, resolve_rate(poses, rate)))
    smoothed[np.isnan(positions)] = np.nan
    return replace(poses, positions=smoothed)


def smooth_savgol(poses: Poses, window: float = 0.2, polyorder: int = 2, *, rate: float | None = None) -> Poses:
    """Smooth with a Savitzky-Golay filter: a polynomial fitted within a moving window. Missing keypoints stay missing.

    Parameters
    ----------
    poses : Poses
    window : float
        In seconds; rounded to an odd number of frames. Runs of tracked frames that are shorter are not smoothed.
    polyorder : int
        Order of the polynomial, smaller than the number of frames of the window.
    rate : float, optional
        Frames per second, where the poses have no rate.

    Examples
    --------
    >>> positions = np.arange(9.0)[:, None, None, None] ** 2 * np.ones(2)
    >>> poses = Poses(positions, np.ones((9, 1, 1)), ("m",), ("nose",), 10.0)
    >>> np.allclose(smooth_savgol(poses, window=0.5).positions, positions)
    True
    """
    from scipy.signal import savgol_filter

    size = window_frames(window, resolve_rate(poses, rate))
    if not 0 <= polyorder < size:
        raise ParameterError(f"`polyorder` must be below {size}, the frames of the window, got {polyorder}")
    smoothed = np.array(poses.positions, dtype=np.float64)
    points = smoothed.reshape(len(smoothed), int(np.prod(smoothed.shape[1:3])), smoothed.shape[3])
    for k in range(points.shape[1]):
        runs = iv.from_mask(~np.isnan(points[:, k]).any(axis=1))
        for start, stop in zip(*runs, strict=True):
            if stop - start >= size:
                points[start:stop, k] = savgol_filter(points[start:stop, k], size, polyorder, axis=0)
    return replace(poses, positions=points.reshape(smoothed.shape))


def window_frames(seconds: float, rate: float) -> int:
    """Return an odd number of frames, at least 3.

    Examples
    --------
    >>> window_frames(0.2, 30.0)
    7
    """
    if not 0 < seconds < np.inf:
        raise ParameterError(f"`window` must be > 0 seconds, got {seconds}")
    return 2 * max(1, round(seconds * rate) // 2) + 1


def _moving_median(positions: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the centered moving median along the first axis, ignoring missing values."""
    import bottleneck

    half = size // 2
    padding = np.full((half, *positions.shape[1:]), np.nan)
    padded = np.concatenate([padding, positions, padding])
    return np.asarray(bottleneck.move_median(padded, size, min_count=1, axis=0)[2 * half :])


@dataclass(frozen=True)
class CleanOptions:
    """Settings of `clean_poses`.

    Attributes
    ----------
    min_confidence : float
        Keypoints with a lower confidence are missing.
    max_jump : float
        Largest distance from the median position within half a second, in body lengths; 0 keeps jumps.
    max_gap : float
        Longest gap to interpolate, in seconds.
    smooth : {"median", "savgol", "none"}
    window : float
        Window of the smoothing filter in seconds.
    repair_swaps : bool
        Whether to exchange animals back that the tracker seems to have swapped.

    Examples
    --------
    >>> CleanOptions(smooth="savgol").window
    0.2
    """

    min_confidence: float = 0.6
    max_jump: float = 0.5
    max_gap: float = 0.5
    smooth: str = "median"
    window: float = 0.2
    repair_swaps: bool = True

    def __post_init__(self) -> None:
        if self.smooth not in SMOOTHING:
            raise ParameterError(f"`smooth` must be one of {', '.join(SMOOTHING)}, got {self.smooth!r}")
        if not 0 <= self.min_confidence <= 1:
            raise ParameterError(f"`min_confidence` must be between 0 and 1, got {self.min_confidence}")
        for name in ("max_jump", "max_gap"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ParameterError(f"`{name}` must be >= 0, got {getattr(self, name)}")


@dataclass(frozen=True)
class CleanReport:
    """What `clean_poses` changed.

    Attributes
    ----------
    n_points : int
        Number of frames times animals, for each keypoint.
    counts : mapping of keypoint to mapping of step to int
        Points that each step changed; see `STEPS`.
    """

    n_points: int
    counts: Mapping[str, Mapping[str, int]]

    def total(self, step: str) -> int:
        """Return the number of points of all keypoints that a step changed."""
        return sum(counts[step] for counts in self.counts.values())


def clean_poses(
    poses: Poses,
    options: CleanOptions | None = None,
    *,
    rate: float | None = None,
    keypoints: Mapping[str, Keypoint] | None = None,
) -> tuple[Poses, CleanReport]:
    """Clean poses in five steps: confidence filter, identity swaps, jumps, gaps, smoothing.

    Parameters
    ----------
    poses : Poses
    options : CleanOptions, optional
    rate : float, optional
        Frames per second, where the poses have no rate.
    keypoints : mapping of name to Keypoint, optional
        Stated roles.

    Returns
    -------
    poses : Poses
    report : CleanReport
        What each step changed, for each keypoint.

    Examples
    --------
    >>> import ethobench as eb
    >>> poses = eb.load_dataset("synthetic/pose", individuals=1, seconds=20)["animal01"].signals
    >>> cleaned, report = clean_poses(poses)
    >>> cleaned.missing <= poses.missing + report.total("low_confidence") + report.total("jumps")
    True
    """
    options = options or CleanOptions()
    rate = resolve_rate(poses, rate)
    changed: dict[str, NDArray[np.int64]] = {}

    def record(step: str, before: Poses, after: Poses) -> Poses:
        is_changed = (before.positions != after.positions) & ~(np.isnan(before.positions) & np.isnan(after.positions))
        changed[step] = is_changed.any(axis=-1).sum(axis=(0, 1))
        return after

    cleaned = record("low_confidence", poses, filter_by_confidence(poses, options.min_confidence))
    if options.repair_swaps:
        cleaned = record("swapped", cleaned, repair_identity_swaps(cleaned, rate=rate, keypoints=keypoints))
    if options.max_jump > 0:
        cleaned = record("jumps", cleaned, remove_jumps(cleaned, options.max_jump, rate=rate, keypoints=keypoints))
    cleaned = record("interpolated", cleaned, interpolate_gaps(cleaned, options.max_gap, rate=rate))
    if options.smooth == "median":
        cleaned = record("smoothed", cleaned, smooth_median(cleaned, options.window, rate=rate))
    elif options.smooth == "savgol":
        cleaned = record("smoothed", cleaned, smooth_savgol(cleaned, options.window, rate=rate))
    changed["missing"] = np.isnan(cleaned.positions[..., 0]).sum(axis=(0, 1))
    zeros = np.zeros(len(poses.keypoints), dtype=np.int64)
    counts = {name: {step: int(changed.get(step, zeros)[k]) for step in STEPS} for k, name in enumerate(poses.keypoints)}
    return cleaned, CleanReport(len(poses) * len(poses.individuals), counts)
