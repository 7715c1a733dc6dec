"""Two dilated convolutions, then a recurrent layer in both directions: the best of BEBE's networks without pre-training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.core.errors import EthobenchError
from ethobench.models.base import register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.network import NetworkModel, NetworkParams

if TYPE_CHECKING:
    import torch

CELLS = ("gru", "lstm")


@hyperparameters
class Params(NetworkParams):
    """Hyper-parameters, beside those of every network.

    Attributes
    ----------
    dilation : int
        Frames between the taps of a convolution.
    cell : {"gru", "lstm"}
        ``gru`` as published; ``lstm`` is faster on a CPU.
    pool : int
        Frames that are averaged before the recurrent layer: 1 as published; with more it is so many times faster, and so much coarser.
    """

    dilation: int = 5
    cell: str = "gru"
    pool: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cell not in CELLS:
            raise EthobenchError(f"the cell of a crnn is {' or '.join(CELLS)}, not {self.cell!r}")
        if self.pool < 1:
            raise EthobenchError(f"at least one frame is averaged, not {self.pool}")


@register_model("crnn")
class Crnn(NetworkModel):
    """BEBE's convolutional recurrent network."""

    title = "convolutional recurrent network on signals (BEBE)"
    Params = Params
    grid = {"learning_rate": (0.01, 0.003, 0.001), "dilation": (1, 3, 5), "cutoff": (0.0, 0.1, 0.4, 1.6, 6.4)}  # noqa: RUF012

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network."""
        from ethobench.training.layers import FrameNetwork

        return FrameNetwork(
            n_inputs, n_outputs, convolutions=2, cell=self.params.cell, dilation=self.params.dilation, pool=self.params.pool
        )
