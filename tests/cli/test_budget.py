"""`ethobench budget`."""

from __future__ import annotations

import json

from ethobench import load_dataset, write_annotation
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
