"""Class labels per frame."""

from __future__ import annotations

from ethobench.core import Annotation, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.observed import Observed, Track
from ethobench.core.targets import exclusive_targets, overlapping_targets


def test_exclusive_targets_put_the_implicit_background_last_and_mask_unobserved_frames():
    annotation = Annotation.from_bouts([2, 6], [4, 8], [0, 1], ["rest", "run"], 10, 10, observed=iv.intervals([1], [9]))
    assert exclusive_targets(annotation).tolist() == [-1, 2, 0, 0, 2, 2, 1, 1, 2, -1]


def test_overlapping_targets_mask_each_behavior_separately():
    observed = Observed(iv.intervals([0], [6]), {Track("run"): iv.intervals([2], [5])})
    annotation = Annotation.from_bouts([0, 1], [4, 6], ["rest", "run"], Ethogram(["rest", "run"]), 10, 6, observed=observed)
    assert overlapping_targets(annotation).T.tolist() == [[1, 1, 1, 1, 0, 0], [-1, -1, 1, 1, 1, -1]]


def test_bouts_outside_the_list_of_labeled_behaviors_remain_unobserved():
    attacks = Observed(iv.empty(), {Track("attack", "a"): iv.full(10), Track("attack", "b"): iv.empty()})
    labels = Annotation.from_bouts([2, 5], [4, 8], ["attack", "rear"], ["attack", "rear"], 10, 10, subject=["a", "a"], observed=attacks)
    targets = overlapping_targets(labels)
    assert targets[:, 0].tolist() == [-1, -1, 1, 1, -1, -1, -1, -1, -1, -1]  # b was not watched
    assert (targets[:, 1] == -1).all()
