"""Commands `study make` and `study check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ethobench.cli import app
from ethobench.core.errors import EthobenchError
from tests.datasets.test_discover import DLC, frames, labels, poses

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")


def ethobench(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def error_of(*arguments: object) -> str:
    result = ethobench(*arguments, code=1)
    assert isinstance(result.exception, EthobenchError), result.output
    return str(result.exception)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Poses and labels of two recordings of each of two animals, and a file that is neither."""
    for mouse in (1, 2):
        for day in (1, 2):
            poses(tmp_path / f"mouse{mouse}_day{day}{DLC}.csv")
            labels(tmp_path / "anna" / f"mouse{mouse}_day{day}.csv")
    (tmp_path / "notes.txt").write_text("dear diary", encoding="utf-8")
    return tmp_path


def test_make_then_check(folder):
    lines = ethobench("study", "make", folder).stdout.splitlines()
    assert lines[0].startswith("4 recordings from 9 files")
    text = " ".join(" ".join(lines).split())
    assert "individuals 2, guessed from names of files and folders: 'mouse1_day1' is of 'mouse1'" in text
    assert "not used notes.txt: format not recognized" in text
    assert "rate 30 Hz, from annotations (4)" in text
    assert "lengths of annotations and poses or signals, compared in 4 of 4 recordings: no problems" in text
    assert lines[-1] == f"next: ethobench study check {folder}"
    done = ethobench("study", "check", folder)
    checked = done.stdout.splitlines()
    assert checked[0].split() == ["recordings", "4;", "4", "with", "signals"]
    assert checked[1].split() == ["individuals", "2"]
    assert checked[-1] == f"next: ethobench train {folder} --out models/first"
    assert "no problems" in checked
    summary = [line for line in [*lines[1:-2], *checked[:-1]] if str(folder) not in line]
    assert max(map(len, summary)) <= 80


def test_make_reports_labels_that_are_longer_than_the_poses(folder):
    labels(folder / "anna" / "mouse1_day2.csv", 120)
    text = " ".join(ethobench("study", "make", folder).stdout.split())
    assert "compared in 4 of 4 recordings: 1 do not fit" in text
    assert "problem anna/mouse1_day2.csv: labels for 120 frames, but signals for 60" in text


def test_dry_run_writes_nothing(folder):
    before = sorted(folder.rglob("*"))
    assert "nothing is written" in ethobench("study", "make", folder, "--dry-run").stdout
    content = json.loads(ethobench("study", "make", folder, "--dry-run", "--json").stdout)
    assert [row["recording"] for row in content["rows"]] == ["mouse1_day1", "mouse1_day2", "mouse2_day1", "mouse2_day2"]
    assert content["written"] == []
    assert sorted(folder.rglob("*")) == before


def test_an_existing_manifest_is_kept(folder):
    (folder / "recordings.csv").write_text("mine", encoding="utf-8")
    message = error_of("study", "make", folder)
    assert all(hint in message for hint in ("already exists", "study check", "--out", "--overwrite", "--dry-run"))
    assert (folder / "recordings.csv").read_text(encoding="utf-8") == "mine"
    assert f"next: ethobench study check {folder / 'draft.csv'}" in ethobench("study", "make", folder, "--out", "draft.csv").stdout
    ethobench("study", "check", folder / "draft.csv")
    ethobench("study", "make", folder, "--overwrite")
    ethobench("study", "check", folder)
    ethobench("study", "make", folder, "--out", "draft.txt", code=2)


def test_problems_are_listed_with_exit_code_1(folder):
    (folder / "recordings.csv").write_text(
        f"recording,animal,fps,poses,labels\nm1,a,30,mouse1_day1{DLC}.csv,ann/mouse1_day1.csv\nm2,b,x,no.csv,\n", encoding="utf-8"
    )
    result = ethobench("study", "check", folder, code=1)
    assert "7 problems" in result.stderr
    for text in (
        "header: column 'animal' is not known; did you mean 'individual'?",
        "header: column 'labels' is not known; did you mean 'annotations'?",
        "row 2: annotations: ann/mouse1_day1.csv does not exist; did you mean anna/mouse1_day1.csv?",
        "row 3: rate must be a positive number, got 'x'",
        "row 3: signals: no.csv does not exist",
    ):
        assert text in result.stderr
    content = json.loads(ethobench("study", "check", folder, "--json", code=1).stdout)
    assert (content["valid"], len(content["problems"])) == (False, 7)


def test_semicolons_of_excel(folder):
    ethobench("study", "make", folder)
    path = folder / "recordings.csv"
    path.write_text("\ufeff" + path.read_text(encoding="utf-8").replace(",", ";").replace(";30;", ";30,0;"), encoding="utf-8")
    ethobench("study", "check", folder)


@pytest.mark.parametrize("command", [("train", "--out", "model"), ("study", "check"), ("datasets", "show"), ("pretrain", "--out", "model")])
def test_commands_that_find_no_manifest_name_the_command_that_drafts_one(folder, command):
    first, *rest = command
    options = rest if first in ("train", "pretrain") else []
    words = [first, *(() if options else rest), folder, *options]
    assert f"ethobench study make {folder}" in error_of(*words)


def test_the_next_command_fits_the_study(tmp_path):
    frames(tmp_path / "anna" / "m1.csv")
    frames(tmp_path / "ben" / "m1.csv")
    ethobench("study", "make", tmp_path, "--rate", "30")
    assert ethobench("study", "check", tmp_path).stdout.splitlines()[-1] == f"next: ethobench agreement {tmp_path}"
