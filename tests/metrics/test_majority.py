"""Consensus of annotators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ethobench as eb
from ethobench import Annotation, Behavior, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.observed import Observed, Track

of = Annotation.from_bouts


def test_consensus_keeps_points_and_partial_observation():
    ethogram = Ethogram([Behavior("bite", point=True), "a", "b"])
    a = of([10, 20], [10, 40], [0, 1], ethogram, 10, 100)
    b = of([12, 22], [12, 40], [0, 1], ethogram, 10, 100)
    agreed = eb.consensus({"x": a, "y": b})
    assert agreed.spans("bite").start.tolist() == [11]
    assert agreed.spans("a").start.tolist() == [22]
    hidden = Observed(iv.full(100), {Track("b"): iv.empty()})
    partly = eb.consensus({"x": a.with_observed(hidden), "y": b.with_observed(hidden)})
    assert iv.total(partly.observed.of("a")) == 100
    assert iv.total(partly.observed.of("b")) == 0


def test_behaviors_are_observed_where_any_annotator_observed_them():
    """The vote counts the annotators who observed a behavior in a frame; nobody observed b in the last two frames."""
    names = ["a", "b"]
    x = Annotation.from_frames([0, 0, 1, 1, 0, 0], names, 1)
    y = Annotation.from_frames([1, 0, 0, 1, 1, 1], names, 1)
    x = x.with_observed(Observed(iv.full(6), {Track("b"): iv.intervals([0], [3])}))
    y = y.with_observed(Observed(iv.full(6), {Track("b"): iv.intervals([0], [4])}))
    agreed = eb.consensus({"x": x, "y": y})
    assert agreed.observed.of("a").stop.tolist() == [6]
    assert (agreed.observed.of("b").start.tolist(), agreed.observed.of("b").stop.tolist()) == ([0], [4])
    assert agreed.to_frames()[:, 0].tolist() == [False, True, False, False, False, False]
    assert agreed.to_frames()[:, 1].tolist() == [False, False, False, True, False, False]  # only y observed b in frame 3


def test_unobserved_frames_and_the_background():
    ethogram = Ethogram(["a", "other"], "other")
    x = Annotation.from_frames([0, 0, 1, 1, 1], ethogram, 1).with_observed(iv.intervals([0], [3]))
    y = Annotation.from_frames([0, 1, 1, 0, 1], ethogram, 1).with_observed(iv.intervals([0], [4]))
    agreed = eb.consensus({"x": x, "y": y})
    assert agreed.to_codes().tolist() == [0, 1, 1, 0, -1]
    assert not agreed.observed.tracks


def test_point_events_need_a_majority_within_half_a_second():
    ethogram = Ethogram([Behavior("bite", point=True)])
    marks = {"x": [10, 40, 60], "y": [14, 70], "z": [12, 41]}
    sides = {name: of(at, at, [0] * len(at), ethogram, 10, 100) for name, at in marks.items()}
    assert eb.consensus(sides).spans("bite").start.tolist() == [12, 40]


def test_annotations_that_differ_in_clock_are_refused():
    a, b = (Annotation.from_frames([0] * n, ["a"], 10) for n in (5, 6))
    with pytest.raises(MismatchError, match="differ in frame rate or length"):
        eb.consensus({"x": a, "y": b})
    with pytest.raises(EthobenchError, match="at least one annotator"):
        eb.consensus({})


def test_half_of_the_annotators_is_not_a_majority_for_a_point_event():
    ethogram = Ethogram([Behavior("bite", point=True)])
    sides = {name: of(at, at, [0] * len(at), ethogram, 10, 100) for name, at in {"w": [10], "x": [11], "y": [50], "z": [11, 50]}.items()}
    assert eb.consensus(sides).spans("bite").start.tolist() == [11]


@given(st.integers(1, 5).flatmap(lambda k: st.lists(st.lists(st.integers(-1, 2), min_size=20, max_size=20), min_size=k, max_size=k)))
def test_frames_have_the_behavior_that_more_than_half_of_their_observers_chose(sides):
    ethogram = Ethogram(["a", "b", "other"], "other")
    annotations = {
        str(k): Annotation.from_frames(np.maximum(side, 0), ethogram, 10, unobserved=np.array(side) < 0) for k, side in enumerate(sides)
    }
    expected = []
    for votes in zip(*sides, strict=True):
        observed = [vote for vote in votes if vote >= 0]
        winners = [code for code in (0, 1) if 2 * observed.count(code) > len(observed)]
        expected.append(-1 if not observed else winners[0] if winners else 2)
    assert eb.consensus(annotations).to_codes().tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_events_of_more_than_half_of_the_annotators(n):
    """An event counts once for each annotator, and is placed at the median of its group."""
    ethogram = Ethogram([Behavior("bite", point=True)])
    for marked in range(n + 1):
        people = {
            f"a{k}": Annotation.from_bouts(*[[20 + k, 21 + k] if k < marked else []] * 2, [0, 0] if k < marked else [], ethogram, 10, 50)
            for k in range(n)
        }
        starts = eb.consensus(people).start.tolist()
        middle = np.median([20 + k + later for k in range(marked) for later in (0, 1)]) if marked else None
        assert starts == ([int(middle)] if 2 * marked > n else []), (n, marked)


def test_behaviors_of_all_annotators_are_joined():
    sides = [Annotation.from_frames([0, 0, 0], Ethogram([name]), 1) for name in ("a", "b", "c")]
    assert eb.consensus({str(k): side for k, side in enumerate(sides[:2])}).ethogram.names == ("a", "b")
    assert eb.consensus({str(k): side for k, side in enumerate(sides)}).ethogram.names == ("a", "b", "c")
