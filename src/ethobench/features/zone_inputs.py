"""Zones as inputs of models: whether each animal is inside a zone, and its distance from it in body lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError
from ethobench.core.signals import Keypoint
from ethobench.datasets.zones import Zone, pixels_per_cm, zones_of
from ethobench.features.body import Scene, Skeleton, estimate_scene, locate_bodies
from ethobench.features.missing_data import MIN_CONFIDENCE, valid_positions


def zone_inputs(
    recording: Recording,
    zones: Sequence[Zone] | None = None,
    *,
    keypoints: Mapping[str, Keypoint] | None = None,
    scene: Scene | None = None,
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return two columns for each animal and zone: inside (0 or 1), and the distance to the zone in body lengths.

    Parameters
    ----------
    recording : Recording
        With poses.
    zones : sequence of Zone, optional
        Default: those of ``zones.csv`` of the study. Without zones there are no columns.
    keypoints : mapping of name to Keypoint, optional
        Stated roles.
    scene : Scene, optional
        Measured by default.

    Returns
    -------
    values : array (n_frames, 2 * n_animals * n_zones)
        NaN where the animal was not tracked.
    names : tuple of str
        ``animal/zone/inside`` and ``animal/zone/distance``.

    Examples
    --------
    >>> positions = np.array([[[[0.0, 0], [4, 0]]], [[[20, 0], [24, 0]]]])
    >>> poses = Poses(positions, np.ones((2, 1, 2)), ("mouse",), ("nose", "tail_base"), 30.0)
    >>> values, names = zone_inputs(Recording("m1", signals=poses), [Zone("nest", "rectangle", ((-5, -5), (10, 5)))])
    >>> names
    ('mouse/nest/inside', 'mouse/nest/distance')
    >>> values[:, 0].tolist(), values[:, 1].tolist()
    ([1.0, 0.0], [0.0, 3.0])
    """
    poses = recording.signals
    if not isinstance(poses, Poses):
        raise EthobenchError(f"recording {recording.id!r} has no poses, so positions in zones are not known")
    scene = scene or estimate_scene(poses, keypoints=keypoints)
    skeleton, per_cm = Skeleton.from_names(poses.keypoints, keypoints), pixels_per_cm(recording)
    centers = locate_bodies(valid_positions(poses, MIN_CONFIDENCE, scene.zeros_missing), skeleton).center
    columns, names = [], []
    for zone in zones_of(recording, zones):
        for animal, center in zip(poses.individuals, centers, strict=True):
            points = np.stack([center.real, center.imag], axis=1)
            inside = np.where(np.isnan(points[:, 0]), np.nan, zone.contains(points, per_cm))
            columns += [inside, zone.distance(points, per_cm) / scene.body_length]
            names += [f"{animal}/{zone.name}/inside", f"{animal}/{zone.name}/distance"]
    return np.stack(columns, axis=1) if columns else np.zeros((len(poses), 0)), tuple(names)
