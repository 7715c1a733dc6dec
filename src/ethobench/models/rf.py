"""A random forest on window statistics, as in BEBE: fast, robust, and hard to get wrong."""

from __future__ import annotations

from ethobench.models.base import register_model
from ethobench.models.forest import Forest, ForestParams
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.nathan import GRID, NathanModel, NathanParams


@hyperparameters
class Params(ForestParams, NathanParams):
    """Hyper-parameters of the forest and of the features."""


@register_model("rf")
class NathanForest(Forest, NathanModel):
    """Trees with balanced classes."""

    title = "random forest on window statistics (BEBE); poses too"
    Params = Params
    grid = GRID
    revision = 3
