"""A recurrent layer over a trajectory, as in the CalMS21 baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.core.errors import EthobenchError
from ethobench.models.base import register_model
from ethobench.models.hyperparameters import Integers, hyperparameters
from ethobench.models.trajectory import TrajectoryModel
from ethobench.models.trajectory_params import TrajectoryParams

if TYPE_CHECKING:
    from ethobench.training.trajectory_networks import TrajectoryNetwork


@hyperparameters
class Params(TrajectoryParams):
    """Hyper-parameters, beside those of every network on trajectories.

    In the paper's first version it had ``past=100, future=100, gap=2, epochs=15``.

    Attributes
    ----------
    hidden : int
        Units of the recurrent layer; `layers` are the fully connected ones after it.
    """

    past: int = 50
    future: int = 50
    gap: int = 1
    layers: Integers = (256, 128)
    epochs: int = 20
    hidden: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden < 1:
            raise EthobenchError(f"a recurrent layer has at least one unit, not {self.hidden}")


@register_model("lstm")
class Lstm(TrajectoryModel):
    """CalMS21's recurrent network."""

    title = "a recurrent layer over a trajectory of poses (CalMS21 baseline); tags too"
    Params = Params

    def build(self, n_inputs: int, n_outputs: int, styles: int = 0) -> TrajectoryNetwork:
        """Build the network."""
        from ethobench.training.trajectory_networks import recurrent

        return recurrent(n_inputs, n_outputs, self.params.hidden, self.params.layers, self.params.dropout, styles)
