"""Fully connected layers on a trajectory, as in the CalMS21 baselines; also on a single frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.models.base import register_model
from ethobench.models.hyperparameters import Integers, hyperparameters
from ethobench.models.trajectory import TrajectoryModel
from ethobench.models.trajectory_params import TrajectoryParams

if TYPE_CHECKING:
    from ethobench.training.trajectory_networks import TrajectoryNetwork


@hyperparameters
class Params(TrajectoryParams):
    """Hyper-parameters, as of every network on trajectories.

    The published network on single frames has ``past=0, future=0, gap=1, layers=(512, 256, 128, 64), learning_rate=0.005,
    dropout=0.2``; in the paper's first version it had this one's layers, learning rate and dropout.
    """

    layers: Integers = (512, 256, 128)
    learning_rate: float = 3e-4


@register_model("dense")
class Dense(TrajectoryModel):
    """CalMS21's fully connected network."""

    title = "fully connected layers on a trajectory of poses, or on single frames (CalMS21 baseline); tags too"
    Params = Params

    def build(self, n_inputs: int, n_outputs: int, styles: int = 0) -> TrajectoryNetwork:
        """Build the network."""
        from ethobench.training.trajectory_networks import fully_connected

        return fully_connected(self.reach.frames, n_inputs, n_outputs, self.params.layers, self.params.dropout, styles)
