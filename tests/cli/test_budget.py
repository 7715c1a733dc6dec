"""`ethobench budget`."""

from __future__ import annotations

import json

import pytest

from ethobench import load_dataset, write_annotation
from ethobench.core import intervals as iv
from tests.cli.running import ethobench


def test_budgets_per_individual(tmp_path):
    data = load_dataset("synthetic/tag", individuals=2, seconds=20)
    rows = ["recording,individual,annotations"]
    for recording in data:
        for k, half in enumerate((recording.annotation().crop(0, 250), recording.annotation().crop(250, 500))):
            write_annotation(half, tmp_path / f"{recording.id}_{k}.csv", "tidy")
            rows.append(f"{recording.id}_{k},{recording.id},{recording.id}_{k}.csv")
    (tmp_path / "recordings.csv").write_text("\n".join(rows))
    by_recording = json.loads(ethobench("budget", tmp_path, "--json").stdout)
    by_individual = json.loads(ethobench("budget", tmp_path, "--per", "individual", "--json").stdout)
    assert {row["recording"] for row in by_individual} == {""}
    assert {row["individual"] for row in by_individual} == {"animal01", "animal02"}
    for row in by_individual:
        halves = [r for r in by_recording if (r["individual"], r["behavior"]) == (row["individual"], row["behavior"])]
        assert len(halves) == 2
        assert row["bouts"] == sum(half["bouts"] for half in halves)
        assert abs(row["share"] - sum(half["share"] for half in halves) / 2) < 1e-9
    loose = ethobench("budget", tmp_path / "animal01_0.csv", "--per", "individual")
    assert "do not name the individual" in loose.stderr
    assert "'animal' is neither recording nor individual" in ethobench("budget", tmp_path, "--per", "animal").stderr.replace("\n", " ")


@pytest.fixture
def study(tmp_path):
    """Return a study of four animals in two groups, one of them unobserved for half of the time."""
    rows = ["recording,individual,treatment,annotations"]
    for k, recording in enumerate(load_dataset("synthetic/tag", individuals=4, seconds=60)):
        annotation = recording.annotation()
        if k == 3:
            annotation = annotation.mark_unobserved(iv.intervals([0], [750]))
        write_annotation(annotation, tmp_path / f"{recording.id}.csv", "tidy")
        rows.append(f"{recording.id},{recording.id},{'drug' if k % 2 else 'saline'},{recording.id}.csv")
    (tmp_path / "recordings.csv").write_text("\n".join(rows))
    return tmp_path


def test_groups_and_bins(study):
    full_range = json.loads(ethobench("budget", study, "--json").stdout)
    assert list(full_range[0])[:10] == [
        *("recording", "individual", "annotator", "subject", "behavior", "bouts", "seconds", "share", "mean", "median"),
    ]
    assert {row["treatment"] for row in full_range} == {"drug", "saline"}
    assert {row["coverage"] for row in full_range if row["recording"] == "animal04"} == {0.5}
    binned = json.loads(ethobench("budget", study, "--bin", "20s", "--json").stdout)
    assert {row["bin_start"] for row in binned} == {0, 20, 40}
    for row in full_range:
        bins = [r for r in binned if (r["recording"], r["behavior"]) == (row["recording"], row["behavior"])]
        assert sum(r["seconds"] for r in bins) == pytest.approx(row["seconds"])
        assert sum(r["bouts"] for r in bins) == row["bouts"]
    groups = json.loads(ethobench("budget", study, "--by", "treatment", "--json", "--csv", study / "groups.csv").stdout)
    for row in groups:
        members = [r["share"] for r in full_range if (r["treatment"], r["behavior"]) == (row["treatment"], row["behavior"])]
        assert row["n_individuals"] == 2
        assert row["share"] == pytest.approx(sum(members) / 2)
    assert (study / "groups.csv").read_text().startswith("treatment,annotator,behavior,bouts")
    printed = ethobench("budget", study, "--by", "treatment", "--bin", "thirds").stdout
    assert "0:00:20-0:00:40" in printed
    assert "observed" in printed


def test_transitions(study):
    rows = json.loads(ethobench("budget", study, "--transitions", "--json").stdout)
    for name in {row["behavior"] for row in rows}:
        total = sum(row["probability"] or 0 for row in rows if (row["recording"], row["behavior"]) == ("animal01", name))
        assert total == pytest.approx(1) or total == 0
    assert "followed by" in ethobench("budget", study, "--transitions").stdout


def test_options_that_cannot_be_used_are_refused(study):
    assert "no column 'sex'; available: " in ethobench("budget", study, "--by", "sex").stderr
    assert "does not describe time bins" in ethobench("budget", study, "--bin", "soon").stderr
    assert "no date and time" in ethobench("budget", study, "--bin", "clock:1h").stderr
    assert "no behavior 'fly'" in ethobench("budget", study, "--bin", "event:fly:5s").stderr
    assert "no recording has poses" in ethobench("budget", study, "--zones").stderr
    assert "needs --zones" in ethobench("budget", study, "--point", "nose").stderr
    assert ethobench("budget", study, "--transitions", "--bin", "5s").returncode == 2
    assert ethobench("budget", study, "--by", "treatment", "--confusion", "x.json").returncode == 2


def test_recordings_without_a_group_are_noted(study):
    text = (study / "recordings.csv").read_text()
    first = next(line for line in text.splitlines()[1:] if line)
    treatment = next(name for name in ("saline", "drug", "control") if f",{name}" in first)
    (study / "recordings.csv").write_text(text.replace(first, first.replace(f",{treatment}", ",")))
    result = ethobench("budget", study, "--by", "treatment")
    assert "have no 'treatment', such as 'animal01'; group: (none)" in result.stderr
    assert "(none)" in result.stdout
