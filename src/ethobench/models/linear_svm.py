"""Planes between classes: linear machines with squared hinge loss, solved to the end by Newton's method.

The objective is that of liblinear, ``|w|**2 / 2 + sum(c * max(0, 1 - y * x @ w)**2)`` with the offset as one more weight, so that the
planes are those of scikit-learn's ``LinearSVC(dual=False)`` where it converges. Columns of very different size, on which gradients
alone hardly get ahead, are no hindrance: they are scaled to solve, and the objective stays the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
BLOCK = 20_000
TOLERANCE = 1e-9  # of the objective, relative
HALVINGS = 40


def fit_planes(x: NDArray[np.floating[Any]], sides: NDArray[np.bool_], costs: Matrix, iterations: int = 1000) -> tuple[Matrix, Matrix]:
    """Find the plane of each column of `sides`.

    Parameters
    ----------
    x : array (n_rows, n_features)
    sides : array of bool (n_rows, n_planes)
        On which side of each plane a row belongs.
    costs : array (n_planes, 2)
        Of a row on the wrong side: where it belongs to False, and to True.
    iterations : int
        Of Newton's method, at most; some ten are usual.

    Returns
    -------
    directions : array (n_planes, n_features)
    offsets : array (n_planes,)

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> directions, offsets = fit_planes(x, np.array([[False], [False], [True], [True]]), np.array([[1.0, 1.0]]))
    >>> x @ directions[0] + offsets[0] > 0
    array([False, False,  True,  True])
    """
    scale = np.sqrt(np.mean([np.square(block).mean(axis=0) for _, block in _blocks(x)], axis=0))
    scale = np.append(np.where(scale > 0, scale, 1.0), 1.0)
    planes = [_Plane(x, scale, sides[:, k], costs[k]).solve(iterations) / scale for k in range(sides.shape[1])]
    found = np.stack(planes)
    return found[:, :-1], found[:, -1]


def liblinear_planes(
    x: NDArray[np.floating[Any]], sides: NDArray[np.bool_], costs: Matrix, iterations: int = 1000
) -> tuple[Matrix, Matrix]:
    """Find planes as `fit_planes` does, by scikit-learn's ``LinearSVC``: one that is still on its way stops, and says so."""
    from sklearn.svm import LinearSVC

    directions, offsets = np.zeros((len(costs), x.shape[1])), np.zeros(len(costs))
    for k, (off, on) in enumerate(costs):
        if not 0 < sides[:, k].sum() < len(x):
            offsets[k] = 1.0 if sides[:, k].all() else -1.0
            continue
        machine = LinearSVC(dual=False, max_iter=iterations, class_weight={False: off, True: on}).fit(x, sides[:, k])
        directions[k], offsets[k] = machine.coef_[0], machine.intercept_[0]
    return directions, offsets


class _Plane:
    """One plane in the making: weights of the scaled columns, and which rows are not yet far enough on their side."""

    def __init__(self, x: NDArray[np.floating[Any]], scale: Matrix, side: NDArray[np.bool_], costs: Matrix) -> None:
        self.x, self.scale = x, scale
        self.sign = np.where(side, 1.0, -1.0)
        self.cost = np.where(side, costs[1], costs[0])
        self.ridge = scale**-2
        self.weights = np.zeros(len(scale))
        self.close = np.zeros(len(x), dtype=bool)
        self.curvature = np.zeros((len(scale), len(scale)))

    def solve(self, iterations: int) -> Matrix:
        """Go down until nothing is gained; return the weights."""
        margins = np.zeros(len(self.x))
        value = self._value(self.weights, margins)
        for _ in range(iterations):
            step = self._step(margins)
            gain = self._times(step)
            size, best = self._along(step, gain, margins, value)
            if value - best <= TOLERANCE * value:
                break
            self.weights += size * step
            margins += size * gain
            value = best
        return self.weights

    def _value(self, weights: Matrix, margins: Matrix) -> float:
        short = np.maximum(1 - self.sign * margins, 0)
        return float(self.ridge @ weights**2 / 2 + self.cost @ short**2)

    def _step(self, margins: Matrix) -> Matrix:
        """Return Newton's step; the curvature changes by the rows alone that came close or went far."""
        short = 1 - self.sign * margins
        close = short > 0
        pull = np.where(close, 2 * self.cost * self.sign * short, 0.0)
        slope = -self.ridge * self.weights
        for rows, block in _blocks(self.x):
            wide = _widened(block, self.scale)
            slope += pull[rows] @ wide
            changed = close[rows] != self.close[rows]
            if changed.any():
                part = wide[changed]
                factor = np.where(close[rows][changed], 2.0, -2.0) * self.cost[rows][changed]
                self.curvature += (part * factor[:, None]).T @ part
        self.close = close
        return np.asarray(np.linalg.solve(self.curvature + np.diag(self.ridge), slope))

    def _times(self, weights: Matrix) -> Matrix:
        return np.concatenate([_widened(block, self.scale) @ weights for _, block in _blocks(self.x)])

    def _along(self, step: Matrix, gain: Matrix, margins: Matrix, value: float) -> tuple[float, float]:
        """Halve the step until it leads down."""
        size = 1.0
        for _ in range(HALVINGS):
            there = self._value(self.weights + size * step, margins + size * gain)
            if there < value:
                return size, there
            size /= 2
        return 0.0, value


def _blocks(x: NDArray[np.floating[Any]]) -> Any:
    """Yield a few rows at a time, in double precision."""
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        yield rows, x[rows].astype(np.float64)


def _widened(block: Matrix, scale: Matrix) -> Matrix:
    """Scale the columns, and add one for the offset."""
    return np.concatenate([block, np.ones((len(block), 1))], axis=1) / scale
