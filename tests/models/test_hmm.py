"""Hidden Markov models against a literal forward-backward and a known source."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ethobench.models.hidden_markov import _expected, learn_hmm, log_densities, most_likely_states


def small_model(seed: int = 0):
    random = np.random.default_rng(seed)
    likely = random.normal(0, 1, (2, 5, 3))
    start, transitions = random.dirichlet(np.ones(3)), random.dirichlet(np.ones(3), 3)
    return likely, start, transitions


def test_densities_are_those_of_scipy():
    from scipy.stats import multivariate_normal

    random = np.random.default_rng(1)
    values, means = random.normal(size=(20, 3)), random.normal(size=(2, 3))
    covariances = np.array([np.diag([1.0, 2.0, 0.5]), np.eye(3) + 0.3])
    expected = [multivariate_normal(m, c).logpdf(values) for m, c in zip(means, covariances, strict=True)]
    assert log_densities(values, means, covariances) == pytest.approx(np.array(expected).T)


def test_expectations_are_sums_over_all_paths():
    likely, start, transitions = small_model()
    posterior, first, moves = _expected(likely, start, transitions)
    for w in range(2):
        weight = {}
        for path in product(range(3), repeat=5):
            p = start[path[0]] * np.exp(likely[w, 0, path[0]])
            for t in range(1, 5):
                p *= transitions[path[t - 1], path[t]] * np.exp(likely[w, t, path[t]])
            weight[path] = p
        total = sum(weight.values())
        for t, k in product(range(5), range(3)):
            assert posterior[w, t, k] == pytest.approx(sum(p for path, p in weight.items() if path[t] == k) / total)
        best = max(weight, key=weight.__getitem__)
        assert most_likely_states(likely[w], np.log(start), np.log(transitions)).tolist() == list(best)
    assert first == pytest.approx(posterior[:, 0].sum(axis=0))
    assert moves.sum() == pytest.approx(2 * 4)


@pytest.mark.parametrize("full", [True, False])
def test_known_states_are_found(full):
    random = np.random.default_rng(2)
    states = np.repeat(random.integers(0, 2, 40), 25)
    values = np.where(states[:, None] == 0, -1.0, 1.0) + random.normal(0, 0.5, (1000, 2))
    found = learn_hmm([values[i : i + 250] for i in range(0, 1000, 250)], np.array([[-0.5, 0.0], [0.5, 0.0]]), iterations=15, full=full)
    path = most_likely_states(log_densities(values, found["means"], found["covariances"]), found["start"], found["transitions"])
    assert (path == states).mean() > 0.99
    assert np.exp(np.diag(found["transitions"])).min() > 0.9
