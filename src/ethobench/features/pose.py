"""Pose features: how animals are placed, how they move and what they do towards each other, one row per frame.

Any skeleton and any number of animals. Lengths are in body lengths (the animals' median), times in seconds, angles in radians
without a sign, so that the same behavior has the same values in centimetres and pixels, at any rate, and seen in a mirror.
A keypoint that is missing is bridged for a short while; then others stand in for it, at last the middle of what is seen.
A value is NaN only where nothing is known. Of three coordinates, the first two are used.

What it costs: beside the result (float32; for two animals with seven keypoints 103 columns, 412 bytes a frame, or 793 columns, 3 kB
with the windows of `windowed_pose_features`) only blocks of some thousand frames are in memory, about 30 MB for such animals. For long
recordings go through `pose_feature_blocks`, or take slices with `pose_context` more to both sides and the `estimate_scene` the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.body import Scene, Skeleton, estimate_scene
from ethobench.features.kinematics import (
    Column,
    Motion,
    animal_columns,
    directed_columns,
    measure_motion,
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

BLOCK = 1 << 13  # frames; their columns fit the caches
SECONDS = (0.5, 2.0, 6.0)
Features = NDArray[np.float32]
Group = list[tuple[str, list[Column]]]


class PoseOptions(TypedDict, total=False):
    """What `pose_features` and its relatives can be told.

    Attributes
    ----------
    keypoints : mapping of name to Keypoint
        Stated roles, as a manifest's ``keypoints.csv`` has them; guessed from the names unless given.
    arena : (width, height) or (left, top, right, bottom)
        In the tracker's units; estimated from where the animals were unless given.
    order : sequence of str or int
        Which animals, in which order; all unless given.
    scene : Scene
        Measured on the whole recording (`estimate_scene`), where the poses are a slice of it.
    scaled : bool
        Divide lengths by the animals' median body length; on unless told.
    pooled : bool
        The least and the most over all animals and pairs in place of each one's own value, where identities mean nothing.
    points : bool
        Add where each keypoint is and how fast it moves; on unless told.
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
    """Return how animals are placed, move and act towards each other.

    Parameters
    ----------
    poses : Poses
    rate : float, optional
        Frames per second, where the poses do not tell.
    **options
        See `PoseOptions`: keypoints, arena, order, scene, scaled, pooled, points, max_gap_seconds, min_confidence.

    Returns
    -------
    features : array of float32 (n_frames, n_features)
    names : tuple of str
        ``animal/feature``, ``one-other/feature`` and, where it matters who, ``one>other/feature``. Which columns there are
        depends only on the number of animals and the skeleton.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> poses = load_dataset("synthetic/pose", individuals=1, seconds=10).recordings[0].signals
    >>> values, names = pose_features(poses, points=False)
    >>> values.shape, names[0], names[-1]
    ((300, 61), 'resident/speed', 'intruder>resident/tail_base_aside')
    """
    return _whole(poses, rate, (), options)


def windowed_pose_features(
    poses: Poses, rate: float | None = None, seconds: Sequence[float] = SECONDS, **options: Unpack[PoseOptions]
) -> tuple[Features, tuple[str, ...]]:
    """Return pose features and their window statistics at several scales.

    Parameters
    ----------
    poses : Poses
    rate : float, optional
        Frames per second, where the poses do not tell.
    seconds : sequence of float
        Lengths of the windows.
    **options
        See `PoseOptions`. The features of single keypoints are off unless asked for: they would double the columns.

    Returns
    -------
    features : array of float32 (n_frames, n_features)
    names : tuple of str
        As `window_features` names them.
    """
    return _whole(poses, rate, seconds, {"points": False, **options})


def pose_feature_blocks(
    poses: Poses, rate: float | None = None, seconds: Sequence[float] = (), *, frames: int = BLOCK, **options: Unpack[PoseOptions]
) -> Iterator[tuple[slice, Features, tuple[str, ...]]]:
    """Yield features some frames at a time, the same as for the whole recording, in memory that does not grow with it.

    Parameters
    ----------
    poses : Poses
        May be memory-mapped.
    rate : float, optional
    seconds : sequence of float
        Lengths of the windows; none for the plain features.
    frames : int
        Frames of a block.
    **options
        See `PoseOptions`.

    Yields
    ------
    frames : slice
    features : array of float32
    names : tuple of str
    """
    rate, told = resolve_rate(poses, rate), _Settings(**options)
    scene = told.scene or estimate_scene(poses, keypoints=told.keypoints, arena=told.arena, min_confidence=told.min_confidence)
    animals = _places(poses, told.order)
    margin = pose_context(rate, seconds, max_gap_seconds=told.max_gap_seconds)
    for start in range(0, max(len(poses), 1), frames):
        stop = min(start + frames, len(poses))
        first, last = max(start - margin, 0), min(stop + margin, len(poses))
        values, names = _columns(_cut(poses, first, last, animals), rate, scene, told)
        if seconds:
            values, names = window_features(values, names, rate, seconds)
        yield slice(start, stop), values[start - first : stop - first].astype(np.float32), names


def pose_context(rate: float, seconds: Sequence[float] = (), *, max_gap_seconds: float = MAX_GAP_SECONDS) -> int:
    """Return how many frames to both sides a frame's features depend on."""
    windows = max((window_frames(length, rate) // 2 for length in seconds), default=0)
    return max_gap_frames(max_gap_seconds, rate) + 1 + 2 * step_frames(rate) + windows


def _whole(poses: Poses, rate: float | None, seconds: Sequence[float], options: PoseOptions) -> tuple[Features, tuple[str, ...]]:
    result: Features | None = None
    names: tuple[str, ...] = ()
    block = max(
        BLOCK, 4 * pose_context(resolve_rate(poses, rate), seconds, max_gap_seconds=options.get("max_gap_seconds", MAX_GAP_SECONDS))
    )
    for where, values, names in pose_feature_blocks(poses, rate, seconds, frames=block, **options):
        if result is None:
            result = np.empty((len(poses), len(names)), dtype=np.float32)
        result[where] = values
    return (np.empty((0, 0), dtype=np.float32) if result is None else result), names


def _columns(poses: Poses, rate: float, scene: Scene, told: _Settings) -> tuple[Array, tuple[str, ...]]:
    """Compute the features of some frames; those at the ends know only one side."""
    scale = 1 / scene.body_length if told.scaled else 1.0
    positions = valid_positions(poses, told.min_confidence, scene.zeros_missing)
    seen = ~np.isnan(positions[..., 0]) @ np.full(len(poses.keypoints), 1 / len(poses.keypoints))
    interpolate_gaps(positions, max_gap_frames(told.max_gap_seconds, rate))
    positions *= scale
    motion = measure_motion(positions, Skeleton.from_names(poses.keypoints, told.keypoints), rate, scene.body_length * scale)
    low, high = np.array(scene.low) * scale, np.array(scene.high) * scale
    groups = _groups(motion, poses.individuals, seen.T, low, high, told.points)
    columns = list(_pooled(groups) if told.pooled else _named(groups))
    return np.stack([values for _, values in columns], axis=1), tuple(name for name, _ in columns)


def _groups(motion: Motion, who: Sequence[str], seen: Array, low: Array, high: Array, points: bool) -> Iterator[Group]:
    """Yield columns that say the same of different animals or pairs, with whom they are about."""
    n = len(who)
    yield [(who[a], list(animal_columns(motion, a, seen[a], low, high))) for a in range(n)]
    if points:
        yield [(who[a], list(point_columns(motion, a))) for a in range(n)]
    pairs = ordered_pairs(n)
    yield [(f"{who[a]}-{who[b]}", list(pair_columns(motion, a, b))) for a, b in pairs if a < b]
    yield [(f"{who[a]}>{who[b]}", list(directed_columns(motion, a, b))) for a, b in pairs]


def _named(groups: Iterable[Group]) -> Iterator[Column]:
    for group in groups:
        for about, columns in group:
            yield from ((f"{about}/{name}", values) for name, values in columns)


def _pooled(groups: Iterable[Group]) -> Iterator[Column]:
    for group in groups:
        for same in zip(*(columns for _, columns in group), strict=True):
            name, several = same[0][0], [values for _, values in same]
            if len(several) == 1:
                yield name, several[0]
            else:
                yield f"{name}/least", np.fmin.reduce(several)
                yield f"{name}/most", np.fmax.reduce(several)


def _places(poses: Poses, order: Sequence[str | int] | None) -> list[int]:
    """Return the places of the animals asked for."""
    if order is None:
        return list(range(len(poses.individuals)))
    places = []
    for who in order:
        if who not in poses.individuals and who not in range(len(poses.individuals)):
            raise NotFoundError(f"no animal {who!r}; there are: {', '.join(poses.individuals)}")
        places.append(poses.individuals.index(who) if isinstance(who, str) else int(who))
    if len({*places}) < len(places) or not places:
        raise EthobenchError(f"the order names each animal once, and at least one, not {list(order)!r}")
    return places


def _cut(poses: Poses, start: int, stop: int, animals: list[int]) -> Poses:
    """Take some frames of some animals."""
    everyone = animals == list(range(len(poses.individuals)))
    positions, confidence = poses.positions[start:stop], poses.confidence[start:stop]
    if not everyone:
        positions, confidence = positions[:, animals], confidence[:, animals]
    return Poses(positions, confidence, tuple(poses.individuals[a] for a in animals), poses.keypoints, poses.rate)
