"""Pretext tasks for self-supervised pre-training, on windows of acceleration and of poses.

Transformations of acceleration take windows (n_windows, n_frames, 3) and transform every one of them. The encoder is trained to predict
which of them were applied. On poses, the network is trained to reconstruct masked keypoints, to predict the direction of time, and to
predict programmed attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ethobench.training.losses import Loss
from ethobench.training.windows import Plan, WindowSampler

if TYPE_CHECKING:
    from torch import Tensor

Windows = NDArray[np.float32]
N_SEGMENTS = 4  # of a permuted window
MIN_SEGMENT = 10  # frames
WARP_KNOTS = 6
WARP_DEVIATION = 0.2
SCALE_CHANGE = (0.15, 0.5)  # smallest and largest

POSE_TASKS = ("masked", "arrow", "attributes")
N_ATTRIBUTES, ATTRIBUTE_LEVELS = 10, 3
RECONSTRUCTED_STEP = 5  # every fifth frame of a window is reconstructed
MASKED_KEYPOINTS = 0.15  # share of the keypoints that are masked in a complete window
MASKED_FRAMES = (0.1, 0.35)  # smallest and largest share of a window in which all keypoints are masked


def reverse_time(windows: Windows, generator: np.random.Generator) -> Windows:
    """Reverse time."""
    return windows[:, ::-1]


def change_scale(windows: Windows, generator: np.random.Generator) -> Windows:
    """Multiply each axis by a factor between 0.5 and 1.5 that differs from 1 by at least 0.15."""
    size = (len(windows), 1, windows.shape[2])
    factors = 1 + generator.choice([-1, 1], size) * generator.uniform(*SCALE_CHANGE, size)
    return np.asarray(windows * factors, dtype=np.float32)


def permute_segments(windows: Windows, generator: np.random.Generator) -> Windows:
    """Cut each window into four segments, each longer than ten frames, and permute them."""
    count, frames, _ = windows.shape
    cuts = draw_cuts(count, frames, generator)
    segment = (np.arange(frames) >= cuts[:, :, None]).sum(axis=1)
    position = generator.permuted(np.tile(np.arange(N_SEGMENTS), (count, 1)), axis=1)
    order = np.argsort(np.take_along_axis(position, segment, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(windows, order[:, :, None], axis=1))


def draw_cuts(count: int, frames: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw three sorted cuts for each window by rejection sampling, so that all segments are long enough (n_windows, 3)."""
    shortest = min(MIN_SEGMENT, frames // (2 * N_SEGMENTS))
    cuts = np.zeros((count, N_SEGMENTS - 1), dtype=np.int64)
    rejected = np.arange(count)
    while len(rejected):
        cuts[rejected] = np.sort(generator.integers(shortest, frames - shortest + 1, (len(rejected), N_SEGMENTS - 1)), axis=1)
        lengths = np.diff(cuts[rejected], prepend=0, append=frames, axis=1)
        rejected = rejected[(lengths <= shortest).any(axis=1)]
    return cuts


def warp_time(windows: Windows, generator: np.random.Generator) -> Windows:
    """Speed time up and slow it down along a smooth random curve, a different one for each axis."""
    from scipy.interpolate import CubicSpline

    count, frames, axes = windows.shape
    knots = generator.normal(1, WARP_DEVIATION, (WARP_KNOTS, count, axes))
    speed = CubicSpline(np.linspace(0, frames - 1, WARP_KNOTS), knots)(np.arange(frames))
    time = np.cumsum(speed, axis=0)
    time = np.clip(time * ((frames - 1) / time[-1]), 0, frames - 1).transpose(1, 0, 2)
    before = np.minimum(time.astype(np.int64), max(frames - 2, 0))
    low, high = (np.take_along_axis(windows, np.minimum(before + k, frames - 1), axis=1) for k in (0, 1))
    return np.asarray(low + (high - low) * (time - before), dtype=np.float32)


def rotate(windows: Windows, generator: np.random.Generator) -> Windows:
    """Permute the axes of each window and rotate them at random, so that the encoder does not depend on the orientation of the tag."""
    from scipy.spatial.transform import Rotation

    axes = generator.permuted(np.tile(np.arange(3), (len(windows), 1)), axis=1)
    rotation = Rotation.from_euler("xyz", generator.uniform(-np.pi, np.pi, (len(windows), 3))).as_matrix()
    return np.asarray(np.take_along_axis(windows, axes[:, None], axis=2) @ rotation.transpose(0, 2, 1), dtype=np.float32)


ACCELERATION_TASKS: dict[str, Callable[[Windows, np.random.Generator], Windows]] = {
    "arrow": reverse_time,
    "scale": change_scale,
    "permutation": permute_segments,
    "warp": warp_time,
}
DEFAULT_ACCELERATION_TASKS = ("arrow", "permutation", "warp")


def apply_tasks(
    windows: Windows, tasks: Sequence[str], generator: np.random.Generator, *, rotated: bool = False
) -> tuple[Windows, NDArray[np.int64]]:
    """Apply each transformation to each window with probability 0.5.

    Parameters
    ----------
    windows : array of float32 (n_windows, n_frames, 3)
    tasks : sequence of str
        Names in `ACCELERATION_TASKS`.
    generator : Generator
    rotated : bool
        Rotate each window at random afterwards, transformed or not.

    Returns
    -------
    windows : array of float32 (n_windows, n_frames, 3)
    labels : array of int (n_windows, n_tasks)
        1 where the transformation was applied.
    """
    transformed = np.array(windows, dtype=np.float32)
    labels = generator.integers(0, 2, (len(windows), len(tasks)))
    for name in sorted(tasks, key=list(ACCELERATION_TASKS).index):
        chosen = labels[:, tasks.index(name)] == 1
        if chosen.any():
            transformed[chosen] = ACCELERATION_TASKS[name](transformed[chosen], generator)
    return (rotate(transformed, generator) if rotated and len(transformed) else transformed), labels


def movement(windows: Windows, rate: float) -> NDArray[np.float64]:
    """Return the amount of movement in each window (n_windows,): the standard deviation within a second, averaged over seconds and axes."""
    second = min(max(round(rate), 2), windows.shape[1])
    complete = windows[:, : windows.shape[1] // second * second]
    return np.asarray(complete.reshape(len(windows), -1, second, windows.shape[2]).std(axis=2, dtype=np.float64).mean(axis=(1, 2)))


@dataclass(frozen=True, eq=False)
class AccelerationBatches:
    """Batches of transformed windows of acceleration.

    Attributes
    ----------
    signal : array of float32 (n_frames, 3)
        All recordings, one after the other.
    starts : array of int (n_windows,)
        First frame of each window; windows overlap, so that short recordings have many.
    n_frames : int
        Frames of a window.
    groups : array of int (n_windows,)
        Index of each window's individual.
    weights : array of float (n_windows,)
        Sampling weight, from the amount of movement.
    tasks : tuple of str
    subjects, per_subject : int
        Maximum number of individuals in a batch, and of windows of each.
    updates : int
        Minimum number of batches in an epoch. With one window of each individual per epoch, a study of eight animals has two updates in
        an epoch, and the training would stop before anything is learned.
    rotated : bool
        Whether each window is rotated at random.
    """

    signal: Windows
    starts: NDArray[np.int64]
    n_frames: int
    groups: NDArray[np.int64]
    weights: NDArray[np.float64]
    tasks: tuple[str, ...]
    subjects: int
    per_subject: int
    updates: int = 1
    rotated: bool = False

    def draw(self, generator: np.random.Generator) -> list[Plan]:
        """Draw windows of every individual, those with movement more often."""
        plans: list[Plan] = []
        while len(plans) < self.updates:
            selected = []
            for group in generator.permutation(np.unique(self.groups)):
                candidates = np.flatnonzero(self.groups == group)
                weights = self.weights[candidates] + 1e-12
                count = min(self.per_subject, len(candidates))
                selected.append(generator.choice(candidates, count, replace=False, p=weights / weights.sum()))
            splits = np.array_split(np.arange(len(selected)), -(-len(selected) // self.subjects))  # of similar size, for normalization
            batches = [np.concatenate([selected[i] for i in split]) for split in splits]
            plans += [Plan(batch, int(generator.integers(2**63))) for batch in batches]
        return plans

    def gather(self, plan: Plan, /) -> tuple[Windows, NDArray[np.int64]]:
        """Return transformed windows, and the transformations of each."""
        windows = cut_windows(self.signal, self.starts[plan.anchors], self.n_frames)
        return apply_tasks(windows, self.tasks, np.random.default_rng(plan.seed), rotated=self.rotated)


def cut_windows(signal: Windows, starts: NDArray[np.int64], n_frames: int) -> Windows:
    """Return the windows of a signal that start at the given frames (n_windows, n_frames, n_channels)."""
    return np.asarray(signal[starts[:, None] + np.arange(n_frames)])


def acceleration_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy, averaged over tasks."""
    import torch

    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())


@dataclass(frozen=True, eq=False)
class PoseBatches:
    """Batches of windows of poses in which keypoints are masked.

    Attributes
    ----------
    sampler : WindowSampler
        Its targets are the levels of the programmed attributes.
    tasks : tuple of str
        In the order of `POSE_TASKS`.
    """

    sampler: WindowSampler
    tasks: tuple[str, ...]

    def draw(self, generator: np.random.Generator) -> list[Plan]:
        """Draw the batches of an epoch."""
        return self.sampler.draw(generator)

    def gather(self, plan: Plan, /) -> tuple[Windows, NDArray[np.float32]]:
        """Return masked windows, and the targets of all tasks side by side; of the masked values, NaN where nothing was masked."""
        windows, levels = self.sampler.gather(plan)
        generator = np.random.default_rng(plan.seed)
        reversed_ = generator.random(len(windows)) < 0.5 if "arrow" in self.tasks else np.zeros(len(windows), dtype=bool)
        windows = np.where(reversed_[:, None, None], windows[:, ::-1], windows)
        masked = draw_mask(windows.shape, generator) & (windows != 0)
        reconstructed = np.where(masked, windows, np.float32(np.nan))[:, ::RECONSTRUCTED_STEP].reshape(len(windows), -1)
        inputs = np.where(masked, np.float32(0), windows) if "masked" in self.tasks else windows
        targets = {"masked": reconstructed, "arrow": reversed_[:, None].astype(np.float32), "attributes": levels.astype(np.float32)}
        return inputs, np.concatenate([targets[task] for task in self.tasks], axis=1)


def draw_mask(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.bool_]:
    """Draw a mask of windows (window, frame, channel): a run of frames, and single keypoints in all frames."""
    count, frames, channels = shape
    shortest, longest = (max(1, round(share * frames)) for share in MASKED_FRAMES)
    length = generator.integers(shortest, longest + 1, (count, 1))
    start = generator.integers(0, frames - length + 1)
    frame = np.arange(frames)
    run = (frame >= start) & (frame < start + length)
    keypoints = np.repeat(generator.random((count, channels // 2)) < MASKED_KEYPOINTS, 2, axis=1)
    return run[:, :, None] | keypoints[:, None, :]


def pose_loss(tasks: Sequence[str], n_reconstructed: int, variances: NDArray[np.float32]) -> Loss:
    """Make the sum of the tasks' losses: squared error of masked values relative to their variance, and cross-entropies.

    Parameters
    ----------
    tasks : sequence of str
        In the order of the outputs and targets.
    n_reconstructed : int
        Number of outputs that reconstruct masked values.
    variances : array of float32 (n_channels,)
    """
    import torch

    variance = torch.from_numpy(variances)

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        total = outputs.sum() * 0
        if "masked" in tasks:
            values = targets[:, :n_reconstructed]
            masked = ~values.isnan()
            repeated = variance.to(outputs.device).repeat(n_reconstructed // len(variance))
            errors = (outputs[:, :n_reconstructed] - values.nan_to_num()).square() / repeated
            total = total + (errors * masked).sum() / masked.sum().clamp(min=1)
        if "arrow" in tasks:
            column = n_reconstructed if "masked" in tasks else 0
            total = total + torch.nn.functional.binary_cross_entropy_with_logits(outputs[:, column], targets[:, column])
        if "attributes" in tasks:
            scores = outputs[:, -N_ATTRIBUTES * ATTRIBUTE_LEVELS :].reshape(-1, ATTRIBUTE_LEVELS)
            levels = targets[:, -N_ATTRIBUTES:].reshape(-1).long()
            total = total + torch.nn.functional.cross_entropy(scores, levels, ignore_index=-1)
        return total

    return loss
