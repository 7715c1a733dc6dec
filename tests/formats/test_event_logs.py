from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Ethogram
from ethobench.core import Track
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.formats import event_logs
from ethobench.formats.event_logs import POINT, START, STOP, Event, alternate_starts_and_stops, pair_events

PATH = Path("log")


def spans(events: list[Event]) -> list[tuple[float, float, str]]:
    bouts = pair_events(PATH, events).bouts
    return list(zip(bouts.start, bouts.stop, bouts.behavior, strict=True))


def annotate(events: list[Event], **options: object) -> Annotation:
    annotation, _ = pair_events(PATH, events).to_annotation(event_logs.ethogram_of(events), 1.0, **options)  # type: ignore[arg-type]
    return annotation


def test_pairs_are_formed_per_track_in_order_of_their_starts() -> None:
    events = [
        Event(1, START, "b", "ann"),
        Event(2, START, "a", "ann"),
        Event(3, START, "a", "bob"),
        Event(4, STOP, "a", "bob"),
        Event(5, POINT, "p", "ann"),
        Event(6, STOP, "a", "ann"),
        Event(7, STOP, "b", "ann"),
    ]
    assert spans(events) == [(1, 7, "b"), (2, 6, "a"), (3, 4, "a"), (5, 5, "p")]
    assert pair_events(PATH, events).notes == []


def test_modifiers_distinguish_tracks() -> None:
    events = [Event(1, START, "a", modifiers="x"), Event(2, START, "a", modifiers="y"), Event(3, STOP, "a", modifiers="x")]
    events.append(Event(4, STOP, "a", modifiers="y"))
    assert spans(events) == [(1, 3, "a"), (2, 4, "a")]


def test_a_start_without_stop_is_dropped_and_its_track_unobserved_from_there() -> None:
    events = [Event(2, START, "a", "ann"), Event(4, STOP, "a", "ann"), Event(6, START, "a", "ann", location="row 9")]
    observation = pair_events(PATH, events)
    assert [(n.location, "without a stop" in n.message) for n in observation.notes] == [("row 9", True)]
    annotation = annotate(events, length=10)
    assert annotation.start.tolist() == [2]
    assert annotation.observed.of("a", "ann").stop.tolist() == [6]
    assert annotation.observed.of("a", "bob").stop.tolist() == [10]
    assert [*annotation.observed.tracks] == [Track("a", "ann")]


def test_two_starts_in_a_row_hide_only_the_time_between() -> None:
    annotation = annotate([Event(1, START, "a"), Event(3, START, "a"), Event(5, STOP, "a")], length=8)
    assert (annotation.start.tolist(), annotation.stop.tolist()) == ([3], [5])
    observed = annotation.observed.of("a")
    assert (observed.start.tolist(), observed.stop.tolist()) == ([0, 3], [1, 8])


def test_a_stop_without_start_hides_what_came_before() -> None:
    events = [Event(1, START, "a"), Event(2, STOP, "a"), Event(5, STOP, "a", location="row 3")]
    assert [str(note).startswith("row 3: 'a' stops without a start") for note in pair_events(PATH, events).notes] == [True]
    observed = annotate(events, length=8).observed.of("a")
    assert (observed.start.tolist(), observed.stop.tolist()) == ([0, 5], [2, 8])


def test_bouts_without_a_name_hide_their_time_and_points_are_dropped() -> None:
    events = [Event(1, START, ""), Event(3, STOP, " "), Event(3, STOP, ""), Event(4, POINT, ""), Event(5, POINT, "p")]
    observation = pair_events(PATH, events)
    assert observation.bouts.behavior == ["p"]
    assert any("point event without a behavior; dropped" in n.message for n in observation.notes)
    frames = annotate(events, length=6).observed.frames
    assert (frames.start.tolist(), frames.stop.tolist()) == ([3], [6])


def test_a_reversed_pair_becomes_zero_length_and_is_noted() -> None:
    events = [Event(5, START, "a", location="row 1"), Event(2, STOP, "a", location="row 2")]
    annotation, notes = pair_events(PATH, events).to_annotation(Ethogram(["a"]), 1.0)
    assert (annotation.start.tolist(), annotation.stop.tolist()) == ([5], [5])
    assert [str(n) for n in notes] == ["row 1: 'a' stops at 2, before its start at 5; read as a bout of zero length"]


@pytest.mark.parametrize(("kind", "time"), [("UNPAIRED", 1.0), ("", 1.0), (START, float("nan")), (POINT, 1e300), (POINT, float("-inf"))])
def test_invalid_events_are_errors_with_their_location(kind: str, time: float) -> None:
    with pytest.raises(FormatError, match="row 7"):
        pair_events(PATH, [Event(time, kind, "a", location="row 7")])


def test_starts_and_stops_alternate_in_time_order_and_points_do_not_count() -> None:
    events = [Event(5, "", "a"), Event(1, "", "a"), Event(2, POINT, "a"), Event(3, "", "a", "bob")]
    assert [(e.time, e.kind) for e in alternate_starts_and_stops(events)] == [(1, START), (2, POINT), (3, START), (5, STOP)]


def test_only_the_window_is_observed() -> None:
    annotation = annotate([Event(2, START, "a"), Event(4, STOP, "a")], length=10, window=(1, 6))
    assert (annotation.observed.frames.start.tolist(), annotation.observed.frames.stop.tolist()) == ([1], [6])


def test_an_offset_is_subtracted_only_if_the_times_include_it() -> None:
    assert event_logs.without_offset([100.5, 103.0], 100.0, 10.0) == ([0.5, 3.0], [])
    assert event_logs.without_offset([0.1 + 0.2], 0.3, 10.0) == ([0.0], [])
    assert event_logs.without_offset([-4.0], -5.0, 10.0) == ([1.0], [])
    times, notes = event_logs.without_offset([0.5, 3.0], 100.0, 10.0)
    assert times == [0.5, 3.0]
    assert "event times do not contain the time offset" in notes[0].message


def test_behaviors_with_only_points_are_point_behaviors() -> None:
    events = [Event(1, POINT, "p"), Event(2, POINT, "a"), Event(3, START, "a"), Event(4, START, "other"), Event(5, START, " ")]
    ethogram = event_logs.ethogram_of(events)
    assert [(b.name, b.point) for b in ethogram] == [("p", True), ("a", False), ("other", False)]
    assert ethogram.background_name == "other"


@st.composite
def annotations(draw: st.DrawFn) -> Annotation:
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 50), st.integers(0, 20), st.sampled_from("ab"), st.sampled_from(["", "ann"]), st.sampled_from(["", "x"])
            ),
            max_size=12,
        )
    )
    start = [row[0] for row in rows]
    return Annotation.from_bouts(
        start,
        [row[0] + row[1] for row in rows],
        [row[2] for row in rows],
        ["a", "b"],
        25.0,
        80,
        subject=[row[3] for row in rows],
        modifiers=[row[4] for row in rows],
    )


@given(annotations())
def test_events_round_trip_to_the_same_frames(a: Annotation) -> None:
    events, notes = event_logs.events_of(a, set())
    again, more = pair_events(PATH, alternate_starts_and_stops(events)).to_annotation(a.ethogram, a.rate, seconds=False, length=80)
    assert more == []
    assert (again.to_frames() == a.to_frames()).all()
    assert bool(notes) == (len(again) < len(a))
    for subject in ("", "ann"):
        if not subject or subject in a.subjects:
            assert (again.to_frames(subject=subject) == a.to_frames(subject=subject)).all()


@given(annotations())
def test_layers_keep_every_bout(a: Annotation) -> None:
    events, notes = event_logs.events_of(a, set(), layers=True)
    again, _ = pair_events(PATH, events).to_annotation(a.ethogram, a.rate, seconds=False, length=80)
    assert notes == []
    assert sorted(zip(again.start, again.stop, again.behavior, strict=True)) == sorted(zip(a.start, a.stop, a.behavior, strict=True))


def test_overlapping_bouts_of_one_track_become_one_and_that_is_noted() -> None:
    a = Annotation.from_bouts([0, 3, 9], [5, 8, 12], ["a"] * 3, ["a"], 25, 20, comment=["one", "two", ""])
    events, notes = event_logs.events_of(a, set())
    assert [(e.time, e.kind, e.comment) for e in events] == [(0, START, "one / two"), (8, STOP, ""), (9, START, ""), (12, STOP, "")]
    assert "1 bouts overlap" in notes[0].message


def test_losses_of_the_ethogram_are_reported() -> None:
    a = Annotation.from_bouts([0], [5], ["rest"], Ethogram(["rest", "fight"], background="rest"), 25, 20)
    notes = [note.message for note in event_logs.ethogram_losses("this", [a])]
    assert any("fight" in note for note in notes)
    assert any("'rest' will be read as an ordinary behavior" in note for note in notes)
    b = Annotation.from_bouts([0], [5], ["other"], ["other"], 25, 20)
    assert ["'other' will be read as background" in n.message for n in event_logs.ethogram_losses("this", [b])] == [True]


def test_clocks_that_are_too_fast_and_names_that_clash_are_refused() -> None:
    with pytest.raises(EthobenchError, match="microseconds"):
        event_logs.check_rate("this", 1e6)
    with pytest.raises(EthobenchError, match="several are called 'a'; rename them"):
        event_logs.check_ids("this", ["a", "b", "a"])
