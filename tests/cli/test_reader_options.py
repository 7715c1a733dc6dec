"""`--option` and `--annotator` in the commands that read loose files, and the same in Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ethobench as eb
from ethobench.core.errors import EthobenchError, NotFoundError, ParameterError
from ethobench.datasets.discover import discover_study
from tests.cli.running import ethobench

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two tables of bouts whose columns nobody can guess, and a table of signals with two columns of labels."""
    for name, end in (("a", 4.5), ("b", 4.8)):
        (tmp_path / f"{name}.csv").write_text(f"start,stop,behavior,Code\n0,{end},x,rest\n{end},9.9,y,run\n")
    rows = "".join(f"{i / 10},0.1,{i % 3},{'rest' if i < 50 else 'run'},{'asleep' if i < 20 else 'awake'}\n" for i in range(100))
    (tmp_path / "tag.csv").write_text("time,ax,az,label,activity\n" + rows)
    return tmp_path


CODE = '--option=columns={"behavior": "Code"}'


def test_every_command_that_reads_loose_files(folder: Path) -> None:
    a, b = folder / "a.csv", folder / "b.csv"
    (inspected,) = json.loads(ethobench("inspect", a, CODE, "--json").stdout)
    assert [*inspected["recordings"][0]["annotators"]["annotator"]["behaviors"]] == ["rest", "run"]
    budget = json.loads(ethobench("budget", a, CODE, "--json").stdout)
    assert {row["behavior"] for row in budget} == {"rest", "run"}
    assert {*json.loads(ethobench("score", a, b, CODE, "--json").stdout)["behaviors"]} == {"rest", "run"}
    agreement = ethobench("agreement", a, b, CODE, "--annotator", "anna", "--annotator", "ben", "--json")
    assert json.loads(agreement.stdout)["annotators"] == ["anna", "ben"]
    converted = ethobench("convert", a, folder / "c.csv", "--to", "tidy", CODE, "--annotator", "anna")
    assert converted.returncode == 0, converted.stderr
    assert list(eb.read_recordings(folder / "c.csv", warn=False)[0].annotations) == ["anna"]


@pytest.mark.parametrize("command", [("inspect",), ("budget",), ("agreement", "b.csv"), ("score", "b.csv"), ("view", "b.csv")])
def test_unknown_options_are_refused(folder: Path, command: tuple[str, ...]) -> None:
    result = ethobench(command[0], folder / "a.csv", *(folder / name for name in command[1:]), "--option", "inclusiv=true")
    assert result.returncode == 1
    assert "interval table has no option 'inclusiv'; did you mean 'inclusive'? Options: rate, columns, inclusive" in " ".join(
        result.stderr.split()
    )
    assert "is not NAME=VALUE" in " ".join(ethobench("budget", folder / "a.csv", "--option", "inclusive").stderr.split())


def test_errors_name_options_in_a_form_that_works(folder: Path) -> None:
    result = ethobench("budget", folder / "tag.csv")
    assert "several columns may have the labels: label, activity; choose one with --option label=..." in " ".join(result.stderr.split())
    with pytest.raises(EthobenchError, match=r"choose one with label=$"):
        eb.read_annotation(folder / "tag.csv")
    rows = json.loads(ethobench("budget", folder / "tag.csv", "--option", "label=activity", "--json").stdout)
    assert {row["behavior"] for row in rows} == {"asleep", "awake"}
    assert eb.read_annotation(folder / "tag.csv", label="activity").ethogram.names == ("asleep", "awake")


def test_options_in_python(folder: Path) -> None:
    options = {"columns": {"behavior": "Code"}}
    assert {*eb.score(folder / "a.csv", folder / "b.csv", options=options).behaviors} == {"rest", "run"}
    assert eb.collate([folder / "a.csv", folder / "b.csv"], same_recording=True, options=options).ethogram.names == ("rest", "run")
    with pytest.raises(ParameterError, match="did you mean 'columns'"):
        eb.collate([folder / "a.csv"], options={"column": "x"})
    with pytest.raises(EthobenchError, match="`options` are options for files"):
        eb.score([0, 1], [0, 1], rate=1, behaviors=["a", "b"], options=options)


def test_study_make_writes_options(folder: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (folder / name).unlink()
    result = ethobench("study", "make", folder, "--option", "label=activity", "--annotator", "anna")
    assert result.returncode == 0, result.stderr
    assert "label=activity" in (folder / "recordings.csv").read_text()
    data = eb.load_dataset(folder)
    assert data["tag"].annotation("anna").ethogram.names == ("asleep", "awake")
    manifest = (folder / "recordings.csv").read_text()
    (folder / "recordings.csv").write_text(manifest.replace("label=activity", "labl=activity"))
    checked = ethobench("study", "check", folder)
    assert checked.returncode == 1
    assert "row 2: options: " in checked.stderr
    assert "did you mean 'label'?" in checked.stderr
    assert "state them in column 'options'" in ethobench("budget", folder, "--option", "label=activity").stderr


def test_names_of_unnamed_annotators(folder: Path) -> None:
    a, b = folder / "a.csv", folder / "b.csv"
    (inspected,) = json.loads(ethobench("inspect", a, "--annotator", "anna", "--json").stdout)
    assert list(inspected["recordings"][0]["annotators"]) == ["anna"]
    assert {row["annotator"] for row in json.loads(ethobench("budget", a, "--annotator", "anna", "--json").stdout)} == {"anna"}
    assert ethobench("score", a, b, "--annotator", "anna").returncode == 0
    assert json.loads(ethobench("agreement", a, b, "--json").stdout)["annotators"] == ["a", "b"]
    assert "no annotator 'carl'. Available: a, b" in ethobench("agreement", a, b, "--annotator", "carl").stderr
    assert eb.read_annotation(a, annotator="anna") == eb.read_annotation(a)


def test_files_that_name_annotators_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "m1.csv"
    path.write_text("rater,start,stop,behavior\nanna,0,1,rest\nben,0,2,rest\n")
    for command in ("inspect", "budget"):
        result = ethobench(command, path, "--annotator", "bne")
        assert result.returncode == 1
        assert "no annotator 'bne'; did you mean 'ben'? Available: anna, ben" in result.stderr
    (tmp_path / "pred").mkdir()
    (tmp_path / "pred" / "m1.csv").write_text("start,stop,behavior\n0,1,rest\n")
    assert "available: anna, ben" in ethobench("score", tmp_path / "pred" / "m1.csv", path, "--annotator", "carl").stderr
    with pytest.raises(NotFoundError, match="annotators: anna, ben"):
        discover_study(tmp_path, exclude=["pred/*"], annotator="carl")


def test_two_unnamed_files_of_a_recording_cannot_have_one_name(tmp_path: Path) -> None:
    for person in ("anna", "ben"):
        (tmp_path / person).mkdir()
        (tmp_path / person / "m1.csv").write_text("start,stop,behavior\n0,1,rest\n1,2,run\n")
    with pytest.raises(EthobenchError, match="several files of 'm1' name no annotator"):
        discover_study(tmp_path, rate=10, annotator="carl")
    result = ethobench("agreement", tmp_path / "anna", tmp_path / "ben", "--json")
    assert json.loads(result.stdout)["annotators"] == ["anna", "ben"]
