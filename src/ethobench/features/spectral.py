"""Spectral content around some frames: energies of bands half an octave wide, the strongest frequency, and how spread out they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ethobench.features.windows import centered_mean

Array = NDArray[np.float64]
Columns = NDArray[np.float32]
FASTEST = 50.0  # Hz to which signals are thinned: no behavior needs more
CHUNK = 2048  # windows at a time
OCTAVES = 0.5
FEWEST = 16  # samples of a window below which there is no spectrum to speak of
FLOOR = 1e-10


def spectral_features(
    groups: Sequence[tuple[str, Array]], rate: float, frames: NDArray[np.int64], lengths: Sequence[int]
) -> tuple[list[Columns], list[str]]:
    """Return the spectra of windows centred on some frames, as rows.

    Parameters
    ----------
    groups : sequence of (str, array (n_signals, n_frames))
        Signals whose energies are added: the sum over three axes does not depend on how they point. Missing values count as
        the mean around them.
    rate : float
        Frames per second.
    frames : array of int
        The frames whose windows are wanted.
    lengths : sequence of int
        Of the windows, in frames.

    Returns
    -------
    columns : list of array (n_frames_wanted,)
    names : list of str
    """
    columns: list[Columns] = []
    names: list[str] = []
    thin = max(1, int(rate / FASTEST))
    for name, signals in groups:
        steady = np.nan_to_num(signals - centered_mean(signals, max(lengths) | 1))
        coarse = centered_mean(steady, thin | 1)[:, ::thin] if thin > 1 else steady
        for length in lengths:
            size = length // thin
            if size < FEWEST:
                continue
            bands = half_octave_bands(size, rate / thin)
            found = _spectra(coarse, frames // thin, size, bands)
            columns += list(found)
            seconds = f"{length / rate:.3g}s"
            names += [f"{name}/{low:.3g}-{high:.3g}Hz/{seconds}" for low, high in bands.edges]
            names += [f"{name}/{what}/{seconds}" for what in ("strongest", "entropy", "center")]
    return columns, names


@dataclass(frozen=True)
class Bands:
    """Which frequencies of a spectrum belong to which band.

    Attributes
    ----------
    frequencies : array (n_frequencies,)
        In Hz.
    edges : list of (float, float)
        Above the first, up to the second.
    weights : array (n_bands, n_frequencies)
        1 where a frequency belongs to a band.
    """

    frequencies: Array
    edges: list[tuple[float, float]]
    weights: Columns


def half_octave_bands(size: int, rate: float) -> Bands:
    """Divide the spectrum of a window of `size` samples, from its second frequency on; a band holds at least one frequency."""
    frequencies, step = np.asarray(np.fft.rfftfreq(size, 1 / rate), dtype=np.float64), rate / size
    borders = [1.5 * step]
    while borders[-1] * 2**OCTAVES < rate / 2:
        borders.append(max(borders[-1] * 2**OCTAVES, borders[-1] + step))
    edges = list(pairwise([0.5 * step, *borders]))
    return Bands(frequencies, edges, np.array([(frequencies > low) & (frequencies <= high) for low, high in edges], dtype=np.float32))


def _spectra(signals: Array, centers: NDArray[np.int64], size: int, bands: Bands) -> Columns:
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
        chosen = slice(start, start + CHUNK)
        power = np.zeros((len(centers[chosen]), len(bands.frequencies)), dtype=np.float32)
        for signal in windows:
            spectrum = rfft(signal[centers[chosen]] * taper, axis=1)
            power += spectrum.real**2 + spectrum.imag**2
        power[:, 0] = 0
        total = power.sum(axis=1) + FLOOR
        share = power / total[:, None]
        result[:-3, chosen] = np.log(power @ bands.weights.T + FLOOR).T
        result[-3, chosen] = octaves[power.argmax(axis=1)]
        result[-2, chosen] = -(share * np.log(share + FLOOR)).sum(axis=1)
        result[-1, chosen] = share @ octaves
    return result
