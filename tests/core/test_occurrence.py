"""Occurrence of behaviors and their colors."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Behavior, Ethogram
from ethobench.core.occurrence import Amount, Occurrence

ETHOGRAM = Ethogram(["other", "chase", "rest", "run", "bite", Behavior("call", point=True)], "other")


def annotate(*bouts: tuple[int, int, str], rate: float = 10, ethogram: Ethogram = ETHOGRAM) -> Annotation:
    start, stop, names = zip(*bouts, strict=True) if bouts else ((), (), ())
    return Annotation.from_bouts(start, stop, names, ethogram, rate, 100)


def test_false_alarms_are_distinguished_from_behaviors_that_never_occur():
    truth = annotate((0, 10, "rest"))
    occurrence = Occurrence.count(ETHOGRAM, [truth], [annotate((0, 10, "rest"), (20, 22, "bite"))])
    assert occurrence.never_annotated == ("chase", "run", "call")
    assert occurrence.only_predicted == ("bite",)
    assert occurrence.lines() == ["never annotated: chase, run, call", "predicted but never annotated: bite"]
    assert occurrence.lines("a remark")[0].endswith("call (a remark)")
    assert Occurrence.count(ETHOGRAM.restrict(["rest"]), [truth]).lines() == []


def test_point_events_occur_although_they_have_no_duration():
    occurrence = Occurrence.count(ETHOGRAM, [annotate((5, 5, "call"))])
    assert "call" not in occurrence.never_annotated
    assert occurrence.annotated["call"] == Amount(0.0, 1)
    assert occurrence.color_indices()["call"] == 0


def test_the_first_colors_go_to_the_behaviors_that_last_longest():
    truth = annotate((0, 10, "rest"), (10, 40, "run"))
    false_alarm = annotate((0, 5, "bite"))
    colors = Occurrence.count(ETHOGRAM, [truth], [false_alarm]).color_indices()
    assert colors == {"other": None, "run": 0, "rest": 1, "bite": 2, "chase": 3, "call": 4}


def test_durations_are_seconds_whatever_the_rate():
    slow, fast = annotate((0, 10, "rest"), rate=1), annotate((0, 90, "run"), rate=100)
    assert Occurrence.count(ETHOGRAM, [slow, fast]).color_indices()["rest"] == 0


def test_ties_follow_the_ethogram():
    same = annotate((0, 10, "run"), (10, 20, "chase"))
    colors = Occurrence.count(ETHOGRAM, [same]).color_indices()
    assert (colors["chase"], colors["run"]) == (0, 1)


def test_joining_adds_up_and_keeps_other_behaviors():
    more = Ethogram(["dig"])
    one = Occurrence.count(ETHOGRAM, [annotate((0, 10, "rest"))])
    both = one.join(Occurrence.count(more, [annotate((0, 30, "dig"), ethogram=more)], [annotate((0, 2, "rest"))]))
    assert both.total("rest") == Amount(1.2, 2)
    assert both.color_indices()["dig"] == 0
    assert both.never_annotated == ("chase", "run", "bite", "call")


@given(st.lists(st.integers(0, 5), max_size=60), st.randoms(use_true_random=False))
def test_every_behavior_has_its_own_color_whatever_the_order_of_the_data(codes, random):
    annotations = [Annotation.from_frames(np.array(piece), ETHOGRAM, 10) for piece in (codes[:20], codes[20:40], codes[40:]) if piece]
    colors = Occurrence.count(ETHOGRAM, annotations).color_indices()
    assert sorted(index for index in colors.values() if index is not None) == [0, 1, 2, 3, 4]
    random.shuffle(annotations)
    assert Occurrence.count(ETHOGRAM, annotations).color_indices() == colors
    occurring = [index for name, index in colors.items() if index is not None and ETHOGRAM.code(name) in codes]
    assert sorted(occurring) == list(range(len(occurring)))


def test_only_amounts_are_added():
    assert Amount(1.5, 2) + Amount(0.5, 1) == Amount(2.0, 3)
    assert Amount().__add__((1.0, 1)) is NotImplemented
