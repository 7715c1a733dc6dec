"""The hidden Markov model agrees with a sum over all paths, and recovers the states of simulated data."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ethobench.models.hidden_markov import expectation_step, fit_hmm, log_densities, most_likely_states


def small_model(seed: int = 0):
    random = np.random.default_rng(seed)
    densities = random.normal(0, 1, (2, 5, 3))
    start, transitions = random.dirichlet(np.ones(3)), random.dirichlet(np.ones(3), 3)
    return densities, start, transitions


def test_log_densities_agree_with_scipy():
    from scipy.stats import multivariate_normal

    random = np.random.default_rng(1)
    values, means = random.normal(size=(20, 3)), random.normal(size=(2, 3))
    covariances = np.array([np.diag([1.0, 2.0, 0.5]), np.eye(3) + 0.3])
    expected = [multivariate_normal(m, c).logpdf(values) for m, c in zip(means, covariances, strict=True)]
    assert log_densities(values, means, covariances) == pytest.approx(np.array(expected).T)


def test_expectations_agree_with_a_sum_over_all_paths():
    densities, start, transitions = small_model()
    posterior, start_counts, transition_counts = expectation_step(densities, start, transitions)
    for w in range(2):
        weight = {}
        for path in product(range(3), repeat=5):
            p = start[path[0]] * np.exp(densities[w, 0, path[0]])
            for t in range(1, 5):
                p *= transitions[path[t - 1], path[t]] * np.exp(densities[w, t, path[t]])
            weight[path] = p
        total = sum(weight.values())
        for t, k in product(range(5), range(3)):
            assert posterior[w, t, k] == pytest.approx(sum(p for path, p in weight.items() if path[t] == k) / total)
        best = max(weight, key=weight.__getitem__)
        assert most_likely_states(densities[w], np.log(start), np.log(transitions)).tolist() == list(best)
    assert start_counts == pytest.approx(posterior[:, 0].sum(axis=0))
    assert transition_counts.sum() == pytest.approx(2 * 4)


@pytest.mark.parametrize("full", [True, False])
def test_hmm_recovers_the_states_of_simulated_data(full):
    random = np.random.default_rng(2)
    states = np.repeat(random.integers(0, 2, 40), 25)
    values = np.where(states[:, None] == 0, -1.0, 1.0) + random.normal(0, 0.5, (1000, 2))
    fitted = fit_hmm([values[i : i + 250] for i in range(0, 1000, 250)], np.array([[-0.5, 0.0], [0.5, 0.0]]), iterations=15, full=full)
    path = most_likely_states(log_densities(values, fitted["means"], fitted["covariances"]), fitted["start"], fitted["transitions"])
    assert (path == states).mean() > 0.99
    assert np.exp(np.diag(fitted["transitions"])).min() > 0.9
