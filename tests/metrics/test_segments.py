"""Segment scores against literal definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import ethobench as eb
from ethobench import Annotation, Ethogram
from ethobench.metrics import all_metrics
from ethobench.metrics.pairs import AlignedPair
from ethobench.metrics.segments import levenshtein

NAMES = ["a", "b", "other"]
sequences = st.lists(st.integers(0, 3), max_size=25)
codes = st.integers(1, 60).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 2), min_size=n, max_size=n)] * 2))


def annotations(pair, rate=10):
    return [Annotation.from_frames(np.array(v), Ethogram(NAMES, "other"), rate) for v in pair]


def segments_of(values, code):
    segments, start = [], None
    for i, v in enumerate([*values, None]):
        if v == code and start is None:
            start = i
        elif v != code and start is not None:
            segments.append((start, i))
            start = None
    return segments


@given(sequences, sequences)
def test_levenshtein_is_the_edit_distance(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    table[:, 0], table[0] = range(len(a) + 1), range(len(b) + 1)
    for i in range(len(a)):
        for j in range(len(b)):
            table[i + 1, j + 1] = min(table[i, j] + (a[i] != b[j]), table[i, j + 1] + 1, table[i + 1, j] + 1)
    assert levenshtein(a, b) == table[-1, -1]


def test_levenshtein_of_long_sequences():
    a = (np.arange(3000) % 7).tolist()
    assert levenshtein(a, a[:-5]) == 5
    assert levenshtein(a, a[10:]) == 10


@given(codes)
def test_f1_at_k_equals_a_literal_implementation(pair):
    pred, truth = annotations(pair)
    scores = eb.score(pred, truth, resamples=0)
    for k, threshold in ((10, 0.1), (25, 0.25), (50, 0.5)):
        for code, name in enumerate(NAMES[:2]):
            t, p = (segments_of(side, code) for side in (pair[1], pair[0]))
            hits, right = set(), 0
            for a, b in p:
                overlaps = [max(0, min(b, d) - max(a, c)) / (max(b, d) - min(a, c)) for c, d in t]
                best = int(np.argmax(overlaps)) if overlaps else None
                if best is not None and overlaps[best] >= threshold and best not in hits:
                    hits.add(best)
                    right += 1
            expected = 2 * right / (len(t) + len(p)) if t or p else np.nan
            assert scores.behaviors[name][f"segment_f1_{k}"] == pytest.approx(expected, nan_ok=True)


@given(codes)
def test_edit_score_compares_the_order(pair):
    pred, truth = annotations(pair)
    orders = []
    for values in pair:
        runs = [v for i, v in enumerate(values) if i == 0 or values[i - 1] != v]
        orders.append([v for v in runs if v != 2])
    longest = max(map(len, orders))
    expected = 1 - levenshtein(*orders) / longest if longest else np.nan
    assert eb.score(pred, truth, resamples=0).overall["edit"] == pytest.approx(expected, nan_ok=True)


@given(codes)
def test_intersection_criterion(pair):
    pred, truth = annotations(pair)
    scores = eb.score(pred, truth, resamples=0)
    for code, name in enumerate(NAMES[:2]):
        t, p = (segments_of(side, code) for side in (pair[1], pair[0]))
        inside = {i for a, b in t for i in range(a, b)}
        good = [(a, b) for a, b in p if len(inside & set(range(a, b))) >= 0.5 * (b - a)]
        covered = {i for a, b in good for i in range(a, b)}
        matched = [(a, b) for a, b in t if len(covered & set(range(a, b))) >= 0.5 * (b - a)]
        precision, recall = (len(x) / len(y) if y else 0.0 for x, y in ((good, p), (matched, t)))
        expected = (2 * precision * recall / (precision + recall) if precision + recall else 0.0) if t or p else np.nan
        assert scores.behaviors[name]["intersection_f1"] == pytest.approx(expected, nan_ok=True)


def test_map_prefers_confident_right_detections():
    ethogram = Ethogram(["a"])
    truth = Annotation.from_bouts([0, 20], [10, 30], [0, 0], ethogram, 10, 60)
    sure_right = Annotation.from_bouts([0, 20, 40], [10, 30, 50], [0] * 3, ethogram, 10, 60, confidence=[0.9, 0.8, 0.1])
    sure_wrong = Annotation.from_bouts([0, 20, 40], [10, 30, 50], [0] * 3, ethogram, 10, 60, confidence=[0.2, 0.1, 0.9])
    values = [eb.score(p, truth, resamples=0).overall["segment_map"] for p in (sure_right, sure_wrong)]
    assert values[0] == pytest.approx(1)
    assert values[1] == pytest.approx(2 / 3)
    assert eb.score(truth, truth).overall["segment_map"] == pytest.approx(1)


def test_map_of_a_loose_detection_counts_at_low_overlaps_only():
    ethogram = Ethogram(["a"])
    truth = Annotation.from_bouts([0], [20], [0], ethogram, 10, 60)
    pred = Annotation.from_bouts([0], [11], [0], ethogram, 10, 60)
    assert eb.score(pred, truth, resamples=0).overall["segment_map"] == pytest.approx(5 / 9)


def test_boundaries_within_half_a_second():
    ethogram = Ethogram(["a"])
    truth = Annotation.from_bouts([10, 30], [20, 40], [0, 0], ethogram, 10, 60)
    pred = Annotation.from_bouts([14, 46], [25, 58], [0, 0], ethogram, 10, 60)
    assert eb.score(pred, truth, resamples=0).behaviors["a"]["boundary_f1"] == pytest.approx(2 * 2 / 8)


def test_confidence_is_that_of_the_same_subject():
    q = Annotation.from_bouts(
        [0, 0, 30, 30], [10, 10, 40, 40], ["a"] * 4, ["a"], 1, 50, subject=["m1", "m2"] * 2, confidence=[0.5, 0.5, 0.1, 0.9]
    )
    t = Annotation.from_bouts([0, 0, 30], [10, 10, 40], ["a"] * 3, ["a"], 1, 50, subject=["m1", "m2", "m2"])
    assert eb.score(q, t).overall["segment_map"] == pytest.approx(1)


def test_one_predicted_segment_has_its_confidence():
    statistics = all_metrics()["segments.mean_average_precision"].statistics
    truth = Annotation.from_bouts([0, 50], [20, 60], ["a", "b"], ["a", "b"], 10, 100)
    for confidence in (0.25, 0.75):
        pred = Annotation.from_bouts([0, 50], [20, 60], ["a", "b"], ["a", "b"], 10, 100, confidence=[confidence, 1.0])
        low, high = (statistics(AlignedPair("r", "r", side, truth)) for side in (pred, truth))
        assert np.array_equal(low[1], high[1])
        assert not np.array_equal(low[0], high[0])


def test_boundaries_are_matched_one_to_one():
    """As many pairs of a true and a predicted boundary within half a second as possible, over all assignments."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        sides = [np.repeat(rng.integers(0, 3, 12), rng.integers(1, 4, 12)) for _ in range(2)]
        n = min(map(len, sides))
        pred, truth = annotations([side[:n] for side in sides], rate=4)
        scores = eb.score(pred, truth, resamples=0)
        for code, name in enumerate(NAMES[:2]):
            t, p = ([b for segment in segments_of(side[:n], code) for b in segment] for side in sides[::-1])
            within = np.array([[abs(a - b) <= 2 for b in p] for a in t]).reshape(len(t), len(p))
            rows, columns = linear_sum_assignment(~within)
            expected = 2 * within[rows, columns].sum() / (len(t) + len(p)) if t or p else np.nan
            assert scores.behaviors[name]["boundary_f1"] == pytest.approx(expected, nan_ok=True)


def test_map_equals_a_literal_implementation():
    """Detections in order of confidence; each is correct if a free true segment overlaps enough, the best of them is taken."""
    rng = np.random.default_rng(6)
    ethogram = Ethogram(["a"])
    for _ in range(30):
        sides = []
        for _ in range(2):
            bounds = np.sort(rng.choice(100, 2 * rng.integers(0, 6), replace=False))
            sides.append([(int(a), int(b)) for a, b in bounds.reshape(-1, 2)])
        t, p = sides
        confidence = (rng.permutation(len(p)) * 0.1 + 0.05).tolist()
        truth = Annotation.from_bouts([a for a, _ in t], [b for _, b in t], [0] * len(t), ethogram, 10, 100)
        pred = Annotation.from_bouts([a for a, _ in p], [b for _, b in p], [0] * len(p), ethogram, 10, 100, confidence=confidence)
        areas = []
        for threshold in [k / 10 for k in range(1, 10)]:
            free, correct = set(range(len(t))), []
            for k in sorted(range(len(p)), key=lambda k: -confidence[k]):
                overlaps = {
                    i: (min(p[k][1], t[i][1]) - max(p[k][0], t[i][0])) / (max(p[k][1], t[i][1]) - min(p[k][0], t[i][0])) for i in free
                }
                best = max(overlaps, key=overlaps.get, default=None)
                correct.append(best is not None and overlaps[best] > 0 and overlaps[best] >= threshold)
                if correct[-1]:
                    free.remove(best)
            precision = [sum(correct[: k + 1]) / (k + 1) for k in range(len(correct))]
            areas.append(sum(max(precision[k:]) for k, hit in enumerate(correct) if hit) / len(t) if t else 0.0)
        expected = np.mean(areas) if t or p else np.nan
        assert eb.score(pred, truth, resamples=0).behaviors["a"]["segment_map"] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("truth", "pred", "expected"), [
    ([(0, "a"), (20, "b"), (70, "a")], [(0, "a"), (65, "b"), (70, "a")], 1 - 2 / 4),
    ([(0, "a"), (60, "b")], [(0, "a"), (59, "b")], 1 - 2 / 3),
    ([(60, "a"), (119, "b"), (120, "a")], [(60, "a"), (119, "b"), (120, "a")], 1.0),
    ([(119, "b"), (125, "a")], [(120, "b"), (125, "a")], 1 - 2 / 3),
    ([(0, "a"), (179, "b")], [(0, "a")], 1 - 1 / 2),
])  # fmt: skip
def test_the_order_is_compared_hour_by_hour(truth, pred, expected):
    """At one frame a minute, an hour has 60 frames."""
    sides = [
        Annotation.from_bouts([s for s, _ in bouts], [s + 1 for s, _ in bouts], [b for _, b in bouts], ["a", "b"], 1 / 60, 180)
        for bouts in (pred, truth)
    ]
    assert eb.score(*sides, resamples=0).overall["edit"] == pytest.approx(expected)
