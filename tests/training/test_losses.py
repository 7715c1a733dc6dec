"""Losses restated one frame at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ethobench.training.losses import class_weights, exclusive_loss, overlapping_loss

pytestmark = pytest.mark.slow


def test_class_weights_are_the_published_ones():
    targets = np.array([0, 0, 0, 1, -1, -1], dtype=np.int16)
    assert class_weights(targets, 3).tolist() == pytest.approx([1 / (0.75 + 1e-6), 1 / (0.25 + 1e-6), 1e6], rel=1e-5)


def test_the_exclusive_loss_passes_over_unknown_frames():
    generator = np.random.default_rng(0)
    logits, targets = generator.normal(size=(2, 5, 3)), np.array([[0, 2, -1, 1, -1], [-1, -1, 0, 0, 2]])
    weights = np.array([1.0, 2.0, 5.0], dtype=np.float32)
    above = below = 0.0
    for row, code in zip(logits.reshape(-1, 3), targets.ravel(), strict=True):
        if code >= 0:
            chance = math.exp(row[code]) / sum(map(math.exp, row))
            above -= weights[code] * math.log(chance)
            below += weights[code]
    found = exclusive_loss(weights)(torch.tensor(logits, dtype=torch.float32), torch.tensor(targets))
    assert found.item() == pytest.approx(above / below, rel=1e-5)


def test_the_exclusive_loss_takes_one_example_a_row_too():
    loss = exclusive_loss(np.ones(2, dtype=np.float32))
    logits, targets = torch.tensor([[0.0, 1.0], [2.0, 0.0]]), torch.tensor([1, 0])
    expected = (math.log(1 + math.exp(-1)) + math.log(1 + math.exp(-2))) / 2
    assert loss(logits, targets).item() == pytest.approx(expected, rel=1e-5)


def test_the_overlapping_loss_passes_over_what_was_not_looked_for():
    generator = np.random.default_rng(1)
    logits, targets = generator.normal(size=(1, 4, 2)), np.array([[[0, 1], [1, -1], [-1, -1], [1, 1]]])
    terms = []
    for score, target in zip(logits.ravel(), targets.ravel(), strict=True):
        chance = 1 / (1 + math.exp(-score))
        if target >= 0:
            terms.append(-math.log(chance if target else 1 - chance))
    found = overlapping_loss()(torch.tensor(logits, dtype=torch.float32), torch.tensor(targets, dtype=torch.int16))
    assert found.item() == pytest.approx(np.mean(terms), rel=1e-5)
