"""Annotations against frame arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Annotation, Behavior, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError

NAMES = ["attack", "mount", "other"]
codes = st.lists(st.integers(-1, 3), min_size=0, max_size=60).map(lambda v: np.array(v, dtype=np.int64))
onehots = st.integers(0, 50).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=n, max_size=n).map(
        lambda rows: np.array(rows, dtype=bool).reshape(-1, 3)
    )
)


def of(values, **options) -> Annotation:
    return Annotation.from_frames(values, Ethogram(NAMES), 10, **options)


@given(codes)
def test_codes_round_trip(values):
    assert of(values, unobserved=-1).to_codes().tolist() == values.tolist()


@given(onehots)
def test_one_hot_round_trip(values):
    annotation = of(values)
    assert np.array_equal(annotation.to_frames(), values)
    assert annotation.is_exclusive == bool((values.sum(axis=1) <= 1).all())


@given(codes, st.data())
def test_crop_is_slicing(values, data):
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    assert of(values, unobserved=-1).crop(start, stop).to_codes().tolist() == values[start:stop].tolist()


@given(codes, st.data())
def test_shift_moves_frames_and_leaves_unobserved_ones(values, data):
    step = data.draw(st.integers(-len(values) - 1, len(values) + 1))
    expected = np.full(len(values), -1)
    if step >= 0:
        expected[step:] = values[: max(len(values) - step, 0)]
    else:
        expected[: max(len(values) + step, 0)] = values[-step:]
    assert of(values, unobserved=-1).shift(step).to_codes().tolist() == expected.tolist()


@given(codes, codes)
def test_concatenate_appends_frames(first, second):
    joined = of(first, unobserved=-1).concatenate(of(second, unobserved=-1))
    assert joined.to_codes().tolist() == [*first.tolist(), *second.tolist()]


@given(codes, st.integers(1, 4))
def test_resample_by_an_integer_factor_repeats_frames(values, factor):
    annotation = of(values, unobserved=-1)
    finer = annotation.resample(10 * factor)
    assert finer.to_codes().tolist() == np.repeat(values, factor).tolist()
    assert finer.resample(10) == annotation


@given(onehots)
def test_rename_merges_as_or(values):
    merged = of(values).rename({"mount": "attack"})
    assert merged.ethogram.names == ("attack", "other")
    expected = np.column_stack([values[:, 0] | values[:, 1], values[:, 2]])
    assert np.array_equal(merged.to_frames(), expected)


@given(onehots, st.permutations(NAMES))
def test_restrict_selects_columns(values, order):
    kept = of(values).restrict(order[:2])
    assert np.array_equal(kept.to_frames(), values[:, [NAMES.index(n) for n in order[:2]]])


@given(onehots, st.integers(0, 6))
def test_merge_gaps_and_drop_short_per_behavior(values, size):
    annotation = of(values)
    merged, dropped = annotation.merge_gaps(size), annotation.drop_short(size)
    for code in range(3):
        mask = iv.from_mask(values[:, code])
        assert np.array_equal(merged.to_frames()[:, code], iv.to_mask(iv.fill_gaps(mask, size), len(values)))
        long = mask.stop - mask.start >= size
        assert dropped.spans(code).start.tolist() == mask.start[long].tolist()


def test_touching_bouts_stay_separate_until_merged():
    a = Annotation.from_bouts([0, 5, 3], [5, 9, 6], ["attack"] * 3, NAMES, 10, 20, comment=["first", "", ""])
    assert len(a) == 3
    merged = a.merge_touching()
    assert merged.start.tolist() == [0]
    assert merged.stop.tolist() == [9]
    assert merged.comment.tolist() == ["first"]
    assert np.array_equal(a.to_frames(), merged.to_frames())


def test_columns_are_sorted_and_frozen():
    a = Annotation.from_bouts([9, 1], [10, 4], ["mount", "attack"], NAMES, 10, 20, subject=["b", "a"], confidence=[0.1, 0.9])
    assert a.start.tolist() == [1, 9]
    assert a.order.tolist() == [1, 0]
    assert a.names(a.subject) == ["a", "b"]
    assert a.confidence.tolist() == [0.9, 0.1]
    with pytest.raises(ValueError, match="read-only"):
        a.start[0] = 3


def test_equal_annotations_built_in_another_order_differ_only_in_order():
    a = Annotation.from_bouts([1, 9], [4, 10], [0, 1], NAMES, 10, 20)
    b = Annotation.from_bouts([9, 1], [10, 4], [1, 0], NAMES, 10, 20, order=[1, 0])
    assert a == b
    assert a != b.crop(0, 19)
    assert a != "something else"


def test_subjects_and_targets_are_separate_tracks():
    a = Annotation.from_bouts(
        [0, 2, 5], [4, 6, 8], ["attack", "mount", "attack"], NAMES, 10, 10, subject=["m1", "m2", ""], target=["m2", None, None]
    )
    assert a.is_exclusive
    assert a.tracks() == [("attack", None, None), ("attack", "m1", "m2"), ("mount", "m2", None)]
    assert a.to_frames(subject="m1")[:, 0].sum() == 4
    assert a.to_frames(target="m2").sum() == 4
    assert a.to_frames(subject="").sum() == 3
    assert not a.without_subjects().is_exclusive
    with pytest.raises(NotFoundError, match="available: m1, m2"):
        a.select(subject="m3")


def test_background_fills_observed_frames_only():
    ethogram = Ethogram(NAMES, background="other")
    a = Annotation.from_bouts([2], [4], ["attack"], ethogram, 10, 8, observed=iv.intervals([0], [6]))
    assert a.to_codes().tolist() == [2, 2, 0, 0, 2, 2, -1, -1]
    assert a.to_frames()[:, 2].tolist() == [True, True, False, False, True, True, False, False]


def test_point_events_hold_no_frame_and_survive():
    ethogram = Ethogram([Behavior("bite", point=True), "mount"])
    a = Annotation.from_bouts([3, 5], [3, 9], [0, 1], ethogram, 10, 10)
    assert a.to_frames()[:, 0].sum() == 0
    assert len(a.drop_short(3)) == 2
    assert a.crop(2, 5).start.tolist() == [1]
    assert len(a.crop(0, 3)) == 0
    assert len(a.merge_touching()) == 2
    assert a.resample(100).start.tolist() == [30, 50]


def test_overlapping_behaviors_have_no_single_code():
    a = Annotation.from_bouts([0, 2], [4, 6], [0, 1], NAMES, 10, 10)
    with pytest.raises(MismatchError, match="2 frames have two behaviors"):
        a.to_codes()


@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [([5], [3], "stops before it starts"), ([-1], [3], "starts before the recording"), ([5], [30], "after the last of 20 frames")],
)
def test_bouts_outside_the_recording_are_refused(start, stop, message):
    with pytest.raises(MismatchError, match=message):
        Annotation.from_bouts(start, stop, [0], NAMES, 10, 20)


def test_invalid_input_is_explained():
    with pytest.raises(NotFoundError, match="did you mean 'attack'"):
        Annotation.from_bouts([0], [1], ["atack"], NAMES, 10, 20)
    with pytest.raises(MismatchError, match="must be frame numbers"):
        Annotation.from_bouts([0.5], [1], [0], NAMES, 10, 20)
    with pytest.raises(NotFoundError, match="frame 1 has code 7"):
        of([0, 7])
    with pytest.raises(EthobenchError, match="must be 0 or 1"):
        of([[0.5, 0, 0]])
    with pytest.raises(EthobenchError, match="positive number of frames per second"):
        Annotation.from_frames([0], NAMES, 0)
    with pytest.raises(MismatchError, match="has 2 columns for 3"):
        of([[0, 1]])
    with pytest.raises(MismatchError, match="3 values of `comment`"):
        Annotation.from_bouts([0], [1], [0], NAMES, 10, 20, comment=["a", "b", "c"])


def test_observed_per_behavior():
    observed = Observed(iv.full(10), {Track("mount"): iv.intervals([0], [4])})
    a = Annotation.from_bouts([1, 6], [2, 8], ["mount", "attack"], NAMES, 10, 10, observed=observed)
    assert a.observed.of("attack").stop.tolist() == [10]
    assert a.observed.of("mount", subject="m1").stop.tolist() == [4]
    assert a.to_codes().tolist() == [3, 1, 3, 3, -1, -1, 0, 0, -1, -1]
    assert a.crop(2, 10).observed.of("mount").stop.tolist() == [2]
    assert a.restrict(["attack"]).observed == Observed.full(10)
    assert a.rename({"mount": "attack"}).observed.of("attack").stop.tolist() == [4]
    assert a.rename({"mount": "ride"}).observed.of("ride").stop.tolist() == [4]
    assert a.concatenate(a).observed.of("mount").start.tolist() == [0, 10]


def test_observed_per_subject_applies_unless_something_more_specific_is_stated():
    observed = Observed(iv.full(10), {Track(None, "m1"): iv.intervals([0], [5]), Track("mount", "m1"): iv.intervals([0], [2])})
    assert observed.of("attack", "m1").stop.tolist() == [5]
    assert observed.of("mount", "m1", "m2").stop.tolist() == [2]
    assert observed.of("mount", "m2").stop.tolist() == [10]


def test_overlay_keeps_the_observed_frames_of_each():
    a = Annotation.from_bouts([0], [4], [0], ["attack"], 10, 10, subject=["m1"], observed=iv.intervals([0], [5]))
    b = Annotation.from_bouts([2], [6], [0], ["attack"], 10, 10, subject=["m2"])
    both = a.overlay(b)
    assert both.tracks() == [("attack", "m1", None), ("attack", "m2", None)]
    assert both.observed.of("attack", "m1").stop.tolist() == [5]
    assert both.observed.of("attack", "m2").stop.tolist() == [10]
    with pytest.raises(MismatchError, match="differ in length or rate"):
        a.overlay(b.crop(0, 9))


def test_with_ethogram_finds_behaviors_by_name():
    a = Annotation.from_bouts([0], [4], [0], ["attack", "unused"], 10, 10)
    assert a.with_ethogram(Ethogram(["mount", "attack"])).behavior.tolist() == [1]
    with pytest.raises(NotFoundError, match="'attack'"):
        a.with_ethogram(Ethogram(["mount"]))


def test_appending_another_rate_is_refused():
    with pytest.raises(MismatchError, match="resample first"):
        of([0]).concatenate(of([0]).resample(20))


def test_notes_on_one_side_survive_being_joined():
    detailed = Annotation.from_bouts([0], [5], ["a"], ["a"], rate=10, n_frames=10, modifiers=["loud"], comment=["why"])
    plain = Annotation.from_bouts([2], [4], ["a"], ["a"], rate=10, n_frames=10)
    assert detailed.concatenate(plain).modifiers.tolist() == ["loud", ""]
    assert plain.concatenate(detailed).comment.tolist() == ["", "why"]


def test_overlay_and_join_keep_observed_frames():
    first = Annotation.from_bouts([0], [5], ["A"], ["A"], 10, 10, observed=iv.intervals([0], [5]))
    second = Annotation.from_bouts([6], [9], ["A"], ["A"], 10, 10, observed=iv.intervals([5], [10]))
    assert first.overlay(second).observed.of("A").stop.tolist() == [10]
    a = Observed(iv.full(10), {Track("A"): iv.empty()})
    b = Observed(iv.full(10), {Track("A", "m1"): iv.intervals([0], [5])})
    assert a.join(b, 10).of("A", "m1").start.tolist() == [10]


def test_point_events_at_the_end_survive_cropping():
    bite = Annotation.from_bouts([100], [100], ["bite"], Ethogram([Behavior("bite", point=True)]), 30, 100)
    assert len(bite.crop(0, 100)) == 1
    assert len(bite.shift(0)) == 1
    assert len(bite.crop(0, 99)) == 0


def test_invalid_frames_bouts_and_clocks_are_refused():
    for frames in (["0", "1"], [[0.2, 0.8, 0.0]], [0.0, np.nan], [[1.0, np.nan, 0.0]]):
        with pytest.raises(EthobenchError):
            of(frames)
    with pytest.raises(MismatchError, match="mask of unobserved frames"):
        Annotation.from_frames([0, 1], ["x", "y"], 1, unobserved=np.array([True]))
    for clock in ({"rate": "30"}, {"rate": None}, {"n_frames": float("nan")}):
        with pytest.raises(EthobenchError):
            Annotation.from_bouts([0], [1], [0], ["x"], **{"rate": 10, "n_frames": 5, **clock})
    for options in ({"confidence": ["x"]}, {"subject": "m1"}):
        with pytest.raises(MismatchError):
            Annotation.from_bouts([0], [1], [0], ["x"], 10, 5, **options)
    for start, behavior in (([None], [0]), ([0], [0.7]), ([float("nan")], [0])):
        with pytest.raises(MismatchError):
            Annotation.from_bouts(start, [1], behavior, ["x"], 10, 5)


def test_missing_subjects_and_single_names_are_accepted():
    assert Annotation.from_bouts([0], [1], [0], ["x"], 10, 5, subject=[float("nan")]).subjects == ()
    assert Annotation.from_frames([1], ["x"], 10, subject="m1").subjects == ("m1",)
    assert Annotation.from_frames([0.0, np.nan], ["x"], 10, unobserved=np.nan).to_codes().tolist() == [0, -1]
    assert Annotation.from_frames([0], ["attack"], 1).restrict("attack").ethogram.names == ("attack",)


def test_cropping_drops_bouts_that_only_touch_the_window():
    bouts = Annotation.from_bouts([0, 10, 20], [10, 20, 30], ["a", "b", "a"], ["a", "b"], rate=10, n_frames=40)
    cropped = bouts.crop(10, 20)
    assert (cropped.start.tolist(), cropped.stop.tolist(), cropped.n_frames) == ([0], [10], 10)


def test_selecting_a_subject_keeps_its_targets_and_what_was_observed_of_it() -> None:
    tracks = {Track("attack", "a"): iv.intervals([0], [6]), Track("attack", "b"): iv.intervals([0], [3])}
    annotation = Annotation.from_bouts(
        [0, 1, 2],
        [2, 3, 5],
        ["attack"] * 3,
        ["attack"],
        1,
        10,
        subject=["a", "b", "a"],
        target=["c", "a", ""],
        observed=Observed(iv.full(10), tracks),
    )
    selected = annotation.select_subject("a")
    assert (selected.start.tolist(), selected.subjects) == ([0, 2], ("a", "c"))
    assert selected.names(selected.target) == ["c", None]
    assert iv.total(selected.observed.of("attack", "a")) == iv.total(selected.observed.of("attack")) == 6
    with pytest.raises(NotFoundError, match="subjects: 'a', 'b', 'c'"):
        annotation.select_subject("d")


point_rows = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.sampled_from(["m1", "m2", ""])), max_size=8)


def with_points(rows, n_frames=20) -> Annotation:
    """Return bouts of "a", and point events "p" where both ends are equal."""
    spans = [(min(a, b), max(a, b), subject) for a, b, subject in rows]
    ethogram = Ethogram([Behavior("a"), Behavior("p", point=True)])
    columns = {"subject": [row[2] for row in spans], "comment": [f"row {k}" for k in range(len(spans))], "subjects": ["m1", "m2"]}
    names = ["p" if start == stop else "a" for start, stop, _ in spans]
    return Annotation.from_bouts([s[0] for s in spans], [s[1] for s in spans], names, ethogram, 10, n_frames, **columns)


def row_set(annotation):
    names = annotation.names(annotation.subject)
    comments = annotation.comment if annotation.comment is not None else [""] * len(annotation)
    return sorted(zip(annotation.start.tolist(), annotation.stop.tolist(), [n or "" for n in names], comments, strict=True))


@given(point_rows, st.integers(0, 20), st.integers(0, 20))
def test_crop_cuts_bouts_and_keeps_the_events_inside(rows, first, last):
    start, stop = min(first, last), max(first, last)
    annotation = with_points(rows)
    expected = []
    for onset, offset, name, comment in row_set(annotation):
        low, high = max(onset, start), min(offset, stop)
        is_inside = start <= onset < stop or (onset == stop == 20) if onset == offset else low < high
        if is_inside:
            expected.append((low - start, high - start, name, comment))
    cropped = annotation.crop(start, stop)
    assert row_set(cropped) == sorted(expected)
    assert cropped.n_frames == stop - start
    assert iv.total(cropped.observed.frames) == stop - start


@given(point_rows, point_rows)
def test_concatenate_and_overlay_keep_every_bout(first, second):
    a, b = with_points(first), with_points(second)
    moved = [(start + 20, stop + 20, name, comment) for start, stop, name, comment in row_set(b)]
    joined = a.concatenate(b)
    assert row_set(joined) == sorted([*row_set(a), *moved])
    assert joined.n_frames == 40
    assert sorted(joined.order.tolist()) == [*range(len(a) + len(b))]
    assert row_set(a.overlay(b)) == sorted([*row_set(a), *row_set(b)])
    assert a.overlay(b).n_frames == 20


@given(point_rows, st.sampled_from([3, 5, 10, 15, 40]))
def test_resample_rounds_every_boundary_half_up(rows, rate):
    annotation = with_points(rows).with_observed(iv.intervals([0, 9], [7, 20]))
    resampled = annotation.resample(rate)

    def scaled(frame):
        return (2 * frame * rate + 10) // 20

    assert row_set(resampled) == sorted((scaled(a), scaled(b), name, comment) for a, b, name, comment in row_set(annotation))
    assert (resampled.rate, resampled.n_frames) == (rate, scaled(20))
    expected = iv.union(iv.intervals([scaled(0), scaled(9)], [scaled(7), scaled(20)]))
    assert [c.tolist() for c in resampled.observed.frames] == [c.tolist() for c in expected]


@pytest.mark.parametrize("window", [(-1, 5), (6, 5), (0, 21), (0.5, 5), (0, 5.5)])
def test_windows_outside_the_recording_are_refused(window):
    with pytest.raises(MismatchError, match="cannot crop frames"):
        with_points([(1, 4, "")]).crop(*window)


def test_recordings_are_lengthened_but_not_shortened():
    annotation = with_points([(1, 4, "")])
    assert annotation.extend(20) == annotation
    assert annotation.extend(25).observed.frames.stop.tolist() == [20]
    with pytest.raises(MismatchError, match="cannot extend 20 frames to 19"):
        annotation.extend(19)


@pytest.mark.parametrize("other", [with_points([], n_frames=21), with_points([]).resample(5).extend(20)])
def test_annotations_of_another_clock_are_not_overlaid(other):
    with pytest.raises(MismatchError, match="differ in length or rate"):
        with_points([]).overlay(other)


def test_notebooks_show_the_time_of_each_behavior():
    html = of(np.repeat([0, 1, 3], [5, 10, 5]))._repr_html_()
    assert "<td>attack</td><td>1</td><td>0.5</td><td>25.0%</td>" in html
    assert "<td>mount</td><td>1</td><td>1</td><td>50.0%</td>" in html
    assert "<td>attack</td><td>0</td><td>0</td><td>-</td>" in of([])._repr_html_()


@pytest.mark.parametrize("background", [None, "other"])
def test_codes_of_a_subject_are_those_of_its_bouts_where_it_was_observed(background):
    observed = Observed(iv.full(10), {Track(subject="m2"): iv.intervals([0], [6]), Track("mount", "m1"): iv.intervals([2], [10])})
    annotation = Annotation.from_bouts(
        [0, 5, 1, 4], [3, 7, 3, 8], ["attack", "mount", "mount", "attack"], Ethogram(NAMES, background), 10, 10,
        subject=["m1", "m1", "m2", "m2"], target=["m2", None, None, None], observed=observed,
    )  # fmt: skip
    none = 3 if background is None else 2
    assert annotation.to_codes("m1").tolist() == [0, 0, 0, none, none, 1, 1, none, none, none]
    assert annotation.to_codes("m2").tolist() == [none, 1, 1, none, 0, 0, -1, -1, -1, -1]
    assert annotation.to_codes("m1", "m2").tolist()[5] == none
    frames = annotation.to_frames("m1")
    assert frames[:, 0].tolist() == [True] * 3 + [False] * 7
    assert frames[:, 2].tolist() == [background is not None and t in (3, 4, 7, 8, 9) for t in range(10)]
    with pytest.raises(MismatchError, match=r"3 frames have two behaviors \(first: frame 1\)"):
        annotation.to_codes()


@pytest.mark.parametrize("step", [-25, -20, -3, 0, 1, 4, 20, 25])
def test_shift_moves_bouts_and_events(step):
    annotation = with_points([(0, 5, "m1"), (6, 6, ""), (4, 12, "m2"), (15, 20, "")])
    expected = []
    for onset, offset, name, comment in row_set(annotation):
        low, high = max(onset + step, 0), min(offset + step, 20)
        if low < high or (onset == offset and 0 <= onset + step < 20):
            expected.append((low, high, name, comment))
    moved = annotation.shift(step)
    assert row_set(moved) == sorted(expected)
    assert moved.n_frames == 20
    assert iv.to_mask(moved.observed.frames, 20).tolist() == [0 <= frame - step < 20 for frame in range(20)]


def test_frames_without_behaviors_have_no_bouts():
    assert len(Annotation.from_frames(np.zeros((5, 0), dtype=bool), Ethogram([]), 10)) == 0


@given(st.integers(0, 10**6))
def test_one_subject_keeps_its_bouts_and_their_targets(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 9))
    names = ["m1", "m2", "m3", None]
    who, whom = ([names[k] for k in rng.integers(0, 4, n)] for _ in range(2))
    start = np.sort(rng.integers(0, 90, n))
    a = Annotation.from_bouts(start, start + 5, rng.integers(0, 2, n), ["a", "b"], 10, 100, subject=who, target=whom, subjects=names[:3])
    if "m1" not in who:
        return
    one = a.select_subject("m1")
    rows = [(s, t) for s, w, t in zip(start.tolist(), who, whom, strict=True) if w == "m1"]
    assert sorted(zip(one.start.tolist(), map(str, one.names(one.target)), strict=True)) == sorted((s, str(t)) for s, t in rows)
    assert {*one.names(one.subject)} <= {"m1", None}
    assert {*one.subjects} == {"m1", *(t for _, t in rows if t)}
