"""Signals and poses."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench.core import Poses, Signals
from ethobench.core.errors import MismatchError, NotFoundError


def test_signals_and_poses_check_their_shapes():
    with pytest.raises(MismatchError):
        Signals(np.zeros((5, 2)), ("x",), 10)
    with pytest.raises(MismatchError):
        Poses(np.zeros((5, 1, 2, 4)), np.zeros((5, 1, 2)), ("m",), ("a", "b"))
    poses = Poses(np.full((4, 1, 2, 3), np.nan), np.zeros((4, 1, 2)), ("m",), ("a", "b"), 10)
    assert poses.missing == 1
    assert poses.to_signals().channels == ("m/a/x", "m/a/y", "m/a/z", "m/b/x", "m/b/y", "m/b/z")
    with pytest.raises(NotFoundError, match="no channel 'q'"):
        Signals(np.zeros((5, 1)), ("x",), 10).channel("q")


def test_slices_and_channels_are_those_of_the_array():
    values = np.arange(30.0).reshape(10, 3)
    signals = Signals(values, ("x", "y", "z"), 25)
    assert signals.channel("z").tolist() == values[:, 2].tolist()
    assert signals.channel("x").tolist() == values[:, 0].tolist()
    assert len(signals) == 10
    cut = signals[2:7]
    assert np.array_equal(cut.values, values[2:7])
    assert (cut.channels, cut.rate) == (signals.channels, 25)
    positions = np.random.default_rng(0).normal(size=(6, 2, 3, 2))
    positions[0, 0, 0] = positions[1, 1, 2] = positions[5, 0, 1] = np.nan
    confidence = np.arange(36.0).reshape(6, 2, 3)
    poses = Poses(positions, confidence, ("m1", "m2"), ("a", "b", "c"))
    assert poses.missing == 3 / 36
    assert poses[4:].missing == 1 / 12
    assert np.array_equal(poses[4:].confidence, confidence[4:])
    converted = poses.to_signals()
    assert converted.rate == 1
    assert np.array_equal(converted.channel("m2/b/y"), positions[:, 1, 1, 1])
    assert Poses(np.zeros((0, 1, 1, 2)), np.zeros((0, 1, 1)), ("m",), ("a",)).missing == 0


@pytest.mark.parametrize(
    ("positions", "confidence"),
    [((5, 1, 2), (5, 1, 2)), ((5, 2, 2, 2), (5, 1, 2)), ((5, 1, 3, 2), (5, 1, 2)), ((5, 1, 2, 1), (5, 1, 2)), ((5, 1, 2, 2), (4, 1, 2))],
)
def test_poses_of_other_shapes_are_refused(positions, confidence):
    with pytest.raises(MismatchError, match="shape"):
        Poses(np.zeros(positions), np.zeros(confidence), ("m",), ("a", "b"))


def test_signals_have_two_axes():
    with pytest.raises(MismatchError, match="1 channels"):
        Signals(np.zeros(5), ("x",), 10)


def test_representations_list_eight_names_at_most():
    names = tuple("abcdefghi")
    assert repr(Signals(np.zeros((2, 8)), names[:8], 10)) == "Signals(2 frames at 10 Hz; a, b, c, d, e, f, g, h)"
    assert repr(Signals(np.zeros((2, 9)), names, 10)) == "Signals(2 frames at 10 Hz; 9 channels: a, b, c, ...)"
    assert "unknown rate" in repr(Poses(np.zeros((2, 1, 1, 2)), np.zeros((2, 1, 1)), ("m",), ("a",)))


def test_signals_and_poses_are_compared_by_identity():
    for first, second in (
        [Signals(np.zeros((5, 1)), ("x",), 10) for _ in range(2)],
        [Poses(np.zeros((5, 1, 1, 2)), np.zeros((5, 1, 1)), ("m",), ("a",)) for _ in range(2)],
    ):
        assert first != second
        assert len({first, second, first}) == 2
