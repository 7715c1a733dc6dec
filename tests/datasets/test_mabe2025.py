"""The folder of MABe 2025: metadata, long tracking tables and sparse annotations, in the layout of the challenge."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ethobench as eb
from ethobench.core import Track
from ethobench.core import intervals as iv
from ethobench.core.errors import FormatError, MissingDataError, NotFoundError, ReadWarning

PARTS = ["nose", "neck", "tail_base"]
LISTS = {11: ["mouse1,mouse2,sniff", "mouse2,self,rear"], 12: ["mouse1,mouse3,attack"], 21: []}


def row(lab: str, video: int, **changes: Any) -> dict[str, Any]:
    cells = {"lab_id": lab, "video_id": video, "mouse1_strain": "C57", "mouse1_id": 4.0, "mouse2_strain": "CD-1", "mouse2_id": np.nan}
    cells |= {"frames_per_second": 24.62, "video_duration_sec": 2.0, "pix_per_cm_approx": 16.0, "arena_shape": "square"}
    labeled = json.dumps(LISTS[video]) if LISTS[video] else ""
    return cells | {"body_parts_tracked": json.dumps(PARTS), "behaviors_labeled": labeled, "tracking_method": "MARS"} | changes


def tracking(seed: int, n_frames: int = 40, n_mice: int = 2) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a long table of which a third of the rows is absent, in random order, and the positions that it states."""
    random = np.random.default_rng(seed)
    positions = random.normal(300, 50, (n_frames, n_mice, len(PARTS), 2)).astype(np.float32)
    frame, mouse, keypoint = np.indices(positions.shape[:3]).reshape(3, -1)
    table = pd.DataFrame({"video_frame": frame, "mouse_id": mouse + 1, "bodypart": np.array(PARTS)[keypoint]})
    table[["x", "y"]] = positions.reshape(-1, 2)
    tracked = random.random(len(table)) > 0.3
    tracked[-1] = True
    positions.reshape(-1, 2)[~tracked] = np.nan
    return table[tracked].sample(frac=1, random_state=seed), positions


def bouts(*rows: tuple[int, int, str, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["agent_id", "target_id", "action", "start_frame", "stop_frame"])


def put(table: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_parquet(path, index=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two labs: one with two annotated videos, one with a video that was not labeled."""
    monkeypatch.setenv("ETHOBENCH_DATA", str(tmp_path))
    root = tmp_path / "mabe2025"
    root.mkdir()
    rows = [row("Owl", 11), row("Owl", 12, pix_per_cm_approx=0.0), row("Newt", 21, mouse1_id=np.nan, pix_per_cm_approx=np.nan)]
    pd.DataFrame(rows).to_csv(root / "train.csv", index=False)
    for lab, video in (("Owl", 11), ("Owl", 12), ("Newt", 21)):
        put(tracking(video)[0], root / "train_tracking" / lab / f"{video}.parquet")
    put(bouts((1, 2, "sniff", 5, 9), (2, 2, "rear", 0, 45)), root / "train_annotation" / "Owl" / "11.parquet")
    put(bouts((2, 1, "chase", 3, 7)), root / "train_annotation" / "Owl" / "12.parquet")
    return root


def load(**options: Any) -> eb.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return eb.load_dataset("mabe2025", **options)


def test_poses_are_read_on_first_access_and_missing_rows_are_missing_keypoints(folder):
    recording = load()["12"]
    assert recording.n_frames == 40  # known from the statistics of the file, before it is read
    poses = recording.signals
    assert poses.individuals == ("mouse1", "mouse2", "mouse3")
    assert poses.keypoints == tuple(PARTS)
    assert poses.rate == recording.rate == 24.62
    np.testing.assert_array_equal(poses.positions[:, :2], tracking(12)[1].astype(np.float64))
    assert np.isnan(poses.positions[:, 2]).all()  # the list names a third mouse, which is not tracked


def test_metadata(folder):
    data = load()
    first, second, third = data
    assert first.metadata["lab"] == "Owl"
    assert first.metadata["behaviors_labeled"] == LISTS[11]
    assert first.metadata["body_parts_tracked"] == PARTS
    assert first.metadata["tracking_method"] == "MARS"
    assert first.metadata["pixels_per_cm"] == 16.0
    for recording in (second, third):
        assert "pixels_per_cm" not in recording.metadata
        assert "no scale: pix_per_cm_approx is" in str(recording.notes[0])
    assert [r.individual for r in data] == ["Owl/4", "Owl/4", "21"]
    assert data.splits == {"11": "train", "12": "train", "21": "train"}


def test_annotations_are_observed_for_labeled_behaviors_only(folder):
    data = load()
    labels = data["11"].annotation()
    assert labels.n_frames == data["11"].n_frames == len(data["11"].signals) == 45  # the last bout ends after the last tracked frame
    assert labels.start.tolist() == [0, 5]
    assert labels.names(labels.target) == [None, "mouse2"]
    observed = labels.observed
    assert iv.total(observed.of("sniff", "mouse1", "mouse2")) == iv.total(observed.of("rear", "mouse2")) == 45
    assert iv.total(observed.of("sniff", "mouse2", "mouse1")) == 0
    assert {*observed.tracks} == {Track("sniff", "mouse1", "mouse2"), Track("rear", "mouse2", None)}
    assert any("not in labeled=" in str(note) for note in data["12"].notes)  # a bout of an action that is not in the list
    assert not data["21"].annotations


def test_a_dataset_is_scored_with_its_labs_and_lists(folder):
    data = load()
    truths = {name: data[name].annotation() for name in ("11", "12")}
    scores = eb.score(truths, data, suite="mabe2025", resamples=0)
    assert scores.individuals == ("Owl",)
    assert scores.overall["f1"] == pytest.approx(2 / 3)  # chase is not in the list of its video, so it can only be missed
    assert scores.overall["f1_labeled"] == 1


def test_labs_can_be_chosen(folder):
    assert [r.id for r in load(labs="Newt")] == ["21"]
    with pytest.raises(NotFoundError, match=r"has no lab Bat. Available: Newt, Owl"):
        load(labs=["Owl", "Bat"])


def test_test_videos_are_a_split_without_annotations(folder):
    pd.DataFrame([row("Owl", 12, video_id=31)]).drop(columns="behaviors_labeled").to_csv(folder / "test.csv", index=False)
    put(tracking(31)[0], folder / "test_tracking" / "Owl" / "31.parquet")
    test = load().select(split="test")
    assert [r.id for r in test] == ["31"]
    assert not test["31"].annotations
    assert len(test["31"].signals) == 40


def test_missing_files_are_named_and_metadata_stay_usable(folder):
    (folder / "train_tracking" / "Owl" / "11.parquet").unlink()
    (folder / "train_annotation" / "Owl" / "12.parquet").unlink()
    with pytest.warns(ReadWarning) as issued:
        data = eb.load_dataset("mabe2025")
    messages = [str(w.message) for w in issued]
    assert any("1 of 3 videos have no tracking" in m and "train_tracking/ from https://" in m and str(folder) in m for m in messages)
    assert any("1 of 3 videos have no annotation" in m and "12.parquet" in m for m in messages)
    assert not data["11"].has_signals
    assert data["11"].n_frames == 45
    assert data["12"].metadata["lab"] == "Owl"


def test_without_the_metadata_the_error_says_where_it_goes(tmp_path, monkeypatch):
    monkeypatch.setenv("ETHOBENCH_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"has no train.csv.*put train.csv, train_tracking/ and train_annotation/ into this folder"):
        eb.load_dataset("mabe2025")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frames_per_second": 0}, "row 2: frames_per_second '0' is not a frame rate"),
        ({"lab_id": "../Owl"}, "cannot be the name of a file or folder"),
        ({"behaviors_labeled": "[oops"}, "row 2: behaviors_labeled is not a valid JSON list"),
        ({"behaviors_labeled": '["sniff"]'}, "needs entries such as"),
        ({"body_parts_tracked": "[oops"}, "row 2"),
    ],
)
def test_bad_metadata(folder, changes, message):
    pd.DataFrame([row("Owl", 11, **changes)]).to_csv(folder / "train.csv", index=False)
    with pytest.raises(FormatError, match=message):
        eb.load_dataset("mabe2025")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"video_frame": 0.5}, "video_frame 0.5 is not a frame number"),
        ({"video_frame": -3}, "video_frame -3 is negative"),
        ({"video_frame": 1 << 40}, "refused: its data would take"),
        ({"x": "left"}, "column x has values that are not numbers"),
        ({"bodypart": None}, "blank bodypart"),
    ],
)
def test_bad_tracking(folder, changes, message):
    put(tracking(11)[0].assign(**changes), folder / "train_tracking" / "Owl" / "12.parquet")
    with pytest.raises(FormatError, match=message):
        load()["12"].signals  # noqa: B018


def test_tracking_without_a_column(folder):
    put(tracking(11)[0].drop(columns="bodypart"), folder / "train_tracking" / "Owl" / "12.parquet")
    with pytest.raises(FormatError, match=r"12.parquet, header: no column bodypart; columns: video_frame, mouse_id, x, y"):
        eb.load_dataset("mabe2025")
