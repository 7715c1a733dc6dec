"""Networks that name what happens in every frame. Needs torch, so it is imported only where a network is built."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ethobench.training.recurrence import Gru


class FrameNetwork(nn.Module):
    """Normalised channels, convolutions, a recurrent layer in both directions, one linear read-out for every frame.

    Parameters
    ----------
    n_inputs, n_outputs : int
    convolutions : int
        How many: each a convolution, batch normalisation, then ReLU.
    width, kernel, dilation : int
        Of the convolutions.
    cell : {"gru", "lstm"} or None
        The recurrent layer, if any.
    hidden : int
        Its size in each direction.
    pool : int
        Frames that are averaged before the recurrent layer; what it says then holds for all of them.
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        *,
        convolutions: int,
        cell: str | None,
        width: int = 64,
        kernel: int = 7,
        dilation: int = 1,
        hidden: int = 64,
        pool: int = 1,
    ) -> None:
        super().__init__()
        self.normalize = nn.BatchNorm1d(n_inputs)
        layers: list[nn.Module] = []
        size = n_inputs
        for _ in range(convolutions):
            layers += [nn.Conv1d(size, width, kernel, dilation=dilation, padding="same", bias=False), nn.BatchNorm1d(width), nn.ReLU()]
            size = width
        self.convolve = nn.Sequential(*layers)
        self.pool = pool
        self.recur: nn.Module | None = None
        if cell is not None:
            self.recur = Gru(size, hidden) if cell == "gru" else nn.LSTM(size, hidden, batch_first=True, bidirectional=True)
        self.read_out = nn.Linear(size if cell is None else 2 * hidden, n_outputs)

    def expect(self, mean: NDArray[np.float64], variance: NDArray[np.float64]) -> None:
        """Begin the running statistics of the channels at what they are.

        Training does not see them, and a long one forgets where they began; after a short one they would still be far off.
        """
        for buffer, values in ((self.normalize.running_mean, mean), (self.normalize.running_var, variance)):
            if buffer is not None:
                buffer.copy_(torch.from_numpy(values))

    def forward(self, windows: Tensor) -> Tensor:
        """Turn (batch, frames, channels) into (batch, frames, outputs)."""
        signals = self.convolve(self.normalize(windows.transpose(1, 2)))
        if self.recur is None:
            return torch.as_tensor(self.read_out(signals.transpose(1, 2)))
        if self.pool > 1:
            signals = nn.functional.avg_pool1d(signals, self.pool, ceil_mode=True)
        scores = self.read_out(self.recur(signals.transpose(1, 2))[0])
        return torch.as_tensor(scores if self.pool == 1 else scores.repeat_interleave(self.pool, dim=1)[:, : windows.shape[1]])
