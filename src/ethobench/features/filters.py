"""Filters of sensor signals: axes of a sensor, high-pass and low-pass parts, resampling, normalization.

Missing samples (NaN or infinite) are interpolated linearly while a filter runs, and are NaN in the result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core.errors import ParameterError

Array = NDArray[np.float64]
LOW, HIGH = "low", "high"
SMALL = 1e-6  # added to divisors, as in BEBE
MAX_DENOMINATOR = 10_000  # of the ratio of two rates
MAX_DRIFT = 0.01  # frames by which the end of a resampled recording may be off


def axis_triples(channels: tuple[str, ...]) -> dict[str, list[int]]:
    """Return the sensors with three axes: channels that differ only in an X, Y or Z.

    Examples
    --------
    >>> axis_triples(("AccX", "AccY", "AccZ", "Depth", "GyrX_Back", "GyrY_Back", "GyrZ_Back"))
    {'Acc': [0, 1, 2], 'Gyr_Back': [4, 5, 6]}
    """
    sensors: dict[str, dict[str, int]] = {}
    for column, name in enumerate(channels):
        match = re.fullmatch(r"(.*?)([XYZxyz])(_.*)?", name)
        if match:
            sensors.setdefault(match.group(1) + (match.group(3) or ""), {})[match.group(2).upper()] = column
    return {name: [axes[a] for a in "XYZ"] for name, axes in sensors.items() if len(axes) == 3}


def is_accelerometer(channel: str) -> bool:
    """Return whether a channel (``AccX``, ``ax``) or a sensor (``Acc``, ``a``) measures acceleration, by its name."""
    return "acc" in channel.lower() or re.fullmatch("a[xyz]?", channel.lower()) is not None


def split_frequencies(values: ArrayLike, channels: Sequence[str], rate: float, cutoff: float) -> tuple[Array, tuple[str, ...]]:
    """Replace each acceleration channel by its low-frequency part (posture) and its high-frequency part (movement).

    This is the split of BEBE: a symmetric high-pass filter without delay. The low-frequency part is the difference to the signal.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    channels : sequence of str
        Those with ``Acc`` (or ``acc``) in their name are split; the others are unchanged.
    rate : float
        Frames per second.
    cutoff : float
        In Hz; 0 changes nothing.

    Returns
    -------
    values : array (n_frames, n_channels + n_acceleration_channels)
    channels : tuple of str
        ``AccX|low, AccX|high`` instead of ``AccX``.

    Examples
    --------
    >>> values, names = split_frequencies(np.ones((100, 2)), ["AccX", "Depth"], rate=20, cutoff=2)
    >>> names
    ('AccX|low', 'AccX|high', 'Depth')
    """
    signals = np.asarray(values, dtype=np.float64)
    check_cutoff(cutoff, rate)
    if cutoff == 0:
        return signals, tuple(channels)
    fast = iter(high_pass(signals[:, [is_accelerometer(name) for name in channels]], rate, cutoff).T)
    columns, names = [], []
    for column, name in zip(signals.T, channels, strict=True):
        if is_accelerometer(name):
            high = next(fast)
            columns += [column - high, high]
            names += [f"{name}|{LOW}", f"{name}|{HIGH}"]
        else:
            columns.append(column)
            names.append(name)
    return np.stack(columns, axis=1), tuple(names)


def check_cutoff(cutoff: float, rate: float) -> None:
    """Raise an error for a cutoff that no filter at this rate can have."""
    if not rate > 0:
        raise ParameterError(f"`rate` must be > 0 Hz, got {rate}")
    if not cutoff >= 0:
        raise ParameterError(f"`cutoff` must be > 0 Hz, or 0 for no filter, got {cutoff}")
    if cutoff >= rate / 2:
        raise ParameterError(
            f"`cutoff` must be below {rate / 2:g} Hz, half the rate of the recording, or 0 for no filter; got {cutoff:g} Hz"
        )


def filter_order(rate: float, cutoff: float) -> int:
    """Return the order of BEBE's high-pass filter, an even number; half of it is the filter's reach in frames to each side."""
    return 5 * round(rate / cutoff) // 2 * 2 if cutoff else 0


def high_pass(values: Array, rate: float, cutoff: float) -> Array:
    """Return the part of each channel above a cutoff frequency.

    Both ends are mirrored; a clip shorter than half the filter is mirrored several times.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    rate, cutoff : float
        In Hz, above 0.
    """
    from scipy.signal import firwin, oaconvolve

    n, order = len(values), filter_order(rate, cutoff)
    if not values.size:
        return np.zeros_like(values)
    taps = firwin(order + 1, cutoff, window="hamming", pass_zero=False, fs=rate)
    interpolated, missing = interpolate_missing(values)
    padded = interpolated[_mirrored_index(n, order // 2, order // 2)].T
    padded[:, 0] = 0.0  # BEBE mirrors one frame less at the start, so its first frame lacks the filter's last tap
    fast = np.ascontiguousarray(oaconvolve(padded, taps[None], mode="valid", axes=1).T)
    fast[missing] = np.nan
    return fast


def resample(values: ArrayLike, rate_from: float, rate_to: float) -> Array:
    """Resample channels to another rate, with an anti-aliasing filter.

    The first frames coincide. A new frame is missing where the nearest old one was. Constant and linear signals stay so.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    rate_from, rate_to : float
        In Hz. Their ratio is rounded to a fraction with a denominator up to 10,000. Where this would shift the end, values are
        interpolated linearly.

    Returns
    -------
    array (floor(n_frames * rate_to / rate_from + 0.5), n_channels)
    """
    from scipy.signal import resample_poly

    if not (0 < rate_from < np.inf and 0 < rate_to < np.inf):
        raise ParameterError(f"`rate_from` and `rate_to` must be finite and > 0 Hz, got {rate_from} and {rate_to}")
    signals = np.asarray(values, dtype=np.float64)
    length = math.floor(len(signals) * (rate_to / rate_from) + 0.5)  # as annotations are resampled
    if rate_from == rate_to or not signals.size or not length:
        return signals[:length].copy()
    ratio = Fraction(rate_to / rate_from).limit_denominator(MAX_DENOMINATOR)
    if not ratio:
        raise ParameterError(f"cannot resample {rate_from:g} Hz to {rate_to:g} Hz: the rates differ by a factor above {MAX_DENOMINATOR}")
    interpolated, missing = interpolate_missing(signals)
    positions = np.arange(length) * (rate_from / rate_to)  # of the new frames, in old frames
    first, slope = interpolated[0], (interpolated[-1] - interpolated[0]) / max(len(interpolated) - 1, 1)
    residual = interpolated - (first + slope * np.arange(len(interpolated))[:, None])  # 0 at both ends, where the filter assumes zeros
    if abs(float(ratio) * rate_from / rate_to - 1) * length > MAX_DRIFT:  # rates so close that no filter is needed
        old_frames = np.arange(len(interpolated))
        resampled = np.stack([np.interp(positions, old_frames, channel) for channel in residual.T], axis=1)
    else:
        resampled = np.asarray(resample_poly(residual, ratio.numerator, ratio.denominator, axis=0))[:length]
    resampled += first + slope * positions[:, None]
    nearest = np.minimum(np.rint(positions).astype(np.int64), len(signals) - 1)
    resampled[missing[nearest]] = np.nan
    return resampled


def unit_magnitude(values: ArrayLike, channels: Sequence[str]) -> Array:
    """Divide each accelerometer by the mean length of its vector over the clip, so that gravity is about 1."""
    scaled = np.array(values, dtype=np.float64)
    for name, columns in axis_triples(tuple(channels)).items():
        if is_accelerometer(name):
            length = np.linalg.norm(scaled[:, columns], axis=1, keepdims=True)
            scaled[:, columns] /= _finite_mean(length) + SMALL
    return scaled


def zscore(values: ArrayLike) -> Array:
    """Scale each channel of a clip to mean 0 and standard deviation 1; a constant channel becomes 0."""
    signals = np.asarray(values, dtype=np.float64)
    centered = signals - _finite_mean(signals)
    return np.asarray(centered / (np.sqrt(_finite_mean(centered**2)) + SMALL))


def interpolate_missing(values: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Interpolate missing samples linearly; a channel without any sample becomes 0.

    Parameters
    ----------
    values : array (n_frames, n_channels)

    Returns
    -------
    interpolated : array (n_frames, n_channels)
    missing : array of bool (n_frames, n_channels)
    """
    missing = ~np.isfinite(values)
    if not missing.any():
        return values, missing
    interpolated, frames = values.copy(), np.arange(len(values))
    for column, gap in zip(interpolated.T, missing.T, strict=True):
        column[gap] = 0.0 if gap.all() else np.interp(frames[gap], frames[~gap], column[~gap])
    return interpolated, missing


def _mirrored_index(n: int, before: int, after: int) -> NDArray[np.int64]:
    """Return the frames of a clip whose ends are mirrored, without repeating the end frames."""
    period = max(2 * (n - 1), 1)
    index = np.arange(-before, n + after) % period
    return np.minimum(index, period - index)


def _finite_mean(values: Array) -> Array:
    """Return the mean of each channel's finite samples, NaN where there are none."""
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(finite, values, 0.0).sum(axis=0) / finite.sum(axis=0))
