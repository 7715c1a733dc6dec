"""A small slice of the kill campaign; the whole one is `python -m tests.kill_campaign`, its results are in benchmarks/results/kills.md."""

from __future__ import annotations

import os

import pytest

from tests.kill_campaign import kill_ethogram_edits, kill_runs, kill_viewers

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="kill -9")]


def test_killed_viewers_lose_and_double_nothing(tmp_path):
    summary = kill_viewers(tmp_path, kills=3, seed=0)
    assert summary.problems == []
    assert summary.kills >= 3
    assert summary.counts["edits confirmed"] > 0


def test_a_viewer_killed_while_renaming_leaves_one_name(tmp_path):
    summary = kill_ethogram_edits(tmp_path, kills=3, seed=0)
    assert summary.problems == []
    assert summary.kills >= 3


def test_killed_runs_lose_and_double_nothing(tmp_path):
    summary = kill_runs(tmp_path, kills=2, seed=0, seeds={"chance": 1, "rf": 2})
    assert summary.problems == []
    assert summary.kills == 2
    assert summary.counts["jobs stored"] > 0
