"""A linear support vector machine on window statistics, as in BEBE."""

from __future__ import annotations

from dataclasses import dataclass

from ethobench.models._base import register_model
from ethobench.models._linear import LinearMachine
from ethobench.models._nathan import GRID, NathanModel, NathanParams


@dataclass(frozen=True)
class Params(NathanParams):
    """Hyper-parameters, beside those of the features.

    Attributes
    ----------
    iterations : int
        At most; features are not scaled, as published, so that it often stops there.
    """

    iterations: int = 1000


@register_model
class NathanLinearMachine(LinearMachine, NathanModel):
    """A plane for each behaviour; its probabilities are not calibrated."""

    title = "linear support vector machine on window statistics (BEBE)"
    Params = Params
    grid = GRID
