from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ethobench import Recording
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError
from ethobench.formats import detect, formats, read_recordings

SLEAP = formats["sleap"]
CSV = """track,frame_idx,instance.score,nose.x,nose.y,nose.score,tail.x,tail.y,tail.score
a,0,0.9,1,2,0.5,3,4,0.25
b,0,0.8,5,6,0.75,,,
a,2,0.7,7,8,1,9,10,0.125
"""


def put(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def only(path: Path, format: str | None = None, **options: Any) -> Recording:
    (recording,) = read_recordings(path, format, **options, warn=False)
    return recording


# ----------------------------------------------------------------------- CSV


def test_csv(tmp_path: Path) -> None:
    path = put(tmp_path / "v.csv", CSV)
    assert detect(path).name == "sleap"
    recording = only(path, rate=15)
    poses = recording.signals
    assert (recording.id, recording.rate, recording.n_frames, recording.subjects, recording.notes) == ("v", 15, 3, ("a", "b"), ())
    assert poses.keypoints == ("nose", "tail")
    assert poses.positions[0, 1, 0].tolist() == [5, 6]
    assert poses.positions[2, 0].tolist() == [[7, 8], [9, 10]]
    assert np.isnan(poses.positions[0, 1, 1]).all()
    assert np.isnan(poses.positions[1]).all(), "frame 1 has no instance"
    assert poses.confidence[0, 0].tolist() == [0.5, 0.25], "the point's score, not the instance's"


def test_csv_dialects(tmp_path: Path) -> None:
    expected = only(put(tmp_path / "v.csv", CSV)).signals
    for name, text in {
        "bom": "\ufeff" + CSV,
        "crlf": CSV.replace("\n", "\r\n"),
        "semicolon": CSV.replace(",", ";").replace(".25", ",25"),
    }.items():
        path = put(tmp_path / f"{name}.csv", text if name != "semicolon" else text.replace("0.", "0,").replace("0,,25", "0,25"))
        assert np.array_equal(only(path).signals.positions, expected.positions, equal_nan=True), name
        assert np.array_equal(only(path).signals.confidence, expected.confidence, equal_nan=True), name


def test_one_animal_without_track(tmp_path: Path) -> None:
    recording = only(put(tmp_path / "v.csv", "track,frame_idx,n.x,n.y\n,0,1,2\n,1,3,4\n"))
    assert (recording.signals.individuals, recording.subjects, recording.notes) == (("individual",), (), ())
    assert recording.signals.positions[:, 0, 0].tolist() == [[1, 2], [3, 4]]
    assert np.isnan(recording.signals.confidence).all()


def test_several_animals_without_track_are_numbered(tmp_path: Path) -> None:
    recording = only(put(tmp_path / "v.csv", "track,frame_idx,n.x,n.y\n,0,1,2\n,0,3,4\n,1,5,6\n"))
    assert recording.signals.individuals == ("instance1", "instance2")
    assert recording.signals.positions[1, 0, 0].tolist() == [5, 6]
    assert "a number may be several animals" in str(recording.notes[0])


def test_instances_without_track_beside_tracks_are_counted(tmp_path: Path) -> None:
    recording = only(put(tmp_path / "v.csv", CSV.replace("\nb,", "\n,")))
    assert recording.signals.individuals == ("a",)
    assert [str(note) for note in recording.notes] == ["1 of 3 instances have no track; dropped"]


def test_unknown_columns_are_noted(tmp_path: Path) -> None:
    recording = only(put(tmp_path / "v.csv", CSV.replace("instance.score", "video").replace(",0.9,", ",C:\\v\\a.mp4,")))
    assert [str(note) for note in recording.notes] == ["ignored unknown columns: video"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("a,2,", "a,0,", r"row 4: duplicate track 'a' in frame 0"),
        ("a,2,", "a,x,", r"row 4, column 2: 'x' is not a number"),
        ("a,2,", "a,2.5,", r"row 4: '2.5' is not a frame number"),
        ("a,2,", "a,,", r"row 4: 'nan' is not a frame number"),
        ("a,2,", "a,99999999999,", "refused"),
        ("frame_idx", "frame", "no column frame_idx"),
        ("a,2,0.7,7,8,1,9,10,0.125\n", "a,2,0.7", "row 4: 3 cells, but the header has 9; the file may be truncated"),
        (CSV[CSV.index("\n") + 1 :], "", "no instances"),
    ],
)
def test_damaged_csv_gets_one_clear_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(put(tmp_path / "v.csv", CSV.replace(old, new)), "sleap", warn=False)


# ---------------------------------------------------------------- analysis H5

TRACKS = np.arange(2 * 2 * 3 * 4.0).reshape(4, 2, 3, 2)  # frame, track, node, xy
SCORES = np.arange(24.0).reshape(4, 2, 3)


def put_analysis(path: Path, *, dims: bool = False, **changes: Any) -> Path:
    content: dict[str, Any] = {
        "tracks": TRACKS if dims else TRACKS.transpose(1, 3, 2, 0),
        "point_scores": SCORES if dims else SCORES.transpose(1, 2, 0),
        "track_occupancy": np.ones((4, 2), dtype="u1"),
        "track_names": np.array([b"left fly", b"right fly"]),
        "node_names": np.array([b"head", b"thorax", b"wing"]),
        "video_path": "C:\\videos\\flies.mp4",
        **changes,
    }
    with h5py.File(path, "w") as file:
        for name, value in content.items():
            if value is not None:
                file[name] = value
        if dims:
            file["tracks"].attrs["dims"] = json.dumps(["frame", "track", "node", "xy"])
            file["point_scores"].attrs["dims"] = json.dumps(["frame", "track", "node"])
    return path


@pytest.mark.parametrize("dims", [False, True])
def test_analysis_in_either_order_of_axes(dims: bool, tmp_path: Path) -> None:
    path = put_analysis(tmp_path / "v.h5", dims=dims)
    assert detect(path).name == "sleap"
    recording = only(path)
    assert np.array_equal(recording.signals.positions, TRACKS)
    assert np.array_equal(recording.signals.confidence, SCORES)
    assert (recording.signals.individuals, recording.signals.keypoints) == (("left fly", "right fly"), ("head", "thorax", "wing"))
    assert recording.metadata["video"] == "C:\\videos\\flies.mp4"
    assert recording.video is None, "text from a file is no path to open"


def test_analysis_without_scores_and_track_names(tmp_path: Path) -> None:
    one = TRACKS[:, :1].transpose(1, 3, 2, 0)
    poses = only(put_analysis(tmp_path / "v.h5", tracks=one, point_scores=None, track_names=np.empty(0, "S1"))).signals
    assert poses.individuals == ("individual",)
    assert np.isnan(poses.confidence).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tracks": TRACKS.transpose(0, 3, 2, 1)}, "scores of shape"),
        ({"tracks": TRACKS[:, :1]}, "does not fit 3 nodes"),
        ({"tracks": TRACKS[0]}, "expected 4 axes in /tracks, got 3"),
        ({"node_names": np.array([b"head"])}, "does not fit 1 nodes"),
        ({"tracks": None}, "no dataset 'tracks'"),
    ],
)
def test_damaged_analysis_gets_one_clear_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(put_analysis(tmp_path / "v.h5", **changes), "sleap", warn=False)


def test_analysis_does_not_follow_links_to_other_files(tmp_path: Path) -> None:
    other = put_analysis(tmp_path / "other.h5")
    with pytest.raises(FormatError, match="link to another file"):
        read_recordings(put_analysis(tmp_path / "v.h5", tracks=h5py.ExternalLink(str(other), "/tracks")), "sleap", warn=False)


def test_analysis_of_an_impossible_size_is_refused(tmp_path: Path) -> None:
    path = put_analysis(tmp_path / "v.h5", tracks=None)
    with h5py.File(path, "a") as file:
        file.create_dataset("tracks", (2, 2, 3, 10**10), "f8", chunks=(1, 1, 1, 10**4))
    with pytest.raises(FormatError, match="refused: its data would take"):
        read_recordings(path, "sleap", warn=False)


# ------------------------------------------------------------------------ SLP


def make_slp(path: Path, n_videos: int = 1) -> Path:
    sio = pytest.importorskip("sleap_io")
    skeleton = sio.Skeleton(["head", "tail"])
    tracks = [sio.Track("a"), sio.Track("b")]
    videos = [sio.Video(filename=f"D:\\data\\fly{i}.mp4", open_backend=False) for i in range(n_videos)]
    frames = []
    for n, video in enumerate(videos):
        predicted = sio.PredictedInstance.from_numpy(
            np.array([[1.0, 2.0], [3.0, 4.0]]) + n, skeleton=skeleton, point_scores=np.array([0.5, 0.25]), score=0.5, track=tracks[0]
        )
        labeled = sio.Instance.from_numpy(np.array([[10.0, 20.0], [np.nan, np.nan]]), skeleton=skeleton, track=tracks[0])
        stray = sio.PredictedInstance.from_numpy(np.ones((2, 2)), skeleton=skeleton, point_scores=np.ones(2), score=0.5)
        other = sio.PredictedInstance.from_numpy(
            np.full((2, 2), 7.0), skeleton=skeleton, point_scores=np.ones(2), score=0.5, track=tracks[1]
        )
        frames += [
            sio.LabeledFrame(video=video, frame_idx=2, instances=[predicted, other]),
            sio.LabeledFrame(video=video, frame_idx=4, instances=[predicted, labeled, stray]),
        ]
    sio.save_slp(sio.Labels(labeled_frames=frames, videos=videos, skeletons=[skeleton], tracks=tracks), str(path))
    return path


def test_slp(tmp_path: Path) -> None:
    path = make_slp(tmp_path / "project.slp")
    assert detect(path).name == "sleap"
    recording = only(path, rate=30)
    poses = recording.signals
    assert (recording.id, recording.rate, recording.n_frames) == ("project", 30, 5), "frames are counted from the video's first"
    assert (poses.individuals, poses.keypoints) == (("a", "b"), ("head", "tail"))
    assert poses.positions[2, 0].tolist() == [[1, 2], [3, 4]]
    assert poses.confidence[2, 0].tolist() == [0.5, 0.25]
    assert poses.positions[4, 0, 0].tolist() == [10, 20], "what a person labeled stands before the prediction"
    assert np.isnan(poses.positions[4, 0, 1]).all()
    assert np.isnan(poses.confidence[4, 0]).all()
    assert np.isnan(poses.positions[[0, 1, 3]]).all()
    assert [str(note) for note in recording.notes] == ["1 of 4 instances have no track; dropped"]


def test_videos_of_a_project_are_entries(tmp_path: Path) -> None:
    path = make_slp(tmp_path / "project.slp", n_videos=2)
    assert SLEAP.entries(path) == ["fly0", "fly1"]
    assert [r.id for r in read_recordings(path, warn=False)] == ["project/fly0", "project/fly1"]
    assert only(path, entry="fly1").signals.positions[2, 0, 0].tolist() == [2, 3]
    with pytest.raises(NotFoundError, match="fly0, fly1"):
        read_recordings(path, entry="fly2", warn=False)


def test_slp_does_not_follow_links_to_other_files(tmp_path: Path) -> None:
    path, other = make_slp(tmp_path / "a.slp"), make_slp(tmp_path / "b.slp")
    with h5py.File(path, "a") as file:
        del file["pred_points"]
        file["pred_points"] = h5py.ExternalLink(str(other), "/pred_points")
    with pytest.raises(FormatError, match="pred_points: refused: link to another file"):
        read_recordings(path, "sleap", warn=False)


def test_damaged_slp(tmp_path: Path) -> None:
    complete = make_slp(tmp_path / "a.slp").read_bytes()
    with pytest.raises(FormatError, match="truncated"):
        read_recordings(put(tmp_path / "cut.slp", complete[: len(complete) // 2]), "sleap", warn=False)
    with pytest.raises(FormatError, match="not a valid HDF5 file"):
        read_recordings(put(tmp_path / "text.slp", "not a project"), "sleap", warn=False)
    with h5py.File(tmp_path / "a.slp", "a") as file:
        del file["metadata"].attrs["json"]
    with pytest.raises(FormatError, match="sleap-io cannot read this file"):
        read_recordings(tmp_path / "a.slp", warn=False)


def test_without_sleap_io_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_slp(tmp_path / "a.slp")
    monkeypatch.setitem(sys.modules, "sleap_io", None)
    with pytest.raises(EthobenchError, match=r"pip install .ethobench\[pose\]."):
        read_recordings(path, warn=False)


# ----------------------------------------------------------------------- real


def test_real_samples(data: Path) -> None:
    shapes = {"centered_pair_predictions.slp": (1100, 27, 24, 2), "typical.slp": (1, 2, 2, 2), "sample_sleap.h5": (3000, 2, 13, 2)}
    for name, shape in shapes.items():
        path = data / "formats" / "sleap" / name
        assert detect(path).name == "sleap", name
        assert only(path).signals.positions.shape == shape, name


@pytest.mark.slow
def test_real_project_equals_sleap_io(data: Path) -> None:
    sio = pytest.importorskip("sleap_io")
    path = data / "formats" / "sleap" / "centered_pair_predictions.slp"
    expected = sio.load_slp(str(path), open_videos=False).numpy(return_confidence=True)
    poses = only(path).signals
    assert np.allclose(poses.positions, expected[..., :2], equal_nan=True)
    assert np.allclose(poses.confidence, expected[..., 2], equal_nan=True)


def test_real_analysis_first_frame(data: Path) -> None:
    poses = only(data / "formats" / "sleap" / "sample_sleap.h5").signals
    assert poses.individuals == ("track_0", "track_1")
    assert np.allclose(poses.positions[0, 0, 0], [756.8067627, 240.48591614])
