"""Spectral features: energies of half-octave bands, dominant frequency, entropy and center of the spectrum around each frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ethobench.features.windows import centered_mean

Array = NDArray[np.float64]
Columns = NDArray[np.float32]
MAX_RATE = 50.0  # Hz to which signals are subsampled; behavior has no higher frequencies
CHUNK = 2048  # windows at a time
OCTAVES = 0.5  # width of a band
MIN_SAMPLES = 16  # of a window, below which it has no spectral features
FLOOR = 1e-10  # added before logarithms


def spectral_features(
    groups: Sequence[tuple[str, Array]], rate: float, frames: NDArray[np.int64], lengths: Sequence[int]
) -> tuple[list[Columns], list[str]]:
    """Compute the spectra of windows centered on chosen frames.

    Parameters
    ----------
    groups : sequence of (str, array (n_signals, n_frames))
        Name and signals whose power is added: the sum over three axes does not depend on their orientation. Missing values count
        as the mean around them.
    rate : float
        Frames per second.
    frames : array of int (n_chosen,)
        The centers of the windows.
    lengths : sequence of int
        Of the windows, in frames.

    Returns
    -------
    columns : list of array of float32 (n_chosen,)
        Log energies of the bands; log2 of the dominant frequency, entropy, and center of the spectrum in log2 Hz.
    names : list of str
    """
    columns: list[Columns] = []
    names: list[str] = []
    step = max(1, int(rate / MAX_RATE))
    for name, signals in groups:
        detrended = np.nan_to_num(signals - centered_mean(signals, max(lengths) | 1))
        subsampled = centered_mean(detrended, step | 1)[:, ::step] if step > 1 else detrended
        for length in lengths:
            size = fast_length(length // step)
            if size < MIN_SAMPLES:
                continue
            bands = half_octave_bands(size, rate / step)
            columns += list(_spectra(subsampled, frames // step, size, bands))
            seconds = f"{length / rate:.3g}s"
            names += [f"{name}/{low:.3g}-{high:.3g}Hz/{seconds}" for low, high in bands.edges]
            names += [f"{name}/{summary}/{seconds}" for summary in ("strongest", "entropy", "center")]
    return columns, names


def fast_length(size: int) -> int:
    """Return the largest number of samples up to `size` without prime factors above 5, whose transform is several times faster.

    Examples
    --------
    >>> fast_length(401), fast_length(101), fast_length(16)
    (400, 100, 16)
    """
    while size > 1:
        rest = size
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            break
        size -= 1
    return size


@dataclass(frozen=True)
class FrequencyBands:
    """The frequencies of a spectrum and the bands they belong to.

    Attributes
    ----------
    frequencies : array (n_frequencies,)
        In Hz.
    edges : list of (float, float)
        In Hz, the lower one excluded.
    weights : array of float32 (n_bands, n_frequencies)
        1 where a frequency belongs to a band, else 0.
    """

    frequencies: Array
    edges: list[tuple[float, float]]
    weights: Columns


def half_octave_bands(size: int, rate: float) -> FrequencyBands:
    """Return the bands of a window of `size` samples, without frequency 0; each band has at least one frequency."""
    frequencies, resolution = np.asarray(np.fft.rfftfreq(size, 1 / rate), dtype=np.float64), rate / size
    borders = [1.5 * resolution]
    while borders[-1] * 2**OCTAVES < rate / 2:
        borders.append(max(borders[-1] * 2**OCTAVES, borders[-1] + resolution))
    edges = list(pairwise([0.5 * resolution, *borders]))
    weights = np.array([(frequencies > low) & (frequencies <= high) for low, high in edges], dtype=np.float32)
    return FrequencyBands(frequencies, edges, weights)


def _spectra(signals: Array, centers: NDArray[np.int64], size: int, bands: FrequencyBands) -> Columns:
    """Return one row for each band and summary, one column for each window."""
    from scipy.fft import rfft

    half = size // 2
    padded = np.pad(signals.astype(np.float32), ((0, 0), (half, size)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, size, axis=1)
    taper = np.hanning(size + 2)[1:-1].astype(np.float32)
    taper /= np.sqrt(np.square(taper).sum() * size)
    result = np.empty((len(bands.edges) + 3, len(centers)), dtype=np.float32)
    octaves = np.log2(np.maximum(bands.frequencies, bands.edges[0][0])).astype(np.float32)
    for start in range(0, len(centers), CHUNK):
        chunk = slice(start, start + CHUNK)
        power = np.zeros((len(centers[chunk]), len(bands.frequencies)), dtype=np.float32)
        for signal in windows:
            spectrum = rfft(signal[centers[chunk]] * taper, axis=1)
            power += spectrum.real**2 + spectrum.imag**2
        power[:, 0] = 0
        total = power.sum(axis=1) + FLOOR
        share = power / total[:, None]
        result[:-3, chunk] = np.log(power @ bands.weights.T + FLOOR).T
        result[-3, chunk] = octaves[power.argmax(axis=1)]
        result[-2, chunk] = -(share * np.log(share + FLOOR)).sum(axis=1)
        result[-1, chunk] = share @ octaves
    return result
