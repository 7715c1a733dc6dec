"""Names that a user states to belong together: read, checked, and used before any rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hypothesis_limits import at_most
from typer.testing import CliRunner

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording, write_annotation
from ethobench.cli import app
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, NotFoundError
from ethobench.datasets.collate import collate_files, collate_pairs
from ethobench.datasets.match_file import describe_unmatched, read_match

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")


def write(path: Path, seed: int = 0, n: int = 600) -> Path:
    codes = np.repeat(np.random.default_rng(seed).integers(0, 3, n // 20), 20)
    write_annotation(Annotation.from_frames(codes, Ethogram(("a", "b", "other"), "other"), 30), path, "onehot")
    return path


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Return two folders: annotations of seeds 1 and 2 as x1 and x2 in one, as y7 and y8 in the other, so that x1 is y8."""
    for name, seed in (("pred/x1", 1), ("pred/x2", 2), ("truth/y8", 1), ("truth/y7", 2)):
        write(tmp_path / f"{name}.csv", seed)
    return tmp_path / "pred", tmp_path / "truth"


def test_stated_names_are_matched_and_reported(folders, tmp_path):
    path = tmp_path / "match.csv"
    path.write_text("Left;Right;comment\nx1;y8;first\nx2.csv;truth/y7.csv;\n".replace("truth/", ""), encoding="utf-8")
    assert eb.score(*folders, match=path).overall["f1"] == 1
    assert eb.score(*folders, match={"x1": "y8", "x2": "y7"}).recordings == ("y8", "y7")
    assert eb.score(*folders, match=[("x1", "y7"), (str(folders[0] / "x2.csv"), "y8")]).overall["f1"] < 1
    collation = collate_files(folders, match=path)
    assert [(m.path.name, m.recording, m.matched_by) for m in collation.matches] == [
        ("x1.csv", "y8", "match file"),
        ("y8.csv", "y8", "match file"),
        ("x2.csv", "y7", "match file"),
        ("y7.csv", "y7", "match file"),
    ]
    assert [note.code for note in collation.notes] == ["matched-as-stated"]
    assert {r.id: [*r.annotations] for r in eb.collate(folders, match=path)} == {"y8": ["pred", "truth"], "y7": ["pred", "truth"]}


@at_most(12)
@given(st.permutations(range(3)))
def test_stated_names_win_over_equal_names(tmp_path_factory, order):
    folder = tmp_path_factory.mktemp("swapped")
    for k in range(3):
        write(folder / "pred" / f"m{k}.csv", k)
        write(folder / "truth" / f"m{order[k]}.csv", k)
    pairs = collate_pairs(folder / "pred", folder / "truth", match={f"m{k}": f"m{order[k]}" for k in range(3)})
    assert {*pairs.pairs} == {f"m{k}" for k in range(3)}
    assert not pairs.only_predictions
    assert eb.score(folder / "pred", folder / "truth", match={f"m{k}": f"m{order[k]}" for k in range(3)}, resamples=0).overall["f1"] == 1


def test_names_of_a_dataset_are_matched(folders):
    names = {1: "monday", 2: "tuesday"}
    paths = {1: folders[1] / "y8.csv", 2: folders[1] / "y7.csv"}
    data = Dataset(
        tuple(Recording(names[k], annotations={"me": eb.read_annotation(paths[k], rate=30)}) for k in names), Ethogram([]), "days"
    )
    with pytest.raises(
        NotFoundError, match=r"days has no annotated recording of these names: only in .*pred: x1, x2; only in days: monday"
    ):
        eb.score(folders[0], data, rate=30)
    scores = eb.score(folders[0], data, rate=30, match={"x1": "monday", "x2": "tuesday"})
    assert scores.recordings == ("monday", "tuesday")
    assert scores.overall["f1"] == 1


def test_a_name_that_is_not_stated_is_not_matched_with_one_that_is(tmp_path):
    for name in ("pred/m1", "pred/m2", "truth/m2", "truth/m3"):
        write(tmp_path / f"{name}.csv")
    collated = collate_pairs(tmp_path / "pred", tmp_path / "truth", match={"m1": "m2"})
    assert {*collated.pairs} == {"m2"}
    assert collated.only_predictions == ("pred/m2",)
    assert collated.only_references == ("m3",)


def test_stated_lengths_and_media_need_not_agree(tmp_path):
    first, second = write(tmp_path / "p" / "x1.csv", n=600), write(tmp_path / "t" / "y1.csv", n=400)
    write(tmp_path / "p" / "x2.csv"), write(tmp_path / "t" / "y2.csv")
    collated = collate_pairs(first.parent, second.parent, match={"x1": "y1", "x2": "y2"})
    assert {*collated.pairs} == {"y1", "y2"}


def test_several_annotators_of_one_recording(tmp_path):
    for who in ("anna", "ben", "carla"):
        write(tmp_path / who / f"{who}_film.csv")
    folders = [tmp_path / who for who in ("anna", "ben", "carla")]
    write(tmp_path / "anna" / "other1.csv"), write(tmp_path / "ben" / "another2.csv")
    recordings = collate_files(folders, match=[("anna_film", "carla_film"), ("ben_film", "carla_film")]).recordings
    assert {r.id: len(r.annotations) for r in recordings} == {"carla_film": 3, "other1": 1, "another2": 1}


@pytest.mark.parametrize(
    ("match", "error", "message"),
    [
        ({"x1": "y7_", "x2": "y7"}, NotFoundError, r"'y7_' \(right; did you mean 'y7'\?\). Available: x1, x2, y7, y8"),
        ({"nothing": "y7"}, NotFoundError, r"'nothing' \(left\)"),
        ([("x1", "y7"), ("x1", "y8")], MismatchError, "duplicate names in the column left of the match: x1"),
        ([("x1", "y7"), ("x2", "y7")], MismatchError, "duplicate names in the column right of the match: y7"),
        ([("x1", "y7"), ("x1.csv", "y8")], MismatchError, "is matched twice"),
        ({"x1": "x1.csv"}, MismatchError, "are the same recording already"),
        ("left,right\nx1,\n", FormatError, "row 2: a name is missing"),
        ("left,right\n", FormatError, "no names below the header"),
        ("pred,truth\nx1,y8\n", FormatError, "no column left and right; expected the columns left and right, got pred, truth"),
        ("", FormatError, "empty"),
        ("missing", NotFoundError, "no such file"),
    ],
)
def test_invalid_match_files_are_refused(match, error, message, folders, tmp_path):
    if isinstance(match, str):
        path = tmp_path / "match.csv"
        if match != "missing":
            path.write_text(match, encoding="utf-8")
        match = path
    with pytest.raises(error, match=message):
        eb.score(*folders, match=match)


def test_match_is_for_files(folders):
    annotation = eb.read_annotation(folders[0] / "x1.csv", rate=30)
    with pytest.raises(EthobenchError, match="`match`, `entry` and `options` are options for files"):
        eb.score(annotation, annotation, match={"a": "b"})


def test_errors_about_names_list_both_sides_and_the_command(folders, tmp_path):
    with pytest.raises(
        EthobenchError, match=r"only in .*pred: x1, x2; only in .*truth: y7, y8.\n.*pass it with match=:\n  left,right\n  x1,y7"
    ):
        eb.score(*folders)
    result = CliRunner().invoke(app, ["agreement", *map(str, folders)])
    assert isinstance(result.exception, EthobenchError)
    message = str(result.exception)
    assert "no recording has two annotators: only in" in message
    advised = tmp_path / "names.csv"
    advised.write_text("\n".join(line.strip() for line in message.splitlines()[-2:]) + "\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["agreement", *map(str, folders), "--match", str(advised), "--json"])
    assert result.exit_code == 0, result.output
    advised.write_text("left,right\nx1,y8\nx2,y7\n", encoding="utf-8")
    assert CliRunner().invoke(app, ["score", *map(str, folders), "--match", str(advised), "--json"]).exit_code == 0


def test_names_with_commas_are_quoted(tmp_path):
    text = describe_unmatched([("p", ["m1, left"]), ("t", ["m1"])])
    path = tmp_path / "match.csv"
    path.write_text("\n".join(line.strip() for line in text.splitlines()[-2:]), encoding="utf-8")
    assert read_match(path) == [("m1, left", "m1")]


def test_a_common_core_is_matched_and_reported(tmp_path):
    for k, tail in ((3, "topcam"), (4, "sidecam")):
        write(tmp_path / "anna" / f"2024-05-0{k}_m{k}_{tail}_annotations_anna.csv", k)
        write(tmp_path / "truth" / f"m{k}_{tail}.csv", k)
    write(tmp_path / "truth" / "m5_topcam.csv", 5)
    collation = collate_files([tmp_path / "anna", tmp_path / "truth"])
    assert {r.id: [*r.annotations] for r in collation.recordings} == {
        "m3_topcam": ["anna", "truth"],
        "m4_sidecam": ["anna", "truth"],
        "m5_topcam": ["truth"],
    }
    assert [note.code for note in collation.notes] == ["matched-by-core"] * 2
    assert "share 'm3_topcam', which no other name has" in str(collation.notes[0])
    assert {m.matched_by for m in collation.matches} == {"name", "common core"}
