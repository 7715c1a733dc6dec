"""Augmentations: what they change, and what they must keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.hypothesis_limits import at_most

from ethobench.core.errors import EthobenchError
from ethobench.training.augmentation import (
    AUGMENTATIONS,
    MAX_SCALE,
    MAX_SHIFT,
    MAX_TILT,
    Layout,
    augment,
    check_augmentations,
    check_layout,
)

pytestmark = pytest.mark.slow

KEYPOINTS = ("nose", "left_ear", "right_ear", "tail_base")
NAMES = tuple(f"{who}/{point}/{axis}" for who in ("a", "b") for point in KEYPOINTS for axis in "xy")
MICE = Layout((*NAMES, "given"), ("a", "b"), KEYPOINTS, aspect=1024 / 570)
TAG = Layout(("AccX", "AccY", "AccZ", "Depth"), mean=(0.1, -0.2, 1.0, 30.0), scale=(0.5, 2.0, 1.5, 10.0))
BODY = torch.tensor([[0.05, 0.0], [0.03, 0.02], [0.03, -0.02], [-0.05, 0.0]])
seeds = st.integers(0, 2**32)


def source(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def mice(seed: int, n: int = 6, frames: int = 9) -> torch.Tensor:
    """Place two mice anywhere, looking anywhere, true to shape in an arena that is wider than high; the first frame is padding."""
    random = source(seed)
    position, direction = torch.rand((n, frames, 2, 1, 2), generator=random), torch.rand((n, frames, 2, 1), generator=random) * 7
    cos, sin = direction.cos(), direction.sin()
    body = torch.stack([cos * BODY[:, 0] - sin * BODY[:, 1], sin * BODY[:, 0] + cos * BODY[:, 1]], dim=-1)
    points = 0.2 + 0.6 * position + body / torch.tensor([MICE.aspect, 1.0])
    values = torch.cat([points.flatten(2), torch.rand((n, frames, 1), generator=random)], dim=2)
    values[:, 0] = 0
    return values


def points_of(values: torch.Tensor) -> torch.Tensor:
    """Return keypoints in units that are as long along x as along y."""
    return values[..., :16].reshape(*values.shape[:2], 2, 4, 2) * torch.tensor([MICE.aspect, 1.0])


def distances(values: torch.Tensor) -> torch.Tensor:
    """Return all distances between the keypoints of a window, over frames and animals."""
    flat = points_of(values)[:, 1:].flatten(1, 3)
    return (flat[:, :, None] - flat[:, None]).norm(dim=-1)


def leftness(values: torch.Tensor) -> torch.Tensor:
    """Return on which side of the body the left_ear ear lies."""
    nose, left_ear, _, tail = points_of(values)[:, 1:].unbind(dim=3)
    ahead, aside = nose - tail, left_ear - tail
    return (ahead[..., 0] * aside[..., 1] - ahead[..., 1] * aside[..., 0]).sign()


@at_most(20)
@given(seeds)
def test_rotation_and_translation_keep_all_distances(seed):
    values = mice(seed)
    for name in ("rotation", "translation"):
        moved = AUGMENTATIONS[name](values, MICE, source(seed))
        assert torch.allclose(distances(moved), distances(values), atol=1e-5)
        assert not torch.allclose(moved, values, atol=1e-3)
        assert torch.equal(leftness(moved), leftness(values))


def test_rotation_is_about_the_center_of_the_arena():
    values = torch.full((3, 2, 17), 0.5)
    assert torch.allclose(AUGMENTATIONS["rotation"](values, MICE, source(0)), values)


@at_most(20)
@given(seeds)
def test_reflection_keeps_distances_and_left_ears_left(seed):
    values = mice(seed, n=20)
    augmented = AUGMENTATIONS["reflection"](values, MICE, source(seed))
    flipped = (augmented != values).flatten(1).any(dim=1)
    assert 0 < flipped.sum() < 20
    assert torch.equal(leftness(augmented), leftness(values))
    swapped = values[..., :16].reshape(20, 9, 2, 4, 2)[:, :, :, [0, 2, 1, 3]].flatten(2)
    partners = torch.cat([swapped, values[..., 16:]], dim=2)
    assert torch.allclose(distances(augmented[flipped]), distances(partners[flipped]), atol=1e-5)
    assert torch.equal(augmented[~flipped], values[~flipped])


def test_reflection_moves_gaps_with_their_keypoint():
    values = mice(1)
    values[:, 4, 2:4] = 0  # the first animal's left ear is removed
    augmented = AUGMENTATIONS["reflection"](values, MICE, source(0))
    flipped = (augmented != values).flatten(1).any(dim=1)
    assert flipped.any()
    assert (augmented[flipped, 4, 4:6] == 0).all()
    assert (augmented[flipped, 4, 2:4] != 0).all()


@at_most(20)
@given(seeds)
def test_translation_shifts_all_points_of_a_window_alike(seed):
    values = mice(seed)
    shift = (AUGMENTATIONS["translation"](values, MICE, source(seed)) - values)[:, 1:, :16].reshape(6, -1, 2)
    assert torch.allclose(shift, shift[:, :1].expand_as(shift), atol=1e-5)
    assert shift.abs().max() <= MAX_SHIFT + 1e-5


@at_most(20)
@given(seeds)
def test_published_rotates_about_the_corner_and_shifts_padding_too(seed):
    values = torch.zeros((5, 3, 17))
    values[:, 1, 0:2], values[:, 1, 2:4] = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    moved = AUGMENTATIONS["published"](values, MICE, source(seed))
    shift = moved[:, 0, 0:2]
    assert torch.allclose(moved[:, 0, :16].reshape(5, 8, 2), shift[:, None].expand(5, 8, 2))
    assert (shift != 0).all()
    assert shift.abs().max() <= MAX_SHIFT
    across, down = moved[:, 1, 0:2] - shift, moved[:, 1, 2:4] - shift
    assert torch.allclose(across.norm(dim=1), torch.ones(5), atol=1e-5)
    assert torch.allclose(down, torch.stack([-across[:, 1], across[:, 0]], dim=1), atol=1e-5)  # turned in shares of the arena: sheared


@at_most(20)
@given(seeds)
def test_swap_permutes_animals(seed):
    values = mice(seed, n=20)
    augmented = AUGMENTATIONS["swap"](values, MICE, source(seed))
    other = torch.cat([values[..., 8:16], values[..., :8], values[..., 16:]], dim=2)
    same, swapped = ((augmented == each).flatten(1).all(dim=1) for each in (values, other))
    assert (same | swapped).all()
    assert 0 < swapped.sum() < 20


def test_dropout_removes_keypoints_in_a_run_of_frames():
    values = mice(3, n=200, frames=30)
    augmented = AUGMENTATIONS["dropout"](values, MICE, source(0))
    removed = (augmented != values)[..., :16].reshape(200, 30, 8, 2)
    assert torch.equal(removed[..., 0], removed[..., 1])
    assert (augmented[augmented != values] == 0).all()
    runs = removed[..., 0].int().diff(dim=1, prepend=torch.zeros(200, 1, 8)).clamp(min=0).sum(dim=1)
    assert runs.max() == 1
    assert 0.05 < runs.float().mean() < 0.15
    assert torch.equal(augmented[..., 16], values[..., 16])


@at_most(20)
@given(seeds)
def test_tags_are_rotated_a_little_in_their_original_units(seed):
    values = torch.randn((6, 5, 4), generator=source(seed))
    turned = AUGMENTATIONS["rotate_axes"](values, TAG, source(seed))
    before, after = ((v[..., :3] * torch.tensor(TAG.scale[:3]) + torch.tensor(TAG.mean[:3])) for v in (values, turned))
    assert torch.allclose(after.norm(dim=2), before.norm(dim=2), atol=1e-4)
    angle = torch.nn.functional.cosine_similarity(before, after, dim=2).clamp(-1, 1).acos()
    assert 0 < angle.max() <= MAX_TILT + 1e-3
    assert torch.equal(turned[..., 3], values[..., 3])


@at_most(20)
@given(seeds)
def test_scale_applies_to_all_vectors_alike(seed):
    values = torch.randn((6, 5, 4), generator=source(seed))
    grown = AUGMENTATIONS["scale"](values, TAG, source(seed))
    before, after = ((v[..., :3] * torch.tensor(TAG.scale[:3]) + torch.tensor(TAG.mean[:3])) for v in (values, grown))
    ratio = after.norm(dim=2) / before.norm(dim=2)
    assert torch.allclose(ratio, ratio[:, :1].expand_as(ratio), atol=1e-3)
    assert (ratio.log().abs() <= math.log(MAX_SCALE) + 1e-3).all()
    bodies = [distances(each).sum((1, 2)) for each in (mice(seed), AUGMENTATIONS["scale"](mice(seed), MICE, source(seed)))]
    assert torch.allclose(bodies[1] / bodies[0], ratio[:, 0], atol=1e-3)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_the_same_generator_gives_the_same_and_inputs_are_not_changed(name):
    layout, values = (TAG, torch.randn((4, 6, 4), generator=source(1))) if name == "rotate_axes" else (MICE, mice(1))
    before = values.clone()
    first, again, other = (augment(values, [name], layout, source(seed)) for seed in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(values, before)
    assert first.dtype == values.dtype
    if name != "published":
        empty = values.clone()
        empty[:, :2] = 0
        assert (augment(empty, [name], layout, source(5))[:, :2] == 0).all()


def test_three_animals_and_stated_mirrors():
    names = tuple(f"{who}/{point}/{axis}" for who in "abc" for point in ("p1", "p2") for axis in "xy")
    layout = Layout(names, ("a", "b", "c"), ("p1", "p2"), mirrors={"p1": "p2", "p2": "p1"})
    assert layout.mirrored == (1, 0)
    values = torch.arange(1.0, 13.0).expand(200, 1, 12)
    augmented = AUGMENTATIONS["swap"](values, layout, source(0)).reshape(200, 3, 4)[..., 0]
    assert len(np.unique(augmented.numpy(), axis=0)) == 6


def test_augmentations_that_do_not_apply_are_refused():
    with pytest.raises(EthobenchError, match="unknown augmentation 'turn'; available: published"):
        check_augmentations(["rotation", "turn"])
    with pytest.raises(EthobenchError, match="have no coordinates"):
        check_layout(["rotation"], TAG)
    with pytest.raises(EthobenchError, match="no three channels"):
        check_layout(["rotate_axes"], MICE)
    with pytest.raises(EthobenchError, match="have neither"):
        check_layout(["scale"], Layout(("speed",)))
    check_layout(["rotation", "scale"], MICE)
    check_layout(["rotate_axes", "scale"], TAG)
