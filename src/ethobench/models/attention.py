"""Self-attention over a trajectory, as in the CalMS21 baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.models.base import register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.trajectory import TrajectoryModel
from ethobench.models.trajectory_params import TrajectoryParams

if TYPE_CHECKING:
    from ethobench.training.trajectory_networks import TrajectoryNetwork


@hyperparameters
class Params(TrajectoryParams):
    """Hyper-parameters, as of every network on trajectories.

    In the paper's first version it had ``past=100, future=100, gap=2, epochs=15``.
    """

    past: int = 50
    future: int = 50
    gap: int = 1
    epochs: int = 20


@register_model("attention")
class SelfAttention(TrajectoryModel):
    """CalMS21's network of attention, in which keys are the values, as its code has it."""

    title = "self-attention over a trajectory of poses (CalMS21 baseline); tags too"
    Params = Params

    def build(self, n_inputs: int, n_outputs: int, styles: int = 0) -> TrajectoryNetwork:
        """Build the network."""
        from ethobench.training.trajectory_networks import attentive

        return attentive(self.reach.frames, n_inputs, n_outputs, self.params.layers, self.params.dropout, styles)
