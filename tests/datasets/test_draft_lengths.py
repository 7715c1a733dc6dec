"""Lengths of annotations and poses in the draft of a study."""

from __future__ import annotations

import pytest
from tests.datasets.test_discover import DLC, labels, poses, seconds

from ethobench.datasets import draft_lengths
from ethobench.datasets.discover import discover_study
from ethobench.datasets.study_check import check_study

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")


def test_labels_that_are_twice_as_long_are_reported_as_the_check_reports_them(tmp_path):
    for name, n_labels in (("m1", 60), ("m2", 120), ("m3", 40)):
        poses(tmp_path / f"{name}{DLC}.csv", 60)
        labels(tmp_path / f"{name}.csv", n_labels)
    draft = discover_study(tmp_path)
    assert (draft.lengths.compared, draft.lengths.total) == (3, 3)
    (problem,) = draft.lengths.problems
    assert problem.startswith("m2.csv: labels for 120 frames, but signals for 60")
    assert draft.to_dict()["lengths"]["problems"] == (problem,)
    draft.write()
    (checked,) = check_study(tmp_path).problems
    assert problem.removeprefix("m2.csv: ") in str(checked)


def test_annotations_in_seconds_are_compared_at_the_rate_of_the_study(tmp_path):
    poses(tmp_path / f"m1{DLC}.csv", 45)
    seconds(tmp_path / "m1.csv")  # 1.5 s
    assert discover_study(tmp_path, rate=30).lengths.problems == ()
    (problem,) = discover_study(tmp_path, rate=60).lengths.problems
    assert "labels for 90 frames, but signals for 45" in problem


@pytest.mark.parametrize(("limit", "value", "compared"), [("MAX_COMPARED", 2, 2), ("MAX_BYTES", 1, 0)])
def test_a_limited_number_of_recordings_is_read(tmp_path, monkeypatch, limit, value, compared):
    for k in range(4):
        poses(tmp_path / f"m{k}{DLC}.csv")
        labels(tmp_path / f"m{k}.csv", shift=k)
    monkeypatch.setattr(draft_lengths, limit, value)
    assert discover_study(tmp_path).lengths == draft_lengths.LengthComparison(compared, 4)


def test_poses_that_cannot_be_read_are_a_problem(tmp_path):
    poses(tmp_path / f"m1{DLC}.csv")
    with (tmp_path / f"m1{DLC}.csv").open("a", encoding="utf-8") as file:
        file.write("60,not,a,number\n")
    labels(tmp_path / "m1.csv")
    lengths = discover_study(tmp_path).lengths
    assert (lengths.compared, lengths.total, len(lengths.problems)) == (0, 1, 1)
