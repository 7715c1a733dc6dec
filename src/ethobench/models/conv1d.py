"""Convolutions over a trajectory, as in the CalMS21 baseline: the best of the MABe 2021 baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.core.errors import EthobenchError
from ethobench.models.base import register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.trajectory import TrajectoryModel
from ethobench.models.trajectory_params import TrajectoryParams

if TYPE_CHECKING:
    from ethobench.training.trajectory_networks import TrajectoryNetwork


@hyperparameters
class Params(TrajectoryParams):
    """Hyper-parameters, beside those of every network on trajectories.

    The defaults are those of the task 1 baseline. The model that the published ones of tasks 2 and 3 begin with has
    ``past=50, future=50, gap=1, epochs=50, augment="published"``; the causal one ``future=0``.

    Attributes
    ----------
    kernel : int
        Frames that a convolution takes together.
    """

    kernel: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel < 1:
            raise EthobenchError(f"a convolution takes at least one frame, not {self.kernel}")


@register_model("conv1d")
class Conv1d(TrajectoryModel):
    """CalMS21's convolutional network."""

    title = "convolutions over a trajectory of poses (CalMS21 baseline); tags too"
    Params = Params

    def build(self, n_inputs: int, n_outputs: int, styles: int = 0) -> TrajectoryNetwork:
        """Build the network."""
        from ethobench.training.trajectory_networks import convolutional

        chosen = self.params
        return convolutional(self.reach.frames, n_inputs, n_outputs, chosen.layers, chosen.kernel, chosen.dropout, styles)
