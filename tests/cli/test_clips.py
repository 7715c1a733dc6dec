"""`ethobench clips`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ethobench import Annotation, write_annotation
from tests.cli.running import ethobench
from tests.video_files import decode, write_numbered_video


@pytest.fixture
def study(tmp_path):
    write_numbered_video(tmp_path / "m1.mp4", np.arange(60) / 10)
    labels = Annotation.from_bouts([10, 30, 45], [15, 35, 50], ["rear", "groom", "rear"], ["rear", "groom"], 10, 60)
    write_annotation(labels, tmp_path / "m1.csv", "tidy")
    (tmp_path / "recordings.csv").write_text("recording,video,annotations,annotator\nm1,m1.mp4,m1.csv,anna\n", encoding="utf-8")
    return tmp_path


def test_clips_of_a_study(study):
    result = ethobench("clips", study, "--behavior", "rear", "--margin", "0.5s", "--out", study / "clips")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("2 files of 2 bouts in")
    files = sorted((study / "clips" / "rear").iterdir())
    assert [len(decode(file)) for file in files] == [15, 15]
    again = ethobench("clips", study, "--behavior", "rear", "--out", study / "clips")
    assert again.returncode == 1
    assert "use --overwrite" in again.stderr


@pytest.mark.slow
def test_grid_overlay_and_timeline_of_loose_files(study):
    loose = (study / "m1.mp4", study / "m1.csv")
    for option, name in ((["--grid"], "rear.grid.mp4"), (["--overlay"], "m1.overlay.mp4"), (["--timeline", "svg"], "m1.svg")):
        result = ethobench("clips", *loose, *option, "--out", study / "out", "--json")
        assert result.returncode == 0, result.stderr
        assert str(study / "out" / name) in json.loads(result.stdout)["files"]
    assert len(decode(study / "out" / "m1.overlay.mp4")) >= 59


def test_wrong_options_are_refused(study):
    out = ("--out", study / "out")
    assert "no behavior 'reer'" in ethobench("clips", study, "--behavior", "reer", *out).stderr
    assert ethobench("clips", study, "--grid", "--overlay", *out).returncode == 2
    unused = ethobench("clips", study, "--overlay", "--behavior", "rear", *out)
    assert unused.returncode == 2
    assert "--behavior has no meaning with --overlay" in " ".join(unused.stderr.replace("│", " ").split())
    assert ethobench("clips", study, "--timeline", "exe", *out).returncode == 2
    assert "is not a duration" in ethobench("clips", study, "--margin", "soon", *out).stderr
    assert "has 1 cameras" in ethobench("clips", study, "--camera", 2, *out).stderr
    (study / "m1.mp4").unlink()
    assert "neither a video nor poses" in ethobench("clips", study / "m1.csv", *out).stderr
    assert not (study / "out").exists()
