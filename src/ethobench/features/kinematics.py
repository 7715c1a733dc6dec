"""Feature columns of some frames: of each animal, of each two animals, and of each keypoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ethobench.features.body import Bodies, Places, Skeleton, first_tracked, locate_bodies
from ethobench.features.missing_data import Array, nan_mean

STEP = 1 / 15  # seconds over which changes are measured, to both sides
CONTACT = 0.25  # body lengths between the nearest keypoints of animals that touch
MOVING = 0.5  # body lengths per second from which the course tells where an animal points, if its body does not
Column = tuple[str, Array]
Number = TypeVar("Number", np.float64, np.complex128)


def step_frames(rate: float) -> int:
    """Return the frames over which changes are measured, to both sides."""
    return max(1, round(STEP * rate))


@dataclass(frozen=True)
class Motion:
    """How all animals are placed and how they move; arrays are (n_individuals, n_frames).

    Attributes
    ----------
    bodies : Bodies
    heading : array of complex
        DirectedExamples of length 1.
    velocity : array of complex
        Mean of the body's keypoints that are seen before and after, so that one that comes or goes makes no jump.
    point_velocity : array of complex (n_individuals, n_keypoints, n_frames)
    size : float
        The length of a body in the units of the places.
    step : int
    rate : float
    """

    bodies: Bodies
    heading: Places
    velocity: Places
    point_velocity: Places
    size: float
    step: int
    rate: float


def measure_motion(positions: Array, skeleton: Skeleton, rate: float, size: float) -> Motion:
    """Find bodies and velocities in positions whose gaps are bridged."""
    bodies, step = locate_bodies(positions, skeleton), step_frames(rate)
    point_velocity: Places = slope(bodies.points, step, rate)
    velocity: Places = nan_mean(point_velocity[:, list(skeleton.body)], axis=1)
    speed = length(velocity)
    with np.errstate(invalid="ignore", divide="ignore"):
        course = np.where(speed > MOVING * size, velocity / speed, np.nan)
        heading = bodies.axis / length(bodies.axis)
    heading = np.where(np.isnan(heading), course, heading)
    return Motion(bodies, np.asarray(heading), velocity, point_velocity, size, step, rate)


def animal_columns(motion: Motion, animal: int, seen: Array, low: Array, high: Array) -> Iterator[Column]:
    """Yield the columns of one animal."""
    bodies, skeleton = motion.bodies, motion.bodies.skeleton
    heading, velocity = motion.heading[animal], motion.velocity[animal]
    along = velocity * heading.conj()
    speed = length(velocity)
    yield "speed", speed
    yield "forward_speed", along.real
    yield "sideways_speed", np.abs(along.imag)
    yield "acceleration", slope(speed, motion.step, motion.rate)
    yield "turning", np.abs(turning(heading, motion.step, motion.rate))
    for name, chain in (("nose_speed", skeleton.front), ("tail_base_speed", skeleton.rear)):
        own = first_tracked(motion.point_velocity[animal : animal + 1], chain)[0]
        yield name, length(np.where(np.isnan(own), velocity, own))
    if skeleton.has_length:
        ends = [first_tracked(bodies.points[animal : animal + 1], chain[:1])[0] for chain in (skeleton.front, skeleton.rear)]
        yield "length", length(ends[0] - ends[1])
    if skeleton.bends:
        yield "bend", np.abs(bodies.bend(animal))
    if len(skeleton.body) > 2:
        area, roundness = _ellipse(bodies.points[animal, list(skeleton.body)])
        yield "area", area
        yield "roundness", roundness
    if skeleton.tail:
        tip = first_tracked(bodies.points[animal : animal + 1], skeleton.tail)[0]
        yield "tail_angle", angle_between(bodies.points[animal, skeleton.roles["tail_base"]] - tip, heading)
    center = bodies.center[animal]
    walls = (center.real - low[0], high[0] - center.real, center.imag - low[1], high[1] - center.imag)
    yield "wall_distance", np.minimum(np.minimum(walls[0], walls[1]), np.minimum(walls[2], walls[3]))
    yield "seen", seen


def pair_columns(motion: Motion, one: int, other: int) -> Iterator[Column]:
    """Yield the columns of two animals that do not depend on which is which."""
    bodies, step, rate = motion.bodies, motion.step, motion.rate
    distance = length(bodies.center[other] - bodies.center[one])
    noses = length(bodies.front[other] - bodies.front[one])
    nearest = _nearest(bodies.points[one], bodies.points[other])
    for name, values in (("distance", distance), ("nose_nose", noses), ("nearest", nearest)):
        yield name, values
        yield f"{name}_change", slope(values, step, rate)
    yield "contact", np.where(np.isnan(nearest), np.nan, nearest < CONTACT * motion.size)
    yield "relative_heading", angle_between(motion.heading[one], motion.heading[other])
    yield "relative_speed", length(motion.velocity[one] - motion.velocity[other])


def directed_columns(motion: Motion, one: int, other: int) -> Iterator[Column]:
    """Yield the columns of one animal towards another."""
    bodies, step, rate, heading = motion.bodies, motion.step, motion.rate, motion.heading[one]
    nose, center = bodies.front[one], bodies.center[one]
    for name, values in (
        ("nose_tail_base", length(bodies.rear[other] - nose)),
        ("nose_center", length(bodies.center[other] - nose)),
    ):
        yield name, values
        yield f"{name}_change", slope(values, step, rate)
    yield "nose_nearest", _nearest(nose[None], bodies.points[other])
    apart = bodies.center[other] - center
    yield "facing", angle_between(apart, heading)
    with np.errstate(invalid="ignore", divide="ignore"):
        yield "approach", (motion.velocity[one] * apart.conj()).real / length(apart)
    for name, place in (("center", bodies.center), ("nose", bodies.front), ("tail_base", bodies.rear)):
        there = (place[other] - center) * heading.conj()
        yield f"{name}_ahead", there.real
        yield f"{name}_aside", np.abs(there.imag)


def point_columns(motion: Motion, animal: int) -> Iterator[Column]:
    """Yield the columns of each keypoint of one animal: where it is as the animal sees it, and how fast it moves."""
    bodies, back = motion.bodies, motion.heading[animal].conj()
    for k, name in enumerate(bodies.skeleton.names):
        there = (bodies.points[animal, k] - bodies.center[animal]) * back
        yield f"{name}/ahead", there.real
        yield f"{name}/aside", np.abs(there.imag)
        yield f"{name}/speed", length(motion.point_velocity[animal, k])


def ordered_pairs(n: int) -> list[tuple[int, int]]:
    """List who can do something to whom."""
    return list(permutations(range(n), 2))


def slope(values: NDArray[Number], step: int, rate: float) -> NDArray[Number]:
    """Return the change per second along the last axis, over `step` frames to both sides, or to the one that is known."""
    return _both_sides(values[..., step:] - values[..., :-step], values.shape, step, rate)


def turning(heading: Places, step: int, rate: float) -> Array:
    """Return the change of direction in radians per second, measured as `slope` does."""
    return _both_sides(np.angle(heading[..., step:] * heading[..., :-step].conj()), heading.shape, step, rate)


def angle_between(one: Places, other: Places) -> Array:
    """Return the angle between two directions, 0 to pi; NaN where one has no length."""
    product = one * other.conj()
    return np.asarray(np.where(product == 0, np.nan, np.abs(np.arctan2(product.imag, product.real))))


def length(places: Places) -> Array:
    """Return the lengths of complex numbers; several times faster than `numpy.abs`, which guards against overflow."""
    return np.asarray(np.sqrt(places.real * places.real + places.imag * places.imag))


def _both_sides(change: NDArray[Number], shape: tuple[int, ...], step: int, rate: float) -> NDArray[Number]:
    later, earlier = (np.full(shape, np.nan, dtype=change.dtype) for _ in range(2))
    later[..., : max(shape[-1] - step, 0)] = change
    earlier[..., step:] = change
    later *= rate / step
    earlier *= rate / step
    both = (later + earlier) / 2
    unknown = np.isnan(both)
    return np.asarray(np.where(unknown, np.where(np.isnan(later), earlier, later), both))


def _nearest(one: Places, other: Places) -> Array:
    """Return the distance of the two keypoints that are closest, NaN where none is seen on one side."""
    squares = [np.fmin.reduce((a.real - other.real) ** 2 + (a.imag - other.imag) ** 2, axis=0) for a in one]
    return np.asarray(np.sqrt(np.fmin.reduce(squares, axis=0)))


def _ellipse(points: Places) -> tuple[Array, Array]:
    """Return the area of the ellipse that has the keypoints' spread, and its short axis over its long one; three must be seen."""
    known = ~np.isnan(points)
    count = known.sum(axis=0)
    count = np.where(count > 2, count, np.nan)
    offset = np.where(known, points - nan_mean(points, axis=0), 0)
    x, y = offset.real, offset.imag
    xx, yy, xy = (x * x).sum(axis=0) / count, (y * y).sum(axis=0) / count, (x * y).sum(axis=0) / count
    half, root = (xx + yy) / 2, np.sqrt(((xx - yy) / 2) ** 2 + xy**2)
    large, small = half + root, np.maximum(half - root, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(4 * np.pi * np.sqrt(large * small)), np.asarray(np.sqrt(small / large))
