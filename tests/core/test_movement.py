from __future__ import annotations

import sys

import numpy as np
import pytest

from ethobench import Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError

xarray = pytest.importorskip("xarray")


def recording(rate: float | None = 25.0, n_axes: int = 2) -> Recording:
    rng = np.random.default_rng(1)
    positions = rng.random((5, 2, 3, n_axes))
    positions[2, 1, 0] = np.nan
    poses = Poses(positions, rng.random((5, 2, 3)), ("resident", "intruder"), ("nose", "neck", "tail"), rate)
    return Recording("one", signals=poses, metadata={"source_software": "DeepLabCut"})


def test_layout_is_that_of_movement() -> None:
    dataset = recording().to_movement()
    assert dataset["position"].dims == ("time", "space", "keypoints", "individuals")
    assert dataset["confidence"].dims == ("time", "keypoints", "individuals")
    assert dataset["space"].values.tolist() == ["x", "y"]
    assert dataset["time"].values.tolist() == [0, 0.04, 0.08, 0.12, 0.16]
    assert {k: dataset.attrs[k] for k in ("fps", "time_unit", "source_software", "ds_type")} == {
        "fps": 25.0,
        "time_unit": "seconds",
        "source_software": "DeepLabCut",
        "ds_type": "poses",
    }
    poses = recording().signals
    assert dataset["position"].sel(individuals="intruder", keypoints="tail", space="y").values[3] == poses.positions[3, 1, 2, 1]
    assert dataset["confidence"].sel(individuals="resident", keypoints="neck").values[4] == poses.confidence[4, 0, 1]


def test_without_a_rate_time_is_frames() -> None:
    dataset = recording(rate=None).to_movement()
    assert dataset.attrs["time_unit"] == "frames"
    assert "fps" not in dataset.attrs
    assert dataset["time"].values.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("rate", [None, 25.0])
@pytest.mark.parametrize("n_axes", [2, 3])
def test_there_and_back(rate: float | None, n_axes: int) -> None:
    there = recording(rate, n_axes)
    back = Recording.from_movement(there.to_movement(), "two")
    assert (back.id, back.rate, back.n_frames, back.subjects) == ("two", rate, 5, ("resident", "intruder"))
    assert np.array_equal(back.signals.positions, there.signals.positions, equal_nan=True)
    assert np.array_equal(back.signals.confidence, there.signals.confidence)
    assert back.signals.keypoints == there.signals.keypoints
    assert back.metadata["source_software"] == "DeepLabCut"


def test_dimensions_in_any_order_and_without_confidence() -> None:
    dataset = recording().to_movement().transpose("individuals", "time", "keypoints", "space")[["position"]]
    back = Recording.from_movement(dataset, "x").signals
    assert np.array_equal(back.positions, recording().signals.positions, equal_nan=True)
    assert np.isnan(back.confidence).all()


def test_what_is_no_poses_dataset_is_refused() -> None:
    boxes = xarray.Dataset({"position": (("time", "space", "individuals"), np.zeros((3, 2, 1)))})
    with pytest.raises(MismatchError, match="keypoints"):
        Recording.from_movement(boxes, "x")
    with pytest.raises(MismatchError, match="no variable 'position'"):
        Recording.from_movement(xarray.Dataset(), "x")
    polar = recording().to_movement().assign_coords(space=["rho", "phi"])
    with pytest.raises(MismatchError, match="rho, phi"):
        Recording.from_movement(polar, "x")


def test_a_recording_without_poses_is_refused() -> None:
    with pytest.raises(EthobenchError, match="'tag' has no poses"):
        Recording("tag", signals=Signals(np.zeros((3, 1)), ("x",), 20)).to_movement()


def test_without_xarray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(EthobenchError, match=r"pip install ethobench\[movement\]"):
        recording().to_movement()
