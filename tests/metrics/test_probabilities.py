"""Probability scores against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import ethobench as eb
from ethobench import Annotation, Ethogram, Prediction
from ethobench.metrics import get_metric
from ethobench.metrics import probabilities as pr
from ethobench.metrics.pairs import AlignedPair

scored = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5000001, 0.9, 1.0]) | st.floats(0, 1), st.booleans()), min_size=1, max_size=80
)


@given(scored)
def test_average_precision_and_auroc_are_exact(rows):
    scores, truth = (np.array(column) for column in zip(*rows, strict=True))
    ranking = pr.Ranking.sort(scores, truth)
    if truth.any():
        assert pr.average_precision_of(ranking) == pytest.approx(sk.average_precision_score(truth, scores), abs=1e-12)
    else:
        assert np.isnan(pr.average_precision_of(ranking))
    if truth.any() and not truth.all():
        assert pr.auroc_of(ranking) == pytest.approx(sk.roc_auc_score(truth, scores), abs=1e-12)
    else:
        assert np.isnan(pr.auroc_of(ranking))


@given(scored)
def test_best_threshold_has_the_highest_f1(rows):
    scores, truth = (np.array(column) for column in zip(*rows, strict=True))
    threshold, f1 = pr.best_threshold_of(pr.Ranking.sort(scores, truth))
    if truth.any():
        every = [sk.f1_score(truth, scores >= t) for t in np.unique(scores)]
        assert f1 == pytest.approx(max(every), abs=1e-12)
        assert f1 == pytest.approx(sk.f1_score(truth, scores >= threshold), abs=1e-12)


@given(scored)
def test_binned_average_precision_follows_the_paper(rows):
    scores, truth = (np.array(column) for column in zip(*rows, strict=True))
    if not truth.any():
        return
    edges = np.linspace(scores.min(), scores.max(), 10_001)
    above = scores[:, None] >= edges
    recall = (truth[:, None] & above).sum(axis=0) / truth.sum()
    precision = (truth[:, None] & above).sum(axis=0) / np.maximum(above.sum(axis=0), 1)
    total = float((precision * (recall - np.append(recall[1:], 0))).sum())
    assert pr.binned_average_precision_of(pr.Ranking.sort(scores, truth)) == pytest.approx(total, abs=1e-12)


def make(n=400, seed=0):
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, 3, n)
    logits = generator.normal(0, 1, (n, 3)) + 2 * np.eye(3)[codes]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    ethogram = Ethogram(["a", "b", "other"], "other")
    return Prediction(probabilities, ethogram, 10), Annotation.from_frames(codes, ethogram, 10), codes


def test_pooled_over_recordings_without_the_background():
    parts = [make(seed=s) for s in range(5)]
    scores = eb.score({str(i): (p, t) for i, (p, t, _) in enumerate(parts)}, suite="calms21")
    y = np.concatenate([c for *_, c in parts])
    p = np.concatenate([p.probabilities for p, *_ in parts])
    expected = np.mean([sk.average_precision_score(y == k, p[:, k]) for k in (0, 1)])
    assert scores.overall["map"] == pytest.approx(expected, abs=1e-12)
    low, high = scores.intervals["overall"]["map"]
    assert low <= expected + 0.01
    assert high >= expected - 0.01


def test_binned_values_come_close_to_the_exact_ones():
    prediction, truth, _ = make(5000)

    case = AlignedPair("r", "r", prediction.annotation, truth, prediction.probabilities, pool_subjects=True)
    table = pr.histogram(case)
    exact = [pr.rank_frames([case], code) for code in range(3)]
    assert pr.average_precision(table) == pytest.approx([pr.average_precision_of(r) for r in exact], abs=2e-3)
    assert pr.auroc(table) == pytest.approx([pr.auroc_of(r) for r in exact], abs=2e-3)
    assert pr.best_threshold(table) == pytest.approx([pr.best_threshold_of(r)[0] for r in exact], abs=0.05)


def test_calibration_error_is_small_for_calibrated_and_large_for_overconfident_probabilities():
    generator = np.random.default_rng(0)
    p = generator.random(50_000)
    truth = generator.random(50_000) < p
    ethogram = Ethogram(["a"])
    annotation = Annotation.from_frames(truth[:, None], ethogram, 10)
    honest = eb.score(Prediction(p[:, None], ethogram, 10, exclusive=False), annotation, resamples=0)
    bold = eb.score(Prediction((p > 0.5).astype(float)[:, None], ethogram, 10, exclusive=False), annotation, resamples=0)
    assert honest.overall["calibration_error"] < 0.02
    assert bold.overall["calibration_error"] == pytest.approx(0.25, abs=0.02)


def test_without_probabilities_the_metrics_are_undefined():
    prediction, truth, _ = make()
    scores = eb.score(prediction.annotation, truth, suite="calms21")
    assert np.isnan(scores.overall["map"])
    assert scores.to_dict()["overall"]["map"] is None


def test_frames_without_a_probability_or_unobserved_do_not_count():
    prediction, truth, codes = make()
    p = prediction.probabilities.copy()
    p[:50] = np.nan
    hidden = np.zeros(400, dtype=bool)
    hidden[350:] = True
    partly = Annotation.from_frames(codes, truth.ethogram, 10, unobserved=hidden)
    scores = eb.score(Prediction(p, truth.ethogram, 10), partly, suite="calms21", resamples=0)
    expected = np.mean([sk.average_precision_score(codes[50:350] == k, p[50:350, k]) for k in (0, 1)])
    assert scores.overall["map"] == pytest.approx(expected, abs=1e-12)


def test_calibration_error_equals_its_definition():
    """Over ten equal bins: frames with the behavior against the sum of probabilities, pooled over recordings."""
    rng = np.random.default_rng(3)
    pairs, chosen = {}, []
    for k in range(3):
        p = rng.random(50) ** 2
        truth = rng.random(50) < 0.5 * p + 0.2
        chosen += [*zip(p, truth, strict=True)]
        columns = np.stack([p, 1 - p], axis=1)
        ethogram = Ethogram(["a", "other"], "other")
        pairs[f"r{k}"] = (Prediction(columns, ethogram, 5, exclusive=True), Annotation.from_frames(np.where(truth, 0, 1), ethogram, 5))
    error = 0.0
    for low in range(10):
        bin_of = [(p, hit) for p, hit in chosen if low <= 10 * p < low + 1]
        error += abs(sum(hit for _, hit in bin_of) - sum(p for p, _ in bin_of))
    scores = eb.score(pairs, resamples=0)
    name = next(m.name for m in scores.suite.measures if m.metric_name == "probabilities.calibration_error")
    assert scores.behaviors["a"][name] == pytest.approx(error / len(chosen))


def test_the_best_threshold_of_pooled_frames():
    prediction, truth, codes = make(seed=4)
    scores = eb.score(prediction, truth, resamples=0)
    metric = get_metric("probabilities.best_threshold")
    ranking = pr.Ranking.sort(prediction.probabilities[:, 0], codes == 0)
    assert metric.exact(ranking) == pr.best_threshold_of(ranking)[0]
    case = AlignedPair("r", "r", prediction.annotation, truth, prediction.probabilities, pool_subjects=True)
    binned = pr.best_threshold(pr.histogram(case))
    for code in range(3):
        p, hits = prediction.probabilities[:, code], codes == code
        steps = np.floor(p * 1000)
        correct = np.array([np.count_nonzero(hits & (steps >= k)) for k in range(1000)])
        f1 = 2 * correct / np.array([np.count_nonzero(hits) + np.count_nonzero(steps >= k) for k in range(1000)])
        assert f1[500] == pytest.approx(sk.f1_score(hits, steps >= 500))
        assert binned[code] == max(k for k in range(1000) if f1[k] == max(f1)) / 1000
    assert scores.overall["auroc"] == pytest.approx(np.mean([sk.roc_auc_score(codes == k, prediction.probabilities[:, k]) for k in (0, 1)]))


def test_no_positive_frame_has_no_step():
    score, above, false = pr.Ranking.sort(np.array([0.2, 0.7]), np.array([False, False])).at_positives
    assert score.tolist() == above.tolist() == false.tolist() == []
    assert np.isnan(pr.best_threshold(np.zeros(3 * pr.BINS)))


@given(scored)
def test_binned_values_are_exact_for_probabilities_in_the_middle_of_bins(rows):
    scores, truth = (np.array(column) for column in zip(*rows, strict=True))
    scores = (np.minimum(np.floor(scores * 50), 49) + 0.5) / 50
    ethogram = Ethogram(["a"])
    annotation = Annotation.from_frames(truth[:, None], ethogram, 10)
    table = pr.histogram(AlignedPair("r", "r", annotation, annotation, scores[:, None], pool_subjects=True))
    ranking = pr.Ranking.sort(scores, truth)
    assert pr.average_precision(table)[0] == pytest.approx(pr.average_precision_of(ranking), nan_ok=True)
    assert pr.auroc(table)[0] == pytest.approx(pr.auroc_of(ranking), nan_ok=True)
    threshold = pr.best_threshold(table)[0]
    assert np.isnan(threshold) == (not truth.any())
    if truth.any():
        assert sk.f1_score(truth, scores >= threshold) == pytest.approx(pr.best_threshold_of(ranking)[1])
    true, frames, total = pr.reliability(table)
    for k in range(10):
        inside = np.floor(scores * 10) == k
        assert (true[0, k], frames[0, k], total[0, k]) == pytest.approx((truth[inside].sum(), inside.sum(), scores[inside].sum()))


def test_bins_of_the_lowest_and_highest_probabilities():
    values = np.array([0.0, 0.0004, 0.001, 0.9985, 0.999, 1.0])
    annotation = Annotation.from_frames(np.ones((6, 1), dtype=bool), Ethogram(["a"]), 10)
    table = pr.histogram(AlignedPair("r", "r", annotation, annotation, values[:, None], pool_subjects=True))[0]
    assert {int(k): table[k] for k in np.flatnonzero(table[: pr.BINS])} == {0: 2, 1: 1, 998: 1, 999: 2}
    assert pr.average_precision(table) == 1
    low = Annotation.from_frames(np.array([[True], [False]]), Ethogram(["a"]), 10)
    table = pr.histogram(AlignedPair("r", "r", low, low, np.array([[0.0004], [0.0]]), pool_subjects=True))[0]
    assert pr.best_threshold(table) == 0


def test_recordings_without_probabilities_add_no_frames():
    prediction, truth, codes = make(n=50)
    pairs = [
        AlignedPair("r", "r", prediction.annotation, truth, probabilities, pool_subjects=True)
        for probabilities in (None, prediction.probabilities)
    ]
    assert len(pr.rank_frames(pairs[:1], 0).positive) == len(pr.rank_frames(pairs[:1], 0).negative) == 0
    ranking = pr.rank_frames(pairs, 0)
    assert (len(ranking.positive), len(ranking.negative)) == ((codes == 0).sum(), (codes != 0).sum())
