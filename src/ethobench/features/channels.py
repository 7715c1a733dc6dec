"""Signals and poses as channels that do not depend on where a tag points or an animal stands."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Signals
from ethobench.core.errors import MismatchError
from ethobench.core.recording import Data

Array = NDArray[np.float64]


def channels_of(data: Data | None, rate: float) -> tuple[Array, tuple[str, ...]]:
    """Return the channels that models work on: a tag's own and the length of its vectors, or the geometry of poses."""
    if isinstance(data, Signals):
        return tag_channels(data)
    if isinstance(data, Poses):
        return pose_channels(data, rate)
    raise MismatchError("this recording has neither signals nor poses to learn from")


def tag_channels(signals: Signals) -> tuple[Array, tuple[str, ...]]:
    """Return the channels of a tag and, for each triple of axes, the length of its vector."""
    parts, names = [np.asarray(signals.values, dtype=np.float64)], list(signals.channels)
    for name, places in axis_triples(signals.channels).items():
        parts.append(np.linalg.norm(signals.values[:, places], axis=1, keepdims=True))
        names.append(f"{name}|norm")
    return np.concatenate(parts, axis=1), tuple(names)


def axis_triples(channels: tuple[str, ...]) -> dict[str, list[int]]:
    """Find channels that differ only in an X, Y or Z: ``AccX, AccY, AccZ`` or ``AccX_Back, AccY_Back, AccZ_Back``."""
    found: dict[str, dict[str, int]] = {}
    for place, name in enumerate(channels):
        match = re.fullmatch(r"(.*?)([XYZxyz])(_.*)?", name)
        if match:
            found.setdefault(match.group(1) + (match.group(3) or ""), {})[match.group(2).upper()] = place
    return {name: [axes[a] for a in "XYZ"] for name, axes in found.items() if len(axes) == 3}


def pose_channels(poses: Poses, rate: float) -> tuple[Array, tuple[str, ...]]:
    """Return speeds, turns, body shape and, for each two animals, distances and bearings."""
    positions = _bridged(np.asarray(poses.positions[..., :2], dtype=np.float64))
    middle = _middle(positions)
    axis = positions[:, :, 0] - positions[:, :, -1] if positions.shape[2] > 1 else np.gradient(middle, axis=0)
    heading = np.arctan2(axis[..., 1], axis[..., 0])
    columns: dict[str, Array] = {}
    for a, who in enumerate(poses.individuals):
        velocity = np.gradient(middle[:, a], axis=0) * rate if len(middle) > 1 else np.zeros_like(middle[:, a])
        columns[f"{who}/speed"] = np.linalg.norm(velocity, axis=1)
        columns[f"{who}/turn"] = np.abs(_turn(heading[:, a])) * rate
        columns[f"{who}/length"] = np.linalg.norm(axis[:, a], axis=1)
        for k, (first, second) in enumerate(pairwise(poses.keypoints)):
            step = positions[:, a, k] - positions[:, a, k + 1]
            columns[f"{who}/{first}-{second}"] = np.linalg.norm(step, axis=1)
    for a, one in enumerate(poses.individuals):
        for b, other in enumerate(poses.individuals):
            if a == b:
                continue
            apart = middle[:, b] - middle[:, a]
            bearing = np.arctan2(apart[:, 1], apart[:, 0]) - heading[:, a]
            columns[f"{one}>{other}/facing"] = np.cos(bearing)
            nearest = np.linalg.norm(positions[:, a, :1] - positions[:, b], axis=2)
            columns[f"{one}>{other}/nose"] = _least(nearest)
            if a < b:
                columns[f"{one}-{other}/distance"] = np.linalg.norm(apart, axis=1)
                columns[f"{one}-{other}/aligned"] = np.cos(heading[:, a] - heading[:, b])
                every = np.linalg.norm(positions[:, a, :, None] - positions[:, b, None], axis=3).reshape(len(positions), -1)
                columns[f"{one}-{other}/contact"] = _least(every)
    return np.stack(list(columns.values()), axis=1), tuple(columns)


def _bridged(positions: Array, most: int = 15) -> Array:
    """Interpolate keypoints that are missing for a few frames; longer gaps stay missing."""
    flat = positions.reshape(len(positions), -1).copy()
    frames = np.arange(len(flat))
    for column in range(flat.shape[1]):
        known = np.flatnonzero(~np.isnan(flat[:, column]))
        if 0 < len(known) < len(flat):
            before = known[np.maximum(np.searchsorted(known, frames, side="right") - 1, 0)]
            after = known[np.minimum(np.searchsorted(known, frames), len(known) - 1)]
            short = np.isnan(flat[:, column]) & (after - before <= most + 1) & (before < frames) & (frames < after)
            flat[short, column] = np.interp(frames[short], known, flat[known, column])
    return flat.reshape(positions.shape)


def _middle(positions: Array) -> Array:
    """Take the mean of the keypoints that are there, NaN where none is."""
    known = ~np.isnan(positions)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, positions, 0).sum(axis=2) / np.where(known.any(axis=2), known.sum(axis=2), np.nan))


def _turn(angle: Array) -> Array:
    step = np.diff(angle, prepend=angle[:1])
    return np.asarray((step + np.pi) % (2 * np.pi) - np.pi)


def _least(distances: Array) -> Array:
    """Take the smallest of each row, NaN where all are missing."""
    filled = np.where(np.isnan(distances), np.inf, distances).min(axis=1)
    return np.asarray(np.where(np.isinf(filled), np.nan, filled))
