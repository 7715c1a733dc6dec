"""Pretext tasks: transformations of acceleration, masks of poses, and their losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

import ethobench as eb
from ethobench.training.pretexts import (
    ACCELERATION_TASKS,
    AccelerationBatches,
    PoseBatches,
    acceleration_loss,
    apply_tasks,
    change_scale,
    draw_cuts,
    draw_mask,
    movement,
    permute_segments,
    pose_loss,
    reverse_time,
    rotate,
    warp_time,
)
from ethobench.training.trajectory_inputs import fit_input_transform
from ethobench.training.windows import WindowSpan, sample_frames


@pytest.fixture
def windows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 150, 3)).astype(np.float32)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_time_is_reversed(windows):
    assert np.array_equal(reverse_time(windows, generator()), windows[:, ::-1])


@given(st.integers(60, 900), st.integers(0, 2**32))
def test_every_segment_is_longer_than_ten_frames(frames, seed):
    cuts = draw_cuts(20, frames, generator(seed))
    assert cuts.shape == (20, 3)
    for window_cuts in cuts.tolist():
        assert all(b - a > min(10, frames // 8) for a, b in zip([0, *window_cuts], [*window_cuts, frames], strict=True))


def test_segments_are_permuted(windows):
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
            time = np.cumsum(speed)
            time *= 149 / time[-1]
            expected = np.interp(time, np.arange(150), windows[w, :, axis])
            assert changed[w, :, axis] == pytest.approx(expected, abs=1e-5)
    assert changed[:, -1] == pytest.approx(windows[:, -1], abs=1e-5)


def test_scales_differ_enough_from_one(windows):
    factors = change_scale(windows, generator()) / windows
    assert factors.std(axis=1).max() < 1e-4
    each = factors.mean(axis=1)
    assert np.all((np.abs(each - 1) >= 0.1499) & (np.abs(each - 1) <= 0.5001))
    assert 0.3 < (each > 1).mean() < 0.7


def test_rotation_keeps_lengths_and_angles(windows):
    rotated = rotate(windows, generator())
    assert rotated.dtype == np.float32
    assert np.linalg.norm(rotated, axis=2) == pytest.approx(np.linalg.norm(windows, axis=2), abs=1e-4)
    products, before = (np.einsum("nti,nsi->nts", x[:, :10], x[:, :10]) for x in (rotated, windows))
    assert products == pytest.approx(before, abs=1e-3)
    assert not np.allclose(rotated, windows, atol=0.1)


def test_every_task_is_applied_with_probability_one_half():
    still = np.zeros((2000, 60, 3), dtype=np.float32)
    _, labels = apply_tasks(still, ("arrow", "permutation", "warp"), generator())
    assert labels.mean(axis=0) == pytest.approx([0.5] * 3, abs=0.05)
    assert np.corrcoef(labels.T)[np.triu_indices(3, 1)] == pytest.approx([0] * 3, abs=0.08)


@pytest.mark.parametrize("task", ACCELERATION_TASKS)
def test_only_windows_with_the_label_are_transformed(windows, task):
    changed, labels = apply_tasks(windows, (task,), generator(1))
    same = (changed == windows).all(axis=(1, 2))
    assert set(labels[~same, 0]) == {1}
    assert same.sum() - (labels == 0).sum() <= (3 if task == "permutation" else 0)  # segments may keep their order


def test_labels_are_in_the_order_of_the_tasks(windows):
    changed, labels = apply_tasks(windows, ("scale", "arrow"), generator(2))
    only_reversed = (labels == [0, 1]).all(axis=1)
    assert only_reversed.any()
    assert np.array_equal(changed[only_reversed], windows[only_reversed][:, ::-1])


def test_all_windows_are_rotated_if_asked(windows):
    changed, labels = apply_tasks(windows, ("arrow",), generator(3), rotated=True)
    plain, same_labels = apply_tasks(windows, ("arrow",), generator(3))
    assert np.array_equal(labels, same_labels)
    assert not np.isclose(changed, plain, atol=0.01).all(axis=(1, 2)).any()
    assert np.linalg.norm(changed, axis=2) == pytest.approx(np.linalg.norm(plain, axis=2), abs=1e-4)


def test_the_same_seed_gives_the_same_transformations(windows):
    first, again = (apply_tasks(windows, tuple(ACCELERATION_TASKS), generator(9), rotated=True) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])


def test_movement_is_the_mean_deviation_within_a_second(windows):
    amount = movement(windows, 30.0)
    literal = [np.mean([w[s : s + 30, a].std() for s in range(0, 150, 30) for a in range(3)]) for w in windows.astype(float)]
    assert amount == pytest.approx(literal, rel=1e-5)
    assert movement(np.ones((1, 150, 3), dtype=np.float32), 30.0) == pytest.approx([0.0])


def test_windows_with_movement_are_drawn_more_often():
    weights = np.array([1.0, 1.0, 8.0, 0.0])
    starts = 60 * np.arange(4)
    batches = AccelerationBatches(np.zeros((240, 3), np.float32), starts, 60, np.zeros(4, np.int64), weights, ("arrow",), 1, 1)
    random = generator()
    drawn = np.bincount([batches.draw(random)[0].anchors[0] for _ in range(2000)], minlength=4) / 2000
    assert drawn == pytest.approx(weights / 10, abs=0.04)


def test_batches_have_a_number_of_windows_of_a_number_of_individuals():
    groups = np.repeat(np.arange(5), 10)
    starts = 60 * np.arange(50)
    batches = AccelerationBatches(np.zeros((3000, 3), np.float32), starts, 60, groups, np.ones(50), ("arrow",), 2, 4)
    plans = batches.draw(generator())
    assert len(replace(batches, updates=7).draw(generator())) == 9  # complete passes over the individuals, at least so many
    assert [len(plan.anchors) for plan in plans] == [8, 8, 4]
    assert sorted(int(g) for plan in plans for g in np.unique(groups[plan.anchors])) == list(range(5))
    assert all(len(set(plan.anchors)) == len(plan.anchors) for plan in plans)


@pytest.mark.slow
def test_the_loss_of_acceleration_is_the_mean_over_tasks():
    import torch

    scores = torch.tensor([[[0.0, 1.0], [2.0, 0.0]], [[1.0, 1.0], [0.0, 3.0]]])
    losses = [np.log(1 + np.exp(-x)) for x in (1.0, 2.0, 0.0, 3.0)]
    assert acceleration_loss(scores, torch.tensor([[1, 0], [0, 1]])).item() == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_run_of_frames_and_single_keypoints_are_masked():
    masked = draw_mask((200, 40, 28), generator())
    pairs = masked.reshape(200, 40, 14, 2)
    assert np.array_equal(pairs[..., 0], pairs[..., 1])
    points = masked.all(axis=1)
    assert 0.12 < points.mean() < 0.18
    frames = masked.all(axis=2)
    runs = np.diff(frames, axis=1, prepend=False).sum(axis=1)
    assert runs.max() <= 2
    assert frames.sum(axis=1).min() >= 4
    assert frames.sum(axis=1).max() <= 14
    others = ~points[:, None, :] & ~frames[:, :, None]
    assert not masked[others].any()


@pytest.mark.slow
def test_the_loss_of_poses_counts_only_masked_values_and_defined_attributes():
    import torch

    outputs, targets = torch.zeros(1, 2 + 30), torch.full((1, 2 + 10), -1.0)
    targets[0, :2] = torch.tensor([3.0, torch.nan])
    targets[0, 2] = 2
    outputs[0, 2:5] = torch.tensor([0.0, 0.0, 1.0])
    loss = pose_loss(("masked", "attributes"), 2, np.array([4.5, 1.0], dtype=np.float32))
    assert loss(outputs, targets).item() == pytest.approx(9 / 4.5 + np.log(2 + np.e) - 1, rel=1e-5)


@pytest.mark.slow
def test_time_is_reversed_in_half_of_the_windows():
    recordings = eb.load_dataset("synthetic/pose", individuals=2, seconds=20).recordings
    transform = fit_input_transform(recordings, "coordinates", 30.0, causal=False)
    levels = [np.random.default_rng(i).integers(0, 3, (len(r.signals), 10)).astype(np.int16) for i, r in enumerate(recordings)]
    sampler = sample_frames([transform.open(r) for r in recordings], levels, WindowSpan(10, 10, 1), 64)
    plan = sampler.draw(generator())[0]
    inputs, targets = PoseBatches(sampler, ("arrow", "attributes")).gather(plan)
    windows, expected_levels = sampler.gather(plan)
    is_reversed = targets[:, 0] == 1
    assert 0.2 < is_reversed.mean() < 0.8
    assert np.array_equal(inputs[is_reversed], windows[is_reversed][:, ::-1])
    assert np.array_equal(inputs[~is_reversed], windows[~is_reversed])
    assert np.array_equal(targets[:, 1:], expected_levels)
