"""Wavelets against direct convolution, as in SciPy's former ``cwt``."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hypothesis_limits import at_most

from ethobench import load_dataset
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.features import wavelets
from ethobench.features.wavelets import wavelengths, wavelet_features


def wavelets_by_convolution(signal, rate, omega, c_max, n=15):
    """Compute z-scores, then convolve with each wavelet in turn, as in BEBE."""
    z = (signal - np.mean(signal)) / (np.std(signal) + 1e-6)
    c_min = 2 / rate
    rows = []
    for k in range(n):
        wavelength = c_min * (c_max / c_min) ** (k / (n - 1))
        s = rate * wavelength * (omega + math.sqrt(2 + omega**2)) / (4 * math.pi)
        length = min(10 * s, len(z))
        x = np.arange(0, length) - (length - 1.0) / 2
        wave = math.pi**-0.25 * math.sqrt(1 / s) * np.exp(1j * omega * x / s) * np.exp(-(x**2) / (2 * s**2))
        full = np.convolve(z, np.conj(wave[::-1]), mode="full")
        first = (len(full) - len(z)) // 2
        rows.append(np.abs(full[first : first + len(z)]))
    return np.array(rows).T


@pytest.mark.slow
@pytest.mark.parametrize(("omega", "c_max"), [(5, 1), (5, 10), (10, 100), (20, 1000)])
def test_a_real_clip_of_har(data, omega, c_max):
    signals = load_dataset("bebe/HAR")["exp01_user01"].signals
    values = np.array(signals.values)[:9000]
    features, names = wavelet_features(values, signals.channels, 50, omega, c_max)
    assert features.shape == (9000, 90) == (9000, len(names))
    for channel in (0, 4):
        expected = wavelets_by_convolution(values[:, channel], 50, omega, c_max)
        np.testing.assert_allclose(features[:, 15 * channel : 15 * channel + 15], expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("c_max", [1, 10, 100, 1000])
def test_a_real_clip_of_seals(data, c_max):
    signals = load_dataset("bebe/ladds_seals")["miri-22-08-14"].signals
    features, names = wavelet_features(signals.values, signals.channels, 25, 10, c_max)
    for channel, name in enumerate(signals.channels):
        assert names[15 * channel].startswith(f"{name}/")
        np.testing.assert_allclose(
            features[:, 15 * channel : 15 * channel + 15], wavelets_by_convolution(signals.values[:, channel], 25, 10, c_max), atol=1e-6
        )


@at_most(40)
@given(st.integers(1, 300), st.sampled_from([1, 5, 50]), st.sampled_from([1, 5, 10, 20]), st.sampled_from([0.3, 1, 10, 1000]))
def test_clips_and_wavelets_of_any_length(frames, rate, omega, c_max):
    signal = 1000 + np.random.default_rng(frames).normal(size=frames)
    features, _ = wavelet_features(signal[:, None], ["Depth"], rate, omega, c_max, n=6)
    np.testing.assert_allclose(features, wavelets_by_convolution(signal, rate, omega, c_max, n=6), atol=1e-6)


@pytest.mark.parametrize("batch", [1, 2**16])
@pytest.mark.parametrize("min_block", [16, 64, 2048])
def test_features_do_not_depend_on_blocks(monkeypatch, min_block, batch):
    monkeypatch.setattr(wavelets, "MIN_BLOCK_FRAMES", min_block)
    monkeypatch.setattr(wavelets, "BATCH_FRAMES", batch)
    signal = np.cumsum(np.random.default_rng(0).normal(size=1531))
    features, _ = wavelet_features(signal[:, None], ["Depth"], 10, 5, 20)
    np.testing.assert_allclose(features, wavelets_by_convolution(signal, 10, 5, 20), atol=1e-9)


def test_wavelengths_are_spaced_in_equal_ratios():
    lengths = wavelengths(50, 10, 15)
    assert (lengths[0], lengths[-1]) == pytest.approx((0.04, 10))
    assert lengths[1:] / lengths[:-1] == pytest.approx(np.full(14, (10 / 0.04) ** (1 / 14)))


def test_wavelengths_of_slow_recordings_descend():
    lengths = wavelengths(1, 1, 15)  # snakes in BEBE: two frames are longer than the longest wavelength
    assert (lengths[0], lengths[-1]) == pytest.approx((2, 1))
    assert (np.diff(lengths) < 0).all()
    signal = np.random.default_rng(1).normal(size=200)
    features, names = wavelet_features(signal[:, None], ["AccX"], 1, 20, 1)
    assert (names[0], names[-1]) == ("AccX/wavelet_2s", "AccX/wavelet_1s")
    np.testing.assert_allclose(features, wavelets_by_convolution(signal, 1, 20, 1), atol=1e-6)


def test_a_sine_has_its_maximum_at_its_wavelength():
    seconds = np.arange(0, 100, 0.05)
    lengths = wavelengths(20, 10, 15)
    for k in (3, 7, 10):
        features, _ = wavelet_features(np.sin(2 * np.pi * seconds / lengths[k])[:, None], ["AccX"], 20, 10, 10)
        assert (features[500:1500] / np.sqrt(lengths)).argmax(axis=1).tolist() == [
            k
        ] * 1000  # magnitudes grow with the square root of the wavelength


def test_constant_channels_have_no_waves():
    features, _ = wavelet_features(np.full((300, 1), 9.81), ["AccX"], 25, 5, 10)
    assert features == pytest.approx(np.zeros((300, 15)), abs=1e-6)


def test_missing_samples_stay_missing_and_do_not_spread():
    values = np.sin(np.arange(500) / 7)[:, None].repeat(3, axis=1)
    values[100:105, 1], values[:, 2] = np.nan, np.nan
    features, _ = wavelet_features(values, ["AccX", "AccY", "AccZ"], 25, 5, 5)
    assert not np.isnan(features[:, :15]).any()
    assert np.flatnonzero(np.isnan(features[:, 15:30]).any(axis=1)).tolist() == [100, 101, 102, 103, 104]
    assert np.isnan(features[:, 30:]).all()
    np.testing.assert_allclose(features[300:, 15:30], features[300:, :15], atol=0.1)


def test_no_frames_give_no_features():
    features, names = wavelet_features(np.empty((0, 2)), ["AccX", "AccY"], 25, 5, 5)
    assert features.shape == (0, 30) == (0, len(names))


def test_features_in_single_precision():
    values = np.random.default_rng(2).normal(size=(400, 2))
    double, _ = wavelet_features(values, ["AccX", "Depth"], 10, 5, 10)
    single, _ = wavelet_features(values, ["AccX", "Depth"], 10, 5, 10, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, double.astype(np.float32))


@pytest.mark.parametrize(
    ("rate", "omega", "c_max", "n"), [(0, 5, 1, 15), (10, 5, 0, 15), (10, 5, math.nan, 15), (10, 0, 1, 15), (10, 5, 1, 1)]
)
def test_invalid_parameters_are_refused(rate, omega, c_max, n):
    with pytest.raises(EthobenchError, match=r"`c_max` must be finite|`omega` must be finite"):
        wavelet_features(np.zeros((10, 1)), ["AccX"], rate, omega, c_max, n)


def test_mismatched_channels_are_refused():
    with pytest.raises(MismatchError, match=r"`values` have shape \(10, 2\), but there are 1 channels"):
        wavelet_features(np.zeros((10, 2)), ["AccX"], 10, 5, 1)
