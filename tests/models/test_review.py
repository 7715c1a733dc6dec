"""Candidates for review and their ranking."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Observed, Prediction, Recording, Signals
from ethobench.core import Track
from ethobench.core import intervals as iv
from ethobench.decoding import Decoder
from ethobench.models.discovery import SegmentIndex, View
from ethobench.models.review import Candidate, find_candidates, rank_candidates

RATE, N = 10, 200
ETHOGRAM = Ethogram(["rest", "run", "groom"], "rest")


def _prediction(**spans: tuple[int, int, float]) -> Prediction:
    """Return a prediction in which behaviors have a probability in some frames."""
    probabilities = np.zeros((N, 3))
    for name, (start, stop, p) in spans.items():
        probabilities[start:stop, ETHOGRAM.code(name.rstrip("_"))] = p
    probabilities[:, 0] = 1 - probabilities[:, 1:].sum(axis=1)
    return Decoder().apply(Prediction(probabilities, ETHOGRAM, RATE, exclusive=True))


def _index(values: np.ndarray) -> SegmentIndex:
    recording = Recording("a", rate=RATE, signals=Signals(values[:, :1].astype(float), ("x",), RATE))
    return SegmentIndex([View(recording, None, recording)], [values.astype(np.float32)], [1])


def test_predicted_and_missed_bouts_are_candidates():
    prediction = _prediction(run=(10, 40, 0.9), groom=(100, 130, 0.3), groom_=(150, 180, 0.1))
    candidates = {(c.behavior, c.start, c.stop): c for c in find_candidates("a", prediction)}
    assert {*candidates} == {("run", 10, 40), ("groom", 100, 130)}
    assert candidates["run", 10, 40].kind == "predicted"
    assert candidates["groom", 100, 130].kind == "missed"
    assert candidates["groom", 100, 130].probability == pytest.approx(0.3)


def test_observed_frames_are_not_suggested():
    prediction = _prediction(run=(10, 40, 0.9), groom=(100, 130, 0.6))
    labels = Annotation.from_bouts([], [], [], ETHOGRAM, RATE, N, observed=iv.intervals([0], [30]))
    assert [c.behavior for c in find_candidates("a", prediction, labels)] == ["groom"]
    rejected = labels.with_observed(Observed(iv.empty(), {Track("groom"): iv.intervals([90], [140])}))
    assert [c.behavior for c in find_candidates("a", prediction, rejected)] == ["run"]


def test_uncertain_bouts_come_first():
    values = np.random.default_rng(0).normal(0, 1, (N, 3))
    candidates = [Candidate("a", 20 * i, 20 * i + 10, "run", probability=p) for i, p in enumerate((0.95, 0.55, 0.8))]
    ranked = rank_candidates(candidates, _index(values), {}, 3)
    assert [c.probability for c in ranked] == [0.55, 0.8, 0.95]
    assert [c.gain for c in ranked] == sorted((c.gain for c in ranked), reverse=True)


def test_rare_behaviors_come_first():
    values = np.random.default_rng(0).normal(0, 1, (N, 3))
    truth = Annotation.from_bouts([150, 160, 170], [155, 165, 175], ["run"] * 3, ETHOGRAM, RATE, N, observed=iv.intervals([150], [200]))
    candidates = [Candidate("a", 0, 10, "run", probability=0.7), Candidate("a", 40, 50, "groom", probability=0.7)]
    ranked = rank_candidates(candidates, _index(values), {"a": truth}, 2)
    assert [c.behavior for c in ranked] == ["groom", "run"]
    assert ranked[0].reason == "groom is rare: 0 labeled bouts"


def test_suggestions_differ_from_each_other():
    values = np.random.default_rng(0).normal(0, 0.01, (N, 3))
    values[100:] += 10.0
    starts = (0, 20, 40, 60, 120)
    candidates = [Candidate("a", start, start + 10, "run", probability=0.6) for start in starts]
    ranked = rank_candidates(candidates, _index(values), {}, 2)
    assert ranked[0].start < 100
    assert ranked[1].start == 120


def test_longer_bouts_come_first():
    values = np.random.default_rng(0).normal(0, 1, (N, 3))
    candidates = [Candidate("a", start, start + length, "run", probability=0.6) for start, length in ((0, 2), (20, 30), (60, 20))]
    assert [c.start for c in rank_candidates(candidates, _index(values), {}, 3)][-1] == 0


def test_candidates_without_description_come_last():
    values = np.random.default_rng(0).normal(0, 1, (N, 3))
    values[:50] = np.nan
    candidates = [Candidate("a", start, start + 10, "run", probability=p) for start, p in ((0, 0.5), (100, 0.9))]
    assert [c.start for c in rank_candidates(candidates, _index(values), {}, 3)] == [100, 0]


def test_the_same_frames_are_suggested_once():
    values = np.random.default_rng(0).normal(0, 1, (N, 3))
    candidates = [Candidate("a", 0, 30, "run"), Candidate("a", 10, 40, "groom"), Candidate("a", 10, 40, "run", subject="x")]
    ranked = rank_candidates(candidates, _index(values), {}, 5)
    assert len(ranked) == 2
    assert {c.subject for c in ranked} == {None, "x"}


def test_nothing_to_rank():
    assert rank_candidates([], _index(np.zeros((N, 2))), {}, 5) == []
