"""A hidden Markov model with Gaussian states, fitted by expectation maximization, in NumPy.

All windows are processed at once, not one sequence after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MIN_VARIANCE = 1e-4


def log_densities(values: Array, means: Array, covariances: Array) -> Array:
    """Return the log density of each frame under each Gaussian (n_frames, n_states).

    Parameters
    ----------
    values : array (n_frames, n_channels)
    means : array (n_states, n_channels)
    covariances : array (n_states, n_channels, n_channels)
    """
    densities = np.empty((len(values), len(means)))
    constant = values.shape[1] * np.log(2 * np.pi)
    for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        factor = np.linalg.cholesky(covariance)
        standardized = np.linalg.solve(factor, (values - mean).T)
        densities[:, k] = -0.5 * (constant + (standardized**2).sum(axis=0)) - np.log(np.diag(factor)).sum()
    return densities


def fit_hmm(windows: Sequence[Array], means: Array, *, iterations: int, full: bool, concentration: float = 1.1) -> dict[str, Array]:
    """Fit a hidden Markov model to windows of frames.

    Parameters
    ----------
    windows : sequence of arrays (n_frames, n_channels)
        All of the same length.
    means : array (n_states, n_channels)
        Initial means.
    iterations : int
        Iterations of expectation maximization.
    full : bool
        Whether covariances are full, else diagonal.
    concentration : float
        Of the Dirichlet prior on start and transition probabilities; 1 for a flat prior.

    Returns
    -------
    dict
        ``means``, ``covariances``, and the logarithms ``start`` and ``transitions``.
    """
    n_states, n_channels = means.shape
    stacked = np.stack(windows)
    frames = stacked.reshape(-1, n_channels)
    covariances = np.tile(np.diag(np.maximum(frames.var(axis=0), MIN_VARIANCE)), (n_states, 1, 1))
    start, transitions = np.full(n_states, 1 / n_states), np.full((n_states, n_states), 0.1 / max(n_states - 1, 1))
    np.fill_diagonal(transitions, 0.9)
    for _ in range(iterations):
        densities = log_densities(frames, means, covariances).reshape(*stacked.shape[:2], n_states)
        posterior, start_counts, transition_counts = expectation_step(densities, start, transitions)
        weights = posterior.reshape(-1, n_states)
        total = weights.sum(axis=0) + 1e-9
        means = (weights.T @ frames) / total[:, None]
        for k in range(n_states):
            deviations = frames - means[k]
            covariance = (weights[:, k, None] * deviations).T @ deviations / total[k]
            covariances[k] = (covariance if full else np.diag(np.diag(covariance))) + MIN_VARIANCE * np.eye(n_channels)
        start = _normalize(start_counts + concentration - 1)
        transitions = _normalize(transition_counts + concentration - 1)
    return {"means": means, "covariances": covariances, "start": np.log(start), "transitions": np.log(transitions)}


def most_likely_states(densities: Array, start: Array, transitions: Array) -> NDArray[np.int64]:
    """Return the most likely sequence of states (n_frames,), by the Viterbi algorithm.

    Parameters
    ----------
    densities : array (n_frames, n_states)
        Log densities.
    start : array (n_states,)
        Log probabilities of the first state.
    transitions : array (n_states, n_states)
        Log probabilities of transitions.
    """
    n_frames, n_states = densities.shape
    predecessor = np.empty((n_frames, n_states), dtype=np.int16)
    score = start + densities[0]
    for t in range(1, n_frames):
        candidates = score[:, None] + transitions
        predecessor[t] = candidates.argmax(axis=0)
        score = candidates.max(axis=0) + densities[t]
    path = np.empty(n_frames, dtype=np.int64)
    path[-1] = score.argmax()
    for t in range(n_frames - 1, 0, -1):
        path[t - 1] = predecessor[t, path[t]]
    return path


def expectation_step(densities: Array, start: Array, transitions: Array) -> tuple[Array, Array, Array]:
    """Run the forward-backward algorithm on all windows; return posteriors, expected first states and expected transitions."""
    n_windows, length, n_states = densities.shape
    scaled = np.exp(densities - densities.max(axis=2, keepdims=True))
    forward = np.empty_like(scaled)
    forward[:, 0] = _normalize(start * scaled[:, 0])
    for t in range(1, length):
        forward[:, t] = _normalize((forward[:, t - 1] @ transitions) * scaled[:, t])
    backward = np.ones((n_windows, n_states))
    posterior = np.empty_like(scaled)
    posterior[:, -1] = forward[:, -1]
    transition_counts = np.zeros((n_states, n_states))
    for t in range(length - 1, 0, -1):
        ahead = scaled[:, t] * backward
        joint = forward[:, t - 1, :, None] * transitions * ahead[:, None, :]
        joint /= joint.sum(axis=(1, 2), keepdims=True) + 1e-300
        transition_counts += joint.sum(axis=0)
        posterior[:, t - 1] = joint.sum(axis=2)
        backward = _normalize(ahead @ transitions.T)
    return posterior, posterior[:, 0].sum(axis=0), transition_counts


def _normalize(values: Array) -> Array:
    return np.asarray(values / (values.sum(axis=-1, keepdims=True) + 1e-300))
