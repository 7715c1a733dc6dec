"""The scoring commands on files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ethobench as eb
from ethobench import Annotation, Behavior, Ethogram, Recording, read_annotation, write_annotation, write_recordings
from ethobench.core import intervals as iv
from ethobench.metrics.budgets import time_budget
from tests.cli.running import ethobench

pytestmark = pytest.mark.slow  # each command starts a process
NAMES = ["a", "b", "other"]


def random_annotation(seed: int, shift: int = 0, n: int = 600, rate: float = 30) -> Annotation:
    codes = np.repeat(np.random.default_rng(seed).integers(0, 3, n // 20), 20)
    return Annotation.from_frames(np.roll(codes, shift), Ethogram(NAMES, "other"), rate)


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path]:
    pred, truth = tmp_path / "pred files", tmp_path / "truth"
    for i in range(3):
        write_annotation(random_annotation(i, 3), pred / f"mouse{i}.csv", "onehot")
        write_annotation(random_annotation(i), truth / f"mouse{i}.annot", "bento")
    return pred, truth


def test_folders_of_different_formats_match_by_name(folders):
    done = ethobench("score", *folders, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert [*content["recordings"]] == ["mouse0", "mouse1", "mouse2"]
    assert 0.5 < content["overall"]["f1"] < 1
    assert content["intervals"]["overall"]["f1"] is None
    assert (content["intervals"]["n"], content["intervals"]["reason"]) == (3, "no interval below 5 recordings")
    shown = ethobench("score", *folders).stdout
    assert shown.count("n = 3 recordings; no interval below 5 recordings") == 1
    assert "[" not in shown
    table = ethobench("score", *folders, "--suite", "banos")
    assert "bout F1" in table.stdout
    assert "mouse" in ethobench("score", *folders, "--per", "recording").stdout
    assert ethobench("score", *folders, "--per", "week").returncode == 2


@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_python_and_the_command_agree(folders):
    scores = eb.score(*folders, annotator="consensus", behaviors=["a"])
    printed = json.loads(ethobench("score", *folders, "--annotator", "consensus", "--behaviors", "a", "--json").stdout)
    assert printed == json.loads(json.dumps(scores.to_dict()))


def test_csv_measures_and_behaviors(folders, tmp_path):
    out = tmp_path / "scores.csv"
    done = ethobench("score", *folders, "--csv", out, "--behaviors", "a", "--metrics", "all")
    assert done.returncode == 0, done.stderr
    assert "latency_error" in done.stdout
    assert {*pd.read_csv(out)["behavior"].dropna()} == {"a"}
    again = ethobench("score", *folders, "--csv", out)
    assert again.returncode == 1
    assert "already exists" in again.stderr
    assert "has no measure zzz" in ethobench("score", *folders, "--metrics", "zzz").stderr


def test_single_files_and_errors(folders, tmp_path):
    pred, truth = folders
    assert ethobench("score", pred / "mouse0.csv", truth / "mouse1.annot").returncode == 0
    (pred / "mouse2.csv").unlink()
    done = ethobench("score", pred, truth)
    assert done.returncode == 0
    assert "1 of 3 annotated recordings have no prediction and are not scored: mouse2" in done.stderr
    done = ethobench("score", truth, pred)
    assert done.returncode == 1
    assert "only in" in done.stderr
    assert "mouse2" in done.stderr
    write_annotation(random_annotation(0, rate=25), tmp_path / "slow.annot", "bento")
    done = ethobench("score", tmp_path / "slow.annot", truth / "mouse0.annot")
    assert "25 Hz" in done.stderr
    assert done.returncode == 1


def test_files_without_rate_or_length_follow_the_other_side(folders, tmp_path):
    _, truth = folders
    write_annotation(random_annotation(0, 3), tmp_path / "answer.json", "segments")
    done = ethobench("score", tmp_path / "answer.json", truth / "mouse0.annot", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["overall"]["f1"] > 0.5


def test_against_a_manifest(folders, tmp_path):
    pred, _ = folders
    rows = [f"mouse{i},m{i % 2},30,truth/mouse{i}.annot,me" for i in range(3)]
    manifest = tmp_path / "recordings.csv"
    manifest.write_text("recording,individual,rate,annotations,annotator\n" + "\n".join(rows), encoding="utf-8")
    content = json.loads(ethobench("score", pred, manifest, "--json").stdout)
    assert [*content["individuals"]] == ["m0", "m1"]


def test_agreement_of_two_folders_and_of_one_file(folders, tmp_path):
    pred, truth = folders
    done = ethobench("agreement", pred, truth)
    assert done.returncode == 0, done.stderr
    assert "Agreement of pred files and truth" in done.stdout
    content = json.loads(ethobench("agreement", pred / "mouse0.csv", truth / "mouse0.annot", "--json").stdout)
    assert len(content["pairs"]) == 4
    assert ethobench("agreement", pred / "mouse0.csv").returncode == 1


def test_budget_and_its_correction(folders, tmp_path):
    pred, truth = folders
    rows = json.loads(ethobench("budget", truth, "--json").stdout)
    first = next(r for r in rows if r["recording"] == "mouse0" and r["behavior"] == "a")
    assert first["seconds"] == pytest.approx(random_annotation(0).to_frames()[:, 0].sum() / 30)
    scores = tmp_path / "scores.json"
    scores.write_text(ethobench("score", *folders, "--json").stdout, encoding="utf-8")
    corrected = json.loads(ethobench("budget", pred, "--confusion", scores, "--json").stdout)
    row = next(r for r in corrected if r["recording"] == "mouse0" and r["behavior"] == "a")
    assert (row["low"], row["high"]) == (None, None)
    shown = ethobench("budget", pred, "--confusion", scores)
    assert "corrected" in shown.stdout
    assert "n = 3 individuals; no interval below 5 individuals" in shown.stderr
    content = json.loads(scores.read_text(encoding="utf-8"))
    content["confusion"]["individuals"] |= {f"more{k}": m for k, m in enumerate([*content["confusion"]["individuals"].values()][:2])}
    scores.write_text(json.dumps(content), encoding="utf-8")
    row = json.loads(ethobench("budget", pred, "--confusion", scores, "--json").stdout)[0]
    assert row["low"] <= row["corrected"] <= row["high"]
    scores.write_text("{}", encoding="utf-8")
    assert "no confusion matrix" in ethobench("budget", pred, "--confusion", scores).stderr


def test_budget_counts_observed_frames_by_subject(tmp_path):
    ethogram = Ethogram(["att", "other"], "other")
    a = Annotation.from_bouts([0], [30], ["att"], ethogram, 30, 120)
    rows = {r["behavior"]: r for r in time_budget(a)}
    assert (rows["other"]["seconds"], rows["other"]["share"]) == (3, 0.75)
    half_observed = Annotation.from_bouts([0], [60], ["att"], ethogram, 30, 120, observed=iv.intervals([0], [30]))
    assert {r["behavior"]: r["share"] for r in time_budget(half_observed)} == {"att": 1.0, "other": 0.0}
    two = Annotation.from_bouts([0, 0], [30, 30], ["att", "att"], ["att"], 30, 120, subject=["m1", "m2"])
    assert [(r["subject"], r["bouts"]) for r in time_budget(two)] == [("m1", 1), ("m2", 1)]
    bite = Annotation.from_bouts([5, 120], [5, 120], [0, 0], Ethogram([Behavior("bite", point=True)]), 30, 120)
    assert time_budget(bite)[0]["bouts"] == 2


def test_agreement_of_files_with_several_raters(tmp_path):
    for day in (1, 2):
        raters = {"anna": random_annotation(day), "ben": random_annotation(day, 3)}
        write_recordings([Recording(f"day{day}", annotations=raters)], tmp_path / f"day{day}.csv", "tidy")
    content = json.loads(ethobench("agreement", tmp_path / "day1.csv", tmp_path / "day2.csv", "--json").stdout)
    assert content["pairs"][0]["frames"] == 1200
    assert content["annotators"] == ["anna", "ben"]


def test_truth_by_consensus_or_all_from_files(tmp_path):
    raters = {"anna": random_annotation(1), "ben": random_annotation(1, 3), "cleo": random_annotation(1, 1)}
    write_recordings([Recording("r", annotations=raters)], tmp_path / "raters.csv", "tidy")
    write_annotation(random_annotation(1), tmp_path / "pred.csv", "tidy", recording="r")
    for annotator, n in (("consensus", 1), ("all", 3), ("anna", 1)):
        done = ethobench("score", tmp_path / "pred.csv", tmp_path / "raters.csv", "--annotator", annotator, "--json")
        assert done.returncode == 0, done.stderr
        assert len(json.loads(done.stdout)["recordings"]) == n


def test_names_with_dots_and_new_folders(tmp_path):
    for day in ("2024.05.01_mouse", "2024.05.02_mouse"):
        for side in ("p", "t"):
            write_annotation(random_annotation(3), tmp_path / side / f"{day}.annot", "bento")
    (tmp_path / "t" / "empty.txt").touch()
    done = ethobench("score", tmp_path / "p", tmp_path / "t", "--csv", tmp_path / "new" / "scores.csv")
    assert done.returncode == 0, done.stderr
    assert "skipped, since their format is not recognized: empty.txt" in done.stderr
    assert (tmp_path / "new" / "scores.csv").is_file()


def test_names_that_look_like_markup_are_printed_literally(tmp_path):
    hostile = Annotation.from_bouts([0, 30], [20, 50], ["[red]a[/red]", "<script>"], ["[red]a[/red]", "<script>"], 30, 60)
    write_annotation(hostile, tmp_path / "x.csv", "tidy")
    for command in (("score", tmp_path / "x.csv", tmp_path / "x.csv"), ("budget", tmp_path / "x.csv")):
        shown = ethobench(*command).stdout
        assert "[red]a[/red]" in shown
        assert "<script>" in shown


@pytest.mark.data
def test_two_raters_of_boris(data):
    folder = data / "boris_two_raters"
    done = ethobench("agreement", folder / "brett_initial", folder / "brett_reannotation", "--json")
    content = json.loads(done.stdout)
    (row,) = [r for r in content["pairs"] if r["behavior"] == "interact"]
    assert 0.71 <= row["kappa"] <= 0.86


def test_a_few_frames_at_the_end_of_one_side_do_not_count(tmp_path):
    for name, frames in (("pred", 601), ("truth", 600), ("long", 1200)):
        one = Annotation.from_bouts([10, 200], [60, 300], ["a", "b"], NAMES, 30.0, frames)
        write_annotation(one, tmp_path / f"{name}.csv", "tidy")
    done = ethobench("score", tmp_path / "pred.csv", tmp_path / "truth.csv", "--json")
    assert done.returncode == 0, done.stderr
    assert "the truth ends 1 frame before the others; the missing frame is unobserved" in done.stderr
    assert json.loads(done.stdout)["overall"]["f1"] == 1
    assert ethobench("score", tmp_path / "long.csv", tmp_path / "truth.csv").returncode == 1


def test_agreement_at_the_only_stated_rate_and_of_a_manifest(folders, tmp_path):
    write_annotation(random_annotation(0), tmp_path / "anna.annot", "bento")
    write_annotation(random_annotation(0, 2), tmp_path / "ben.csv", "intervals")
    done = ethobench("agreement", tmp_path / "anna.annot", tmp_path / "ben.csv", "--json")
    assert done.returncode == 0, done.stderr
    assert "no frame rate; using 30 Hz" in done.stderr
    lines = [f"m1,a,30,,{name},{who}" for name, who in (("anna.annot", "anna"), ("ben.csv", "ben"))]
    (tmp_path / "recordings.csv").write_text(
        "recording,individual,rate,signals,annotations,annotator\n" + "\n".join(lines) + "\n", encoding="utf-8"
    )
    listed = ethobench("agreement", tmp_path, "--json")
    assert listed.returncode == 0, listed.stderr
    f1 = [[row["f1"] for row in json.loads(process.stdout)["pairs"]] for process in (done, listed)]
    assert f1[0] == pytest.approx(f1[1])


def test_an_animal_without_bouts_has_an_empty_budget(tmp_path):
    from ethobench.metrics.budgets import time_budget

    one = Annotation.from_bouts([0], [30], ["a"], Ethogram(["a", "b"]), 30.0, 300, subject=["m1"], subjects=["m1", "m2"])
    rows = time_budget(one)
    assert {(row["subject"], row["behavior"]) for row in rows} == {(m, b) for m in ("m1", "m2") for b in "ab"}
    assert all(not row["bouts"] for row in rows if row["subject"] == "m2")


def test_options_of_readers(tmp_path):
    (tmp_path / "b.csv").write_text("first_frame,last_frame,Code\n10,19,rear\n", encoding="utf-8")
    done = ethobench(
        "convert", tmp_path / "b.csv", tmp_path / "t.csv", "--from", "intervals", "--to", "tidy", "--rate", 30,
        "--option", 'columns={"start": "first_frame", "stop": "last_frame", "behavior": "Code"}', "--option", "inclusive=true",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    converted = read_annotation(tmp_path / "t.csv")
    assert (converted.start.tolist(), converted.stop.tolist()) == ([10], [20])
    assert ethobench("convert", tmp_path / "b.csv", tmp_path / "u.csv", "--to", "tidy", "--option", "odd").returncode == 2
