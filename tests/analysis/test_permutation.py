"""Permutation tests and corrections, against brute force and statistical libraries."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from ethobench.analysis import permutation
from ethobench.analysis.permutation import compare_adjusted, compare_independent, compare_repeated, correct_p
from ethobench.core.errors import ParameterError


def test_three_groups_against_brute_force():
    values, codes = np.array([1.0, 2.0, 2.5, 4.0, 5.0, 7.0]), np.array([0, 0, 1, 1, 2, 2])

    def statistic(order):
        return stats.f_oneway(*(values[list(order)][codes == k] for k in range(3))).statistic

    observed = statistic(range(6))
    expected = np.mean([statistic(order) >= observed - 1e-9 for order in permutations(range(6))])
    test = compare_independent(values, codes)
    assert test.exact
    assert test.p == pytest.approx(expected)


def test_conditions_within_individuals_against_brute_force():
    values = np.array([[1.0, 2.0, 4.0], [2.0, 2.5, 3.0], [0.0, 3.0, 2.0]])

    def statistic(table):
        return (table.mean(axis=0) ** 2).sum()

    every = [statistic(np.array([row[list(order)] for row, order in zip(values, orders, strict=True)]))
             for orders in product(permutations(range(3)), repeat=3)]  # fmt: skip
    assert compare_repeated(values).p == pytest.approx(np.mean(np.array(every) >= statistic(values) - 1e-9))


def test_random_permutations_approximate_the_exact_test(monkeypatch):
    values, codes = np.random.default_rng(5).normal(0, 1, 12) + np.repeat([0, 1], 6), np.repeat([0, 1], 6)
    exact = compare_independent(values, codes)
    monkeypatch.setattr(permutation, "MAX_EXACT", 10)
    sampled = compare_independent(values, codes)
    assert exact.exact
    assert not sampled.exact
    assert sampled.p == pytest.approx(exact.p, abs=0.02)
    assert compare_independent(values, codes) == sampled
    assert sampled.p >= 1 / 10_000


def test_a_covariate_without_effect_changes_little():
    random = np.random.default_rng(2)
    values, codes = random.normal(0, 1, 16), np.repeat([0, 1], 8)
    adjusted = compare_adjusted(values, codes, random.normal(0, 1, (16, 1)))
    assert adjusted.p == pytest.approx(compare_independent(values, codes).p, abs=0.25)
    assert not adjusted.exact
    assert compare_adjusted(values[:6], codes[[0, 1, 2, 8, 9, 10]], random.normal(0, 1, (6, 1))).exact


def test_equal_values_have_p_1():
    assert compare_independent([1.0] * 6, [0, 0, 0, 1, 1, 1]).p == 1
    assert compare_repeated([[1.0, 1.0]] * 5).p == 1


@pytest.mark.parametrize(("method", "name"), [("holm", "holm"), ("fdr", "fdr_bh")])
def test_corrections_agree_with_statsmodels(method, name):
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is not installed")
    p = np.random.default_rng(1).random(9) ** 3
    assert correct_p(p, method) == pytest.approx(multitest.multipletests(p, method=name)[1])
    assert correct_p([*p, np.nan], method)[:9] == pytest.approx(correct_p(p, method))
    assert correct_p(p, "none") == pytest.approx(p)


def test_unknown_correction():
    with pytest.raises(ParameterError, match="holm, fdr, none"):
        correct_p([0.1], "tukey")
