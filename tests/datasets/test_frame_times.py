"""The time of each frame of a recording in its videos."""

from __future__ import annotations

import numpy as np
from tests.video_files import write_numbered_video, write_video

from ethobench import Poses, Recording, load_dataset
from ethobench.core.video import Camera
from ethobench.datasets.frame_times import camera_times, frame_times, read_video_times

IRREGULAR = np.round(np.concatenate((np.arange(20) / 25, 1.1 + np.arange(20) / 10)), 3)


def poses(n_frames: int, rate: float) -> Poses:
    return Poses(np.zeros((n_frames, 1, 2, 2)), np.ones((n_frames, 1, 2)), ("a",), ("nose", "tail"), rate)


def test_rows_of_poses_are_pictures_although_the_frame_rate_varies(tmp_path):
    path = write_numbered_video(tmp_path / "a.mp4", IRREGULAR)
    tracked = Recording("a", rate=25, signals=poses(40, 25), video=path)
    middles = frame_times(tracked).middles(np.arange(40))
    assert ((middles >= IRREGULAR) & (middles < np.append(IRREGULAR[1:], np.inf))).all()
    assert read_video_times(path).n_pictures == 40


def test_frames_without_poses_are_regular(tmp_path):
    path = write_numbered_video(tmp_path / "a.mp4", IRREGULAR)
    for recording in (Recording("a", rate=20, video=path, n_frames=60), Recording("a", rate=20, signals=poses(13, 20), video=path)):
        assert np.allclose(frame_times(recording).middles([0, 7]), [0.025, 0.375])


def test_offsets_of_cameras_are_read_from_the_manifest(tmp_path):
    for name in ("top.webm", "side.webm"):
        write_video(tmp_path / name, 30, 10)
    table = "recording,video,video_offset\nm1,top.webm;side.webm,0;-0.5\nm2,top.webm,\n"
    (tmp_path / "recordings.csv").write_text(table, encoding="utf-8")
    data = load_dataset(tmp_path)
    assert [(c.path.name, c.offset) for c in data["m1"].cameras] == [("top.webm", 0.0), ("side.webm", -0.5)]
    assert data["m1"].video == data["m1"].cameras[0].path
    assert [c.offset for c in data["m2"].cameras] == [0.0]
    assert data["m1"].copy(video=tmp_path / "side.webm").cameras == (Camera(tmp_path / "side.webm"),)
    assert np.allclose(camera_times(frame_times(data["m1"]), data["m1"].cameras[1], [10]), 1.05 - 0.5)


def test_a_file_name_with_a_semicolon_is_one_video(tmp_path):
    write_video(tmp_path / "a;b.webm", 30, 10)
    (tmp_path / "recordings.csv").write_text("recording,video\nm1,a;b.webm\n", encoding="utf-8")
    assert [c.path.name for c in load_dataset(tmp_path)["m1"].cameras] == ["a;b.webm"]
