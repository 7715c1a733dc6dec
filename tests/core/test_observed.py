"""Observed frames against sets of frames: which exception applies, renaming, joining."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Observed, Track
from ethobench.core import intervals as iv

N_FRAMES = 8
BEHAVIORS, SUBJECTS, TARGETS = ("a", "b", "c"), ("m1", "m2"), ("m1", "m2")
masks = st.lists(st.booleans(), min_size=N_FRAMES, max_size=N_FRAMES)
tracks = st.one_of(
    st.builds(Track, st.sampled_from(BEHAVIORS)),
    st.builds(Track, st.none(), st.sampled_from(SUBJECTS)),
    st.builds(Track, st.sampled_from(BEHAVIORS), st.sampled_from(SUBJECTS)),
    st.builds(Track, st.sampled_from(BEHAVIORS), st.sampled_from(SUBJECTS), st.sampled_from(TARGETS)),
)
sides = st.tuples(masks, st.dictionaries(tracks, masks, max_size=4))
queries = st.tuples(st.sampled_from(BEHAVIORS), st.sampled_from([None, *SUBJECTS]), st.sampled_from([None, *TARGETS]))


def build(side) -> Observed:
    frames, exceptions = side
    return Observed(iv.from_mask(frames), {track: iv.from_mask(mask) for track, mask in exceptions.items()})


def mask_of(spans) -> list[bool]:
    return iv.to_mask(spans, N_FRAMES).tolist()


def expected(side, behavior, subject, target) -> list[bool]:
    """Return the mask of the most specific exception; of any subject, the frames observed for all subjects with an exception."""
    frames, exceptions = side
    order = [Track(behavior, subject, target), Track(behavior, subject), Track(behavior)]
    for track in [*order, *([Track(None, subject)] if subject is not None else [])]:
        if track in exceptions:
            return exceptions[track]
    pairs = {(t.subject, t.target) for t in exceptions if t.subject is not None and t.behavior in (behavior, None)}
    if subject is None and pairs:
        return np.all([expected(side, behavior, *pair) for pair in pairs], axis=0).tolist()
    return frames


@given(sides, queries)
def test_the_most_specific_exception_applies(side, query):
    observed = build(side)
    assert mask_of(observed.of(*query)) == expected(side, *query)
    everything = [side[0], *side[1].values()]
    assert mask_of(observed.of_any()) == np.any(everything, axis=0).tolist()
    assert observed.is_complete(N_FRAMES) == bool(np.all(everything))
    subject = query[1]
    assert mask_of(observed.of_all(BEHAVIORS, subject)) == np.all([expected(side, b, subject, None) for b in BEHAVIORS], axis=0).tolist()
    assert observed == build(side)
    assert observed != Observed(iv.from_mask([not flag for flag in side[0]]), observed.tracks)
    assert observed != Observed(observed.frames, {**observed.tracks, Track("z"): iv.empty()})
    assert observed != side


@given(sides, sides)
def test_joined_frames_are_those_of_either_side(first, second):
    joined = build(first).join(build(second), N_FRAMES)
    assert iv.to_mask(joined.frames, 2 * N_FRAMES).tolist() == [*first[0], *second[0]]
    assert joined.tracks.keys() == {**first[1], **second[1]}.keys()
    for track, spans in joined.tracks.items():
        if track.behavior is not None:
            halves = [expected(side, *track) for side in (first, second)]
            assert iv.to_mask(spans, 2 * N_FRAMES).tolist() == [*halves[0], *halves[1]]


@given(sides)
def test_a_merged_behavior_is_observed_where_all_its_parts_were(side):
    renamed = build(side).rename({"a": "ab", "b": "ab"}, BEHAVIORS)
    assert mask_of(renamed.frames) == side[0]
    for track, spans in renamed.tracks.items():
        if track.behavior == "ab":
            halves = [expected(side, name, track.subject, track.target) for name in ("a", "b")]
            assert mask_of(spans) == np.all(halves, axis=0).tolist()
        else:
            assert mask_of(spans) == side[1][track]
    names = {"a": "ab", "b": "ab", "c": "c", None: None}
    assert renamed.tracks.keys() == {track._replace(behavior=names[track.behavior]) for track in side[1]}


@given(sides, st.sets(st.sampled_from(BEHAVIORS)))
def test_exceptions_of_other_behaviors_are_dropped(side, behaviors):
    kept = {track: mask for track, mask in side[1].items() if track.behavior is None or track.behavior in behaviors}
    assert build(side).restrict(behaviors) == build((side[0], kept))


def test_exceptions_of_other_behaviors_do_not_limit_a_behavior():
    observed = Observed(iv.intervals([0], [50]), {Track("a", "m1"): iv.intervals([0], [80]), Track("b", "m2"): iv.intervals([0], [10])})
    assert observed.of("a").stop.tolist() == [80]
    assert observed.of("b").stop.tolist() == [10]
    assert observed.of("c").stop.tolist() == [50]
