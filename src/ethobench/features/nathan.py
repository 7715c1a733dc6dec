"""Features of Nathan et al. (2012) as BEBE computes them, for all frames of a clip at once.

Every channel, and the length of each acceleration vector, has moments, extremes, autocorrelation and trend of the window around a frame.
Accelerometers also have correlations of their axes, circular variances of their direction, and the overall dynamic body acceleration
(ODBA).

References
----------
R. Nathan et al., "Using tri-axial acceleration data to identify behavioral modes of free-ranging animals", Journal of Experimental
Biology, 2012. B. Hoffman et al., "A benchmark for computational analysis of animal behavior, using animal-borne tags", Movement
Ecology, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ethobench.core.errors import MismatchError, ParameterError
from ethobench.features.filters import axis_triples, check_cutoff, filter_order, high_pass, interpolate_missing, is_accelerometer
from ethobench.features.windows import MOMENT_EPSILON, MOMENTS, window_moments

Array = NDArray[np.float64]
ColumnIndices = tuple[int, ...]
N_MOMENTS = len(MOMENTS)
AXIS_PAIRS = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
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
    """Compute the features of the window around each frame, in the published order.

    Windows extend ``max(ceil(seconds * rate), 3) // 2`` frames to both sides and are cut at the ends of the clip. A constant window, or a
    clip of one frame, has skewness, autocorrelation and correlations 0 and kurtosis -3. A vector of length 0 has inclination 90 degrees
    and azimuth 0. Missing samples are interpolated linearly; where more than half of a window is missing, the features of that sensor are
    NaN.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    channels : sequence of str
        Three axes with ``Acc`` (or ``acc``) in their name are an accelerometer, with ``Gyr`` a gyroscope; other channels are single.
    rate : float
        Frames per second.
    seconds : float
        Length of the window.
    cutoff : float
        In Hz: higher frequencies are the dynamic acceleration of ODBA.
    exact : bool
        Whether to keep two errors of BEBE's code: the azimuth is atan(y/z), not that of the x-y plane, and the trend is a sum of products,
        not the slope of a fitted line (per frame).
    dynamic_only : bool
        Whether the acceleration contains no gravity, so that all of it is dynamic and the cutoff is not used.
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
        raise MismatchError(f"`values` have shape {signals.shape}, but there are {len(channels)} channels")
    sensors = _Sensors.from_channels(tuple(channels))
    half = half_window(seconds, rate)
    if sensors.accelerometers and not dynamic_only:
        check_cutoff(cutoff, rate)
        if cutoff == 0:
            raise ParameterError("ODBA needs a `cutoff` > 0 Hz, or `dynamic_only=True` where the acceleration contains no gravity; got 0")
    computed, order = sensors.features(), sensors.published_order()
    features = np.empty((len(signals), len(order)), dtype=dtype)
    if len(signals):
        interpolated, missing = interpolate_missing(signals)
        acceleration = [interpolated[:, columns] for columns in sensors.accelerometers.values()]
        lengths = [np.sqrt((axes**2).sum(axis=1)) for axes in acceleration]
        dynamic = acceleration if dynamic_only else [high_pass(axes, rate, cutoff) for axes in acceleration]
        rows = [row for axes, length in zip(acceleration, lengths, strict=True) for row in (*axes.T, length)]
        rows += [*interpolated[:, sensors.others].T]
        means = [row for axes, length in zip(acceleration, lengths, strict=True) for row in _directions(axes, length, exact)]
        means += [np.abs(axes).sum(axis=1) for axes in dynamic]
        shape = (-1, len(signals))
        for frames, statistics in window_moments(np.reshape(rows, shape), half, sensors.pairs(), np.reshape(means, shape), slope=not exact):
            features[frames] = _select_columns(_circular_variances(statistics, len(acceleration)), order)
        _set_missing(features, [computed[index][1] for index in order], missing, half)
    return features, tuple(computed[index][0] for index in order)


def half_window(seconds: float, rate: float) -> int:
    """Return how many frames a window extends to each side of its frame."""
    if not 0 < seconds * rate < math.inf:
        raise ParameterError(f"`seconds` and `rate` must be finite and > 0, got {seconds} s and {rate} Hz")
    return max(math.ceil(seconds * rate), 3) // 2


def nathan_context(seconds: float, rate: float, cutoff: float) -> int:
    """Return how many more frames before and after a slice of a recording make its features equal to those of the recording.

    Gaps that extend beyond this context are interpolated from the slice alone, so features next to them may differ.
    """
    return half_window(seconds, rate) + filter_order(rate, cutoff) // 2


@dataclass(frozen=True)
class _Sensors:
    """The channels of each sensor, and the features that follow from them.

    Attributes
    ----------
    channels : tuple of str
    accelerometers, gyroscopes : dict of str to list of int
        The columns of the three axes.
    others : list of int
        Columns of all channels that are not accelerometers.
    """

    channels: tuple[str, ...]
    accelerometers: dict[str, list[int]]
    gyroscopes: dict[str, list[int]]
    others: list[int]

    @classmethod
    def from_channels(cls, channels: tuple[str, ...]) -> _Sensors:
        triples = axis_triples(channels)
        accelerometers = {name: columns for name, columns in triples.items() if is_accelerometer(name)}
        gyroscopes = {name: columns for name, columns in triples.items() if "gyr" in name.lower()}
        accelerations = {column for columns in accelerometers.values() for column in columns}
        return cls(channels, accelerometers, gyroscopes, [column for column in range(len(channels)) if column not in accelerations])

    def pairs(self) -> list[tuple[int, int]]:
        """Return the rows to correlate: x, y, z and length of each accelerometer come first, then the other channels."""
        n = 4 * len(self.accelerometers)
        triples = [[first, first + 1, first + 2] for first in range(0, n, 4)]
        triples += [[n + self.others.index(column) for column in columns] for columns in self.gyroscopes.values()]
        return [(triple[a], triple[b]) for triple in triples for a, b in AXIS_PAIRS.values()]

    def features(self) -> list[tuple[str, ColumnIndices]]:
        """Return the name of each feature and the channels it needs, in the order of computation."""
        accelerometers = [(name, tuple(columns)) for name, columns in self.accelerometers.items()]
        gyroscopes = [(name, tuple(columns)) for name, columns in self.gyroscopes.items()]
        rows = [(row, columns) for name, columns in accelerometers for row in (*(self.channels[c] for c in columns), f"{name}|norm")]
        rows += [(self.channels[column], (column,)) for column in self.others]
        return [
            *((f"{row}/{statistic}", columns) for statistic in MOMENTS for row, columns in rows),
            *((f"{name}/correlation_{axes}", columns) for name, columns in accelerometers + gyroscopes for axes in AXIS_PAIRS),
            *((f"{name}/{angle}_variance", columns) for name, columns in accelerometers for angle in ANGLES),
            *((f"{name}/odba", columns) for name, columns in accelerometers),
        ]

    def published_order(self) -> list[int]:
        """Return the indices of the computed features in the order of BEBE's table."""
        n, n_rows, n_pairs = len(self.accelerometers), 4 * len(self.accelerometers) + len(self.others), len(self.pairs())
        moments = np.arange(N_MOMENTS * n_rows).reshape(N_MOMENTS, n_rows)
        correlations = N_MOMENTS * n_rows + np.arange(n_pairs)
        angles = N_MOMENTS * n_rows + n_pairs + np.arange(2 * n)
        odba = N_MOMENTS * n_rows + n_pairs + 2 * n + np.arange(n)
        by_accelerometer = [
            indices
            for i in range(n)
            for indices in (moments[:, 4 * i : 4 * i + 4].ravel(), correlations[3 * i : 3 * i + 3], angles[2 * i : 2 * i + 2])
        ]
        order = np.concatenate([*by_accelerometer, odba, moments[:, 4 * n :].ravel(), correlations[3 * n :]])
        return [int(index) for index in order]


def _directions(axes: Array, length: Array, exact: bool) -> tuple[Array, Array, Array, Array]:
    """Return cosine and sine of the inclination and of the azimuth of vectors."""
    x, y, z = axes.T
    cos_inclination = z / (length + MOMENT_EPSILON)
    opposite, adjacent = (y, z + MOMENT_EPSILON) if exact else (y, x)
    if exact:  # the arctangent of a ratio lies in the right half-plane
        opposite, adjacent = np.copysign(opposite, opposite * adjacent), np.abs(adjacent)
    radius = np.hypot(opposite, adjacent)
    sin_azimuth = np.divide(opposite, radius, out=np.zeros_like(radius), where=radius > 0)
    cos_azimuth = np.divide(adjacent, radius, out=np.ones_like(radius), where=radius > 0)
    return cos_inclination, np.sqrt(np.maximum(1 - cos_inclination * cos_inclination, 0)), cos_azimuth, sin_azimuth


def _circular_variances(statistics: Array, n_accelerometers: int) -> Array:
    """Replace the mean cosines and sines of angles by their circular variance."""
    stop = len(statistics) - n_accelerometers
    start = stop - 4 * n_accelerometers
    variance = 1 - np.hypot(statistics[start:stop:2], statistics[start + 1 : stop : 2])
    return np.concatenate([statistics[:start], variance, statistics[stop:]])


def _select_columns(rows: Array, order: list[int]) -> Array:
    """Return chosen rows as columns."""
    # Rows a multiple of a page apart would compete for the cache, hence the padding.
    padded = np.empty((len(order), rows.shape[1] + 8))[:, :-8]
    padded[:] = rows[order]
    return padded.T


def _set_missing(features: NDArray[np.floating], needed: list[ColumnIndices], missing: NDArray[np.bool_], half: int) -> None:
    """Set features to NaN where more than half of the window of a sensor is missing."""
    n = len(features)
    first, last = np.maximum(np.arange(n) - half, 0), np.minimum(np.arange(n) + half, n - 1)
    for columns in set(needed):
        incomplete = missing[:, columns].any(axis=1)
        if incomplete.any():
            n_before = np.concatenate([[0], np.cumsum(incomplete)])
            mostly_missing = 2 * (n_before[last + 1] - n_before[first]) > last - first + 1
            features[np.ix_(mostly_missing, [feature for feature, its in enumerate(needed) if its == columns])] = np.nan
