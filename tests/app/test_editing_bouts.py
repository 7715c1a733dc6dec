"""Edits of single bouts and of animals, against an oracle that works on lists of bouts."""

from __future__ import annotations

import errno

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Ethogram, load_dataset
from ethobench.app.editing import apply_edits, change_bout, change_subject, mark, merge_bouts, split_bout
from ethobench.core.errors import EthobenchError, MismatchError
from tests.app.test_editing import NAMES, N, exclusive_annotations


def rows(a: Annotation) -> list[tuple]:
    details = [column.tolist() if column is not None else [""] * len(a) for column in (a.modifiers, a.comment)]
    columns = (a.start.tolist(), a.stop.tolist(), [a.ethogram[int(c)].name for c in a.behavior], a.names(a.subject), a.names(a.target))
    return [*zip(*columns, *details, strict=True)]


@pytest.fixture
def social() -> Annotation:
    return Annotation.from_bouts(
        [0, 5, 20],
        [10, 10, 30],
        ["rest", "run", "rest"],
        NAMES,
        10,
        N,
        subject=["a", "b", "a"],
        target=[None, "a", None],
        modifiers=["slow", "", "deep"],
        comment=["", "first", ""],
    )


@given(exclusive_annotations(), st.data())
def test_splitting_changes_no_frame(annotation, data):
    long = np.flatnonzero(annotation.stop - annotation.start > 1)
    if not long.size:
        return
    index = int(data.draw(st.sampled_from(long.tolist())))
    frame = data.draw(st.integers(int(annotation.start[index]) + 1, int(annotation.stop[index]) - 1))
    after = split_bout(annotation, index, frame)
    assert (after.to_frames() == annotation.to_frames()).all()
    assert len(after) == len(annotation) + 1
    assert frame in after.start.tolist()
    joined = merge_bouts(after, int(np.flatnonzero((after.start < frame) & (after.stop == frame))[0]))
    assert joined == annotation


def test_a_bout_keeps_its_details_when_it_changes(social):
    shorter = change_bout(social, 0, start=2, stop=8)
    assert rows(shorter)[0] == (2, 8, "rest", "a", None, "slow", "")
    other = change_bout(social, 1, target=None, comment="vu à gauche", behavior="groom")
    assert rows(other)[1] == (5, 10, "groom", "b", None, "", "vu à gauche")
    moved = change_bout(social, 1, subject="a")
    assert rows(moved) == [(0, 5, "rest", "a", None, "slow", ""), (5, 10, "run", "a", "a", "", "first"), rows(social)[2]]
    with pytest.raises(EthobenchError, match="must end after"):
        change_bout(social, 0, start=9, stop=9)


def test_merging_fills_the_gap_and_joins_the_details(social):
    merged = merge_bouts(social, 0)
    assert rows(merged) == [(0, 30, "rest", "a", None, "slow; deep", ""), rows(social)[1]]
    assert rows(merge_bouts(social, 2, forward=False)) == rows(merged)
    with pytest.raises(EthobenchError, match="no next bout"):
        merge_bouts(social, 1)


def test_only_behaviors_of_the_group_are_removed(social):
    after = mark(social, 0, 30, "groom", subject="a", exclusive=["run"])
    assert [row[2] for row in rows(after) if row[3] == "a"] == ["rest", "groom", "rest"]
    after = mark(social, 0, 30, "groom", subject="a", exclusive=["rest"])
    assert [row[2] for row in rows(after) if row[3] == "a"] == ["groom"]


def test_animals_are_added_renamed_and_removed(social):
    named = change_subject(social, None, "  ميمي ")
    assert named.subjects == ("a", "b", "ميمي")
    assert change_subject(named, "ميمي", None).subjects == ("a", "b")
    renamed = change_subject(social, "a", "猫")
    assert [row[3:5] for row in rows(renamed)] == [("猫", None), ("b", "猫"), ("猫", None)]
    with pytest.raises(EthobenchError, match="has bouts"):
        change_subject(social, "b", None)
    with pytest.raises(EthobenchError, match="already an animal"):
        change_subject(social, "a", "b")
    with pytest.raises(MismatchError, match="no animal"):
        change_subject(social, "x", "y")


def test_a_bout_that_another_window_changed_is_not_edited(social):
    bout = {"start": 0, "stop": 10, "behavior": "rest", "subject": "a", "target": None}
    after = apply_edits(social, [{"kind": "change", **bout, "to": {"stop": 9}}, {"kind": "split", **bout, "stop": 9, "at": 4}])
    assert [row[:2] for row in rows(after)][:2] == [(0, 4), (4, 9)]
    with pytest.raises(MismatchError, match="changed in the meantime"):
        apply_edits(after, [{"kind": "change", **bout, "to": {"comment": "late"}}])


@pytest.mark.slow
def test_a_million_bouts_fifty_behaviors_and_twelve_animals():
    n, names, animals = 1_000_000, [f"behavior {i}" for i in range(50)], [f"animal {i}" for i in range(12)]
    start = np.arange(n) * 4
    many = Annotation.from_bouts(
        start, start + 2, np.arange(n) % 50, Ethogram(names), 30, 4 * n, subject=[animals[i % 12] for i in range(n)], subjects=animals
    )
    after = mark(many, 100, 200, "behavior 7", subject="animal 3")
    assert len(after) == n + 1 - sum(1 for i in range(25, 50) if i % 12 == 3)
    assert change_bout(after, 500_000, comment="here").comment[500_000] == "here"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_an_ethogram_that_cannot_be_saved_is_not_changed(client, lab, monkeypatch, code):
    state = client.get("ethogram")
    behaviors = [{**b, "from": [b["name"]]} for b in state["behaviors"]]

    def fail(*_, **__):
        raise OSError(code, "cannot write")

    with monkeypatch.context() as broken:
        broken.setattr("ethobench.app.ethogram_editing.write_entries", fail)
        answer = client.post("ethogram", {"revision": 0, "behaviors": [*behaviors, {"name": "dig"}]}, 500)
    assert answer["error"] == "not saved: cannot write"
    assert client.get("ethogram") == state
    client.post("ethogram", {"revision": 0, "behaviors": [*behaviors, {"name": "dig"}]})
    assert "dig" in load_dataset(lab).ethogram


def test_the_same_seed_draws_the_same_subset_and_agreement_counts_frames_that_both_observed(client, lab):
    drawn = client.post("subset", {"count": 3, "seconds": 20, "seed": 7})
    again = client.post("subset", {"count": 3, "seconds": 20, "seed": 7})
    assert drawn["segments"] == again["segments"]
    assert len(drawn["segments"]) == 3
    assert (lab / "corrections" / "agreement.csv").read_text(encoding="utf-8").count("\n") == 7
    everything = client.get("agreement?first=anna&second=ben")
    assert everything["frames"] == 600
    client.post("recordings/0/start", {"name": "zoe", "copy": None})
    edit = {"kind": "mark", "start": 0, "stop": 60, "behavior": "rest"}
    client.post("recordings/0/edit", {"track": "zoe", "revision": 0, "edits": [edit]})
    result = client.get("agreement?first=anna&second=zoe")
    assert result["frames"] == 60
    assert [row["kappa"] for row in result["rows"] if row["behavior"] == "rest"] == [0]
    assert client.get("agreement?first=anna&second=nobody") == {"recordings": 0, "frames": 0, "rows": []}
    client.get("agreement?first=anna&second=anna", 400)
    client.post("subset", {"count": 0, "seed": 1}, 400)


def test_blind_shows_corrections_only(lab):
    from ethobench.app.opening import open_project

    project = open_project([str(lab)], blind=True)
    assert project.recordings[0].tracks == []
    project.start(0, "zoe")
    assert [track.name for track in project.recordings[0].tracks] == ["zoe"]
    with pytest.raises(EthobenchError):
        project.start(0, "yan", "anna")
