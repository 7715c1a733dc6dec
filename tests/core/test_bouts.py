"""Bouts as columns, against lists of rows: order, selection, merging, overlap, and the checks of columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Annotation, Behavior, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError, NotFoundError, ParameterError

N_FRAMES = 24
ETHOGRAM = Ethogram([Behavior("attack"), Behavior("mount"), Behavior("call", point=True)])
ANIMALS = ("m1", "m2", None)


def bout(parts):
    start, length, behavior, subject, target = parts
    point = ETHOGRAM[behavior].point
    return start, start if point else min(start + length, N_FRAMES), behavior, subject, target


rows_of_bouts = st.lists(
    st.tuples(
        st.integers(0, N_FRAMES), st.integers(1, 8), st.integers(0, 2), st.sampled_from(ANIMALS), st.sampled_from(ANIMALS)
    ).map(bout).filter(lambda row: row[0] < row[1] or ETHOGRAM[row[2]].point),
    max_size=10,
)  # fmt: skip


def annotate(rows, **options) -> Annotation:
    start, stop, behavior, subject, target = ([row[k] for row in rows] for k in range(5))
    comment = [f"row {k}" for k in range(len(rows))]
    columns = {"subject": subject, "target": target, "comment": comment, "subjects": ("m1", "m2"), **options}
    return Annotation.from_bouts(start, stop, np.array(behavior, dtype=int), ETHOGRAM, 10, N_FRAMES, **columns)


def rows_in(annotation: Annotation):
    subject, target = annotation.names(annotation.subject), annotation.names(annotation.target)
    columns = (annotation.start.tolist(), annotation.stop.tolist(), annotation.behavior.tolist(), subject, target)
    return [*zip(*columns, strict=True)]


def sort_key(row):
    code = {"m1": 0, "m2": 1, None: -1}
    return row[0], row[1], row[2], code[row[3]], code[row[4]]


def frames_of(rows):
    return {frame for row in rows for frame in range(row[0], row[1])}


@given(rows_of_bouts)
def test_bouts_are_sorted_and_details_stay_with_their_bout(rows):
    annotation = annotate(rows)
    order = sorted(range(len(rows)), key=lambda k: (*sort_key(rows[k]), k))
    assert rows_in(annotation) == [rows[k] for k in order]
    assert annotation.order.tolist() == order
    assert (annotation.comment is None) == (not rows)
    assert not rows or annotation.comment.tolist() == [f"row {k}" for k in order]
    tracks = {(ETHOGRAM[b].name, s, t) for _, _, b, s, t in rows}
    assert annotation.tracks() == sorted(tracks, key=lambda t: sort_key((0, 0, ETHOGRAM.code(t[0]), *t[1:])))


@given(rows_of_bouts, st.data())
def test_selections_are_those_of_the_rows(rows, data):
    annotation = annotate(rows)
    ordered = rows_in(annotation)
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    expected = [row for row, is_kept in zip(ordered, mask, strict=True) if is_kept]
    assert rows_in(annotation.take(np.array(mask, dtype=bool))) == expected
    assert rows_in(annotation.take(mask)) == expected
    assert rows_in(annotation.take(np.flatnonzero(mask))) == expected
    assert rows_in(annotation.take([])) == []
    subject, target = data.draw(st.sampled_from([None, "", "m1", "m2"])), data.draw(st.sampled_from([None, "", "m1", "m2"]))
    selected = [row for row in ordered if (subject is None or (row[3] or "") == subject) and (target is None or (row[4] or "") == target)]
    assert rows_in(annotation.select(subject, target)) == selected
    spans = annotation.spans("mount", subject, target)
    assert [*zip(*(column.tolist() for column in spans), strict=True)] == [row[:2] for row in selected if row[2] == 1]
    shorter_than = data.draw(st.integers(0, 9))
    assert rows_in(annotation.drop_short(shorter_than)) == [r for r in ordered if r[2] == 2 or r[1] - r[0] >= shorter_than]


@given(rows_of_bouts, st.integers(0, 5))
def test_merging_joins_the_bouts_of_each_track(rows, gap):
    annotation = annotate(rows)
    expected = [row for row in rows_in(annotation) if row[0] == row[1]]
    comments = {}
    for track in {row[2:] for row in rows}:
        merged: list[list[int]] = []
        for k, (start, stop, *rest) in enumerate(rows_in(annotation)):
            if tuple(rest) != track or start == stop:
                continue
            if merged and (start <= merged[-1][1] or start - merged[-1][1] < gap):
                merged[-1][1] = max(merged[-1][1], stop)
            else:
                merged.append([start, stop])
                comments[start, track] = annotation.comment[k]
        expected += [(*span, *track) for span in merged]
    result = annotation.merge_gaps(gap)
    assert rows_in(result) == sorted(expected, key=sort_key)
    details = zip(rows_in(result), result.comment if rows else (), strict=True)
    assert all(comment == comments[row[0], row[2:]] for row, comment in details if row[0] < row[1])
    if gap < 2:
        assert rows_in(annotation.merge_touching()) == rows_in(result)


@given(rows_of_bouts)
def test_exclusive_means_that_no_subject_shows_two_behaviors_at_once(rows):
    overlaps = any(
        first[3] == second[3] and first[2] != second[2] and frames_of([first]) & frames_of([second]) for first in rows for second in rows
    )
    assert annotate(rows).is_exclusive == (not overlaps)


@given(rows_of_bouts)
def test_subjects_are_removed_or_set_for_all_bouts(rows):
    annotation = annotate(rows)
    without = annotation.without_subjects()
    assert without.subjects == ()
    assert rows_in(without) == sorted([(*row[:3], None, None) for row in rows], key=sort_key)
    anonymous = without.with_subject("m9")
    assert anonymous.subjects == ("m9",)
    assert rows_in(anonymous) == [(*row[:3], "m9", None) for row in rows_in(without)]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"start": ["a"]}, MismatchError, "must be numbers"),
        ({"start": [[0]]}, MismatchError, "1 axis, got 2"),
        ({"start": [np.nan]}, MismatchError, "missing or infinite"),
        ({"start": [0.5]}, MismatchError, "frame numbers"),
        ({"start": [-1]}, MismatchError, r"bout 0 \(frames -1 to 3\) starts before the recording; 1 such"),
        ({"stop": [N_FRAMES + 1]}, MismatchError, f"stops after the last of {N_FRAMES} frames"),
        ({"start": [4]}, MismatchError, "stops before it starts"),
        ({"behavior": [3]}, NotFoundError, "from 0 to 2, got 3 to 3"),
        ({"behavior": [-1]}, NotFoundError, "from 0 to 2, got -1 to -1"),
        ({"behavior": np.array(["bite"])}, NotFoundError, "no behavior 'bite'"),
        ({"subject": "m"}, MismatchError, "the text 'm'"),
        ({"subject": ["m1", "m2"]}, MismatchError, "1 bouts, but 2 values of `subject`"),
        ({"confidence": ["high"]}, MismatchError, "one number per bout"),
        ({"comment": []}, MismatchError, "0 values of `comment`"),
        ({"observed": np.ones(N_FRAMES - 1, dtype=bool)}, MismatchError, "the mask of observed frames has shape"),
        ({"rate": 0}, ParameterError, "positive number"),
        ({"rate": np.inf}, ParameterError, "positive number"),
        ({"rate": "10"}, ParameterError, "positive number"),
        ({"n_frames": -1}, ParameterError, "integer >= 0"),
        ({"n_frames": 24.5}, ParameterError, "integer >= 0"),
        ({"n_frames": np.nan}, ParameterError, "integer >= 0"),
    ],
)
def test_invalid_columns_are_refused(columns, error, message):
    valid = {"start": [0], "stop": [3], "behavior": [1], "ethogram": ETHOGRAM, "rate": 10, "n_frames": N_FRAMES}
    with pytest.raises(error, match=message):
        Annotation.from_bouts(**{**valid, **columns})


def test_columns_at_the_limits_are_accepted():
    columns = {"behavior": np.array(["attack", "call"]), "confidence": [np.nan, 0.5], "modifiers": ["", None]}
    annotation = Annotation.from_bouts([0.0, 24], [24, 24], ethogram=ETHOGRAM, rate=0.5, n_frames=N_FRAMES, **columns)
    assert annotation.stop.tolist() == [24, 24]
    assert annotation.behavior.tolist() == [0, 2]
    assert annotation.confidence[1] == 0.5
    assert annotation.modifiers is None
    assert annotation.duration == 48
    assert len(Annotation.from_bouts([], [], [], ETHOGRAM, 10, 0)) == 0
    observed = Annotation.from_bouts([], [], [], ETHOGRAM, 10, 5, observed=iv.intervals([-3, 4], [2, 9])).observed
    assert [column.tolist() for column in observed.frames] == [[0, 4], [2, 5]]


def test_annotations_are_equal_if_all_columns_are():
    rows = [(0, 5, 0, "m1", None), (7, 9, 1, None, "m2")]
    assert annotate(rows, confidence=[np.nan, 0.5]) == annotate(rows, confidence=[np.nan, 0.5])
    assert annotate(rows, confidence=[0.4, 0.5]) != annotate(rows, confidence=[np.nan, 0.5])
    assert annotate(rows) != annotate(rows, confidence=[0.4, 0.5])
    assert annotate(rows) != annotate(rows, comment=["row 0", "other"])
    assert annotate(rows) != rows


@pytest.mark.parametrize(
    ("frames", "unobserved", "codes"),
    [
        ([0, 1, 2, 3], None, [0, 1, 2, 3]),
        ([0.0, np.nan, 2.0], np.nan, [0, -1, 2]),
        ([[1, 0, 0], [9, 9, 9], [0, 0, 1]], 9, [0, -1, 2]),
        ([[1, 0, 0], [np.nan] * 3, [0, 0, 0]], np.nan, [0, -1, 3]),
        ([0, 7, 1], [False, True, False], [0, -1, 1]),
    ],
)
def test_frames_are_bouts_or_unobserved(frames, unobserved, codes):
    assert Annotation.from_frames(frames, ETHOGRAM.names, 10, unobserved=unobserved).to_codes().tolist() == codes


@pytest.mark.parametrize(
    ("frames", "options", "error", "message"),
    [
        ([0, 4], {}, NotFoundError, "frame 1 has code 4, but codes must be from 0 to 2"),
        ([0, 0, -1], {}, NotFoundError, "frame 2 has code -1"),
        ([0, 0.5], {}, MismatchError, "must be integers"),
        ([0, np.nan], {}, MismatchError, "must be integers"),
        ([[1, 0, 0], [2, 0, 0]], {}, MismatchError, "must be 0 or 1"),
        ([[1, 0, 0], [9, 9, 0]], {"unobserved": 9}, MismatchError, "must be 0 or 1"),
        ([0, 1], {"unobserved": [True]}, MismatchError, "the mask of unobserved frames has shape"),
        ([[1, 0]], {}, MismatchError, "2 columns for 3 behaviors"),
        ([[[1, 0, 0]]], {}, MismatchError, "got 3"),
        (["attack"], {}, MismatchError, "must be numbers"),
    ],
)
def test_invalid_frames_are_refused(frames, options, error, message):
    with pytest.raises(error, match=message):
        Annotation.from_frames(frames, ETHOGRAM.names, 10, **options)
