"""A random forest on wavelets, as in BEBE."""

from __future__ import annotations

from ethobench.models.base import register_model
from ethobench.models.forest import Forest, ForestParams
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.wavelets import GRID, WaveletModel, WaveletParams


@hyperparameters
class Params(ForestParams, WaveletParams):
    """Hyper-parameters of the forest and of the features."""


@register_model("wavelet_rf")
class WaveletForest(Forest, WaveletModel):
    """Trees with balanced classes."""

    title = "random forest on wavelets (BEBE)"
    Params = Params
    grid = GRID
