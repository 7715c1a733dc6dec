"""Bout scores: point events, onset and offset errors."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Behavior, Ethogram
from ethobench.core import intervals as iv

of = Annotation.from_bouts


def test_onset_and_offset_errors_are_signed_medians_in_seconds():
    ethogram = Ethogram(["a"])
    truth = Annotation.from_bouts([30, 90, 150], [60, 120, 180], [0] * 3, ethogram, 30, 300)
    pred = Annotation.from_bouts([33, 92, 151], [55, 119, 190], [0] * 3, ethogram, 30, 300)
    values = eb.score(pred, truth).behaviors["a"]
    assert values["onset_error"] == pytest.approx(2 / 30)
    assert values["offset_error"] == pytest.approx(-1 / 30)
    assert values["onset_distance"] == pytest.approx(6 / 3 / 30)
    even = eb.score(pred.take([0, 1]), truth.take([0, 1])).behaviors["a"]
    assert even["onset_error"] == pytest.approx(2.5 / 30)


def test_point_events_are_matched_within_a_tolerance_and_have_no_frames():
    ethogram = Ethogram([Behavior("bite", point=True), "a"])

    def of(points, n=100):
        frames = [*points, 50]
        return Annotation.from_bouts(frames, [*points, 60], [0] * len(points) + [1], ethogram, 10, n)

    scores = eb.score(of([7, 30, 99]), of([5, 40, 100]))
    bite = scores.behaviors["bite"]
    assert (bite["bout_precision"], bite["bout_recall"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert bite["onset_distance"] == pytest.approx((0.2 + 0.1) / 2)
    assert np.isnan(bite["f1"])
    assert np.isnan(bite["so"])
    assert scores.overall["f1"] == scores.behaviors["a"]["f1"] == 1
    assert scores.overall["so"] == 1
    assert "bite" in " ".join(map(str, scores.notes))
    partly = eb.score(of([7, 90]), of([7]).with_observed(iv.intervals([0], [80])))
    assert partly.behaviors["bite"]["bout_precision"] == 1


def test_medians_of_large_errors():
    t = of([100, 300, 500], [200, 400, 640], ["a"] * 3, ["a"], 1, 1000)
    p = of([106, 307, 600], [200, 400, 640], ["a"] * 3, ["a"], 1, 1000)
    assert eb.score(p, t).overall["onset_error"] == pytest.approx(7)
    early = of([50, 293, 400], [200, 390, 640], ["a"] * 3, ["a"], 1, 1000)
    assert eb.score(early, t).overall["onset_error"] == pytest.approx(-50)
