"""Poses that the tests of features share."""

from __future__ import annotations

import numpy as np

from ethobench.core import Poses
from ethobench.features.pose import pose_features

MOUSE = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base")
RATE = 30.0


def make_poses(positions, keypoints=MOUSE, rate=RATE, confidence=None, individuals=None):
    """Create poses of animals a, b, ... from positions (n_frames, n_individuals, n_keypoints, 2)."""
    positions = np.asarray(positions, dtype=float)
    names = individuals or tuple("abcdefg"[: positions.shape[1]])
    return Poses(positions, np.full(positions.shape[:3], np.nan) if confidence is None else confidence, names, tuple(keypoints), rate)


def walkers(n=200, animals=2, keypoints=MOUSE, seed=0, missing=0.0):
    """Create poses of bodies of length 100 that wander and turn; keypoints are at random positions, front first."""
    random = np.random.default_rng(seed)
    body = np.stack([np.linspace(50, -50, len(keypoints)), random.uniform(-20, 20, len(keypoints))], axis=1)
    positions = np.empty((n, animals, len(keypoints), 2))
    for a in range(animals):
        heading = np.cumsum(random.normal(0, 0.1, n)) + random.uniform(0, 6)
        middle = 500 + np.cumsum(random.normal(0, 6, (n, 2)), axis=0) + random.uniform(-150, 150, 2)
        rotation = np.stack([np.stack([np.cos(heading), -np.sin(heading)], -1), np.stack([np.sin(heading), np.cos(heading)], -1)], 1)
        positions[:, a] = middle[:, None] + np.einsum("tij,kj->tki", rotation, body) + random.normal(0, 0.5, (n, len(keypoints), 2))
    positions[random.random((n, animals, len(keypoints))) < missing] = np.nan
    return make_poses(positions, keypoints)


def columns(poses, *args, **options):
    """Return pose features by name."""
    values, names = pose_features(poses, *args, **options)
    return dict(zip(names, values.T.astype(float), strict=True))
