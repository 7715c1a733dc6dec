"""Pose features: posture and movement of animals, and their behavior towards each other, one row per frame.

Works with any skeleton and any number of animals. Lengths are in body lengths (median of the animals), times in seconds, angles in
radians without a sign, so the same behavior has the same values in centimeters and pixels, at any frame rate, and mirrored. A missing
keypoint is interpolated over short gaps; in longer ones other keypoints replace it, and finally the center of the tracked ones. A value
is NaN only where nothing is tracked. Of three coordinates, the first two are used.

Memory: beside the result (float32; for two animals with seven keypoints 103 columns, 412 bytes per frame, or 793 columns, 3 kB with
the windows of `windowed_pose_features`) only blocks of a few thousand frames are in memory, about 30 MB for such animals. For long
recordings use `pose_feature_blocks`, or slices with `pose_context` more frames to both sides and the `estimate_scene` of the whole
recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import NotFoundError, ParameterError
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.body import Scene, Skeleton, estimate_scene
from ethobench.features.kinematics import (
    Column,
    Motion,
    animal_columns,
    compute_motion,
    directed_columns,
    ordered_pairs,
    pair_columns,
    point_columns,
    step_frames,
)
from ethobench.features.missing_data import (
    MAX_GAP_SECONDS,
    MIN_CONFIDENCE,
    Array,
    interpolate_gaps,
    max_gap_frames,
    resolve_rate,
    valid_positions,
)
from ethobench.features.windows import window_features, window_frames

BLOCK_FRAMES = 1 << 13  # their columns fit the cache
WINDOW_SECONDS = (0.5, 2.0, 6.0)
Features = NDArray[np.float32]
ColumnGroup = list[tuple[str, list[Column]]]


class PoseOptions(TypedDict, total=False):
    """Options of `pose_features`, `windowed_pose_features` and `pose_feature_blocks`.

    Attributes
    ----------
    keypoints : mapping of name to Keypoint
        Stated roles, as in a manifest's ``keypoints.csv``; guessed from the names by default.
    arena : (width, height) or (left, top, right, bottom)
        In the tracker's units; estimated from the positions of the animals by default.
    order : sequence of str or int
        The animals to use, in this order; all by default.
    scene : Scene
        Measured on the whole recording (`estimate_scene`), where the poses are a slice of it.
    scaled : bool
        Whether to divide lengths by the median body length; True by default.
    pooled : bool
        Whether to return the minimum and maximum over all animals and pairs instead of a value for each, for animals without
        identities; False by default.
    points : bool
        Whether to add the egocentric position and the speed of each keypoint; True by default.
    max_gap_seconds, min_confidence : float
        As for `interpolate_poses`.
    """

    keypoints: Mapping[str, Keypoint] | None
    arena: Sequence[float] | None
    order: Sequence[str | int] | None
    scene: Scene | None
    scaled: bool
    pooled: bool
    points: bool
    max_gap_seconds: float
    min_confidence: float


@dataclass(frozen=True)
class _Settings:
    """The options with their defaults."""

    keypoints: Mapping[str, Keypoint] | None = None
    arena: Sequence[float] | None = None
    order: Sequence[str | int] | None = None
    scene: Scene | None = None
    scaled: bool = True
    pooled: bool = False
    points: bool = True
    max_gap_seconds: float = MAX_GAP_SECONDS
    min_confidence: float = MIN_CONFIDENCE


def pose_features(poses: Poses, rate: float | None = None, **options: Unpack[PoseOptions]) -> tuple[Features, tuple[str, ...]]:
    """Compute features of posture, movement and social behavior.

    Parameters
    ----------
    poses : Poses
    rate : float, optional
        Frames per second, where the poses have no rate.
    **options
        See `PoseOptions`: keypoints, arena, order, scene, scaled, pooled, points, max_gap_seconds, min_confidence.

    Returns
    -------
    features : array of float32 (n_frames, n_features)
    names : tuple of str
        ``animal/feature``, ``first-second/feature`` and, where the direction matters, ``subject>target/feature``. The columns depend
        only on the number of animals and the skeleton.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> poses = load_dataset("synthetic/pose", individuals=1, seconds=10).recordings[0].signals
    >>> values, names = pose_features(poses, points=False)
    >>> values.shape, names[0], names[-1]
    ((300, 61), 'resident/speed', 'intruder>resident/tail_base_aside')
    """
    return _all_frames(poses, rate, (), options)


def windowed_pose_features(
    poses: Poses, rate: float | None = None, seconds: Sequence[float] = WINDOW_SECONDS, **options: Unpack[PoseOptions]
) -> tuple[Features, tuple[str, ...]]:
    """Compute pose features and their window statistics at several scales.

    Parameters
    ----------
    poses : Poses
    rate : float, optional
        Frames per second, where the poses have no rate.
    seconds : sequence of float
        Lengths of the windows.
    **options
        See `PoseOptions`. `points` is False by default, since features of keypoints would double the number of columns.

    Returns
    -------
    features : array of float32 (n_frames, n_features)
    names : tuple of str
        As `window_features` returns them.
    """
    return _all_frames(poses, rate, seconds, {"points": False, **options})


def pose_feature_blocks(
    poses: Poses, rate: float | None = None, seconds: Sequence[float] = (), *, frames: int = BLOCK_FRAMES, **options: Unpack[PoseOptions]
) -> Iterator[tuple[slice, Features, tuple[str, ...]]]:
    """Yield features block by block, equal to those of the whole recording, in memory that does not grow with its length.

    Parameters
    ----------
    poses : Poses
        May be memory-mapped.
    rate : float, optional
        Frames per second, where the poses have no rate.
    seconds : sequence of float
        Lengths of the windows; empty for features without windows.
    frames : int
        Frames per block.
    **options
        See `PoseOptions`.

    Yields
    ------
    frames : slice
    features : array of float32 (n_block_frames, n_features)
    names : tuple of str
    """
    rate, settings = resolve_rate(poses, rate), _Settings(**options)
    scene = settings.scene or estimate_scene(
        poses, keypoints=settings.keypoints, arena=settings.arena, min_confidence=settings.min_confidence
    )
    animals = _animal_indices(poses, settings.order)
    margin = pose_context(rate, seconds, max_gap_seconds=settings.max_gap_seconds)
    for start in range(0, max(len(poses), 1), frames):
        stop = min(start + frames, len(poses))
        first, last = max(start - margin, 0), min(stop + margin, len(poses))
        values, names = _compute_block(_select(poses, first, last, animals), rate, scene, settings)
        if seconds:
            values, names = window_features(values, names, rate, seconds)
        yield slice(start, stop), values[start - first : stop - first].astype(np.float32), names


def pose_context(rate: float, seconds: Sequence[float] = (), *, max_gap_seconds: float = MAX_GAP_SECONDS) -> int:
    """Return the number of frames to each side that a frame's pose features depend on."""
    windows = max((window_frames(length, rate) // 2 for length in seconds), default=0)
    return max_gap_frames(max_gap_seconds, rate) + 1 + 2 * step_frames(rate) + windows


def _all_frames(poses: Poses, rate: float | None, seconds: Sequence[float], options: PoseOptions) -> tuple[Features, tuple[str, ...]]:
    result: Features | None = None
    names: tuple[str, ...] = ()
    context = pose_context(resolve_rate(poses, rate), seconds, max_gap_seconds=options.get("max_gap_seconds", MAX_GAP_SECONDS))
    for frames, values, names in pose_feature_blocks(poses, rate, seconds, frames=max(BLOCK_FRAMES, 4 * context), **options):
        if result is None:
            result = np.empty((len(poses), len(names)), dtype=np.float32)
        result[frames] = values
    return (np.empty((0, 0), dtype=np.float32) if result is None else result), names


def _compute_block(poses: Poses, rate: float, scene: Scene, settings: _Settings) -> tuple[Array, tuple[str, ...]]:
    """Compute the features of a block of frames; those at its ends depend on one side only."""
    scale = 1 / scene.body_length if settings.scaled else 1.0
    positions = valid_positions(poses, settings.min_confidence, scene.zeros_missing)
    tracked = ~np.isnan(positions[..., 0]) @ np.full(len(poses.keypoints), 1 / len(poses.keypoints))
    interpolate_gaps(positions, max_gap_frames(settings.max_gap_seconds, rate))
    positions *= scale
    motion = compute_motion(positions, Skeleton.from_names(poses.keypoints, settings.keypoints), rate, scene.body_length * scale)
    low, high = np.array(scene.low) * scale, np.array(scene.high) * scale
    groups = _column_groups(motion, poses.individuals, tracked.T, low, high, settings.points)
    columns = list(_pooled(groups) if settings.pooled else _named(groups))
    return np.stack([values for _, values in columns]).T, tuple(name for name, _ in columns)


def _column_groups(
    motion: Motion, individuals: Sequence[str], tracked: Array, low: Array, high: Array, points: bool
) -> Iterator[ColumnGroup]:
    """Yield groups of the same columns for different animals or pairs, each with the name of the animal or pair."""
    n = len(individuals)
    yield [(individuals[a], list(animal_columns(motion, a, tracked[a], low, high))) for a in range(n)]
    if points:
        yield [(individuals[a], list(point_columns(motion, a))) for a in range(n)]
    pairs = ordered_pairs(n)
    yield [(f"{individuals[a]}-{individuals[b]}", list(pair_columns(motion, a, b))) for a, b in pairs if a < b]
    yield [(f"{individuals[a]}>{individuals[b]}", list(directed_columns(motion, a, b))) for a, b in pairs]


def _named(groups: Iterable[ColumnGroup]) -> Iterator[Column]:
    for group in groups:
        for animals, columns in group:
            yield from ((f"{animals}/{name}", values) for name, values in columns)


def _pooled(groups: Iterable[ColumnGroup]) -> Iterator[Column]:
    for group in groups:
        for same_column in zip(*(columns for _, columns in group), strict=True):
            name, values = same_column[0][0], [column for _, column in same_column]
            if len(values) == 1:
                yield name, values[0]
            else:
                yield f"{name}/least", np.fmin.reduce(values)
                yield f"{name}/most", np.fmax.reduce(values)


def _animal_indices(poses: Poses, order: Sequence[str | int] | None) -> list[int]:
    if order is None:
        return list(range(len(poses.individuals)))
    indices = []
    for animal in order:
        if animal not in poses.individuals and animal not in range(len(poses.individuals)):
            raise NotFoundError(f"no animal {animal!r}; available: {', '.join(poses.individuals)}")
        indices.append(poses.individuals.index(animal) if isinstance(animal, str) else int(animal))
    if len({*indices}) < len(indices) or not indices:
        raise ParameterError(f"`order` must name at least one animal, and each only once, got {list(order)!r}")
    return indices


def _select(poses: Poses, start: int, stop: int, animals: list[int]) -> Poses:
    """Return a range of frames of some animals."""
    positions, confidence = poses.positions[start:stop], poses.confidence[start:stop]
    if animals != list(range(len(poses.individuals))):
        positions, confidence = positions[:, animals], confidence[:, animals]
    return Poses(positions, confidence, tuple(poses.individuals[a] for a in animals), poses.keypoints, poses.rate)
