"""A recurrent layer in both directions, straight on the channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.models.base import register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.network import NetworkModel, NetworkParams

if TYPE_CHECKING:
    import torch


@hyperparameters
class Params(NetworkParams):
    """Hyper-parameters: those of every network."""

    learning_rate: float = 0.01


@register_model("rnn")
class Rnn(NetworkModel):
    """BEBE's recurrent network: its convolutional recurrent one without the convolutions."""

    title = "recurrent network on signals (BEBE)"
    Params = Params
    grid = {"learning_rate": (0.01, 0.003, 0.001)}  # noqa: RUF012

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network."""
        from ethobench.training.layers import FrameNetwork

        return FrameNetwork(n_inputs, n_outputs, convolutions=0, cell="gru")
