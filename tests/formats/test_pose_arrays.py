from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core.errors import FormatError
from ethobench.formats import pose_arrays


def chosen(
    times: list[float] | np.ndarray, stated: float | None = None, requested: float | None = None
) -> tuple[list[int], float | None, int]:
    samples, rate, notes = pose_arrays.regular_clock(Path(__file__), np.asarray(times, dtype=float), stated, requested, "here")
    return samples.tolist(), rate, len(notes)


@given(rate=st.sampled_from([5.0, 25.0, 29.97, 30.0, 100.0]), n=st.integers(2, 300), begin=st.floats(0, 1000), seed=st.integers(0, 99))
def test_even_timestamps_are_not_resampled(rate: float, n: int, begin: float, seed: int) -> None:
    samples, rate_read, notes = chosen(begin + 0.5 + np.arange(n) / rate)
    assert (samples, notes) == (list(range(n)), 0)
    assert rate_read == pytest.approx(rate, rel=1e-6)
    jitter = np.random.default_rng(seed).uniform(-0.2, 0.2, n) / rate
    jitter[[0, -1]] = 0
    samples, rate_read, notes = chosen(begin + 0.5 + np.arange(n) / rate + jitter)
    assert (samples, notes) == (list(range(n)), 0), "a little noise loses no frame"


def test_gaps_are_missing_frames() -> None:
    assert chosen([0, 0.1, 0.2, 0.5, 0.6]) == ([0, 1, 2, -1, -1, 3, 4], 10, 1)


def test_a_stated_rate_is_used() -> None:
    assert chosen([0, 0.1, 0.2], stated=10) == ([0, 1, 2], 10, 0)
    assert chosen([3.0, 4.0, 5.0], stated=1) == ([0, 1, 2], 1, 0)


def test_integers_are_frame_numbers() -> None:
    assert chosen([2, 3, 5, 6]) == ([-1, -1, 0, 1, -1, 2, 3], None, 1)
    assert chosen([0, 1, 2], requested=30) == ([0, 1, 2], 30, 1)


def test_a_requested_rate_uses_the_nearest_sample() -> None:
    assert chosen([0, 0.1, 0.2, 0.3], requested=20) == ([0, 0, 1, 1, 2, 2, 3], 20, 1)
    assert chosen([0, 0.1, 0.2, 0.3], requested=10) == ([0, 1, 2, 3], 10, 0)


def test_one_time_or_none() -> None:
    assert chosen([]) == ([], None, 0)
    assert chosen([7.5], requested=30) == ([0], 30, 0)


def test_rows_in_any_order_are_placed_by_frame() -> None:
    (spread,), notes = pose_arrays.on_frames(Path("x"), np.array([3, 0, 1]), np.array([[30.0], [0.0], [10.0]]), first_row=2)
    assert spread[[0, 1, 3], 0].tolist() == [0, 10, 30]
    assert np.isnan(spread[2, 0])
    assert len(notes) == 1


def test_unsorted_rows_without_gaps_need_no_note() -> None:
    (spread,), notes = pose_arrays.on_frames(Path("x"), np.array([1, 0]), np.array([[1.0], [0.0]]), first_row=2)
    assert (spread[:, 0].tolist(), notes) == ([0, 1], [])


def test_a_table_without_coordinates_is_refused() -> None:
    with pytest.raises(FormatError, match="no columns of coordinates"):
        pose_arrays.poses_of_columns(Path("x"), [("a", "nose", "w")], np.zeros((1, 1)), None)
