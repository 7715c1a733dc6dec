"""A linear support vector machine on wavelets, as in BEBE."""

from __future__ import annotations

from dataclasses import dataclass

from ethobench.models._base import register_model
from ethobench.models._linear import LinearMachine
from ethobench.models._wavelets import GRID, WaveletModel, WaveletParams


@dataclass(frozen=True)
class Params(WaveletParams):
    """Hyper-parameters, beside those of the features.

    Attributes
    ----------
    iterations : int
        At most; features are not scaled, as published, so that it often stops there.
    """

    iterations: int = 1000


@register_model
class WaveletLinearMachine(LinearMachine, WaveletModel):
    """A plane for each behaviour; its probabilities are not calibrated."""

    title = "linear support vector machine on wavelets (BEBE)"
    Params = Params
    grid = GRID
