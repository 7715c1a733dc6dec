"""What stays the same throughout a recording: how long the animals are, where the walls are, what zeros mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ethobench.core.errors import EthobenchError, Note
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.body import Skeleton, place_bodies
from ethobench.features.gaps import MIN_CONFIDENCE, SAMPLE, Array, known_positions, zeros_are_missing

BODIES_ACROSS = 10.0  # how many body lengths an arena has where no body length is known


@dataclass(frozen=True)
class Scene:
    """What stays the same throughout a recording.

    Attributes
    ----------
    unit : float
        The median length of the animals' bodies, in the tracker's units.
    low, high : tuple of float
        Corners of the arena, x and y; NaN where nothing was tracked.
    zeros_missing : bool
        Whether keypoints at exactly (0, 0) were not found.
    notes : tuple of Note
        What was estimated.
    """

    unit: float
    low: tuple[float, float]
    high: tuple[float, float]
    zeros_missing: bool
    notes: tuple[Note, ...] = ()


def scene_of(
    poses: Poses,
    *,
    keypoints: Mapping[str, Keypoint] | None = None,
    arena: Sequence[float] | None = None,
    min_confidence: float = MIN_CONFIDENCE,
) -> Scene:
    """Measure a recording, so that slices of it can be treated alike.

    Parameters
    ----------
    poses : Poses
    keypoints : mapping of name to Keypoint, optional
        Stated roles; guessed from the names unless given.
    arena : (width, height) or (left, top, right, bottom), optional
        In the tracker's units; estimated from where the animals were unless given.
    min_confidence : float
        Keypoints below it are not used.
    """
    notes = []
    zeros_missing = zeros_are_missing(poses.positions)
    every = max(1, len(poses) // SAMPLE)
    sample = Poses(poses.positions[::every], poses.confidence[::every], poses.individuals, poses.keypoints, poses.rate)
    positions = known_positions(sample, min_confidence, zeros_missing)
    skeleton = Skeleton.of(poses.keypoints, keypoints)
    points = positions[..., :2].reshape(-1, 2)
    points = points[~np.isnan(points).any(axis=1)]
    if arena is None:
        low, high = np.percentile(points, [0.1, 99.9], axis=0) if len(points) else np.full((2, 2), np.nan)
        notes.append(Note("the walls were estimated from where the animals were"))
    else:
        low, high = _corners(arena)
    lengths = place_bodies(positions, skeleton).lengths()
    lengths = lengths[lengths > 0]
    unit = float(np.median(lengths)) if len(lengths) else float(np.max(high - low)) / BODIES_ACROSS
    if not len(lengths):
        notes.append(Note("no body length is known, so lengths are in tenths of the arena"))
    if not np.isfinite(unit) or unit <= 0:
        unit = 1.0
        notes.append(Note("nothing was tracked" if not len(points) else "the animals have no size and never moved"))
    if zeros_missing and (zeros := (sample.positions[..., :2] == 0).all(axis=3).mean() if len(sample) else 0.0) > 0:
        notes.append(Note(f"{zeros:.1%} of the keypoints lie at exactly (0, 0), far from all others, and count as missing"))
    if not skeleton.roles:
        notes.append(
            Note(f"no keypoint name tells its role, so {skeleton.first!r} is taken for the front and {skeleton.last!r} for the rear")
        )
    return Scene(unit, (float(low[0]), float(low[1])), (float(high[0]), float(high[1])), zeros_missing, tuple(notes))


def _corners(arena: Sequence[float]) -> tuple[Array, Array]:
    sides = np.asarray(arena, dtype=np.float64)
    if sides.shape == (2,):
        sides = np.concatenate([[0.0, 0.0], sides])
    if sides.shape != (4,) or not np.isfinite(sides).all() or (sides[2:] <= sides[:2]).any():
        raise EthobenchError(f"an arena is (width, height) or (left, top, right, bottom), not {tuple(arena)}")
    return sides[:2], sides[2:]
