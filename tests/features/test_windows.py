"""Window statistics against literal windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Poses, Signals, load_dataset
from ethobench.core.errors import MismatchError
from ethobench.features.channels import axis_triples, channels_of, pose_channels
from ethobench.features.windows import STATISTICS, rolling, window_features, window_frames

values = st.lists(st.floats(-100, 100) | st.just(float("nan")), min_size=1, max_size=40)


@given(values, st.sampled_from([3, 5, 9]), st.sampled_from(STATISTICS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rolling_equals_literal_windows(column, frames, statistic):
    array = np.array(column)[:, None]
    function = {"mean": np.nanmean, "std": np.nanstd, "min": np.nanmin, "max": np.nanmax}[statistic]
    half = frames // 2
    for t, value in enumerate(rolling(array, frames, statistic)[:, 0]):
        window = array[max(0, t - half) : t + half + 1, 0]
        expected = np.nan if np.isnan(window).all() else function(window)
        near = 1e-4 if statistic == "std" else 1e-6  # running squares of values up to 100 leave that much
        assert value == pytest.approx(expected, abs=near, nan_ok=True)


def test_window_lengths_are_odd_and_never_too_short():
    assert [window_frames(s, 30) for s in (0.01, 0.1, 0.5, 2)] == [3, 3, 15, 61]


def test_features_are_named_and_complete():
    features, names = window_features(np.random.default_rng(0).normal(size=(50, 2)), ["a", "b"], 10, [0.5, 2])
    assert features.shape == (50, len(names)) == (50, 2 + 2 * 4 * 2)
    assert names[2] == "a/mean/0.5s"


def test_axes_are_found_by_name():
    assert axis_triples(("AccX", "AccY", "AccZ", "Depth")) == {"Acc": [0, 1, 2]}
    assert axis_triples(("AccX_Back", "AccY_Back", "AccZ_Back", "GyrX")) == {"Acc_Back": [0, 1, 2]}
    tag, names = channels_of(Signals(np.array([[3.0, 4.0, 0.0]]), ("AccX", "AccY", "AccZ"), 10), 10)
    assert (names[-1], tag[0, -1]) == ("Acc|norm", 5)


def test_pose_channels_do_not_depend_on_where_and_how_the_arena_lies():
    poses = load_dataset("synthetic/pose", individuals=1, seconds=20, missing=0.0).recordings[0].signals
    before, names = pose_channels(poses, 30)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    moved = Poses(poses.positions @ turn + 300, poses.confidence, poses.individuals, poses.keypoints, 30)
    after, _ = pose_channels(moved, 30)
    assert after == pytest.approx(before, abs=1e-6)
    assert "resident-intruder/distance" in names


def test_short_gaps_are_bridged_and_long_ones_stay_missing():
    positions = np.stack([np.arange(100.0), np.zeros(100)], axis=1)[:, None, None] + np.arange(2)[None, None, :, None]
    positions[10:15], positions[50:90] = np.nan, np.nan
    channels, names = pose_channels(Poses(positions, np.ones((100, 1, 2)), ("m",), ("nose", "tail"), 10), 10)
    speed = channels[:, names.index("m/speed")]
    assert speed[12] == pytest.approx(10)
    assert np.isnan(speed[70])


def test_recordings_without_signals_are_refused():
    with pytest.raises(MismatchError, match="neither signals nor poses"):
        channels_of(None, 10)
