"""Window statistics against literal windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.features.filters import axis_triples
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
