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
