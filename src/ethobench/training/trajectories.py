"""Windows around every frame to learn from: recordings laid end to end in one array, so that a batch is one gather."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError
from ethobench.training.augmentation import Layout, augment
from ethobench.training.clips import SAMPLED, UNKNOWN, is_known
from ethobench.training.losses import Loss
from ethobench.training.trajectory_inputs import Prepared

WEIGHTS = ("none", "balanced")


@dataclass(frozen=True)
class Reach:
    """Which frames a window holds: `past` before the current one and `future` after it, `gap` frames apart."""

    past: int
    future: int
    gap: int = 1

    def __post_init__(self) -> None:
        if self.past < 0 or self.future < 0 or self.gap < 1:
            raise EthobenchError(f"a window has 0 or more frames before and after, 1 or more apart, not {self}")

    @property
    def frames(self) -> int:
        """Frames of a window."""
        return self.past + 1 + self.future

    @property
    def before(self) -> int:
        """How far it reaches back."""
        return self.past * self.gap

    @property
    def after(self) -> int:
        """How far it reaches ahead."""
        return self.future * self.gap

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Places of its frames, relative to the current one."""
        return np.arange(-self.past, self.future + 1) * self.gap


@dataclass(frozen=True)
class Plan:
    """The examples of a batch, and the seed of what is done to them."""

    examples: NDArray[np.int64]
    seed: int


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Recordings end to end, and the frames that are examples.

    Attributes
    ----------
    values : array (n_rows, n_channels) of float32
        Zeros before and after each recording, as far as a window reaches.
    centers : array of int64
        The row of each example's current frame.
    targets : array of int16 (n_examples,) or (n_examples, n_behaviors)
        Codes, or 0 and 1 for each behavior; -1 where it was not looked for.
    reach : Reach
    batch : int
        Examples of a batch.
    samples : int, optional
        The most examples of an epoch, drawn anew for each; all of them unless given.
    augment : tuple of str
        See `learning.augmentation`.
    layout : Layout, optional
        What augmentations have to know.
    styles : array of int16, optional
        Each example's annotator; their shares become channels.
    n_styles : int
        How many annotators there are.
    """

    values: NDArray[np.float32]
    centers: NDArray[np.int64]
    targets: NDArray[np.int16]
    reach: Reach
    batch: int
    samples: int | None = None
    augment: tuple[str, ...] = ()
    layout: Layout | None = None
    styles: NDArray[np.int16] | None = None
    n_styles: int = 0

    def __len__(self) -> int:
        return len(self.centers)

    @property
    def checksum(self) -> int:
        """A number that changes with the data: all targets, and a sample of the values."""
        return zlib.crc32(np.ascontiguousarray(self.values[::SAMPLED]).data, zlib.crc32(np.ascontiguousarray(self.targets).data))

    def draw(self, generator: np.random.Generator) -> list[Plan]:
        """Shuffle the examples, or so many of them as an epoch takes, and deal them to batches; the last may be short."""
        few = self.samples is not None and self.samples < len(self)
        order = generator.choice(len(self), self.samples, replace=False) if few else generator.permutation(len(self))
        cuts = np.arange(self.batch, len(order), self.batch)
        if len(cuts) and len(order) - cuts[-1] == 1:
            cuts = cuts[:-1]  # one example alone has no spread to be normalised by
        return [Plan(part, int(generator.integers(2**63))) for part in np.split(order, cuts)]

    def gather(self, plan: Plan, /) -> tuple[NDArray[np.float32], NDArray[np.int16]]:
        """Return the windows around some examples, augmented, and their targets."""
        windows = augmented(self.values[self.centers[plan.examples][:, None] + self.reach.offsets], self, plan.seed)
        if self.styles is not None:
            shares = np.eye(self.n_styles, dtype=np.float32)[self.styles[plan.examples]]
            windows = np.concatenate([windows, np.broadcast_to(shares[:, None], (*windows.shape[:2], self.n_styles))], axis=2)
        return windows, self.targets[plan.examples]


def augmented(windows: NDArray[np.float32], how: Trajectories, seed: int) -> NDArray[np.float32]:
    """Change windows at random, as the trajectories want it."""
    if not how.augment or how.layout is None:
        return windows
    import torch

    return augment(torch.from_numpy(windows), how.augment, how.layout, torch.Generator().manual_seed(seed)).numpy()


def lay_out(
    opened: Sequence[Prepared], targets: Sequence[NDArray[np.int16]], reach: Reach
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int16], NDArray[np.int64]]:
    """Lay recordings end to end.

    Parameters
    ----------
    opened : sequence of Prepared
    targets : sequence of array of int16
        As in `Trajectories`, of every frame; what they lack in length, and frames of which nothing is known, are no examples.
    reach : Reach

    Returns
    -------
    values : array of float32
        As in `Trajectories`.
    centers : array of int64
        As in `Trajectories`.
    targets : array of int16
        As in `Trajectories`.
    recordings : array of int64
        Which recording each example is of.
    """
    lengths = np.array([reach.before + len(each) + reach.after for each in opened])
    starts = np.cumsum(lengths) - lengths + reach.before
    values = np.zeros((int(lengths.sum()), opened[0].how.n_inputs), dtype=np.float32)
    centers, found, owners = [], [], []
    for place, (each, target, first) in enumerate(zip(opened, targets, starts, strict=True)):
        for start, stop in each.pieces():
            values[first + start : first + stop] = each.read(start, stop)
        known = np.flatnonzero(is_known(target[: len(each)]))
        centers.append(first + known)
        found.append(target[known])
        owners.append(np.full(len(known), place))
    if not sum(map(len, centers)):
        raise EthobenchError("there is nothing to learn from: no frame was observed")
    return values, np.concatenate(centers), np.concatenate(found), np.concatenate(owners)


def check_weight(class_weight: str | float) -> None:
    """Refuse what is no weighting of classes."""
    if not (class_weight in WEIGHTS or (isinstance(class_weight, (int, float)) and class_weight > 0)):
        raise EthobenchError(f"a class weight is one of {', '.join(WEIGHTS)}, or a number above 0, not {class_weight!r}")


def weigh_classes(targets: NDArray[np.int16], n_outputs: int, background: int, class_weight: str | float) -> NDArray[np.float32]:
    """Return the weight of each class (exclusive), or of each behavior where it goes on (overlapping).

    Parameters
    ----------
    targets : array of int16
        Of all examples.
    n_outputs : int
    background : int
        The code whose weight stays 1 where `class_weight` is a number.
    class_weight : {"none", "balanced"} or float
        ``balanced`` makes all classes count alike together; a number is the weight of every behavior against the background.
    """
    weights = np.ones(n_outputs, dtype=np.float32)
    if class_weight == "balanced" and targets.ndim == 1:
        counts = np.bincount(targets[targets != UNKNOWN], minlength=n_outputs)
        weights[:] = np.where(counts > 0, counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1)), 1.0)
    elif class_weight == "balanced":
        there, absent = ((targets == value).sum(axis=0) for value in (1, 0))
        weights[:] = np.where(there > 0, absent / np.maximum(there, 1), 1.0)
    elif isinstance(class_weight, (int, float)):
        weights[:] = class_weight
        if targets.ndim == 1:
            weights[background] = 1.0
    return weights


def weighted_loss(weights: NDArray[np.float32], *, exclusive: bool) -> Loss:
    """Make the loss that Keras has: examples count by their class, and the sum is divided by their number, not by their weights."""
    import torch
    from torch import Tensor

    weight = torch.from_numpy(weights)

    def exclusive_loss(scores: Tensor, targets: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(scores, targets.long(), weight=weight.to(scores.device), reduction="none").mean()

    def overlapping_loss(scores: Tensor, targets: Tensor) -> Tensor:
        known = targets != UNKNOWN
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            scores, targets.clamp(min=0).to(scores.dtype), pos_weight=weight.to(scores.device), reduction="none"
        )
        return losses[known].mean()

    return exclusive_loss if exclusive else overlapping_loss


def shares_of(style: str | None, styles: Sequence[str]) -> list[float]:
    """Return each annotator's share: all of one, or alike where none is named."""
    if style is None:
        return [1 / len(styles)] * len(styles)
    if style not in styles:
        raise EthobenchError(f"the model learnt from no annotator {style!r}; it did from: {', '.join(styles)}")
    return [float(name == style) for name in styles]
