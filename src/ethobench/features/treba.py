"""Programmed attributes of TREBA: quantities that an expert chooses, as targets for pre-training on unlabeled poses.

The ten attributes and their thresholds are those of task programming on CalMS21: pixels of a 1024 x 570 image, and changes from frame to
frame at 30 Hz.

References
----------
J. J. Sun, A. Kennedy, E. Zhan, D. J. Anderson, Y. Yue, P. Perona, "Task programming: learning data efficient behavior
representations", CVPR 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import MismatchError
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.body import Points, Skeleton, locate_bodies
from ethobench.features.missing_data import Array, resolve_rate

RATE = 30.0
THRESHOLDS: dict[str, tuple[float, float]] = {
    "speed": (10, 20),
    "social_angle": (0.5, 1.5),
    "nose_movement": (5, 8),
    "nose_nose": (60, 200),
    "nose_tail": (60, 200),
    "head_body_angle": (-0.5, 0.5),
}
PER_FRAME, LENGTHS = frozenset({"speed", "nose_movement"}), frozenset({"speed", "nose_movement", "nose_nose", "nose_tail"})
MISSING = -1


class ProgrammedAttributes(NamedTuple):
    """Ten attributes of every frame.

    Attributes
    ----------
    values : array (n_frames, 10)
        NaN where a keypoint is missing.
    levels : array of int8 (n_frames, 10)
        0 below the first threshold, 1 between the two, 2 above the second; -1 where the value is NaN.
    names : tuple of str
    """

    values: Array
    levels: NDArray[np.int8]
    names: tuple[str, ...]


def programmed_attributes(
    poses: Poses, rate: float | None = None, *, pixels: float = 1.0, keypoints: Mapping[str, Keypoint] | None = None
) -> ProgrammedAttributes:
    """Compute the ten attributes of the first two animals.

    Speeds are of the center and of the nose, since the frame before. The social angle is between the direction of an animal and the
    direction to the other one. The nose-tail distance is from the first animal's nose to the second one's tail base. The angle between
    head and body, at the neck, has a sign. The attributes of a trajectory are those of its middle frame.

    Parameters
    ----------
    poses : Poses
        Preferably with short gaps interpolated (`interpolate_poses`).
    rate : float, optional
        Frames per second, where the poses have no rate. Changes are scaled to 30 Hz.
    pixels : float
        CalMS21 pixels per unit of the poses; about 95 divided by the length of a mouse.
    keypoints : mapping of name to Keypoint, optional
        Stated roles; guessed from the names by default.
    """
    if len(poses.individuals) < 2:
        raise MismatchError(f"programmed attributes need two animals; these poses have {len(poses.individuals)}")
    rate_factor = resolve_rate(poses, rate) / RATE
    bodies = locate_bodies(np.asarray(poses.positions[:, :2], dtype=np.float64), Skeleton.from_names(poses.keypoints, keypoints))
    columns: dict[str, Array] = {}
    for a, b in ((0, 1), (1, 0)):
        animal = poses.individuals[a]
        columns[f"{animal}/speed"] = _displacement(bodies.center[a])
        columns[f"{animal}/social_angle"] = np.abs(np.angle((bodies.center[b] - bodies.center[a]) * bodies.axis[a].conj()))
        columns[f"{animal}/nose_movement"] = _displacement(bodies.front[a])
        columns[f"{animal}/head_body_angle"] = bodies.bend(a)
    columns["nose_nose"] = np.abs(bodies.front[1] - bodies.front[0])
    columns["nose_tail"] = np.abs(bodies.rear[1] - bodies.front[0])
    values, levels = [], []
    for name, column in columns.items():
        attribute = name.rpartition("/")[2]
        factor = (pixels if attribute in LENGTHS else 1.0) * (rate_factor if attribute in PER_FRAME else 1.0)
        values.append(column * factor)
        low, high = THRESHOLDS[attribute]
        levels.append(np.where(np.isnan(column), MISSING, (values[-1] > low).astype(np.int8) + (values[-1] > high)))
    return ProgrammedAttributes(np.stack(values, axis=1), np.stack(levels, axis=1).astype(np.int8), tuple(columns))


def _displacement(points: Points) -> Array:
    """Return the distance from the frame before; the first frame has that of the second."""
    distance = np.abs(np.diff(points))
    return np.concatenate([distance[:1], distance]) if len(distance) else np.full(len(points), np.nan)
