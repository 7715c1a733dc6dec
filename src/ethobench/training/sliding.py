"""What a network on windows says of every frame of a recording: densely where its layers allow it, else many windows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.training.trajectories import Reach
from ethobench.training.trajectory_inputs import Prepared

if TYPE_CHECKING:
    from torch import Tensor

    from ethobench.training.trajectory_networks import TrajectoryNetwork

PIECE = 1 << 13  # frames; what the layers make of them fits the caches
WINDOWS = 512


def predict_frames(network: TrajectoryNetwork, opened: Prepared, reach: Reach, *, exclusive: bool) -> NDArray[np.float32]:
    """Return the probabilities of every frame; only a piece of the recording is in memory at a time.

    Parameters
    ----------
    network : TrajectoryNetwork
        Without annotators; in evaluation mode.
    opened : Prepared
    reach : Reach
        Which frames a window holds.
    exclusive : bool
        One behavior at a time (softmax), or each on its own (sigmoid).
    """
    import torch

    network.eval()
    device = network.head.weight.device
    found = np.empty((len(opened), network.head.out_features), dtype=np.float32)
    score = dense_scores if is_convolutional(network) else window_scores
    with torch.inference_mode():
        for start, stop in opened.pieces(PIECE):
            values = torch.from_numpy(opened.read(start - reach.before, stop + reach.after)).to(device)
            scores = score(network, values, reach)
            found[start:stop] = (scores.softmax(dim=-1) if exclusive else scores.sigmoid()).cpu().numpy()
    return found


def window_scores(network: TrajectoryNetwork, values: Tensor, reach: Reach) -> Tensor:
    """Score windows one by one, many at a time.

    Parameters
    ----------
    network : TrajectoryNetwork
    values : Tensor (n_frames + reach.before + reach.after, n_channels)
    reach : Reach

    Returns
    -------
    Tensor (n_frames, n_outputs)
    """
    import torch

    n = len(values) - reach.before - reach.after
    offsets = torch.from_numpy(reach.offsets + reach.before).to(values.device)
    starts = torch.arange(n, device=values.device)
    return torch.cat([network(values[part[:, None] + offsets]) for part in torch.split(starts, WINDOWS)])


def dense_scores(network: TrajectoryNetwork, values: Tensor, reach: Reach) -> Tensor:
    """Score all windows at once: layers whose taps lie as far apart as the pooling before them would have moved them.

    Where a window takes every second value after a pooling, the dense network keeps all of them, as the next window needs the
    others, and reaches twice as far between its taps. What it says is what `window_scores` says, at the cost of one pass.
    """
    return stretch_scores(network, values[None], reach)[0]


def stretch_scores(network: TrajectoryNetwork, stretches: Tensor, reach: Reach) -> Tensor:
    """Score stretches of frames as `dense_scores` does, also while the network learns.

    Parameters
    ----------
    network : TrajectoryNetwork
    stretches : Tensor (n_stretches, n_frames + reach.before + reach.after, n_channels)
    reach : Reach

    Returns
    -------
    Tensor (n_stretches, n_frames, n_outputs)
    """
    import torch
    from torch import nn

    n = stretches.shape[1] - reach.before - reach.after
    apart = reach.gap
    signals: Any = network.normalize(stretches.transpose(1, 2))
    for layer in network.body.children():
        if isinstance(layer, nn.Conv1d):
            signals = nn.functional.conv1d(signals, layer.weight, layer.bias, dilation=apart)
        elif isinstance(layer, nn.MaxPool1d):
            signals = torch.maximum(signals[..., :-apart], signals[..., apart:])
            apart *= 2
        else:
            signals = layer(signals)
    taps = network.head.in_features // signals.shape[1]
    weight = network.head.weight.reshape(network.head.out_features, signals.shape[1], taps)
    scores = nn.functional.conv1d(signals, weight, network.head.bias, dilation=apart)
    return torch.as_tensor(scores[..., :n].transpose(1, 2))


def is_convolutional(network: TrajectoryNetwork) -> bool:
    """Tell whether the body is nothing but convolutions, their normalisation and pooling."""
    from torch import nn

    known = (nn.Conv1d, nn.BatchNorm1d, nn.ReLU, nn.MaxPool1d, nn.Dropout)
    body = network.body
    return isinstance(body, nn.Sequential) and isinstance(network.normalize, nn.BatchNorm1d) and all(isinstance(x, known) for x in body)
