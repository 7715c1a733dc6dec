"""Synthetic signals: poses of two or three interacting mice seen from above, and an accelerometer with gyroscope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation

from ethobench.core import Annotation, Ethogram, Poses, Signals
from ethobench.core import intervals as iv


@dataclass(frozen=True)
class State:
    """One behavior of a semi-Markov process.

    Attributes
    ----------
    name : str
    duration : float
        Mean bout duration in seconds.
    shape : float
        Shape of the gamma distribution of durations; larger values are more regular.
    share : float
        Relative frequency with which it follows other behaviors.
    """

    name: str
    duration: float
    shape: float
    share: float


# Two mice: resident and intruder

KEYPOINTS = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base")
PAIR = ("resident", "intruder")
WIDTH, HEIGHT = 1024.0, 570.0
"""Size of the arena in pixels."""

POSE_STATES = (
    State("attack", 1.5, 3.0, 0.12),
    State("investigation", 2.5, 2.0, 0.45),
    State("mount", 4.0, 4.0, 0.15),
    State("other", 6.0, 1.2, 1.0),
)
BACKGROUND = "other"

BODY = np.array([[0.55, 0.0], [0.38, 0.13], [0.38, -0.13], [0.25, 0.0], [-0.3, 0.16], [-0.3, -0.16], [-0.5, 0.0]])
"""Positions of `KEYPOINTS` of a mouse of unit length that faces along x (7, 2)."""

# By state of POSE_STATES: how closely the resident follows the intruder (0 to 1), where it is relative to the intruder's center and heading
# (in body lengths), how far its heading follows the intruder's (0 to 1), how strongly both turn, and how fast they move.
CLOSENESS = np.array([0.95, 0.9, 1.0, 0.0])
OFFSET = np.array([[0.25, 0.15], [-0.95, 0.0], [-0.3, 0.0], [0.0, 0.0]])
ALIGNMENT = np.array([0.3, 0.9, 1.0, 0.0])
TURNING = np.array([0.5, 0.06, 0.03, 0.02])
SPEED = np.array([1.6, 0.7, 0.35, 1.0])


def simulate_pair(
    codes: NDArray[np.int64], rate: float, generator: np.random.Generator, individual: np.random.Generator, missing: float
) -> Poses:
    """Simulate two mice that behave as `codes` say.

    Parameters
    ----------
    codes : array (n_frames,)
        Indices into `POSE_STATES`.
    rate : float
        Frames per second.
    generator : Generator
        For the movement, which differs between recordings.
    individual : Generator
        For body size and pace, which are the same in all recordings of an individual.
    missing : float
        Share of missing keypoints.
    """
    n_frames = len(codes)
    length = np.exp(individual.normal(np.log([95.0, 85.0]), 0.08))
    pace = np.exp(individual.normal(0, 0.15))
    ease = 1 - np.exp(-1 / (0.15 * rate))
    closeness, alignment = smooth(CLOSENESS[codes], ease), smooth(ALIGNMENT[codes], ease)
    offset = np.stack([smooth(OFFSET[codes, axis], ease) for axis in (0, 1)], axis=1) * length.mean()
    turning, speed = TURNING[codes] * np.sqrt(30 / rate), SPEED[codes] * pace

    intruder, intruder_heading = _random_path(n_frames, rate, speed, turning, generator)
    resident, resident_heading = _random_path(n_frames, rate, speed, turning, generator)
    cos, sin = np.cos(intruder_heading), np.sin(intruder_heading)
    near = intruder + np.stack([offset[:, 0] * cos - offset[:, 1] * sin, offset[:, 0] * sin + offset[:, 1] * cos], axis=1)
    resident = (1 - closeness[:, None]) * resident + closeness[:, None] * near
    resident_heading = resident_heading + alignment * np.angle(np.exp(1j * (intruder_heading - resident_heading)))

    bodies = [_body(resident, resident_heading, length[0], generator), _body(intruder, intruder_heading, length[1], generator)]
    return _tracked(np.stack(bodies, axis=1), PAIR, rate, missing, generator, closeness)


# Three mice: one at a time acts on another

TRIO = ("ada", "bea", "cleo")
TRIO_STATES = tuple(state for state in POSE_STATES if state.name != "mount")
ORDERED_PAIRS = tuple((a, b) for a in range(len(TRIO)) for b in range(len(TRIO)) if a != b)
_TRIO_ROWS = [POSE_STATES.index(state) for state in TRIO_STATES]


def draw_pairs(codes: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw subject and target of each bout: an index into `ORDERED_PAIRS` for each frame (n_frames,)."""
    runs = iv.encode_runs(codes)
    lengths = runs.stop - runs.start
    return np.repeat(generator.integers(len(ORDERED_PAIRS), size=len(lengths)), lengths)


def annotate_trio(codes: NDArray[np.int64], pairs: NDArray[np.int64], ethogram: Ethogram, rate: float) -> Annotation:
    """Return the true annotation of three mice, with subjects and targets."""
    runs = iv.encode_runs(codes)
    is_foreground = runs.values != ethogram.background
    start, stop, behavior = (np.asarray(column)[is_foreground] for column in (runs.start, runs.stop, runs.values))
    subjects, targets = zip(*(ORDERED_PAIRS[pairs[first]] for first in start), strict=True) if len(start) else ((), ())
    return Annotation.from_bouts(
        start,
        stop,
        behavior,
        ethogram,
        rate,
        len(codes),
        subject=[TRIO[a] for a in subjects],
        target=[TRIO[b] for b in targets],
        subjects=TRIO,
    )


def simulate_trio(
    codes: NDArray[np.int64],
    pairs: NDArray[np.int64],
    rate: float,
    generator: np.random.Generator,
    individual: np.random.Generator,
    missing: float,
) -> Poses:
    """Simulate three mice: the subject of a bout follows its target, the third moves independently. See `simulate_pair`."""
    n_frames = len(codes)
    closeness_of, alignment_of, turning_of, speed_of = (table[_TRIO_ROWS] for table in (CLOSENESS, ALIGNMENT, TURNING, SPEED))
    offset_of = OFFSET[_TRIO_ROWS]
    length = np.exp(individual.normal(np.log([95.0, 90.0, 85.0]), 0.08))
    ease = 1 - np.exp(-1 / (0.15 * rate))
    turning, speed = turning_of[codes] * np.sqrt(30 / rate), speed_of[codes] * np.exp(individual.normal(0, 0.15))
    paths = [_random_path(n_frames, rate, speed, turning, generator) for _ in TRIO]
    bodies, nearest = [], np.zeros(n_frames)
    for a in range(len(TRIO)):
        center, heading = paths[a][0].copy(), paths[a][1].copy()
        for b in range(len(TRIO)):
            if a == b:
                continue
            acts = pairs == ORDERED_PAIRS.index((a, b))
            closeness, alignment = (smooth(np.where(acts, table[codes], 0.0), ease) for table in (closeness_of, alignment_of))
            target, target_heading = paths[b]
            offset = np.exp(1j * target_heading) * (offset_of[codes, 0] + 1j * offset_of[codes, 1]) * length.mean()
            near = target + np.stack([offset.real, offset.imag], axis=1)
            center = (1 - closeness[:, None]) * center + closeness[:, None] * near
            heading = heading + alignment * np.angle(np.exp(1j * (target_heading - heading)))
            nearest = np.maximum(nearest, closeness)
        bodies.append(_body(center, heading, length[a], generator))
    return _tracked(np.stack(bodies, axis=1), TRIO, rate, missing, generator, nearest)


def _random_path(
    n_frames: int, rate: float, speed: NDArray[np.float64], turning: NDArray[np.float64], generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw a smooth path inside the arena (n_frames, 2) and the heading along it (n_frames,)."""
    keep = np.exp(-1 / (4.0 * rate))
    noise = generator.normal(0, 1, (n_frames, 2)) * speed[:, None]
    start = generator.normal(0, 0.6, (1, 2))
    # the AR(1) filter starts at a random position; its stationary standard deviation is 1
    path, _ = lfilter([np.sqrt(1 - keep**2)], [1, -keep], noise, axis=0, zi=keep * start)
    decay = np.exp(-1 / (0.3 * rate))
    path = lfilter([1 - decay], [1, -decay], path - start, axis=0) + start
    center = np.array([WIDTH, HEIGHT]) * (0.5 + 0.42 * np.tanh(0.8 * path))
    heading = np.cumsum(generator.normal(0, 1, n_frames) * turning) + generator.uniform(-np.pi, np.pi)
    step = np.gradient(center, axis=0) if n_frames > 1 else np.zeros_like(center)
    course = np.arctan2(step[:, 1], step[:, 0])
    return center, heading + smooth(np.angle(np.exp(1j * (course - heading))), 1 - decay)


def _body(center: NDArray[np.float64], heading: NDArray[np.float64], length: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return the keypoints of a body with a little tracking noise (n_frames, n_keypoints, 2)."""
    plane = length * BODY.view(np.complex128)[:, 0] * np.exp(1j * heading)[:, None] + center.view(np.complex128)
    points = plane.view(np.float64).reshape(len(center), len(BODY), 2)
    points += generator.standard_normal(points.shape, dtype=np.float32)
    return np.asarray(points)


def _tracked(
    positions: NDArray[np.float64],
    animals: tuple[str, ...],
    rate: float,
    missing: float,
    generator: np.random.Generator,
    closeness: NDArray[np.float64],
) -> Poses:
    """Add confidence values, and drop keypoints as a tracker does."""
    confidence = 0.97 - 0.03 * np.abs(generator.standard_normal(positions.shape[:3], dtype=np.float32))
    dropped = draw_dropouts(positions.shape[:3], rate, missing, generator, closeness)
    positions[dropped] = np.nan
    confidence[dropped] = generator.uniform(0, 0.2, int(dropped.sum()))
    return Poses(positions, confidence.astype(np.float64), animals, KEYPOINTS, rate)


def draw_dropouts(
    shape: tuple[int, ...], rate: float, share: float, generator: np.random.Generator, closeness: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Draw runs of frames in which single keypoints are missing, more often where animals are close (frames, animals, keypoints)."""
    n_frames = shape[0]
    dropped = np.zeros(shape, dtype=bool)
    if share <= 0 or n_frames == 0:
        return dropped
    mean_length = 0.3 * rate
    count = generator.poisson(share * n_frames / mean_length, shape[1:])
    for animal, point in np.ndindex(*shape[1:]):
        first = generator.integers(0, n_frames, count[animal, point])
        first = first[generator.random(len(first)) < 0.4 + 0.6 * closeness[first]]
        for start, size in zip(first, generator.geometric(1 / mean_length, len(first)), strict=True):
            dropped[start : start + size, animal, point] = True
    return dropped


# A tag with accelerometer and gyroscope

CHANNELS = ("AccX", "AccY", "AccZ", "GyrX", "GyrY", "GyrZ")
TAG_STATES = (
    State("rest", 20.0, 2.0, 1.0),
    State("walk", 10.0, 3.0, 0.9),
    State("run", 4.0, 3.0, 0.3),
    State("feed", 8.0, 2.0, 0.6),
    State("groom", 5.0, 2.0, 0.3),
)

# By state of TAG_STATES: pitch and roll of the body (rad), stride frequency (Hz), its amplitude on each axis (g), and amplitude of sway.
PITCH = np.array([0.1, 0.0, -0.1, 0.8, 0.4])
ROLL = np.array([0.5, 0.0, 0.0, 0.1, -0.4])
FREQUENCY = np.array([0.3, 1.8, 3.2, 1.0, 4.5])
AMPLITUDE = np.array([[0.01, 0.01, 0.02], [0.15, 0.08, 0.25], [0.5, 0.25, 0.8], [0.08, 0.05, 0.1], [0.12, 0.3, 0.12]])
SWAY = np.array([0.02, 0.1, 0.2, 0.15, 0.2])


def simulate_tag(codes: NDArray[np.int64], rate: float, generator: np.random.Generator, individual: np.random.Generator) -> Signals:
    """Simulate acceleration (g) and angular velocity (rad/s) of a tag whose mounting angle is drawn from `individual`."""
    n_frames = len(codes)
    mounting = Rotation.from_rotvec(individual.normal(0, 0.25, 3))
    vigor, pace = np.exp(individual.normal(0, 0.2, 2))
    decay = np.exp(-1 / (0.5 * rate))
    sway = lfilter([1 - decay], [1, -decay], generator.normal(0, 1, (n_frames, 2)) * SWAY[codes, None] * np.sqrt(rate), axis=0)
    pitch, roll = smooth(PITCH[codes], 1 - decay) + sway[:, 0], smooth(ROLL[codes], 1 - decay) + sway[:, 1]
    gravity = np.stack([-np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)], axis=1)

    jitter = lfilter([1 - decay], [1, -decay], generator.normal(0, 1, n_frames))
    phase = 2 * np.pi * np.cumsum(FREQUENCY[codes] * pace * (1 + jitter)) / rate
    amplitude = np.stack([smooth(AMPLITUDE[codes, axis], 1 - decay) for axis in range(3)], axis=1) * vigor
    shifts = individual.uniform(0, 2 * np.pi, 3)
    stride = np.sin(phase[:, None] + shifts) + 0.3 * np.sin(2 * phase[:, None] + 2 * shifts)
    acceleration = gravity + amplitude * stride + generator.normal(0, 0.02, (n_frames, 3))

    velocity = amplitude * np.cos(phase[:, None] + shifts) + generator.normal(0, 0.02, (n_frames, 3))
    if n_frames > 1:
        velocity += np.stack([np.gradient(roll), np.gradient(pitch), np.zeros(n_frames)], axis=1) * rate
    return Signals(np.hstack([mounting.apply(acceleration), mounting.apply(velocity)]), CHANNELS, rate)


def smooth(values: NDArray[np.float64], ease: float) -> NDArray[np.float64]:
    """Smooth values (n_frames,) exponentially; `ease` is the weight of the newest frame."""
    if len(values) == 0:
        return values
    smoothed, _ = lfilter([ease], [1, ease - 1], values, zi=[(1 - ease) * values[0]])
    return np.asarray(smoothed)
