"""The body of an animal as far as it is seen: front, rear, middle, where it points and how it moves.

Places are complex numbers, x + iy, with frames along the last axis: a direction is a number of length 1, to turn is to multiply,
and what lies ahead of an animal or beside it are the two parts of one product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ethobench.core.signals import Keypoint
from ethobench.features.gaps import Array, mean_known
from ethobench.features.pose_roles import roles_of

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
    def of(cls, names: Sequence[str], keypoints: Mapping[str, Keypoint] | None = None) -> Skeleton:
        """Make a skeleton from the names of keypoints and, where they are stated, their roles."""
        place = {name: i for i, name in enumerate(names)}
        roles = {role: place[name] for name, role in roles_of(names, keypoints).items()}
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
        front, hinge, rear = (first_seen(own, chain)[0] for chain in (self.skeleton.front, self.skeleton.hinge, self.skeleton.rear))
        product = (front - hinge) * (hinge - rear).conj()
        return np.asarray(np.where(product == 0, np.nan, np.angle(product)))


def place_bodies(positions: Array, skeleton: Skeleton) -> Bodies:
    """Find the parts of all bodies.

    Parameters
    ----------
    positions : array (n_frames, n_individuals, n_keypoints, 2 or 3)
        NaN where a keypoint is missing. Only x and y are used.
    skeleton : Skeleton
    """
    plane = np.ascontiguousarray(positions[..., :2].transpose(1, 2, 0, 3))
    points: Places = plane.view(np.complex128)[..., 0]
    middle = first_seen(points, skeleton.middle)
    center = np.where(np.isnan(middle), mean_known(points[:, list(skeleton.body)], axis=1), middle) if np.isnan(middle).any() else middle
    front, rear, shoulder = (first_seen(points, chain) for chain in (skeleton.front, skeleton.rear, skeleton.shoulder))
    axis = np.where(np.isnan(shoulder), center, shoulder) - rear
    if np.isnan(axis).any():  # the rear is not seen: from the middle, or else along the head alone
        axis = np.where(np.isnan(axis), shoulder - middle, axis)
        axis = np.where(np.isnan(axis), front - first_seen(points, skeleton.front[::-1]), axis)
    axis = np.where(axis == 0, np.nan, axis)
    front, rear = (np.where(np.isnan(end), center, end) for end in (front, rear))
    return Bodies(skeleton, points, center, front, rear, axis)


def first_seen(points: NDArray[np.complex128], chain: Chain) -> Places:
    """Return, frame by frame, the middle of the first group of keypoints of which any is seen."""
    found: Places = np.full((len(points), points.shape[2]), np.nan, dtype=np.complex128)
    for group in chain:
        unseen = np.isnan(found)
        if not unseen.any():
            break
        found = np.where(unseen, _middle(points, group), found)
    return found


def _middle(points: Places, group: tuple[int, ...]) -> Places:
    return points[:, group[0]] if len(group) == 1 else np.asarray(mean_known(points[:, list(group)], axis=1))


def _chain(roles: Mapping[str, int], groups: Sequence[tuple[str, ...]]) -> Chain:
    there = (tuple(roles[role] for role in group if role in roles) for group in groups)
    return tuple(group for group in there if group)
