"""Time budgets corrected by what a model is known to mistake.

A model that takes some walking for running inflates running in every recording it annotates. Where its confusion matrix is
known from recordings with a truth, the true shares are those that, confused in this way, come closest to the observed ones.
"""

from __future__ import annotations

import numpy as np

from ethobench.core.errors import MismatchError
from ethobench.metrics.base import Array, ratio
from ethobench.metrics.bootstrap import MIN_GROUPS, Resampled, confidence_interval


def corrected_shares(shares: Array, confusion: Array, *, resamples: int = 1000, seed: int = 0) -> tuple[Array, Array, Array]:
    """Correct shares of time by a confusion matrix.

    Parameters
    ----------
    shares : array (n_behaviors,)
        Of the time, as predicted.
    confusion : array (n_individuals, n_behaviors, n_behaviors)
        Frames by true (row) and predicted (column) behavior, for each individual with a truth.
    resamples, seed : int
        The interval resamples these individuals.

    Returns
    -------
    value, low, high : arrays (n_behaviors,)
        `low` and `high` are NaN with fewer than five individuals.

    Examples
    --------
    >>> confusion = np.array([[[80, 20], [0, 100]]], dtype=float)
    >>> corrected_shares(np.array([0.4, 0.6]), confusion)[0].round(3).tolist()
    [0.5, 0.5]
    """
    if confusion.ndim != 3 or confusion.shape[1:] != (len(shares), len(shares)):
        raise MismatchError(f"a confusion of shape {confusion.shape} for {len(shares)} behaviors")
    value = _solve(shares, confusion.sum(axis=0))
    if len(confusion) < MIN_GROUPS:
        return value, np.full_like(value, np.nan), np.full_like(value, np.nan)

    def corrected(weights: Array) -> Array:
        return np.stack([_solve(shares, matrix) for matrix in np.tensordot(weights, confusion, axes=1)])

    resampled = Resampled.by(corrected, len(confusion), resamples, seed)
    low, high = confidence_interval(value, resampled, len(confusion), (0.0, 1.0), on_logit=True)
    return value, low, high


def _solve(shares: Array, confusion: Array) -> Array:
    """Find non-negative true shares that, confused, come closest to the predicted ones; rows never seen stay as they are."""
    from scipy.optimize import nnls

    rows = ratio(confusion, confusion.sum(axis=1, keepdims=True))
    rows = np.where(np.isnan(rows), np.eye(len(shares)), rows)
    found, _ = nnls(rows.T, shares)
    total = found.sum()
    return np.asarray(found / total * shares.sum() if total > 0 else shares)
