"""The command as a user runs it: exit codes, streams, one clear line for mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Recording, read_annotation, read_recordings, write_recordings
from tests.cli.running import ethobench, ethobench_process
from tests.video_files import write_video


@pytest.fixture
def two(tmp_path) -> Path:
    """A tidy file with two recordings."""
    ethogram = Ethogram(["rest", "run", "other"], "other")
    codes = np.arange(90) // 10 % 3
    recordings = [
        Recording(name, annotations={"annotator": Annotation.from_frames(np.roll(codes, i), ethogram, 30)})
        for i, name in enumerate(["mouse1", "../mouse2"])
    ]
    path = tmp_path / "two.csv"
    write_recordings(recordings, path)
    return path


def test_help_describes_every_command():
    top = ethobench("--help")
    assert top.returncode == 0
    for command in ("inspect", "convert", "datasets", "demo"):
        assert command in top.stdout
        shown = ethobench(command, "--help").stdout
        assert "Usage" in shown
        assert command == "datasets" or "example:" in shown.lower()


@pytest.mark.parametrize(
    ("command", "values"), [(("train",), {"param": "NAME=VALUE", "seed": "SEED"}), (("run", "bebe"), {"folds": "FOLDS"})]
)
def test_help_names_values_instead_of_python_types(command, values):
    shown = ethobench(*command, "--help").stdout
    for option, value in values.items():
        assert re.search(rf"--{option}\s+{value}", shown)
    assert not re.search("<(bool|str|int|path|list)", shown)


@pytest.mark.slow
def test_a_process_has_the_same_output_as_a_call(two, tmp_path):
    """Other tests call the command in their own process, which is faster."""
    for arguments, code in ((("inspect", two), 0), (("inspect", tmp_path / "none"), 1), (("convert",), 2)):
        process, call = ethobench_process(*arguments), ethobench(*arguments)
        assert (process.returncode, process.stdout, process.stderr) == (code, call.stdout, call.stderr)
        assert call.returncode == code
    assert ethobench_process("--version").stdout.startswith("ethobench 0.")


def test_inspect(two):
    done = ethobench("inspect", two)
    assert done.returncode == 0
    assert "mouse1: 90 frames at 30 Hz (3.0 s)" in done.stdout
    assert "rest 3 (1.0 s)" in done.stdout
    facts = json.loads(ethobench("inspect", two, "--json").stdout)
    assert facts[0]["recordings"][0]["annotators"]["annotator"]["behaviors"]["run"]["bouts"] == 3


def test_a_manifest_of_videos_has_their_clocks(tmp_path):
    write_video(tmp_path / "m1.webm", 60, 20)
    manifest = tmp_path / "recordings.csv"
    manifest.write_text("recording,video\nm1,m1.webm\n", encoding="utf-8")
    assert "m1: 60 frames at 20 Hz (3.0 s)" in ethobench("inspect", manifest).stdout
    assert "1 recordings of 1 individuals, 60 frames" in ethobench("datasets", "show", tmp_path).stdout
    for command in (["budget", manifest], ["train", tmp_path, "--model", "rf", "--out", tmp_path / "model"]):
        done = ethobench(*command)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
        assert "annotated" in done.stderr


def test_mistakes_are_one_line_and_exit_code_1(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text('{"segments": [', encoding="utf-8")
    empty = tmp_path / "empty.csv"
    empty.touch()
    for arguments in (("inspect", broken), ("inspect", empty), ("inspect", tmp_path / "none"), ("datasets", "show", "bebe/HAT")):
        done = ethobench(*arguments)
        assert done.returncode == 1, done
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.strip().splitlines()) == 1
        assert "Traceback" not in done.stderr + done.stdout


def test_wrong_usage_is_exit_code_2():
    assert ethobench("convert").returncode == 2
    assert ethobench("nonsense").returncode == 2


def test_one_bad_file_does_not_hide_the_good_ones(two, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.touch()
    done = ethobench("inspect", empty, two)
    assert done.returncode == 1
    assert "mouse1" in done.stdout


def test_convert_to_one_file_and_back(two, tmp_path):
    parquet = tmp_path / "two.parquet"
    assert ethobench("convert", two, parquet).returncode == 0
    again = {r.id: r.annotation() for r in read_recordings(parquet)}
    assert again == {r.id: r.annotation() for r in read_recordings(two)}


def test_convert_into_a_folder_with_harmless_names(two, tmp_path):
    out = tmp_path / "out"
    done = ethobench("convert", two, out, "--to", "tidy")
    assert done.returncode == 0
    assert sorted(p.name for p in out.iterdir()) == ["mouse1.csv", "mouse2.csv"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "two.csv"]


def test_convert_long_names_of_any_script(tmp_path):
    annotation = Annotation.from_bouts([0], [5], ["rest"], ["rest"], rate=10, n_frames=60)
    annotators = {"観察者" * 40 + end: annotation for end in "ab"}
    recordings = [Recording("実験室の小鼠" * 40 + end, annotations=annotators) for end in "ab"]
    write_recordings(recordings, tmp_path / "all.csv", "tidy")
    done = ethobench("convert", tmp_path / "all.csv", tmp_path / "out", "--to", "bento")
    assert done.returncode == 0, done.stderr
    assert len([*(tmp_path / "out").iterdir()]) == 4


def test_convert_overwrites_only_on_request(two, tmp_path):
    target = tmp_path / "precious.parquet"
    target.write_bytes(b"mine")
    done = ethobench("convert", two, target)
    assert done.returncode == 1
    assert "already exists (use --overwrite to replace it)" in done.stderr
    assert target.read_bytes() == b"mine"
    assert ethobench("convert", two, target, "--overwrite").returncode == 0
    assert len(read_recordings(target)) == 2


def test_convert_resamples_and_selects(two, tmp_path):
    target = tmp_path / "one.csv"
    assert ethobench("convert", two, target, "--entry", "mouse1", "--rate", 60).returncode == 0
    assert read_annotation(target).n_frames == 180


def test_convert_names_missing_options(two, tmp_path):
    assert "specify the format with --to" in ethobench("convert", two, tmp_path / "folder").stderr
    assert "no format has the suffix" in ethobench("convert", two, tmp_path / "x.docx").stderr


def test_datasets(tmp_path):
    listed = ethobench("datasets", "list", ETHOBENCH_DATA=str(tmp_path))
    assert "bebe/HAR" in listed.stdout
    assert json.loads(ethobench("datasets", "list", "--json", ETHOBENCH_DATA=str(tmp_path)).stdout)[0]["name"] == "banos"
    shown = ethobench("datasets", "show", "synthetic/tag", "--json")
    facts = json.loads(shown.stdout)
    assert facts["individuals"] == 8
    assert sum(facts["shares"]["truth"].values()) == pytest.approx(1)
    assert "already on this machine" in ethobench("datasets", "fetch", "synthetic/tag").stdout


@pytest.mark.slow
def test_completion_completes():
    words = "ethobench in"
    done = ethobench_process(_ETHOBENCH_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD="1", _TYPER_COMPLETE_ARGS=words)
    assert done.stdout.split() == ["inspect"]


@pytest.mark.slow
def test_import_is_light():
    heavy = "{'pandas', 'scipy', 'sklearn', 'torch', 'pyarrow'}"
    code = f"import sys, ethobench; from ethobench import Ethogram; print(sorted({heavy} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
