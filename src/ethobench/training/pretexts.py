"""What an encoder learns without labels: to tell which of its windows were tampered with, and how.

Functions take many windows at once, as an array (windows, frames, 3), and change every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Windows = NDArray[np.float32]
SEGMENTS = 4
SHORTEST = 10
KNOTS = 6
WARP = 0.2
SCALE = (0.15, 0.5)


def reverse_time(windows: Windows, generator: np.random.Generator) -> Windows:
    """Turn time around."""
    return windows[:, ::-1]


def change_scale(windows: Windows, generator: np.random.Generator) -> Windows:
    """Multiply each axis by a factor between 0.5 and 1.5 that differs from 1 by at least 0.15."""
    size = (len(windows), 1, windows.shape[2])
    factors = 1 + generator.choice([-1, 1], size) * generator.uniform(*SCALE, size)
    return np.asarray(windows * factors, dtype=np.float32)


def permute_segments(windows: Windows, generator: np.random.Generator) -> Windows:
    """Cut each window into four, every part longer than ten frames, and put the parts together in a random order."""
    count, frames, _ = windows.shape
    cuts = draw_cuts(count, frames, generator)
    segment = (np.arange(frames) >= cuts[:, :, None]).sum(axis=1)
    place = generator.permuted(np.tile(np.arange(SEGMENTS), (count, 1)), axis=1)
    order = np.argsort(np.take_along_axis(place, segment, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(windows, order[:, :, None], axis=1))


def draw_cuts(count: int, frames: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw three sorted cuts for each window, again and again until they are far enough apart."""
    shortest = min(SHORTEST, frames // (2 * SEGMENTS))
    cuts = np.zeros((count, SEGMENTS - 1), dtype=np.int64)
    wrong = np.arange(count)
    while len(wrong):
        cuts[wrong] = np.sort(generator.integers(shortest, frames - shortest + 1, (len(wrong), SEGMENTS - 1)), axis=1)
        lengths = np.diff(cuts[wrong], prepend=0, append=frames, axis=1)
        wrong = wrong[(lengths <= shortest).any(axis=1)]
    return cuts


def warp_time(windows: Windows, generator: np.random.Generator) -> Windows:
    """Let time run faster and slower along a smooth random curve, another for each axis."""
    from scipy.interpolate import CubicSpline

    count, frames, axes = windows.shape
    knots = generator.normal(1, WARP, (KNOTS, count, axes))
    speed = CubicSpline(np.linspace(0, frames - 1, KNOTS), knots)(np.arange(frames))
    place = np.cumsum(speed, axis=0)
    place = np.clip(place * ((frames - 1) / place[-1]), 0, frames - 1).transpose(1, 0, 2)
    before = np.minimum(place.astype(np.int64), max(frames - 2, 0))
    low, high = (np.take_along_axis(windows, np.minimum(before + k, frames - 1), axis=1) for k in (0, 1))
    return np.asarray(low + (high - low) * (place - before), dtype=np.float32)


def turn(windows: Windows, generator: np.random.Generator) -> Windows:
    """Permute the axes and turn them in space: how a tag sits is none of the encoder's business."""
    from scipy.spatial.transform import Rotation

    axes = generator.permuted(np.tile(np.arange(3), (len(windows), 1)), axis=1)
    rotation = Rotation.from_euler("xyz", generator.uniform(-np.pi, np.pi, (len(windows), 3))).as_matrix()
    return np.asarray(np.take_along_axis(windows, axes[:, None], axis=2) @ rotation.transpose(0, 2, 1), dtype=np.float32)


PRETEXTS: dict[str, Callable[[Windows, np.random.Generator], Windows]] = {
    "arrow": reverse_time,
    "scale": change_scale,
    "permutation": permute_segments,
    "warp": warp_time,
}
USUAL = ("arrow", "permutation", "warp")


def tamper(windows: Windows, tasks: Sequence[str], generator: np.random.Generator) -> tuple[Windows, NDArray[np.int64]]:
    """Tamper with windows, each task with each window by the toss of a coin, then turn all of them.

    Returns
    -------
    windows : array (windows, frames, 3) of float32
    labels : array (windows, tasks) of int
        1 where the window was tampered with.
    """
    changed = np.array(windows, dtype=np.float32)
    labels = generator.integers(0, 2, (len(windows), len(tasks)))
    for name in sorted(tasks, key=list(PRETEXTS).index):
        chosen = labels[:, tasks.index(name)] == 1
        if chosen.any():
            changed[chosen] = PRETEXTS[name](changed[chosen], generator)
    return (turn(changed, generator) if len(changed) else changed), labels


def movement(windows: Windows, rate: float) -> NDArray[np.float64]:
    """Return how much goes on in each window: the mean, over its seconds and axes, of the standard deviation within a second."""
    second = min(max(round(rate), 2), windows.shape[1])
    whole = windows[:, : windows.shape[1] // second * second]
    return np.asarray(whole.reshape(len(windows), -1, second, windows.shape[2]).std(axis=2, dtype=np.float64).mean(axis=(1, 2)))
