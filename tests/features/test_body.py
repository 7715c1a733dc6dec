"""Order of animals, normalized and egocentric coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from tests.features.examples import make_poses, walkers

from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.features.body import normalized_coordinates, to_egocentric, with_subject_first


def test_with_subject_first():
    poses = walkers(5, animals=3)
    reordered = with_subject_first(poses, "b", "c")
    assert reordered.individuals == ("b", "c", "a")
    np.testing.assert_array_equal(reordered.positions, poses.positions[:, [1, 2, 0]])
    assert with_subject_first(poses, "c").individuals == ("c", "a", "b")
    with pytest.raises(NotFoundError, match="no animal 'd'; available: a, b, c"):
        with_subject_first(poses, "d")
    with pytest.raises(EthobenchError, match="different animals"):
        with_subject_first(poses, "a", "a")


def test_normalized_coordinates_are_those_of_the_baselines():
    keypoints = np.random.default_rng(0).uniform(0, 500, (5, 2, 2, 7))  # frames, mouse, xy, part
    frames = keypoints.transpose(0, 1, 3, 2)
    expected = [[share for mouse in frame for x, y in mouse for share in (x / 1024, y / 570)] for frame in frames]
    values, names = normalized_coordinates(make_poses(keypoints.transpose(0, 1, 3, 2)), 1024, 570)
    np.testing.assert_allclose(values, expected, rtol=1e-15)
    assert names[:3] == ("a/nose/x", "a/nose/y", "a/left_ear/x")
    with pytest.raises(EthobenchError, match="must be > 0"):
        normalized_coordinates(make_poses(np.zeros((1, 1, 7, 2))), 0, 570)
    with pytest.raises(MismatchError, match="three"):
        normalized_coordinates(make_poses(np.zeros((1, 1, 7, 3))), 10, 570)


def test_egocentric_puts_the_body_along_x():
    poses = walkers(50, keypoints=("nose", "neck", "center", "tail_base"))
    egocentric = to_egocentric(poses).positions
    assert np.abs(egocentric[:, :, 2]).max() < 1e-9
    axis = egocentric[:, :, 1] - egocentric[:, :, 3]
    assert np.abs(axis[..., 1]).max() < 1e-9
    assert (axis[..., 0] > 0).all()
    for frame in (0, 20):  # distances do not change
        assert np.linalg.norm(egocentric[frame, 0, 0] - egocentric[frame, 0, 3]) == pytest.approx(
            np.linalg.norm(poses.positions[frame, 0, 0] - poses.positions[frame, 0, 3])
        )
    relative = to_egocentric(poses, "b").positions
    assert np.abs(relative[:, 1, 2]).max() < 1e-9
    distance = np.linalg.norm(poses.positions[:, 0, 0] - poses.positions[:, 1, 0], axis=1)
    assert np.linalg.norm(relative[:, 0, 0] - relative[:, 1, 0], axis=1) == pytest.approx(distance)
    with pytest.raises(NotFoundError, match="available: a, b"):
        to_egocentric(poses, "z")
