"""Datasets, stores and loose files become projects."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from ethobench import Annotation, Poses, read_annotation, write_annotation
from ethobench.app.opening import open_project
from ethobench.app.traces import bones, lanes_of, pose_frames, pose_payload
from ethobench.core.errors import EthobenchError
from tests.video_files import write_video

N, RATE = 600, 10


def test_a_folder(lab, project):
    assert project.name == "lab"
    assert [(e.recording.id, e.rate, e.n_frames) for e in project.recordings] == [("m1", 10, N), ("m2", 10, N)]
    assert project.corrections.folder == lab / "corrections"
    assert project.recording(0).disagreement == pytest.approx(12 * 5 / N)
    assert project.recording(1).disagreement is None


def test_another_manifest_in_the_same_folder_has_separate_corrections(lab):
    """So that behaviors of one list never get into the other's dataset."""
    shutil.copy(lab / "recordings.csv", lab / "pilot.csv")
    project = open_project([str(lab / "pilot.csv")])
    project.start(0, "zoe", "anna")
    assert (lab / "corrections" / "pilot.csv").is_file()
    assert not (lab / "corrections" / "recordings.csv").exists()
    assert [t.name for t in open_project([str(lab / "pilot.csv")]).recording(0).tracks] == ["anna", "ben", "zoe"]


def test_a_folder_that_cannot_be_written(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ethobench.app.opening.os.access", lambda path, _: not Path(path).is_relative_to(lab))
    messages: list[str] = []
    project = open_project([str(lab)], notify=messages.append)
    assert project.corrections.folder.resolve() == tmp_path / "corrections" / "lab"
    assert str(tmp_path / "corrections" / "lab") in messages[0]
    monkeypatch.setattr("ethobench.app.opening.os.access", lambda *_: False)
    project = open_project([str(lab)], notify=messages.append)
    assert "is read-only, so labels cannot be saved; state another folder with" in messages.pop()
    assert len(project.recordings) == 2, "it can be viewed"
    named = open_project([str(lab)], corrections=tmp_path / "mine", notify=messages.append)
    assert named.corrections.folder == tmp_path / "mine"


def test_a_named_dataset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    messages: list[str] = []
    project = open_project(["synthetic/tag"], notify=messages.append)
    assert len(project.recordings) == 8
    project.start(0, "zoe", "truth")
    assert (tmp_path / "corrections" / "synthetic_tag" / "animal01.zoe.csv").is_file()
    assert [t.name for t in open_project(["synthetic/tag"]).recording(0).tracks] == ["truth", "zoe"]


def test_files_of_one_recording_are_joined(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = open_project([str(lab / name) for name in ("m1_anna.csv", "m1_ben.csv")] + [str(lab / "tags" / "m1.csv")])
    (entry,) = project.recordings
    assert [t.name for t in entry.tracks] == ["m1_anna", "m1_ben"]
    assert entry.signals is not None
    assert entry.disagreement == pytest.approx(0.1)


def test_files_of_the_same_name_are_distinguished_by_their_folders(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for who in ("anna", "ben"):
        (tmp_path / who).mkdir()
        shutil.copy(lab / f"m1_{who}.csv", tmp_path / who / "m1.csv")
    project = open_project(["anna/m1.csv", "ben/m1.csv"])
    assert [t.name for t in project.recording(0).tracks] == ["anna", "ben"]
    assert [t.name for t in open_project(["anna"]).recording(0).tracks] == ["m1"]


def test_an_annotation_that_ends_with_its_last_bout_is_completely_observed(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "late.csv").write_text("behavior,start,stop\nrun,1.0,2.0\n", encoding="utf-8")
    project = open_project([str(lab / "m1_anna.csv"), "late.csv"])
    late = project.recording(0).track("late").annotation
    assert (late.rate, late.n_frames) == (RATE, N)
    assert late.observed.is_complete(N)


def test_behaviors_can_be_added(lab):
    project = open_project([str(lab / "m1_anna.csv")], behaviors=["jump", "rest"], corrections=lab / "c")
    assert project.recording(0).ethogram.names == ("jump", "rest", "run", "groom", "other")
    project.start(0, "zoe", "m1_anna")
    project.edit(0, "zoe", 0, [{"kind": "mark", "start": 0, "stop": 10, "behavior": "jump"}])
    assert "jump" in read_annotation(lab / "c" / "m1_anna.zoe.csv").ethogram


@pytest.mark.parametrize(
    ("sources", "message"), [([], "name a dataset"), (["no/such/file"], "no/such/file"), (["synthetic/pos"], "synthetic/pose")]
)
def test_missing_inputs_are_refused(sources, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EthobenchError, match=message):
        open_project(sources)


def test_a_folder_without_recordings_is_refused(tmp_path):
    (tmp_path / "notes.xyz").write_text("hello", encoding="utf-8")
    messages: list[str] = []
    with pytest.raises(EthobenchError, match="nothing to view"):
        open_project([str(tmp_path)], notify=messages.append)
    assert "notes.xyz" in messages[0]


def test_tracks_on_another_clock_are_shown_on_this_one(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fast = read_annotation(lab / "m1_anna.csv").resample(50)
    write_annotation(fast, tmp_path / "fast.csv", "tidy")
    project = open_project([str(lab / "m1_anna.csv"), "fast.csv"])
    entry = project.recording(0)
    assert entry.track("fast").annotation.rate == RATE
    assert entry.disagreement == 0
    assert any("the annotation has 50 Hz" in note for note in entry.notes)


@pytest.mark.slow
def test_a_store_shows_what_its_models_predicted(tmp_path, monkeypatch):
    from ethobench.runs import Job, Setting, Store
    from ethobench.runs.worker import WorkerOptions, run_job

    monkeypatch.chdir(tmp_path)
    options = {"individuals": 2, "seconds": 30}
    from ethobench import load_dataset

    data = load_dataset("synthetic/tag", **options)
    for setting in ("full", "reduced"):
        job = Job("b", "synthetic/tag", data.version, ("animal01",), ("animal02",), "chance", options=options, setting=Setting(setting))
        assert run_job(job.to_dict(), str(tmp_path / "store"), WorkerOptions(keep=("probabilities",)))[0] == "done"
    project = open_project([str(tmp_path / "store")])
    (entry,) = project.recordings
    assert [(t.name, t.kind) for t in entry.tracks] == [("truth", "annotator"), ("chance", "model"), ("chance (reduced)", "model")]
    prediction = entry.track("chance").prediction
    assert prediction is not None
    assert prediction.exclusive
    assert prediction.probabilities.sum(axis=1) == pytest.approx(1, abs=0.02)
    assert entry.track("chance").annotation == prediction.annotation.with_ethogram(entry.ethogram)
    assert Store(tmp_path / "store").has(job.key)


def test_a_saved_model_predicts_what_is_opened(tmp_path, monkeypatch):
    from ethobench import create_model, load_dataset

    monkeypatch.chdir(tmp_path)
    create_model("chance").fit(load_dataset("synthetic/tag", individuals=2, seconds=30)).save(tmp_path / "luck")
    messages: list[str] = []
    project = open_project(["synthetic/tag"], models=[tmp_path / "luck"], notify=messages.append)
    assert [t.name for t in project.recording(2).tracks] == ["truth", "luck"]
    assert project.recording(2).track("luck").prediction is not None
    assert "luck predicts animal01 (1 of 8)" in messages
    assert [t.name for t in project.recording(0).tracks] == ["truth", "luck (seen in training)"]
    assert any("2 of 8 recordings were used to train luck (seen in training): animal01, animal02." in message for message in messages)
    assert "says nothing about new animals" in project.recording(0).notes[0]
    assert project.recording(2).notes == []


def test_signals_become_lanes(project):
    (lane,) = project.recording(0).lanes
    assert (lane.label, lane.channels) == ("Acc", ("AccX", "AccY", "AccZ"))
    assert lane.low < -1
    assert lane.high > 6


def poses(n: int = 50) -> Poses:
    """A straight animal that walks to the right, and one that is never seen."""
    positions = np.full((n, 2, 4, 2), np.nan)
    positions[:, 0, :, 0] = np.arange(n)[:, None] + np.array([0, 30, 10, 20])
    positions[:, 0, :, 1] = 7
    return Poses(positions, np.full((n, 2, 4), 0.5), ("a", "b"), ("nose", "tail", "neck", "hip"), 10)


def test_the_skeleton_is_the_shortest_tree():
    assert sorted(sorted(bone) for bone in bones(poses().positions)) == [[0, 2], [1, 3], [2, 3]]
    assert bones(np.full((3, 1, 2, 2), np.nan)) == []


def test_poses_are_encoded_for_the_page():
    facts = pose_payload(poses())
    assert facts["individuals"] == ["a", "b"]
    assert facts["box"][1] == facts["box"][3] == 7
    got = np.frombuffer(pose_frames(poses(), 48, 99), dtype="<f4").reshape(2, 2, 4, 3)
    assert got[0, 0, 1].tolist() == [78, 7, 0.5]
    assert np.isnan(got[:, 1, :, 0]).all()
    assert pose_frames(poses(), 60, 70) == b""


def test_speed_and_distance_of_poses():
    speed, distance = lanes_of(poses(), 10)
    assert (speed.label, speed.channels) == ("speed", ("a speed", "b speed"))
    assert speed.low == 0
    assert speed.high >= 10
    assert distance.channels == ("a to b",)


def test_the_length_may_come_from_the_signals_alone(tmp_path, monkeypatch, lab):
    monkeypatch.chdir(tmp_path)
    project = open_project([str(lab / "tags" / "m1.csv")], behaviors=["run"])
    assert project.recording(0).n_frames == N
    project.start(0, "zoe")
    assert isinstance(project.recording(0).track("zoe").annotation, Annotation)


@pytest.mark.data
@pytest.mark.slow
def test_real_recordings(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rats = open_project([str(data / "rats")], corrections=tmp_path / "c")
        second = open_project([str(data / "rats" / "recordings_s2.csv")], corrections=tmp_path / "c2")
    assert len(rats.recordings) == 46
    assert len(second.recordings) == 38
    assert rats.recording(0).lanes[0].label == "speed"
    banos = open_project(["banos"])
    assert banos.recording(0).disagreement == pytest.approx(0.078, abs=0.001)
    raters = open_project([str(data / "boris_two_raters" / who / "DLC1.csv") for who in ("brett_initial", "donnie_initial")])
    assert [t.name for t in raters.recording(0).tracks] == ["brett_initial", "donnie_initial"]


def test_loose_files_have_the_clock_and_length_of_their_video(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_video(tmp_path / "m1.webm", 60, 20)
    (tmp_path / "m1.csv").write_text("behavior,start,stop\nrun,0.5,1.0\n", encoding="utf-8")
    (entry,) = open_project(["m1.csv", "m1.webm"]).recordings
    assert entry.n_frames / entry.rate == 3
    assert entry.track("m1").annotation.observed.is_complete(entry.n_frames)
    assert any("observed to the end of the video" in note for note in entry.notes)
    head = "scorer,net,net,net\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n"
    (tmp_path / "m1.csv").write_text(head + "".join(f"{i},{i},{i},0.9\n" for i in range(60)), encoding="utf-8")
    (entry,) = open_project(["m1.csv", "m1.webm"]).recordings
    assert (entry.rate, entry.n_frames, entry.locked) == (20, 60, "")


def test_a_video_alone_can_be_labeled(tmp_path, monkeypatch):
    av = pytest.importorskip("av", reason="making a video needs av")
    monkeypatch.chdir(tmp_path)
    with av.open("m1.webm", "w") as container:
        stream = container.add_stream("libvpx", rate=20)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for _ in range(40):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")))
        container.mux(stream.encode())
    project = open_project(["m1.webm"], behaviors=["run"])
    entry = project.recording(0)
    assert (entry.rate, entry.n_frames, entry.ethogram.names) == (20, 40, ("run",))
    assert project.video(0) == tmp_path / "m1.webm"
    project.start(0, "zoe")
    project.edit(0, "zoe", 0, [{"kind": "mark", "start": 0, "stop": 10, "behavior": "run"}])
    assert open_project(["m1.webm"]).recording(0).track("zoe").annotation.stop.tolist() == [10]
