"""Identity swaps are found where animals jump to each other's positions."""

from __future__ import annotations

import numpy as np
from tests.features.examples import walkers

from ethobench.features.identity_swaps import find_identity_swaps, summarize_swaps


def distant_walkers(n=300):
    poses = walkers(n)
    poses.positions[:, 1] += 600
    return poses


def test_swaps_are_found():
    poses = distant_walkers()
    poses.positions[100:200] = poses.positions[100:200, ::-1]
    swaps = find_identity_swaps(poses)
    assert [(s.frame, s.first, s.second) for s in swaps] == [(100, "a", "b"), (200, "a", "b")]
    assert [str(note) for note in summarize_swaps(swaps)] == ["the tracker seems to swap a and b 2 times: frames 100, 200"]


def test_swaps_are_found_across_short_gaps_only():
    poses = distant_walkers()
    poses.positions[100:] = poses.positions[100:, ::-1]
    poses.positions[97:102] = np.nan
    assert [s.frame for s in find_identity_swaps(poses)] == [102]
    poses.positions[80:120] = np.nan
    assert find_identity_swaps(poses) == ()


def test_jumps_to_other_positions_are_not_swaps():
    poses = distant_walkers()
    poses.positions[100:, 0] += 900
    poses.positions[150:, 1] -= 900
    poses.positions[200:] += 400  # both jump, but not to each other's position
    assert find_identity_swaps(poses) == ()
    assert find_identity_swaps(walkers(500, seed=3)) == ()
    assert summarize_swaps(()) == ()
