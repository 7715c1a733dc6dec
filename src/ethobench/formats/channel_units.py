"""Units of channels: stated in column names (``ax (m/s2)``, ``acc_x_g``), or recognized from gravity in accelerometer signals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Recording
from ethobench.core.errors import EthobenchError, Note
from ethobench.core.messages import Message, ReaderOption

SPELLINGS = {
    "m/s²": ("m/s2", "m/s^2", "m/s²", "m/s**2", "m.s-2", "ms-2", "m s-2", "ms^-2", "ms2", "mps2"),
    "g": ("g", "gs", "gee", "gforce"),
    "mg": ("mg", "millig"),
    "°/s": ("dps", "deg/s", "°/s"),
    "rad/s": ("rad/s", "rads"),
    "m": ("m", "meter", "metres", "meters"),
    "°C": ("c", "degc", "°c", "celsius"),
}
UNIT_OF = {spelling: unit for unit, spellings in SPELLINGS.items() for spelling in spellings}
SUFFIXES = ("ms2", "mps2", "g", "mg", "dps", "rads")  # after an underscore; other units only in brackets
ACCELERATIONS = ("g", "m/s²", "mg")
GRAVITY = {"g": (0.75, 1.33), "m/s²": (7.35, 13.0), "mg": (735.0, 1330.0)}
BRACKETS = re.compile(r"(.*?)\s*[\[(]([^\])]+)[\])]\s*")
AXES = re.compile(r"(a|acc|accel|acceleration|accelerometer|accelerations?raw)?[_ .-]?([xyz])([_ .-].*)?", re.IGNORECASE)
SAMPLES = 20_000


def split_unit(name: str) -> tuple[str, str]:
    """Return the name of a channel without its unit, and the unit; empty if the name states none.

    Examples
    --------
    >>> split_unit("ax (m/s2)"), split_unit("acc_x_g"), split_unit("depth"), split_unit("temp (raw)")
    (('ax', 'm/s²'), ('acc_x', 'g'), ('depth', ''), ('temp (raw)', ''))
    """
    match = BRACKETS.fullmatch(name)
    if match and (unit := UNIT_OF.get(match[2].strip().lower())):
        return match[1].strip() or name, unit
    stem, _, suffix = name.rpartition("_")
    if stem and suffix.lower() in SUFFIXES:
        return stem, UNIT_OF[suffix.lower()]
    return name, ""


def accelerometer_axes(channels: Sequence[str]) -> list[int]:
    """Return the columns of the first accelerometer with three axes (``ax, ay, az``, ``Acc_X, ...`` or ``x, y, z``); empty if none."""
    sensors: dict[tuple[str, str], dict[str, int]] = {}
    for column, name in enumerate(channels):
        if match := AXES.fullmatch(name):
            sensors.setdefault(((match[1] or "").lower(), match[3] or ""), {}).setdefault(match[2].lower(), column)
    return next(([axes[axis] for axis in "xyz"] for axes in sensors.values() if len(axes) == 3), [])


def unit_of_gravity(values: NDArray[np.float64]) -> tuple[str, float]:
    """Return the unit in which the median length of acceleration vectors is that of gravity, and that length.

    Parameters
    ----------
    values : array (n_frames, 3)

    Returns
    -------
    unit : str
        Empty if the length is that of gravity in none of g, m/s² and mg.
    length : float
        NaN without samples.
    """
    sample = np.asarray(values[:: max(1, len(values) // SAMPLES)], dtype=np.float64)
    sample = sample[np.isfinite(sample).all(axis=1)]
    length = float(np.median(np.linalg.norm(sample, axis=1))) if len(sample) else float("nan")
    return next((unit for unit, (low, high) in GRAVITY.items() if low <= length <= high), ""), length


def channel_units(
    channels: Sequence[str], stated: Sequence[str], values: NDArray[np.float64], option: Mapping[str, str] | str | None
) -> tuple[dict[str, str], list[Note]]:
    """Return the unit of each channel for which it is known, and notes.

    Parameters
    ----------
    channels, stated : sequence of str
        Names of the channels, and the units in their column names.
    values : array (n_frames, n_channels)
    option : mapping of str to str, or str, optional
        Units that the user sets: by channel, or of the accelerometer.
    """
    units = {name: unit for name, unit in zip(channels, stated, strict=True) if unit}
    axes = accelerometer_axes(channels)
    if isinstance(option, str):
        if UNIT_OF.get(option.lower()) not in ACCELERATIONS:
            raise EthobenchError(f"`units` must be g, mg, m/s2 or units by channel, got {option!r}")
        return units | {channels[axis]: UNIT_OF[option.lower()] for axis in axes}, []
    if option is not None:
        unknown = [name for name in option if name not in channels]
        if unknown:
            raise EthobenchError(f"`units` names no channel: {', '.join(unknown)}; channels: {', '.join(channels)}")
        units |= {name: UNIT_OF.get(unit.lower(), unit) for name, unit in option.items()}
    if not axes or not len(values):
        return units, []
    unit, length = unit_of_gravity(values[:, axes])
    names = [channels[axis] for axis in axes]
    named_units = {units[name] for name in names if name in units}
    if not named_units and unit:
        return units | dict.fromkeys(names, unit), []
    if not named_units and np.isfinite(length):
        message = f"the unit of {', '.join(names)} is not known (median length {length:.3g}, but gravity is 1 g or 9.81 m/s²)"
        return units, [
            Note(
                Message(f"{message}; state it in the header, such as {names[0]} (g), or with ", ReaderOption("units")), code="unknown-units"
            )
        ]
    if unit and len(named_units) == 1 and unit not in named_units and next(iter(named_units)) in ACCELERATIONS:
        message = f"{', '.join(names)} are stated in {next(iter(named_units))}, but gravity has the length {length:.3g}, as in {unit}"
        return units, [Note(f"{message}; check the unit", code="unlikely-units")]
    return units, []


def note_different_units(recordings: Iterable[Recording]) -> None:
    """Add a note to recordings whose channels have another unit than the same channels of other recordings.

    Units are in ``Recording.metadata["units"]``.
    """
    recordings = list(recordings)
    example_of: dict[str, dict[str, str]] = {}
    for recording in recordings:
        for channel, unit in recording.metadata.get("units", {}).items():
            example_of.setdefault(channel, {}).setdefault(unit, recording.id)
    for recording in recordings:
        channel = next((name for name in recording.metadata.get("units", {}) if len(example_of[name]) > 1), None)
        if channel is not None:
            examples = ", ".join(f"{name!r} in {unit}" for unit, name in example_of[channel].items())
            problem = f"{channel} has different units: {examples}; convert one of them, or correct the unit in its header (or with "
            message = Message(problem, ReaderOption("units"), ")")
            recording.notes = (*recording.notes, Note(message, code="different-units"))
