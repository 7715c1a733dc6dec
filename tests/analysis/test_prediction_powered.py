"""Estimates from human and model labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ethobench.analysis.prediction_powered import Estimate, IndependentGroups, RepeatedMeasures, labels_to_halve, ratio_interval


def test_covariates_agree_with_hc2_of_statsmodels():
    api = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    random = np.random.default_rng(1)
    codes, age = np.repeat([0, 1], 8), random.normal(0, 1, 16)
    values = age + codes + random.normal(0, 1, 16) * (1 + codes)
    estimate = IndependentGroups(codes, values, age[:, None]).estimate([-1, 1])
    fit = api.OLS(values, np.column_stack([np.ones(16), codes, age])).fit(cov_type="HC2")
    assert estimate.value == pytest.approx(fit.params[1])
    assert estimate.variance == pytest.approx(fit.cov_params()[1, 1])


def test_a_perfect_model_gives_the_interval_of_all_individuals():
    random = np.random.default_rng(2)
    codes, shares = np.repeat([0, 1], 20), random.random(40)
    labeled = np.where(np.tile(np.arange(20) < 5, 2), shares, np.nan)
    both = IndependentGroups(codes, labeled, None, 0.5 * shares + 0.2).estimate([-1, 1])
    everything = IndependentGroups(codes, shares).estimate([-1, 1])
    assert both.value == pytest.approx(everything.value)
    assert both.variance == pytest.approx(everything.variance, rel=1e-6)
    assert both.weight == pytest.approx(2.0)


def test_the_estimate_is_that_of_ppi_with_tuned_weight():
    random = np.random.default_rng(3)
    human, model_labeled, model_others = random.random(12), None, random.random(40)
    model_labeled = human + random.normal(0, 0.05, 12) + 0.3
    values, model = np.concatenate([human, np.full(40, np.nan)]), np.concatenate([model_labeled, model_others])
    estimate = IndependentGroups(np.zeros(52, dtype=int), values, None, model).estimate([1])
    weight = estimate.weight * 40 / 52  # of the mean of the unlabeled, as in PPI++
    assert estimate.value == pytest.approx(weight * model_others.mean() + (human - weight * model_labeled).mean())


def test_the_bias_of_the_model_does_not_matter():
    random = np.random.default_rng(4)
    codes, shares = np.repeat([0, 1], 20), random.random(40)
    labeled = np.where(np.tile(np.arange(20) < 6, 2), shares, np.nan)
    model = shares + random.normal(0, 0.05, 40)
    plain, shifted = (IndependentGroups(codes, labeled, None, m).estimate([-1, 1]) for m in (model, 3 * model + 0.5 * codes))
    assert shifted.value == pytest.approx(plain.value)
    assert shifted.variance == pytest.approx(plain.variance)


@pytest.mark.slow
def test_coverage_with_five_labeled_individuals():
    random = np.random.default_rng(5)
    codes = np.repeat([0, 1], 25)
    is_labeled = np.tile(np.arange(25) < 5, 2)
    inside = 0
    for _ in range(600):
        values = random.gamma(4, 1, 50) + codes
        model = 0.7 * values + 0.5 * codes + random.normal(0, 0.7, 50)
        low, high = IndependentGroups(codes, np.where(is_labeled, values, np.nan), None, model).estimate([-1, 1]).interval()
        inside += low <= 1 <= high
    assert 0.92 <= inside / 600 <= 0.98


def test_repeated_measures_are_one_sample_of_differences():
    values = np.random.default_rng(6).normal(0, 1, (7, 3))
    estimate = RepeatedMeasures(values).estimate([-1, 0, 1])
    reference = stats.ttest_rel(values[:, 2], values[:, 0])
    assert estimate.interval() == pytest.approx(tuple(reference.confidence_interval()))
    assert estimate.p_value() == pytest.approx(reference.pvalue)


def test_fieller_interval_holds_the_ratios_that_are_not_rejected():
    random = np.random.default_rng(7)
    codes, values = np.repeat([0, 1], 9), random.gamma(9, 1, 18)
    groups = IndependentGroups(codes, values)
    ratio, low, high = ratio_interval(groups.estimate, [0, 1], [1, 0])
    df = groups.estimate([-ratio, 1]).df
    for end in (low, high):
        contrast = groups.estimate([-end, 1])
        assert abs(contrast.value) / np.sqrt(contrast.variance) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-6)


def test_ratio_to_a_mean_that_may_be_0_is_open():
    groups = IndependentGroups([0] * 4 + [1] * 4, [0.0, 0.0, 0.0, 0.01, 0.2, 0.3, 0.25, 0.2])
    assert ratio_interval(groups.estimate, [0, 1], [1, 0])[2] == np.inf
    assert np.isnan(ratio_interval(IndependentGroups([0, 0, 1, 1], [0.0, 0.0, 0.2, 0.3]).estimate, [0, 1], [1, 0])[0])


def test_intervals_are_cut_at_bounds_and_withheld_without_spread():
    assert Estimate(0.02, 0.01, 4).interval((0.0, 1.0))[0] == 0
    assert np.isnan(Estimate(0.2, 0.0, 4).interval()).all()
    assert not IndependentGroups([0, 1, 1], [0.1, 0.2, 0.3]).estimate([-1, 1]).has_spread


def test_labels_to_halve():
    random = np.random.default_rng(8)
    codes, values = np.repeat([0, 1], 10), random.normal(0, 1, 20)
    estimate = IndependentGroups(codes, values).estimate([-1, 1])
    more = labels_to_halve(estimate, 20, None).individuals
    assert more is not None
    assert 45 <= more <= 60
    assert labels_to_halve(estimate, 20, 30).individuals is None
