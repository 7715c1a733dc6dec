"""Three animals, of which one at a time does something to another: who did what to whom is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Poses
from ethobench.core import intervals as iv
from ethobench.datasets import synthetic_pose as pose

ANIMALS = ("ada", "bea", "cleo")
PAIRS = tuple((a, b) for a in range(len(ANIMALS)) for b in range(len(ANIMALS)) if a != b)
STATES = tuple(state for state in pose.STATES if state.name != "mount")
BACKGROUND = pose.BACKGROUND
_places = [[s.name for s in pose.STATES].index(state.name) for state in STATES]
CLOSE, ALIGN, TURN, SPEED = (table[_places] for table in (pose.CLOSE, pose.ALIGN, pose.TURN, pose.SPEED))
OFFSET = pose.OFFSET[_places]


def draw_pairs(codes: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw for every bout which ordered pair it is about; one number of `PAIRS` for each frame."""
    runs = iv.encode_runs(codes)
    lengths = runs.stop - runs.start
    return np.repeat(generator.integers(len(PAIRS), size=len(lengths)), lengths)


def to_annotation(codes: NDArray[np.int64], pairs: NDArray[np.int64], ethogram: Ethogram, rate: float) -> Annotation:
    """Say who does what to whom."""
    runs = iv.encode_runs(codes)
    shown = runs.values != ethogram.background
    start, stop, behavior = (np.asarray(part)[shown] for part in (runs.start, runs.stop, runs.values))
    who, whom = zip(*(PAIRS[pairs[first]] for first in start), strict=True) if len(start) else ((), ())
    return Annotation.from_bouts(
        start,
        stop,
        behavior,
        ethogram,
        rate,
        len(codes),
        subject=[ANIMALS[a] for a in who],
        target=[ANIMALS[b] for b in whom],
        subjects=ANIMALS,
    )


def make_poses(
    codes: NDArray[np.int64],
    pairs: NDArray[np.int64],
    rate: float,
    generator: np.random.Generator,
    traits: np.random.Generator,
    missing: float,
) -> Poses:
    """Move three animals; the subject of a bout keeps to its target, the third goes its own way."""
    n = len(codes)
    length = np.exp(traits.normal(np.log([95.0, 90.0, 85.0]), 0.08))
    ease = 1 - np.exp(-1 / (0.15 * rate))
    turn, speed = TURN[codes] * np.sqrt(30 / rate), SPEED[codes] * np.exp(traits.normal(0, 0.15))
    own = [pose.wander(n, rate, speed, turn, generator) for _ in ANIMALS]
    places, nearness = [], np.zeros(n)
    for a in range(len(ANIMALS)):
        place, heading = own[a][0].copy(), own[a][1].copy()
        for b in range(len(ANIMALS)):
            if a == b:
                continue
            acts = pairs == PAIRS.index((a, b))
            close, align = (pose.smooth(np.where(acts, table[codes], 0.0), ease) for table in (CLOSE, ALIGN))
            other, looks = own[b]
            ahead = np.exp(1j * looks) * (OFFSET[codes, 0] + 1j * OFFSET[codes, 1]) * length.mean()
            near = other + np.stack([ahead.real, ahead.imag], axis=1)
            place = (1 - close[:, None]) * place + close[:, None] * near
            heading = heading + align * np.angle(np.exp(1j * (looks - heading)))
            nearness = np.maximum(nearness, close)
        places.append(pose.place(place, heading, length[a], generator))
    positions = np.stack(places, axis=1)
    confidence = 0.97 - 0.03 * np.abs(generator.standard_normal(positions.shape[:3], dtype=np.float32))
    hidden = pose.dropouts(n, rate, missing, generator, nearness, len(ANIMALS))
    positions[hidden] = np.nan
    confidence[hidden] = generator.uniform(0, 0.2, int(hidden.sum()))
    return Poses(positions, confidence.astype(np.float64), ANIMALS, pose.KEYPOINTS, rate)
