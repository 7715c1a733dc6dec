"""A tri-axial tag with posture and gait."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation

from ethobench.core import Signals
from ethobench.datasets.semi_markov import State

CHANNELS = ("AccX", "AccY", "AccZ", "GyrX", "GyrY", "GyrZ")
STATES = (
    State("rest", 20.0, 2.0, 1.0),
    State("walk", 10.0, 3.0, 0.9),
    State("run", 4.0, 3.0, 0.3),
    State("feed", 8.0, 2.0, 0.6),
    State("groom", 5.0, 2.0, 0.3),
)

# By state: pitch and roll of the body (radians), gait frequency (Hz), its amplitude on each axis (g), and restlessness.
PITCH = np.array([0.1, 0.0, -0.1, 0.8, 0.4])
ROLL = np.array([0.5, 0.0, 0.0, 0.1, -0.4])
FREQUENCY = np.array([0.3, 1.8, 3.2, 1.0, 4.5])
AMPLITUDE = np.array([[0.01, 0.01, 0.02], [0.15, 0.08, 0.25], [0.5, 0.25, 0.8], [0.08, 0.05, 0.1], [0.12, 0.3, 0.12]])
RESTLESS = np.array([0.02, 0.1, 0.2, 0.15, 0.2])


def make_signals(codes: NDArray[np.int64], rate: float, generator: np.random.Generator, traits: np.random.Generator) -> Signals:
    """Record acceleration (g) and angular velocity (rad/s) of an animal whose tag sits a little askew, as `traits` draws."""
    n = len(codes)
    mounting = Rotation.from_rotvec(traits.normal(0, 0.25, 3))
    vigour, pace = np.exp(traits.normal(0, 0.2, 2))
    slow = np.exp(-1 / (0.5 * rate))
    sway = lfilter([1 - slow], [1, -slow], generator.normal(0, 1, (n, 2)) * RESTLESS[codes, None] * np.sqrt(rate), axis=0)
    pitch, roll = _ease(PITCH[codes], slow) + sway[:, 0], _ease(ROLL[codes], slow) + sway[:, 1]
    gravity = np.stack([-np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)], axis=1)

    wobble = lfilter([1 - slow], [1, -slow], generator.normal(0, 1, n))
    phase = 2 * np.pi * np.cumsum(FREQUENCY[codes] * pace * (1 + wobble)) / rate
    size = np.stack([_ease(AMPLITUDE[codes, axis], slow) for axis in range(3)], axis=1) * vigour
    shifts = traits.uniform(0, 2 * np.pi, 3)
    swing = np.sin(phase[:, None] + shifts) + 0.3 * np.sin(2 * phase[:, None] + 2 * shifts)
    acceleration = gravity + size * swing + generator.normal(0, 0.02, (n, 3))

    turning = np.stack([np.gradient(roll), np.gradient(pitch), np.zeros(n)], axis=1) * rate if n > 1 else np.zeros((n, 3))
    turning += size * np.cos(phase[:, None] + shifts) + generator.normal(0, 0.02, (n, 3))
    return Signals(np.hstack([mounting.apply(acceleration), mounting.apply(turning)]), CHANNELS, rate)


def _ease(values: NDArray[np.float64], slow: float) -> NDArray[np.float64]:
    if len(values) == 0:
        return values
    eased, _ = lfilter([1 - slow], [1, -slow], values, zi=[slow * values[0]])
    return np.asarray(eased)
