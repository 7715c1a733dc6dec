"""Clips of bouts: the right pictures, what is drawn on them, and files that are complete or absent."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Poses, Recording
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError, ParameterError
from ethobench.core.progress import progress_listener
from ethobench.figures.clips import select_bouts, write_clip, write_clips, write_grids, write_overlay
from ethobench.figures.scenes import ClipStyle, Scene
from tests.video_files import decode, picture_number, write_numbered_video

RATE, N = 10, 100
ETHOGRAM = Ethogram(["rear", "groom", "小鼠/..", "other"], "other")
PLAIN = ClipStyle(labels=False, time=False)


def labels(*bouts: tuple[int, int, str], n_frames: int = N, rate: float = RATE) -> Annotation:
    start, stop, names = zip(*bouts, strict=True)
    return Annotation.from_bouts(start, stop, names, ETHOGRAM, rate, n_frames, subject=["a"] * len(bouts))


@pytest.fixture
def recording(tmp_path) -> Recording:
    video = write_numbered_video(tmp_path / "m1.mp4", np.arange(N) / RATE)
    anna = labels((20, 30, "rear"), (50, 53, "groom"), (60, 60, "rear"), (95, 100, "小鼠/.."))
    return Recording("day 1/m1", rate=RATE, n_frames=N, annotations={"anna": anna, "ben": labels((22, 40, "rear"))}, video=video)


def poses_only(n_frames: int = N) -> Recording:
    """Return a recording of two animals on opposite sides of a square."""
    positions = np.zeros((n_frames, 2, 3, 2))
    positions[:, 0] = [[10, 10], [20, 10], [30, 10]]
    positions[:, 1] = [[10, 90], [20, 90], [90, 90]]
    tracked = Poses(positions, np.ones((n_frames, 2, 3)), ("a", "b"), ("nose", "neck", "tail"), RATE)
    return Recording("p", rate=RATE, signals=tracked, annotations={"anna": labels((20, 30, "rear"), n_frames=n_frames)})


def numbers(path, near):
    pictures = decode(path)
    assert len(pictures) == len(near)
    return [picture_number(picture[10:30].mean(), number) for picture, number in zip(pictures, near, strict=True)]


def test_a_clip_shows_the_frames_of_its_bout_and_margins(recording, tmp_path):
    bouts = select_bouts([recording], ["rear"], ["anna"])
    summary = write_clips(bouts, tmp_path / "out", margin=0.5, style=PLAIN)
    assert [path.relative_to(tmp_path / "out").as_posix() for path in summary.files] == [
        "rear/day_1_m1.anna.0001.mp4",
        "rear/day_1_m1.anna.0002.mp4",
    ]
    assert numbers(summary.files[0], range(15, 35)) == [*range(15, 35)]
    assert numbers(summary.files[1], range(55, 66)) == [*range(55, 66)], "a point event has only its margins"
    rows = list(csv.DictReader((tmp_path / "out" / "clips.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["start_s"], row["stop_s"], row["subject"]) for row in rows] == [("2.000", "3.000", "a"), ("6.000", "6.000", "a")]
    assert not summary.notes


def test_rows_of_poses_are_pictures_in_a_video_with_a_variable_rate(tmp_path):
    times = np.round(np.concatenate((np.arange(40) / 10, 6 + np.arange(60) / 25)), 3)
    video = write_numbered_video(tmp_path / "v.mp4", times)
    recording = poses_only().copy(video=video)
    summary = write_clip(select_bouts([recording])[0], tmp_path / "c.mp4", margin=2.5, style=PLAIN)
    assert numbers(summary.files[0], range(55)) == [*range(55)]


def test_names_from_files_never_leave_the_folder(recording, tmp_path):
    summary = write_clips(select_bouts([recording], ["小鼠/.."]), tmp_path / "out")
    assert [path.parent.name for path in summary.files] == ["小鼠"]
    assert all(path.resolve().is_relative_to(tmp_path / "out") for path in summary.files)


def test_existing_files_are_kept(recording, tmp_path):
    bouts = select_bouts([recording], ["groom"])
    files = write_clips(bouts, tmp_path / "out", style=PLAIN).files
    before = files[0].read_bytes()
    with pytest.raises(EthobenchError, match="already exists"):
        write_clips(bouts, tmp_path / "out")
    assert files[0].read_bytes() == before
    write_clips(bouts, tmp_path / "out", overwrite=True)
    assert files[0].read_bytes() != before


def test_a_cancelled_clip_leaves_no_file(recording, tmp_path):
    def cancel(stage: str, fraction: float) -> None:
        if fraction > 0:
            raise InterruptedError

    with pytest.raises(InterruptedError), progress_listener(cancel):
        write_overlay(recording, tmp_path / "out" / "o.mp4")
    assert list((tmp_path / "out").iterdir()) == []


def test_labels_time_and_poses_are_drawn_if_wanted(recording, tmp_path):
    bout = select_bouts([recording], ["groom"])[0]
    plain = decode(write_clip(bout, tmp_path / "plain.mp4", style=PLAIN).files[0])[12]
    drawn = decode(write_clip(bout, tmp_path / "drawn.mp4", annotators=["anna", "ben"]).files[0])[12]
    assert plain.shape == (48, 64, 3)
    assert drawn.shape[0] > plain.shape[0], "the strip of labels is below the picture"
    assert np.ptp(plain.astype(int), axis=(0, 1)).max() < 12, "nothing is drawn"
    assert np.ptp(drawn[:48].astype(int), axis=(0, 1)).min() > 60, "labels and time are drawn"


def test_without_a_video_poses_are_drawn(tmp_path):
    path = write_clip(select_bouts([poses_only()])[0], tmp_path / "p.mp4", margin=0, style=PLAIN).files[0]
    picture = decode(path)[5].astype(int)
    height = len(picture)
    bright = picture.max(axis=2) > 120
    assert bright[: height // 3].any()
    assert bright[2 * height // 3 :].any()
    assert not bright[height // 3 : 2 * height // 3].any(), "the animals are at the top and at the bottom"


def test_a_video_shorter_than_its_poses_shows_the_poses(tmp_path):
    video = write_numbered_video(tmp_path / "v.mp4", np.arange(25) / RATE, size=(100, 100))
    recording = poses_only().copy(video=video)
    summary = write_clip(select_bouts([recording])[0], tmp_path / "c.mp4", margin=0, style=PLAIN)
    pictures = decode(summary.files[0])
    assert len(pictures) == 10
    assert pictures[-1].max() > 150, "poses"
    assert np.median(pictures[-1]) < 40, "on a plain ground"
    assert summary.notes == ["v.mp4 has no picture for 0.5 s of 'p'; is it shorter than the labels?"]


@pytest.mark.slow
def test_a_grid_plays_all_bouts_of_a_behavior(recording, tmp_path):
    bouts = select_bouts([recording, recording.copy(id="m2", annotations={"anna": labels((0, 5, "rear"))})], ["rear"])
    summary = write_grids(bouts, tmp_path, margin=0.5)
    assert [path.name for path in summary.files] == ["rear.grid.mp4"]
    pictures = decode(summary.files[0])
    assert len(bouts) == 4
    assert len(pictures) == 18 + 10, "as long as the longest"
    assert pictures[0].shape[0] <= 970
    assert pictures[0].shape[1] <= 1290
    cut = write_grids(bouts[:1], tmp_path / "cut", margin=0.5, max_seconds=1.2)
    assert len(decode(cut.files[0])) == 12


@pytest.mark.slow
def test_an_overlay_video_has_all_frames(recording, tmp_path):
    summary = write_overlay(recording, tmp_path / "o.mp4", annotators=["ben"])
    assert len(decode(summary.files[0])) == N


def test_a_sample_is_random_and_repeatable():
    many = labels(*[(5 * i, 5 * i + 2, "rear" if i % 2 else "groom") for i in range(20)])
    recordings = [poses_only().copy(id=name, annotations={"anna": many}) for name in "xyz"]
    starts = [[(b.recording.id, b.start) for b in select_bouts(recordings, max_bouts=5, seed=seed)] for seed in (0, 0, 1)]
    assert starts[0] == starts[1] != starts[2]
    assert len(starts[0]) == 10
    assert len(select_bouts(recordings)) == 60


def test_errors_name_what_is_wrong(recording, tmp_path):
    with pytest.raises(NotFoundError, match="no behavior 'raer'"):
        select_bouts([recording], ["raer"])
    with pytest.raises(NotFoundError, match="no annotator 'carla'; available: anna, ben"):
        select_bouts([recording], annotators=["carla"])
    bare = recording.copy(video=None)
    with pytest.raises(EthobenchError, match="neither a video nor poses"):
        write_clips(select_bouts([bare]), tmp_path / "out")
    assert write_clips(select_bouts([bare, recording.copy(id="x")], ["groom"]), tmp_path / "out", style=PLAIN).notes == [
        "'day 1/m1' has neither a video nor poses, so there is nothing to show; skipped"
    ]
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"\0" * 1000)
    with pytest.raises(FormatError, match=r"broken\.mp4"):
        Scene(recording.copy(video=broken))
    mixed = write_clips(select_bouts([recording.copy(video=broken), recording.copy(id="y")], ["groom"]), tmp_path / "mixed")
    assert len(mixed.files) == 1
    assert "broken.mp4" in mixed.notes[0]
    with pytest.raises(EthobenchError, match=r"broken\.mp4"):
        write_grids(select_bouts([recording.copy(video=broken)]), tmp_path / "none")
    for margin in (-1.0, float("nan")):
        with pytest.raises(ParameterError, match="margin"):
            write_clips(select_bouts([recording]), tmp_path / "x", margin=margin)
    with pytest.raises(ParameterError, match="no camera 3"):
        Scene(recording, camera=3)


@pytest.mark.data
@pytest.mark.slow
def test_a_real_video_with_its_poses(data, tmp_path):
    from ethobench import read_recordings

    folder = data / "video"
    tracked = read_recordings(next(folder.glob("*.h5")), rate=30)[0]
    annotation = Annotation.from_bouts([600], [615], ["watch"], ["watch"], 30, 1800, subject=[tracked.signals.individuals[0]])
    recording = tracked.copy(annotations={"anna": annotation}, video=next(folder.glob("*.mp4")))
    bout = select_bouts([recording])[0]
    plain, drawn = (
        decode(write_clip(bout, tmp_path / f"{poses}.mp4", margin=0.1, style=ClipStyle(poses, labels=False, time=False)).files[0])
        for poses in (False, True)
    )
    assert len(plain) == len(drawn) == 21
    difference = np.abs(drawn[10].astype(int) - plain[10]).max(axis=2) > 40
    points = tracked.signals.positions[607].reshape(-1, 2)
    rows, columns = np.nonzero(difference)
    assert difference.any()
    assert rows.min() > points[:, 1].min() - 12
    assert columns.max() < points[:, 0].max() + 12
