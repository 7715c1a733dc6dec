"""A linear support vector machine on window statistics, as in BEBE."""

from __future__ import annotations

from ethobench.models.base import register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.linear import LinearMachine, LinearParams
from ethobench.models.nathan import GRID, NathanModel, NathanParams


@hyperparameters
class Params(LinearParams, NathanParams):
    """Hyper-parameters of the machine and of the features."""


@register_model("svm")
class NathanLinearMachine(LinearMachine, NathanModel):
    """A plane for each behavior; its probabilities are not calibrated."""

    title = "linear support vector machine on window statistics (BEBE)"
    Params = Params
    grid = GRID
