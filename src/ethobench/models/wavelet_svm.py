"""A linear support vector machine on wavelets, as in BEBE."""

from __future__ import annotations

from dataclasses import dataclass

from ethobench.models._base import register_model
from ethobench.models._linear import LinearMachine, LinearParams
from ethobench.models._wavelets import GRID, WaveletModel, WaveletParams


@dataclass(frozen=True)
class Params(LinearParams, WaveletParams):
    """Hyper-parameters of the machine and of the features."""


@register_model
class WaveletLinearMachine(LinearMachine, WaveletModel):
    """A plane for each behaviour; its probabilities are not calibrated."""

    title = "linear support vector machine on wavelets (BEBE)"
    Params = Params
    grid = GRID
