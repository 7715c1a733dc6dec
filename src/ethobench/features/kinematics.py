"""Kinematics: velocities, headings and angles of animals, as feature columns of each animal, pair and keypoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ethobench.features.body import Bodies, Points, Skeleton, first_tracked, locate_bodies
from ethobench.features.missing_data import Array, nan_mean

STEP_SECONDS = 1 / 15  # over which changes are measured, to both sides
CONTACT_DISTANCE = 0.25  # body lengths between the nearest keypoints of animals in contact
MIN_COURSE_SPEED = 0.5  # body lengths per second, above which the course replaces a missing body axis as heading
Column = tuple[str, Array]
Number = TypeVar("Number", np.float64, np.complex128)


def step_frames(rate: float) -> int:
    """Return the number of frames over which changes are measured, to both sides."""
    return max(1, round(STEP_SECONDS * rate))


@dataclass(frozen=True)
class Motion:
    """Positions and movement of all animals; arrays are (n_individuals, n_frames).

    Attributes
    ----------
    bodies : Bodies
    heading : array of complex
        Unit vectors.
    velocity : array of complex
        Mean velocity of the body's keypoints that are tracked before and after, so that keypoints that appear or vanish cause no jump.
    point_velocity : array of complex (n_individuals, n_keypoints, n_frames)
    body_length : float
        In the units of the positions.
    step : int
        Frames over which changes are measured.
    rate : float
        Frames per second.
    """

    bodies: Bodies
    heading: Points
    velocity: Points
    point_velocity: Points
    body_length: float
    step: int
    rate: float


def compute_motion(positions: Array, skeleton: Skeleton, rate: float, body_length: float) -> Motion:
    """Compute bodies, headings and velocities from positions with interpolated gaps."""
    bodies, step = locate_bodies(positions, skeleton), step_frames(rate)
    point_velocity: Points = time_derivative(bodies.points, step, rate)
    velocity: Points = nan_mean(point_velocity[:, list(skeleton.body)], axis=1)
    speed = magnitude(velocity)
    with np.errstate(invalid="ignore", divide="ignore"):
        course = np.where(speed > MIN_COURSE_SPEED * body_length, velocity / speed, np.nan)
        heading = bodies.axis / magnitude(bodies.axis)
    heading = np.where(np.isnan(heading), course, heading)
    return Motion(bodies, np.asarray(heading), velocity, point_velocity, body_length, step, rate)


def animal_columns(motion: Motion, animal: int, tracked: Array, low: Array, high: Array) -> Iterator[Column]:
    """Yield the features of one animal.

    Parameters
    ----------
    motion : Motion
    animal : int
    tracked : array (n_frames,)
        Share of the animal's keypoints that are tracked.
    low, high : array (2,)
        Corners of the arena.
    """
    bodies, skeleton = motion.bodies, motion.bodies.skeleton
    heading, velocity = motion.heading[animal], motion.velocity[animal]
    relative_velocity = velocity * heading.conj()
    speed = magnitude(velocity)
    yield "speed", speed
    yield "forward_speed", relative_velocity.real
    yield "sideways_speed", np.abs(relative_velocity.imag)
    yield "acceleration", time_derivative(speed, motion.step, motion.rate)
    yield "turning", np.abs(angular_velocity(heading, motion.step, motion.rate))
    for name, chain in (("nose_speed", skeleton.front), ("tail_base_speed", skeleton.rear)):
        end_velocity = first_tracked(motion.point_velocity[animal : animal + 1], chain)[0]
        yield name, magnitude(np.where(np.isnan(end_velocity), velocity, end_velocity))
    if skeleton.has_length:
        front, rear = (first_tracked(bodies.points[animal : animal + 1], chain[:1])[0] for chain in (skeleton.front, skeleton.rear))
        yield "length", magnitude(front - rear)
    if skeleton.has_bend:
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
    yield "seen", tracked


def pair_columns(motion: Motion, first: int, second: int) -> Iterator[Column]:
    """Yield the features of two animals that do not depend on their order."""
    bodies, step, rate = motion.bodies, motion.step, motion.rate
    distance = magnitude(bodies.center[second] - bodies.center[first])
    nose_distance = magnitude(bodies.front[second] - bodies.front[first])
    nearest = _nearest_distance(bodies.points[first], bodies.points[second])
    for name, values in (("distance", distance), ("nose_nose", nose_distance), ("nearest", nearest)):
        yield name, values
        yield f"{name}_change", time_derivative(values, step, rate)
    yield "contact", np.where(np.isnan(nearest), np.nan, nearest < CONTACT_DISTANCE * motion.body_length)
    yield "relative_heading", angle_between(motion.heading[first], motion.heading[second])
    yield "relative_speed", magnitude(motion.velocity[first] - motion.velocity[second])


def directed_columns(motion: Motion, subject: int, target: int) -> Iterator[Column]:
    """Yield the features of one animal towards another."""
    bodies, step, rate, heading = motion.bodies, motion.step, motion.rate, motion.heading[subject]
    nose, center = bodies.front[subject], bodies.center[subject]
    for name, values in (
        ("nose_tail_base", magnitude(bodies.rear[target] - nose)),
        ("nose_center", magnitude(bodies.center[target] - nose)),
    ):
        yield name, values
        yield f"{name}_change", time_derivative(values, step, rate)
    yield "nose_nearest", _nearest_distance(nose[None], bodies.points[target])
    to_target = bodies.center[target] - center
    yield "facing", angle_between(to_target, heading)
    with np.errstate(invalid="ignore", divide="ignore"):
        yield "approach", (motion.velocity[subject] * to_target.conj()).real / magnitude(to_target)
    for name, points in (("center", bodies.center), ("nose", bodies.front), ("tail_base", bodies.rear)):
        egocentric = (points[target] - center) * heading.conj()
        yield f"{name}_ahead", egocentric.real
        yield f"{name}_aside", np.abs(egocentric.imag)


def point_columns(motion: Motion, animal: int) -> Iterator[Column]:
    """Yield the features of each keypoint of one animal: egocentric position and speed."""
    bodies, rotation = motion.bodies, motion.heading[animal].conj()
    for k, name in enumerate(bodies.skeleton.names):
        egocentric = (bodies.points[animal, k] - bodies.center[animal]) * rotation
        yield f"{name}/ahead", egocentric.real
        yield f"{name}/aside", np.abs(egocentric.imag)
        yield f"{name}/speed", magnitude(motion.point_velocity[animal, k])


def ordered_pairs(n: int) -> list[tuple[int, int]]:
    """Return all pairs (subject, target) of `n` animals."""
    return list(permutations(range(n), 2))


def time_derivative(values: NDArray[Number], step: int, rate: float) -> NDArray[Number]:
    """Return the change per second along the last axis, over `step` frames to both sides, or to one where the other is missing."""
    return _central_difference(values[..., step:] - values[..., :-step], values.shape, step, rate)


def angular_velocity(heading: Points, step: int, rate: float) -> Array:
    """Return the change of direction in radians per second, measured as in `time_derivative`."""
    return _central_difference(np.angle(heading[..., step:] * heading[..., :-step].conj()), heading.shape, step, rate)


def angle_between(first: Points, second: Points) -> Array:
    """Return the angle between two directions, 0 to pi; NaN where one has length 0."""
    product = first * second.conj()
    return np.asarray(np.where(product == 0, np.nan, np.abs(np.arctan2(product.imag, product.real))))


def magnitude(points: Points) -> Array:
    """Return the absolute values of complex numbers, several times faster than `numpy.abs`, which guards against overflow."""
    return np.asarray(np.sqrt(points.real * points.real + points.imag * points.imag))


def _central_difference(change: NDArray[Number], shape: tuple[int, ...], step: int, rate: float) -> NDArray[Number]:
    later, earlier = (np.full(shape, np.nan, dtype=change.dtype) for _ in range(2))
    later[..., : max(shape[-1] - step, 0)] = change
    earlier[..., step:] = change
    later *= rate / step
    earlier *= rate / step
    both = (later + earlier) / 2
    return np.asarray(np.where(np.isnan(both), np.where(np.isnan(later), earlier, later), both))


def _nearest_distance(first: Points, second: Points) -> Array:
    """Return the distance between the two nearest keypoints of two animals, NaN where one animal has none."""
    squares = [np.fmin.reduce((a.real - second.real) ** 2 + (a.imag - second.imag) ** 2, axis=0) for a in first]
    return np.asarray(np.sqrt(np.fmin.reduce(squares, axis=0)))


def _ellipse(points: Points) -> tuple[Array, Array]:
    """Return the area of the ellipse with the covariance of the keypoints, and the ratio of its axes; needs three keypoints."""
    tracked = ~np.isnan(points)
    count = tracked.sum(axis=0)
    count = np.where(count > 2, count, np.nan)
    offset = np.where(tracked, points - nan_mean(points, axis=0), 0)
    x, y = offset.real, offset.imag
    xx, yy, xy = (x * x).sum(axis=0) / count, (y * y).sum(axis=0) / count, (x * y).sum(axis=0) / count
    half, root = (xx + yy) / 2, np.sqrt(((xx - yy) / 2) ** 2 + xy**2)
    large, small = half + root, np.maximum(half - root, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(4 * np.pi * np.sqrt(large * small)), np.asarray(np.sqrt(small / large))
