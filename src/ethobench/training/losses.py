"""Losses that ignore unobserved frames, and class weights.

Targets are class labels (..., n_frames) for behaviors that exclude each other, or 0 and 1 per behavior (..., n_behaviors) for behaviors
that may overlap; -1 where unobserved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.core.annotation import UNOBSERVED
from ethobench.core.errors import ParameterError

if TYPE_CHECKING:
    from torch import Tensor

Loss: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
Weights = NDArray[np.float32]
CLASS_WEIGHTS = ("none", "balanced")
MAX_JUMP = 4.0  # jumps of log-probabilities are truncated here, so that behaviors may still start and stop


def class_weights(
    targets: NDArray[np.integer],
    n_classes: int,
    scheme: str | float = "balanced",
    *,
    background: int | None = None,
    exponent: float = 1.0,
) -> Weights:
    """Return the weight of each class in the loss, from its number of observed frames.

    Parameters
    ----------
    targets : array of int
        Class labels (n_frames,), or binary labels (n_frames, n_behaviors), for which ``none``, ``balanced`` and numbers give the weight of
        frames with the behavior against frames without it.
    n_classes : int
        Number of classes, or of behaviors that may overlap.
    scheme : {"none", "balanced", "inverse", "power"} or float
        ``none``: 1. ``balanced``: all classes have the same total weight, the mean weight of a frame is 1. ``inverse``: 1 / (share of the
        frames + 1e-6), as in BEBE. ``power``: number of frames to the power of -`exponent`, the mean weight of a frame is 1. A number is
        the weight of every class but the background.
    background : int, optional
        The class that keeps weight 1 where `scheme` is a number.
    exponent : float
        For ``power``: 0 leaves classes as frequent as they are, 1 balances them.
    """
    weights = np.ones(n_classes, dtype=np.float32)
    if isinstance(scheme, (int, float)):
        weights[:] = scheme
        if targets.ndim == 1 and background is not None:
            weights[background] = 1.0
    elif scheme == "balanced" and targets.ndim == 2:
        positive, negative = ((targets == value).sum(axis=0) for value in (1, 0))
        weights[:] = np.where(positive > 0, negative / np.maximum(positive, 1), 1.0)
    elif scheme != "none":
        counts = np.bincount(targets[targets != UNOBSERVED], minlength=n_classes)
        if scheme == "inverse":
            weights[:] = 1.0 / (counts / counts.sum() + 1e-6)
        elif scheme == "power":
            powers = np.where(counts > 0, np.maximum(counts.astype(np.float64), 1.0) ** -exponent, 0.0)
            weights[:] = powers * (counts.sum() / max(float((powers * counts).sum()), 1e-12))
        else:
            weights[:] = np.where(counts > 0, counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1)), 1.0)
    return weights


def check_class_weight(class_weight: str | float) -> None:
    """Refuse a hyper-parameter `class_weight` that is neither a known scheme nor a positive number."""
    if not (class_weight in CLASS_WEIGHTS or (isinstance(class_weight, (int, float)) and class_weight > 0)):
        raise ParameterError(f"`class_weight` must be one of {', '.join(CLASS_WEIGHTS)}, or a number > 0, got {class_weight!r}")


def exclusive_loss(weights: Weights, *, average: str = "weights") -> Loss:
    """Make the weighted cross-entropy of class labels.

    Parameters
    ----------
    weights : array of float32 (n_classes,)
    average : {"weights", "frames"}
        Divide the sum by the total weight of the frames, as PyTorch does, or by their number, as Keras does.
    """
    import torch

    weight = torch.from_numpy(weights)

    def mean_by_weights(logits: Tensor, targets: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, -2), targets.flatten().long(), weight=weight.to(logits.device), ignore_index=UNOBSERVED
        )

    def mean_by_frames(logits: Tensor, targets: Tensor) -> Tensor:
        observed = targets != UNOBSERVED
        losses = torch.nn.functional.cross_entropy(
            logits[observed], targets[observed].long(), weight=weight.to(logits.device), reduction="none"
        )
        return losses.mean()

    return mean_by_weights if average == "weights" else mean_by_frames


def smoothed_exclusive_loss(weights: Weights, *, label_smoothing: float, temporal_smoothing: float) -> Loss:
    """Make the weighted cross-entropy of class labels with label smoothing, plus a penalty on changes over time.

    Parameters
    ----------
    weights : array of float32 (n_classes,)
    label_smoothing : float
        Share of a label that is spread over all classes.
    temporal_smoothing : float
        Weight of the temporal smoothing loss: squared, truncated changes of log-probabilities from one step to the next.
    """
    import torch

    weight = torch.from_numpy(weights)

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        log_probabilities = torch.log_softmax(logits, dim=-1)
        observed = targets != UNOBSERVED
        labels, rows = targets[observed].long(), log_probabilities[observed]
        frame_weights = weight.to(logits.device)[labels]
        likelihood = rows.gather(1, labels[:, None])[:, 0]
        losses = -((1 - label_smoothing) * likelihood + label_smoothing * rows.mean(dim=1)) * frame_weights
        return losses.sum() / frame_weights.sum().clamp(min=1e-6) + temporal_smoothing * _temporal_smoothing_loss(log_probabilities)

    return loss


def overlapping_loss(weights: Weights | None = None, *, temporal_smoothing: float = 0.0) -> Loss:
    """Make the mean binary cross-entropy over all observed frames and behaviors.

    Parameters
    ----------
    weights : array of float32 (n_behaviors,), optional
        Weight of frames with the behavior against frames without it.
    temporal_smoothing : float
        As in `smoothed_exclusive_loss`.
    """
    import torch

    positive_weight = None if weights is None else torch.from_numpy(weights)

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        observed = targets != UNOBSERVED
        if positive_weight is None:
            value = torch.nn.functional.binary_cross_entropy_with_logits(logits[observed], targets[observed].to(logits.dtype))
        else:
            labels = targets.clamp(min=0).to(logits.dtype)
            losses = torch.nn.functional.binary_cross_entropy_with_logits(
                logits, labels, pos_weight=positive_weight.to(logits.device), reduction="none"
            )
            value = losses[observed].mean()
        if temporal_smoothing:
            value = value + temporal_smoothing * _temporal_smoothing_loss(torch.nn.functional.logsigmoid(logits))
        return value

    return loss


def with_boundaries(loss: Loss, n_outputs: int, *, weight: float, reach: int, background: int | None) -> Loss:
    """Add a loss of two more outputs: whether a bout of any behavior starts, or stops, close to a step.

    Parameters
    ----------
    loss : callable
        Loss of the first outputs.
    n_outputs : int
        Number of its outputs, to which two are added.
    weight : float
        Weight of the mean binary cross-entropy of boundaries.
    reach : int
        Steps before and after a boundary that are labeled as such. Steps within this distance of an unobserved one do not count.
    background : int, optional
        The class or behavior that has no boundaries.
    """
    import torch

    def joint_loss(logits: Tensor, targets: Tensor) -> Tensor:
        labels, observed = boundary_targets(targets, n_outputs, reach, background)
        boundaries = torch.nn.functional.binary_cross_entropy_with_logits(logits[..., n_outputs:], labels, reduction="none")
        mean = boundaries[observed].sum() / (2 * observed.sum()).clamp(min=1)
        return loss(logits[..., :n_outputs], targets) + weight * mean

    return joint_loss


def boundary_targets(targets: Tensor, n_outputs: int, reach: int, background: int | None) -> tuple[Tensor, Tensor]:
    """Return where bouts start and stop, as labels (n_windows, n_steps, 2), and which steps are observed (n_windows, n_steps)."""
    import torch
    from torch.nn.functional import max_pool1d, one_hot, pad

    def spread(values: Tensor) -> Tensor:
        return max_pool1d(values, 2 * reach + 1, stride=1, padding=reach)

    unobserved = targets == UNOBSERVED
    occurs = (one_hot(targets.long().clamp(min=0), n_outputs) if targets.ndim == 2 else targets.clamp(min=0)).float()
    if targets.ndim == 3:
        unobserved = unobserved.any(dim=2)
    if background is not None:
        occurs = occurs.index_fill(2, torch.tensor([background], device=occurs.device), 0.0)
    change = pad(occurs[:, 1:] - occurs[:, :-1], (0, 0, 1, 0))
    edges = torch.stack([(change > 0).any(dim=2), (change < 0).any(dim=2)], dim=1).float()
    return spread(edges).transpose(1, 2), spread(unobserved[:, None].float())[:, 0] == 0


def _temporal_smoothing_loss(log_probabilities: Tensor) -> Tensor:
    """Return the mean squared, truncated change from one step to the next, as in MS-TCN: gradients go to the later step only."""
    if log_probabilities.shape[1] < 2:
        return log_probabilities.new_zeros(())
    change = (log_probabilities[:, 1:] - log_probabilities[:, :-1].detach()).abs().clamp(max=MAX_JUMP)
    return (change * change).mean()
