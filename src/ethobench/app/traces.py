"""Signals and poses as lanes of a timeline, and poses as something to animate."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.app.summaries import Summary
from ethobench.app.tiles import TraceTiles
from ethobench.core import Poses, Signals
from ethobench.core.recording import Data
from ethobench.features.filters import axis_triples

SAMPLED = 20_000
LANES = 24
MOST_BYTES = 8_000_000

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Lane:
    """A few channels that are drawn over each other."""

    label: str
    channels: tuple[str, ...]
    low: float
    high: float
    tiles: TraceTiles

    def facts(self) -> dict[str, Any]:
        """Return what the page has to know."""
        return {"label": self.label, "channels": list(self.channels), "low": self.low, "high": self.high}


def lanes_of(data: Data, rate: float) -> list[Lane]:
    """Lay signals out in lanes, the axes of a vector in one; of poses, the animals' speeds and distances.

    At most 24 lanes are made, in the order of the channels.
    """
    if isinstance(data, Signals):
        values, names = data.values, data.channels
        together = {places[0]: (name, places) for name, places in axis_triples(names).items()}
        taken = {place for _, places in together.values() for place in places}
        groups = [together.get(i, (names[i], [i])) for i in range(len(names)) if i in together or i not in taken]
    else:
        values, names, groups = _movement(data, rate)
    summary = Summary(values)
    return [_lane(label or "signal", places, names, summary) for label, places in groups[:LANES]]


def _lane(label: str, places: list[int], names: tuple[str, ...], summary: Summary) -> Lane:
    sample = _sample(summary.values)[:, places]
    known = sample[np.isfinite(sample)]
    low, high = (float(v) for v in np.percentile(known, [0.5, 99.5])) if known.size else (0.0, 1.0)
    margin = 0.05 * (high - low) or 0.5
    low, high = 0.0 if known.size and known.min() >= 0 else low - margin, high + margin
    return Lane(label, tuple(names[i] for i in places), low, high, TraceTiles(summary, places, low, high))


def _movement(poses: Poses, rate: float) -> tuple[Floats, tuple[str, ...], list[tuple[str, list[int]]]]:
    middle = _middle(poses)
    columns, names = [], []
    for a, who in enumerate(poses.individuals):
        columns.append(_speed(poses, a) * rate)
        names.append(f"{who} speed")
    groups = [("speed", list(range(len(columns))))]
    pairs = list(combinations(range(len(poses.individuals)), 2))[:3]
    if pairs:
        groups.append(("distance", list(range(len(columns), len(columns) + len(pairs)))))
    for a, b in pairs:
        columns.append(np.linalg.norm(middle[:, a] - middle[:, b], axis=1))
        names.append(f"{poses.individuals[a]} to {poses.individuals[b]}")
    return np.stack(columns, axis=1).astype(np.float32), tuple(names), groups


def _speed(poses: Poses, individual: int) -> Floats:
    """Return how far an animal's keypoints move from frame to frame, on average over those that both frames have."""
    positions = np.asarray(poses.positions[:, individual, :, :2], dtype=np.float32)
    return _mean(np.linalg.norm(np.diff(positions, axis=0, prepend=positions[:1]), axis=2), axis=1)


def _middle(poses: Poses) -> Floats:
    """Return the mean of each animal's keypoints that are there, NaN where none is."""
    return _mean(np.asarray(poses.positions[..., :2], dtype=np.float32), axis=2)


def _mean(values: Floats, axis: int) -> Floats:
    """Take the mean of what is there, NaN where nothing is."""
    known = ~np.isnan(values)
    number = known.sum(axis=axis)
    total = np.where(known, values, 0).sum(axis=axis)
    return np.asarray(np.where(number > 0, total / np.maximum(number, 1), np.nan), dtype=np.float32)


def pose_facts(poses: Poses) -> dict[str, Any]:
    """Return names, the bones to draw and the rectangle that holds nearly all positions."""
    sample = np.asarray(_sample(poses.positions[..., :2]), dtype=np.float64)
    corners = []
    for axis in range(2):
        known = sample[..., axis][np.isfinite(sample[..., axis])]
        corners.append(np.percentile(known, [0.2, 99.8]) if known.size else np.array([0.0, 1.0]))
    return {
        "individuals": list(poses.individuals),
        "keypoints": list(poses.keypoints),
        "bones": bones(sample),
        "box": [float(corners[0][0]), float(corners[1][0]), float(corners[0][1]), float(corners[1][1])],
        "n_frames": len(poses),
    }


def bones(positions: Floats) -> list[list[int]]:
    """Connect keypoints by the shortest tree over their median distances, as files rarely tell a skeleton.

    Parameters
    ----------
    positions : array (n_frames, n_individuals, n_keypoints, 2)

    Returns
    -------
    list of [int, int]
        Pairs of keypoints; those that are never seen together stay apart.
    """
    count = positions.shape[2]
    apart = np.full((count, count), np.inf)
    for i, j in combinations(range(count), 2):
        distance = np.linalg.norm(positions[:, :, i] - positions[:, :, j], axis=2)
        known = distance[np.isfinite(distance)]
        if known.size:
            apart[i, j] = apart[j, i] = np.median(known)
    inside, found = {0} if count else set(), []
    while len(inside) < count:
        best = min((apart[i, j], i, j) for i in sorted(inside) for j in range(count) if j not in inside)
        if np.isfinite(best[0]):
            found.append([best[1], best[2]])
        inside.add(best[2])
    return found


def pose_frames(poses: Poses, start: int, stop: int) -> bytes:
    """Return positions as little-endian float32: frame, individual, keypoint, then x, y and confidence."""
    size = 12 * len(poses.individuals) * len(poses.keypoints)
    start = min(max(start, 0), len(poses))
    stop = min(stop, len(poses), start + max(MOST_BYTES // max(size, 1), 1))
    positions = np.asarray(poses.positions[start:stop, ..., :2], dtype="<f4")
    sure = np.asarray(poses.confidence[start:stop], dtype="<f4")
    return np.concatenate((positions, sure[..., None]), axis=-1).tobytes()


def _sample(values: Floats) -> Floats:
    """Take at most 20,000 rows at equal distances."""
    return np.asarray(values[:: max(len(values) // SAMPLED, 1)])
