"""Signals made ready for features: slow and fast parts apart, another rate, other units.

Samples that are missing (NaN or infinite) are bridged by straight lines while a filter runs, and are NaN in what comes out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core.errors import EthobenchError

Array = NDArray[np.float64]
LOW, HIGH = "low", "high"
SMALL = 1e-6  # added to what divides, as BEBE does
FINEST_RATIO = 10_000  # largest denominator of two rates
DRIFT = 0.01  # frames by which the end may be off


def is_accelerometer(channel: str) -> bool:
    """Tell whether a channel is acceleration, by its name."""
    return "acc" in channel.lower()


def split_frequencies(values: ArrayLike, channels: Sequence[str], rate: float, cutoff: float) -> tuple[Array, tuple[str, ...]]:
    """Replace each acceleration channel by its slow part (posture) and its fast part (movement).

    This is BEBE's split: a symmetric high-pass filter without delay; what it takes away is the slow part.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    channels : sequence of str
        Those with ``Acc`` (or ``acc``) in their name are split; the others stay as they are.
    rate : float
        Frames per second.
    cutoff : float
        In Hz; 0 leaves everything as it is.

    Returns
    -------
    values : array (n_frames, n_channels + n_acceleration_channels)
    channels : tuple of str
        ``AccX|low, AccX|high`` in the place of ``AccX``.

    Examples
    --------
    >>> parts, names = split_frequencies(np.ones((100, 2)), ["AccX", "Depth"], rate=20, cutoff=2)
    >>> names
    ('AccX|low', 'AccX|high', 'Depth')
    """
    signals = np.asarray(values, dtype=np.float64)
    check_cutoff(cutoff, rate)
    if cutoff == 0:
        return signals, tuple(channels)
    fast = high_pass(signals[:, [is_accelerometer(name) for name in channels]], rate, cutoff)
    columns, names, place = [], [], 0
    for column, name in zip(signals.T, channels, strict=True):
        if is_accelerometer(name):
            columns += [column - fast[:, place], fast[:, place]]
            names += [f"{name}|{LOW}", f"{name}|{HIGH}"]
            place += 1
        else:
            columns.append(column)
            names.append(name)
    return np.stack(columns, axis=1), tuple(names)


def check_cutoff(cutoff: float, rate: float) -> None:
    """Refuse a cutoff that no filter at this rate can have."""
    if not rate > 0:
        raise EthobenchError(f"a rate is a number of Hz above 0, not {rate}")
    if not cutoff >= 0:
        raise EthobenchError(f"a cutoff is 0 (no filter) or a number of Hz above 0, not {cutoff}")
    if cutoff >= rate / 2:
        raise EthobenchError(
            f"a cutoff of {cutoff:g} Hz is too high: it must be below {rate / 2:g} Hz, half the rate of the recording, or 0 for no filter"
        )


def filter_order(rate: float, cutoff: float) -> int:
    """Return the order of BEBE's high-pass filter, an even number; half of it is how many frames it looks to each side."""
    return 5 * round(rate / cutoff) // 2 * 2 if cutoff else 0


def high_pass(values: Array, rate: float, cutoff: float) -> Array:
    """Return what is faster than a cutoff above 0, for each channel.

    Both ends are mirrored; a clip shorter than half the filter is mirrored again and again.
    """
    from scipy.signal import firwin, oaconvolve

    n, order = len(values), filter_order(rate, cutoff)
    if not values.size:
        return np.zeros_like(values)
    taps = firwin(order + 1, cutoff, window="hamming", pass_zero=False, fs=rate)
    bridged, missing = interpolate_missing(values)
    padded = bridged[_mirrored(n, order // 2, order // 2)].T
    padded[:, 0] = 0.0  # BEBE mirrors one frame less in front, so its first frame lacks the filter's last tap
    fast = np.ascontiguousarray(oaconvolve(padded, taps[None], mode="valid", axes=1).T)
    fast[missing] = np.nan
    return fast


def resample(values: ArrayLike, rate_from: float, rate_to: float) -> Array:
    """Bring channels to another rate, without aliases.

    The first frames coincide. Where the nearest of the old frames was missing, the new one is. Constant and straight signals stay so.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    rate_from, rate_to : float
        In Hz. Their ratio is taken to be a fraction with a denominator up to 10,000; where the end would drift, values in between lie
        on straight lines.

    Returns
    -------
    array (floor(n_frames * rate_to / rate_from + 0.5), n_channels)
    """
    from scipy.signal import resample_poly

    if not (0 < rate_from < np.inf and 0 < rate_to < np.inf):
        raise EthobenchError(f"rates are numbers of Hz above 0, not {rate_from} and {rate_to}")
    signals = np.asarray(values, dtype=np.float64)
    length = math.floor(len(signals) * (rate_to / rate_from) + 0.5)  # as annotations are resampled
    if rate_from == rate_to or not signals.size or not length:
        return signals[:length].copy()
    ratio = Fraction(rate_to / rate_from).limit_denominator(FINEST_RATIO)
    if not ratio:
        raise EthobenchError(f"{rate_from:g} Hz cannot be resampled to {rate_to:g} Hz: they are more than {FINEST_RATIO}-fold apart")
    bridged, missing = interpolate_missing(signals)
    places = np.arange(length) * (rate_from / rate_to)
    first, slope = bridged[0], (bridged[-1] - bridged[0]) / max(len(bridged) - 1, 1)
    around_line = bridged - (first + slope * np.arange(len(bridged))[:, None])  # 0 at both ends, as the filter sees what lies beyond
    if abs(float(ratio) * rate_from / rate_to - 1) * length > DRIFT:  # rates so close that nothing needs a filter
        known = np.arange(len(bridged))
        resampled = np.stack([np.interp(places, known, channel) for channel in around_line.T], axis=1)
    else:
        resampled = np.asarray(resample_poly(around_line, ratio.numerator, ratio.denominator, axis=0))[:length]
    resampled += first + slope * places[:, None]
    nearest = np.minimum(np.rint(places).astype(np.int64), len(signals) - 1)
    resampled[missing[nearest]] = np.nan
    return resampled


def unit_magnitude(values: ArrayLike, channels: Sequence[str]) -> Array:
    """Divide each accelerometer by the mean length of its vector over the clip, so that gravity is about 1."""
    scaled = np.array(values, dtype=np.float64)
    for name, places in axis_triples(tuple(channels)).items():
        if is_accelerometer(name):
            length = np.linalg.norm(scaled[:, places], axis=1, keepdims=True)
            scaled[:, places] /= _mean(length) + SMALL
    return scaled


def zscore(values: ArrayLike) -> Array:
    """Give each channel of a clip mean 0 and standard deviation 1; a constant one becomes 0."""
    signals = np.asarray(values, dtype=np.float64)
    centred = signals - _mean(signals)
    return np.asarray(centred / (np.sqrt(_mean(centred**2)) + SMALL))


def interpolate_missing(values: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Fill missing samples on a straight line between their neighbours (0 where a channel has none), and tell which they were."""
    missing = ~np.isfinite(values)
    if not missing.any():
        return values, missing
    bridged, frames = values.copy(), np.arange(len(values))
    for column, gone in zip(bridged.T, missing.T, strict=True):
        column[gone] = 0.0 if gone.all() else np.interp(frames[gone], frames[~gone], column[~gone])
    return bridged, missing


def _mirrored(n: int, before: int, after: int) -> NDArray[np.int64]:
    """Return which frames stand before, in and after a clip whose ends are mirrors, the end frames not repeated."""
    period = max(2 * (n - 1), 1)
    places = np.arange(-before, n + after) % period
    return np.minimum(places, period - places)


def _mean(values: Array) -> Array:
    """Return the mean of each channel's known samples, NaN where there are none."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))


def axis_triples(channels: tuple[str, ...]) -> dict[str, list[int]]:
    """Find channels that differ only in an X, Y or Z: ``AccX, AccY, AccZ`` or ``AccX_Back, AccY_Back, AccZ_Back``."""
    found: dict[str, dict[str, int]] = {}
    for place, name in enumerate(channels):
        match = re.fullmatch(r"(.*?)([XYZxyz])(_.*)?", name)
        if match:
            found.setdefault(match.group(1) + (match.group(3) or ""), {})[match.group(2).upper()] = place
    return {name: [axes[a] for a in "XYZ"] for name, axes in found.items() if len(axes) == 3}
