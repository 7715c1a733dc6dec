"""Edits against an oracle that works on frames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Behavior, Ethogram
from ethobench.app.editing import apply_edits, clear, hide, mark
from ethobench.app.history import History
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError

N = 40
NAMES = ("rest", "run", "groom")


@st.composite
def exclusive_annotations(draw) -> Annotation:
    codes = draw(st.lists(st.integers(-1, 3), min_size=N, max_size=N))
    return Annotation.from_frames(np.array(codes), NAMES, 10, unobserved=-1)


ranges = st.tuples(st.integers(0, N), st.integers(0, N)).map(sorted).filter(lambda r: r[0] < r[1])


def seen(annotation: Annotation) -> np.ndarray:
    return iv.to_mask(annotation.observed.frames, N)


@given(exclusive_annotations(), ranges, st.sampled_from(NAMES))
def test_marking_sets_these_frames_and_no_others(before, where, name):
    start, stop = where
    after = mark(before, start, stop, name)
    expected = before.to_codes()
    expected[start:stop] = NAMES.index(name)
    assert after.to_codes().tolist() == expected.tolist()
    assert len(after) == len(after.merge_touching())


@given(exclusive_annotations(), ranges, st.sampled_from(NAMES))
def test_marking_beside_others_leaves_them(before, where, name):
    start, stop = where
    after = mark(before, start, stop, name, exclusive=False)
    expected = before.to_frames()
    expected[start:stop, NAMES.index(name)] = True
    assert (after.to_frames() == expected).all()


@given(exclusive_annotations(), ranges)
def test_clearing_and_hiding(before, where):
    start, stop = where
    cleared, hidden = clear(before, start, stop), hide(before, start, stop)
    expected = before.to_frames()
    expected[start:stop] = False
    assert (cleared.to_frames() == expected).all()
    assert (hidden.to_frames() == expected).all()
    looked = seen(before)
    looked[start:stop] = True
    assert (seen(cleared) == looked).all()
    looked[start:stop] = False
    assert (seen(hidden) == looked).all()


@given(exclusive_annotations(), ranges, st.sampled_from(NAMES))
def test_clearing_one_behavior_leaves_the_others(before, where, name):
    start, stop = where
    expected = before.to_frames()
    expected[start:stop, NAMES.index(name)] = False
    assert (clear(before, start, stop, behavior=name).to_frames() == expected).all()


@given(exclusive_annotations(), st.lists(st.tuples(ranges, st.sampled_from((*NAMES, None))), max_size=6))
def test_undo_and_redo_restore_every_state(first, steps):
    history, states = History(first), [first]
    for (start, stop), name in steps:
        states.append(clear(states[-1], start, stop) if name is None else mark(states[-1], start, stop, name))
        history.change(states[-1])
    for state in reversed(states[:-1]):
        assert history.previous == state
        history.undo()
        assert history.annotation == state
    assert history.previous is None
    for state in states[1:]:
        history.redo()
        assert history.annotation == state
    assert history.following is None
    assert history.revision == 3 * len(steps)


def test_an_edit_clears_the_redo_history():
    first = Annotation.from_bouts([], [], [], NAMES, 10, N)
    history = History(first)
    history.change(mark(first, 0, 5, "rest"))
    history.undo()
    history.change(mark(first, 5, 9, "run"))
    assert history.following is None
    history.redo()
    assert history.annotation.start.tolist() == [5]


@pytest.fixture
def social() -> Annotation:
    """Two animals, with a modifier, comments and confidences."""
    return Annotation.from_bouts(
        [0, 0, 20],
        [30, 10, 30],
        ["rest", "run", "groom"],
        NAMES,
        10,
        N,
        subject=["a", "b", "b"],
        target=[None, "a", None],
        modifiers=["slow", "", ""],
        comment=["", "first", "second"],
        confidence=[0.5, 0.6, 0.7],
    )


def test_subjects_are_kept_apart(social):
    after = mark(social, 5, 25, "groom", subject="b")
    assert (after.to_frames(subject="a") == social.to_frames(subject="a")).all()
    assert after.to_codes(subject="b")[:30].tolist() == [1] * 5 + [2] * 25
    only_a = clear(social, 0, N, subject="b")
    assert only_a.tracks() == [("rest", "a", None)]


def test_a_new_subject_may_be_named(social):
    after = mark(social, 0, 5, "run", subject="c", target="a")
    assert ("run", "c", "a") in after.tracks()
    assert (after.to_frames(subject="a") == social.to_frames(subject="a")).all()


def test_details_survive_cutting_and_joining(social):
    after = mark(social, 10, 20, "run", subject="a")
    pieces = [(s, e, m) for s, e, b, m in zip(after.start, after.stop, after.behavior, after.modifiers, strict=True) if b == 0]
    assert pieces == [(0, 10, "slow"), (20, 30, "slow")]
    longer = mark(social, 30, 35, "groom", subject="b")
    grown = np.flatnonzero(longer.behavior == 2)
    assert (longer.start[grown].tolist(), longer.stop[grown].tolist(), longer.comment[grown].tolist()) == ([20], [35], ["second"])
    assert longer.confidence[grown].tolist() == [0.7]


def test_points():
    ethogram = Ethogram([Behavior("bite", point=True), "rest"])
    start = Annotation.from_bouts([], [], [], ethogram, 10, N)
    bitten = mark(mark(start, 7, 7, "bite"), 0, 20, "rest")
    assert [*zip(bitten.start.tolist(), bitten.stop.tolist(), bitten.behavior.tolist(), strict=True)] == [(0, 20, 1), (7, 7, 0)]
    assert clear(bitten, 7, 8).start.tolist() == [0, 8]
    assert len(clear(bitten, 8, 9)) == 3


def test_edits_from_the_page(social):
    edits = [
        {"kind": "clear", "start": 0, "stop": 40, "subject": "a"},
        {"kind": "mark", "start": 30, "stop": 40, "behavior": "run", "subject": "b", "exclusive": True},
        {"kind": "hide", "start": 0, "stop": 5},
        {"kind": "observe", "start": 0, "stop": 2},
    ]
    after = apply_edits(social, edits)
    assert after.to_codes(subject="b")[28:40].tolist() == [2] * 2 + [1] * 10
    assert seen(after)[:6].tolist() == [True, True, False, False, False, True]


@pytest.mark.parametrize(
    ("edit", "error", "message"),
    [
        ({"kind": "burn", "start": 0, "stop": 1}, EthobenchError, "must be one of"),
        ({"kind": "mark", "start": 0, "stop": 1}, EthobenchError, "needs a behavior"),
        ({"kind": "mark", "start": 0, "stop": 1, "behavior": "fly"}, NotFoundError, "no behavior 'fly'"),
        ({"kind": "mark", "start": 3, "stop": 3, "behavior": "run"}, EthobenchError, "must end after it starts"),
        ({"kind": "mark", "start": 0, "stop": 1, "behavior": ["run"]}, EthobenchError, "must be text"),
        ({"kind": "clear", "start": -1, "stop": 1}, MismatchError, "<= 40"),
        ({"kind": "clear", "start": 0, "stop": 41}, MismatchError, "<= 40"),
        ({"kind": "clear", "start": 5, "stop": 1}, MismatchError, "<= 40"),
        ({"kind": "clear", "start": 0.5, "stop": 1}, MismatchError, "<= 40"),
        ({"kind": "clear", "start": True, "stop": 1}, MismatchError, "<= 40"),
        ({"kind": "clear"}, MismatchError, "<= 40"),
    ],
)
def test_invalid_edits_are_refused(social, edit, error, message):
    with pytest.raises(error, match=message):
        apply_edits(social, [edit])
