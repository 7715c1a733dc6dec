"""A decision tree on window statistics, as in BEBE."""

from __future__ import annotations

from typing import Any

from ethobench.models.base import register_model
from ethobench.models.nathan import GRID, NathanModel


@register_model("dt")
class NathanTree(NathanModel):
    """One tree with balanced classes."""

    title = "decision tree on window statistics (BEBE)"
    grid = GRID

    def make_estimator(self) -> Any:
        """Make the tree."""
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(class_weight="balanced", random_state=self.seed)
