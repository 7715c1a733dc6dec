"""A linear support vector machine on wavelets, as in BEBE."""

from __future__ import annotations

from ethobench.models.base import register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.linear import LinearMachine, LinearParams
from ethobench.models.wavelets import GRID, WaveletModel, WaveletParams


@hyperparameters
class Params(LinearParams, WaveletParams):
    """Hyper-parameters of the machine and of the features."""


@register_model("wavelet_svm")
class WaveletLinearMachine(LinearMachine, WaveletModel):
    """A plane for each behavior; its probabilities are not calibrated."""

    title = "linear support vector machine on wavelets (BEBE)"
    Params = Params
    grid = GRID
