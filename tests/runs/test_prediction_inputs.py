"""Inputs of batch prediction: which recordings files, folders and datasets hold."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.runs.prediction_inputs import PredictionInput, find_inputs, name_outputs


def write_signals(path, n_frames: int = 50) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = np.column_stack([np.arange(n_frames) / 10, np.random.default_rng(0).normal(size=(n_frames, 2))])
    np.savetxt(path, table, delimiter=",", header="time,AccX,AccY", comments="", fmt="%.4f")


def test_a_folder_lists_signals_and_skips_labels_hidden_files_and_unknown_files(tmp_path):
    write_signals(tmp_path / "b.csv")
    write_signals(tmp_path / "deep" / "a.csv")
    write_signals(tmp_path / ".hidden" / "c.csv")
    eb.write_annotation(eb.Annotation.from_frames([0, 1], ["a", "b"], 10), tmp_path / "labels.csv")
    (tmp_path / "README").write_text("notes about the animals", encoding="utf-8")
    (tmp_path / "empty.csv").write_bytes(b"")
    inputs = find_inputs([tmp_path])
    assert [item.name for item in inputs.inputs] == ["b", "a"]
    assert [failure.input for failure in inputs.failures] == ["empty.csv"]
    assert [note.code for note in inputs.notes] == ["skipped-files"]
    recording, _ = inputs.inputs[0].read(None)
    assert recording.signals.channels == ("AccX", "AccY")


def test_the_recordings_of_a_dataset_and_of_a_file_with_several(tmp_path):
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=4)
    inputs = find_inputs(["synthetic/tag"]).inputs
    recording, _ = inputs[1].read(None)
    assert (recording.id, inputs[1].version) == (inputs[1].entry, eb.load_dataset("synthetic/tag").version)
    eb.write_recordings(list(data), tmp_path / "x.json", "calms21")
    several = find_inputs([tmp_path / "x.json"]).inputs
    assert len(several) == 2
    for item, original in zip(several, data, strict=True):
        np.testing.assert_allclose(item.read(None)[0].signals.positions, original.signals.positions, atol=1e-3)
    with pytest.raises(MismatchError, match="has 25 Hz"):
        find_inputs(["synthetic/tag"], rate=77)
    with pytest.raises(EthobenchError):
        find_inputs([tmp_path / "nowhere"])


def test_a_changed_dataset_is_not_predicted():
    item = PredictionInput("animal01", "synthetic/tag", entry="animal01", version="another")
    with pytest.raises(MismatchError, match="has changed since the command started"):
        item.read(None)


def test_an_unchanged_stamp_means_the_same_digest(tmp_path):
    write_signals(tmp_path / "a.csv")
    item = PredictionInput("a", str(tmp_path / "a.csv"), "signals_csv")
    stamp, digest = item.stamp(), item.digest()
    write_signals(tmp_path / "a.csv", 60)
    assert (item.stamp() != stamp, item.digest() != digest) == (True, True)


def test_names_are_different_even_in_folders_of_the_same_name():
    paths = ("/a/x/poses.csv", "/b/x/poses.csv", "/b/y/other.csv")
    inputs = [PredictionInput(path.split("/")[-1][:-4], path, "deeplabcut") for path in paths]
    assert name_outputs(inputs, ".csv") == ["x_poses.csv", "x_poses_2.csv", "other.csv"]
