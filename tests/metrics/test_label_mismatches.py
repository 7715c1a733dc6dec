"""Labels that only one annotator uses are reported, with the label that probably means the same."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Behavior, Ethogram
from ethobench.core.errors import MismatchError
from ethobench.metrics.label_mismatches import find_label_mismatches, label_notes, similar_label_notes


def bouts(*spans: tuple[int, int, str], names: tuple[str, ...] = (), n: int = 1000, background: str | None = None) -> Annotation:
    start, stop, labels = zip(*spans, strict=True) if spans else ((), (), ())
    ethogram = Ethogram(dict.fromkeys([*labels, *names, *([background] if background else [])]), background)
    return Annotation.from_bouts(start, stop, labels, ethogram, 10, n)


def mismatches(**annotators: Annotation) -> list[tuple[str, str]]:
    return [(m.label, m.counterpart) for m in find_label_mismatches({"r": annotators})]


def test_labels_that_overlap_in_time_belong_together_whatever_their_names():
    anna = bouts((0, 100, "x1"), (300, 400, "x1"), (500, 700, "x2"))
    ben = bouts((10, 110, "groom"), (310, 390, "groom"), (510, 700, "walk"))
    assert mismatches(anna=anna, ben=ben) == [("x2", "walk"), ("x1", "groom")]
    (first, second) = label_notes({"r": {"anna": anna, "ben": ben}})
    assert "only anna uses 'x2'; only ben uses 'walk'; they overlap 97% of the time: the same behavior?" in str(first)
    assert str(first).endswith("(rename={'x2': 'walk'})")
    assert "'x1'" in str(second)


@pytest.mark.parametrize(
    ("code", "name"), [("i", "interact"), ("groom", "grooming"), ("Rear", "rear"), ("ss", "social sniffing"), ("head_dip", "head dip")]
)
def test_names_that_are_similar_belong_together_unless_they_never_overlap(code, name):
    assert mismatches(anna=bouts((0, 100, code)), ben=bouts((60, 400, name))) == [(code, name)]
    apart = mismatches(anna=bouts((0, 100, code)), ben=bouts((500, 600, name)))
    assert sorted(apart) == sorted([(code, ""), (name, "")])


def test_labels_that_overlap_no_more_than_by_chance_do_not_belong_together():
    anna, ben = bouts((0, 900, "walk")), bouts((50, 150, "eat"), (880, 950, "eat"))
    assert sorted(mismatches(anna=anna, ben=ben)) == [("eat", ""), ("walk", "")]
    assert [str(n) for n in label_notes({"r": {"anna": anna, "ben": ben}})] == ["only anna uses 'walk'", "only ben uses 'eat'"]


def test_a_behavior_in_the_ethogram_that_does_not_occur_is_not_a_mismatch():
    anna, ben = bouts((0, 100, "groom"), (200, 300, "rear")), bouts((0, 90, "groom"), names=("rear",))
    assert mismatches(anna=anna, ben=ben) == []


def test_backgrounds_of_different_names_are_not_a_mismatch():
    anna = bouts((0, 100, "groom"), (100, 1000, "other"), background="other")
    ben = bouts((0, 90, "groom"), (90, 1000, "none"), background="none")
    assert mismatches(anna=anna, ben=ben) == []


def test_point_events_overlap_within_half_a_second():
    sides = []
    for name, times in (("b", [100, 300, 500]), ("bite", [102, 301, 498])):
        sides.append(Annotation.from_bouts(times, times, [0] * 3, Ethogram([Behavior(name, point=True)]), 10, 1000))
    assert mismatches(anna=sides[0], ben=sides[1]) == [("b", "bite")]


def test_several_annotators_are_named_together():
    interact = bouts((0, 100, "interact"))
    (note,) = label_notes({"r": {"anna": bouts((0, 90, "i")), "ben": interact, "carla": interact}})
    assert "only anna uses 'i'; only ben and carla use 'interact'" in str(note)


def test_annotators_of_different_recordings_are_not_compared():
    assert find_label_mismatches({"r1": {"anna": bouts((0, 9, "i"))}, "r2": {"ben": bouts((0, 9, "interact"))}}) == []


def test_similar_labels_in_different_recordings():
    (note,) = similar_label_notes([bouts((0, 9, "groom")), bouts((0, 9, "grooming"), (20, 30, "rear")), bouts((0, 9, "grooming"))])
    assert "either 'groom' or 'grooming'" in str(note)
    assert "rename={'groom': 'grooming'}" in str(note)
    assert similar_label_notes([bouts((0, 9, "bout 1")), bouts((0, 9, "bout 2"))]) == []
    assert similar_label_notes([bouts((0, 9, "groom"), (10, 20, "grooming")), bouts((0, 9, "groom"))]) == []


def test_agreement_and_score_have_notes():
    """Without a note, the kappa is 0 and the reason is not apparent."""
    anna, ben = bouts((0, 100, "i"), (400, 500, "i")), bouts((0, 90, "interact"), (400, 500, "interact"))
    result = eb.agreement({"anna": anna, "ben": ben})
    assert result.kappa("anna", "ben", "i") == pytest.approx(0, abs=0.1)
    assert "rename={'i': 'interact'}" in str(result.notes[0])
    assert result.to_dict()["notes"] == [str(note) for note in result.notes]
    for options in ({"behaviors": "all"}, {"suite": "rodentbench"}, {"behaviors": ["interact"]}):
        assert any("rename={'i': 'interact'}" in str(note) for note in eb.score(anna, ben, **options).notes), options
    with pytest.raises(MismatchError, match=r"behaviors differ.*rename=\{'i': 'interact'\}"):
        eb.score(anna, ben)
    renamed = anna.rename({"i": "interact"})
    assert eb.agreement({"anna": renamed, "ben": ben}).notes == ()
    assert not any("rename" in str(note) for note in eb.score(renamed, ben).notes)


def test_different_clocks_are_not_compared():
    slow = bouts((0, 100, "i"))
    fast = bouts((0, 100, "walk")).resample(30)
    assert sorted(mismatches(anna=slow, ben=fast)) == [("i", ""), ("walk", "")]
    assert np.isnan(find_label_mismatches({"r": {"anna": slow, "ben": fast}})[0].overlap)


@pytest.mark.parametrize(
    ("first", "second", "is_similar"),
    [
        ("sniff", "sniff_body", True),
        ("body sniffing", "bs", True),
        ("groom_1", "groom_2", False),
        ("groom 1", "Groom-1", True),
        ("rear", "attack", False),
        ("aaab", "aaac", True),  # three of four letters: a similarity of exactly 0.75
        ("aabb", "aacd", False),
        ("-", "attack", False),
    ],
)
def test_similar_names(first, second, is_similar):
    """Both occur in frames that differ enough for a low kappa, and overlap by a tenth."""
    one = Annotation.from_bouts([0], [100], [first], [first], 10, 1000)
    two = Annotation.from_bouts([90], [190], [second], [second], 10, 1000)
    counterparts = {m.counterpart for m in find_label_mismatches({"r": {"x": one, "y": two}})}
    assert counterparts == ({second} if is_similar else {""})


@pytest.mark.parametrize(("shift", "overlap"), [(0, 1.0), (20, 0.8), (60, 0.4)])
def test_the_overlap_is_the_dice_coefficient(shift, overlap):
    one = Annotation.from_bouts([100], [200], ["run"], ["run"], 10, 1000)
    two = Annotation.from_bouts([100 + shift], [200 + shift], ["dash"], ["dash"], 10, 1000)
    (mismatch,) = find_label_mismatches({"r": {"x": one, "y": two}})
    assert mismatch.overlap == pytest.approx(overlap)
    assert (mismatch.label, mismatch.counterpart) == ("run", "dash")


def test_labels_that_cover_everything_overlap_by_chance():
    anna, ben = bouts((0, 1000, "x1")), bouts((0, 1000, "groom"))
    assert sorted(mismatches(anna=anna, ben=ben)) == [("groom", ""), ("x1", "")]


@pytest.mark.parametrize(("distance", "is_same"), [(0, True), (3, True), (8, False), (10, False), (19, False)])
def test_point_events_further_than_a_second_apart_do_not_overlap(distance, is_same):
    sides = []
    for name, shift in (("bite", 0), ("snap", distance)):
        times = np.arange(50, 950, 60) + shift
        sides.append(Annotation.from_bouts(times, times, [0] * len(times), Ethogram([Behavior(name, point=True)]), 10, 1000))
    assert mismatches(anna=sides[0], ben=sides[1]) == ([("bite", "snap")] if is_same else [("bite", ""), ("snap", "")])


def test_similar_names_are_preferred_if_two_labels_overlap_alike():
    """Kappa plus a half for similar names: an overlap that is better by more than a half wins."""
    anna = bouts((0, 100, "groom"))
    equal = bouts((0, 50, "grooming"), (50, 100, "wash"))
    assert mismatches(anna=anna, ben=equal)[0] == ("groom", "grooming")
    better = bouts((0, 20, "grooming"), (20, 100, "wash"))
    assert mismatches(anna=anna, ben=better)[0] == ("groom", "wash")
