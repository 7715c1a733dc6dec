"""Which behaviors occur, which never do, and which colors they get."""

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


def test_false_alarms_are_told_from_what_never_occurs():
    truth = annotate((0, 10, "rest"))
    found = Occurrence.count(ETHOGRAM, [truth], [annotate((0, 10, "rest"), (20, 22, "bite"))])
    assert found.never_annotated == ("chase", "run", "call")
    assert found.only_predicted == ("bite",)
    assert found.lines() == ["never annotated: chase, run, call", "predicted but never annotated: bite"]
    assert found.lines("a remark")[0].endswith("call (a remark)")
    assert Occurrence.count(ETHOGRAM.restrict(["rest"]), [truth]).lines() == []


def test_point_events_occur_though_they_have_no_duration():
    found = Occurrence.count(ETHOGRAM, [annotate((5, 5, "call"))])
    assert "call" not in found.never_annotated
    assert found.annotated["call"] == Amount(0.0, 1)
    assert found.color_indices()["call"] == 0


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
    parts = [Annotation.from_frames(np.array(part), ETHOGRAM, 10) for part in (codes[:20], codes[20:40], codes[40:]) if part]
    colors = Occurrence.count(ETHOGRAM, parts).color_indices()
    assert sorted(index for index in colors.values() if index is not None) == [0, 1, 2, 3, 4]
    random.shuffle(parts)
    assert Occurrence.count(ETHOGRAM, parts).color_indices() == colors
    occurring = [index for name, index in colors.items() if index is not None and ETHOGRAM.code(name) in codes]
    assert sorted(occurring) == list(range(len(occurring)))
