"""Frame scores against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import ethobench as eb
from ethobench import Annotation, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.observed import Observed, Track
from ethobench.metrics import frames
from ethobench.metrics.pairs import AlignedPair

NAMES = ["a", "b", "c"]
codes = st.integers(1, 80).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 2))
onehots = st.integers(1, 60).flatmap(lambda n: st.tuples(*[st.lists(st.tuples(*[st.booleans()] * 3), min_size=n, max_size=n)] * 2))


def score(pred, truth, **options):
    a, b = (Annotation.from_frames(np.array(v), Ethogram(NAMES), 10) for v in (pred, truth))
    return eb.score(a, b, resamples=0, **options)


def close(value: float, expected: float) -> bool:
    return value == pytest.approx(expected, abs=1e-12, nan_ok=True)


def correlation(truth, pred) -> float:
    """Matthews correlation; 0 for a single label, where scikit-learn says so with a warning."""
    return sk.matthews_corrcoef(truth, pred) if len({*truth, *pred}) > 1 else 0.0


@pytest.mark.slow
@given(onehots)
def test_every_behavior_equals_scikit_learn(pair):
    pred, truth = (np.array(v) for v in pair)
    scores = score(pred, truth)
    for k, name in enumerate(NAMES):
        values, (t, p) = scores.behaviors[name], (truth[:, k], pred[:, k])
        assert close(values["precision"], sk.precision_score(t, p, zero_division=np.nan) if p.any() else np.nan)
        assert close(values["recall"], sk.recall_score(t, p, zero_division=np.nan) if t.any() else np.nan)
        assert close(values["f1"], sk.f1_score(t, p) if t.any() or p.any() else np.nan)
        assert close(values["mcc"], correlation(t, p))
        if t.any() and not t.all() and p.any() and not p.all():
            assert close(values["kappa"], sk.cohen_kappa_score(t, p))


@given(codes)
def test_all_behaviors_together_equal_scikit_learn(pair):
    pred, truth = (np.array(v) for v in pair)
    overall = score(pred, truth).overall
    assert close(overall["accuracy"], sk.accuracy_score(truth, pred))
    assert close(overall["mcc_all"], correlation(truth, pred))
    assert close(overall["mutual_information"], sk.mutual_info_score(truth, pred))
    if len({*truth, *pred}) > 1:
        assert close(overall["kappa_all"], sk.cohen_kappa_score(truth, pred))


@given(codes)
def test_the_mean_excludes_background_and_absent_behaviors(pair):
    pred, truth = (np.array(v) % 3 for v in pair)
    a, b = (Annotation.from_frames(v, Ethogram(NAMES, "c"), 10) for v in (pred, truth))
    scores = eb.score(a, b, resamples=0)
    present = [k for k in (0, 1) if k in truth or k in pred]
    expected = np.mean([sk.f1_score(truth == k, pred == k) for k in present]) if present else np.nan
    assert close(scores.overall["f1"], expected)
    assert scores.absent == [NAMES[k] for k in (0, 1) if k not in present]


@given(codes, st.data())
def test_unobserved_frames_do_not_count(pair, data):
    pred, truth = (np.array(v) for v in pair)
    hidden = np.array(data.draw(st.lists(st.booleans(), min_size=len(pred), max_size=len(pred))))
    a = Annotation.from_frames(pred, Ethogram(NAMES), 10)
    b = Annotation.from_frames(truth, Ethogram(NAMES), 10, unobserved=hidden)
    keep = ~hidden
    if keep.any():
        scores = eb.score(a, b, resamples=0)
        assert close(scores.overall["accuracy"], sk.accuracy_score(truth[keep], pred[keep]))
        for k, name in enumerate(NAMES):
            t, p = truth[keep] == k, pred[keep] == k
            assert close(scores.behaviors[name]["f1"], sk.f1_score(t, p) if t.any() or p.any() else np.nan)


def test_frames_unobserved_by_the_prediction_count_as_without_behavior():
    truth = Annotation.from_frames([0, 0, 1, 1], Ethogram(NAMES), 10)
    pred = Annotation.from_frames([0, 0, -1, -1], Ethogram(NAMES), 10, unobserved=-1)
    scores = eb.score(pred, truth)
    assert scores.behaviors["b"]["recall"] == 0
    assert scores.coverage == 0.5
    assert "covers 50.0%" in " ".join(map(str, scores.notes))


@pytest.mark.parametrize("subject", [None, "mouse"])
@pytest.mark.parametrize("observed", ["everything", "half", "one behavior less"])
def test_counts_are_those_of_the_frames(subject, observed):
    """Both ways to count, from the confusion matrix and from tracks, equal a count of frames."""
    generator = np.random.default_rng(5)
    pred_codes, true_codes = generator.integers(0, 4, (2, 50))
    is_observed = np.ones((50, 3), dtype=bool)
    options = {}
    if observed == "half":
        is_observed[25:] = False
        options["observed"] = iv.intervals([0], [25])
    elif observed == "one behavior less":
        is_observed[10:, 1] = False
        options["observed"] = Observed(iv.full(50), {Track("b"): iv.intervals([0], [10])})
    sides = [Annotation.from_frames(codes, Ethogram(NAMES), 10, subject=subject) for codes in (pred_codes, true_codes)]
    truth = sides[1].with_observed(options["observed"]) if options else sides[1]
    pair = AlignedPair("r", "r", sides[0], truth, pool_subjects=subject is None)
    for code, (tp, fp, fn, tn) in enumerate(frames.counts(pair).tolist()):
        p, t, o = pred_codes == code, true_codes == code, is_observed[:, code]
        assert (tp, fp, fn, tn) == ((p & t & o).sum(), (p & ~t & o).sum(), (~p & t & o).sum(), (~p & ~t & o).sum())


def test_kappa_and_mcc_of_a_small_table():
    """20 true positives, 5 false positives, 10 false negatives and 15 true negatives: kappa 0.4."""
    counts = np.array([20.0, 5.0, 10.0, 15.0])
    assert frames.kappa(counts) == pytest.approx(0.4)
    assert frames.mcc(counts) == pytest.approx((20 * 15 - 5 * 10) / np.sqrt(25 * 30 * 20 * 25))
    assert frames.iou(counts) == pytest.approx(20 / 35)


def test_homogeneity_equals_scikit_learn():
    generator = np.random.default_rng(0)
    for _ in range(50):
        pred, truth = generator.integers(0, 3, (2, 40))
        a, b = (Annotation.from_frames(v, Ethogram(NAMES), 10) for v in (pred, truth))
        value = eb.score(a, b, suite="bebe", resamples=0).overall["homogeneity"]
        assert close(value, sk.homogeneity_score(truth, pred))


def test_a_constant_truth_is_homogeneous_whatever_is_predicted():
    assert frames.homogeneity(np.array([[3.0, 2, 1], [0, 0, 0], [0, 0, 0]])) == 1
    assert np.isnan(frames.homogeneity(np.zeros((3, 3))))
    assert frames.homogeneity(np.array([[4.0, 0], [0, 4]])) == pytest.approx(1)
    assert frames.homogeneity(np.array([[2.0, 2], [2, 2]])) == pytest.approx(0)
    two_thirds = frames.homogeneity(np.array([[6.0, 0, 0], [0, 3, 0], [0, 3, 0]]))  # the last two are not distinguished
    assert two_thirds == pytest.approx(np.log(2) / (1.5 * np.log(2)))
