"""Conclusions: time budgets, durations, transitions, latencies, corrections."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

import ethobench as eb
from ethobench import Annotation, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.core.observed import Observed, Track
from ethobench.metrics.budgets import corrected_shares, time_budget
from ethobench.metrics.suites.rodentbench import entropy_weighted_mcc

NAMES = ["a", "b", "other"]


def of(codes, rate=10) -> Annotation:
    return Annotation.from_frames(np.array(codes), Ethogram(NAMES, "other"), rate)


def test_time_and_count_errors():
    truth = of([0] * 20 + [2] * 30 + [0] * 10 + [1] * 40)
    pred = of([0] * 25 + [2] * 35 + [1] * 40)
    figures = eb.score(pred, truth).behaviors
    assert figures["a"]["time_error"] == pytest.approx(0.05)
    assert figures["b"]["time_error"] == 0
    assert figures["a"]["count_error"] == 0.5
    assert eb.score(pred, truth).overall["time_error"] == pytest.approx(0.025)


def test_duration_distance_is_kolmogorov_smirnov():
    generator = np.random.default_rng(0)

    def bouts(mean):
        lengths = generator.geometric(1 / mean, 400)
        codes = np.concatenate([np.concatenate([np.zeros(n, dtype=int), [2]]) for n in lengths])
        return codes, lengths

    (truth, long), (pred, short) = bouts(40), bouts(15)
    n = max(len(truth), len(pred))
    truth, pred = (np.concatenate([c, np.full(n - len(c), 2)]) for c in (truth, pred))
    mine = eb.score(of(pred), of(truth)).behaviors["a"]["duration_distance"]
    assert mine == pytest.approx(ks_2samp(long, short).statistic, abs=0.03)


def test_transition_distance():
    truth = of(([0] * 5 + [1] * 5) * 10)
    same = of(([0] * 3 + [1] * 7) * 10)
    other = of(([0] * 5 + [2] * 5) * 10)
    assert eb.score(same, truth).overall["transition_distance"] == 0
    assert eb.score(other, truth).overall["transition_distance"] == pytest.approx(1)


def test_latency_of_an_absent_behavior_is_the_duration_of_the_recording():
    truth, pred = of([2] * 30 + [0] * 70), of([2] * 45 + [0] * 55)
    assert eb.score(pred, truth).behaviors["a"]["latency_error"] == pytest.approx(1.5)
    assert eb.score(of([2] * 100), truth).behaviors["a"]["latency_error"] == pytest.approx(7.0)
    assert np.isnan(eb.score(pred, truth).behaviors["b"]["latency_error"])


def test_shares_are_corrected_by_the_confusion():
    confusion = np.array([[[80.0, 20, 0], [10, 90, 0], [0, 0, 100]]])
    true = np.array([0.5, 0.2, 0.3])
    predicted = true @ (confusion[0] / confusion[0].sum(axis=1, keepdims=True))
    value, low, high = corrected_shares(predicted, confusion)
    assert value == pytest.approx(true)
    assert np.isnan(low).all()
    assert np.isnan(corrected_shares(predicted, np.concatenate([confusion] * 4))[1]).all()
    several = np.concatenate([confusion * k for k in (1, 2, 3, 4, 5)]) + np.random.default_rng(0).integers(0, 10, (5, 3, 3))
    value, low, high = corrected_shares(predicted, several)
    assert (low <= value + 1e-9).all()
    assert (value <= high + 1e-9).all()
    with pytest.raises(MismatchError):
        corrected_shares(np.array([0.5, 0.5]), confusion)


def test_entropy_weighted_mcc_weights_by_labels_and_seconds():
    def dataset(codes, shift):
        truth = Annotation.from_frames(np.array(codes), Ethogram(["x", "y"]), 1)
        return eb.score(
            {"r": (truth.crop(0, len(codes)), truth) if not shift else (of_two(np.roll(codes, shift)), truth)}, suite="rodentbench"
        )

    def of_two(codes):
        return Annotation.from_frames(np.array(codes), Ethogram(["x", "y"]), 1)

    rich, plain = dataset(([0] * 5 + [1] * 5) * 6, 2), dataset([0] * 59 + [1], 0)
    combined = entropy_weighted_mcc({"rich": rich, "plain": plain})
    values = sorted([rich.overall["mcc"], plain.overall["mcc"]])
    assert values[0] <= combined <= values[1]
    assert abs(combined - rich.overall["mcc"]) < abs(combined - plain.overall["mcc"])
    assert entropy_weighted_mcc({"rich": rich}) == pytest.approx(rich.overall["mcc"])


def test_transitions_in_unobserved_frames_do_not_matter():
    codes = np.tile([0, 0, 0, 1, 1, 2], 5)
    truth = Annotation.from_frames(codes, ["A", "B", "C"], 1, unobserved=np.arange(30) >= 15)
    other = codes.copy()
    other[15:] = np.tile([0, 2, 1], 5)
    values = [eb.score(Annotation.from_frames(c, ["A", "B", "C"], 1), truth).overall["transition_distance"] for c in (codes, other)]
    assert values[0] == values[1]


def test_the_budget_of_several_recordings_is_that_of_them_joined():
    rng = np.random.default_rng(0)
    names = Ethogram(["a", "b", "none"], "none")
    recordings = [
        Annotation.from_frames(np.repeat(rng.integers(0, 3, 12), 5), names, 10, unobserved=rng.random(60) < 0.1) for _ in range(3)
    ]
    together, single = time_budget(*recordings), [time_budget(annotation) for annotation in recordings]
    for k, row in enumerate(together):
        rows = [budget[k] for budget in single]
        spans = [annotation.observed.of(row["behavior"]) for annotation in recordings]
        observed = sum(int((span.stop - span.start).sum()) for span in spans) / 10
        assert row["bouts"] == sum(r["bouts"] for r in rows)
        assert row["seconds"] == pytest.approx(sum(r["seconds"] for r in rows))
        assert row["share"] == pytest.approx(row["seconds"] / observed)
        assert row["mean"] == pytest.approx(row["seconds"] / row["bouts"])
        assert row["latency"] == np.median([r["latency"] for r in rows if r["latency"] is not None])


def test_a_behavior_of_one_recording_only_is_a_share_of_the_time_in_which_it_was_observed():
    both = Annotation.from_bouts([0, 20], [10, 30], ["a", "b"], ["a", "b"], rate=10, n_frames=100)
    one = Annotation.from_bouts([0], [50], ["a"], ["a"], rate=10, n_frames=100)
    rows = {row["behavior"]: row for row in time_budget(both, one)}
    assert rows["a"]["share"] == pytest.approx(6 / 20)
    assert rows["b"]["share"] == pytest.approx(1 / 10)


def test_the_share_of_a_subject_is_that_of_the_time_in_which_it_was_observed():
    observed = Observed(iv.full(100), {Track(subject="m2"): iv.intervals([0], [50])})
    both = Annotation.from_bouts([0, 0], [10, 10], ["a", "a"], Ethogram(["a"]), 10, 100, subject=["m1", "m2"], observed=observed)
    assert {row["subject"]: row["share"] for row in time_budget(both)} == pytest.approx({"m1": 0.1, "m2": 0.2})
