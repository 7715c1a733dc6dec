"""Matching of bouts against the Hungarian algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from ethobench.core import intervals as iv
from ethobench.metrics.matching import count_matches, greedy_partners, match_best, temporal_iou

masks = st.integers(1, 60).flatmap(lambda n: st.tuples(*[st.lists(st.booleans(), min_size=n, max_size=n)] * 2))


@given(masks)
def test_most_matches_and_then_the_greatest_weight(pair):
    a, b = (iv.from_mask(m) for m in pair)
    i, j = iv.overlapping_pairs(a, b)
    weight = temporal_iou(a, b, i, j)
    matched = match_best(i, j, weight)
    assert len(set(i[matched])) == len(set(j[matched])) == matched.sum()
    gain = np.zeros((len(a.start), len(b.start)))
    gain[i, j] = 1000 + weight
    rows, columns = linear_sum_assignment(-gain)
    best = gain[rows, columns].sum()
    assert np.isclose(1000 * matched.sum() + weight[matched].sum(), best)
    assert count_matches(i, j) == matched.sum()
    assert count_matches(*np.array(sorted(zip(j, i, strict=True))).reshape(-1, 2).T.astype(np.int64)) == matched.sum()


@given(st.lists(st.integers(0, 40), max_size=12), st.lists(st.integers(0, 40), max_size=12), st.integers(0, 4))
def test_points_within_a_tolerance(first, second, tolerance):
    a, b = np.sort(np.array(first, dtype=np.int64)), np.sort(np.array(second, dtype=np.int64))
    partners = greedy_partners(np.searchsorted(a, b - tolerance, side="left"), np.searchsorted(a, b + tolerance, side="right") - 1)
    near = (np.abs(a[:, None] - b[None, :]) <= tolerance).astype(float)
    rows, columns = linear_sum_assignment(-near) if near.size else ([], [])
    assert (partners >= 0).sum() == (near[rows, columns].sum() if near.size else 0)
    used = partners[partners >= 0]
    assert len(set(used.tolist())) == len(used)
    assert (np.abs(a[used] - b[partners >= 0]) <= tolerance).all()


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=12))
def test_intersection_over_union_counts_frames(ends):
    spans = [(min(pair), max(pair)) for pair in ends]
    a = iv.intervals(*np.array(spans).T)
    i, j = (index.ravel() for index in np.indices((len(spans), len(spans))))
    expected = []
    for first, second in zip(i, j, strict=True):
        one, other = ({*range(*spans[k])} for k in (first, second))
        expected.append(len(one & other) / max(len(one | other), 1))
    assert temporal_iou(a, a, i, j) == pytest.approx(expected)


def test_of_equal_choices_the_earlier_pair_is_matched():
    i, j = np.array([0, 0]), np.array([0, 1])
    assert match_best(i, j, np.array([0.25, 0.25])).tolist() == [True, False]
    assert match_best(j, i, np.array([0.25, 0.25])).tolist() == [True, False]
