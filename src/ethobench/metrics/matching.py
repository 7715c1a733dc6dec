"""Matching two sorted sets of bouts one to one.

Bouts of one track do not overlap each other, so the graph of overlapping pairs is a staircase: seen in order of time,
each pair shares a bout with the one before it or begins a new flight. Bouts that meet only each other are matched at once;
what is left is walked flight by flight, in linear time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core.intervals import BoolArray, IntArray, Intervals


def tiou(a: Intervals, b: Intervals, i: IntArray, j: IntArray) -> NDArray[np.float64]:
    """Temporal intersection over union of the pairs ``a[i], b[j]``."""
    inside = np.minimum(a.stop[i], b.stop[j]) - np.maximum(a.start[i], b.start[j])
    inside = np.maximum(inside, 0)
    together = (a.stop[i] - a.start[i]) + (b.stop[j] - b.start[j]) - inside
    return np.asarray(inside / np.maximum(together, 1))


def match_first(first: IntArray, last: IntArray) -> IntArray:
    """Give each item, in order, the first free partner of its range ``[first, last]``; -1 where none is free.

    Both bounds must not fall. No other rule matches more.
    """
    chosen = np.full(len(first), -1, dtype=np.int64)
    taken = -1
    for item, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        partner = taken + 1 if taken >= low else low
        if partner <= high:
            chosen[item] = taken = partner
    return chosen


def matched_first(i: IntArray, j: IntArray) -> IntArray:
    """Return the members of `i` that the first-come rule matches: as many as any rule could.

    Parameters
    ----------
    i, j : arrays of int
        Overlapping pairs of two sets without overlaps of their own, sorted by `i`, then `j`.
    """
    if len(i) == 0:
        return i
    alone = lonely(i, j)
    rest_i, rest_j = i[~alone], j[~alone]
    if len(rest_i) == 0:
        return i
    begins = np.concatenate(([True], rest_i[1:] != rest_i[:-1]))
    ends = np.concatenate((begins[1:], [True]))
    chosen = match_first(rest_j[begins], rest_j[ends])
    return np.concatenate((i[alone], rest_i[begins][chosen >= 0]))


def count_matches(i: IntArray, j: IntArray) -> int:
    """Count the pairs that the first-come rule matches."""
    return len(matched_first(i, j))


def match_best(i: IntArray, j: IntArray, weight: NDArray[np.float64]) -> BoolArray:
    """Tell which pairs to match so that as many bouts as possible are matched, and among those the weight is greatest.

    Parameters
    ----------
    i, j : arrays of int
        Overlapping pairs of two sets without overlaps of their own, sorted by `i`, then `j`.
    weight : array of float
        Of each pair, between 0 and 1.
    """
    matched = lonely(i, j)
    rest = np.flatnonzero(~matched)
    if len(rest):
        matched[rest[_walk(i[rest].tolist(), j[rest].tolist(), weight[rest].tolist())]] = True
    return matched


def lonely(i: IntArray, j: IntArray) -> BoolArray:
    """Tell which pairs are of bouts that meet only each other."""
    if len(i) == 0:
        return np.zeros(0, dtype=bool)
    same_i, same_j = i[1:] == i[:-1], j[1:] == j[:-1]
    shared = same_i | same_j
    return ~(np.concatenate(([False], shared)) | np.concatenate((shared, [False])))


def _walk(i: list[int], j: list[int], weight: list[float]) -> list[int]:
    """Choose pairs along the staircase: the most of them, then the heaviest; returns their places.

    A pair excludes every later pair of the same row or column. Because rows and columns are contiguous runs, it is
    enough to know the best choice that ends before the current row's and column's runs began.
    """
    best: list[tuple[int, float]] = [(0, 0.0)]
    came: list[tuple[int, bool]] = [(-1, False)]
    row_began = column_began = 0
    for k in range(len(i)):
        if k and i[k] != i[k - 1]:
            row_began = k
        if k and j[k] != j[k - 1]:
            column_began = k
        before = min(row_began, column_began)
        count, total = best[before]
        taken = (count + 1, total + weight[k])
        if taken > best[k]:
            best.append(taken)
            came.append((before, True))
        else:
            best.append(best[k])
            came.append((k, False))
    chosen, place = [], len(i)
    while place > 0:
        previous, taken_here = came[place]
        if taken_here:
            chosen.append(place - 1)
        place = previous
    return chosen[::-1]
