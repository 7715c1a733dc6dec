"""Signals and poses as lanes of the timeline, and pose frames for the animation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.app.tiles import Summary, TraceTiles
from ethobench.core import Poses, Signals
from ethobench.core.recording import Data
from ethobench.features.filters import axis_triples
from ethobench.figures.skeletons import arena, bones

MAX_SAMPLES = 20_000
MAX_LANES = 24
MAX_BYTES = 8_000_000

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Lane:
    """One or a few channels that are drawn on top of each other."""

    label: str
    channels: tuple[str, ...]
    low: float
    high: float
    tiles: TraceTiles

    def payload(self) -> dict[str, Any]:
        """Return the JSON payload."""
        return {"label": self.label, "channels": list(self.channels), "low": self.low, "high": self.high}


def lanes_of(data: Data, rate: float) -> list[Lane]:
    """Arrange signals in lanes, the axes of a vector in one lane. Poses become lanes of speed and distance.

    At most 24 lanes are returned, in the order of the channels.
    """
    if isinstance(data, Signals):
        values, names = data.values, data.channels
        vectors = {columns[0]: (name, columns) for name, columns in axis_triples(names).items()}
        in_vectors = {column for _, columns in vectors.values() for column in columns}
        groups = [vectors.get(i, (names[i], [i])) for i in range(len(names)) if i in vectors or i not in in_vectors]
    else:
        values, names, groups = _movement(data, rate)
    summary = Summary(values)
    return [_lane(label or "signal", columns, names, summary) for label, columns in groups[:MAX_LANES]]


def _lane(label: str, columns: list[int], names: tuple[str, ...], summary: Summary) -> Lane:
    sample = _sample(summary.values)[:, columns]
    finite = sample[np.isfinite(sample)]
    low, high = (float(v) for v in np.percentile(finite, [0.5, 99.5])) if finite.size else (0.0, 1.0)
    margin = 0.05 * (high - low) or 0.5
    low, high = 0.0 if finite.size and finite.min() >= 0 else low - margin, high + margin
    return Lane(label, tuple(names[i] for i in columns), low, high, TraceTiles(summary, columns, low, high))


def motion_lane(energy: Floats) -> Lane:
    """Return the lane of the motion energy of a video (n_frames,)."""
    return _lane("motion", [0], ("motion energy",), Summary(energy[:, None]))


def _movement(poses: Poses, rate: float) -> tuple[Floats, tuple[str, ...], list[tuple[str, list[int]]]]:
    centers = _centers(poses)
    columns, names = [], []
    for a, name in enumerate(poses.individuals):
        columns.append(_speed(poses, a) * rate)
        names.append(f"{name} speed")
    groups = [("speed", list(range(len(columns))))]
    pairs = list(combinations(range(len(poses.individuals)), 2))[:3]
    if pairs:
        groups.append(("distance", list(range(len(columns), len(columns) + len(pairs)))))
    for a, b in pairs:
        columns.append(np.linalg.norm(centers[:, a] - centers[:, b], axis=1))
        names.append(f"{poses.individuals[a]} to {poses.individuals[b]}")
    return np.stack(columns, axis=1).astype(np.float32), tuple(names), groups


def _speed(poses: Poses, individual: int) -> Floats:
    """Return the mean displacement of an individual's keypoints per frame, over keypoints that are present in both frames."""
    positions = np.asarray(poses.positions[:, individual, :, :2], dtype=np.float32)
    return _mean(np.linalg.norm(np.diff(positions, axis=0, prepend=positions[:1]), axis=2), axis=1)


def _centers(poses: Poses) -> Floats:
    """Return the center of each individual's keypoints; NaN where none is tracked."""
    return _mean(np.asarray(poses.positions[..., :2], dtype=np.float32), axis=2)


def _mean(values: Floats, axis: int) -> Floats:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    finite = ~np.isnan(values)
    number = finite.sum(axis=axis)
    total = np.where(finite, values, 0).sum(axis=axis)
    return np.asarray(np.where(number > 0, total / np.maximum(number, 1), np.nan), dtype=np.float32)


def pose_payload(poses: Poses) -> dict[str, Any]:
    """Return names, the edges of the skeleton, and the bounding box of nearly all positions."""
    sample = np.asarray(_sample(poses.positions[..., :2]), dtype=np.float64)
    return {
        "individuals": list(poses.individuals),
        "keypoints": list(poses.keypoints),
        "bones": bones(sample),
        "box": list(arena(sample)),
        "n_frames": len(poses),
    }


def pose_frames(poses: Poses, start: int, stop: int) -> bytes:
    """Return positions as little-endian float32: frame, individual, keypoint, then x, y and confidence."""
    size = 12 * len(poses.individuals) * len(poses.keypoints)
    start = min(max(start, 0), len(poses))
    stop = min(stop, len(poses), start + max(MAX_BYTES // max(size, 1), 1))
    positions = np.asarray(poses.positions[start:stop, ..., :2], dtype="<f4")
    confidence = np.asarray(poses.confidence[start:stop], dtype="<f4")
    return np.concatenate((positions, confidence[..., None]), axis=-1).tobytes()


def _sample(values: Floats) -> Floats:
    """Return at most about 20,000 equally spaced rows."""
    return np.asarray(values[:: max(len(values) // MAX_SAMPLES, 1)])
