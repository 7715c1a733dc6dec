"""Magnitudes of complex Morlet wavelets, equal to those that BEBE computes with SciPy's former ``cwt``, by Fourier transforms.

A wavelet transform is a product of spectra. The spectrum of the signal is shared by all wavelets of about the same length; short
wavelets are applied to blocks of the signal, so that no transform is much longer than its wavelet requires.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ethobench.core.errors import MismatchError, ParameterError
from ethobench.features.filters import interpolate_missing, zscore

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
MIN_BLOCK_FRAMES = 2048
BLOCK_PER_WAVELET = 4  # minimum length of a block, in lengths of its wavelets
BATCH_FRAMES = 2**16  # to transform at once


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
    """Compute the magnitude of the wavelet transform of each channel at several wavelengths.

    Channels are first scaled to mean 0 and standard deviation 1 over the clip. Missing samples are interpolated linearly and are NaN in
    the result.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    channels : sequence of str
    rate : float
        Frames per second.
    omega : float
        Approximate number of waves in a wavelet: more resolve frequencies better, fewer resolve times better.
    c_max : float
        The longest wavelength in seconds; the shortest is two frames. Where two frames are longer, wavelengths descend.
    n : int
        Number of wavelengths, spaced in equal ratios.
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
        raise MismatchError(f"`values` have shape {signals.shape}, but there are {len(channels)} channels")
    lengths = wavelengths(rate, c_max, n)
    if not 0 < omega < math.inf:
        raise ParameterError(f"`omega` must be finite and > 0, got {omega}")
    names = tuple(f"{channel}/wavelet_{length:.3g}s" for channel in channels for length in lengths)
    features = np.empty((len(signals), len(names)), dtype=dtype)
    if features.size:
        widths = rate * lengths * (omega + math.sqrt(2 + omega**2)) / (4 * math.pi)
        groups = _group_wavelets([morlet(width, omega, len(signals)) for width in widths], len(signals))
        interpolated, missing = interpolate_missing(zscore(signals))
        magnitudes = np.empty((n, len(signals)))
        for channel, (signal, gap) in enumerate(zip(interpolated.T, missing.T, strict=True)):
            for group in groups:
                group.apply(np.ascontiguousarray(signal), magnitudes)
            magnitudes[:, gap] = np.nan
            features[:, channel * n : (channel + 1) * n] = magnitudes.T
    return features, names


def wavelengths(rate: float, c_max: float, n: int) -> Array:
    """Return wavelengths in seconds, from two frames to the longest, spaced in equal ratios."""
    if not (0 < rate < math.inf and 0 < c_max < math.inf and n >= 2):
        raise ParameterError(f"`rate` and `c_max` must be finite and > 0, and `n` >= 2; got {rate} Hz, {c_max} s and {n}")
    shortest = 2 / rate
    return np.asarray(shortest * (c_max / shortest) ** (np.arange(n) / (n - 1)))


def morlet(width: float, omega: float, n_frames: int) -> ComplexArray:
    """Return the convolution kernel of a wavelet: its conjugate, reversed, ten widths or the whole clip long.

    The length need not be an integer; as in SciPy, the wavelet is centered as if it had that length, not the next integer.
    """
    length = min(10 * width, n_frames)
    x = (np.arange(length) - (length - 1) / 2) / width
    wavelet = np.exp(1j * omega * x - x**2 / 2) / (math.pi**0.25 * math.sqrt(width))
    return np.asarray(wavelet.conj()[::-1])


@dataclass(frozen=True)
class _WaveletGroup:
    """Wavelets that share the spectra of a signal's blocks.

    Attributes
    ----------
    indices : list of int
        Of the wavelets.
    spectra : list of array (length of a block,)
    lead : int
        Frames of a block before the valid ones.
    step : int
        Valid frames of a block.
    """

    indices: list[int]
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
        batch = max(1, BATCH_FRAMES // length)
        for first in range(0, n_blocks, batch):
            block_spectra = fft.fft(blocks[first : first + batch])
            start, stop = first * self.step, min((first + batch) * self.step, n)
            for index, spectrum in zip(self.indices, self.spectra, strict=True):
                transform = fft.ifft(block_spectra * spectrum, overwrite_x=True)[:, self.lead : self.lead + self.step]
                magnitudes[index, start:stop] = np.abs(transform).ravel()[: stop - start]


def _group_wavelets(kernels: list[ComplexArray], n_frames: int) -> list[_WaveletGroup]:
    """Group wavelets by the length of their blocks; those nearly as long as the clip use one block for all of it."""
    from scipy import fft

    by_block: dict[int, list[int]] = {}
    for index, kernel in enumerate(kernels):
        block = max(MIN_BLOCK_FRAMES, 2 ** math.ceil(math.log2(BLOCK_PER_WAVELET * len(kernel))))
        by_block.setdefault(0 if block >= n_frames + len(kernel) else block, []).append(index)
    groups = []
    for block, indices in by_block.items():
        after = max((len(kernels[index]) - 1) // 2 for index in indices)
        before = max(len(kernels[index]) // 2 for index in indices)
        if block:
            length, lead, step = block, before, block - before - after
        else:  # transforms are circular, so the same zeros are before and after the clip
            length, lead, step = fft.next_fast_len(n_frames + max(before, after)), 0, n_frames
        spectra = []
        for index in indices:
            taps = np.zeros(length, dtype=np.complex128)
            taps[: len(kernels[index])] = kernels[index]
            spectra.append(fft.fft(np.roll(taps, -((len(kernels[index]) - 1) // 2))))
        groups.append(_WaveletGroup(indices, spectra, lead, step))
    return groups
