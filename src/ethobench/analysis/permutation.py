"""Permutation tests of individuals, and correction for several tests.

All tests permute what would be exchangeable if the groups did not differ: the groups of independent individuals, the order of conditions
within individuals that recur, or the residuals of a regression on covariates. If there are at most `MAX_EXACT` arrangements, all of them
are compared and the p value is exact; otherwise `RESAMPLES` random ones, and the p value is (b + 1) / (m + 1).

References
----------
Phipson and Smyth (2010), Permutation p-values should never be zero, Statistical Applications in Genetics and Molecular Biology 9, 39.
Chung and Romano (2013), Exact and asymptotically robust permutation tests, Annals of Statistics 41, 484-507: the studentized difference.
Freedman and Lane (1983), Journal of Business and Economic Statistics 1, 292-298: covariates. Winkler et al. (2014), NeuroImage 92, 381-397.
Holm (1979), Scandinavian Journal of Statistics 6, 65-70. Benjamini and Hochberg (1995), Journal of the Royal Statistical Society B 57,
289-300.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice, permutations, product
from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core.errors import ParameterError

Array = NDArray[np.float64]
MAX_EXACT = 65_536
RESAMPLES = 9_999
BLOCK = 2_000_000
"""Numbers in memory at a time."""
TIE = 1e-9
"""Relative difference below which two statistics are equal."""
CORRECTIONS = ("holm", "fdr", "none")


@dataclass(frozen=True)
class PermutationTest:
    """The result of a permutation test.

    Attributes
    ----------
    p : float
        Two-sided p value.
    method : str
        What was permuted.
    exact : bool
        Whether all arrangements were compared.
    n_permutations : int
        Number of arrangements, including the observed one.
    smallest_p : float
        The smallest p value that these data could have had.
    """

    p: float
    method: str
    exact: bool
    n_permutations: int
    smallest_p: float


def compare_independent(values: ArrayLike, codes: ArrayLike, seed: int = 0) -> PermutationTest:
    """Test whether groups of independent individuals differ.

    Two groups are compared by Welch's t statistic, so that the test is exact if the groups have the same distribution, and approximate if
    they have the same mean and different variances. Several groups are compared by the sum of squares between groups.

    Parameters
    ----------
    values : array (n_individuals,)
    codes : array of int (n_individuals,)
        Groups from 0, without gaps.
    seed : int
        Random seed, if not all arrangements are compared.

    Examples
    --------
    >>> test = compare_independent([1, 2, 3, 4, 11, 12, 13, 14], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> test.exact, test.n_permutations, round(test.p, 4)
    (True, 70, 0.0286)
    """
    measured: Array = np.asarray(values, dtype=float)
    codes = np.asarray(codes, dtype=np.int64)
    sizes = np.bincount(codes)
    measured = measured - measured.mean()
    order = np.argsort(codes, kind="stable")

    def statistic(arranged: Array) -> Array:
        return _welch_squared(arranged, int(sizes[0])) if len(sizes) == 2 else _between_groups(arranged, sizes)

    count = 1
    for k in range(len(sizes) - 1):
        count *= comb(int(sizes[k:].sum()), int(sizes[k]))
    exact = count <= MAX_EXACT
    arrangements = iter([_divisions(tuple(sizes.tolist()))]) if exact else _shuffles(len(measured), seed)
    symmetric = 2 if len(sizes) == 2 and sizes[0] == sizes[1] else 1
    return _run(measured[order], arrangements, statistic, "groups of individuals", count if exact else None, symmetric)


def compare_repeated(values: ArrayLike, seed: int = 0) -> PermutationTest:
    """Test whether conditions of the same individuals differ.

    Two conditions: the signs of the differences are flipped. Several: conditions are permuted within individuals.

    Parameters
    ----------
    values : array (n_individuals, n_conditions)
    seed : int

    Examples
    --------
    >>> test = compare_repeated([[1, 2], [2, 4], [3, 6], [4, 8], [5, 10], [6, 12]])
    >>> test.exact, test.n_permutations, test.p
    (True, 64, 0.03125)
    """
    table: Array = np.asarray(values, dtype=float)
    n, size = table.shape
    table = table - table.mean(axis=1, keepdims=True)
    choices = np.array(list(permutations(range(size)))) if size <= 6 else None
    count = factorial(size) ** n
    exact = count <= MAX_EXACT
    generator = np.random.default_rng(seed)

    def arrangements() -> Iterator[NDArray[np.int64]]:
        """Yield blocks of positions in the flat array of values, shape (n_arrangements, n * size)."""
        offsets = size * np.arange(n)[:, None]
        if exact and choices is not None:
            for block in _blocks(product(range(len(choices)), repeat=n), n * size):
                yield (choices[block] + offsets).reshape(len(block), -1)
            return
        for length in _lengths(n * size):
            drawn = np.argsort(generator.random((length, n, size)), axis=2)
            yield (drawn + offsets).reshape(length, -1)

    def statistic(arranged: Array) -> Array:
        return np.asarray((arranged.reshape(len(arranged), n, size).mean(axis=1) ** 2).sum(axis=1))

    method = "signs of differences within individuals" if size == 2 else "conditions within individuals"
    return _run(table.ravel(), arrangements(), statistic, method, count if exact else None, factorial(size))


def compare_adjusted(values: ArrayLike, codes: ArrayLike, covariates: ArrayLike, seed: int = 0) -> PermutationTest:
    """Test whether groups differ beyond what covariates explain (Freedman and Lane).

    The residuals of the regression on the covariates are permuted; the statistic is the F ratio of the groups.

    Parameters
    ----------
    values : array (n_individuals,)
    codes : array of int (n_individuals,)
    covariates : array (n_individuals, n_covariates)
    seed : int

    Examples
    --------
    >>> age = [[1.0], [2.0], [3.0], [4.0], [1.5], [2.5], [3.5], [4.5]]
    >>> values = [1.0, 2.1, 2.9, 4.0, 3.6, 4.4, 5.5, 6.6]
    >>> compare_adjusted(values, [0, 0, 0, 0, 1, 1, 1, 1], age).p < 0.05
    True
    """
    measured: Array = np.asarray(values, dtype=float)
    codes = np.asarray(codes, dtype=np.int64)
    reduced = np.column_stack([np.ones(len(measured)), np.asarray(covariates, dtype=float).reshape(len(measured), -1)])
    full = np.column_stack([reduced, np.eye(int(codes.max()) + 1)[codes][:, 1:]])
    makers = [np.eye(len(measured)) - design @ np.linalg.pinv(design) for design in (reduced, full)]
    residuals = makers[0] @ measured

    def statistic(arranged: Array) -> Array:
        without, with_groups = (((arranged @ maker) ** 2).sum(axis=1) for maker in makers)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (without - with_groups) / with_groups
        return np.where(without <= TIE * (residuals**2).sum(), 0.0, ratio)

    count = factorial(len(measured)) if len(measured) < 10 else MAX_EXACT + 1
    exact = count <= MAX_EXACT
    arrangements = _blocks(permutations(range(len(measured))), len(measured)) if exact else _shuffles(len(measured), seed)
    return _run(residuals, arrangements, statistic, "residuals of the covariates", count if exact else None, 1)


def correct_p(values: Sequence[float], method: str = "holm") -> list[float]:
    """Correct p values for the number of tests; NaN stay as they are and do not count.

    Parameters
    ----------
    values : sequence of float
    method : {"holm", "fdr", "none"}
        Family-wise error rate (Holm), false discovery rate (Benjamini and Hochberg), or no correction.

    Examples
    --------
    >>> [round(p, 3) for p in correct_p([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    >>> [round(p, 3) for p in correct_p([0.01, 0.04, 0.03], "fdr")]
    [0.03, 0.04, 0.04]
    """
    if method not in CORRECTIONS:
        raise ParameterError(f"`correct` must be one of {', '.join(CORRECTIONS)}, got {method!r}")
    p = np.asarray(values, dtype=float)
    tested = np.flatnonzero(~np.isnan(p))
    if method == "none" or not len(tested):
        return [float(v) for v in p]
    order = tested[np.argsort(p[tested], kind="stable")]
    n = len(order)
    corrected = p.copy()
    if method == "holm":
        corrected[order] = np.minimum(np.maximum.accumulate(p[order] * (n - np.arange(n))), 1.0)
    else:
        corrected[order] = np.minimum(np.minimum.accumulate((p[order] * n / np.arange(1, n + 1))[::-1])[::-1], 1.0)
    return [float(v) for v in corrected]


def _run(
    values: Array,
    arrangements: Iterator[NDArray[np.int64]],
    statistic: Callable[[Array], Array],
    method: str,
    count: int | None,
    symmetric: int,
) -> PermutationTest:
    """Compare the observed statistic with those of arrangements; `symmetric` of them have the same statistic by symmetry."""
    observed = float(statistic(values[None])[0])
    threshold = observed - TIE * abs(observed) if np.isfinite(observed) else observed
    at_least = total = 0
    for block in arrangements:
        statistics = statistic(values[block])
        at_least += int((statistics >= threshold).sum())
        total += len(statistics)
    if count is not None:
        return PermutationTest(at_least / total, method, True, count, min(symmetric / count, 1.0))
    return PermutationTest((at_least + 1) / (total + 1), method, False, total + 1, 1 / (total + 1))


def _welch_squared(arranged: Array, size: int) -> Array:
    """Return the square of Welch's t for the first `size` columns against the others."""
    a, b = arranged[:, :size], arranged[:, size:]
    difference = (a.mean(axis=1) - b.mean(axis=1)) ** 2
    spread = a.var(axis=1, ddof=1) / a.shape[1] + b.var(axis=1, ddof=1) / b.shape[1]
    scale = np.abs(arranged).max(initial=0.0) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(spread > TIE**2 * scale, difference / spread, np.where(difference > TIE**2 * scale, np.inf, 0.0))
    return np.asarray(ratio)


def _between_groups(arranged: Array, sizes: NDArray[np.int64]) -> Array:
    """Return the sum of squares between groups, which orders arrangements as the F ratio does."""
    sums = np.add.reduceat(arranged, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=1)
    return np.asarray((sums**2 / sizes).sum(axis=1))


@lru_cache(maxsize=8)
def _divisions(sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return all divisions of items into groups of the sizes, as arrangements (n_divisions, n_items)."""

    def divide(rest: tuple[int, ...], remaining: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(remaining) == 1:
            yield rest
            return
        for chosen in combinations(rest, remaining[0]):
            members = set(chosen)
            for tail in divide(tuple(item for item in rest if item not in members), remaining[1:]):
                yield chosen + tail

    return np.array(list(divide(tuple(range(sum(sizes))), sizes)), dtype=np.int64)


def _shuffles(n: int, seed: int) -> Iterator[NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    for length in _lengths(n):
        yield np.argsort(generator.random((length, n)), axis=1)


def _lengths(width: int) -> Iterator[int]:
    """Yield the lengths of blocks of random arrangements."""
    step = max(1, BLOCK // max(width, 1))
    for start in range(0, RESAMPLES, step):
        yield min(step, RESAMPLES - start)


def _blocks(rows: Iterator[tuple[int, ...]], width: int) -> Iterator[NDArray[np.int64]]:
    step = max(1, BLOCK // max(width, 1))
    while block := list(islice(rows, step)):
        yield np.array(block, dtype=np.int64)
