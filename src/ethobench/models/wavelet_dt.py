"""A decision tree on wavelets, as in BEBE."""

from __future__ import annotations

from typing import Any

from ethobench.models.base import register_model
from ethobench.models.wavelets import GRID, WaveletModel


@register_model("wavelet_dt")
class WaveletTree(WaveletModel):
    """One tree with balanced classes."""

    title = "decision tree on wavelets (BEBE)"
    grid = GRID

    def make_estimator(self) -> Any:
        """Make the tree."""
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(class_weight="balanced", random_state=self.seed)
