"""`ethobench plot`."""

from __future__ import annotations

import csv
import re

import pytest

from ethobench import load_dataset, write_annotation, write_recordings
from ethobench.cli.plot import ANNOTATED, KINDS
from tests.cli.running import ethobench


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Write a study of four animals in two groups, with poses and two annotators."""
    folder = tmp_path_factory.mktemp("study")
    rows = ["recording,individual,rate,signals,annotations,annotator,treatment"]
    for k, recording in enumerate(load_dataset("synthetic/pose", individuals=4, seconds=20)):
        write_recordings([recording], folder / f"poses/{recording.id}.csv", "deeplabcut")
        for who in ("anna", "ben"):
            labels = recording.annotation() if who == "anna" else recording.annotation().shift(5)
            write_annotation(labels, folder / f"{who}/{recording.id}.csv", "tidy", recording=recording.id)
            group = ("control", "treated")[k % 2]
            cells = (recording.id, recording.individual, f"{recording.rate:g}", f"poses/{recording.id}.csv", f"{who}/{recording.id}.csv")
            rows.append(",".join((*cells, who, group)))
    (folder / "recordings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


ARGUMENTS = {
    "agreement": [],
    "occupancy": [],
    "trajectory": ["--behavior", "attack", "--annotator", "anna"],
    "group_comparison": ["--groups", "treatment", "--annotator", "anna"],
    **{kind: ["--annotator", "anna"] for kind in ANNOTATED},
}


def width_of(path) -> float:
    return float(re.search(r'width="([0-9.]+)pt"', path.read_text(encoding="utf-8"))[1]) / 72 * 25.4


@pytest.mark.parametrize("kind", ["budget", *(pytest.param(kind, marks=pytest.mark.slow) for kind in sorted({*ARGUMENTS} - {"budget"}))])
def test_figures_of_a_study(kind, study, tmp_path):
    out, numbers = tmp_path / "f.svg", tmp_path / "f.csv"
    result = ethobench("plot", kind, study, *ARGUMENTS[kind], "--out", out, "--width", 120, "--csv", numbers)
    assert result.returncode == 0, result.stderr
    assert width_of(out) == pytest.approx(120, abs=0.01)
    rows = list(csv.DictReader(numbers.read_text(encoding="utf-8").splitlines()))
    assert rows
    again = ethobench("plot", kind, study, *ARGUMENTS[kind], "--out", out)
    assert again.returncode == 1
    assert "already exists" in again.stderr


@pytest.mark.slow
def test_a_confusion_matrix_of_two_folders(study, tmp_path):
    result = ethobench("plot", "confusion", study / "ben", study / "anna", "--out", tmp_path / "c.pdf", "--csv", tmp_path / "c.csv")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF")
    rows = list(csv.DictReader((tmp_path / "c.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["truth"] for row in rows} == {"attack", "investigation", "mount", "other"}


@pytest.mark.slow
def test_figures_of_a_run(tmp_path):
    store = tmp_path / "run"
    ran = ethobench(
        "run", "synthetic", "--datasets", "tag", "--models", "chance,rf", "--param", "rf.trees=5", "--store", store, "--workers", 1
    )
    assert ran.returncode == 0, ran.stderr
    for kind in ("confusion", "reliability"):
        several = ethobench("plot", kind, store, "--out", tmp_path / f"{kind}.svg")
        assert "choose one model and dataset" in several.stderr
        chosen = several.stderr[several.stderr.index("--model rf") :].partition(";")[0].split()
        result = ethobench("plot", kind, store, *chosen, "--out", tmp_path / f"{kind}.svg")
        assert result.returncode == 0, result.stderr
    result = ethobench("plot", "learning_curve", store, *chosen[2:], "--out", tmp_path / "curve.svg", "--csv", tmp_path / "curve.csv")
    assert result.returncode == 0, result.stderr
    assert {row["model"] for row in csv.DictReader((tmp_path / "curve.csv").read_text().splitlines())} == {"chance", "rf"}


def test_wrong_requests_say_what_to_do(study, tmp_path):
    out = tmp_path / "f.svg"
    cases = [
        (["pie", study, "--out", out], "is none of ethogram"),
        (["budget", study, "--out", tmp_path / "f.docx"], "must end with .svg, .pdf, .png"),
        (["budget", study, "--keypoint", "nose", "--out", out], "has no meaning for budget"),
        (["confusion", study, study, study, "--out", out], "PRED TRUTH"),
        (["reliability", study, study, "--out", out], "store of a run with probabilities"),
        (["group_comparison", study, "--out", out], "such as treatment"),
        (["group_comparison", study, "--annotator", "anna", "--groups", "dose", "--out", out], "columns of the study"),
        (["ethogram", study, "--recording", "nowhere", "--out", out], "no recording 'nowhere'"),
    ]
    for arguments, message in cases:
        result = ethobench("plot", *arguments)
        assert result.returncode != 0
        assert message in " ".join((result.stdout + result.stderr).replace("│", " ").split()), result.stderr
    assert not list(tmp_path.iterdir())


def test_every_kind_is_a_function():
    from ethobench import plot

    assert all(callable(getattr(plot, kind)) for kind in KINDS)
    assert {*KINDS} == {name for name in plot.__all__ if name.islower()} - {"figure", "save"}
