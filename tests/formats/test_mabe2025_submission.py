"""Submissions of MABe 2025: one action of a pair in each frame, accepted by the suite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import ethobench as eb
from ethobench import Annotation
from ethobench.cli import app
from ethobench.core.errors import MismatchError, NotFoundError, PathExistsError
from ethobench.formats.mabe2025_submission import select_actions, write_submission

NAMES = ["sniff", "attack", "rear"]
METADATA = pd.DataFrame(
    {
        "video_id": [1, 2],
        "lab_id": ["A", "B"],
        "behaviors_labeled": ['["mouse1,mouse2,sniff", "mouse1,mouse2,attack"]', '["mouse1,self,rear"]'],
    }
)


def annotation(*bouts: tuple[str, str, str | None, int, int, float]) -> Annotation:
    who, whom, names, start, stop, confidence = ([bout[k] for bout in bouts] for k in (0, 1, 2, 3, 4, 5))
    return Annotation.from_bouts(start, stop, names, NAMES, 30, 100, subject=who, target=whom, confidence=confidence)


def frames(annotation: Annotation) -> list[tuple[str, int, int]]:
    return [bout[2:] for bout in select_actions(annotation)[0]]


NONE = float("nan")


def test_the_highest_confidence_keeps_the_frame():
    a = annotation(("1", "2", "sniff", 0, 50, 0.6), ("mouse1", "mouse2", "attack", 20, 70, 0.9), ("1", "2", "rear", 60, 65, 0.1))
    assert frames(a) == [("sniff", 0, 20), ("attack", 20, 70)]
    assert select_actions(a)[2] == 35


def test_without_confidence_the_shortest_bout_does():
    a = annotation(("1", "2", "sniff", 0, 50, NONE), ("1", "2", "attack", 20, 30, NONE))
    assert frames(a) == [("sniff", 0, 20), ("attack", 20, 30), ("sniff", 30, 50)]


def test_equally_long_bouts_are_decided_by_start_and_then_by_the_ethogram():
    assert frames(annotation(("1", "2", "attack", 0, 10, NONE), ("1", "2", "sniff", 5, 15, NONE))) == [("attack", 0, 10), ("sniff", 10, 15)]
    assert frames(annotation(("1", "2", "attack", 0, 10, NONE), ("1", "2", "sniff", 0, 10, NONE))) == [("sniff", 0, 10)]


def test_other_pairs_and_bouts_without_conflict_stay_as_they_are():
    a = annotation(
        ("1", "2", "sniff", 0, 5, NONE), ("1", "2", "sniff", 5, 9, NONE), ("2", "1", "attack", 0, 9, NONE), ("1", "", "rear", 0, 9, 1)
    )
    bouts, omitted, resolved = select_actions(a)
    assert sorted(bouts) == [
        ("mouse1", "mouse2", "sniff", 0, 5),
        ("mouse1", "mouse2", "sniff", 5, 9),
        ("mouse1", "self", "rear", 0, 9),
        ("mouse2", "mouse1", "attack", 0, 9),
    ]
    assert (omitted, resolved) == (0, 0)


bout = st.builds(
    lambda who, whom, name, start, length, confidence: (who, whom, name, start, start + length, confidence),
    st.sampled_from(["mouse1", "mouse2"]),
    st.sampled_from(["mouse1", "mouse2", ""]),
    st.sampled_from(NAMES),
    st.integers(0, 60),
    st.integers(0, 39),
    st.sampled_from([NONE, 0.2, 0.5, 0.9]),
)


@given(st.lists(bout, min_size=1, max_size=10))
def test_every_frame_has_the_action_that_the_rule_names(bouts):
    selected, _, resolved = select_actions(annotation(*bouts))
    n_several = 0
    for agent in ("mouse1", "mouse2"):
        for target in ("mouse1", "mouse2", "self"):
            if agent == target:
                continue
            of_pair = [b for b in bouts if b[0] == agent and (b[1] if b[1] not in ("", agent) else "self") == target]
            for frame in range(100):
                covering = [b for b in of_pair if b[3] <= frame < b[4]]
                n_several += len({b[2] for b in covering}) > 1
                order = [(-(-1 if np.isnan(b[5]) else b[5]), b[4] - b[3], b[3], NAMES.index(b[2]), b[2]) for b in covering]
                expected = {min(order)[-1]} if order else set()
                assert {b[2] for b in selected if b[:2] == (agent, target) and b[3] <= frame < b[4]} == expected
    assert resolved == n_several


def test_round_trip_with_the_suite(tmp_path: Path):
    truth = {
        "1": annotation(("1", "2", "sniff", 0, 40, NONE), ("1", "2", "attack", 60, 80, NONE)),
        "2": annotation(("1", "1", "rear", 10, 30, NONE)),
    }
    overlapping = annotation(("1", "2", "sniff", 0, 60, 0.5), ("1", "2", "attack", 40, 80, 0.7), ("1", "2", "rear", 0, 90, 0.99))
    submission, solution = tmp_path / "submission.csv", tmp_path / "solution.csv"
    notes = write_submission({"1": overlapping, "2": truth["2"]}, submission, metadata=METADATA)
    assert [str(note) for note in notes] == [
        "omitted 1 bouts that are not labeled in their video",
        "chose one of several actions of a pair in 20 frames",
    ]
    write_submission(truth, solution)
    scores = eb.score(submission, solution, suite="mabe2025", metadata=METADATA)
    assert scores.overall["f1"] == pytest.approx(((1 + 2 * 20 / (20 + 40)) / 2 + 1) / 2)
    assert eb.score(solution, solution, suite="mabe2025", metadata=METADATA).overall["f1"] == 1
    read = {r.id: r.annotation() for r in eb.read_recordings(solution, rate=30, warn=False)}
    assert {name: a.start.tolist() for name, a in read.items()} == {"1": [0, 60], "2": [10]}


def test_errors(tmp_path: Path):
    path = tmp_path / "submission.csv"
    nameless = Annotation.from_bouts([3], [5], ["sniff"], NAMES, 30, 10)
    with pytest.raises(MismatchError, match=r"recording '1': the bout of 'sniff' in frame 3 has no subject"):
        write_submission({"1": nameless}, path)
    with pytest.raises(NotFoundError, match="the metadata have no video '9'"):
        write_submission({"9": annotation(("1", "2", "sniff", 0, 5, 1))}, path, metadata=METADATA)
    assert not path.exists()
    write_submission({"1": annotation(("1", "2", "sniff", 0, 5, 1))}, path)
    with pytest.raises(PathExistsError):
        write_submission({}, path)


def test_convert_writes_a_submission(tmp_path: Path):
    source, target = tmp_path / "bouts.csv", tmp_path / "submission.csv"
    rows = "1,1,2,sniff,0,50\n1,1,2,attack,20,30\n2,1,1,rear,3,9\n"
    source.write_text(f"video_id,agent_id,target_id,action,start_frame,stop_frame\n{rows}")
    result = CliRunner().invoke(app, ["convert", str(source), str(target), "--to", "mabe2025_submission"])
    assert result.exit_code == 0, result.output
    assert target.read_text().splitlines()[1:] == [
        "0,1,mouse1,mouse2,sniff,0,20",
        "1,1,mouse1,mouse2,attack,20,30",
        "2,1,mouse1,mouse2,sniff,30,50",
        "3,2,mouse1,self,rear,3,9",
    ]
    assert "chose one of several actions of a pair in 10 frames" in " ".join(result.output.split())
