"""Events of SLEAP projects: against files of sleap-io, and round trips through other formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ethobench import Annotation, ClockOrigin, Recording
from ethobench.core import Behavior, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import FormatError
from ethobench.formats import detect, read_recordings, write_recordings

sio = pytest.importorskip("sleap_io")
pytestmark = pytest.mark.slow  # sleap-io takes a second to import


def only(path: Path, format: str | None = None, **options: Any) -> Recording:
    (recording,) = read_recordings(path, format, **options, warn=False)
    return recording


def make_project(path: Path, *, fps: float | None = 25.0, poses: bool = True) -> Path:
    """Write a project with sleap-io: events of a person and of a model, in inclusive frames."""
    video = sio.Video(filename="D:\\data\\m1.mp4", open_backend=False, backend_metadata={"fps": fps} if fps else {})
    tracks, identity = [sio.Track("a"), sio.Track("b")], sio.Identity("cleo")
    attack = sio.EventType("attack", "bites", {"key": "x"})
    events = [
        sio.UserEvent(type=attack, video=video, start_frame=2, end_frame=4, subject=tracks[0], target=tracks[1]),
        sio.UserEvent(type="rear", video=video, start_frame=7, subject=identity, name="the first"),
        sio.PredictedEvent(type=attack, video=video, start_frame=3, end_frame=5, subject=tracks[1], score=0.75),
        sio.PredictedEvent(type="rear", video=video, start_frame=8, end_frame=9, scores=[0.25, 0.75], metadata={"model": "m"}),
    ]
    frames = []
    skeleton = sio.Skeleton(["head", "tail"])
    if poses:
        instance = sio.Instance.from_numpy(np.array([[10.0, 20.0], [3.0, 4.0]]), skeleton=skeleton, track=tracks[0])
        frames = [sio.LabeledFrame(video=video, frame_idx=19, instances=[instance])]
    labels = sio.Labels(labeled_frames=frames, videos=[video], skeletons=[skeleton] if poses else [], tracks=tracks, events=events)
    sio.save_slp(labels, str(path), verbose=False)
    return path


def test_events_of_a_person_and_of_a_model_are_annotators(tmp_path: Path) -> None:
    path = make_project(tmp_path / "m1.slp")
    assert detect(path).name == "sleap_events"
    recording = only(path)
    assert (recording.id, recording.rate, recording.n_frames, recording.clock_origin) == ("m1", 25, 20, ClockOrigin.STATED)
    assert recording.signals.positions[19, 0, 0].tolist() == [10, 20]
    assert recording.metadata["video"] == "D:/data/m1.mp4"
    person, model = recording.annotation("user"), recording.annotation("predicted")
    assert (person.start.tolist(), person.stop.tolist()) == ([2, 7], [5, 8]), "the last frame of an event belongs to it"
    assert person.tracks() == [("attack", "a", "b"), ("rear", "cleo", None)]
    assert person.comment.tolist() == ["", "the first"]
    assert person.ethogram[person.ethogram.code("attack")] == Behavior("attack", "bites", key="x")
    assert person.confidence is None
    assert (model.start.tolist(), model.stop.tolist(), model.confidence.tolist()) == ([3, 8], [6, 10], [0.75, 0.5])
    assert [note.code for note in recording.notes] == ["ignored-columns", "ignored-scores"]


def test_without_poses_and_rate(tmp_path: Path) -> None:
    recording = only(make_project(tmp_path / "m1.slp", fps=None, poses=False))
    assert (recording.signals, recording.rate, recording.n_frames, recording.clock_origin) == (None, 30, 10, ClockOrigin.ASSUMED)
    assert "assumed-rate" in [note.code for note in recording.notes]
    assert only(tmp_path / "m1.slp", rate=50).annotation("user").rate == 50


def test_the_reader_of_poses_says_that_it_ignores_events(tmp_path: Path) -> None:
    recording = only(make_project(tmp_path / "m1.slp"), "sleap")
    assert recording.annotations == {}
    assert "4 events are ignored; read the file as sleap_events" in [str(note) for note in recording.notes]


def test_one_source_with_both_kinds_of_events(tmp_path: Path) -> None:
    video = sio.Video(filename="v.mp4", open_backend=False)
    events = [sio.UserEvent("a", video, 0, source="x"), sio.PredictedEvent("a", video, 3, source="x")]
    sio.save_slp(sio.Labels(videos=[video], events=events), str(tmp_path / "v.slp"), verbose=False)
    assert [*only(tmp_path / "v.slp").annotations] == ["x", "x (predicted)"]


def full_annotation(**changes: Any) -> Annotation:
    ethogram = Ethogram([Behavior("sniff", "nose near", key="s"), Behavior("bite", point=True), Behavior("unused"), "rest"], "rest")
    options: dict[str, Any] = {
        "subject": ["mouse1", "mouse2", None, "mouse1"],
        "target": ["mouse2", "mouse1", None, None],
        "confidence": [0.1, np.nan, 1 / 3, 0.9],
        "modifiers": ["left|hard", "", "", ""],
        "comment": ["", "ünsure, or not", "", ""],
        "observed": Observed(iv.intervals([0], [90]), {Track("sniff", "mouse1", "mouse2"): iv.intervals([5], [40])}),
        "subjects": ["mouse1", "mouse2", "mouse3"],
        **changes,
    }
    return Annotation.from_bouts([30, 10, 20, 35], [40, 11, 20, 50], ["sniff", "sniff", "bite", "sniff"], ethogram, 29.97, 100, **options)


def test_everything_survives_a_round_trip(tmp_path: Path) -> None:
    anna = full_annotation(confidence=None)
    nobody = Annotation.from_bouts([], [], [], anna.ethogram, anna.rate, 100, observed=anna.observed, subjects=anna.subjects)
    annotations = {"anna": anna, "a model": full_annotation(), "nobody": nobody}
    notes = write_recordings([Recording("m1", annotations=annotations)], tmp_path / "m1.slp")
    assert notes == []
    recording = only(tmp_path / "m1.slp")
    assert recording.annotations == annotations
    assert (recording.rate, recording.n_frames, recording.clock_origin) == (29.97, 100, ClockOrigin.STATED)


def test_sleap_io_reads_inclusive_ends(tmp_path: Path) -> None:
    write_recordings([Recording("m1", annotations={"anna": full_annotation()})], tmp_path / "m1.slp")
    labels = sio.load_slp(str(tmp_path / "m1.slp"), open_videos=False)
    assert [(e.type.name, e.start_frame, e.end_frame, e.source) for e in labels.events] == [
        ("sniff", 30, 39, "anna"),
        ("sniff", 10, 10, "anna"),
        ("bite", 20, 20, "anna"),
        ("sniff", 35, 49, "anna"),
    ]
    assert [(e.subject and e.subject.name, e.target and e.target.name) for e in labels.events][:3] == [
        ("mouse1", "mouse2"),
        ("mouse2", "mouse1"),
        (None, None),
    ]
    assert [e.score for e in labels.events] == [0.1, None, 1 / 3, 0.9]


@pytest.mark.parametrize(
    ("name", "suffix", "lost"),
    [
        ("tidy", ".csv", set()),
        ("boris", ".boris", {"lost-targets", "lost-confidence"}),
        ("nwb", ".nwb", set()),
        ("mabe2025", ".csv", {"lost-confidence", "lost-observed", "lost-modifiers", "lost-comments", "lost-length"}),
    ],
)
def test_round_trips_through_other_formats(name: str, suffix: str, lost: set[str], tmp_path: Path) -> None:
    """Bouts, subjects and targets survive from SLEAP to the other format and back; what does not is noted."""
    truth = full_annotation().take([0, 2, 3])  # MABe has no point events
    write_recordings([Recording("m1", annotations={"anna": truth})], tmp_path / "m1.slp")
    notes = write_recordings([only(tmp_path / "m1.slp")], tmp_path / f"m1{suffix}", name)
    assert {note.code for note in notes} >= lost
    back = only(tmp_path / f"m1{suffix}", name, rate=truth.rate)
    write_recordings([back], tmp_path / "back.slp")
    read = only(tmp_path / "back.slp").annotations
    (annotation,) = read.values()
    for column in ("start", "stop"):
        assert getattr(annotation, column).tolist() == getattr(truth, column).tolist()
    assert annotation.names(annotation.subject) == truth.names(truth.subject)
    if "lost-targets" not in {note.code for note in notes}:
        assert annotation.names(annotation.target) == truth.names(truth.target)
    assert [annotation.ethogram[int(b)].name for b in annotation.behavior] == ["sniff"] * 3
    if "lost-confidence" not in {note.code for note in notes}:
        assert np.array_equal(annotation.confidence, truth.confidence, equal_nan=True)
    if "lost-observed" not in {note.code for note in notes}:
        assert annotation.observed == truth.observed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"tracks":[', '"tracks":1,"x":[', "provenance: invalid observed frames"),
        ('"frames":[[0,90]]', '"frames":[[9,0]]', "provenance: invalid observed frames"),
    ],
)
def test_damaged_provenance(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m1.slp"
    write_recordings([Recording("m1", annotations={"anna": full_annotation()})], path)
    with h5py.File(path, "a") as file:
        text = file["provenance_json"][()].decode()
        assert old in text
        del file["provenance_json"]
        file["provenance_json"] = np.bytes_(text.replace(old, new).encode())
    with pytest.raises(FormatError, match=message):
        only(path)


def test_an_event_that_starts_before_the_video_is_refused(tmp_path: Path) -> None:
    path = make_project(tmp_path / "m1.slp")
    with h5py.File(path, "a") as file:
        file["events/start_frame"][0] = -1
    with pytest.raises(FormatError, match="event 1: 'attack' starts at -1, before the recording starts"):
        only(path)


def test_an_event_that_ends_before_it_starts_is_refused(tmp_path: Path) -> None:
    path = make_project(tmp_path / "m1.slp")
    with h5py.File(path, "a") as file:
        file["events/end_frame"][0] = 1
    with pytest.raises(FormatError, match="sleap-io cannot read this file"):
        only(path)
