"""Linear support vector machines with squared hinge loss, solved by Newton's method.

The objective is that of liblinear, ``|w|**2 / 2 + sum(c * max(0, 1 - y * x @ w)**2)`` with the intercept as one more weight, so the
solution is that of scikit-learn's ``LinearSVC(dual=False)`` where it converges. Columns are scaled internally for the sake of
convergence, without changing the objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
BLOCK_ROWS = 20_000
TOLERANCE = 1e-9  # relative decrease of the objective below which Newton's method stops
MAX_HALVINGS = 40


def fit_linear_svm(
    x: NDArray[np.floating[Any]], positive: NDArray[np.bool_], costs: Matrix, iterations: int = 1000
) -> tuple[Matrix, Matrix]:
    """Fit one linear SVM per column of `positive`.

    Parameters
    ----------
    x : array (n_rows, n_features)
    positive : array of bool (n_rows, n_classes)
        Which rows belong to each class.
    costs : array (n_classes, 2)
        Weights of the loss of negative and of positive rows.
    iterations : int
        Maximum number of Newton steps; about ten are typical.

    Returns
    -------
    coefficients : array (n_classes, n_features)
    intercepts : array (n_classes,)

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> coefficients, intercepts = fit_linear_svm(x, np.array([[False], [False], [True], [True]]), np.array([[1.0, 1.0]]))
    >>> x @ coefficients[0] + intercepts[0] > 0
    array([False, False,  True,  True])
    """
    scale = np.sqrt(np.mean([np.square(block).mean(axis=0) for _, block in _blocks(x)], axis=0))
    scale = np.append(np.where(scale > 0, scale, 1.0), 1.0)
    problems = (_BinaryProblem(x, scale, positive[:, k], costs[k]) for k in range(positive.shape[1]))
    weights = np.stack([problem.solve(iterations) / scale for problem in problems])
    return weights[:, :-1], weights[:, -1]


def fit_linear_svm_with_liblinear(
    x: NDArray[np.floating[Any]], positive: NDArray[np.bool_], costs: Matrix, iterations: int = 1000
) -> tuple[Matrix, Matrix]:
    """Fit as `fit_linear_svm` does, with scikit-learn's ``LinearSVC``, which warns if it does not converge."""
    from sklearn.svm import LinearSVC

    coefficients, intercepts = np.zeros((len(costs), x.shape[1])), np.zeros(len(costs))
    for k, (negative_cost, positive_cost) in enumerate(costs):
        if not 0 < positive[:, k].sum() < len(x):
            intercepts[k] = 1.0 if positive[:, k].all() else -1.0
            continue
        weights = {False: negative_cost, True: positive_cost}
        estimator = LinearSVC(dual=False, max_iter=iterations, class_weight=weights).fit(x, positive[:, k])
        coefficients[k], intercepts[k] = estimator.coef_[0], estimator.intercept_[0]
    return coefficients, intercepts


def one_against_rest(codes: NDArray[Any], classes: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the positive rows of each class (n_rows, n_classes) and the costs of negative and positive rows (n_classes, 2).

    As in liblinear, positive rows are weighted by the inverse frequency of their class; of two classes, both are weighted.
    """
    positive = codes[:, None] == classes
    weights = len(codes) / (len(classes) * positive.sum(axis=0))
    if len(classes) == 2:
        return positive[:, 1:], weights[None]
    return positive, np.stack([np.ones(len(classes)), weights], axis=1)


def overlapping_classes(targets: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the positive rows of each behavior (n_rows, n_behaviors) and balanced costs of negative and positive rows."""
    positive = targets.astype(bool)
    counts = np.stack([(~positive).sum(axis=0), positive.sum(axis=0)], axis=1)
    return positive, len(positive) / (2 * np.maximum(counts, 1))


class _BinaryProblem:
    """The weights of one class against the rest, in scaled columns, and the rows within the margin."""

    def __init__(self, x: NDArray[np.floating[Any]], scale: Matrix, positive: NDArray[np.bool_], costs: Matrix) -> None:
        self.x, self.scale = x, scale
        self.sign = np.where(positive, 1.0, -1.0)
        self.cost = np.where(positive, costs[1], costs[0])
        self.ridge = scale**-2
        self.weights = np.zeros(len(scale))
        self.within_margin = np.zeros(len(x), dtype=bool)
        self.hessian = np.zeros((len(scale), len(scale)))

    def solve(self, iterations: int) -> Matrix:
        """Minimize the objective; return the weights (n_features + 1,), the intercept last."""
        decision = np.zeros(len(self.x))
        objective = self._objective(self.weights, decision)
        for _ in range(iterations):
            step = self._newton_step(decision)
            change = self._multiply(step)
            size, lowest = self._line_search(step, change, decision, objective)
            if objective - lowest <= TOLERANCE * objective:
                break
            self.weights += size * step
            decision += size * change
            objective = lowest
        return self.weights

    def _objective(self, weights: Matrix, decision: Matrix) -> float:
        hinge = np.maximum(1 - self.sign * decision, 0)
        return float(self.ridge @ weights**2 / 2 + self.cost @ hinge**2)

    def _newton_step(self, decision: Matrix) -> Matrix:
        """Return Newton's step. The Hessian is updated by the rows that entered or left the margin."""
        hinge = 1 - self.sign * decision
        within_margin = hinge > 0
        residual = np.where(within_margin, 2 * self.cost * self.sign * hinge, 0.0)
        gradient = -self.ridge * self.weights
        for rows, block in _blocks(self.x):
            design = _design_matrix(block, self.scale)
            gradient += residual[rows] @ design
            changed = within_margin[rows] != self.within_margin[rows]
            if changed.any():
                entering = np.where(within_margin[rows][changed], 2.0, -2.0) * self.cost[rows][changed]
                self.hessian += (design[changed] * entering[:, None]).T @ design[changed]
        self.within_margin = within_margin
        return np.asarray(np.linalg.solve(self.hessian + np.diag(self.ridge), gradient))

    def _multiply(self, weights: Matrix) -> Matrix:
        return np.concatenate([_design_matrix(block, self.scale) @ weights for _, block in _blocks(self.x)])

    def _line_search(self, step: Matrix, change: Matrix, decision: Matrix, objective: float) -> tuple[float, float]:
        """Halve the step until the objective decreases; return the size of the step and the objective."""
        size = 1.0
        for _ in range(MAX_HALVINGS):
            value = self._objective(self.weights + size * step, decision + size * change)
            if value < objective:
                return size, value
            size /= 2
        return 0.0, objective


def _blocks(x: NDArray[np.floating[Any]]) -> Iterator[tuple[slice, Matrix]]:
    """Yield blocks of rows in double precision."""
    for start in range(0, len(x), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        yield rows, x[rows].astype(np.float64)


def _design_matrix(block: Matrix, scale: Matrix) -> Matrix:
    """Scale the columns, and append a column for the intercept."""
    return np.concatenate([block, np.ones((len(block), 1))], axis=1) / scale
