"""Tampering with windows, one property after another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from ethobench.training.pretexts import (
    PRETEXTS,
    change_scale,
    draw_cuts,
    movement,
    permute_segments,
    reverse_time,
    tamper,
    turn,
    warp_time,
)


@pytest.fixture
def windows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 150, 3)).astype(np.float32)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_time_is_reversed(windows):
    assert np.array_equal(reverse_time(windows, generator()), windows[:, ::-1])


@given(st.integers(60, 900), st.integers(0, 2**32))
def test_cuts_leave_every_part_longer_than_ten_frames(frames, seed):
    cuts = draw_cuts(20, frames, generator(seed))
    assert cuts.shape == (20, 3)
    for own in cuts.tolist():
        assert all(b - a > min(10, frames // 8) for a, b in zip([0, *own], [*own, frames], strict=True))


def test_parts_are_permuted_whole(windows):
    marked = np.tile(np.arange(150, dtype=np.float32)[None, :, None], (40, 1, 3))
    changed = permute_segments(marked, generator(3))
    orders = set()
    for line in changed[:, :, 0].astype(int).tolist():
        assert sorted(line) == list(range(150))
        begins = [0, *(i for i in range(1, 150) if line[i] != line[i - 1] + 1)]
        assert len(begins) <= 4
        orders.add(tuple(np.argsort([line[i] for i in begins])))
    assert len(orders) > 10
    assert np.array_equal(changed[..., 0], changed[..., 2])


def test_time_is_warped_along_the_published_curve(windows):
    """One window and axis at a time, with NumPy's own interpolation."""
    changed = warp_time(windows, generator(5))
    knots = generator(5).normal(1, 0.2, (6, 40, 3))
    for w in (0, 7):
        for axis in range(3):
            speed = CubicSpline(np.linspace(0, 149, 6), knots[:, w, axis])(np.arange(150))
            place = np.cumsum(speed)
            place *= 149 / place[-1]
            expected = np.interp(place, np.arange(150), windows[w, :, axis])
            assert changed[w, :, axis] == pytest.approx(expected, abs=1e-5)
    assert changed[:, -1] == pytest.approx(windows[:, -1], abs=1e-5)


def test_scales_differ_enough_from_one(windows):
    factors = change_scale(windows, generator()) / windows
    assert factors.std(axis=1).max() < 1e-4
    each = factors.mean(axis=1)
    assert np.all((np.abs(each - 1) >= 0.1499) & (np.abs(each - 1) <= 0.5001))
    assert 0.3 < (each > 1).mean() < 0.7


def test_turning_keeps_lengths_and_angles(windows):
    turned = turn(windows, generator())
    assert turned.dtype == np.float32
    assert np.linalg.norm(turned, axis=2) == pytest.approx(np.linalg.norm(windows, axis=2), abs=1e-4)
    products, before = (np.einsum("nti,nsi->nts", x[:, :10], x[:, :10]) for x in (turned, windows))
    assert products == pytest.approx(before, abs=1e-3)
    assert not np.allclose(turned, windows, atol=0.1)


def test_every_task_is_played_by_the_toss_of_a_coin():
    still = np.zeros((2000, 60, 3), dtype=np.float32)
    _, labels = tamper(still, ("arrow", "permutation", "warp"), generator())
    assert labels.mean(axis=0) == pytest.approx([0.5] * 3, abs=0.05)
    assert np.corrcoef(labels.T)[np.triu_indices(3, 1)] == pytest.approx([0] * 3, abs=0.08)


@pytest.mark.parametrize("task", PRETEXTS)
def test_only_windows_with_the_label_are_tampered_with(windows, task, monkeypatch):
    monkeypatch.setattr("ethobench.training.pretexts.turn", lambda changed, _: changed)
    changed, labels = tamper(windows, (task,), generator(1))
    same = (changed == windows).all(axis=(1, 2))
    assert set(labels[~same, 0]) == {1}
    assert same.sum() - (labels == 0).sum() <= (3 if task == "permutation" else 0)  # parts may fall into their old order


def test_labels_stand_in_the_order_of_the_tasks_asked_for(windows, monkeypatch):
    monkeypatch.setattr("ethobench.training.pretexts.turn", lambda changed, _: changed)
    changed, labels = tamper(windows, ("scale", "arrow"), generator(2))
    only_reversed = (labels == [0, 1]).all(axis=1)
    assert only_reversed.any()
    assert np.array_equal(changed[only_reversed], windows[only_reversed][:, ::-1])


def test_the_same_seed_tampers_in_the_same_way(windows):
    first, again = (tamper(windows, tuple(PRETEXTS), generator(9)) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])


def test_movement_is_the_mean_deviation_within_a_second(windows):
    found = movement(windows, 30.0)
    literal = [np.mean([w[s : s + 30, a].std() for s in range(0, 150, 30) for a in range(3)]) for w in windows.astype(float)]
    assert found == pytest.approx(literal, rel=1e-5)
    assert movement(np.ones((1, 150, 3), dtype=np.float32), 30.0) == pytest.approx([0.0])
