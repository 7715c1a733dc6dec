"""The network of the model `tcn`. Importing this module imports torch; the model imports it when it builds a network."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TemporalNetwork(nn.Module):
    """A temporal convolutional network: a strided convolution, then residual layers whose dilation doubles from one to the next.

    Parameters
    ----------
    n_inputs, n_outputs : int
        Channels of the inputs, and scores of each step.
    stride : int
        Frames between steps: step ``j`` is at frame ``j * stride``.
    levels : int
        Residual layers; the last one depends on steps up to ``2 ** (levels - 1)`` to each side.
    width : int
        Channels of the hidden layers.
    dropout : float
    causal : bool
        Use no later frames.
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, *, stride: int, levels: int = 7, width: int = 64, dropout: float = 0.1, causal: bool = False
    ) -> None:
        super().__init__()
        self.stride, self.causal = stride, causal
        self.stem_context = max(stride, 2)
        kernel = self.stem_context + 1 if causal else 2 * self.stem_context + 1
        self.stem = nn.Conv1d(n_inputs, width, kernel, stride=stride, bias=False)
        self.normalize = nn.BatchNorm1d(width)
        self.layers = nn.ModuleList(ResidualLayer(width, 2**level, dropout, causal) for level in range(levels))
        self.head = nn.Conv1d(width, n_outputs, 1)

    @property
    def context(self) -> int:
        """Number of frames to one side that a step depends on."""
        layers = [layer for layer in self.layers if isinstance(layer, ResidualLayer)]
        return self.stem_context + self.stride * sum(layer.context for layer in layers)

    def forward(self, windows: Tensor) -> Tensor:
        """Map (batch, frames, channels) to (batch, ceil(frames / stride), outputs)."""
        after = 0 if self.causal else self.stem_context
        signals = nn.functional.pad(windows.transpose(1, 2), (self.stem_context, after))
        signals = torch.relu(self.normalize(self.stem(signals)))
        for layer in self.layers:
            signals = layer(signals)
        return torch.as_tensor(self.head(signals).transpose(1, 2))


class ResidualLayer(nn.Module):
    """A dilated convolution with three taps, a pointwise convolution and dropout, added to the input.

    Dropout is of entire channels, as in other temporal convolutional networks (Bai et al., 2018, https://arxiv.org/abs/1803.01271). It is
    also several times faster than dropout of single values.
    """

    def __init__(self, width: int, dilation: int, dropout: float, causal: bool) -> None:
        super().__init__()
        self.context = 2 * dilation if causal else dilation
        self.causal = causal
        self.dilated = nn.Conv1d(width, width, 3, dilation=dilation, padding=0 if causal else dilation, bias=False)
        self.normalize = nn.BatchNorm1d(width)
        self.pointwise = nn.Conv1d(width, width, 1)
        self.dropout = nn.Dropout1d(dropout)

    def forward(self, signals: Tensor) -> Tensor:
        """Keep the shape (batch, width, steps)."""
        padded = nn.functional.pad(signals, (self.context, 0)) if self.causal else signals
        return signals + torch.as_tensor(self.dropout(self.pointwise(torch.relu(self.normalize(self.dilated(padded))))))
