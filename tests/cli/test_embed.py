"""`ethobench embed`, and predicting from its output."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ethobench as eb
from ethobench.cli import app
from tests.training.test_video_embedding import bouts_of_speed, draw, make_onnx


def ethobench(*arguments: object):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def test_features_are_listed_and_finished_videos_kept(tmp_path: Path) -> None:
    draw(tmp_path / "v1.mp4", [2] * 20)
    done = ethobench("embed", tmp_path / "v1.mp4", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "1 of 1: v1.mp4, 20 rows" in done.stdout
    assert "column features, such as v1.npy" in done.stdout
    assert "finished before" in ethobench("embed", tmp_path / "v1.mp4", "--out", tmp_path / "out").stdout
    [result] = json.loads(ethobench("embed", tmp_path / "v1.mp4", "--out", tmp_path / "out", "--json").stdout)
    assert (result["status"], result["n_samples"]) == ("finished before", 20)


def test_a_failure_is_listed_and_is_exit_code_1(tmp_path: Path) -> None:
    draw(tmp_path / "v1.mp4", [2] * 20)
    (tmp_path / "v2.mp4").write_text("no video")
    done = ethobench("embed", tmp_path, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "failed: " in done.stderr
    assert "v2.mp4" in done.stderr
    assert (tmp_path / "out" / "v1.npy").is_file()


@pytest.mark.slow
def test_onnx_encoder_from_video_to_annotation(tmp_path: Path) -> None:
    """Embed with a small random convolution, train on the features, and predict the folder of features of a new video."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    encoder = make_onnx(tmp_path / "conv.onnx")
    (tmp_path / "videos").mkdir()
    lines = ["recording,individual,video,features,annotations,annotator"]
    for i in range(2):
        speeds = bouts_of_speed(i, 6)
        draw(tmp_path / "videos" / f"v{i}.mp4", speeds, seed=i)
        labels = eb.Annotation.from_frames([int(speed > 0) for speed in speeds], ["rest", "run"], rate=10)
        eb.write_annotation(labels, tmp_path / f"v{i}.csv")
        lines.append(f"v{i},m{i},videos/v{i}.mp4,features/v{i}.npy,v{i}.csv,ann")
    (tmp_path / "recordings.csv").write_text("\n".join(lines) + "\n")
    assert ethobench("embed", tmp_path / "videos", "--encoder", encoder, "--out", tmp_path / "features").exit_code == 0
    model = eb.create_model("boost", rounds=5).fit(eb.load_dataset(tmp_path))
    assert len(model.inputs) == 5
    assert model.inputs[0].startswith("features/conv-")
    model.save(tmp_path / "model")
    draw(tmp_path / "new.mp4", [0] * 40, seed=9)
    assert ethobench("embed", tmp_path / "new.mp4", "--encoder", encoder, "--out", tmp_path / "new").exit_code == 0
    done = ethobench("predict", tmp_path / "model", tmp_path / "new", "--out", tmp_path / "annotations")
    assert done.exit_code == 0, done.output
    assert eb.read_annotation(tmp_path / "annotations" / "new.csv").n_frames == 40
    assert ethobench("embed", tmp_path / "new.mp4", "--out", tmp_path / "motion").exit_code == 0
    refused = ethobench("predict", tmp_path / "model", tmp_path / "motion", "--out", tmp_path / "other")
    assert refused.exit_code == 1
    assert f"has {len(np.load(tmp_path / 'motion' / 'new.npy')[0])} features, but the model was trained on 5" in refused.output
