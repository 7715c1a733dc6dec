"""Losses and class weights, against one frame at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ethobench.core.errors import EthobenchError
from ethobench.training.losses import (
    boundary_targets,
    check_class_weight,
    class_weights,
    exclusive_loss,
    overlapping_loss,
    smoothed_exclusive_loss,
    with_boundaries,
)

pytestmark = pytest.mark.slow


def test_inverse_class_weights_are_those_of_bebe():
    targets = np.array([0, 0, 0, 1, -1, -1], dtype=np.int16)
    assert class_weights(targets, 3, "inverse").tolist() == pytest.approx([1 / (0.75 + 1e-6), 1 / (0.25 + 1e-6), 1e6], rel=1e-5)


def test_the_exclusive_loss_ignores_unobserved_frames():
    generator = np.random.default_rng(0)
    logits, targets = generator.normal(size=(2, 5, 3)), np.array([[0, 2, -1, 1, -1], [-1, -1, 0, 0, 2]])
    weights = np.array([1.0, 2.0, 5.0], dtype=np.float32)
    above = below = 0.0
    for row, code in zip(logits.reshape(-1, 3), targets.ravel(), strict=True):
        if code >= 0:
            probability = math.exp(row[code]) / sum(map(math.exp, row))
            above -= weights[code] * math.log(probability)
            below += weights[code]
    loss = exclusive_loss(weights)(torch.tensor(logits, dtype=torch.float32), torch.tensor(targets))
    assert loss.item() == pytest.approx(above / below, rel=1e-5)


def test_the_exclusive_loss_takes_single_frames_too():
    loss = exclusive_loss(np.ones(2, dtype=np.float32))
    logits, targets = torch.tensor([[0.0, 1.0], [2.0, 0.0]]), torch.tensor([1, 0])
    expected = (math.log(1 + math.exp(-1)) + math.log(1 + math.exp(-2))) / 2
    assert loss(logits, targets).item() == pytest.approx(expected, rel=1e-5)


def test_the_overlapping_loss_ignores_unobserved_behaviors():
    generator = np.random.default_rng(1)
    logits, targets = generator.normal(size=(1, 4, 2)), np.array([[[0, 1], [1, -1], [-1, -1], [1, 1]]])
    terms = []
    for score, target in zip(logits.ravel(), targets.ravel(), strict=True):
        probability = 1 / (1 + math.exp(-score))
        if target >= 0:
            terms.append(-math.log(probability if target else 1 - probability))
    loss = overlapping_loss()(torch.tensor(logits, dtype=torch.float32), torch.tensor(targets, dtype=torch.int16))
    assert loss.item() == pytest.approx(np.mean(terms), rel=1e-5)


def test_class_weights_of_calms21():
    codes = np.array([0] * 6 + [1] * 2 + [-1] * 5, dtype=np.int16)
    assert class_weights(codes, 3, "none", background=0).tolist() == [1, 1, 1]
    assert class_weights(codes, 3, "balanced", background=0) == pytest.approx([8 / 12, 2, 1])
    assert class_weights(codes, 3, 20, background=0).tolist() == [1, 20, 20]
    overlapping = np.array([[1, 0], [0, 0], [0, -1], [0, 0]], dtype=np.int16)
    assert class_weights(overlapping, 2, "balanced", background=1) == pytest.approx([3, 1])
    assert class_weights(overlapping, 2, 5.0, background=1).tolist() == [5, 5]
    for wrong in ("even", 0, -1.0):
        with pytest.raises(EthobenchError, match="`class_weight` must be one of none, balanced, or a number > 0"):
            check_class_weight(wrong)


def test_class_weights_to_a_power():
    targets = np.repeat([0, 1, -1], [900, 100, 50]).astype(np.int16)
    assert class_weights(targets, 3, "power", exponent=0.0).tolist() == pytest.approx([1.0, 1.0, 0.0])
    balanced = class_weights(targets, 3, "power", exponent=1.0)
    assert (balanced[0] * 900, balanced[2]) == (pytest.approx(balanced[1] * 100), 0.0)
    half = class_weights(targets, 3, "power", exponent=0.5)
    assert half[1] / half[0] == pytest.approx(3.0)


def test_losses_divide_by_the_number_of_frames_as_keras_does():
    scores = torch.tensor([[0.0, 0.0], [1.0, -1.0], [9.0, 9.0]])
    weighted = exclusive_loss(np.array([1.0, 20.0], dtype=np.float32), average="frames")
    loss = weighted(scores, torch.tensor([1, 0, -1], dtype=torch.int16))
    assert loss.item() == pytest.approx((20 * np.log(2) + np.log(1 + np.exp(-2))) / 2, rel=1e-5)
    overlapping = overlapping_loss(np.array([3.0, 1.0], dtype=np.float32))
    loss = overlapping(scores, torch.tensor([[1, -1], [0, 0], [-1, -1]], dtype=torch.int16))
    assert loss.item() == pytest.approx((3 * np.log(2) + np.log(1 + np.e) + np.log(1 + np.exp(-1))) / 3, rel=1e-5)


def test_smoothed_losses():
    logits = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [5.0, 0.0]]])
    targets = torch.tensor([[0, 1, -1]])
    weights = np.array([1.0, 3.0], dtype=np.float32)
    log_probabilities = torch.log_softmax(logits, dim=-1)[0]
    first, second = (0.9 * log_probabilities[i, c] + 0.1 * log_probabilities[i].mean() for i, c in ((0, 0), (1, 1)))
    jumps = torch.clamp((log_probabilities[1:] - log_probabilities[:-1]).abs(), max=4.0).square().mean()
    expected = -(first + 3 * second) / 4 + 0.5 * jumps
    loss = smoothed_exclusive_loss(weights, label_smoothing=0.1, temporal_smoothing=0.5)(logits, targets)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    labels = torch.tensor([[[1, -1], [0, 1], [-1, -1]]])
    plain, smoothed = (overlapping_loss(temporal_smoothing=weight)(logits, labels).item() for weight in (0.0, 0.5))
    terms = [np.log1p(np.exp(-2.0)), np.log(2.0), np.log1p(np.exp(-1.0))]
    assert plain == pytest.approx(np.mean(terms), rel=1e-5)
    log_sigmoid = torch.nn.functional.logsigmoid(logits)[0]
    jumps = torch.clamp((log_sigmoid[1:] - log_sigmoid[:-1]).abs(), max=4.0).square().mean()
    assert smoothed == pytest.approx(plain + 0.5 * jumps.item(), rel=1e-5)


def test_boundaries_of_exclusive_behaviors():
    targets = torch.tensor([[2, 2, 0, 0, 1, 1, 2, 2, -1, 0, 0, 0]])  # 2 is the background
    labels, observed = boundary_targets(targets, 3, reach=0, background=2)
    assert labels[0, :8, 0].tolist() == [0, 0, 1, 0, 1, 0, 0, 0]
    assert labels[0, :8, 1].tolist() == [0, 0, 0, 0, 1, 0, 1, 0]
    assert observed[0].tolist() == [True] * 8 + [False] + [True] * 3
    wider, observed = boundary_targets(targets, 3, reach=1, background=2)
    assert wider[0, :7, 0].tolist() == [0, 1, 1, 1, 1, 1, 0]
    assert observed[0].tolist() == [True] * 7 + [False] * 3 + [True] * 2  # whether the bout at 9 starts there is unknown
    everything, _ = boundary_targets(targets, 3, reach=0, background=None)
    assert everything[0, :8, 0].tolist() == [0, 0, 1, 0, 1, 0, 1, 0]


def test_boundaries_of_overlapping_behaviors():
    first, second = [0, 1, 1, 1, 0, 0, -1, -1], [0, 0, 1, 1, 1, 0, 0, -1]
    targets = torch.tensor([first, second]).T[None]
    labels, observed = boundary_targets(targets, 2, reach=0, background=None)
    assert labels[0, :6].T.tolist() == [[0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1]]
    assert observed[0].tolist() == [True] * 6 + [False] * 2


def test_the_loss_of_boundaries_is_added():
    generator = torch.Generator().manual_seed(0)
    logits, targets = torch.randn((2, 6, 5), generator=generator), torch.tensor([[0, 0, 1, 1, 2, 2], [-1, 1, 1, 0, 0, -1]])
    plain = exclusive_loss(np.ones(3, dtype=np.float32))
    joint = with_boundaries(plain, 3, weight=0.5, reach=1, background=2)
    labels, observed = boundary_targets(targets, 3, 1, 2)
    terms = [
        math.log1p(math.exp(-(2 * label - 1) * logit))
        for logit, label in zip(logits[..., 3:][observed].ravel().tolist(), labels[observed].ravel().tolist(), strict=True)
    ]
    assert joint(logits, targets).item() == pytest.approx(plain(logits[..., :3], targets).item() + 0.5 * np.mean(terms), rel=1e-5)
    nothing = with_boundaries(lambda _values, _targets: torch.zeros(()), 3, weight=1.0, reach=1, background=2)
    assert nothing(logits, torch.full((2, 6), -1)).item() == 0
