"""What linear support vector machines share, whatever they look at."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError
from ethobench.models.frames import Features, FrameModel, filled
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.linear_svm import fit_planes, liblinear_planes

SOLVERS = ("newton", "liblinear")


@hyperparameters
class LinearParams:
    """Hyper-parameters of a machine.

    Attributes
    ----------
    solver : {"newton", "liblinear"}
        Newton's method finds the best planes in seconds. Liblinear, which was used in print, takes minutes, and on features that
        are not scaled it stops before it is there.
    iterations : int
        At most.
    """

    solver: str = "newton"
    iterations: int = 1000

    def __post_init__(self) -> None:
        if self.solver not in SOLVERS:
            raise EthobenchError(f"there is no solver {self.solver!r}; there are {', '.join(SOLVERS)}")


class LinearMachine(FrameModel):
    """Learns planes between behaviors; how far a frame is on the right side stands for its probability."""

    revision = 3

    def make_estimator(self) -> Any:
        """Make what keeps the planes."""
        from sklearn.svm import LinearSVC

        return LinearSVC(dual=False, max_iter=self.params.iterations, class_weight="balanced")

    def _learn(self, x: Features, y: NDArray[Any]) -> None:
        known = ~np.isnan(x)
        means = np.where(known, x, 0).sum(axis=0, dtype=np.float64) / np.maximum(known.sum(axis=0), 1)
        self.estimator = machine = self.make_estimator()
        machine.means_, machine.n_features_in_ = means, x.shape[1]
        machine.classes_ = np.unique(y) if self.exclusive else np.arange(y.shape[1])
        sides, costs = _sides(y, machine.classes_) if self.exclusive else _overlapping_sides(y)
        fit = fit_planes if self.params.solver == "newton" else liblinear_planes
        machine.coef_, machine.intercept_ = fit(filled(x, means), sides, costs, machine.max_iter)

    def _score(self, features: Features) -> Any:
        machine = self.estimator
        far = filled(features, machine.means_) @ machine.coef_.T + machine.intercept_
        if not self.exclusive:
            return [np.stack([1 - p, p], axis=1) for p in (1 / (1 + np.exp(-np.clip(far, -50, 50)))).T]
        if len(machine.classes_) == 2:
            far = np.concatenate([-far, far], axis=1) / 2
        grown = np.exp(far - far.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)


def _sides(codes: NDArray[Any], classes: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the sides of each class against all others, and what the wrong side costs.

    As in liblinear, rare classes weigh more and all others together as many rows as there are; of two classes, both are weighed.
    """
    sides = codes[:, None] == classes
    weights = len(codes) / (len(classes) * sides.sum(axis=0))
    if len(classes) == 2:
        return sides[:, 1:], weights[None]
    return sides, np.stack([np.ones(len(classes)), weights], axis=1)


def _overlapping_sides(going: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the sides of behaviors of which each may go on or not, both weighed the same."""
    sides = going.astype(bool)
    counts = np.stack([(~sides).sum(axis=0), sides.sum(axis=0)], axis=1)
    return sides, len(sides) / (2 * np.maximum(counts, 1))
