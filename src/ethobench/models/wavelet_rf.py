"""A random forest on wavelets, as in BEBE."""

from __future__ import annotations

from dataclasses import dataclass

from ethobench.models.base import register_model
from ethobench.models.forest import Forest, ForestParams
from ethobench.models.wavelets import GRID, WaveletModel, WaveletParams


@dataclass(frozen=True)
class Params(ForestParams, WaveletParams):
    """Hyper-parameters of the forest and of the features."""


@register_model("wavelet_rf")
class WaveletForest(Forest, WaveletModel):
    """Trees with balanced classes."""

    title = "random forest on wavelets (BEBE)"
    Params = Params
    grid = GRID
