"""Windows for networks whose clock is slower than the recording's: random stretches, changed at random, targets thinned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.training.augmentation import Layout, augment
from ethobench.training.clips import UNKNOWN, Clips
from ethobench.training.losses import Loss

if TYPE_CHECKING:
    import torch
    from torch import Tensor

UPDATES = 25  # of an epoch
TRUNCATED = 4.0  # jumps of log-probabilities beyond it count no more, so that behaviors may still begin and end
CHUNK = 1 << 15  # frames predicted at a time


@dataclass(frozen=True)
class Steps:
    """Batches of stretches, the same for the same plan.

    Attributes
    ----------
    clips : Clips
        Recordings end to end.
    stride : int
        Frames of a step; targets are those of the frame that a step lies on.
    layout : Layout
        What the channels stand for.
    augmentations : sequence of str
        Of `AUGMENTATIONS`.
    noise : float
        Standard deviation of what is added to every value.
    """

    clips: Clips
    stride: int
    layout: Layout
    augmentations: Sequence[str] = ()
    noise: float = 0.0

    def draw(self, generator: np.random.Generator) -> list[tuple[NDArray[np.int64], int]]:
        """Plan an epoch: where stretches begin, and a seed for how they are changed."""
        before = np.concatenate(([0], np.cumsum(self.clips.starts.stop - self.clips.starts.start)))
        plans = []
        for _ in range(UPDATES):
            chosen = generator.integers(iv.total(self.clips.starts), size=self.clips.batch)
            run = np.searchsorted(before, chosen, side="right") - 1
            plans.append((self.clips.starts.start[run] + chosen - before[run], int(generator.integers(2**31))))
        return plans

    def gather(self, plan: tuple[NDArray[np.int64], int]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the inputs and targets of a batch."""
        import torch

        values, targets = self.clips.gather(plan[0])
        random = torch.Generator().manual_seed(plan[1])
        changed = augment(torch.from_numpy(values), self.augmentations, self.layout, random)
        if self.noise:
            changed = changed + self.noise * torch.randn(changed.shape, generator=random)
        return changed.numpy(), targets[:, :: self.stride]


def tempered_weights(targets: NDArray[np.integer], n_classes: int, temper: float) -> NDArray[np.float32]:
    """Return weights of classes with mean 1 over the known frames: 0 leaves them as frequent as they are, 1 balances them."""
    counts = np.bincount(targets[targets != UNKNOWN], minlength=n_classes).astype(np.float64)
    weights = np.where(counts > 0, np.maximum(counts, 1.0) ** -temper, 0.0)
    return np.asarray(weights * (counts.sum() / max(float((weights * counts).sum()), 1e-12)), dtype=np.float32)


def smooth_exclusive_loss(weights: NDArray[np.float32], *, smoothing: float, steadiness: float) -> Loss:
    """Make a cross-entropy with softened labels that also dislikes probabilities that jump from step to step.

    Parameters
    ----------
    weights : array (n_classes,)
    smoothing : float
        Share of a label that goes to all classes alike.
    steadiness : float
        How much squared jumps of log-probabilities count (truncated).
    """
    import torch

    weight = torch.from_numpy(weights)

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        chances = torch.log_softmax(logits, dim=-1)
        known = targets != UNKNOWN
        codes = targets[known].long()
        rows = chances[known]
        own = weight.to(logits.device)[codes]
        right = rows.gather(1, codes[:, None])[:, 0]
        value = -((1 - smoothing) * right + smoothing * rows.mean(dim=1)) * own
        return value.sum() / own.sum().clamp(min=1e-6) + steadiness * _jumps(chances)

    return loss


def smooth_overlapping_loss(*, steadiness: float) -> Loss:
    """Make the binary cross-entropy of each behavior, over what was looked for, that also dislikes jumps."""
    import torch

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        known = targets != UNKNOWN
        value = torch.nn.functional.binary_cross_entropy_with_logits(logits[known], targets[known].to(logits.dtype))
        return value + steadiness * _jumps(torch.nn.functional.logsigmoid(logits))

    return loss


def predict_steps(
    module: torch.nn.Module, read: Callable[[int, int], NDArray[np.float32]], n_frames: int, stride: int, reach: int, *, exclusive: bool
) -> NDArray[np.float32]:
    """Return the probabilities of every step of a recording, some thousand frames at a time.

    Parameters
    ----------
    module : Module
        Turns (batch, frames, channels) into scores of steps.
    read : callable
        Returns the inputs of the frames ``[start, stop)``.
    n_frames, stride : int
    reach : int
        Frames to one side that a step depends on.
    exclusive : bool
        One behavior at a time (softmax), or each on its own (sigmoid).
    """
    import torch

    module.eval()
    device = next(module.parameters()).device
    margin, size = -(-reach // stride) * stride, CHUNK // stride * stride
    parts = []
    with torch.inference_mode():
        for start in range(0, max(n_frames, 1), size):
            first, stop = max(start - margin, 0), min(start + size, n_frames)
            values = read(first, min(stop + margin, n_frames))
            scores = module(torch.from_numpy(values)[None].to(device))[0]
            chances = torch.softmax(scores, dim=-1) if exclusive else torch.sigmoid(scores)
            parts.append(chances[(start - first) // stride :][: -(-(stop - start) // stride)].cpu().numpy())
    return np.concatenate(parts)


def _jumps(chances: Tensor) -> Tensor:
    """Return the mean squared change from one step to the next, as in MS-TCN: gradients go to the later step only."""
    if chances.shape[1] < 2:
        return chances.new_zeros(())
    change = (chances[:, 1:] - chances[:, :-1].detach()).abs().clamp(max=TRUNCATED)
    return (change * change).mean()
