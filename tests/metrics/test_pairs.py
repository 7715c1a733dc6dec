"""Pairs of a prediction and a truth: which frames count."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ethobench import Annotation, Behavior, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.observed import Observed, Track
from ethobench.metrics import all_metrics
from ethobench.metrics.pairs import AlignedPair


def test_frames_that_only_the_truth_observed_count_unless_both_must_observe():
    truth = Annotation.from_frames(np.ones((100, 1), dtype=bool), ["a"], 10)
    pred = truth.crop(0, 60).extend(100)
    assert iv.total(pred.observed.of("a")) == 60
    recall = all_metrics()["frames.recall"]
    values = [
        recall.value(recall.statistics(pair))[0]
        for pair in (AlignedPair("r", "r", pred, truth), AlignedPair("r", "r", pred, truth, observed_by_both=True))
    ]
    assert values == [0.6, 1]


@pytest.mark.parametrize("n_frames", [1, 2, 10])
def test_events_at_the_very_end_belong_to_the_last_frame(n_frames):
    ethogram = Ethogram([Behavior("call", point=True)])
    side = Annotation.from_bouts([n_frames], [n_frames], ["call"], ethogram, 10, n_frames)
    counts = all_metrics()["bouts.f1"].statistics
    assert counts(AlignedPair("r", "r", side, side))[0, :3].tolist() == [1, 1, 1]
    unobserved = side.with_observed(iv.full(n_frames - 1))
    assert counts(AlignedPair("r", "r", side, unobserved))[0, :3].tolist() == [0, 0, 0]


def test_a_pair_is_exclusive_if_both_sides_are():
    single = Annotation.from_frames([0, 1], ["a", "b"], 10)
    overlapping = Annotation.from_frames([[1, 1], [0, 1]], ["a", "b"], 10)
    sides = {True: single, False: overlapping}
    for first, second in itertools.product(sides, sides):
        pair = AlignedPair("r", "r", sides[first], sides[second])
        assert pair.exclusive == (first and second)
        assert np.isnan(pair.confusion).all() == (not pair.exclusive)


def test_frames_count_for_a_behavior_only_where_it_was_observed():
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    masks = {"a": rng.random(60) < 0.5, "b": rng.random(60) < 0.5}
    observed = Observed(iv.full(60), {Track(name): iv.from_mask(mask) for name, mask in masks.items()})
    truth = Annotation.from_frames(true, ["a", "b"], 10).with_observed(observed)
    pair = AlignedPair("r", "r", Annotation.from_frames(predicted, ["a", "b"], 10), truth, pool_subjects=True)
    counts = all_metrics()["frames.f1"].statistics(pair)
    for code, mask in enumerate(masks.values()):
        t, p = true[mask] == code, predicted[mask] == code
        assert counts[code].tolist() == [(t & p).sum(), (~t & p).sum(), (t & ~p).sum(), (~t & ~p).sum()]
