from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ethobench import Recording
from ethobench.core.errors import FormatError, NotFoundError
from ethobench.formats import detect, formats, read_recordings
from ethobench.formats.jabs import KEYPOINTS


def only(path: Path, format: str | None = None, **options: Any) -> Recording:
    (recording,) = read_recordings(path, format, **options, warn=False)
    return recording


def put(path: Path, **datasets: Any) -> Path:
    with h5py.File(path, "w") as file:
        group = file.create_group("poseest")
        group.attrs["version"] = np.array([5, 0], dtype="u2")
        group.attrs["cm_per_pixel"] = np.float32(0.5)
        group.attrs["cm_per_pixel_source"] = "corner_detection"
        for name, value in datasets.items():
            group[name] = value
        file["static_objects/corners"] = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], dtype="u2")
        file["static_objects/lixit"] = np.array([[10, 20]], dtype="f4")
    return path


def instances(ids: list[list[int]]) -> dict[str, Any]:
    """Make points whose y, x are the frame and 100 times the identity."""
    shape = (len(ids), len(ids[0]), 12)
    points = np.zeros((*shape, 2), dtype="u2")
    points[..., 0] = np.arange(len(ids))[:, None, None]
    points[..., 1] = 100 * np.array(ids)[..., None]
    return {"points": points, "confidence": np.full(shape, 2.5, dtype="f4")}


def test_one_mouse_of_version_2(tmp_path: Path) -> None:
    points = np.arange(2 * 12 * 2, dtype="u2").reshape(2, 12, 2)
    confidence = np.full((2, 12), 0.5, dtype="f4")
    confidence[1, 3] = 0
    path = put(tmp_path / "v_pose_est_v2.h5", points=points, confidence=confidence)
    assert detect(path).name == "jabs"
    recording = only(path, rate=30)
    poses = recording.signals
    assert (recording.id, recording.rate, recording.n_frames, recording.notes) == ("v_pose_est_v2", 30, 2, ())
    assert (poses.individuals, poses.keypoints) == (("individual",), KEYPOINTS)
    assert poses.positions[0, 0, 0].tolist() == [1, 0], "stored as y, x"
    assert np.isnan(poses.positions[1, 0, 3]).all(), "a confidence of 0 means missing"
    assert poses.confidence[1, 0, 3] == 0


def test_identities(tmp_path: Path) -> None:
    ids = [[2, 1, 0], [1, 2, 9], [2, 0, 0]]
    mask = np.array([[0, 0, 1], [0, 0, 1], [0, 1, 1]], dtype=bool)
    path = put(
        tmp_path / "v.h5", **instances(ids), instance_embed_id=np.array(ids, "u4"), id_mask=mask, instance_id_center=np.zeros((2, 4))
    )
    recording = only(path)
    poses = recording.signals
    assert poses.individuals == recording.subjects == ("mouse1", "mouse2")
    assert poses.positions[:, 1, 5].tolist() == [[200, 0], [200, 1], [200, 2]]
    assert np.isnan(poses.positions[2, 0]).all()
    assert poses.confidence[0, 0, 0] == 2.5
    assert [str(note) for note in recording.notes] == ["1 of 6 instances have no identity; dropped"]


def test_tracklets_without_identities_share_individuals(tmp_path: Path) -> None:
    ids = [[4, 5], [5, 4], [6, 5], [6, 0], [7, 6]]
    path = put(tmp_path / "v.h5", **instances(ids), instance_track_id=np.array(ids, "u4"), instance_count=np.array([2, 2, 2, 1, 2], "u1"))
    recording = only(path)
    poses = recording.signals
    assert poses.individuals == ("place1", "place2")
    assert poses.positions[:, 0, 0, 0].tolist() == [400, 400, 600, 600, 600], "tracklet 6 follows 4, which has ended"
    assert poses.positions[[0, 1, 2, 4], 1, 0, 0].tolist() == [500, 500, 500, 700]
    assert np.isnan(poses.positions[3, 1]).all()
    assert "4 tracklets without identities share 2 individuals" in str(recording.notes[0])


def test_tracklets_that_are_animals_need_no_note(tmp_path: Path) -> None:
    ids = [[0, 1], [1, 0]]
    recording = only(put(tmp_path / "v.h5", **instances(ids), instance_track_id=np.array(ids, "u4"), instance_count=np.array([2, 2], "u1")))
    assert recording.notes == ()
    assert recording.signals.positions[:, 1, 0, 0].tolist() == [100, 100]


def test_metadata(tmp_path: Path) -> None:
    recording = only(put(tmp_path / "v.h5", **instances([[1]]), instance_embed_id=np.array([[1]], "u4")))
    assert recording.metadata["version"] == "5.0"
    assert recording.metadata["cm_per_pixel"] == 0.5
    assert recording.metadata["cm_per_pixel_source"] == "corner_detection"
    assert recording.metadata["static_objects"]["corners"][0] == [1, 2], "stored as x, y"
    assert recording.metadata["static_objects"]["lixit"] == [[20, 10]], "stored as y, x"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": np.zeros((2, 1, 11, 2))}, r"points of shape \(2, 1, 11, 2\)"),
        ({"confidence": np.zeros((2, 1, 11))}, "with confidence of shape"),
        ({"instance_embed_id": np.zeros((3, 1), "u4")}, r"instance_embed_id of shape \(3, 1\) for points of 2 frames"),
        ({"instance_embed_id": np.full((2, 1), 10**7, "u4")}, "refused: its data would take"),
        ({"instance_embed_id": h5py.ExternalLink("other.h5", "/x")}, "link to another file"),
        ({"points": np.zeros((2, 2, 12, 2)), "confidence": np.zeros((2, 2, 12))}, "neither instance_embed_id nor instance_track_id"),
        ({"instance_track_id": np.zeros((2, 1), "u4"), "instance_count": np.zeros(3, "u1")}, "3 instance counts for 2 frames"),
    ],
)
def test_damage_gets_one_clear_line(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        only(put(tmp_path / "v.h5", **{**instances([[1], [1]]), **change}), "jabs")


def test_a_duplicate_identity_is_refused(tmp_path: Path) -> None:
    ids = [[1, 2], [1, 1]]
    with pytest.raises(FormatError, match="duplicate identity in frame 1"):
        only(put(tmp_path / "v.h5", **instances(ids), instance_embed_id=np.array(ids, "u4")))


def test_other_files(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["y"] = 1
    with pytest.raises(FormatError, match="no group 'poseest'; groups: y"):
        only(tmp_path / "x.h5", "jabs")
    with pytest.raises(FormatError, match="unknown format"):
        detect(tmp_path / "x.h5")
    (tmp_path / "text.h5").write_text("nothing", encoding="utf-8")
    with pytest.raises(FormatError, match="not a valid HDF5 file"):
        only(tmp_path / "text.h5", "jabs")


def test_entries(tmp_path: Path) -> None:
    path = put(tmp_path / "v.h5", **instances([[1]]), instance_embed_id=np.array([[1]], "u4"))
    assert formats["jabs"].entries(path) == ["v"]
    with pytest.raises(NotFoundError, match="v"):
        only(path, entry="w")


def test_real_sample(data: Path) -> None:
    path = data / "formats" / "jabs" / "sample_pose_est_v5.h5"
    assert detect(path).name == "jabs"
    recording = only(path)
    assert recording.signals.positions.shape == (1800, 3, 12, 2)
    assert [str(note) for note in recording.notes] == ["52 of 5381 instances have no identity; dropped"]
    assert recording.signals.positions[0, 1, 0].tolist() == [516, 758]
    assert np.isnan(recording.signals.positions[0, 1, 1]).all()
    assert recording.metadata["static_objects"]["corners"][0] == [51, 67]
