"""Where annotators differ, what is least certain, and what to label next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Ethogram, Prediction
from ethobench.app.disagreement import disagreement, least_certain, next_span
from ethobench.app.suggestions import Evidence, corrected_frames, frame_uncertainty, suggest
from ethobench.core import intervals as iv

N = 60
ETHOGRAM = Ethogram(["rest", "run", "other"], "other")


def annotated(codes, ethogram=ETHOGRAM) -> Annotation:
    return Annotation.from_frames(np.asarray(codes), ethogram, 10, unobserved=-1)


codes = st.lists(st.integers(-1, 2), min_size=N, max_size=N)


@given(st.lists(codes, min_size=2, max_size=4))
def test_frames_differ_where_two_observing_annotators_disagree(rows):
    mask = iv.to_mask(disagreement([annotated(row) for row in rows]), N)
    for frame in range(N):
        codes = {row[frame] for row in rows if row[frame] >= 0}
        assert mask[frame] == (len(codes) > 1)


def test_an_implicit_background_equals_an_explicit_one():
    explicit = annotated([2] * 10 + [0] * 10)
    implicit = Annotation.from_bouts([10], [20], ["rest"], ETHOGRAM, 10, 20)
    assert iv.total(disagreement([explicit, implicit])) == 0


def test_subjects_are_compared_one_by_one_only_where_all_name_them():
    a = Annotation.from_bouts([0], [10], ["run"], ETHOGRAM, 10, 20, subject=["x"], subjects=["x", "y"])
    b = Annotation.from_bouts([0], [10], ["run"], ETHOGRAM, 10, 20, subject=["y"])
    nobody = Annotation.from_bouts([0], [10], ["run"], ETHOGRAM, 10, 20)
    assert iv.total(disagreement([a, b])) == 10
    assert iv.total(disagreement([a, nobody])) == 0
    assert iv.total(disagreement([a])) == 0


def test_next_and_previous_disagreement():
    spans = iv.intervals([5, 20, 40], [8, 25, 41])
    assert next_span(spans, 0, forward=True) == (5, 8)
    assert next_span(spans, 5, forward=True) == (20, 25)
    assert next_span(spans, 40, forward=True) is None
    assert next_span(spans, 40, forward=False) == (20, 25)
    assert next_span(spans, 5, forward=False) is None


def test_the_least_certain_bout_comes_first():
    probabilities = np.array([[0.9, 0.05, 0.05]] * 10 + [[0.2, 0.6, 0.2]] * 10 + [[0.7, 0.2, 0.1]] * 10 + [[0, 0, 1]] * 10)
    prediction = Prediction(probabilities, ETHOGRAM, 10)
    ranking = least_certain(prediction.annotation, prediction)
    assert prediction.annotation.start[ranking.indices].tolist() == [10, 20, 0]
    assert ranking.certainty == pytest.approx([0.6, 0.7, 0.9])


def test_bouts_without_a_confidence_are_ignored():
    a = Annotation.from_bouts([0, 5, 10], [5, 10, 15], ["run", "rest", "run"], ETHOGRAM, 10, 20, confidence=[0.9, np.nan, 0.3])
    assert least_certain(a).indices.tolist() == [2, 0]
    assert len(least_certain(annotated([0] * N)).indices) == 0


def test_doubt_is_the_margin_between_the_two_best_behaviors():
    exclusive = Prediction([[0.6, 0.3, 0.1], [1.0, 0, 0], [0.5, 0.5, 0], [np.nan] * 3], ETHOGRAM, 10)
    assert frame_uncertainty(exclusive) == pytest.approx([0.7, 0, 1, 0])
    implicit = Prediction([[0.2, 0.1]], Ethogram(["rest", "run"]), 10)
    assert frame_uncertainty(implicit) == pytest.approx([0.5])
    overlapping = Prediction([[0.9, 0.55], [1.0, 0.0]], Ethogram(["rest", "run"]), 10, exclusive=False)
    assert frame_uncertainty(overlapping) == pytest.approx([0.9, 0])


def evidence(*annotations, individual="a", predictions=(), handled=None) -> Evidence:
    n = (annotations or [p.annotation for p in predictions])[0].n_frames
    return Evidence(individual, 10, n, ETHOGRAM.names, annotations, predictions, iv.empty() if handled is None else handled)


def test_the_most_doubtful_window_comes_first_then_others_that_differ_from_it():
    calm = annotated([0] * 400)
    sharp = np.zeros(400, int)
    sharp[100:160] = 1  # 60 of the 100 frames of the second window differ
    sharp[200:250] = 1  # 50 of the third, of the same kind
    other = np.zeros(400, int)
    other[0:40] = 1  # 40 of the first window of another animal
    recordings = [evidence(calm, annotated(sharp)), evidence(calm, annotated(other), individual="b")]
    chosen = suggest(recordings, count=3, seconds=10)
    assert [(s.recording, s.start, s.stop) for s in chosen[:2]] == [(0, 100, 200), (1, 0, 100)]
    assert chosen[0].uncertainty == pytest.approx(0.6)
    assert chosen == suggest(recordings, count=3, seconds=10)


def test_windows_with_corrections_are_skipped():
    calm, sharp = annotated([0] * 400), annotated([0] * 100 + [1] * 100 + [0] * 200)
    done = evidence(calm, sharp, handled=iv.intervals([150], [151]))
    assert suggest([evidence(calm, sharp)], seconds=10)[0].start == 100
    assert suggest([done], seconds=10) == []


def test_without_doubt_there_is_nothing_to_suggest():
    calm = annotated([0] * 400)
    assert suggest([evidence(calm)]) == []
    assert suggest([evidence(calm, calm)]) == []
    assert suggest([]) == []


def test_probabilities_alone_suffice():
    probabilities = np.tile([1.0, 0, 0], (400, 1))
    probabilities[300:320] = [0.5, 0.5, 0]
    chosen = suggest([evidence(predictions=[Prediction(probabilities, ETHOGRAM, 10)])], seconds=10)
    assert [(s.start, s.stop) for s in chosen] == [(300, 400)]
    assert chosen[0].uncertainty == pytest.approx(0.2)


def test_frames_corrected_by_a_person():
    first, second = annotated([0] * 30), annotated([0] * 20 + [1] * 10)
    copied = annotated([0] * 5 + [1] * 5 + [0] * 20)
    assert [*zip(*corrected_frames(copied, [first, second]), strict=True)] == [(5, 10)]
    partial = annotated([-1] * 10 + [0] * 5 + [-1] * 15)
    assert [*zip(*corrected_frames(partial, [first]), strict=True)] == [(10, 15)]
    assert iv.total(corrected_frames(copied, [])) == 0
