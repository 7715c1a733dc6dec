"""Intervals over individuals: withheld if there are too few, within the range, and with the stated coverage."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from scipy.special import stdtrit
from tests.reports.conftest import make_prediction, make_truth

import ethobench as eb
from ethobench import Annotation, Ethogram
from ethobench.metrics import Scores
from ethobench.metrics.bootstrap import (
    MIN_GROUPS,
    Resampled,
    confidence_interval,
    probability_higher,
    resampling_weights,
    sample_weights,
)
from ethobench.metrics.pairs import AlignedPair
from ethobench.metrics.scoring import score_pairs
from ethobench.metrics.suites import suites

ETHOGRAM = Ethogram(["a", "b", "other"], "other")
MEASURES = [(suite, measure.name) for suite in suites.names() for measure in suites[suite].measures]


@cache
def scores_of(suite: str, n: int, seed: int = 0) -> Scores:
    """Score a prediction with probabilities on one recording of each of n individuals."""
    truths = {f"r{k}": make_truth(k) for k in range(n)}
    predictions = {
        name: make_prediction(truth, 100 + k, certainty=1 + 3 * ((7 * k) % 5) / 5) for k, (name, truth) in enumerate(truths.items())
    }
    return eb.score(predictions, truths, suite=suite, individuals={name: f"mouse {name}" for name in truths}, resamples=200, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "measure"), MEASURES)
def test_below_five_individuals_every_interval_is_withheld(suite, measure):
    for n in (1, 2, 4):
        scores = scores_of(suite, n)
        assert scores.intervals["overall"][measure] is None
        assert all(values.get(measure) is None for values in scores.intervals["behaviors"].values())
        assert (scores.intervals["n"], scores.intervals["reason"]) == (n, f"no interval below 5 {scores.suite.unit}s")
        compared = scores.compare(scores_of(suite, n), [measure])[measure]
        assert (compared["low"], compared["high"], compared["better"]) == (None, None, None)


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "measure"), MEASURES)
def test_from_five_individuals_intervals_contain_the_value_within_its_range(suite, measure):
    scores = scores_of(suite, 6)
    low, high = next(m for m in scores.suite.measures if m.name == measure).metric.bounds
    assert scores.intervals["reason"] is None
    tables = [(scores.overall, scores.intervals["overall"], scores.intervals["withheld"]["overall"])]
    for name, values in scores.behaviors.items():
        tables.append((values, scores.intervals["behaviors"][name], scores.intervals["withheld"]["behaviors"].get(name, {})))
    for values, intervals, withheld in tables:
        if measure not in values:
            continue
        interval = intervals[measure]
        if interval is None:
            assert np.isnan(values[measure]) or withheld[measure]["reason"].startswith(("no spread", "no interval"))
        else:
            assert measure not in withheld
            assert low <= interval[0] <= values[measure] <= interval[1] <= high


@pytest.mark.slow
@pytest.mark.parametrize("suite", suites.names())
def test_main_intervals_of_a_suite_depend_on_the_seed_alone(suite):
    scores = scores_of(suite, 6)
    with_interval = [name for name in scores.suite.headline if scores.intervals["overall"][name] is not None]
    assert len(with_interval) >= len(scores.suite.headline) / 2
    assert scores_of.__wrapped__(suite, 6).intervals == scores.intervals
    assert scores_of(suite, 6, seed=1).intervals != scores.intervals


def test_one_individual_has_its_scores_and_no_interval():
    truth = make_truth(0)
    scores = eb.score(truth.shift(2), truth)
    assert scores.intervals["overall"]["f1"] is None
    assert all(values["f1"] is None for values in scores.intervals["behaviors"].values())
    assert scores.table()["low"].isna().all()
    facts = json.loads(json.dumps(scores.to_dict(), allow_nan=False))["intervals"]
    assert facts["overall"]["f1"] is None
    assert (facts["n"], facts["unit"], facts["reason"]) == (1, "recordings", "no interval below 5 recordings")
    assert scores.interval_note == "n = 1 recording; no interval below 5 recordings"


def test_a_behavior_that_few_individuals_show_has_no_interval():
    def annotation(k: int, shift: int = 0) -> Annotation:
        codes = np.repeat(np.random.default_rng(k).integers(0, 3, 40), 10)
        return Annotation.from_frames(np.roll(np.where((codes == 1) & (k >= 3), 2, codes), shift), ETHOGRAM, 10)

    scores = eb.score({f"r{k}": (annotation(k, 1 + k % 3), annotation(k)) for k in range(8)}, resamples=200)
    assert scores.intervals["behaviors"]["a"]["f1"] is not None
    assert scores.intervals["behaviors"]["b"]["f1"] is None
    assert scores.intervals["withheld"]["behaviors"]["b"]["f1"] == {"n": 3, "reason": "no interval below 5 recordings"}
    assert scores.interval_note.endswith("not where fewer than 5 have a value: b")


def test_the_same_score_in_all_individuals_has_no_interval():
    truths = {f"r{k}": make_truth(k) for k in range(6)}
    scores = eb.score(truths, truths, resamples=100)
    assert scores.overall["f1"] == 1
    assert scores.intervals["overall"]["f1"] is None
    assert scores.intervals["withheld"]["overall"]["f1"] == {"n": 6, "reason": "no spread: the same in all recordings"}


def test_individuals_are_counted_not_recordings():
    truths = {f"r{k}": make_truth(k) for k in range(12)}
    predictions = {name: truth.shift(1 + k % 4) for k, (name, truth) in enumerate(truths.items())}
    alone = eb.score(predictions, truths, resamples=100)
    assert (alone.unit, alone.intervals["n"], alone.intervals["reason"]) == ("recordings", 12, None)
    pairs = eb.score(predictions, truths, individuals={name: f"mouse{k % 3}" for k, name in enumerate(truths)}, resamples=100)
    assert (pairs.unit, pairs.intervals["n"]) == ("individuals", 3)
    assert pairs.intervals["overall"]["f1"] is None


def test_a_comparison_is_never_certain():
    for n, most in ((5, 1 - 2**-5), (8, 1 - 2**-8), (30, 0.999)):
        values = 0.5 + 1e-4 * np.random.default_rng(0).normal(size=n)
        resampled = Resampled.evaluate(lambda weights, values=values: weights @ values / weights.sum(axis=1), n, 500)
        assert probability_higher(float(values.mean()), resampled, n) == most
        assert probability_higher(-float(values.mean()), resampled, n) == 1 - most
    assert np.isnan(probability_higher(0.5, Resampled(resampled.bootstrap, resampled.jackknife[:4]), MIN_GROUPS - 1))


def test_undefined_resamples_are_excluded():
    drawn = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 5.0], [np.nan, np.nan]])
    low, high = confidence_interval([2.0, 5.0], Resampled(drawn, np.array([[2.0, 5.0]] * 5)), 5)
    assert high[0] - 2 == pytest.approx(2.776 * np.sqrt(2 / 3 * 5 / 4), rel=1e-3)
    assert np.isnan(low[1])


def animals(n: int, generator: np.random.Generator) -> list[AlignedPair]:
    """Return n animals that are predicted more or less well, and whose bouts differ."""
    pairs = []
    for k in range(n):
        codes = np.repeat(generator.choice(3, 40, p=generator.dirichlet([3, 2, 4])), 5)
        wrong = np.repeat(generator.random(40) > generator.beta(6, 2), 5)
        guess = np.where(wrong, np.repeat(generator.integers(0, 3, 40), 5), codes)
        pairs.append(
            AlignedPair(str(k), str(k), *(Annotation.from_frames(side, ETHOGRAM, 10) for side in (guess, codes)), pool_subjects=True)
        )
    return pairs


@pytest.mark.slow
def test_intervals_have_about_the_stated_coverage():
    generator = np.random.default_rng(0)
    population, suite = animals(1500, generator), suites["calms21"]
    true = score_pairs(population, suite, resamples=0).overall["macro_f1"]
    coverage, percentile = {}, {}
    for n in (5, 10):
        hits = []
        for _ in range(400):
            drawn = [population[k] for k in generator.choice(len(population), n, replace=False)]
            scores = score_pairs(drawn, suite, resamples=300)
            low, high = scores.intervals["overall"]["macro_f1"]
            draws = scores.resampled(suite.measures[0]).bootstrap[:, 0]
            hits.append((low <= true <= high, np.quantile(draws, 0.025) <= true <= np.quantile(draws, 0.975)))
        coverage[n], percentile[n] = np.mean(hits, axis=0)
    assert 0.90 < coverage[5] < 0.995
    assert 0.88 < coverage[10] < 0.99
    assert percentile[5] < 0.85  # too narrow


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_real_recordings(data, monkeypatch):
    monkeypatch.setenv("ETHOBENCH_DATA", str(data))
    banos = eb.load_dataset("banos")
    second = {r.id: r.annotations["human2"] for r in banos}
    scores = eb.score(second, banos, annotator="human1", resamples=200)
    low, high = scores.intervals["overall"]["f1"]
    assert scores.interval_note.startswith("n = 10 recordings; in brackets 95 % intervals")
    assert 0 < low < scores.overall["f1"] < high < 1
    few = {name: second[name] for name in [*second][:2]}
    pair = eb.score(few, banos, annotator="human1", resamples=200)
    assert pair.intervals["overall"]["f1"] is None
    later = eb.score({name: a.shift(10) for name, a in few.items()}, banos, annotator="human1", resamples=200)
    assert pair.compare(later, ["f1"])["f1"]["better"] is None
    rats = eb.load_dataset(data / "rats")
    names = [r.id for r in rats][:8]
    shifted = eb.score({name: rats[name].annotation().shift(k) for k, name in enumerate(names, 5)}, rats, suite="calms21", resamples=500)
    low, high = shifted.intervals["overall"]["macro_f1"]
    assert 0 < low < shifted.overall["macro_f1"] < high < 1


def test_the_default_seed_is_zero():
    assert np.array_equal(resampling_weights(5, 20), resampling_weights(5, 20, seed=0))
    assert np.array_equal(sample_weights(5, 20), sample_weights(5, 20, seed=0))
    assert not np.array_equal(resampling_weights(5, 20), resampling_weights(5, 20, seed=1))


def test_a_value_at_a_bound_has_an_interval_without_the_logit():
    """A pooled score may be exactly 0 or 1 although some individuals are not."""
    for value, individuals in ((1.0, np.array([1, 1, 1, 1, 0.8, 0.9])), (0.0, np.array([0, 0, 0, 0, 0.2, 0.1]))):
        resampled = Resampled.evaluate(lambda weights, scores=individuals: weights @ scores / weights.sum(axis=1), 6, 200)
        reach = stdtrit(5, 0.975) * resampled.standard_error(6)
        low, high = confidence_interval(value, resampled, 6, (0, 1), on_logit=True)
        assert (low, high) == pytest.approx((max(value - reach, 0), min(value + reach, 1)))
