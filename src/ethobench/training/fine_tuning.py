"""Fine-tuning of a network that was trained before: for another annotator, or for other behaviors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ethobench.core.errors import MismatchError, ParameterError
from ethobench.core.wording import join_names

if TYPE_CHECKING:
    from torch import Tensor, nn

RECIPES = ("paper", "code")
HEAD_PREFIXES = ("head.", "annotator_heads.")  # of the weights of the output layers


@dataclass(frozen=True)
class Phase:
    """A phase of a training.

    Attributes
    ----------
    epochs : int
    learning_rate : float
    head_only : bool
        Only the output layer is trained; all other layers, including batch normalization, are frozen.
    """

    epochs: int
    learning_rate: float
    head_only: bool = False


def plan_phases(
    recipe: str,
    *,
    epochs: int,
    learning_rate: float,
    head_epochs: int,
    head_learning_rate: float | None,
    initial_learning_rate: float | None = None,
) -> list[Phase]:
    """Plan fine-tuning: first the output layer, then the complete network.

    ``paper``, as described in the CalMS21 paper: in the first phase only the output layer is trained, and each phase has its own learning
    rate. ``code``, as the published code behaves: its freezing has no effect, so all layers are trained in both phases; and where the
    output layer is reused too, the learning rate of the initial network is kept, whatever the settings say.

    Parameters
    ----------
    recipe : {"paper", "code"}
    epochs : int
        Epochs of the second phase.
    learning_rate : float
        Learning rate of the second phase, and of the first unless `head_learning_rate` is set.
    head_epochs : int
        Epochs of the first phase; 0 skips it.
    head_learning_rate : float, optional
        Learning rate of the first phase.
    initial_learning_rate : float, optional
        Learning rate of the initial network if its output layer is reused; None if the output layer is new.

    Examples
    --------
    >>> settings = {"epochs": 10, "learning_rate": 1e-4, "head_epochs": 5, "head_learning_rate": None, "initial_learning_rate": 1e-3}
    >>> plan_phases("paper", **settings)
    [Phase(epochs=5, learning_rate=0.0001, head_only=True), Phase(epochs=10, learning_rate=0.0001, head_only=False)]
    >>> plan_phases("code", **settings)
    [Phase(epochs=5, learning_rate=0.001, head_only=False), Phase(epochs=10, learning_rate=0.001, head_only=False)]
    """
    if recipe not in RECIPES:
        raise ParameterError(f"`recipe` must be {join_names(RECIPES, 'or')}, got {recipe!r}")
    follows_code = recipe == "code"
    if follows_code and initial_learning_rate is not None:
        learning_rates = [initial_learning_rate, initial_learning_rate]
    else:
        learning_rates = [head_learning_rate or learning_rate, learning_rate]
    phases = [Phase(head_epochs, learning_rates[0], not follows_code), Phase(epochs, learning_rates[1])]
    return [phase for phase in phases if phase.epochs]


def copy_weights(network: nn.Module, weights: Mapping[str, Tensor], *, head: bool, source: str) -> None:
    """Initialize a network from the weights of another one, in place.

    Parameters
    ----------
    network : Module
        Weights without a counterpart keep their values.
    weights : mapping of str to Tensor
        By name, as in the ``state_dict`` of the other network.
    head : bool
        Whether the output layer is copied too.
    source : str
        Origin of the weights, for the error message.
    """
    current = network.state_dict()
    copied = {name: tensor for name, tensor in weights.items() if name in current and (head or not name.startswith(HEAD_PREFIXES))}
    missing = [name for name in current if not name.startswith(HEAD_PREFIXES) and name not in copied]
    different = missing + [name for name, tensor in copied.items() if tensor.shape != current[name].shape]
    if different:
        raise MismatchError(f"{source} has other layers than this network ({different[0]} differs), so it cannot be initialized from it")
    network.load_state_dict({**current, **copied})
