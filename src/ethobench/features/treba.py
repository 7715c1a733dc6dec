"""Programmed attributes: what an expert would note of two animals in a frame, as targets to learn from unlabelled poses.

The ten attributes and their thresholds are those of task programming on CalMS21 (TREBA): pixels of a 1024 x 570 image and
changes from frame to frame at 30 Hz.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import MismatchError
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.body import Skeleton, locate_bodies
from ethobench.features.missing_data import Array, resolve_rate

RATE = 30.0
ATTRIBUTES: dict[str, tuple[float, float]] = {
    "speed": (10, 20),
    "social_angle": (0.5, 1.5),
    "nose_movement": (5, 8),
    "nose_nose": (60, 200),
    "nose_tail": (60, 200),
    "head_body_angle": (-0.5, 0.5),
}
PER_FRAME, LENGTHS = frozenset({"speed", "nose_movement"}), frozenset({"speed", "nose_movement", "nose_nose", "nose_tail"})
UNKNOWN = -1


class ProgrammedAttributes(NamedTuple):
    """Ten attributes of every frame.

    Attributes
    ----------
    values : array (n_frames, 10)
        NaN where a keypoint that is needed is missing.
    levels : array of int8 (n_frames, 10)
        0 below the first threshold, 1 between them, 2 above the second; -1 where unknown.
    names : tuple of str
    """

    values: Array
    levels: NDArray[np.int8]
    names: tuple[str, ...]


def programmed_attributes(
    poses: Poses, rate: float | None = None, *, pixels: float = 1.0, keypoints: Mapping[str, Keypoint] | None = None
) -> ProgrammedAttributes:
    """Compute the ten attributes for the first two animals.

    Speeds are of the centre and of the nose, from the frame before; the social angle lies between where an animal points and
    where the other is; the nose-tail distance goes from the first animal's nose to the base of the second one's tail; the angle
    of the head to the body, at the neck, has a sign. The attributes of a trajectory are those of its middle frame.

    Parameters
    ----------
    poses : Poses
        With gaps bridged, best of all.
    rate : float, optional
        Frames per second, where the poses do not tell; changes are brought to 30 Hz.
    pixels : float
        Pixels of CalMS21 for each unit of the poses, where they are not such pixels: 95 over the length of a mouse, about.
    keypoints : mapping of name to Keypoint, optional
        Stated roles; guessed from the names unless given.
    """
    if len(poses.individuals) < 2:
        raise MismatchError(f"programmed attributes need two animals; these poses have {len(poses.individuals)}")
    per_second = resolve_rate(poses, rate) / RATE
    bodies = locate_bodies(np.asarray(poses.positions[:, :2], dtype=np.float64), Skeleton.from_names(poses.keypoints, keypoints))
    columns: dict[str, Array] = {}
    for a, b in ((0, 1), (1, 0)):
        who = poses.individuals[a]
        columns[f"{who}/speed"] = _movement(bodies.center[a])
        columns[f"{who}/social_angle"] = np.abs(np.angle((bodies.center[b] - bodies.center[a]) * bodies.axis[a].conj()))
        columns[f"{who}/nose_movement"] = _movement(bodies.front[a])
        columns[f"{who}/head_body_angle"] = bodies.bend(a)
    columns["nose_nose"] = np.abs(bodies.front[1] - bodies.front[0])
    columns["nose_tail"] = np.abs(bodies.rear[1] - bodies.front[0])
    values, levels = [], []
    for name, column in columns.items():
        kind = name.rpartition("/")[2]
        factor = (pixels if kind in LENGTHS else 1.0) * (per_second if kind in PER_FRAME else 1.0)
        values.append(column * factor)
        low, high = ATTRIBUTES[kind]
        levels.append(np.where(np.isnan(column), UNKNOWN, (values[-1] > low).astype(np.int8) + (values[-1] > high)))
    return ProgrammedAttributes(np.stack(values, axis=1), np.stack(levels, axis=1).astype(np.int8), tuple(columns))


def _movement(places: NDArray[np.complex128]) -> Array:
    """Return the way from the frame before; the first frame has that of the second."""
    way = np.abs(np.diff(places))
    return np.concatenate([way[:1], way]) if len(way) else np.full(len(places), np.nan)
