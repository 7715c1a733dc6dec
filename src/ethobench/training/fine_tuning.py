"""Going on from a network that has learnt already: to another annotator's style, or to behaviors it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ethobench.core.errors import EthobenchError, MismatchError

if TYPE_CHECKING:
    from torch import Tensor

    from ethobench.training.trajectory_networks import TrajectoryNetwork

RECIPES = ("paper", "code")
HEADS = ("head.", "styles.")


@dataclass(frozen=True)
class Phase:
    """A part of a training.

    Attributes
    ----------
    epochs : int
    learning_rate : float
    head_only : bool
        Only the read-out learns; the rest stays as it is, its normalisation too.
    """

    epochs: int
    learning_rate: float
    head_only: bool = False


def plan_phases(
    recipe: str, *, epochs: int, learning_rate: float, head_epochs: int, head_learning_rate: float | None, kept: float | None = None
) -> list[Phase]:
    """Plan how to go on from a network: the read-out first, then all of it.

    ``paper``, as the CalMS21 paper tells it: in the first phase only the read-out learns, and each phase has its own learning rate.
    ``code``, as the published code did it in effect: its freezing came too late to do anything, so everything learns in both phases;
    and where the whole network was taken over, it kept the learning rate it had been trained with, whatever the settings said.

    Parameters
    ----------
    recipe : {"paper", "code"}
    epochs : int
        Of the second phase.
    learning_rate : float
        Of the second phase, and of the first unless that has its own.
    head_epochs : int
        Of the first phase; 0 leaves it out.
    head_learning_rate : float, optional
        Of the first phase.
    kept : float, optional
        The learning rate of the network that was taken over, read-out included; None where the read-out is new.

    Examples
    --------
    >>> plan_phases("paper", epochs=10, learning_rate=1e-4, head_epochs=5, head_learning_rate=None, kept=1e-3)
    [Phase(epochs=5, learning_rate=0.0001, head_only=True), Phase(epochs=10, learning_rate=0.0001, head_only=False)]
    >>> plan_phases("code", epochs=10, learning_rate=1e-4, head_epochs=5, head_learning_rate=None, kept=1e-3)
    [Phase(epochs=5, learning_rate=0.001, head_only=False), Phase(epochs=10, learning_rate=0.001, head_only=False)]
    """
    if recipe not in RECIPES:
        raise EthobenchError(f"a recipe for fine-tuning is {' or '.join(RECIPES)}, not {recipe!r}")
    as_coded = recipe == "code"
    rates = [kept, kept] if as_coded and kept is not None else [head_learning_rate or learning_rate, learning_rate]
    phases = [Phase(head_epochs, rates[0], not as_coded), Phase(epochs, rates[1])]
    return [phase for phase in phases if phase.epochs]


def take_over(network: TrajectoryNetwork, weights: Mapping[str, Tensor], *, read_out: bool, whose: str) -> None:
    """Copy what another network has learnt, in place.

    Parameters
    ----------
    network : TrajectoryNetwork
        What has no counterpart among the weights keeps its own.
    weights : mapping of str to Tensor
        By name, as in the other one's ``state_dict``.
    read_out : bool
        Whether the read-out is copied too, or begins anew.
    whose : str
        Where the weights come from, for the error message.
    """
    own = network.state_dict()
    taken = {name: tensor for name, tensor in weights.items() if name in own and (read_out or not name.startswith(HEADS))}
    body = [name for name in own if not name.startswith(HEADS)]
    other = [name for name in body if name not in taken] + [name for name, tensor in taken.items() if tensor.shape != own[name].shape]
    if other:
        raise MismatchError(f"{whose} has other layers than this network ({other[0]} differs), which cannot begin from it")
    network.load_state_dict({**own, **taken})
