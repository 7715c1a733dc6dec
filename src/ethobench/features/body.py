"""The body of an animal as far as it is seen: front, rear, middle, where it points and how it moves.

Places are complex numbers, x + iy, with frames along the last axis: a direction is a number of length 1, to turn is to multiply,
and what lies ahead of an animal or beside it are the two parts of one product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, MismatchError, Note, NotFoundError
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.keypoints import assign_roles
from ethobench.features.missing_data import MIN_CONFIDENCE, SAMPLE, Array, nan_mean, valid_positions, zeros_are_missing

Places = NDArray[np.complex128]
EARS, HIPS = ("left_ear", "right_ear"), ("left_hip", "right_hip")
FRONT = (("nose",), ("head",), EARS, ("neck",))
SHOULDER = (("neck",), EARS, ("head",), ("nose",))
REAR = (("tail_base",), HIPS)
TAIL = frozenset({"tail_mid", "tail_tip"})
Chain = tuple[tuple[int, ...], ...]  # groups of keypoints: the middle of the first group that is seen


@dataclass(frozen=True)
class Skeleton:
    """Which keypoints make up which part of the body, with what stands in where one is not seen.

    Attributes
    ----------
    names : tuple of str
    roles : mapping of role to the place of its keypoint
    body : tuple of int
        Keypoints of the trunk and head: those with a role but the tail's, or all where fewer than two have one.
    front, rear, shoulder, middle, tail : chains
        In order of preference. Without a role for an end of the body, its centre stands in, or else the first or last keypoint
        without a role. `middle` is empty where no keypoint marks the centre, `tail` where none lies beyond its base.
    """

    names: tuple[str, ...]
    roles: Mapping[str, int]
    body: tuple[int, ...]
    front: Chain
    rear: Chain
    shoulder: Chain
    middle: Chain
    tail: Chain

    @classmethod
    def from_names(cls, names: Sequence[str], keypoints: Mapping[str, Keypoint] | None = None) -> Skeleton:
        """Make a skeleton from the names of keypoints and, where they are stated, their roles."""
        place = {name: i for i, name in enumerate(names)}
        roles = {role: place[name] for name, role in assign_roles(names, keypoints).items()}
        body = tuple(i for role, i in roles.items() if role not in TAIL)
        front, rear, shoulder, middle = (_chain(roles, groups) for groups in (FRONT, REAR, SHOULDER, (("center",),)))
        others = tuple((i,) for i in range(len(names)) if i not in roles.values())
        if not front and not rear:
            front, rear = others[:1], others[1:][-1:] or middle
        front, rear = front or middle or others[:1], rear or middle or others[-1:]
        if not rear:  # a head alone: from its hindmost part to its tip
            front, rear, shoulder = front[:-1] or front, front[1:][-1:], front[:-1]
        shoulder = shoulder or front
        tail = _chain(roles, (("tail_tip",), ("tail_mid",))) if "tail_base" in roles else ()
        return cls(tuple(names), roles, body if len(body) > 1 else tuple(range(len(names))), front, rear, shoulder, middle, tail)

    @property
    def first(self) -> str:
        """The keypoint that order alone would take for the front."""
        return self.names[0]

    @property
    def last(self) -> str:
        """The keypoint that order alone would take for the rear."""
        return self.names[-1]

    @property
    def has_length(self) -> bool:
        """Whether the front and the rear are different keypoints."""
        return bool(self.front and self.rear) and self.front[0] != self.rear[0]

    @property
    def bends(self) -> bool:
        """Whether there are three points along the body."""
        used = {self.front[:1], self.rear[:1], self.hinge[:1]} - {()}
        return len(used) == 3

    @property
    def hinge(self) -> Chain:
        """Where the body bends: the neck, or else its middle."""
        neck = ((self.roles["neck"],),) if "neck" in self.roles else ()
        return tuple(group for group in (*neck, *self.middle) if group not in self.front[:1] and group not in self.rear[:1])


@dataclass(frozen=True)
class Bodies:
    """Places of all animals, each (n_individuals, n_frames), NaN where nothing is known.

    Attributes
    ----------
    points : array (n_individuals, n_keypoints, n_frames)
    center : array
        The centre's keypoint, or the middle of the body's keypoints that are seen.
    front, rear : array
        The nose and the base of the tail, or what stands in for them; at last the centre.
    axis : array
        From the rear to the shoulder, or along what is seen of the body: where it points.
    """

    skeleton: Skeleton
    points: Places
    center: Places
    front: Places
    rear: Places
    axis: Places

    def lengths(self) -> Array:
        """Return all known distances between the skeleton's own front and rear."""
        if not self.skeleton.has_length:
            return np.zeros(0)
        span = np.abs(_middle(self.points, self.skeleton.front[0]) - _middle(self.points, self.skeleton.rear[0])).ravel()
        return np.asarray(span[~np.isnan(span)])

    def bend(self, animal: int) -> Array:
        """Return the angle, with its sign, of the part before the hinge to that behind it; the centre stands in for nothing here."""
        own = self.points[animal : animal + 1]
        front, hinge, rear = (first_tracked(own, chain)[0] for chain in (self.skeleton.front, self.skeleton.hinge, self.skeleton.rear))
        product = (front - hinge) * (hinge - rear).conj()
        return np.asarray(np.where(product == 0, np.nan, np.angle(product)))


def locate_bodies(positions: Array, skeleton: Skeleton) -> Bodies:
    """Find the parts of all bodies.

    Parameters
    ----------
    positions : array (n_frames, n_individuals, n_keypoints, 2 or 3)
        NaN where a keypoint is missing. Only x and y are used.
    skeleton : Skeleton
    """
    plane = np.ascontiguousarray(positions[..., :2].transpose(1, 2, 0, 3))
    points: Places = plane.view(np.complex128)[..., 0]
    middle = first_tracked(points, skeleton.middle)
    center = np.where(np.isnan(middle), nan_mean(points[:, list(skeleton.body)], axis=1), middle) if np.isnan(middle).any() else middle
    front, rear, shoulder = (first_tracked(points, chain) for chain in (skeleton.front, skeleton.rear, skeleton.shoulder))
    axis = np.where(np.isnan(shoulder), center, shoulder) - rear
    if np.isnan(axis).any():  # the rear is not seen: from the middle, or else along the head alone
        axis = np.where(np.isnan(axis), shoulder - middle, axis)
        axis = np.where(np.isnan(axis), front - first_tracked(points, skeleton.front[::-1]), axis)
    axis = np.where(axis == 0, np.nan, axis)
    front, rear = (np.where(np.isnan(end), center, end) for end in (front, rear))
    return Bodies(skeleton, points, center, front, rear, axis)


def first_tracked(points: NDArray[np.complex128], chain: Chain) -> Places:
    """Return, frame by frame, the middle of the first group of keypoints of which any is seen."""
    found: Places = np.full((len(points), points.shape[2]), np.nan, dtype=np.complex128)
    for group in chain:
        unseen = np.isnan(found)
        if not unseen.any():
            break
        found = np.where(unseen, _middle(points, group), found)
    return found


def _middle(points: Places, group: tuple[int, ...]) -> Places:
    return points[:, group[0]] if len(group) == 1 else np.asarray(nan_mean(points[:, list(group)], axis=1))


def _chain(roles: Mapping[str, int], groups: Sequence[tuple[str, ...]]) -> Chain:
    there = (tuple(roles[role] for role in group if role in roles) for group in groups)
    return tuple(group for group in there if group)


BODIES_ACROSS = 10.0  # how many body lengths an arena has where no body length is known


@dataclass(frozen=True)
class Scene:
    """What stays the same throughout a recording.

    Attributes
    ----------
    body_length : float
        The median length of the animals' bodies, in the tracker's units.
    low, high : tuple of float
        Corners of the arena, x and y; NaN where nothing was tracked.
    zeros_missing : bool
        Whether keypoints at exactly (0, 0) were not found.
    notes : tuple of Note
        What was estimated.
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
    positions = valid_positions(sample, min_confidence, zeros_missing)
    skeleton = Skeleton.from_names(poses.keypoints, keypoints)
    points = positions[..., :2].reshape(-1, 2)
    points = points[~np.isnan(points).any(axis=1)]
    if arena is None:
        low, high = np.percentile(points, [0.1, 99.9], axis=0) if len(points) else np.full((2, 2), np.nan)
        notes.append(Note("the walls were estimated from where the animals were"))
    else:
        low, high = _corners(arena)
    lengths = locate_bodies(positions, skeleton).lengths()
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


def normalized_coordinates(poses: Poses, width: float, height: float) -> tuple[Array, tuple[str, ...]]:
    """Return coordinates as shares of the image's size, as the MABe 2021 baselines take them.

    Nothing is centred or turned; missing keypoints stay NaN.

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
        raise EthobenchError(f"an image has a width and a height above 0, not {width!r} and {height!r}")
    if poses.positions.shape[3] != 2:
        raise MismatchError("only poses with two coordinates lie in an image; these have three")
    values = np.asarray(poses.positions, dtype=np.float64) / np.array([width, height])
    return values.reshape(len(poses), -1), poses.to_signals().channels


def to_egocentric(poses: Poses, reference: str | None = None, *, keypoints: Mapping[str, Keypoint] | None = None) -> Poses:
    """Move and turn each frame so that an animal's centre is at the origin and its body points along x.

    The body points from the base of the tail to the neck, or along what stands in for them. Frames in which its centre or
    direction is unknown become NaN. A third coordinate stays as it is.

    Parameters
    ----------
    poses : Poses
        With gaps bridged, best of all.
    reference : str, optional
        The animal in whose frame all are seen; each in its own unless given.
    keypoints : mapping of name to Keypoint, optional
        Stated roles; guessed from the names unless given.
    """
    if reference is not None and reference not in poses.individuals:
        raise NotFoundError(f"no animal {reference!r}; there are: {', '.join(poses.individuals)}")
    positions = np.array(poses.positions, dtype=np.float64)
    bodies = locate_bodies(positions, Skeleton.from_names(poses.keypoints, keypoints))
    center, axis = bodies.center, bodies.axis
    if reference is not None:
        place = poses.individuals.index(reference)
        center, axis = center[place : place + 1], axis[place : place + 1]
    with np.errstate(invalid="ignore", divide="ignore"):  # an animal that is missing has no direction
        turned = (bodies.points - center[:, None]) * (axis.conj() / np.abs(axis))[:, None]
    positions[..., 0], positions[..., 1] = turned.real.transpose(2, 0, 1), turned.imag.transpose(2, 0, 1)
    return replace(poses, positions=positions)


def with_subject_first(poses: Poses, subject: str, target: str | None = None) -> Poses:
    """Put one animal first and, where it acts towards another, that one second; the others follow in their order.

    Models of directed behavior see one example for each subject, or for each ordered pair.

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
            raise NotFoundError(f"no animal {name!r}; there are: {', '.join(poses.individuals)}")
    if subject == target:
        raise EthobenchError(f"subject and target are two animals, not {subject!r} twice")
    names = (*first, *(name for name in poses.individuals if name not in first))
    places = [poses.individuals.index(name) for name in names]
    return replace(poses, positions=poses.positions[:, places], confidence=poses.confidence[:, places], individuals=names)
