"""What random forests share, whatever they look at."""

from __future__ import annotations

from typing import Any

from ethobench.models.frames import FrameModel, cores
from ethobench.models.hyperparameters import hyperparameters


@hyperparameters
class ForestParams:
    """Hyper-parameters of a forest.

    Attributes
    ----------
    trees : int
        How many; more are steadier and slower.
    max_samples : float
        Share of the frames that each tree sees.
    """

    trees: int = 100
    max_samples: float = 0.1


class Forest(FrameModel):
    """Trees with balanced classes."""

    def make_estimator(self) -> Any:
        """Make the forest."""
        from sklearn.ensemble import RandomForestClassifier

        chosen = self.params
        return RandomForestClassifier(
            chosen.trees, max_samples=chosen.max_samples, class_weight="balanced", random_state=self.seed, n_jobs=cores()
        )
