"""Fleiss' kappa, Krippendorff's alpha and the intraclass correlation against the examples of their authors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f

from ethobench.metrics.agreement_coefficients import fleiss, icc, icc_interval, krippendorff


def test_fleiss_of_the_classic_table():
    """Fleiss' example of 14 raters, 10 subjects and 5 categories: 0.210."""
    counts = np.array(
        [
            [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
            [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
        ],
        dtype=float,
    )  # fmt: skip
    assert fleiss(np.ones(10), counts) == pytest.approx(0.20993, abs=1e-5)
    assert fleiss(np.full(10, 7.0), counts) == pytest.approx(0.20993, abs=1e-5)


def test_krippendorff_of_the_classic_table():
    """Krippendorff's nominal example of 4 observers and 12 units with gaps: 0.743."""
    rows = [
        "1  2  3  3  2  1  4  1  2  .  .  .",
        "1  2  3  3  2  2  4  1  2  5  .  3",
        ".  3  3  3  2  3  4  2  2  5  1  .",
        "1  2  3  3  2  4  4  1  2  5  1  .",
    ]
    table = [row.split() for row in rows]
    counts = np.zeros((12, 5))
    for row in table:
        for unit, value in enumerate(row):
            if value != ".":
                counts[unit, int(value) - 1] += 1
    assert krippendorff(np.ones(12), counts) == pytest.approx(0.743, abs=5e-4)


def test_icc_of_the_classic_table():
    """Shrout and Fleiss' example: ICC(2,1) = 0.29."""
    table = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float)
    assert icc(table) == pytest.approx(0.2898, abs=1e-4)
    assert np.isnan(icc(table[:1]))


def test_the_interval_of_the_icc_does_not_depend_on_the_unit():
    seconds = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float)
    for scale in (60, 1 / 3600):
        assert icc_interval(scale * seconds) == pytest.approx(icc_interval(seconds))
    assert icc_interval(seconds + 100) == pytest.approx(icc_interval(seconds))


@given(st.integers(5, 12), st.integers(2, 5), st.integers(0, 99))
def test_the_interval_of_the_icc_is_that_of_shrout_and_fleiss(n, k, seed):
    """Shrout and Fleiss (1979), from the mean squares of an analysis of variance."""
    generator = np.random.default_rng(seed)
    table = generator.normal(0, 2, (n, 1)) + generator.normal(0, 1, k) + generator.normal(0, 1, (n, k))
    between_rows = k * table.mean(axis=1).var(ddof=1)
    between_columns = n * table.mean(axis=0).var(ddof=1)
    error = ((table.var() * n * k) - between_rows * (n - 1) - between_columns * (k - 1)) / ((n - 1) * (k - 1))
    value = (between_rows - error) / (between_rows + (k - 1) * error + k * (between_columns - error) / n)
    assert icc(table) == pytest.approx(value)
    columns_share = k * value * between_columns / error
    rest = n * (1 + (k - 1) * value) - k * value
    freedom = (k - 1) * (n - 1) * (columns_share + rest) ** 2 / ((n - 1) * columns_share**2 + rest**2)
    f_low, f_high = f.ppf(0.975, n - 1, freedom), f.ppf(0.975, freedom, n - 1)
    others = k * between_columns + (k * n - k - n) * error
    low = n * (between_rows - f_low * error) / (f_low * others + n * between_rows)
    high = n * (f_high * between_rows - error) / (others + n * f_high * between_rows)
    assert icc_interval(table) == pytest.approx((low, high))


def test_four_recordings_have_no_interval():
    table = np.array([[9, 2, 5], [6, 1, 3], [8, 4, 6], [7, 1, 2], [10, 5, 6]], dtype=float)
    assert icc_interval(table) is not None
    assert icc_interval(table[:4]) is None
    assert icc_interval(np.full((6, 3), 2.0)) is None
    assert icc_interval(np.arange(6.0)[:, None] * np.ones(3)) is None


def fractions(lengths, counts):
    """Return each frame's numbers of annotators by category."""
    return [row for length, row in zip(lengths.astype(int), counts.astype(int).tolist(), strict=True) for _ in range(length)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=8))
def test_coefficients_equal_their_definitions(rows):
    """Fleiss over frames that all annotators observed, Krippendorff over frames that two or more observed, from single frames."""
    lengths = np.array([row[0] for row in rows], dtype=float)
    counts = np.array([row[1:] for row in rows], dtype=float).reshape(-1, 3)
    frames = fractions(lengths, counts)
    most = int(counts.sum(axis=1).max(initial=0))
    complete = [row for row in frames if sum(row) == most and most > 1]
    expected = np.nan
    if complete:
        agreed = np.mean([sum(k * (k - 1) for k in row) / (most * (most - 1)) for row in complete])
        chance = sum((sum(row[c] for row in complete) / (most * len(complete))) ** 2 for c in range(3))
        expected = (agreed - chance) / (1 - chance) if chance < 1 else np.nan
    assert fleiss(lengths, counts) == pytest.approx(expected, nan_ok=True)
    pairable = [row for row in frames if sum(row) > 1]
    total = sum(map(sum, pairable))
    expected = np.nan
    if total:
        observed = sum(row[c] * (sum(row) - row[c]) / (sum(row) - 1) for row in pairable for c in range(3)) / total
        sums = [sum(row[c] for row in pairable) for c in range(3)]
        disagreement = sum(a * (total - a) for a in sums) / (total * (total - 1))
        expected = 1 - observed / disagreement if disagreement else np.nan
    assert krippendorff(lengths, counts) == pytest.approx(expected, nan_ok=True)
