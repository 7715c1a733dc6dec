"""Behaviors that two sides call by different names: every command notes it, and renames them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ethobench import Annotation, read_annotation, write_annotation
from tests.cli.running import ethobench
from tests.cli.test_score import random_annotation


@pytest.fixture
def raters(tmp_path) -> tuple[Path, Path]:
    """Two people, one of whom writes 'i' for 'interact'."""
    for who, name, shift in (("anna", "i", 0), ("ben", "interact", 6)):
        for day in (1, 2):
            start = np.arange(4) * 100 + shift
            bouts = Annotation.from_bouts(start, start + 60, [name] * 4, [name], 30, 600)
            write_annotation(bouts, tmp_path / who / f"day{day}.csv", "tidy")
    return tmp_path / "anna", tmp_path / "ben"


@pytest.mark.slow
def test_different_names_of_a_behavior_are_noted_and_can_be_merged(raters, tmp_path):
    """`agreement` printed a kappa of 0 without a word."""
    hint = "only anna uses 'i'; only ben uses 'interact'; they overlap 90% of the time: the same behavior?"
    silent = ethobench("agreement", *raters, "--json")
    assert hint in silent.stderr
    assert hint in json.loads(silent.stdout)["notes"][0]
    renamed = ethobench("agreement", *raters, "--rename", "i=interact", "--json")
    assert renamed.stderr == ""
    assert [row["kappa"] for row in json.loads(renamed.stdout)["pairs"] if row["behavior"] == "interact"] == [
        pytest.approx(0.833, abs=0.01)
    ]
    refused = ethobench("score", *raters)
    assert refused.returncode == 1
    assert "--rename i=interact" in refused.stderr
    assert json.loads(ethobench("score", *raters, "--rename", "i=interact", "--json").stdout)["overall"]["f1"] == pytest.approx(0.9)
    assert hint in ethobench("budget", *raters).stderr
    rows = json.loads(ethobench("budget", *raters, "--rename", "i=interact", "--json").stdout)
    assert {(row["recording"], row["annotator"], row["behavior"]) for row in rows} == {
        (f"day{day}", who, "interact") for day in (1, 2) for who in ("anna", "ben")
    }
    done = ethobench("convert", raters[0] / "day1.csv", tmp_path / "new.csv", "--rename", "i=interact")
    assert done.returncode == 0, done.stderr
    assert read_annotation(tmp_path / "new.csv").ethogram.names == ("interact",)


@pytest.mark.parametrize("command", ["agreement", "score", "budget", "convert"])
def test_renaming_an_unknown_behavior_is_refused(command, raters, tmp_path):
    paths = (raters[0] / "day1.csv", tmp_path / "new.csv") if command == "convert" else raters
    done = ethobench(command, *paths, "--rename", "x=interact")
    assert done.returncode == 1
    assert "no behavior 'x' in the ethogram (i" in done.stderr
    assert not (tmp_path / "new.csv").exists()
    assert ethobench(command, *paths, "--rename", "interact").returncode == 2


@pytest.mark.slow
def test_predictions_with_other_names_against_a_manifest(raters, tmp_path):
    rows = [f"day{day},m{day},30,ben/day{day}.csv,ben" for day in (1, 2)]
    manifest = tmp_path / "recordings.csv"
    manifest.write_text("recording,individual,rate,annotations,annotator\n" + "\n".join(rows), encoding="utf-8")
    assert "--rename i=interact" in ethobench("score", raters[0], manifest).stderr
    done = ethobench("score", raters[0], manifest, "--rename", "i=interact", "--json")
    assert json.loads(done.stdout)["overall"]["f1"] == pytest.approx(0.9), done.stderr
    swapped = tmp_path / "anna" / "recordings.csv"
    swapped.write_text(manifest.read_text(encoding="utf-8").replace("ben/", "").replace(",ben", ",anna"), encoding="utf-8")
    done = ethobench("score", raters[1], swapped, "--rename", "i=interact", "--json")
    assert json.loads(done.stdout)["overall"]["f1"] == pytest.approx(0.9), done.stderr
    assert "no behavior 'x'" in ethobench("score", raters[1], swapped, "--rename", "x=interact").stderr
    (tmp_path / "ethogram.csv").write_text("behavior,alias\nsocial,interact;i\n", encoding="utf-8")
    done = ethobench("score", raters[0], manifest, "--rename", "i=social", "--json")
    assert "'interact' is read as 'social'" in done.stderr
    assert json.loads(done.stdout)["overall"]["f1"] == pytest.approx(0.9), done.stderr


def test_predictions_against_a_manifest_keep_their_stated_rate(tmp_path):
    write_annotation(random_annotation(1), tmp_path / "truth.csv", "tidy")
    (tmp_path / "recordings.csv").write_text("recording,individual,rate,annotations\nm1,m1,30,truth.csv\n", encoding="utf-8")
    write_annotation(random_annotation(1), tmp_path / "seconds" / "m1.csv", "intervals")
    write_annotation(random_annotation(1, rate=25), tmp_path / "other" / "m1.csv", "tidy")
    done = ethobench("score", tmp_path / "seconds", tmp_path / "recordings.csv", "--json")
    assert json.loads(done.stdout)["overall"]["f1"] == 1
    assert "no frame rate; using 30 Hz" in done.stderr
    refused = ethobench("score", tmp_path / "other", tmp_path / "recordings.csv")
    assert refused.returncode == 1
    assert "25 Hz" in refused.stderr
