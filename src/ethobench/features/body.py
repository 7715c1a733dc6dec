"""Body geometry: ends, center and axis of each animal, body length and arena of a recording, egocentric coordinates.

Points in the image plane are complex numbers, x + iy, with frames on the last axis. A direction is a number of length 1, a rotation is
a product, and the coordinates ahead of an animal and beside it are the real and imaginary part of one product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import MismatchError, Note, NotFoundError, ParameterError
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.keypoints import assign_roles
from ethobench.features.missing_data import MIN_CONFIDENCE, SAMPLE_FRAMES, Array, nan_mean, valid_positions, zeros_are_missing

Points = NDArray[np.complex128]
FallbackChain = tuple[tuple[int, ...], ...]  # groups of keypoints: the mean of the first group that is tracked
EARS, HIPS = ("left_ear", "right_ear"), ("left_hip", "right_hip")
FRONT = (("nose",), ("head",), EARS, ("neck",))
SHOULDER = (("neck",), EARS, ("head",), ("nose",))
REAR = (("tail_base",), HIPS)
TAIL = frozenset({"tail_mid", "tail_tip"})
ARENA_BODY_LENGTHS = 10.0  # size of an arena in body lengths, where no body length can be measured


@dataclass(frozen=True)
class Skeleton:
    """The keypoints of each body part, with the ones that replace them where they are missing.

    Attributes
    ----------
    names : tuple of str
        Of the keypoints.
    roles : mapping of role to int
        The index of each role's keypoint.
    body : tuple of int
        Keypoints of the head and trunk: those with a role other than the tail's, or all keypoints where fewer than two have one.
    front, rear, shoulder, middle, tail : tuple of tuple of int
        Groups of keypoints in order of preference. Where no keypoint has a role at an end of the body, the center replaces it, or
        else the first or last keypoint without a role. `middle` is empty where no keypoint marks the center, `tail` where none is
        beyond the tail base.
    """

    names: tuple[str, ...]
    roles: Mapping[str, int]
    body: tuple[int, ...]
    front: FallbackChain
    rear: FallbackChain
    shoulder: FallbackChain
    middle: FallbackChain
    tail: FallbackChain

    @classmethod
    def from_names(cls, names: Sequence[str], keypoints: Mapping[str, Keypoint] | None = None) -> Skeleton:
        """Create a skeleton from the names of keypoints and, where they are stated, their roles."""
        index = {name: i for i, name in enumerate(names)}
        roles = {role: index[name] for name, role in assign_roles(names, keypoints).items()}
        body = tuple(i for role, i in roles.items() if role not in TAIL)
        front, rear, shoulder, middle = (_chain(roles, groups) for groups in (FRONT, REAR, SHOULDER, (("center",),)))
        others = tuple((i,) for i in range(len(names)) if i not in roles.values())
        if not front and not rear:
            front, rear = others[:1], others[1:][-1:] or middle
        front, rear = front or middle or others[:1], rear or middle or others[-1:]
        if not rear:  # only the head is tracked: from its hindmost keypoint to its tip
            front, rear, shoulder = front[:-1] or front, front[1:][-1:], front[:-1]
        shoulder = shoulder or front
        tail = _chain(roles, (("tail_tip",), ("tail_mid",))) if "tail_base" in roles else ()
        return cls(tuple(names), roles, body if len(body) > 1 else tuple(range(len(names))), front, rear, shoulder, middle, tail)

    @property
    def has_length(self) -> bool:
        """Whether the front and the rear are different keypoints."""
        return bool(self.front and self.rear) and self.front[0] != self.rear[0]

    @property
    def has_bend(self) -> bool:
        """Whether there are three keypoints along the body."""
        used = {self.front[:1], self.rear[:1], self.hinge[:1]} - {()}
        return len(used) == 3

    @property
    def hinge(self) -> FallbackChain:
        """Where the body bends: the neck, or else the center."""
        neck = ((self.roles["neck"],),) if "neck" in self.roles else ()
        return tuple(group for group in (*neck, *self.middle) if group not in self.front[:1] and group not in self.rear[:1])


@dataclass(frozen=True)
class Bodies:
    """Body parts of all animals in all frames, each an array (n_individuals, n_frames), NaN where missing.

    Attributes
    ----------
    skeleton : Skeleton
    points : array of complex (n_individuals, n_keypoints, n_frames)
    center : array of complex
        The keypoint of the center, or the mean of the body's tracked keypoints.
    front, rear : array of complex
        The nose and the tail base, or the keypoints that replace them; finally the center.
    axis : array of complex
        Vector from the rear to the shoulder, or along the tracked part of the body.
    """

    skeleton: Skeleton
    points: Points
    center: Points
    front: Points
    rear: Points
    axis: Points

    def lengths(self) -> Array:
        """Return all distances between the front and rear keypoints that are tracked."""
        if not self.skeleton.has_length:
            return np.zeros(0)
        distance = np.abs(_group_mean(self.points, self.skeleton.front[0]) - _group_mean(self.points, self.skeleton.rear[0])).ravel()
        return np.asarray(distance[~np.isnan(distance)])

    def bend(self, animal: int) -> Array:
        """Return the signed angle, in radians, between the body before the hinge and behind it; the center replaces nothing here."""
        points = self.points[animal : animal + 1]
        front, hinge, rear = (first_tracked(points, chain)[0] for chain in (self.skeleton.front, self.skeleton.hinge, self.skeleton.rear))
        product = (front - hinge) * (hinge - rear).conj()
        return np.asarray(np.where(product == 0, np.nan, np.angle(product)))


def locate_bodies(positions: Array, skeleton: Skeleton) -> Bodies:
    """Compute the body parts of all animals.

    Parameters
    ----------
    positions : array (n_frames, n_individuals, n_keypoints, 2 or 3)
        NaN where a keypoint is missing. Only x and y are used.
    skeleton : Skeleton
    """
    plane = np.ascontiguousarray(positions[..., :2].transpose(1, 2, 0, 3))
    points: Points = plane.view(np.complex128)[..., 0]
    middle = first_tracked(points, skeleton.middle)
    center = np.where(np.isnan(middle), nan_mean(points[:, list(skeleton.body)], axis=1), middle) if np.isnan(middle).any() else middle
    front, rear, shoulder = (first_tracked(points, chain) for chain in (skeleton.front, skeleton.rear, skeleton.shoulder))
    axis = np.where(np.isnan(shoulder), center, shoulder) - rear
    if np.isnan(axis).any():  # the rear is missing: from the center, or else along the head
        axis = np.where(np.isnan(axis), shoulder - middle, axis)
        axis = np.where(np.isnan(axis), front - first_tracked(points, skeleton.front[::-1]), axis)
    axis = np.where(axis == 0, np.nan, axis)
    front, rear = (np.where(np.isnan(end), center, end) for end in (front, rear))
    return Bodies(skeleton, points, center, front, rear, axis)


def first_tracked(points: Points, chain: FallbackChain) -> Points:
    """Return, for each frame, the mean of the first group of keypoints of which any is tracked.

    Parameters
    ----------
    points : array of complex (n_individuals, n_keypoints, n_frames)
    chain : tuple of tuple of int

    Returns
    -------
    array of complex (n_individuals, n_frames)
    """
    result: Points = np.full((len(points), points.shape[2]), np.nan, dtype=np.complex128)
    for group in chain:
        missing = np.isnan(result)
        if not missing.any():
            break
        result = np.where(missing, _group_mean(points, group), result)
    return result


@dataclass(frozen=True)
class Scene:
    """Properties of a recording that do not change over time.

    Attributes
    ----------
    body_length : float
        Median body length of the animals, in the tracker's units.
    low, high : tuple of float
        Corners of the arena, x and y; NaN where nothing was tracked.
    zeros_missing : bool
        Whether keypoints at exactly (0, 0) are missing.
    notes : tuple of Note
        Values that were estimated.
    """

    body_length: float
    low: tuple[float, float]
    high: tuple[float, float]
    zeros_missing: bool
    notes: tuple[Note, ...] = ()


def estimate_scene(
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
        Stated roles; guessed from the names by default.
    arena : (width, height) or (left, top, right, bottom), optional
        In the tracker's units; estimated from the positions of the animals by default.
    min_confidence : float
        Keypoints with a lower confidence are missing.
    """
    notes = []
    zeros_missing = zeros_are_missing(poses.positions)
    step = max(1, len(poses) // SAMPLE_FRAMES)
    sample = Poses(poses.positions[::step], poses.confidence[::step], poses.individuals, poses.keypoints, poses.rate)
    positions = valid_positions(sample, min_confidence, zeros_missing)
    skeleton = Skeleton.from_names(poses.keypoints, keypoints)
    tracked = ~(np.isnan(positions[..., 0]) | np.isnan(positions[..., 1]))
    points = positions[tracked][:, :2]
    if arena is None:
        low, high = np.percentile(points, [0.1, 99.9], axis=0) if len(points) else np.full((2, 2), np.nan)
        notes.append(Note("the walls of the arena were estimated from the positions of the animals"))
    else:
        low, high = _corners(arena)
    lengths = locate_bodies(positions, skeleton).lengths()
    lengths = lengths[lengths > 0]
    body_length = float(np.median(lengths)) if len(lengths) else float(np.max(high - low)) / ARENA_BODY_LENGTHS
    if not len(lengths):
        notes.append(Note("no body length could be measured, so lengths are in tenths of the arena"))
    if not np.isfinite(body_length) or body_length <= 0:
        body_length = 1.0
        notes.append(Note("nothing was tracked" if not len(points) else "the animals have no size and never moved"))
    if zeros_missing and (zeros := (sample.positions[..., :2] == 0).all(axis=3).mean() if len(sample) else 0.0) > 0:
        notes.append(Note(f"{zeros:.1%} of the keypoints are at exactly (0, 0), far from all others, and count as missing"))
    if not skeleton.roles:
        front, rear = skeleton.names[0], skeleton.names[-1]
        notes.append(Note(f"no keypoint has a known name, so {front!r} is used as the front of the body and {rear!r} as the rear"))
    return Scene(body_length, (float(low[0]), float(low[1])), (float(high[0]), float(high[1])), zeros_missing, tuple(notes))


def normalized_coordinates(poses: Poses, width: float, height: float) -> tuple[Array, tuple[str, ...]]:
    """Return coordinates divided by the size of the image, the input of the MABe 2021 baselines.

    Nothing is centered or rotated; missing keypoints stay NaN.

    Parameters
    ----------
    poses : Poses
    width, height : float
        Of the image, in the tracker's units.

    Returns
    -------
    coordinates : array (n_frames, n_individuals * n_keypoints * 2)
        By individual, then keypoint, then x and y.
    names : tuple of str
    """
    if not (width > 0 and height > 0):
        raise ParameterError(f"`width` and `height` must be > 0, got {width!r} and {height!r}")
    if poses.positions.shape[3] != 2:
        raise MismatchError("normalized coordinates need poses with two coordinates; these have three")
    values = np.asarray(poses.positions, dtype=np.float64) / np.array([width, height])
    return values.reshape(len(poses), -1), poses.to_signals().channels


def to_egocentric(poses: Poses, reference: str | None = None, *, keypoints: Mapping[str, Keypoint] | None = None) -> Poses:
    """Translate and rotate each frame so that an animal's center is at the origin and its body points along x.

    The body points from the tail base to the neck, or along the keypoints that replace them. Frames in which its center or direction is
    missing become NaN. A third coordinate is unchanged.

    Parameters
    ----------
    poses : Poses
        Preferably with short gaps interpolated (`interpolate_poses`).
    reference : str, optional
        The animal in whose frame of reference all animals are; each in its own by default.
    keypoints : mapping of name to Keypoint, optional
        Stated roles; guessed from the names by default.
    """
    if reference is not None and reference not in poses.individuals:
        raise NotFoundError(f"no animal {reference!r}; available: {', '.join(poses.individuals)}")
    positions = np.array(poses.positions, dtype=np.float64)
    bodies = locate_bodies(positions, Skeleton.from_names(poses.keypoints, keypoints))
    center, axis = bodies.center, bodies.axis
    if reference is not None:
        animal = poses.individuals.index(reference)
        center, axis = center[animal : animal + 1], axis[animal : animal + 1]
    with np.errstate(invalid="ignore", divide="ignore"):  # a missing animal has no direction
        rotated = (bodies.points - center[:, None]) * (axis.conj() / np.abs(axis))[:, None]
    positions[..., 0], positions[..., 1] = rotated.real.transpose(2, 0, 1), rotated.imag.transpose(2, 0, 1)
    return replace(poses, positions=positions)


def with_subject_first(poses: Poses, subject: str, target: str | None = None) -> Poses:
    """Reorder the animals: the subject first, then the target, then the others in their order.

    Models of directed behavior are trained on one example for each subject, or for each ordered pair.

    Parameters
    ----------
    poses : Poses
    subject : str
    target : str, optional

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> poses = load_dataset("synthetic/pose", individuals=1, seconds=1).recordings[0].signals
    >>> with_subject_first(poses, "intruder").individuals
    ('intruder', 'resident')
    """
    first = [subject] if target is None else [subject, target]
    for name in first:
        if name not in poses.individuals:
            raise NotFoundError(f"no animal {name!r}; available: {', '.join(poses.individuals)}")
    if subject == target:
        raise ParameterError(f"`subject` and `target` must be different animals, got {subject!r} for both")
    names = (*first, *(name for name in poses.individuals if name not in first))
    order = [poses.individuals.index(name) for name in names]
    return replace(poses, positions=poses.positions[:, order], confidence=poses.confidence[:, order], individuals=names)


def _group_mean(points: Points, group: tuple[int, ...]) -> Points:
    return points[:, group[0]] if len(group) == 1 else np.asarray(nan_mean(points[:, list(group)], axis=1))


def _chain(roles: Mapping[str, int], groups: Sequence[tuple[str, ...]]) -> FallbackChain:
    present = (tuple(roles[role] for role in group if role in roles) for group in groups)
    return tuple(group for group in present if group)


def _corners(arena: Sequence[float]) -> tuple[Array, Array]:
    sides = np.asarray(arena, dtype=np.float64)
    if sides.shape == (2,):
        sides = np.concatenate([[0.0, 0.0], sides])
    if sides.shape != (4,) or not np.isfinite(sides).all() or (sides[2:] <= sides[:2]).any():
        raise ParameterError(f"`arena` must be (width, height) or (left, top, right, bottom), got {tuple(arena)}")
    return sides[:2], sides[2:]
