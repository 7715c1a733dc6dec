"""The features of Nathan et al. 2012 as BEBE computes them, for every frame of a clip at once.

Of every channel, and of the length of each acceleration vector: moments, extremes, autocorrelation and trend of the window around a
frame. Of accelerometers also how the axes move together, how much the direction turns, and how strong movement is (ODBA).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.features.filters import axis_triples, check_cutoff, filter_order, high_pass, interpolate_missing, is_accelerometer
from ethobench.features.windows import BASICS, TINY, window_moments

Array = NDArray[np.float64]
Places = tuple[int, ...]
N_BASICS = len(BASICS)
AXES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
ANGLES = ("inclination", "azimuth")


def nathan_features(
    values: ArrayLike,
    channels: Sequence[str],
    rate: float,
    seconds: float,
    cutoff: float = 1.6,
    *,
    exact: bool = True,
    dynamic_only: bool = False,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[np.floating], tuple[str, ...]]:
    """Return the features of the window around each frame, in the published order.

    Windows reach ``max(ceil(seconds * rate), 3) // 2`` frames to both sides and are cut at the ends of the clip. A constant window
    has skewness, autocorrelation and correlations 0 and kurtosis -3, and so has a clip of one frame. A vector of length 0 has
    inclination 90 degrees and azimuth 0. Missing samples are bridged by straight lines; where more than half of a window is
    missing, the features of that sensor are NaN.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    channels : sequence of str
        Triples of axes with ``Acc`` in their name (or ``acc``) are accelerometers, those with ``Gyr`` gyroscopes; others are taken alone.
    rate : float
        Frames per second.
    seconds : float
        Length of the window.
    cutoff : float
        In Hz: what is faster counts as movement in ODBA.
    exact : bool
        Keep two slips of BEBE's code: the azimuth is atan(y/z), not that of the x-y plane; the trend is a sum of products, not divided
        to the slope of the best line (per frame).
    dynamic_only : bool
        Gravity is not in the acceleration, so all of it is movement, and the cutoff is not used.
    dtype : dtype
        Of the features; they are computed in float64.

    Returns
    -------
    features : array (n_frames, n_features)
    names : tuple of str
        ``AccX/mean``, ``Acc|norm/std``, ``Acc/correlation_xy``, ``Acc/odba``, ``Depth/trend``, ...

    Examples
    --------
    >>> features, names = nathan_features(np.eye(500, 4), ["AccX", "AccY", "AccZ", "Depth"], rate=25, seconds=2)
    >>> features.shape, names[0], names[-1]
    ((500, 46), 'AccX/mean', 'Depth/trend')
    """
    signals = np.asarray(values, dtype=np.float64)
    if signals.ndim != 2 or signals.shape[1] != len(channels) or not channels:
        raise MismatchError(f"values of shape {signals.shape} for {len(channels)} channels")
    sensors = _Sensors.among(tuple(channels))
    half = half_window(seconds, rate)
    if sensors.accelerometers and not dynamic_only:
        check_cutoff(cutoff, rate)
        if cutoff == 0:
            raise EthobenchError(
                "ODBA needs to know what is movement: give a cutoff above 0 Hz, or dynamic_only where gravity is taken out"
            )
    computed, order = sensors.features(), sensors.published_order()
    features = np.empty((len(signals), len(order)), dtype=dtype)
    if len(signals):
        bridged, missing = interpolate_missing(signals)
        acceleration = [bridged[:, places] for places in sensors.accelerometers.values()]
        lengths = [np.sqrt((axes**2).sum(axis=1)) for axes in acceleration]
        moving = acceleration if dynamic_only else [high_pass(axes, rate, cutoff) for axes in acceleration]
        rows = [row for axes, length in zip(acceleration, lengths, strict=True) for row in (*axes.T, length)]
        rows += [*bridged[:, sensors.alone].T]
        means = [row for axes, length in zip(acceleration, lengths, strict=True) for row in _directions(axes, length, exact)]
        means += [np.abs(axes).sum(axis=1) for axes in moving]
        shape = (-1, len(signals))
        for frames, statistics in window_moments(np.reshape(rows, shape), half, sensors.pairs(), np.reshape(means, shape), slope=not exact):
            features[frames] = _by_frame(_turning(statistics, len(acceleration)), order)
        _blank(features, [computed[place][1] for place in order], missing, half)
    return features, tuple(computed[place][0] for place in order)


def half_window(seconds: float, rate: float) -> int:
    """Return how many frames a window reaches to each side of its frame."""
    if not 0 < seconds * rate < math.inf:
        raise EthobenchError(f"the length of a window and a rate are above 0, not {seconds} s and {rate} Hz")
    return max(math.ceil(seconds * rate), 3) // 2


def nathan_context(seconds: float, rate: float, cutoff: float) -> int:
    """Return how many frames before and after a slice of a recording make its features those of the whole.

    Gaps that reach beyond this context are bridged with what the slice knows, so features beside them may differ.
    """
    return half_window(seconds, rate) + filter_order(rate, cutoff) // 2


@dataclass(frozen=True)
class _Sensors:
    """Which channels belong together, and the features that follow from it.

    Attributes
    ----------
    channels : tuple of str
    accelerometers, gyroscopes : dict of str to list of int
        The places of the three axes.
    alone : list of int
        All channels but accelerometers.
    """

    channels: tuple[str, ...]
    accelerometers: dict[str, list[int]]
    gyroscopes: dict[str, list[int]]
    alone: list[int]

    @classmethod
    def among(cls, channels: tuple[str, ...]) -> _Sensors:
        triples = axis_triples(channels)
        accelerometers = {name: places for name, places in triples.items() if is_accelerometer(name)}
        gyroscopes = {name: places for name, places in triples.items() if "gyr" in name.lower()}
        taken = {place for places in accelerometers.values() for place in places}
        return cls(channels, accelerometers, gyroscopes, [place for place in range(len(channels)) if place not in taken])

    def pairs(self) -> list[tuple[int, int]]:
        """Return the rows to correlate: x, y, z and length of each accelerometer come first, then the channels alone."""
        n = 4 * len(self.accelerometers)
        triples = [[first, first + 1, first + 2] for first in range(0, n, 4)]
        triples += [[n + self.alone.index(place) for place in places] for places in self.gyroscopes.values()]
        return [(triple[a], triple[b]) for triple in triples for a, b in AXES.values()]

    def features(self) -> list[tuple[str, Places]]:
        """Return the name of each feature and the channels it needs, in the order of computing."""
        sensors = [(name, tuple(places)) for name, places in self.accelerometers.items()]
        gyroscopes = [(name, tuple(places)) for name, places in self.gyroscopes.items()]
        rows = [(row, places) for name, places in sensors for row in (*(self.channels[p] for p in places), f"{name}|norm")]
        rows += [(self.channels[place], (place,)) for place in self.alone]
        return [
            *((f"{row}/{statistic}", places) for statistic in BASICS for row, places in rows),
            *((f"{name}/correlation_{axes}", places) for name, places in sensors + gyroscopes for axes in AXES),
            *((f"{name}/{angle}_variance", places) for name, places in sensors for angle in ANGLES),
            *((f"{name}/odba", places) for name, places in sensors),
        ]

    def published_order(self) -> list[int]:
        """Return which of the computed features come first, second, ... in BEBE's table."""
        n, n_rows, n_pairs = len(self.accelerometers), 4 * len(self.accelerometers) + len(self.alone), len(self.pairs())
        basics = np.arange(N_BASICS * n_rows).reshape(N_BASICS, n_rows)
        correlations = N_BASICS * n_rows + np.arange(n_pairs)
        angles = N_BASICS * n_rows + n_pairs + np.arange(2 * n)
        odba = N_BASICS * n_rows + n_pairs + 2 * n + np.arange(n)
        parts = [
            part
            for i in range(n)
            for part in (basics[:, 4 * i : 4 * i + 4].ravel(), correlations[3 * i : 3 * i + 3], angles[2 * i : 2 * i + 2])
        ]
        order = np.concatenate([*parts, odba, basics[:, 4 * n :].ravel(), correlations[3 * n :]])
        return [int(place) for place in order]


def _directions(axes: Array, length: Array, exact: bool) -> tuple[Array, Array, Array, Array]:
    """Return cosine and sine of the inclination and of the azimuth of vectors."""
    x, y, z = axes.T
    cosine = z / (length + TINY)
    across, along = (y, z + TINY) if exact else (y, x)
    if exact:  # the arctangent of a ratio knows no sign: it points to the right half
        across, along = np.copysign(across, across * along), np.abs(along)
    radius = np.hypot(across, along)
    to_side = np.divide(across, radius, out=np.zeros_like(radius), where=radius > 0)
    ahead = np.divide(along, radius, out=np.ones_like(radius), where=radius > 0)
    return cosine, np.sqrt(np.maximum(1 - cosine * cosine, 0)), ahead, to_side


def _turning(statistics: Array, n_accelerometers: int) -> Array:
    """Replace the mean cosines and sines of angles by the circular variance."""
    stop = len(statistics) - n_accelerometers
    start = stop - 4 * n_accelerometers
    variance = 1 - np.hypot(statistics[start:stop:2], statistics[start + 1 : stop : 2])
    return np.concatenate([statistics[:start], variance, statistics[stop:]])


def _by_frame(rows: Array, order: list[int]) -> Array:
    """Return chosen rows as columns."""
    apart = np.empty((len(order), rows.shape[1] + 8))[:, :-8]  # rows that are whole pages apart would drive each other out of the cache
    apart[:] = rows[order]
    return apart.T


def _blank(features: NDArray[np.floating], needed: list[Places], missing: NDArray[np.bool_], half: int) -> None:
    """Set features to NaN where more than half of the window of a sensor is missing."""
    n = len(features)
    first, last = np.maximum(np.arange(n) - half, 0), np.minimum(np.arange(n) + half, n - 1)
    for places in set(needed):
        gone = missing[:, places].any(axis=1)
        if gone.any():
            before = np.concatenate([[0], np.cumsum(gone)])
            blank = 2 * (before[last + 1] - before[first]) > last - first + 1
            features[np.ix_(blank, [column for column, its in enumerate(needed) if its == places])] = np.nan
