"""Parts of conditions: adaptation keeps only what is better on held-out rows."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench.decoding.pooling import Labeled
from ethobench.models.condition_parts import ConditionRows, adapt_threshold, labeled_by_recording
from ethobench.models.row_sampling import Rows

pytest.importorskip("lightgbm")
N_ROWS = 400


def recordings(count: int, *, cutoff: float, seed: int = 0) -> tuple[list[Rows], list[np.ndarray]]:
    """Return rows of recordings in which a behavior occurs above a cutoff of a feature, and margins of trees that expect it above 0."""
    generator = np.random.default_rng(seed)
    rows, margins = [], []
    for number in range(count):
        features = np.repeat(generator.normal(size=(N_ROWS // 8, 20)), 8, axis=0).astype(np.float32)
        targets = (features[:, 0] > cutoff).astype(np.int16)[:, None]
        counts = np.array([[(targets == 0).sum(), (targets == 1).sum()]])
        rows.append(Rows(features, targets, counts, "new", f"recording{number}"))
        margins.append((2.0 * features[:, :1] + generator.normal(0, 0.5, (N_ROWS, 1))).astype(np.float64))
    return rows, margins


def adapt(count: int, cutoff: float):
    rows, margins = recordings(count, cutoff=cutoff)
    return ConditionRows.from_rows(rows, margins, list(range(count)), 0.5).adapt(0, {0: 0.5})


def test_a_laboratory_like_the_others_needs_no_trees_and_keeps_its_predictions():
    rows, _ = recordings(2, cutoff=0.0)
    margins = [np.where(each.targets == 1, 4.0, -4.0) for each in rows]
    adapted = ConditionRows.from_rows(rows, margins, [0, 1], 0.5).adapt(0, {0: 0.5})
    assert not adapted.boosters
    assert 0.02 < adapted.thresholds.get(0, 0.5) < 0.98


def test_another_criterion_is_learned_from_one_recording():
    assert adapt(1, cutoff=0.8).thresholds[0] > 0.5


def test_trees_repair_what_no_threshold_can():
    rows, margins = recordings(2, cutoff=0.8)
    opposite = [-each for each in margins]
    assert set(ConditionRows.from_rows(rows, opposite, [0, 1], 0.5).adapt(0, {0: 0.5}).boosters) == {0}


def test_a_threshold_that_harms_held_out_recordings_is_not_used():
    low = Labeled(np.array([0.1, 0.2, 0.6, 0.9]), np.array([False, True, True, True]), np.ones(4), 40)
    high = Labeled(np.array([0.2, 0.3, 0.4, 0.9]), np.array([False, False, False, True]), np.ones(4), 40)
    adapted = adapt_threshold([low, high], 0.5)
    assert adapted is not None
    assert adapted.f1 < adapted.shared_f1
    absent = Labeled(np.array([0.1, 0.4]), np.array([False, False]), np.ones(2), 0)
    assert adapt_threshold([absent, absent], 0.5) is None


def test_a_single_recording_is_split_by_time():
    values = Labeled(np.arange(9) / 10, np.arange(9) > 4, np.ones(9), 1)
    parts = labeled_by_recording({"a": [values, values]})
    assert [each.probabilities.tolist() for each in parts] == [[0.0, 0.1, 0.2] * 2, [0.3, 0.4, 0.5] * 2, [0.6, 0.7, 0.8] * 2]
    assert [len(each.occurs) for each in labeled_by_recording({"a": [values], "b": [values]})] == [9, 9]
