"""Losses that pass over what is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.training.clips import UNKNOWN

if TYPE_CHECKING:
    from torch import Tensor

Loss: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"


def class_weights(targets: NDArray[np.integer], n_classes: int) -> NDArray[np.float32]:
    """Return ``1 / (share + 1e-6)`` of each class among the known frames."""
    counts = np.bincount(targets[targets != UNKNOWN], minlength=n_classes)
    return np.asarray(1.0 / (counts / counts.sum() + 1e-6), dtype=np.float32)


def exclusive_loss(weights: NDArray[np.float32]) -> Loss:
    """Make the cross-entropy of one code per frame, weighted by class."""
    import torch

    weight = torch.from_numpy(weights)

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, -2), targets.flatten().long(), weight=weight.to(logits.device), ignore_index=UNKNOWN
        )

    return loss


def overlapping_loss() -> Loss:
    """Make the binary cross-entropy of each behavior on its own, over what was looked for."""
    import torch

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        known = targets != UNKNOWN
        return torch.nn.functional.binary_cross_entropy_with_logits(logits[known], targets[known].to(logits.dtype))

    return loss
