"""A manifest's recording takes rate and length from its video where no other file states them."""

from __future__ import annotations

import shutil
import sys

import pytest
from tests.video_files import write_video

from ethobench import load_dataset, read_recordings
from ethobench.core.errors import ReadWarning
from ethobench.core.video import probe


@pytest.fixture
def filmed(tmp_path):
    """A folder with a video of 3 s at 20 Hz, and a function that loads it with a manifest."""
    write_video(tmp_path / "m1.webm", 60, 20)

    def load(header: str, row: str):
        (tmp_path / "recordings.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
        return load_dataset(tmp_path)

    load.folder = tmp_path
    return load


def spans(annotation):
    return [*zip(*(side.tolist() for side in annotation.observed.frames), strict=True)]


def test_a_video_alone_has_a_clock(filmed):
    data = filmed("recording,video", "m1,m1.webm")
    assert (data["m1"].rate, data["m1"].n_frames, data.n_frames) == (20, 60, 60)
    assert data["m1"].notes == ()


def test_a_stated_rate_wins_and_the_difference_is_noted(filmed):
    with pytest.warns(ReadWarning, match="20 frames per second"):
        data = filmed("recording,rate,video", "m1,30,m1.webm")
    assert (data["m1"].rate, data["m1"].n_frames) == (30, 90)
    assert str(data["m1"].notes[0]) == "m1.webm: the video has 20 frames per second, but the recording is read at 30 Hz: 90 frames in 3 s"
    assert filmed("recording,rate,video", "m1,20,m1.webm")["m1"].notes == ()


def test_an_annotation_that_ends_with_its_last_bout_is_as_long_as_the_video(filmed):
    (filmed.folder / "anna.csv").write_text("behavior,start,stop\ngroom,0.5,1.0\n", encoding="utf-8")
    with pytest.warns(ReadWarning, match="taken as observed to the end of the video at 3 s"):
        recording = filmed("recording,annotations,annotator,video", "m1,anna.csv,anna,m1.webm")["m1"]
    anna = recording.annotation("anna")
    assert (recording.rate, recording.n_frames, anna.rate, anna.n_frames) == (20, 60, 20, 60)
    assert (anna.start.tolist(), anna.stop.tolist(), spans(anna)) == ([10], [20], [(0, 60)])


def test_labels_of_every_frame_that_end_early_leave_the_remaining_frames_unobserved(filmed):
    (filmed.folder / "anna.csv").write_text("behavior,start,stop\ngroom,0.0,1.0\nrest,1.0,2.0\n", encoding="utf-8")
    with pytest.warns(ReadWarning, match="20 frames before the video; the remaining frames are unobserved"):
        recording = filmed("recording,annotations,annotator,video", "m1,anna.csv,anna,m1.webm")["m1"]
    assert recording.n_frames == recording.annotation("anna").n_frames == 60
    assert spans(recording.annotation("anna")) == [(0, 40)]


def test_labels_after_the_end_of_the_video_are_kept_and_noted(filmed):
    (filmed.folder / "anna.csv").write_text("behavior,start,stop\ngroom,1.0,10.0\n", encoding="utf-8")
    with pytest.warns(ReadWarning, match="labels end at 10 s, but the video at 3 s"):
        recording = filmed("recording,annotations,annotator,video", "m1,anna.csv,anna,m1.webm")["m1"]
    assert recording.n_frames == recording.annotation("anna").n_frames == 200


def test_a_video_of_another_length_is_another_version(filmed):
    first = filmed("recording,video", "m1,m1.webm").version
    assert filmed("recording,video", "m1,m1.webm").version == first
    write_video(filmed.folder / "m1.webm", 40, 20)
    assert filmed("recording,video", "m1,m1.webm").version != first


def test_the_clock_of_a_video_is_cached_until_the_video_changes(filmed, monkeypatch):
    monkeypatch.setattr("ethobench.formats.parse_cache.CLOCK_GRAIN", 0)  # else a file this new is not remembered
    probed = []
    monkeypatch.setattr("ethobench.datasets.video_clock.probe", lambda path: probed.append(path) or probe(path))
    rows = "m1,m1.webm\nm2,m1.webm\nm3,m1.webm"
    assert [(r.rate, r.n_frames) for r in filmed("recording,video", rows)] == [(20, 60)] * 3
    assert len(probed) == 1
    write_video(filmed.folder / "m1.webm", 45, 15)
    assert [(r.rate, r.n_frames) for r in filmed("recording,video", rows)] == [(15, 45)] * 3
    assert len(probed) == 2


def test_without_pyav_the_clock_is_unknown_and_the_note_says_what_to_install(filmed, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.warns(ReadWarning, match=r"pip install 'ethobench\[video\]'"):
        recording = filmed("recording,video", "m1,m1.webm")["m1"]
    assert (recording.rate, recording.n_frames) == (None, None)


def test_a_damaged_video_has_no_clock(filmed):
    (filmed.folder / "m1.webm").write_bytes(b"not a video")
    with pytest.warns(ReadWarning, match="frame rate and length of the video are unknown"):
        recording = filmed("recording,video", "m1,m1.webm")["m1"]
    assert (recording.rate, recording.n_frames) == (None, None)


def test_signals_that_state_a_rate_need_no_video(filmed):
    rows = "\n".join(f"{i / 10},{i % 3},{i % 5}" for i in range(50))
    (filmed.folder / "tag.csv").write_text(f"time,AccX,AccY\n{rows}\n", encoding="utf-8")
    recording = filmed("recording,signals,video", "m1,tag.csv,m1.webm")["m1"]
    assert (recording.rate, recording.n_frames) == (10, 50)


@pytest.mark.data
def test_a_real_video(data, tmp_path):
    name = "EGS8X2MN4SSUGFWAV976"
    for suffix in (".mp4", ".h5"):
        shutil.copy(data / "video" / f"{name}{suffix}", tmp_path)
    (tmp_path / "recordings.csv").write_text(
        f"recording,signals,video\nfilmed,,{name}.mp4\ntracked,{name}.h5,{name}.mp4\n", encoding="utf-8"
    )
    with pytest.warns(ReadWarning, match=rf"using 30 Hz, the rate of {name}.mp4"):
        recordings = load_dataset(tmp_path)
    assert [(r.rate, r.n_frames) for r in recordings] == [(30, 1801), (30, 1800)]
    assert read_recordings(tmp_path / f"{name}.h5")[0].rate is None
