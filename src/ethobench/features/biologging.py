"""Signals of bio-logger tags in forms that depend little on how the tag is attached: one row per signal.

Acceleration is split into posture (its mean over two seconds, mostly gravity) and dynamic acceleration (the rest). Dynamic acceleration,
and the vectors of the tag's other sensors, are decomposed along and across the direction of gravity; posture is compared with the
median posture of the recording. The axes themselves are kept too, because many tags are attached in the same way.

References
----------
ODBA: R. P. Wilson et al., "Moving towards acceleration for estimates of activity-specific metabolic rate in free-living animals", Journal
of Animal Ecology, 2006. VeDBA: L. Qasem et al., "Tri-axial dynamic acceleration as a proxy for animal energy expenditure", PLoS ONE, 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Signals
from ethobench.features.filters import axis_triples, is_accelerometer
from ethobench.features.windows import centered_mean

Array = NDArray[np.float64]
POSTURE_SECONDS = 2.0  # of the mean that is the posture
SAMPLE_FRAMES = 20_000  # enough frames to measure a recording
EPSILON = 1e-9


@dataclass(frozen=True)
class TagOrientation:
    """Properties of an accelerometer that do not change over a recording.

    Attributes
    ----------
    gravity : float
        Median length of its vector: gravity, unless gravity was removed from the signal.
    direction : tuple of float
        Direction of the median vector, of length 1.
    """

    gravity: float
    direction: tuple[float, float, float]


def estimate_orientations(signals: Signals) -> dict[str, TagOrientation]:
    """Measure the accelerometers of a recording, by the names of their sensors."""
    sample = np.asarray(signals.values[:: max(1, len(signals) // SAMPLE_FRAMES)], dtype=np.float64)
    orientations = {}
    for name, columns in axis_triples(signals.channels).items():
        if is_accelerometer(name):
            axes = sample[:, columns]
            axes = axes[np.isfinite(axes).all(axis=1)]
            median = np.median(axes, axis=0) if len(axes) else np.zeros(3)
            length = float(np.median(np.linalg.norm(axes, axis=1))) if len(axes) else 0.0
            x, y, z = median / max(float(np.linalg.norm(median)), EPSILON)
            orientations[name] = TagOrientation(length if length > EPSILON else 1.0, (float(x), float(y), float(z)))
    return orientations


def tag_signals(signals: Signals, rate: float, orientations: dict[str, TagOrientation]) -> tuple[Array, tuple[str, ...]]:
    """Compute the signals of a tag.

    Parameters
    ----------
    signals : Signals
        A recording, or a slice of it.
    rate : float
        Frames per second.
    orientations : mapping of str to TagOrientation
        Of the whole recording.

    Returns
    -------
    values : array (n_signals, n_frames)
        NaN where a sample is missing.
    names : tuple of str
    """
    values = np.ascontiguousarray(np.asarray(signals.values, dtype=np.float64).T)
    values[~np.isfinite(values)] = np.nan
    rows: dict[str, Array] = {}
    triples = axis_triples(signals.channels)
    gravity = {}
    for name, columns in triples.items():
        if name in orientations:
            axes = values[columns] / orientations[name].gravity
            gravity[name] = _add_accelerometer(rows, name, [signals.channels[c] for c in columns], axes, rate, orientations[name])
    for name, columns in triples.items():
        if name not in orientations:
            down = gravity.get(_same_tag(name, gravity))
            _add_other_sensor(rows, name, [signals.channels[c] for c in columns], values[columns], rate, down)
    in_triples = {column for columns in triples.values() for column in columns}
    for column in sorted({*range(len(signals.channels))} - in_triples):
        rows[signals.channels[column]] = values[column]
        rows[f"{signals.channels[column]}|change"] = rate_of_change(values[column], rate)
    return np.stack(list(rows.values())), tuple(rows)


def axis_rows(names: Sequence[str], channels: tuple[str, ...]) -> dict[str, list[int]]:
    """Return the rows of each sensor's three axes among the signals."""
    return {name: [names.index(channels[column]) for column in columns] for name, columns in axis_triples(channels).items()}


def posture_frames(rate: float) -> int:
    """Return the odd number of frames whose mean is the posture."""
    return max(3, 2 * round(POSTURE_SECONDS * rate / 2) + 1)


def change_frames(rate: float) -> int:
    """Return the number of frames over which changes are measured, to both sides."""
    return max(1, round(rate / 2))


def rate_of_change(row: Array, rate: float) -> Array:
    """Return the change per second over half a second to both sides, at the ends of the recording to one."""
    step = change_frames(rate)
    frames = np.arange(len(row))
    later, earlier = np.minimum(frames + step, len(row) - 1), np.maximum(frames - step, 0)
    return np.asarray((row[later] - row[earlier]) * rate / np.maximum(later - earlier, 1))


def _add_accelerometer(
    rows: dict[str, Array], name: str, axes: list[str], values: Array, rate: float, orientation: TagOrientation
) -> Array:
    """Add the signals of an accelerometer; return the direction of gravity in each frame."""
    rows.update(zip(axes, values, strict=True))
    posture = centered_mean(values, posture_frames(rate))
    dynamic = values - posture
    down = posture / np.maximum(_vector_length(posture), EPSILON)
    along = (dynamic * down).sum(axis=0)
    vedba = _vector_length(dynamic)
    rows[f"{name}|norm"] = _vector_length(values)
    rows[f"{name}|odba"] = np.abs(dynamic).sum(axis=0)
    rows[f"{name}|vedba"] = vedba
    rows[f"{name}|along"] = along
    rows[f"{name}|across"] = np.sqrt(np.maximum(vedba**2 - along**2, 0))
    rows[f"{name}|jerk"] = _vector_length(np.diff(values, axis=1, prepend=values[:, :1])) * rate
    rows[f"{name}|upright"] = np.array(orientation.direction) @ down
    rows[f"{name}|tilting"] = _vector_length(np.stack([rate_of_change(axis, rate) for axis in down]))
    return down


def _add_other_sensor(rows: dict[str, Array], name: str, axes: list[str], values: Array, rate: float, down: Array | None) -> None:
    """Add the signals of a gyroscope, magnetometer or other sensor with three axes."""
    rows.update(zip(axes, values, strict=True))
    norm = _vector_length(values)
    rows[f"{name}|norm"] = norm
    rows[f"{name}|jerk"] = _vector_length(np.diff(values, axis=1, prepend=values[:, :1])) * rate
    if down is not None:
        along = (values * down).sum(axis=0)
        rows[f"{name}|along"] = along
        rows[f"{name}|across"] = np.sqrt(np.maximum(norm**2 - along**2, 0))


def _same_tag(name: str, accelerometers: dict[str, Array]) -> str:
    """Return the accelerometer of the same tag, by the end of its name: ``Gyr_Back`` belongs to ``Acc_Back``."""
    suffix = name.partition("_")[2]
    return next((other for other in accelerometers if other.partition("_")[2] == suffix), "")


def _vector_length(values: Array) -> Array:
    return np.asarray(np.sqrt(np.square(values).sum(axis=0)))
