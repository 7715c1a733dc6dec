"""Programmed attributes of TREBA."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.features.examples import make_poses, walkers

from ethobench.core.errors import MismatchError
from ethobench.features.treba import programmed_attributes


def test_programmed_attributes():
    first = np.array([[300.0, 100], [290, 90], [290, 110], [280, 100], [260, 90], [260, 110], [240, 100]])
    second = first[:, ::-1] + np.array([300.0, 0.0])  # looks along y
    positions = np.tile(np.stack([first, second])[None], (3, 1, 1, 1))
    positions[1:, 0] += [15, 0]
    positions[2:, 0] += [25, 0]
    positions[2, 1, 0] = positions[1, 1, 3] + np.array([30.0, 0])  # the head turns to the side
    attributes = programmed_attributes(make_poses(positions))
    values, levels = (dict(zip(attributes.names, table.T, strict=True)) for table in (attributes.values, attributes.levels))
    assert len(attributes.names) == 10
    assert values["a/speed"] == pytest.approx([15, 15, 25])
    assert levels["a/speed"].tolist() == [1, 1, 2]
    assert levels["b/speed"].tolist()[:2] == [0, 0]
    assert levels["a/nose_movement"].tolist() == [2, 2, 2]
    assert values["nose_nose"][0] == pytest.approx(math.dist((300, 100), (400, 300)))
    assert values["nose_tail"][0] == pytest.approx(math.dist((300, 100), (400, 240)))
    assert levels["nose_nose"].tolist()[0] == 2
    assert values["a/head_body_angle"] == pytest.approx([0, 0, 0])
    assert values["b/head_body_angle"][2] == pytest.approx(-math.pi / 2)
    assert levels["b/head_body_angle"].tolist() == [1, 1, 0]
    to_b = positions[0, 1].mean(axis=0) - positions[0, 0].mean(axis=0)
    assert values["a/social_angle"][0] == pytest.approx(math.atan2(to_b[1], to_b[0]))


def test_programmed_attributes_in_other_units_and_rates():
    poses = walkers(90)
    original = programmed_attributes(poses)
    small = programmed_attributes(replace(poses, positions=poses.positions / 7), pixels=7)
    np.testing.assert_array_equal(original.levels, small.levels)
    faster = programmed_attributes(poses, 60.0)
    assert faster.values[:, 0] == pytest.approx(2 * original.values[:, 0])
    partly_missing = poses.positions.copy()
    partly_missing[40, 1] = np.nan
    incomplete = programmed_attributes(replace(poses, positions=partly_missing))
    assert (incomplete.levels[40] == -1).sum() == 7  # all but the first animal's speed, nose and head
    with pytest.raises(MismatchError, match="two animals"):
        programmed_attributes(walkers(5, animals=1))
