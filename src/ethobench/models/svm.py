"""A linear support vector machine on window statistics, as in BEBE."""

from __future__ import annotations

from dataclasses import dataclass

from ethobench.models._base import register_model
from ethobench.models._linear import LinearMachine, LinearParams
from ethobench.models._nathan import GRID, NathanModel, NathanParams


@dataclass(frozen=True)
class Params(LinearParams, NathanParams):
    """Hyper-parameters of the machine and of the features."""


@register_model
class NathanLinearMachine(LinearMachine, NathanModel):
    """A plane for each behaviour; its probabilities are not calibrated."""

    title = "linear support vector machine on window statistics (BEBE)"
    Params = Params
    grid = GRID
