"""Window statistics against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.features.windows import (
    STATISTICS,
    axis_correlations,
    rolling,
    window_extremes,
    window_features,
    window_frames,
    window_statistics,
)

values = st.lists(st.floats(-100, 100) | st.just(float("nan")), min_size=1, max_size=40)


@given(values, st.sampled_from([3, 5, 9]), st.sampled_from(STATISTICS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rolling_equals_a_plain_loop(column, frames, statistic):
    array = np.array(column)[:, None]
    function = {"mean": np.nanmean, "std": np.nanstd, "min": np.nanmin, "max": np.nanmax}[statistic]
    half = frames // 2
    for t, value in enumerate(rolling(array, frames, statistic)[:, 0]):
        window = array[max(0, t - half) : t + half + 1, 0]
        expected = np.nan if np.isnan(window).all() else function(window)
        tolerance = 1e-4 if statistic == "std" else 1e-6  # rounding errors of running squares of values up to 100
        assert value == pytest.approx(expected, abs=tolerance, nan_ok=True)


def test_window_frames_are_odd_and_at_least_three():
    assert [window_frames(s, 30) for s in (0.01, 0.1, 0.5, 2)] == [3, 3, 15, 61]


def test_features_have_names():
    features, names = window_features(np.random.default_rng(0).normal(size=(50, 2)), ["a", "b"], 10, [0.5, 2])
    assert features.shape == (50, len(names)) == (50, 2 + 2 * 4 * 2)
    assert names[2] == "a/mean/0.5s"


@given(st.integers(1, 40), st.integers(1, 6), st.booleans())
def test_window_statistics_equal_a_plain_loop(n, half, gaps):
    random = np.random.default_rng(n * 10 + half)
    row = random.normal(5, 2, n)
    if gaps:
        row[random.random(n) < 0.2] = np.nan
    statistics = {statistic: columns[0] for statistic, columns in window_statistics(row[None], 2 * half + 1, slice(None))}
    for t in range(n):
        window = row[max(t - half, 0) : t + half + 1]
        window = window[~np.isnan(window)]
        before, after = row[max(t - half, 0) : t + 1], row[t : t + half + 1]
        before, after = before[~np.isnan(before)], after[~np.isnan(after)]
        if not len(window):
            assert np.isnan(statistics["mean"][t])
            continue
        for statistic in ("mean", "std", "min", "max"):
            assert statistics[statistic][t] == pytest.approx(getattr(np, statistic)(window), abs=1e-5)
        if window.std() > 1e-3:
            skewness = ((window - window.mean()) ** 3).mean() / window.std() ** 3
            assert statistics["skew"][t] == pytest.approx(skewness, abs=1e-3)
        if len(before) and len(after):
            assert statistics["mean_rise"][t] == pytest.approx(after.mean() - before.mean(), abs=1e-5)
            assert statistics["std_rise"][t] == pytest.approx(after.std() - before.std(), abs=1e-4)


@given(st.integers(1, 60), st.lists(st.integers(1, 20), min_size=1, max_size=4, unique=True), st.integers(1, 3))
def test_extremes_of_several_lengths_equal_running_ones(n, halves, every):
    signals = np.random.default_rng(n).normal(size=(2, n))
    signals[:, ::4] = np.nan
    lengths, kept = [2 * half + 1 for half in sorted(halves)], slice(n // 3, None, every)
    for length, (low, high) in zip(lengths, window_extremes(signals, lengths, kept), strict=True):
        for values, statistic in ((low, "min"), (high, "max")):
            np.testing.assert_array_equal(values, rolling(signals.T, length, statistic).T[:, kept].astype(np.float32))


def test_axis_correlations_are_those_of_the_window():
    axes = np.random.default_rng(0).normal(size=(3, 200))
    axes[1] += axes[0]
    correlations = dict(axis_correlations(axes, 51, slice(None)))
    assert list(correlations) == ["xy", "xz", "yz"]
    assert correlations["xy"][100] == pytest.approx(np.corrcoef(axes[0, 75:126], axes[1, 75:126])[0, 1], abs=1e-5)
