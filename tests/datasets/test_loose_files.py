"""Paths, names of datasets, entries and annotators: what is read from loose files, for every command in the same way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.datasets.test_collate import labels, write, write_project
from typer.testing import CliRunner

import ethobench as eb
from ethobench import write_recordings
from ethobench.app.opening import open_project
from ethobench.cli import app
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets.collate import collate_files
from ethobench.datasets.loose_files import check_source, is_dataset

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_path_wins_over_the_name_of_a_dataset(tmp_path, monkeypatch):
    assert is_dataset(Path("bebe/HAR"))
    assert not is_dataset(Path("bebe/HARE"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "bebe" / "HAR" / "m1.csv")
    assert not is_dataset(Path("bebe/HAR"))
    assert [r.id for r in collate_files("bebe/HAR").recordings] == ["m1"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bebe/HARR", "no such file, folder or dataset; did you mean 'bebe/HAR'"),
        ("predictons", "did you mean 'predictions'"),
        ("nothing/like/it", "lists datasets"),
    ],
)
def test_unknown_names_are_refused_with_similar_ones(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "predictions" / "m1.csv")
    with pytest.raises(NotFoundError, match=message):
        check_source(Path(name))
    for command in (["score", "predictions", name], ["score", name, "predictions"], ["agreement", name], ["budget", name]):
        with pytest.raises(NotFoundError, match=message):
            run(*command)
    with pytest.raises(NotFoundError, match=message):
        open_project([name])
    result = CliRunner().invoke(app, ["inspect", name])
    assert result.exit_code == 1
    assert "no such file, folder or dataset" in result.output


@pytest.mark.slow
def test_every_command_takes_the_name_of_a_dataset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = eb.load_dataset("synthetic/pose")
    for recording in data:
        eb.write_annotation(recording.annotation(), tmp_path / "pred" / f"{recording.id}.csv")
    scores = json.loads(run("score", "pred", "synthetic/pose", "--json"))
    assert scores["overall"]["f1"] == 1
    assert eb.score("pred", "synthetic/pose").overall["f1"] == 1
    rows = json.loads(run("budget", "synthetic/pose", "--json"))
    assert {row["recording"] for row in rows} == {r.id for r in data}
    assert {row["individual"] for row in rows} == {*data.individuals}
    assert [r["id"] for r in json.loads(run("inspect", "synthetic/pose", "--json"))[0]["recordings"]] == [r.id for r in data]
    assert len(open_project(["synthetic/pose"]).recordings) == len(data)
    assert json.loads(run("agreement", "synthetic/pose", "pred", "--json"))["annotators"] == ["truth", "pred"]


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """Return a folder with two BORIS projects, of which the first has the observations of two animals."""
    write_project(tmp_path / "one.boris", {"m1": ("a.mp4", [1, 3]), "m2": ("b.mp4", [5, 9, 12, 13])})
    write_project(tmp_path / "two.boris", {"m3": ("c.mp4", [2, 4])})
    return tmp_path


def test_one_entry(projects, tmp_path):
    assert [r.id for r in eb.collate(projects, entry="m2", annotations_only=True)] == ["m2"]
    assert {row["recording"] for row in json.loads(run("budget", projects, "--entry", "m3", "--json"))} == {"m3"}
    assert json.loads(run("score", projects / "one.boris", projects, "--entry", "m2", "--json"))["overall"]["f1"] == 1
    assert eb.score(projects / "one.boris", projects / "one.boris", entry="m1").recordings == ("m1",)
    assert [r.recording.id for r in open_project([str(projects)], entry="m1").recordings] == ["m1"]
    with pytest.raises(NotFoundError, match=r"no file has an entry 'm22'; did you mean 'm2'\? Available: m1, m2, m3"):
        run("budget", projects, "--entry", "m22")
    with pytest.raises(NotFoundError, match=r"no file has an entry 'else'\. Available"):
        run("agreement", projects, "--entry", "else")
    write_project(tmp_path / "pred" / "model.boris", {"model": ("c.mp4", [5, 9])})  # one recording, and no entry m2
    assert eb.score(tmp_path / "pred" / "model.boris", projects / "one.boris", entry="m2").recordings == ("m2",)
    with pytest.raises(EthobenchError, match=r"choose it with entry='m1'.\nIf they are the same"):
        eb.score(tmp_path / "pred" / "model.boris", projects / "one.boris")
    with pytest.raises(EthobenchError, match=r"one\.boris has no annotation of entry 'm3'"):
        eb.score(projects / "one.boris", projects / "two.boris", entry="m3")
    rated = tmp_path / "rated"  # an entry that is read again at the rate of another file
    write(rated / "labels" / "m2.csv", n=600)
    assert eb.collate([rated / "labels", projects / "one.boris"], entry="m2")["m2"].annotations


def test_one_stream_of_files_with_several(tmp_path):
    first, second = (labels(seed, 600) for seed in (1, 2))
    for name in ("m1", "m2"):
        recordings = [eb.Recording(stream, annotations={"anna": a}) for stream, a in (("S1", first), ("S2", second))]
        (tmp_path / "truth").mkdir(exist_ok=True)
        write_recordings(recordings, tmp_path / "truth" / f"{name}.txt", "caltech")
        write_recordings([eb.Recording(name, annotations={"model": first})], tmp_path / "pred" / f"{name}.boris", "boris")
    with pytest.raises(EthobenchError, match=r"only in .*truth: m1/S1, m1/S2, m2/S1, m2/S2.\n.* choose it with entry='S1'"):
        eb.score(tmp_path / "pred", tmp_path / "truth")
    scores = eb.score(tmp_path / "pred", tmp_path / "truth", entry="S1")
    assert (scores.recordings, scores.overall["f1"]) == (("m1", "m2"), 1)
    assert eb.score(tmp_path / "pred", tmp_path / "truth", entry="S2").overall["f1"] < 1


def test_one_annotator(tmp_path):
    for who, seed in (("anna", 1), ("ben", 2), ("carla", 3)):
        write(tmp_path / who / "m1.csv", seed)
    folders = [tmp_path / who for who in ("anna", "ben", "carla")]
    options = ["--annotator", "anna", "--annotator", "ben", "--json"]
    assert json.loads(run("agreement", *folders, *options))["annotators"] == ["anna", "ben"]
    assert {row["annotator"] for row in json.loads(run("budget", *folders, *options))} == {"anna", "ben"}
    assert [*open_project([*map(str, folders)], annotators=["ben"]).recordings[0].recording.annotations] == ["ben"]
    with pytest.raises(NotFoundError, match=r"no annotator 'bern'; did you mean 'ben'\? Available: anna, ben, carla"):
        run("budget", *folders, "--annotator", "bern")
    together = tmp_path / "all.csv"
    write_recordings([*eb.collate(folders)], together, "tidy")
    (described,) = json.loads(run("inspect", together, "--annotator", "carla", "--rename", "a=attack", "--json"))[0]["recordings"]
    assert {name: sorted(a["behaviors"]) for name, a in described["annotators"].items()} == {"carla": ["attack", "b", "other"]}
    run("convert", together, tmp_path / "only.csv", "--to", "tidy", "--annotator", "ben")
    assert [*eb.read_recordings(tmp_path / "only.csv")[0].annotations] == ["ben"]


def test_the_viewer_renames_and_refuses_meaningless_options(tmp_path):
    write(tmp_path / "m1.csv")
    project = open_project([str(tmp_path / "m1.csv")], rename={"a": "attack"})
    assert "attack" in project.recordings[0].ethogram
    with pytest.raises(EthobenchError, match="is a dataset, for which match= has no meaning"):
        open_project(["synthetic/pose"], match={"a": "b"})
    assert len(open_project(["synthetic/pose"], entry=eb.load_dataset("synthetic/pose").recordings[0].id).recordings) == 1
