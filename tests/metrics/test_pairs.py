"""Pairs of a prediction and a truth: which frames count."""

from __future__ import annotations

import numpy as np

from ethobench import Annotation
from ethobench.core import intervals as iv
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
