"""A temporal convolutional network: dilated residual layers over whole sequences, on a clock slower than the recording's.

Importing this file imports torch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TemporalNetwork(nn.Module):
    """A strided convolution, then residual layers whose reach doubles from one to the next.

    Parameters
    ----------
    n_inputs, n_outputs : int
        Channels of the windows, and scores for each step.
    stride : int
        Frames of a step: step ``j`` lies on frame ``j * stride``.
    levels : int
        Residual layers; the last looks ``2 ** (levels - 1)`` steps to each side.
    width : int
        Channels inside.
    dropout : float
    causal : bool
        Look at the past only.
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, *, stride: int, levels: int = 7, width: int = 64, dropout: float = 0.2, causal: bool = False
    ) -> None:
        super().__init__()
        self.stride, self.causal = stride, causal
        self.stem_reach = max(stride, 2)
        taps = self.stem_reach + 1 if causal else 2 * self.stem_reach + 1
        self.stem = nn.Conv1d(n_inputs, width, taps, stride=stride, bias=False)
        self.settle = nn.BatchNorm1d(width)
        self.layers = nn.ModuleList(ResidualLayer(width, 2**level, dropout, causal) for level in range(levels))
        self.read_out = nn.Conv1d(width, n_outputs, 1)

    @property
    def reach(self) -> int:
        """How many frames to one side a step depends on."""
        layers = [layer for layer in self.layers if isinstance(layer, ResidualLayer)]
        return self.stem_reach + self.stride * sum(layer.reach for layer in layers)

    def forward(self, windows: Tensor) -> Tensor:
        """Turn (batch, frames, channels) into (batch, ceil(frames / stride), outputs)."""
        after = 0 if self.causal else self.stem_reach
        signals = nn.functional.pad(windows.transpose(1, 2), (self.stem_reach, after))
        signals = torch.relu(self.settle(self.stem(signals)))
        for layer in self.layers:
            signals = layer(signals)
        return torch.as_tensor(self.read_out(signals).transpose(1, 2))


class ResidualLayer(nn.Module):
    """Adds to each step what a dilated convolution of three taps makes of it and its surroundings."""

    def __init__(self, width: int, dilation: int, dropout: float, causal: bool) -> None:
        super().__init__()
        self.reach = 2 * dilation if causal else dilation
        self.causal = causal
        self.gather = nn.Conv1d(width, width, 3, dilation=dilation, bias=False)
        self.settle = nn.BatchNorm1d(width)
        self.mix = nn.Conv1d(width, width, 1)
        self.drop = nn.Dropout(dropout)

    def forward(self, signals: Tensor) -> Tensor:
        """Keep the length."""
        padded = nn.functional.pad(signals, (self.reach, 0 if self.causal else self.reach))
        return signals + torch.as_tensor(self.drop(self.mix(torch.relu(self.settle(self.gather(padded))))))
