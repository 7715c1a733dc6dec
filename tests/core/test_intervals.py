"""Interval functions against sets of frames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals

N = 40
pairs = st.lists(st.tuples(st.integers(0, N), st.integers(0, N)).map(lambda p: (min(p), max(p))), max_size=12)


def make(rows: list[tuple[int, int]]) -> Intervals:
    rows = sorted(rows)
    return iv.intervals([a for a, _ in rows], [b for _, b in rows])


def frames(a: Intervals) -> set[int]:
    return {f for x, y in zip(a.start, a.stop, strict=True) for f in range(x, y)}


def is_disjoint(a: Intervals) -> bool:
    return bool((a.stop > a.start).all() and (a.start[1:] > a.stop[:-1]).all())


@given(pairs)
def test_union_covers_the_same_frames(rows):
    a = make(rows)
    united = iv.union(a)
    assert frames(united) == frames(a)
    assert is_disjoint(united)
    assert iv.total(united) == len(frames(a))


@given(pairs, pairs)
def test_set_operations(first, second):
    a, b = iv.union(make(first)), iv.union(make(second))
    assert frames(iv.intersection(a, b)) == frames(a) & frames(b)
    assert frames(iv.difference(a, b)) == frames(a) - frames(b)
    assert frames(iv.union_all([a, b])) == frames(a) | frames(b)
    assert frames(iv.complement(a, N)) == set(range(N)) - frames(a)
    assert iv.overlap(a, b) == len(frames(a) & frames(b))
    for result in (iv.intersection(a, b), iv.difference(a, b), iv.complement(a, N)):
        assert (result.stop > result.start).all()


@given(pairs, st.integers(-30, 30))
def test_difference_and_shift_below_zero(rows, step):
    a = iv.union(make(rows))
    moved = iv.shift(a, step)
    assert frames(moved) == {f + step for f in frames(a)}
    assert frames(iv.difference(moved, a)) == frames(moved) - frames(a)


@given(pairs, pairs)
def test_every_overlapping_pair_is_returned_once(first, second):
    a, b = make(first), make(second)
    i, j = iv.overlapping_pairs(a, b)
    found_pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    expected = [
        (p, q)
        for p in range(len(a.start))
        for q in range(len(b.start))
        if set(range(a.start[p], a.stop[p])) & set(range(b.start[q], b.stop[q]))
    ]
    assert found_pairs == expected


@given(pairs, pairs)
def test_overlap_with_and_covered_before(first, second):
    a, b = make(first), iv.union(make(second))
    inside = frames(b)
    assert iv.overlap_with(a, b).tolist() == [len(inside & set(range(x, y))) for x, y in zip(a.start, a.stop, strict=True)]
    at = np.arange(-2, N + 3)
    assert iv.covered_before(b, at).tolist() == [len([f for f in inside if f < t]) for t in at]


@given(pairs, st.integers(0, 8))
def test_fill_gaps_joins_close_intervals(rows, gap):
    a = iv.union(make(rows))
    joined = iv.fill_gaps(a, gap)
    assert frames(joined) >= frames(a)
    assert (joined.start[1:] - joined.stop[:-1] >= gap).all()
    added = frames(joined) - frames(a)
    narrow = [set(range(x, y)) for x, y in zip(a.stop[:-1], a.start[1:], strict=True) if y - x < gap]
    assert added == set().union(*narrow)


@given(st.lists(st.integers(0, 3), max_size=60))
def test_runs_decode_to_what_they_encode(values):
    runs = iv.encode_runs(np.array(values, dtype=np.int64))
    assert np.repeat(runs.values, runs.stop - runs.start).tolist() == values
    assert (runs.values[1:] != runs.values[:-1]).all()


@given(st.lists(st.booleans(), max_size=60))
def test_masks_round_trip(mask):
    a = iv.from_mask(mask)
    assert iv.to_mask(a, len(mask)).tolist() == mask
    assert is_disjoint(a)


@given(pairs, st.integers(0, N), st.integers(0, N))
def test_clip(rows, low, high):
    a = iv.union(make(rows))
    assert frames(iv.clip(a, low, high)) == frames(a) & set(range(low, high))


def test_large_sets_of_pairs_need_no_square_of_memory():
    start = np.arange(0, 2_000_000, 10)
    a = iv.intervals(start, start + 6)
    i, j = iv.overlapping_pairs(a, iv.shift(a, 5))
    assert len(i) == 2 * len(start) - 1
    assert set((i - j).tolist()) == {0, 1}


def test_full_of_zero_frames_is_empty():
    assert len(iv.full(0).start) == 0
    assert frames(iv.full(3)) == {0, 1, 2}


@pytest.mark.parametrize("function", [iv.union, lambda a: iv.fill_gaps(a, 3), lambda a: iv.clip(a, 0, 5)])
def test_empty_in_empty_out(function):
    assert len(function(iv.empty()).start) == 0
