"""Two dilated convolutions: fast, and sees a second or so around each frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.core.errors import EthobenchError
from ethobench.models.base import register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.network import NetworkModel, NetworkParams

if TYPE_CHECKING:
    import torch


@hyperparameters
class Params(NetworkParams):
    """Hyper-parameters, beside those of every network.

    Attributes
    ----------
    dilation : int
        Frames between the taps of a convolution.
    """

    learning_rate: float = 0.01
    dilation: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dilation < 1:
            raise EthobenchError(f"the taps of a convolution are at least one frame apart, not {self.dilation}")


@register_model("cnn")
class Cnn(NetworkModel):
    """BEBE's convolutional network."""

    title = "convolutional network on signals (BEBE)"
    Params = Params
    grid = {"learning_rate": (0.01, 0.003, 0.001), "dilation": (1, 3, 5), "cutoff": (0.0, 0.1, 0.4, 1.6, 6.4)}  # noqa: RUF012

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network."""
        from ethobench.training.layers import FrameNetwork

        return FrameNetwork(n_inputs, n_outputs, convolutions=2, cell=None, dilation=self.params.dilation)
