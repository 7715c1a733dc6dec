"""Magnitudes of complex Morlet wavelets, as BEBE takes them from SciPy's former ``cwt``, by Fourier transforms.

A wavelet is applied by multiplying spectra. The signal's spectrum serves all wavelets of about the same length; short ones go over
the signal in blocks, so that no transform is much longer than its wavelet needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.features.filters import interpolate_missing, zscore

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
SHORTEST_BLOCK = 2048
BLOCK_PER_WAVELET = 4  # a block is at least so many times as long as its wavelets
BATCH = 2**16  # frames to transform at once


def wavelet_features(
    values: ArrayLike,
    channels: Sequence[str],
    rate: float,
    omega: float,
    c_max: float,
    n: int = 15,
    *,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[np.floating], tuple[str, ...]]:
    """Return how much each channel resembles waves of several lengths around each frame.

    Channels are first given mean 0 and standard deviation 1 over the clip. Missing samples are bridged by straight lines and are NaN
    in what comes out.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    channels : sequence of str
    rate : float
        Frames per second.
    omega : float
        About how many waves a wavelet has: more tell frequencies better, fewer tell times better.
    c_max : float
        The longest wavelength in seconds; the shortest is two frames. Where that is longer, wavelengths descend.
    n : int
        How many wavelengths, in equal ratios.
    dtype : dtype
        Of the features; they are computed in float64.

    Returns
    -------
    features : array (n_frames, n_channels * n)
        All wavelengths of the first channel, then those of the next.
    names : tuple of str
        ``AccX/wavelet_0.04s``, ...

    Examples
    --------
    >>> seconds = np.arange(0, 60, 0.1)[:, None]
    >>> features, names = wavelet_features(np.sin(2 * np.pi * seconds / 2), ["Depth"], rate=10, omega=5, c_max=20, n=5)
    >>> names[features[300].argmax()]
    'Depth/wavelet_2s'
    """
    signals = np.asarray(values, dtype=np.float64)
    if signals.ndim != 2 or signals.shape[1] != len(channels):
        raise MismatchError(f"values of shape {signals.shape} for {len(channels)} channels")
    lengths = wavelengths(rate, c_max, n)
    if not 0 < omega < math.inf:
        raise EthobenchError(f"omega is a number above 0, not {omega}")
    names = tuple(f"{channel}/wavelet_{length:.3g}s" for channel in channels for length in lengths)
    features = np.empty((len(signals), len(names)), dtype=dtype)
    if features.size:
        widths = rate * lengths * (omega + math.sqrt(2 + omega**2)) / (4 * math.pi)
        groups = _groups([morlet(width, omega, len(signals)) for width in widths], len(signals))
        bridged, missing = interpolate_missing(zscore(signals))
        magnitudes = np.empty((n, len(signals)))
        for channel, (signal, gone) in enumerate(zip(bridged.T, missing.T, strict=True)):
            for group in groups:
                group.apply(np.ascontiguousarray(signal), magnitudes)
            magnitudes[:, gone] = np.nan
            features[:, channel * n : (channel + 1) * n] = magnitudes.T
    return features, names


def wavelengths(rate: float, c_max: float, n: int) -> Array:
    """Return wavelengths in seconds, from two frames to the longest, in equal ratios."""
    if not (0 < rate < math.inf and 0 < c_max < math.inf and n >= 2):
        raise EthobenchError(
            f"wavelets need a rate and a longest wavelength above 0 and 2 or more wavelengths, not {rate} Hz, {c_max} s, {n}"
        )
    shortest = 2 / rate
    return np.asarray(shortest * (c_max / shortest) ** (np.arange(n) / (n - 1)))


def morlet(width: float, omega: float, n_frames: int) -> ComplexArray:
    """Return what a signal is convolved with: the conjugate of a wavelet, reversed, ten widths or the whole clip long.

    The length need not be whole; as in SciPy, the wavelet is centred as if it had that length, not the next whole one.
    """
    length = min(10 * width, n_frames)
    x = (np.arange(length) - (length - 1) / 2) / width
    wavelet = np.exp(1j * omega * x - x**2 / 2) / (math.pi**0.25 * math.sqrt(width))
    return np.asarray(wavelet.conj()[::-1])


@dataclass(frozen=True)
class _Group:
    """Wavelets that share the spectra of a signal's blocks.

    Attributes
    ----------
    places : list of int
        Which wavelets they are.
    spectra : list of array (length of a block,)
    lead : int
        Frames of a block before those that come out right.
    step : int
        Frames of a block that come out right.
    """

    places: list[int]
    spectra: list[ComplexArray]
    lead: int
    step: int

    def apply(self, signal: Array, magnitudes: Array) -> None:
        """Write the magnitudes of this group's wavelets."""
        from scipy import fft

        n, length = len(signal), len(self.spectra[0])
        n_blocks = -(-n // self.step)
        padded = np.zeros((n_blocks - 1) * self.step + length)
        padded[self.lead : self.lead + n] = signal
        blocks = np.lib.stride_tricks.sliding_window_view(padded, length)[:: self.step]
        batch = max(1, BATCH // length)
        for first in range(0, n_blocks, batch):
            waves = fft.fft(blocks[first : first + batch])
            start, stop = first * self.step, min((first + batch) * self.step, n)
            for place, spectrum in zip(self.places, self.spectra, strict=True):
                found = fft.ifft(waves * spectrum, overwrite_x=True)[:, self.lead : self.lead + self.step]
                magnitudes[place, start:stop] = np.abs(found).ravel()[: stop - start]


def _groups(kernels: list[ComplexArray], n_frames: int) -> list[_Group]:
    """Group wavelets by the length of the blocks that suits them; those nearly as long as the clip take it whole."""
    from scipy import fft

    by_block: dict[int, list[int]] = {}
    for place, kernel in enumerate(kernels):
        block = max(SHORTEST_BLOCK, 2 ** math.ceil(math.log2(BLOCK_PER_WAVELET * len(kernel))))
        by_block.setdefault(0 if block >= n_frames + len(kernel) else block, []).append(place)
    groups = []
    for block, places in by_block.items():
        after = max((len(kernels[place]) - 1) // 2 for place in places)
        before = max(len(kernels[place]) // 2 for place in places)
        if block:
            length, lead, step = block, before, block - before - after
        else:  # transforms are circular, so the same zeros lie before and behind the clip
            length, lead, step = fft.next_fast_len(n_frames + max(before, after)), 0, n_frames
        spectra = []
        for place in places:
            taps = np.zeros(length, dtype=np.complex128)
            taps[: len(kernels[place])] = kernels[place]
            spectra.append(fft.fft(np.roll(taps, -((len(kernels[place]) - 1) // 2))))
        groups.append(_Group(places, spectra, lead, step))
    return groups
