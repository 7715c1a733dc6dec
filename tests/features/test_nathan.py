"""Nathan's features against plain loops over windows, on real clips and on numerically difficult signals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.hypothesis_limits import at_most

from ethobench import load_dataset
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.features.filters import high_pass
from ethobench.features.nathan import half_window, nathan_context, nathan_features

ACC = ("AccX", "AccY", "AccZ")
HAR = (*ACC, "GyrX", "GyrY", "GyrZ")
DOGS = tuple(f"{sensor}{axis}_{where}" for sensor in ("Acc", "Gyr") for where in ("Back", "Neck") for axis in "XYZ")
STATISTICS = ("mean", "std", "skewness", "kurtosis", "max", "min", "autocorrelation", "trend")


def moments_by_loop(window, exact):
    """Return the eight statistics of the columns of a window, statistic by statistic."""
    n, columns = len(window), []
    for y in window.T:
        away = y - y[0]
        shift = math.fsum(away) / n  # a mean near 1000 would cost precision of small deviations
        away = away - shift
        std = math.sqrt(math.fsum(away**2) / (n - 1))
        z = away / (std + 1e-12)
        time = np.arange(n) - (n - 1) / 2
        trend = math.fsum(time * away) / (1 if exact else math.fsum(time**2))
        lagged = math.fsum(away[1:] * away[:-1]) / (n - 1) / (std**2 + 1e-12)
        columns.append([y[0] + shift, std, math.fsum(z**3) / n, math.fsum(z**4) / n - 3, y.max(), y.min(), lagged, trend])
    return [column[statistic] for statistic in range(8) for column in columns]


def correlations_by_loop(window):
    away = window - window[0]
    away -= np.array([math.fsum(column) for column in away.T]) / len(away)
    correlations = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        both = math.sqrt(math.fsum(away[:, a] ** 2) * math.fsum(away[:, b] ** 2))
        correlations.append(math.fsum(away[:, a] * away[:, b]) / (both + 1e-12))
    return correlations


def circular_variance_by_loop(angles):
    return 1 - math.hypot(math.fsum(np.cos(angles)), math.fsum(np.sin(angles))) / len(angles)


def features_by_loop(t, half, accelerometers, fast, others, gyroscopes, exact):
    """Return the features of one frame, from its window cut out of each sensor."""
    window = slice(max(0, t - half), t + half + 1)
    row = []
    for acc in accelerometers:
        x, y, z = acc[window].T
        q = np.sqrt(x**2 + y**2 + z**2)
        row += moments_by_loop(np.stack([x, y, z, q], axis=1), exact)
        row += correlations_by_loop(acc[window])
        row.append(circular_variance_by_loop(np.arccos(z / (q + 1e-12))))
        row.append(circular_variance_by_loop(np.arctan(y / (z + 1e-12)) if exact else np.arctan2(y + 0.0, x + 0.0)))
    row += [np.mean([abs(a) + abs(b) + abs(c) for a, b, c in moving[window]]) for moving in fast]
    row += moments_by_loop(others[window], exact) if others.shape[1] else []
    for gyr in gyroscopes:
        row += correlations_by_loop(gyr[window])
    return row


def check(values, channels, rate, seconds, cutoff, frames=None, exact=True, dynamic_only=False):
    """Compare features with those of plain loops at chosen frames."""
    features, names = nathan_features(values, channels, rate, seconds, cutoff, exact=exact, dynamic_only=dynamic_only)
    assert features.shape == (len(values), len(names))
    triples = [[i, i + 1, i + 2] for i, name in enumerate(channels) if "X" in name]
    accelerometers = [values[:, t] for t in triples if "Acc" in channels[t[0]]]
    gyroscopes = [values[:, t] for t in triples if "Gyr" in channels[t[0]]]
    others = values[:, [i for i, name in enumerate(channels) if "Acc" not in name]]
    fast = accelerometers if dynamic_only else [high_pass(a, rate, cutoff) for a in accelerometers]
    half = max(math.ceil(seconds * rate), 3) // 2
    for t in range(len(values)) if frames is None else frames:
        expected = np.array(features_by_loop(t, half, accelerometers, fast, others, gyroscopes, exact))
        wrong = np.abs(features[t] - expected) > 1e-6 * np.maximum(1, np.abs(expected))
        differences = [(names[i], features[t, i], expected[i]) for i in np.flatnonzero(wrong | np.isnan(features[t]))]
        assert not differences, (t, differences[:5])


def critical_frames(n, half):
    """Return the ends of a clip, the borders of the blocks of running sums, and a few frames between."""
    borders = [b + d for b in range(0, n, 2 * half) for d in (-1, 0, 1)]
    return sorted({t for t in [0, 1, 2, half - 1, half, half + 1, n // 2, n - 2, n - 1, *borders[:12], *borders[-6:]] if 0 <= t < n})


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("seconds", "cutoff"), [(0.02, 6.4), (0.5, 1.6), (4, 0.4), (16, 1.6)])
def test_a_real_clip_of_har(data, seconds, cutoff, exact):
    signals = load_dataset("bebe/HAR")["exp01_user01"].signals
    frames = [*critical_frames(len(signals), half_window(seconds, 50)), *range(3000, 20000, 450)]
    check(np.array(signals.values), signals.channels, 50, seconds, cutoff, frames, exact)


@pytest.mark.slow
@pytest.mark.parametrize(("clip", "seconds"), [("miri-22-08-14", 0.1), ("miri-22-08-14", 4), ("miri-22-08-14", 60), ("rocky-29-10-14", 16)])
def test_real_clips_of_seals(data, clip, seconds):
    signals = load_dataset("bebe/ladds_seals")[clip].signals
    frames = [*critical_frames(len(signals), half_window(seconds, 25)), *range(50, len(signals), len(signals) // 40)]
    check(np.array(signals.values), signals.channels, 25, seconds, 1.6, frames)


def difficult_signals():
    generator = np.random.default_rng(1)
    n = 400
    noise = generator.normal(size=(n, 6))
    yield "noise", noise
    yield "depth of 1000 m, measured to a centimeter", 1000 + 0.01 * noise
    yield "walk far from 0", 1000 + 0.01 * np.cumsum(noise, axis=0)
    yield "spikes", 0.01 * noise + 1e4 * (generator.random((n, 6)) < 0.004)
    yield "steps", 1000 * (np.arange(n) // 70 % 2)[:, None] + 0.01 * noise
    yield "constant", np.tile([0.1, 1000.1, -0.3, 0.7, 1e5 / 3, 0.0], (n, 1))
    yield "constant, then not", np.where(np.arange(n)[:, None] < 150, 1000.1, 1000 + noise)
    yield "all 0", np.zeros((n, 6))


@pytest.mark.parametrize(("name", "values"), difficult_signals(), ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("seconds", [0.1, 1.3, 10, 100])
def test_difficult_signals(name, values, seconds):
    check(values, HAR, 10, seconds, 1.6, [*critical_frames(len(values), min(half_window(seconds, 10), 399)), *range(0, 400, 23)])


values = st.one_of(
    st.floats(-100, 100, width=32),
    st.sampled_from([0.0, 1e3, -1e3, 0.1]),
)


@pytest.mark.slow
@at_most(60)
@given(st.integers(2, 40).flatmap(lambda n: arrays(float, (n, 4), elements=values)), st.integers(1, 100), st.booleans())
def test_any_clip_and_any_window(clip, frames, exact):
    check(clip, (*ACC, "Depth"), 1, frames, 0.4, exact=exact)


def test_two_accelerometers_and_two_gyroscopes_come_in_the_published_order():
    values = np.random.default_rng(2).normal(size=(60, 12))
    check(values, DOGS, 10, 1, 1.6)
    _, names = nathan_features(values, DOGS, 10, 1, 1.6)
    assert len(names) == 2 * 38 + 6 * 8 + 6
    axes = ("AccX_Back", "AccY_Back", "AccZ_Back", "Acc_Back|norm")
    assert names[:32] == tuple(f"{axis}/{statistic}" for statistic in STATISTICS for axis in axes)
    assert names[32:37] == (
        "Acc_Back/correlation_xy",
        "Acc_Back/correlation_xz",
        "Acc_Back/correlation_yz",
        "Acc_Back/inclination_variance",
        "Acc_Back/azimuth_variance",
    )
    assert names[37] == "AccX_Neck/mean"
    assert names[74:77] == ("Acc_Back/odba", "Acc_Neck/odba", "GyrX_Back/mean")
    assert names[-7:-4] == ("GyrZ_Neck/trend", "Gyr_Back/correlation_xy", "Gyr_Back/correlation_xz")


def test_features_do_not_depend_on_the_order_of_channels():
    values = np.random.default_rng(3).normal(size=(80, 7))
    channels = (*HAR, "Depth")
    order = [6, 5, 1, 4, 2, 0, 3]
    features, names = nathan_features(values, channels, 10, 1, 1.6)
    reordered, reordered_names = nathan_features(values[:, order], [channels[i] for i in order], 10, 1, 1.6)
    assert sorted(names) == sorted(reordered_names)
    np.testing.assert_allclose(reordered[:, [reordered_names.index(name) for name in names]], features, rtol=1e-12, atol=1e-12)


def test_recordings_without_an_accelerometer_have_moments_only():
    values = np.random.default_rng(4).normal(size=(50, 3))
    features, names = nathan_features(values, ("Depth", "Speed", "AccZ"), 5, 2, cutoff=0)
    assert names == tuple(f"{channel}/{statistic}" for statistic in STATISTICS for channel in ("Depth", "Speed", "AccZ"))
    assert features[20] == pytest.approx(moments_by_loop(values[15:26], True))


def test_dynamic_acceleration_is_not_filtered():
    values = np.random.default_rng(5).normal(size=(70, 3))
    check(values, ACC, 1, 16, 0, dynamic_only=True)


def test_without_cutoff_there_is_no_odba():
    with pytest.raises(EthobenchError, match="ODBA needs a `cutoff` > 0 Hz"):
        nathan_features(np.zeros((10, 3)), ACC, 10, 1, cutoff=0)


def test_published_errors_are_kept_or_corrected():
    t = np.arange(200) / 20
    rotating = np.stack([np.cos(t), np.sin(t), np.full(200, 5.0)], axis=1)  # once around z in 126 frames
    published, names = nathan_features(rotating, ACC, 20, 6.3, 1.6)
    corrected, _ = nathan_features(rotating, ACC, 20, 6.3, 1.6, exact=False)
    azimuth, trend = names.index("Acc/azimuth_variance"), names.index("AccX/trend")
    assert published[100, azimuth] < 0.02  # y/z hardly changes
    assert corrected[100, azimuth] > 0.98  # all directions of the x-y plane
    line = np.stack([3 * np.arange(50.0), np.zeros(50), np.zeros(50)], axis=1)
    assert nathan_features(line, ACC, 10, 1, 1.6, exact=False)[0][25, trend] == pytest.approx(3)
    assert nathan_features(line, ACC, 10, 1, 1.6)[0][25, trend] == pytest.approx(3 * 2 * (1 + 4 + 9 + 16 + 25))


def test_constant_windows_and_vectors_of_length_0_have_defined_values():
    features, names = nathan_features(np.zeros((30, 4)), (*ACC, "Depth"), 10, 1, 1.6)
    values = dict(zip(names, features[15], strict=True))
    assert {name for name, value in values.items() if value} == {f"{row}/kurtosis" for row in (*ACC, "Acc|norm", "Depth")}
    assert values["Depth/kurtosis"] == -3


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_clips(n):
    features, names = nathan_features(np.full((n, 4), 2.5), (*ACC, "Depth"), 25, 4)
    assert features.shape == (n, 46)
    assert np.isfinite(features).all()
    if n:
        assert features[0, names.index("Depth/mean")] == 2.5
        assert features[0, names.index("Depth/std")] == 0


def test_slices_with_context_have_the_features_of_the_recording():
    generator = np.random.default_rng(6)
    values = np.concatenate([generator.normal(size=(3000, 3)), 1000 + np.cumsum(generator.normal(size=(3000, 1)), axis=0)], axis=1)
    channels = (*ACC, "Depth")
    complete, _ = nathan_features(values, channels, 25, 4, 0.4)
    context = nathan_context(4, 25, 0.4)
    assert context == 50 + 155
    for start, stop in ((0, 700), (700, 1500), (1500, 1501), (1501, 3000)):
        first, last = max(0, start - context), min(len(values), stop + context)
        sliced, _ = nathan_features(values[first:last], channels, 25, 4, 0.4)
        np.testing.assert_allclose(sliced[start - first : stop - first], complete[start:stop], rtol=1e-9, atol=1e-9)


def test_short_gaps_are_interpolated_and_long_ones_affect_their_sensor_only():
    values = np.random.default_rng(7).normal(size=(300, 5))
    gapped = values.copy()
    gapped[50, 1], gapped[100:140, 0], gapped[200:220, 4] = np.nan, np.nan, np.inf
    features, names = nathan_features(gapped, (*ACC, "Depth", "Speed"), 10, 2, 1.6)
    acc, depth, speed = (np.array([name.startswith(sensor) for name in names]) for sensor in ("Acc", "Depth", "Speed"))
    undefined = np.isnan(features)
    assert (
        np.flatnonzero(undefined[:, acc].all(axis=1)).tolist()
        == np.flatnonzero(undefined[:, acc].any(axis=1)).tolist()
        == list(range(100, 140))
    )
    assert not undefined[:, depth].any()
    assert np.flatnonzero(undefined[:, speed].any(axis=1)).tolist() == list(range(200, 220))
    interpolated = gapped.copy()
    for column, frames in ((1, slice(50, 51)), (0, slice(100, 140)), (4, slice(200, 220))):
        interpolated[frames, column] = np.interp(
            np.arange(300)[frames], [frames.start - 1, frames.stop], gapped[[frames.start - 1, frames.stop], column]
        )
    filled, _ = nathan_features(interpolated, (*ACC, "Depth", "Speed"), 10, 2, 1.6)
    np.testing.assert_array_equal(features[~undefined], filled[~undefined])
    complete, _ = nathan_features(values, (*ACC, "Depth", "Speed"), 10, 2, 1.6)
    assert not np.array_equal(features[~undefined], complete[~undefined])


def test_all_samples_missing():
    features, _ = nathan_features(np.full((40, 4), np.nan), (*ACC, "Depth"), 10, 2, 1.6)
    assert np.isnan(features).all()


def test_features_in_single_precision():
    values = np.random.default_rng(8).normal(size=(100, 6))
    double, _ = nathan_features(values, HAR, 10, 2)
    single, _ = nathan_features(values, HAR, 10, 2, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, double.astype(np.float32))


def test_the_input_is_unchanged():
    values = np.random.default_rng(9).normal(size=(100, 6))
    values[10] = np.nan
    before = values.copy()
    nathan_features(values, HAR, 10, 2)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize(("seconds", "rate", "half"), [(0.5, 50, 12), (16, 50, 400), (0.01, 10, 1), (0.5, 25, 6), (1, 5, 2)])
def test_window_lengths_are_as_published(seconds, rate, half):
    assert half_window(seconds, rate) == half


@pytest.mark.parametrize(("seconds", "rate"), [(0, 10), (-1, 10), (math.nan, 10), (1, 0), (math.inf, 10)])
def test_invalid_windows_are_refused(seconds, rate):
    with pytest.raises(EthobenchError, match="`seconds` and `rate` must be finite and > 0"):
        nathan_features(np.zeros((10, 1)), ["Depth"], rate, seconds)


@pytest.mark.parametrize("channels", [["Depth"], []])
def test_mismatched_channels_are_refused(channels):
    with pytest.raises(MismatchError, match=rf"there are {len(channels)} channels"):
        nathan_features(np.zeros((10, 2 if channels else 0)), channels, 10, 1)
