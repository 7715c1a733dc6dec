"""A random forest on window statistics, as in BEBE: fast, robust, and hard to get wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ethobench.models._base import register_model
from ethobench.models._frames import cores
from ethobench.models._nathan import GRID, NathanModel, NathanParams


@dataclass(frozen=True)
class Params(NathanParams):
    """Hyper-parameters, beside those of the features.

    Attributes
    ----------
    trees : int
    max_samples : float
        Share of the frames that each tree sees.
    """

    trees: int = 100
    max_samples: float = 0.1


@register_model
class NathanForest(NathanModel):
    """Trees with balanced classes."""

    title = "random forest on window statistics (BEBE); poses too"
    Params = Params
    grid = GRID
    revision = 2

    def make_estimator(self) -> Any:
        """Make the forest."""
        from sklearn.ensemble import RandomForestClassifier

        chosen = self.params
        return RandomForestClassifier(
            chosen.trees, max_samples=chosen.max_samples, class_weight="balanced", random_state=self.seed, n_jobs=cores()
        )
