from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ethobench.core.errors import FormatError, NotFoundError
from ethobench.formats import detect, formats, read_recordings

TEXT = """scorer,heatmap_tracker,heatmap_tracker,heatmap_tracker,heatmap_tracker,heatmap_tracker,heatmap_tracker
bodyparts,paw_top,paw_top,paw_top,paw_bot,paw_bot,paw_bot
coords,x,y,likelihood,x,y,likelihood
0,1.5,2.5,0.9,10,20,1
1,3,4,0.8,11,21,0.5
"""


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_views_of_one_video_are_keypoints_of_one_individual(tmp_path: Path) -> None:
    (recording,) = read_recordings(put(tmp_path / "session_view0.csv", TEXT), rate=250, warn=False)
    poses = recording.signals
    assert (recording.id, recording.rate, recording.n_frames, recording.notes) == ("session_view0", 250, 2, ())
    assert (poses.individuals, poses.keypoints) == (("individual",), ("paw_top", "paw_bot"))
    assert poses.positions[1, 0].tolist() == [[3, 4], [11, 21]]
    assert poses.confidence[0, 0].tolist() == [0.9, 1]
    assert recording.metadata["source_software"] == "LightningPose"


@pytest.mark.parametrize(
    "scorer", ["heatmap_tracker", "heatmap_mhcrnn_tracker", "heatmap_multiview_transformer_tracker", "ensemble-kalman_tracker"]
)
def test_scorer_names_distinguish_it_from_deeplabcut(scorer: str, tmp_path: Path) -> None:
    path = put(tmp_path / "v.csv", TEXT.replace("heatmap_tracker", scorer))
    assert detect(path).name == "lightning_pose"


@pytest.mark.parametrize("scorer", ["DLC_resnet50_tracker_project", "DeepCut_resnet50", "Ann"])
def test_other_scorers_are_those_of_deeplabcut(scorer: str, tmp_path: Path) -> None:
    assert detect(put(tmp_path / "v.csv", TEXT.replace("heatmap_tracker", scorer))).name == "deeplabcut"


def test_the_set_of_labeled_frames_is_kept(tmp_path: Path) -> None:
    lines = TEXT.strip().split("\n")
    rows = [
        f"{lines[0]},set",
        f"{lines[1]},",
        f"{lines[2]},",
        f"labeled-data/a/img1.png,{lines[3][2:]},train",
        f"labeled-data/a/img2.png,{lines[4][2:]},validation",
    ]
    (recording,) = read_recordings(put(tmp_path / "predictions.csv", "\r\n".join(rows) + "\r\n"), warn=False)
    assert recording.metadata["set"] == ["train", "validation"]
    assert recording.signals.keypoints == ("paw_top", "paw_bot")
    assert recording.signals.positions[0, 0, 0].tolist() == [1.5, 2.5]


def test_columns_of_smoothers_are_noted(tmp_path: Path) -> None:
    scorers = ",".join(["ensemble-kalman_tracker"] * 3)
    text = f"scorer,{scorers}\nbodyparts,paw,paw,paw\ncoords,x,y,x_ens_var\n0,1,2,3\n"
    (recording,) = read_recordings(put(tmp_path / "v.csv", text), warn=False)
    assert [str(note) for note in recording.notes] == ["ignored unknown coordinates: x_ens_var"]
    assert np.isnan(recording.signals.confidence).all()


def test_entries_and_damage(tmp_path: Path) -> None:
    path = put(tmp_path / "v.csv", TEXT[:-8])
    assert formats["lightning_pose"].entries(path) == ["v"]
    with pytest.raises(NotFoundError, match="v"):
        read_recordings(path, entry="w", warn=False)
    with pytest.raises(FormatError, match=r"row 5: \d cells, but the header has 7; the file may be truncated"):
        read_recordings(path, warn=False)
