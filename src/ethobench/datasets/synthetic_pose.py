"""Two interacting animals with seven keypoints each, seen from above."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from ethobench.core import Poses
from ethobench.datasets.semi_markov import State

KEYPOINTS = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base")
ANIMALS = ("resident", "intruder")
WIDTH, HEIGHT = 1024.0, 570.0
STATES = (
    State("attack", 1.5, 3.0, 0.12),
    State("investigation", 2.5, 2.0, 0.45),
    State("mount", 4.0, 4.0, 0.15),
    State("other", 6.0, 1.2, 1.0),
)
BACKGROUND = "other"

# A mouse of unit length that looks along x: keypoints in the order of KEYPOINTS.
BODY = np.array([[0.55, 0.0], [0.38, 0.13], [0.38, -0.13], [0.25, 0.0], [-0.3, 0.16], [-0.3, -0.16], [-0.5, 0.0]])

# By state: how close the resident keeps (0 = its own way), where it is relative to the intruder's middle and heading
# (body lengths), how far its heading follows the intruder's, and how violently both turn.
CLOSE = np.array([0.95, 0.9, 1.0, 0.0])
OFFSET = np.array([[0.25, 0.15], [-0.95, 0.0], [-0.3, 0.0], [0.0, 0.0]])
ALIGN = np.array([0.3, 0.9, 1.0, 0.0])
TURN = np.array([0.5, 0.06, 0.03, 0.02])
SPEED = np.array([1.6, 0.7, 0.35, 1.0])


def make_poses(codes: NDArray[np.int64], rate: float, generator: np.random.Generator, traits: np.random.Generator, missing: float) -> Poses:
    """Move two animals through an arena as their behavior asks; `traits` draws what stays the same between recordings."""
    n = len(codes)
    length = np.exp(traits.normal(np.log([95.0, 85.0]), 0.08))
    pace = np.exp(traits.normal(0, 0.15))
    ease = 1 - np.exp(-1 / (0.15 * rate))
    close, align = smooth(CLOSE[codes], ease), smooth(ALIGN[codes], ease)
    offset = np.stack([smooth(OFFSET[codes, axis], ease) for axis in (0, 1)], axis=1) * length.mean()
    turn, speed = TURN[codes] * np.sqrt(30 / rate), SPEED[codes] * pace

    intruder, intruder_heading = wander(n, rate, speed, turn, generator)
    resident, resident_heading = wander(n, rate, speed, turn, generator)
    cos, sin = np.cos(intruder_heading), np.sin(intruder_heading)
    near = intruder + np.stack([offset[:, 0] * cos - offset[:, 1] * sin, offset[:, 0] * sin + offset[:, 1] * cos], axis=1)
    resident = (1 - close[:, None]) * resident + close[:, None] * near
    lean = np.angle(np.exp(1j * (intruder_heading - resident_heading)))
    resident_heading = resident_heading + align * lean

    positions = np.stack(
        [place(resident, resident_heading, length[0], generator), place(intruder, intruder_heading, length[1], generator)], axis=1
    )
    confidence = 0.97 - 0.03 * np.abs(generator.standard_normal(positions.shape[:3], dtype=np.float32))
    hidden = dropouts(n, rate, missing, generator, close)
    positions[hidden] = np.nan
    confidence[hidden] = generator.uniform(0, 0.2, int(hidden.sum()))
    return Poses(positions, confidence.astype(np.float64), ANIMALS, KEYPOINTS, rate)


def wander(
    n: int, rate: float, speed: NDArray[np.float64], turn: NDArray[np.float64], generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw a smooth path inside the arena, and where the animal looks."""
    keep = np.exp(-1 / (4.0 * rate))
    noise = generator.normal(0, 1, (n, 2)) * speed[:, None]
    start = generator.normal(0, 0.6, (1, 2))
    # the AR(1) filter runs forward from a random place; its stationary spread is 1
    path, _ = lfilter([np.sqrt(1 - keep**2)], [1, -keep], noise, axis=0, zi=keep * start)
    soft = np.exp(-1 / (0.3 * rate))
    path = lfilter([1 - soft], [1, -soft], path - start, axis=0) + start
    spot = np.array([WIDTH, HEIGHT]) * (0.5 + 0.42 * np.tanh(0.8 * path))
    heading = np.cumsum(generator.normal(0, 1, n) * turn) + generator.uniform(-np.pi, np.pi)
    step = np.gradient(spot, axis=0) if n > 1 else np.zeros_like(spot)
    course = np.arctan2(step[:, 1], step[:, 0])
    pull = np.angle(np.exp(1j * (course - heading)))
    return spot, heading + smooth(pull, 1 - soft)


def place(middle: NDArray[np.float64], heading: NDArray[np.float64], length: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """Put a body at a place, looking somewhere, with a little tracking noise."""
    plane = length * BODY.view(np.complex128)[:, 0] * np.exp(1j * heading)[:, None] + middle.view(np.complex128)
    points = plane.view(np.float64).reshape(len(middle), len(BODY), 2)
    points += generator.standard_normal(points.shape, dtype=np.float32)
    return np.asarray(points)


def dropouts(
    n: int, rate: float, share: float, generator: np.random.Generator, close: NDArray[np.float64], animals: int = len(ANIMALS)
) -> NDArray[np.bool_]:
    """Draw runs of frames in which single keypoints are lost; more often when the animals touch."""
    hidden = np.zeros((n, animals, len(KEYPOINTS)), dtype=bool)
    if share <= 0 or n == 0:
        return hidden
    mean = 0.3 * rate
    count = generator.poisson(share * n / mean, hidden.shape[1:])
    for animal in range(animals):
        for point in range(len(KEYPOINTS)):
            first = generator.integers(0, n, count[animal, point])
            first = first[generator.random(len(first)) < 0.4 + 0.6 * close[first]]
            for start, size in zip(first, generator.geometric(1 / mean, len(first)), strict=True):
                hidden[start : start + size, animal, point] = True
    return hidden


def smooth(values: NDArray[np.float64], ease: float) -> NDArray[np.float64]:
    """Follow values with some delay."""
    if len(values) == 0:
        return values
    smoothed, _ = lfilter([ease], [1, ease - 1], values, zi=[(1 - ease) * values[0]])
    return np.asarray(smoothed)
