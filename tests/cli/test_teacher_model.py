"""The model that the viewer's teacher saves, on the command line: `predict`, its card, and `train`."""

from __future__ import annotations

import pytest

from ethobench import load_dataset, read_recordings, score, write_recordings
from ethobench.app.opening import open_project
from ethobench.app.teaching import Teaching
from ethobench.datasets.synthetic import make_dataset
from tests.cli.running import ethobench

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    return make_dataset("pose", individuals=3, seconds=60, folds=3)


@pytest.fixture(scope="module")
def study(data, tmp_path_factory):
    """Poses of three recordings; two were labeled in the viewer, and the teacher's model was saved."""
    folder = tmp_path_factory.mktemp("films")
    lines = ["recording,individual,rate,signals"]
    for recording in data:
        write_recordings([recording], folder / "poses" / f"{recording.id}.csv", "deeplabcut")
        lines.append(f"{recording.id},{recording.individual},{recording.rate:g},poses/{recording.id}.csv")
    (folder / "recordings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = [{"name": behavior.name} for behavior in data.ethogram]
    project = open_project([str(folder)])
    project.edit_ethogram(project.ethograms.revision, names)
    for index, recording in enumerate(data.recordings[:2]):
        project.start(index, "zoe")
        truth, ethogram = recording.annotation(), project.recordings[index].ethogram
        project.change(index, "zoe", None, lambda _, truth=truth, ethogram=ethogram: truth.with_ethogram(ethogram))
    teaching = Teaching(project, cache=folder / "features")
    teaching.train(["zoe"])
    teaching.wait(120)
    assert teaching.status()["state"] == "idle", teaching.status()
    teaching.save("first model")
    teaching.close()
    return folder


def saved_model(study):
    (folder,) = (study / "corrections" / "models").iterdir()
    return folder


def test_predict_annotates_a_recording_that_nobody_labeled(study, data, tmp_path):
    third = data.recordings[2]
    done = ethobench(
        "predict", saved_model(study), study / "poses" / f"{third.id}.csv", "--rate", f"{third.rate:g}", "--out", tmp_path / "out"
    )
    assert done.returncode == 0, done.stderr
    (written,) = (tmp_path / "out").glob("*.csv")
    predicted = next(iter(read_recordings(written, rate=third.rate)[0].annotations.values()))
    assert score({third.id: predicted}, {third.id: third.annotation()}, resamples=0).overall["f1"] > 0.4


def test_the_card_names_the_labels_and_the_held_out_scores(study):
    card = (saved_model(study) / "CARD.md").read_text(encoding="utf-8")
    assert "2 recordings" in card
    assert "held-out recordings" in card
    assert all(name in card for name in ("mount", "investigation"))


def test_trees_cannot_be_the_start_of_another_model(study, tmp_path):
    for options in ((), ("--model", "conv1d"), ("--model", "boost")):
        done = ethobench("train", study, *options, "--init", saved_model(study), "--out", tmp_path / "x")
        assert done.returncode == 1
        assert "is a saved 'boost', which has no weights to start from" in done.stderr
        assert not (tmp_path / "x").exists()


def test_a_larger_model_is_trained_on_the_same_labels(study, tmp_path):
    assert [len(recording.annotations) for recording in load_dataset(study)] == [1, 1, 0]
    done = ethobench("train", study, "--model", "rf", "--param", "trees=5", "--out", tmp_path / "forest")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "forest" / "CARD.md").is_file()
