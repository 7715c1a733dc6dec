from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ethobench.core.errors import FormatError, NotFoundError
from ethobench.formats import detect, formats, read_recordings
from ethobench.formats.text import Head

HEADER = (
    "nose_x,nose_y,nose_z,nose_error,nose_ncams,nose_score,left_ear_x,left_ear_y,left_ear_z,left_ear_error,left_ear_ncams,left_ear_score"
)
FRAME = "M_00,M_01,M_02,M_10,M_11,M_12,M_20,M_21,M_22,center_0,center_1,center_2,fnum"
IDENTITY = "1,0,0,0,1,0,0,0,1,5,6,7"
TEXT = f"""{HEADER},{FRAME}
1,2,3,0.5,2,0.9,4,5,6,0.25,3,0.8,{IDENTITY},0
,,,,,,7,8,9,0.75,2,0.7,{IDENTITY},1
"""


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_points_in_space(tmp_path: Path) -> None:
    path = put(tmp_path / "pose.csv", TEXT)
    assert detect(path).name == "anipose"
    (recording,) = read_recordings(path, rate=100, warn=False)
    poses = recording.signals
    assert (recording.id, recording.rate, recording.n_frames, recording.notes) == ("pose", 100, 2, ())
    assert (poses.individuals, poses.keypoints) == (("individual",), ("nose", "left_ear"))
    assert poses.positions[0, 0].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.isnan(poses.positions[1, 0, 0]).all()
    assert poses.confidence[:, 0, 1].tolist() == [0.8, 0.7]
    beside = recording.metadata["columns"]
    assert beside["left_ear_error"].tolist() == [0.25, 0.75]
    assert beside["center_2"].tolist() == [7, 7]
    assert "fnum" not in beside


def test_rows_go_to_their_frames(tmp_path: Path) -> None:
    (recording,) = read_recordings(put(tmp_path / "pose.csv", TEXT.replace(",1\n", ",3\n")), warn=False)
    assert recording.n_frames == 4
    assert recording.signals.positions[3, 0, 1].tolist() == [7, 8, 9]
    assert recording.metadata["columns"]["left_ear_ncams"].tolist()[3] == 2
    assert "2 of 4 frames have no row" in str(recording.notes[0])


def test_without_frame_numbers_and_scores(tmp_path: Path) -> None:
    path = put(tmp_path / "pose.csv", "\ufeffa_x,a_y,a_z,a_ncams\r\n1,2,3,2\r\n")
    assert detect(path).name == "anipose"
    (recording,) = read_recordings(path, warn=False)
    assert recording.signals.positions.tolist() == [[[[1, 2, 3]]]]
    assert np.isnan(recording.signals.confidence).all()


def test_unknown_columns_are_noted(tmp_path: Path) -> None:
    (recording,) = read_recordings(put(tmp_path / "pose.csv", "a_x,a_y,a_z,fnum,remark\n1,2,3,0,fine\n"), warn=False)
    assert [str(note) for note in recording.notes] == ["ignored unknown columns: remark"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a_x,a_y,fnum\n1,2,0\n", "no keypoint has columns"),
        ("a_x,a_y,a_z,fnum\n", "no rows"),
        ("a_x,a_y,a_z,fnum\n1,2,3,0\n1,2,3,0\n", "row 3: duplicate frame 0"),
        ("a_x,a_y,a_z,a_x,fnum\n1,2,3,4,0\n", "duplicate column"),
        ("a_x,a_y,a_z,fnum\n1,2,3,0\n1,2", "row 3: 2 cells, but the header has 4"),
        ("a_x,a_y,a_z,fnum\n1,2,q,0\n", "row 2, column 3: 'q' is not a number"),
        ("", "empty"),
    ],
)
def test_damage_gets_one_clear_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(put(tmp_path / "pose.csv", text), "anipose", warn=False)


def test_a_table_of_channels_is_not_detected_as_poses(tmp_path: Path) -> None:
    path = put(tmp_path / "tag.csv", "acc_x,acc_y,acc_z,label\n1,2,3,0\n")
    assert formats["anipose"].sniff(path, Head(path)) == 0


def test_entries(tmp_path: Path) -> None:
    path = put(tmp_path / "pose.csv", TEXT)
    assert formats["anipose"].entries(path) == ["pose"]
    with pytest.raises(NotFoundError, match="pose"):
        read_recordings(path, entry="x", warn=False)
