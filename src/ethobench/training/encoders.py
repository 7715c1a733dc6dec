"""Encoders of tri-axial signals: the shapes of the published harnets, and a small one. Needs torch, so imported only where one is built."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ethobench.core.errors import MismatchError
from ethobench.training.encoder_files import FEATURES
from ethobench.training.recurrence import Gru

KERNEL = 5
AXES = 3
TAPPED = 2


class Stage(NamedTuple):
    """One layer of an encoder: its width, residual blocks, and how it makes the signal shorter."""

    width: int
    blocks: int
    factor: int
    order: int


STAGES = {
    "harnet5": (Stage(64, 2, 2, 2), Stage(128, 2, 2, 2), Stage(256, 2, 3, 1), Stage(256, 2, 3, 1), Stage(512, 0, 3, 1)),
    "harnet10": (Stage(64, 2, 2, 2), Stage(128, 2, 2, 2), Stage(256, 2, 5, 1), Stage(512, 2, 5, 1), Stage(1024, 0, 3, 1)),
    "harnet30": (Stage(64, 2, 3, 1), Stage(128, 2, 3, 1), Stage(256, 2, 5, 1), Stage(512, 2, 5, 1), Stage(1024, 0, 4, 0)),
    "small": (Stage(64, 2, 3, 1), Stage(64, 2, 3, 1), Stage(128, 2, 5, 1), Stage(128, 2, 5, 1), Stage(256, 2, 4, 0)),
}


class Residual(nn.Module):
    """Two convolutions, each normalised and rectified first, added to what comes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
        self.conv1, self.conv2 = _convolution(width, width), _convolution(width, width)

    def forward(self, signals: Tensor) -> Tensor:
        """Keep the shape (batch, width, frames)."""
        inner = self.conv1(torch.relu(self.bn1(signals)))
        return signals + torch.as_tensor(self.conv2(torch.relu(self.bn2(inner))))


class Downsample(nn.Module):
    """Every so many frames of a signal smoothed by a box, `order` times more, so that nothing is aliased."""

    kernel: Tensor

    def __init__(self, width: int, factor: int, order: int) -> None:
        super().__init__()
        box = smooth = np.ones(factor)
        for _ in range(order):
            smooth = np.convolve(smooth, box)
        self.factor, self.padding = factor, order * (factor - 1) // 2
        self.register_buffer("kernel", torch.tensor(smooth / smooth.sum(), dtype=torch.float32).expand(width, 1, -1).clone())

    def forward(self, signals: Tensor) -> Tensor:
        """Make (batch, width, frames) shorter."""
        return nn.functional.conv1d(signals, self.kernel, stride=self.factor, padding=self.padding, groups=len(self.kernel))


class Encoder(nn.Module):
    """A stack of stages over three axes; parameters have the names that the published checkpoints give them.

    Parameters
    ----------
    config : str
        A name in `STAGES`.
    stages : int, optional
        How many of its stages; all unless given.
    """

    def __init__(self, config: str, stages: int | None = None) -> None:
        super().__init__()
        layers, inputs = OrderedDict[str, nn.Module](), AXES
        for number, stage in enumerate(STAGES[config][:stages], start=1):
            blocks = [Residual(stage.width) for _ in range(stage.blocks)]
            layers[f"layer{number}"] = nn.Sequential(
                _convolution(inputs, stage.width),
                *blocks,
                nn.BatchNorm1d(stage.width),
                nn.ReLU(),
                Downsample(stage.width, stage.factor, stage.order),
            )
            inputs = stage.width
        self.feature_extractor = nn.Sequential(layers)
        self.width = inputs
        for module in self.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, signals: Tensor) -> Tensor:
        """Turn (batch, 3, frames) into (batch, width, fewer frames)."""
        return torch.as_tensor(self.feature_extractor(signals))

    def load(self, tensors: Mapping[str, Tensor], source: str) -> None:
        """Take the weights of another encoder; stages that this one lacks are passed over.

        Parameters
        ----------
        tensors : mapping of str to Tensor
            By the names of the published checkpoints, whatever stands before ``feature_extractor.``.
        source : str
            Where they come from, for the messages.
        """
        found = {FEATURES + name.partition(FEATURES)[2]: tensor for name, tensor in tensors.items() if FEATURES in name}
        own = self.state_dict()
        missing = [name for name in own if name not in found]
        if missing:
            raise MismatchError(f"{source} lacks {missing[0]} and {len(missing) - 1} other weights of the encoder: is it of another kind?")
        for name, tensor in own.items():
            if tensor.shape != found[name].shape:
                shapes = f"{tuple(found[name].shape)}, the encoder needs {tuple(tensor.shape)}"
                raise MismatchError(f"{source} does not fit: {name} has shape {shapes}; is it of another kind?")
        self.load_state_dict({name: found[name] for name in own})


class PretextNetwork(nn.Module):
    """An encoder with one pair of scores for every pretext.

    Parameters
    ----------
    config : str
        A name in `STAGES`.
    tasks : sequence of str
    """

    def __init__(self, config: str, tasks: Sequence[str]) -> None:
        super().__init__()
        self.encoder = Encoder(config)
        self.heads = nn.ModuleDict({task: nn.Linear(self.encoder.width, 2) for task in tasks})

    def forward(self, windows: Tensor) -> Tensor:
        """Turn (batch, frames, 3) into (batch, tasks, 2)."""
        features = self.encoder(windows.transpose(1, 2)).mean(dim=-1)
        return torch.stack([head(features) for head in self.heads.values()], dim=1)


class EncodedNetwork(nn.Module):
    """An encoder over every three axes, tapped early and stretched to every frame, then a recurrent layer and a linear read-out.

    Parameters
    ----------
    config : str
        A name in `STAGES`.
    triples : sequence of sequences of int
        The channels of each three axes; the others reach the recurrent layer as they are.
    n_inputs, n_outputs : int
    frozen : bool
        Leave the encoder as it is, its batch normalisation included.
    hidden : int
        Size of the recurrent layer in each direction.
    """

    def __init__(
        self, config: str, triples: Sequence[Sequence[int]], n_inputs: int, n_outputs: int, *, frozen: bool, hidden: int = 64
    ) -> None:
        super().__init__()
        self.encoder, self.frozen = Encoder(config, TAPPED), frozen
        self.encoder.requires_grad_(not frozen)
        self.triples = [list(places) for places in triples]
        self.rest = [place for place in range(n_inputs) if not any(place in places for places in self.triples)]
        size = self.encoder.width * len(self.triples) + len(self.rest)
        self.recur = Gru(size, hidden)
        self.read_out = nn.Linear(2 * hidden, n_outputs)

    def train(self, mode: bool = True) -> EncodedNetwork:
        """Set what learns to learning; a frozen encoder never is."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def forward(self, windows: Tensor) -> Tensor:
        """Turn (batch, frames, channels) into (batch, frames, outputs)."""
        count, frames, _ = windows.shape
        parts = [windows[:, :, self.rest]]
        if self.triples:
            axes = windows[:, :, self.triples].permute(0, 2, 3, 1).flatten(0, 1)
            stretched = nn.functional.interpolate(self.encoder(axes), size=frames)
            parts.insert(0, stretched.reshape(count, -1, frames).transpose(1, 2))
        found, _ = self.recur(torch.cat(parts, dim=-1))
        return torch.as_tensor(self.read_out(found))


def _convolution(inputs: int, outputs: int) -> nn.Conv1d:
    return nn.Conv1d(inputs, outputs, KERNEL, padding=KERNEL // 2, padding_mode="circular", bias=False)
