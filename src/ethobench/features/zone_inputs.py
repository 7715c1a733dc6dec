"""Zones as inputs of models: whether each animal is inside a zone, and its distance from it in body lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.signals import FEATURE_PREFIX, Keypoint
from ethobench.datasets.zones import Zone, pixels_per_cm, zones_of
from ethobench.features.body import Scene, Skeleton, estimate_scene, locate_bodies
from ethobench.features.missing_data import MIN_CONFIDENCE, valid_positions

ZONE_PREFIX = f"{FEATURE_PREFIX}zone/"


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


def with_zone_features(recording: Recording, keypoints: Mapping[str, Keypoint] | None = None) -> Recording:
    """Return a recording whose per-frame features also tell where its animals are relative to the zones of the study.

    Parameters
    ----------
    recording : Recording
        With poses and zones. One that has these features already is returned as it is.
    keypoints : mapping of name to Keypoint, optional
        Stated roles.

    Raises
    ------
    MismatchError
        If the recording has no zones.

    Examples
    --------
    >>> positions = np.array([[[[0.0, 0], [4, 0]]], [[[20, 0], [24, 0]]]])
    >>> poses = Poses(positions, np.ones((2, 1, 2)), ("mouse",), ("nose", "tail_base"), 30.0)
    >>> nest = Zone("nest", "rectangle", ((-5, -5), (10, 5)))
    >>> with_zone_features(Recording("m1", rate=30.0, signals=poses, metadata={"zones": [nest.to_dict()]})).features.channels
    ('features/zone/nest/inside/1', 'features/zone/nest/distance/1')
    """
    features = recording.features if recording.features is not None and recording.features.is_features else None
    if features is not None and any(name.startswith(ZONE_PREFIX) for name in features.channels):
        return recording
    zones, poses = zones_of(recording), recording.signals
    if not zones:
        raise MismatchError(f"recording {recording.id!r} has no zones, which the model uses as inputs (zones=True): list them in zones.csv")
    values, _ = zone_inputs(recording, keypoints=keypoints)
    n_animals = len(poses.individuals) if isinstance(poses, Poses) else 0
    kinds = ("inside", "distance")
    names = [f"{ZONE_PREFIX}{zone.name}/{kind}/{animal + 1}" for zone in zones for animal in range(n_animals) for kind in kinds]
    if features is not None:
        values, names = np.concatenate([features.values, values], axis=1), [*features.channels, *names]
    return recording.copy(features=Signals(values, tuple(names), float(recording.rate or 1.0)))
