"""What linear support vector machines share, whatever they look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.models._frames import Features, FrameModel, filled


@dataclass(frozen=True)
class LinearParams:
    """Hyper-parameters of a machine.

    Attributes
    ----------
    iterations : int
        At most; features are not scaled, as published, so that it often stops there.
    """

    iterations: int = 1000


class LinearMachine(FrameModel):
    """Learns planes between behaviours; how far a frame is on the right side stands for its probability."""

    def make_estimator(self) -> Any:
        """Make the machine."""
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        machine = LinearSVC(dual=False, C=1.0, max_iter=self.params.iterations, class_weight="balanced", random_state=self.seed)
        return machine if self.exclusive else OneVsRestClassifier(machine)

    def _learn(self, x: Features, y: NDArray[Any]) -> None:
        known = ~np.isnan(x)
        means = np.where(known, x, 0).sum(axis=0, dtype=np.float64) / np.maximum(known.sum(axis=0), 1)
        super()._learn(filled(x, means), y)
        self.estimator.means_ = means

    def _score(self, features: Features) -> Any:
        far = self.estimator.decision_function(filled(features, self.estimator.means_))
        if not self.exclusive:
            return [np.stack([1 - p, p], axis=1) for p in (1 / (1 + np.exp(-np.clip(far, -50, 50)))).reshape(len(features), -1).T]
        if far.ndim == 1:
            far = np.stack([-far, far], axis=1) / 2
        grown = np.exp(far - far.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)
