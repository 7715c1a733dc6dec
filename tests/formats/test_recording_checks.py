"""Numbers that nothing can have measured: missing with a note, or refused, in every format of poses and signals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ethobench import Poses, Recording, Signals
from ethobench.core.errors import FormatError, ReadWarning
from ethobench.formats import formats, read_recordings
from ethobench.formats.text import parse_integer, parse_number

from .test_dropped_rows import PER_FRAME
from .test_nwb import Session

N, BAD = 40, 21
X, SURE = np.arange(N) + 0.5, np.full(N, 0.9)

Writer = Callable[[Path, np.ndarray, np.ndarray], None]


def text_of(header: str, row: str) -> Writer:
    def write(path: Path, x: np.ndarray, sure: np.ndarray) -> None:
        path.write_text(header + "".join(row.format(i=i, x=x[i], sure=sure[i]) + "\n" for i in range(N)), encoding="utf-8")

    return write


def calms21(path: Path, x: np.ndarray, sure: np.ndarray) -> None:
    keypoints = [[[[float(a)], [2.0]]] for a in x]
    record = {"keypoints": keypoints, "scores": [[[float(s)]] for s in sure], "metadata": {}}
    path.write_text(json.dumps({"group": {"mouse1": record}}), encoding="utf-8")


def jabs(path: Path, x: np.ndarray, sure: np.ndarray) -> None:
    with h5py.File(path, "w") as file:
        points = np.full((N, 12, 2), 2.0)
        points[:, 0, 1] = x  # stored as y, x
        confidence = np.ones((N, 12))
        confidence[:, 0] = sure
        file["poseest/points"], file["poseest/confidence"] = points, confidence


def sleap_h5(path: Path, x: np.ndarray, sure: np.ndarray) -> None:
    with h5py.File(path, "w") as file:
        file["node_names"], file["track_names"] = [b"nose"], [b"a"]
        file["tracks"] = np.stack([x, np.full(N, 2.0)])[None, :, None]
        file["point_scores"] = sure[None, None]


def nwb(path: Path, x: np.ndarray, sure: np.ndarray) -> None:
    session = Session(path)
    session.group("processing/behavior/PoseEstimation", "PoseEstimation")
    positions = np.column_stack((x, np.full(N, 2.0)))
    session.points("processing/behavior/PoseEstimation/nose", positions, np.arange(N) / 30, sure)


TABLE = "scorer,{0},{0},{0}\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n"
POSES: dict[str, tuple[str, str, Writer]] = {
    "simba": ("simba", ".csv", text_of(",nose_x,nose_y,nose_p\n", "{i},{x},2,{sure}")),
    "deeplabcut": ("deeplabcut", ".csv", text_of(TABLE.format("DLC_net"), "{i},{x},2,{sure}")),
    "lightning_pose": ("lightning_pose", ".csv", text_of(TABLE.format("heatmap_tracker"), "{i},{x},2,{sure}")),
    "anipose": ("anipose", ".csv", text_of("nose_x,nose_y,nose_z,nose_score,nose_ncams,fnum\n", "{x},2,3,{sure},2,{i}")),
    "sleap": ("sleap", ".csv", text_of("track,frame_idx,instance.score,nose.x,nose.y,nose.score\n", "a,{i},1,{x},2,{sure}")),
    "sleap H5": ("sleap", ".h5", sleap_h5),
    "jabs": ("jabs", ".h5", jabs),
    "calms21": ("calms21", ".json", calms21),
    "nwb": ("nwb", ".nwb", nwb),
}


def test_every_format_of_poses_is_enrolled() -> None:
    same_reader = {"sleap_events"}  # poses are read by the functions of `sleap`
    assert {format for format, *_ in POSES.values()} | same_reader == {f.name for f in formats if "poses" in f.contents}


def poses_of(recording: Recording) -> Poses:
    poses = recording.signals
    assert isinstance(poses, Poses)
    return poses


@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")  # of signals that are loaded late
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300, -2e7])
@pytest.mark.parametrize("case", POSES)
def test_impossible_coordinates_are_missing_and_noted(case: str, value: float, tmp_path: Path) -> None:
    format, suffix, write = POSES[case]
    path = tmp_path / f"mouse{suffix}"
    write(path, np.where(np.arange(N) == BAD, value, X), SURE)
    try:
        (recording,) = read_recordings(path, format, warn=False)
    except FormatError as error:
        assert (format, np.isinf(value)) == ("calms21", True), error  # JSON has no infinity
        return
    positions = poses_of(recording).positions[:, 0, 0]
    others = np.arange(N) != BAD
    assert positions[others, 0].tolist() == X[others].tolist()
    assert np.isnan(positions[BAD]).all()
    assert "1 of" in str(recording.notes)
    assert f"infinite or beyond 1e+07; read as missing (the first: frame {BAD}, " in str(recording.notes)


@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
@pytest.mark.parametrize("value", [-1.0, np.inf, 1e300])
@pytest.mark.parametrize("case", POSES)
def test_impossible_confidences_are_missing_and_noted(case: str, value: float, tmp_path: Path) -> None:
    format, suffix, write = POSES[case]
    path = tmp_path / f"mouse{suffix}"
    write(path, X, np.where(np.arange(N) == BAD, value, SURE))
    try:
        (recording,) = read_recordings(path, format, warn=False)
    except FormatError as error:
        assert (format, np.isinf(value)) == ("calms21", True), error
        return
    confidence = poses_of(recording).confidence[:, 0, 0]
    assert np.flatnonzero(np.isnan(confidence)).tolist() == [BAD]
    assert f"read as missing (the first: frame {BAD}, " in str(recording.notes)


@pytest.mark.parametrize("case", POSES)
def test_heat_maps_may_peak_above_one(case: str, tmp_path: Path) -> None:
    format, suffix, write = POSES[case]
    path = tmp_path / f"mouse{suffix}"
    write(path, X, np.where(np.arange(N) == BAD, 5.6, SURE))
    (recording,) = read_recordings(path, format, warn=False)
    assert poses_of(recording).confidence[BAD, 0, 0] == pytest.approx(5.6)


def test_lazily_loaded_signals_warn_when_they_are_loaded(tmp_path: Path) -> None:
    path = tmp_path / "mouse.csv"
    POSES["simba"][2](path, np.where(np.arange(N) == BAD, np.inf, X), SURE)
    (recording,) = read_recordings(path, rate=30, warn=False)
    with pytest.warns(ReadWarning, match=r"mouse: 1 of 40 points"):
        _ = recording.signals


def test_infinite_signals_are_missing_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "tag.csv"
    path.write_text("time,AccX\n" + "".join(f"{i / 25},{'-inf' if i == BAD else i + 0.5}\n" for i in range(N)), encoding="utf-8")
    (recording,) = read_recordings(path, warn=False)
    assert isinstance(recording.signals, Signals)
    assert np.flatnonzero(np.isnan(recording.signals.values[:, 0])).tolist() == [BAD]
    assert f"1 of 40 values are infinite; read as missing (the first: frame {BAD}, channel 'AccX')" in str(recording.notes)


STRANGE = ("1_0", "\uff11\uff12", "\u0661", "0x1F", "1e", "--1", "1__0")


@pytest.mark.parametrize("cell", STRANGE)
def test_only_plain_numbers_are_numbers(cell: str) -> None:
    for parse in (parse_number, parse_integer):
        with pytest.raises(ValueError, match="is not a"):
            parse(cell)


def read_all(path: Path, format: str, **options: Any) -> list[Any]:
    return [(recording.signals, recording.features) for recording in read_recordings(path, format, **options, warn=False)]


@pytest.mark.parametrize("cell", STRANGE[:2])
@pytest.mark.parametrize("case", PER_FRAME)
def test_numbers_in_other_spellings_are_refused_in_every_column(case: str, cell: str, tmp_path: Path) -> None:
    format, text = PER_FRAME[case]
    lines = text.splitlines()
    row = lines[-30].split(",")
    numeric = [i for i, old in enumerate(row) if old.replace(".", "").isdigit()]
    assert numeric
    options: dict[str, Any] = {"rate": 25.0} if format == "signals_csv" else {}
    for i in numeric:
        changed = [*lines[:-30], ",".join([*row[:i], cell, *row[i + 1 :]]), *lines[-29:]]
        path = tmp_path / f"mouse{i}.csv"
        path.write_text("\n".join(changed) + "\n", encoding="utf-8")
        with pytest.raises(FormatError, match=str(path)):
            read_all(path, format, **options)
