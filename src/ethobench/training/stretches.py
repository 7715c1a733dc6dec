"""Frames in a row to learn from at once: a convolutional network tells all of them for little more than the price of one window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ethobench.training.clips import UNKNOWN
from ethobench.training.losses import Loss
from ethobench.training.trajectories import Plan, Trajectories, augmented


@dataclass(frozen=True, eq=False)
class Stretches:
    """Trajectories, dealt in stretches of some frames; each epoch cuts them elsewhere, and sees every example about once.

    Attributes
    ----------
    trajectories : Trajectories
        Its `batch` is the number of stretches in a batch; its `samples` still counts frames.
    length : int
        Frames of a stretch.
    """

    trajectories: Trajectories
    length: int

    @property
    def checksum(self) -> int:
        """A number that changes with the data."""
        return self.trajectories.checksum

    def draw(self, generator: np.random.Generator) -> list[Plan]:
        """Cut the recordings into stretches, shuffle those with examples in them, and deal them to batches."""
        source, reach = self.trajectories, self.trajectories.reach
        phase = int(generator.integers(self.length))
        starts = np.unique((source.centers - phase) // self.length) * self.length + phase
        starts = np.unique(np.clip(starts, reach.before, len(source.values) - reach.after - self.length))
        count = len(starts) if source.samples is None else min(len(starts), max(1, round(source.samples / self.length)))
        order = generator.permutation(starts)[:count]
        return [Plan(part, int(generator.integers(2**63))) for part in np.split(order, np.arange(source.batch, count, source.batch))]

    def gather(self, plan: Plan, /) -> tuple[NDArray[np.float32], NDArray[np.int16]]:
        """Return stretches with all that their windows reach, augmented, and the targets of their frames."""
        source, starts = self.trajectories, plan.examples[:, None]
        reach = source.reach
        windows = source.values[starts + np.arange(-reach.before, self.length + reach.after)]
        return augmented(windows, source, plan.seed), self._targets[starts + np.arange(self.length)]

    @cached_property
    def _targets(self) -> NDArray[np.int16]:
        """The target of every row; -1 where there is no example."""
        source = self.trajectories
        targets = np.full((len(source.values), *source.targets.shape[1:]), UNKNOWN, dtype=np.int16)
        targets[source.centers] = source.targets
        return targets


def longest_stretch(trajectories: Trajectories, length: int) -> int:
    """Return the length of a stretch, or of all rows where they are fewer."""
    reach = trajectories.reach
    return min(length, len(trajectories.values) - reach.before - reach.after)


def of_known_frames(loss: Loss) -> Loss:
    """Make a loss of examples one of stretches: frames that are no examples do not count."""
    from torch import Tensor

    def loss_of_stretches(scores: Tensor, targets: Tensor) -> Tensor:
        known = targets != UNKNOWN
        known = known.any(dim=-1) if targets.ndim == scores.ndim else known
        return loss(scores[known], targets[known])

    return loss_of_stretches
