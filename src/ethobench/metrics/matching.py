"""Greedy and optimal one-to-one matching of two sets of bouts.

The bouts of one track are sorted and do not overlap each other. In order of time, each overlapping pair therefore either shares a bout with
the pair before it or starts a new chain. Isolated pairs, whose bouts overlap nothing else, are matched at once; the chains are
solved by dynamic programming in linear time. Greedy matching already matches as many bouts as possible; `match_best` also maximizes
the overlap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core.intervals import BoolArray, IntArray, Intervals


def temporal_iou(a: Intervals, b: Intervals, i: IntArray, j: IntArray) -> NDArray[np.float64]:
    """Return the temporal intersection over union of the pairs ``a[i], b[j]``."""
    intersection = np.minimum(a.stop[i], b.stop[j]) - np.maximum(a.start[i], b.start[j])
    intersection = np.maximum(intersection, 0)
    union = (a.stop[i] - a.start[i]) + (b.stop[j] - b.start[j]) - intersection
    return np.asarray(intersection / np.maximum(union, 1))


def greedy_partners(first: IntArray, last: IntArray) -> IntArray:
    """Assign to each item, in order, the first free partner in its range ``[first, last]``; -1 if none is free.

    Both bounds must be non-decreasing. Then no other rule matches more items.
    """
    partners = np.full(len(first), -1, dtype=np.int64)
    previous = -1
    for item, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        partner = previous + 1 if previous >= low else low
        if partner <= high:
            partners[item] = previous = partner
    return partners


def greedy_matched(i: IntArray, j: IntArray) -> IntArray:
    """Return the members of `i` that greedy matching matches: as many as any rule could.

    Parameters
    ----------
    i, j : arrays of int
        Indices of overlapping pairs of two sets of disjoint bouts, sorted by `i`, then `j`.
    """
    if len(i) == 0:
        return i
    isolated = isolated_pairs(i, j)
    chain_i, chain_j = i[~isolated], j[~isolated]
    if len(chain_i) == 0:
        return i
    starts = np.concatenate(([True], chain_i[1:] != chain_i[:-1]))
    ends = np.concatenate((starts[1:], [True]))
    partners = greedy_partners(chain_j[starts], chain_j[ends])
    return np.concatenate((i[isolated], chain_i[starts][partners >= 0]))


def count_matches(i: IntArray, j: IntArray) -> int:
    """Count the pairs that greedy matching matches."""
    return len(greedy_matched(i, j))


def match_best(i: IntArray, j: IntArray, weight: NDArray[np.float64]) -> BoolArray:
    """Return which pairs to match so that as many bouts as possible are matched and, among those, the total weight is greatest.

    Parameters
    ----------
    i, j : arrays of int
        Indices of overlapping pairs of two sets of disjoint bouts, sorted by `i`, then `j`.
    weight : array of float
        Weight of each pair, between 0 and 1.
    """
    matched = isolated_pairs(i, j)
    rest = np.flatnonzero(~matched)
    if len(rest):
        matched[rest[_best_in_chains(i[rest].tolist(), j[rest].tolist(), weight[rest].tolist())]] = True
    return matched


def isolated_pairs(i: IntArray, j: IntArray) -> BoolArray:
    """Return which pairs consist of bouts that occur in no other pair."""
    if len(i) == 0:
        return np.zeros(0, dtype=bool)
    shared = (i[1:] == i[:-1]) | (j[1:] == j[:-1])
    return ~(np.concatenate(([False], shared)) | np.concatenate((shared, [False])))


def _best_in_chains(i: list[int], j: list[int], weight: list[float]) -> list[int]:
    """Return the indices of the pairs to match: the most pairs, then the greatest weight.

    A pair excludes every later pair of the same row or column. Rows and columns are contiguous runs, so the best choice that
    includes a pair extends the best choice that ends before the runs of its row and its column started.
    """
    best: list[tuple[int, float]] = [(0, 0.0)]
    came_from: list[tuple[int, bool]] = [(-1, False)]
    row_start = column_start = 0
    for k in range(len(i)):
        if k and i[k] != i[k - 1]:
            row_start = k
        if k and j[k] != j[k - 1]:
            column_start = k
        before = min(row_start, column_start)
        count, total = best[before]
        with_pair = (count + 1, total + weight[k])
        if with_pair > best[k]:
            best.append(with_pair)
            came_from.append((before, True))
        else:
            best.append(best[k])
            came_from.append((k, False))
    chosen, end = [], len(i)
    while end > 0:
        previous, includes_pair = came_from[end]
        if includes_pair:
            chosen.append(end - 1)
        end = previous
    return chosen[::-1]
