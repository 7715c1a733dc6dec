"""Missing keypoints, and interpolation against a plain loop."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.examples import RATE, columns, make_poses, walkers

from ethobench.features.body import estimate_scene, to_egocentric
from ethobench.features.missing_data import interpolate_poses


def interpolate_by_loop(x, max_frames):
    x = list(x)
    tracked = [t for t in range(len(x)) if not math.isnan(x[t])]
    for before, after in pairwise(tracked):
        if 1 < after - before <= max_frames + 1:
            for t in range(before + 1, after):
                x[t] = x[before] + (x[after] - x[before]) * (t - before) / (after - before)
    return np.array(x)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from([0.0, 1 / 30, 0.1, 0.5, 5.0]))
def test_interpolation_equals_a_plain_loop(hidden, seconds):
    n = len(hidden)
    positions = np.random.default_rng(n).normal(500, 50, (n, 2, 3, 2))
    positions[np.array(hidden), 0, 1] = np.nan
    positions[~np.array(hidden), 1, 2] = np.nan
    interpolated = interpolate_poses(make_poses(positions, "xyz"), seconds).positions
    for a in range(2):
        for k in range(3):
            for axis in range(2):
                expected = interpolate_by_loop(positions[:, a, k, axis], round(seconds * RATE))
                assert interpolated[:, a, k, axis] == pytest.approx(expected, nan_ok=True)


def test_low_confidence_is_missing_and_nan_confidence_is_not():
    positions = np.arange(10, 20.0)[:, None, None, None] * np.ones((10, 1, 2, 2))
    positions[5, 0, 0] = 900
    confidence = np.full((10, 1, 2), np.nan)
    confidence[5, 0, 0] = 0.1
    poses = make_poses(positions, ("nose", "tail_base"), confidence=confidence)
    assert interpolate_poses(poses).positions[5, 0, 0].tolist() == [15, 15]
    assert interpolate_poses(poses, min_confidence=0.05).positions[5, 0, 0].tolist() == [900, 900]
    np.testing.assert_array_equal(poses.positions[5, 0, 0], 900)  # the input is unchanged


def test_zeros_far_from_everything_are_missing():
    poses = walkers(200)
    poses.positions[50:53, 0, 2] = 0
    poses.positions[100:150, 1] = 0
    interpolated = interpolate_poses(poses)
    assert not (interpolated.positions == 0).any()
    assert np.isnan(interpolated.positions[100:150, 1]).all()
    assert not np.isnan(interpolated.positions[50:53, 0, 2]).any()
    assert any("(0, 0)" in str(note) for note in estimate_scene(poses).notes)
    features = columns(poses)
    assert np.nanmax(features["a/speed"]) < 30
    assert np.isnan(features["a-b/distance"][110:140]).all()


def test_zeros_among_the_other_positions_are_positions():
    poses = walkers(200)
    centered = to_egocentric(poses)
    poses_at_origin = replace(centered, positions=np.where(np.abs(centered.positions) < 2, 0, centered.positions))
    assert not np.isnan(interpolate_poses(poses_at_origin).positions).any()
    assert not any("(0, 0)" in str(note) for note in estimate_scene(poses_at_origin).notes)
