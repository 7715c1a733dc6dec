"""What a tag measures, told so that it does not matter how the tag sits: one row of values per signal.

Acceleration is split into posture (its mean over two seconds, mostly gravity) and movement (the rest). Movement, and what other
sensors of the tag measure along three axes, is taken apart along and across the direction of gravity; posture is compared with
the usual one of the recording. The axes themselves stay beside all this, because many tags do sit alike.
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
POSTURE = 2.0  # seconds whose mean is the posture
SAMPLE = 20_000  # frames that tell enough about a whole recording
SMALL = 1e-9


@dataclass(frozen=True)
class TagOrientation:
    """What stays the same of an accelerometer throughout a recording.

    Attributes
    ----------
    gravity : float
        The median length of its vector: gravity, where it measures gravity.
    direction : tuple of float
        The direction in which it usually lies, of length 1.
    """

    gravity: float
    direction: tuple[float, float, float]


def estimate_orientations(signals: Signals) -> dict[str, TagOrientation]:
    """Measure the accelerometers of a recording, by the names of their triples of axes."""
    sample = np.asarray(signals.values[:: max(1, len(signals) // SAMPLE)], dtype=np.float64)
    found = {}
    for name, places in axis_triples(signals.channels).items():
        if is_accelerometer(name):
            axes = sample[:, places]
            axes = axes[np.isfinite(axes).all(axis=1)]
            middle = np.median(axes, axis=0) if len(axes) else np.zeros(3)
            length = float(np.median(np.linalg.norm(axes, axis=1))) if len(axes) else 0.0
            usual = middle / max(float(np.linalg.norm(middle)), SMALL)
            found[name] = TagOrientation(length if length > SMALL else 1.0, (float(usual[0]), float(usual[1]), float(usual[2])))
    return found


def tag_signals(signals: Signals, rate: float, frames: dict[str, TagOrientation]) -> tuple[Array, tuple[str, ...]]:
    """Return what a tag measures, as rows.

    Parameters
    ----------
    signals : Signals
        A recording, or a stretch of it.
    rate : float
        Frames per second.
    frames : mapping of str to TagOrientation
        Of the whole recording.

    Returns
    -------
    values : array (n_signals, n_frames)
        NaN where something is missing.
    names : tuple of str
    """
    values = np.ascontiguousarray(np.asarray(signals.values, dtype=np.float64).T)
    values[~np.isfinite(values)] = np.nan
    rows: dict[str, Array] = {}
    triples = axis_triples(signals.channels)
    gravity = {}
    for name, places in triples.items():
        if name in frames:
            axes = values[places] / frames[name].gravity
            gravity[name] = _acceleration(rows, name, [signals.channels[p] for p in places], axes, rate, frames[name])
    for name, places in triples.items():
        if name not in frames:
            down = gravity.get(_companion(name, gravity))
            _other_triple(rows, name, [signals.channels[p] for p in places], values[places], rate, down)
    alone = {*range(len(signals.channels))} - {place for places in triples.values() for place in places}
    for place in sorted(alone):
        rows[signals.channels[place]] = values[place]
        rows[f"{signals.channels[place]}|change"] = change(values[place], rate)
    return np.stack(list(rows.values())), tuple(rows)


def axis_rows(names: Sequence[str], channels: tuple[str, ...]) -> dict[str, list[int]]:
    """Return where the three axes of each sensor stand among the signals."""
    return {name: [names.index(channels[place]) for place in places] for name, places in axis_triples(channels).items()}


def posture_frames(rate: float) -> int:
    """Return the odd number of frames whose mean is the posture."""
    return max(3, 2 * round(POSTURE * rate / 2) + 1)


def change_frames(rate: float) -> int:
    """Return the frames over which changes are measured, to both sides."""
    return max(1, round(rate / 2))


def change(row: Array, rate: float) -> Array:
    """Return the change per second over half a second to both sides, at the ends to one."""
    step = change_frames(rate)
    ends = np.arange(len(row))
    later, earlier = np.minimum(ends + step, len(row) - 1), np.maximum(ends - step, 0)
    return np.asarray((row[later] - row[earlier]) * rate / np.maximum(later - earlier, 1))


def _acceleration(rows: dict[str, Array], name: str, axes: list[str], values: Array, rate: float, frame: TagOrientation) -> Array:
    """Add the signals of an accelerometer; return where gravity points."""
    rows.update(zip(axes, values, strict=True))
    posture = centered_mean(values, posture_frames(rate))
    moved = values - posture
    down = posture / np.maximum(_length(posture), SMALL)
    along = (moved * down).sum(axis=0)
    vedba = _length(moved)
    rows[f"{name}|norm"] = _length(values)
    rows[f"{name}|odba"] = np.abs(moved).sum(axis=0)
    rows[f"{name}|vedba"] = vedba
    rows[f"{name}|along"] = along
    rows[f"{name}|across"] = np.sqrt(np.maximum(vedba**2 - along**2, 0))
    rows[f"{name}|jerk"] = _length(np.diff(values, axis=1, prepend=values[:, :1])) * rate
    rows[f"{name}|upright"] = np.array(frame.direction) @ down
    rows[f"{name}|tilting"] = _length(np.stack([change(axis, rate) for axis in down]))
    return down


def _other_triple(rows: dict[str, Array], name: str, axes: list[str], values: Array, rate: float, down: Array | None) -> None:
    """Add the signals of a gyroscope, magnetometer or anything else with three axes."""
    rows.update(zip(axes, values, strict=True))
    norm = _length(values)
    rows[f"{name}|norm"] = norm
    rows[f"{name}|jerk"] = _length(np.diff(values, axis=1, prepend=values[:, :1])) * rate
    if down is not None:
        along = (values * down).sum(axis=0)
        rows[f"{name}|along"] = along
        rows[f"{name}|across"] = np.sqrt(np.maximum(norm**2 - along**2, 0))


def _companion(name: str, accelerometers: dict[str, Array]) -> str:
    """Return the accelerometer on the same tag, by the end of its name: ``Gyr_Back`` belongs to ``Acc_Back``."""
    end = name.partition("_")[2]
    return next((other for other in accelerometers if other.partition("_")[2] == end), "")


def _length(values: Array) -> Array:
    return np.asarray(np.sqrt(np.square(values).sum(axis=0)))
