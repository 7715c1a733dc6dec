"""A hidden Markov model with Gaussian states, learnt by expectation maximisation, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SMALLEST_VARIANCE = 1e-4


def log_densities(values: Array, means: Array, covariances: Array) -> Array:
    """Return the log density of each frame under each Gaussian.

    Parameters
    ----------
    values : array (n_frames, n_channels)
    means : array (n_states, n_channels)
    covariances : array (n_states, n_channels, n_channels)
    """
    found = np.empty((len(values), len(means)))
    constant = values.shape[1] * np.log(2 * np.pi)
    for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        factor = np.linalg.cholesky(covariance)
        apart = np.linalg.solve(factor, (values - mean).T)
        found[:, k] = -0.5 * (constant + (apart**2).sum(axis=0)) - np.log(np.diag(factor)).sum()
    return found


def learn_hmm(windows: Sequence[Array], means: Array, *, iterations: int, full: bool, concentration: float = 1.1) -> dict[str, Array]:
    """Learn states from stretches of frames.

    Parameters
    ----------
    windows : sequence of arrays (n_frames, n_channels)
        All of one length.
    means : array (n_states, n_channels)
        To begin with.
    iterations : int
        Of expectation maximisation.
    full : bool
        Whether channels of a state may vary together.
    concentration : float
        Of the prior on the first state and on transitions; 1 is none.

    Returns
    -------
    dict
        ``means``, ``covariances``, ``start`` and ``transitions`` (the last two as logarithms).
    """
    n_states, n_channels = means.shape
    stacked = np.stack(windows)
    frames = stacked.reshape(-1, n_channels)
    covariances = np.tile(np.diag(np.maximum(frames.var(axis=0), SMALLEST_VARIANCE)), (n_states, 1, 1))
    start, transitions = np.full(n_states, 1 / n_states), np.full((n_states, n_states), 0.1 / max(n_states - 1, 1))
    np.fill_diagonal(transitions, 0.9)
    for _ in range(iterations):
        likely = log_densities(frames, means, covariances).reshape(*stacked.shape[:2], n_states)
        posterior, first, moves = _expected(likely, start, transitions)
        weights = posterior.reshape(-1, n_states)
        total = weights.sum(axis=0) + 1e-9
        means = (weights.T @ frames) / total[:, None]
        for k in range(n_states):
            apart = frames - means[k]
            spread = (weights[:, k, None] * apart).T @ apart / total[k]
            kept = spread if full else np.diag(np.diag(spread))
            covariances[k] = kept + SMALLEST_VARIANCE * np.eye(n_channels)
        start = _normalised(first + concentration - 1)
        transitions = _normalised(moves + concentration - 1)
    return {"means": means, "covariances": covariances, "start": np.log(start), "transitions": np.log(transitions)}


def most_likely_states(likely: Array, start: Array, transitions: Array) -> NDArray[np.int64]:
    """Return the most likely way through the states (Viterbi).

    Parameters
    ----------
    likely : array (n_frames, n_states)
        Log densities.
    start, transitions : array
        Logarithms.
    """
    n_frames, n_states = likely.shape
    came_from = np.empty((n_frames, n_states), dtype=np.int16)
    score = start + likely[0]
    for t in range(1, n_frames):
        ways = score[:, None] + transitions
        came_from[t] = ways.argmax(axis=0)
        score = ways.max(axis=0) + likely[t]
    path = np.empty(n_frames, dtype=np.int64)
    path[-1] = score.argmax()
    for t in range(n_frames - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return path


def _expected(likely: Array, start: Array, transitions: Array) -> tuple[Array, Array, Array]:
    """Run forwards and backwards through all windows at once; return posteriors, expected first states and transitions."""
    n_windows, length, n_states = likely.shape
    density = np.exp(likely - likely.max(axis=2, keepdims=True))
    forward = np.empty_like(density)
    forward[:, 0] = _normalised(start * density[:, 0])
    for t in range(1, length):
        forward[:, t] = _normalised((forward[:, t - 1] @ transitions) * density[:, t])
    backward = np.ones((n_windows, n_states))
    posterior = np.empty_like(density)
    posterior[:, -1] = forward[:, -1]
    moves = np.zeros((n_states, n_states))
    for t in range(length - 1, 0, -1):
        ahead = density[:, t] * backward
        joint = forward[:, t - 1, :, None] * transitions * ahead[:, None, :]
        joint /= joint.sum(axis=(1, 2), keepdims=True) + 1e-300
        moves += joint.sum(axis=0)
        posterior[:, t - 1] = joint.sum(axis=2)
        backward = _normalised(ahead @ transitions.T)
    return posterior, posterior[:, 0].sum(axis=0), moves


def _normalised(values: Array) -> Array:
    return np.asarray(values / (values.sum(axis=-1, keepdims=True) + 1e-300))
