"""Filters against BEBE's rules in plain loops, and properties that they preserve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, load_dataset
from ethobench.core.errors import EthobenchError
from ethobench.features.filters import (
    axis_triples,
    filter_order,
    high_pass,
    is_accelerometer,
    resample,
    split_frequencies,
    unit_magnitude,
    zscore,
)

GENERATOR = np.random.default_rng(0)


def high_pass_by_loop(signal, rate, cutoff):
    """Pad, filter causally and cut, tap by tap, as in BEBE."""
    from scipy.signal import firwin

    n = 5 * round(rate / cutoff)
    n -= n % 2
    taps = firwin(n + 1, cutoff / (rate / 2), window="hamming", pass_zero=False)
    half = n // 2
    before = [signal[i] for i in range(half - 1, 0, -1)]
    after = [signal[len(signal) - 2 - i] for i in range(half)]
    padded = [*before, *signal, *after]
    filtered = [sum(taps[j] * padded[k - j] for j in range(min(n, k) + 1)) for k in range(n - 1, n - 1 + len(signal))]
    return np.array(filtered)


@pytest.mark.parametrize(("rate", "cutoff"), [(50, 6.4), (50, 1.6), (25, 1.6), (5, 1.6), (16, 6.4), (10, 0.4)])
def test_split_equals_the_published_filter(rate, cutoff):
    signal = 3 + np.cumsum(GENERATOR.normal(size=200)) + GENERATOR.normal(size=200)
    values = np.stack([signal, np.arange(200.0)], axis=1)
    split, names = split_frequencies(values, ["AccX_Back", "Depth"], rate, cutoff)
    assert names == ("AccX_Back|low", "AccX_Back|high", "Depth")
    assert split[:, 1] == pytest.approx(high_pass_by_loop(signal, rate, cutoff), abs=1e-10)
    assert split[:, 0] + split[:, 1] == pytest.approx(signal, abs=1e-12)
    assert split[:, 2].tolist() == values[:, 1].tolist()


@pytest.mark.slow
def test_split_of_a_real_clip(data):
    signals = load_dataset("bebe/ladds_seals")["miri-22-08-14"].signals
    split, names = split_frequencies(signals.values, signals.channels, signals.rate, 1.6)
    assert names == ("AccX|low", "AccX|high", "AccY|low", "AccY|high", "AccZ|low", "AccZ|high", "Depth")
    for axis in range(3):
        assert split[:, 2 * axis + 1] == pytest.approx(high_pass_by_loop(signals.values[:, axis], 25, 1.6), abs=1e-10)


@pytest.mark.parametrize(("rate", "cutoff", "order"), [(50, 0.4, 624), (50, 1.6, 154), (50, 6.4, 40), (100, 0.1, 5000), (5, 1.6, 14)])
def test_the_order_is_five_periods_rounded_to_even(rate, cutoff, order):
    assert filter_order(rate, cutoff) == order


def test_no_cutoff_changes_nothing():
    values = np.array([[1.0, np.nan], [2.0, 3.0]])
    split, names = split_frequencies(values, ["AccX", "Depth"], 10, 0)
    assert names == ("AccX", "Depth")
    np.testing.assert_array_equal(split, values)


@pytest.mark.parametrize(("rate", "cutoff"), [(5, 6.4), (5, 2.5), (10, -1), (10, float("nan")), (0, 1)])
def test_invalid_cutoffs_are_refused(rate, cutoff):
    with pytest.raises(EthobenchError, match=r"`cutoff` must be|`rate` must be"):
        split_frequencies(np.zeros((10, 1)), ["AccX"], rate, cutoff)


def test_a_cutoff_above_half_the_rate_is_refused():
    with pytest.raises(EthobenchError, match=r"`cutoff` must be below 2\.5 Hz.*got 6\.4 Hz"):
        split_frequencies(np.zeros((10, 1)), ["AccX"], 5, 6.4)


@pytest.mark.parametrize("frames", [0, 1, 2, 3, 20])
def test_clips_shorter_than_the_padding(frames):
    signal = GENERATOR.normal(size=(frames, 1))
    fast = high_pass(signal, 50, 1.6)
    assert fast.shape == (frames, 1)
    assert np.isfinite(fast).all()
    if frames > 1:  # a clip that is mirrored repeatedly is a periodic signal
        period = np.concatenate([signal[:, 0], signal[-2:0:-1, 0]])
        longer = high_pass(np.tile(period, 200 // len(period) * 2 + 2)[:, None], 50, 1.6)
        start = len(period) * (len(longer) // len(period) // 2)
        assert fast[1:, 0] == pytest.approx(longer[start + 1 : start + frames, 0], abs=1e-12)


def test_a_constant_channel_has_almost_no_high_frequency_part():
    split, _ = split_frequencies(np.full((500, 1), 9.81), ["AccX"], 50, 1.6)
    assert split[:, 0] == pytest.approx(np.full(500, 9.81), abs=0.03)


def test_missing_samples_stay_missing_and_do_not_spread():
    signal = np.sin(np.arange(400) / 9)[:, None]
    gapped = signal.copy()
    gapped[100:103], gapped[300] = np.nan, np.inf
    fast, complete = high_pass(gapped, 50, 1.6), high_pass(signal, 50, 1.6)
    assert np.flatnonzero(np.isnan(fast[:, 0])).tolist() == [100, 101, 102, 300]
    finite = ~np.isnan(fast)
    assert fast[finite] == pytest.approx(complete[finite], abs=0.05)
    assert np.isnan(high_pass(np.full((30, 1), np.nan), 50, 1.6)).all()


def test_slow_and_fast_waves_are_separated():
    seconds = np.arange(0, 60, 0.02)
    slow, fast = np.sin(2 * np.pi * 0.2 * seconds), np.sin(2 * np.pi * 8 * seconds)
    split, _ = split_frequencies((slow + fast)[:, None], ["AccX"], 50, 1.6)
    middle = slice(200, -200)
    assert split[middle, 0] == pytest.approx(slow[middle], abs=0.01)
    assert split[middle, 1] == pytest.approx(fast[middle], abs=0.01)


@pytest.mark.slow
@given(st.integers(0, 300), st.sampled_from([1, 5, 16, 25, 29.97, 30, 50, 100]), st.sampled_from([1, 10, 25, 30, 33.3, 100]))
def test_resampling_keeps_lengths_and_straight_lines(frames, rate_from, rate_to):
    line = 1000 + 0.5 * np.arange(frames)[:, None] / rate_from
    resampled = resample(np.concatenate([line, np.full_like(line, 7)], axis=1), rate_from, rate_to)
    assert resampled.shape == (math.floor(frames * (rate_to / rate_from) + 0.5), 2)
    inside = np.arange(len(resampled)) / rate_to <= (frames - 1) / rate_from
    assert resampled[inside, 0] == pytest.approx(1000 + 0.5 * np.arange(len(resampled))[inside] / rate_to, abs=1e-6)
    assert resampled[:, 1] == pytest.approx(np.full(len(resampled), 7.0), abs=1e-9)


@pytest.mark.parametrize(("rate_from", "rate_to"), [(50, 30), (100, 30), (29.97, 30), (25, 100)])
def test_resampling_keeps_slow_waves_and_drops_those_that_would_alias(rate_from, rate_to):
    n = round(40 * rate_from)
    seconds, new_seconds = np.arange(n) / rate_from, np.arange(round(n * rate_to / rate_from)) / rate_to
    slow = np.sin(2 * np.pi * 1.3 * seconds)
    too_fast = np.sin(2 * np.pi * 0.49 * rate_from * seconds) if rate_to < rate_from else 0 * seconds
    resampled = resample((slow + too_fast)[:, None], rate_from, rate_to)[:, 0]
    middle = (new_seconds > 2) & (new_seconds < 38)
    assert resampled[middle] == pytest.approx(np.sin(2 * np.pi * 1.3 * new_seconds[middle]), abs=0.01)


def test_resampling_keeps_gaps():
    gapped = np.arange(100.0)[:, None].copy()
    gapped[40:60] = np.nan
    resampled = resample(gapped, 100, 50)
    assert np.flatnonzero(np.isnan(resampled[:, 0])).tolist() == list(range(20, 30))
    assert np.isnan(resample(np.full((10, 1), np.nan), 10, 20)).all()


@pytest.mark.parametrize(("rate_from", "rate_to"), [(0, 10), (10, -1), (10, float("nan")), (float("inf"), 1)])
def test_invalid_rates_are_refused(rate_from, rate_to):
    with pytest.raises(EthobenchError, match="must be finite and > 0 Hz"):
        resample(np.zeros((10, 1)), rate_from, rate_to)


def test_resampling_by_a_huge_factor_is_refused():
    with pytest.raises(EthobenchError, match="differ by a factor above 10000"):
        resample(np.zeros((200_000, 1)), 100_000, 1)


def test_unit_magnitude_changes_accelerometers_only():
    values = GENERATOR.normal(size=(50, 7)) + 5
    values[3, 0] = np.nan
    scaled = unit_magnitude(values, ["AccX_Back", "AccY_Back", "AccZ_Back", "GyrX", "GyrY", "GyrZ", "Depth"])
    length = np.sqrt((values[:, :3] ** 2).sum(axis=1))
    expected = values[:, :3] / (np.mean(np.delete(length, 3)) + 1e-6)
    np.testing.assert_allclose(scaled[:, :3], expected, rtol=1e-12)
    np.testing.assert_array_equal(scaled[:, 3:], values[:, 3:])


def test_zscores_are_of_the_clip():
    values = np.stack([GENERATOR.normal(1000, 3, 500), np.full(500, 0.1), np.full(500, np.nan)], axis=1)
    values[7, 0] = np.nan
    scores = zscore(values)
    finite = np.delete(values[:, 0], 7)
    assert np.delete(scores[:, 0], 7) == pytest.approx((finite - np.mean(finite)) / (np.std(finite) + 1e-6), abs=1e-10)
    assert np.isnan(scores[7, 0])
    assert scores[:, 1] == pytest.approx(np.zeros(500), abs=1e-8)
    assert np.isnan(scores[:, 2]).all()


@pytest.mark.parametrize("n", [4 * k + r for k in (5, 50) for r in range(4)])
@pytest.mark.parametrize(("old", "new"), [(60.0, 30.0), (100.0, 50.0), (30.0, 25.0), (25.0, 100.0)])
def test_resampled_signals_and_annotations_have_the_same_length(n, old, new):
    labels = Annotation.from_bouts([0], [n], ["a"], ["a"], old, n).resample(new)
    assert len(resample(np.ones((n, 1)), old, new)) == labels.n_frames


def test_rates_that_hardly_differ_do_not_drift():
    n, old, new = 60_000, 29.9997, 30.0
    resampled = resample(np.arange(n)[:, None] / old, old, new)
    assert len(resampled) == int(n * new / old + 0.5)
    np.testing.assert_allclose(resampled[:-1, 0], np.arange(len(resampled) - 1) / new, atol=1e-3)
    wave = resample(np.sin(np.arange(n) / old)[:, None], old, new)
    np.testing.assert_allclose(wave[1000:-1000, 0], np.sin(np.arange(len(wave)) / new)[1000:-1000], atol=1e-3)


@pytest.mark.parametrize("name", ["AccX", "acc_x", "ACC_Y", "Accel_z"])
def test_accelerometers_in_any_spelling(name):
    assert is_accelerometer(name)
    assert not is_accelerometer("Depth")


def test_axes_of_a_sensor_are_recognized_by_name():
    assert axis_triples(("AccX", "AccY", "AccZ", "Depth")) == {"Acc": [0, 1, 2]}
    assert axis_triples(("AccX_Back", "AccY_Back", "AccZ_Back", "GyrX")) == {"Acc_Back": [0, 1, 2]}
