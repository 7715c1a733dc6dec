"""Recordings: lazy signals, annotators, views, lengths, and conversion from and to movement."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from ethobench.core import Annotation, Ethogram, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.recording import align_start, match_length

ETHOGRAM = Ethogram(["rest", "walk"])


def annotation(n: int = 20) -> Annotation:
    return Annotation.from_frames(np.arange(n) // 5 % 2, ETHOGRAM, 10)


def test_signals_are_loaded_once_and_only_when_used():
    calls = []

    def load() -> Signals:
        calls.append(1)
        return Signals(np.zeros((20, 3)), ("x", "y", "z"), 10)

    recording = Recording("r", signals=load, annotations={"me": annotation()})
    copy = recording.copy(individual="b")
    assert not calls
    assert recording.signals is recording.signals
    assert len(calls) == 1
    assert copy.individual == "b"
    assert len(copy.signals) == 20
    assert len(calls) == 2


def test_rate_and_length_come_from_the_available_data():
    assert Recording("r", annotations={"me": annotation()}).n_frames == 20
    poses = Poses(np.zeros((7, 1, 2, 2)), np.ones((7, 1, 2)), ("m",), ("nose", "tail"), 25)
    recording = Recording("r", signals=poses)
    assert (recording.rate, recording.n_frames, recording.individual) == (25, 7, "r")


def test_several_annotators_must_be_named():
    recording = Recording("r", annotations={"ann1": annotation(), "ann2": annotation()})
    with pytest.raises(EthobenchError, match="choose one of: ann1, ann2"):
        recording.annotation()
    assert recording.annotation("ann2") is recording.annotations["ann2"]
    with pytest.raises(NotFoundError, match="no annotator 'x'"):
        recording.annotation("x")
    with pytest.raises(NotFoundError, match="has no annotation"):
        Recording("r").annotation()


def test_annotators_in_order_of_preference():
    ethogram = Ethogram(["a", "b"])
    anna, carla = (Annotation.from_frames(codes, ethogram, 1) for codes in ([0, 1], [1, 1]))
    both, one = Recording("1", annotations={"anna": anna, "carla": carla}), Recording("2", annotations={"anna": anna})
    assert both.annotation("carla, anna") is carla
    assert one.annotation("carla,anna") is anna
    with pytest.raises(NotFoundError, match="no annotator 'ben,dora'"):
        one.annotation("ben,dora")


def test_views_of_a_recording_keep_its_id():
    recording = Recording("r", annotations={"me": annotation()})
    view = recording.copy(id="r|me", source_id=recording.source_id)
    assert (recording.source_id, view.source_id, view.copy(id="r|me|2").source_id) == ("r", "r", "r")
    assert recording.copy(id="other").source_id == "other"


def test_notebooks_show_a_table():
    html = Recording("r", "<b>", annotations={"me": annotation()}, metadata={"sex": "f"})._repr_html_()
    assert html.startswith("<table><caption>Recording r</caption>")
    assert "&lt;b&gt;" in html
    assert "<td>sex</td><td>f</td>" in html


@pytest.mark.parametrize(("labels", "frames"), [(100, 100), (101, 100), (1010, 1000), (2, 1)])
def test_labels_up_to_a_hundredth_or_a_frame_longer_are_cropped(labels, frames):
    fitted, change = match_length(Annotation.from_frames([0] * labels, ["rest"], rate=10), frames)
    assert fitted.n_frames == frames
    assert bool(change) == (labels > frames)
    assert fitted.stop.tolist() == [frames]


@pytest.mark.parametrize(("labels", "frames"), [(102, 100), (1011, 1000), (3, 1)])
def test_much_longer_labels_are_refused(labels, frames):
    with pytest.raises(MismatchError, match=f"labels for {labels} frames, but signals for {frames}"):
        match_length(Annotation.from_frames([0] * labels, ["rest"], rate=10), frames)


def test_frames_after_the_last_label_are_unobserved():
    fitted, change = match_length(Annotation.from_frames([0] * 8, ["rest"], rate=10), 10)
    assert fitted.to_codes().tolist() == [0] * 8 + [-1] * 2
    assert change == "labels end 2 frames before the signals; the remaining frames are unobserved"


def pose_recording(rate: float | None = 25.0, n_axes: int = 2) -> Recording:
    rng = np.random.default_rng(1)
    positions = rng.random((5, 2, 3, n_axes))
    positions[2, 1, 0] = np.nan
    poses = Poses(positions, rng.random((5, 2, 3)), ("resident", "intruder"), ("nose", "neck", "tail"), rate)
    return Recording("one", signals=poses, metadata={"source_software": "DeepLabCut"})


@pytest.mark.slow
def test_layout_is_that_of_movement() -> None:
    pytest.importorskip("xarray")
    dataset = pose_recording().to_movement()
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
    poses = pose_recording().signals
    assert dataset["position"].sel(individuals="intruder", keypoints="tail", space="y").values[3] == poses.positions[3, 1, 2, 1]
    assert dataset["confidence"].sel(individuals="resident", keypoints="neck").values[4] == poses.confidence[4, 0, 1]


@pytest.mark.slow
def test_without_a_rate_the_time_of_movement_is_in_frames() -> None:
    pytest.importorskip("xarray")
    dataset = pose_recording(rate=None).to_movement()
    assert dataset.attrs["time_unit"] == "frames"
    assert "fps" not in dataset.attrs
    assert dataset["time"].values.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.slow  # xarray takes a second to import
@pytest.mark.parametrize("rate", [None, 25.0])
@pytest.mark.parametrize("n_axes", [2, 3])
def test_conversion_to_movement_and_back_changes_nothing(rate: float | None, n_axes: int) -> None:
    pytest.importorskip("xarray")
    original = pose_recording(rate, n_axes)
    back = Recording.from_movement(original.to_movement(), "two")
    assert (back.id, back.rate, back.n_frames, back.subjects) == ("two", rate, 5, ("resident", "intruder"))
    assert np.array_equal(back.signals.positions, original.signals.positions, equal_nan=True)
    assert np.array_equal(back.signals.confidence, original.signals.confidence)
    assert back.signals.keypoints == original.signals.keypoints
    assert back.metadata["source_software"] == "DeepLabCut"


def test_movement_dimensions_in_any_order_and_without_confidence() -> None:
    pytest.importorskip("xarray")
    dataset = pose_recording().to_movement().transpose("individuals", "time", "keypoints", "space")[["position"]]
    back = Recording.from_movement(dataset, "x").signals
    assert np.array_equal(back.positions, pose_recording().signals.positions, equal_nan=True)
    assert np.isnan(back.confidence).all()


def test_other_datasets_than_poses_are_refused() -> None:
    xarray = pytest.importorskip("xarray")
    boxes = xarray.Dataset({"position": (("time", "space", "individuals"), np.zeros((3, 2, 1)))})
    with pytest.raises(MismatchError, match="keypoints"):
        Recording.from_movement(boxes, "x")
    with pytest.raises(MismatchError, match="no variable 'position'"):
        Recording.from_movement(xarray.Dataset(), "x")
    polar = pose_recording().to_movement().assign_coords(space=["rho", "phi"])
    with pytest.raises(MismatchError, match="rho, phi"):
        Recording.from_movement(polar, "x")


def test_a_recording_without_poses_cannot_be_converted_to_movement() -> None:
    with pytest.raises(EthobenchError, match="'tag' has no poses"):
        Recording("tag", signals=Signals(np.zeros((3, 1)), ("x",), 20)).to_movement()


def test_without_xarray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(EthobenchError, match=r"pip install .ethobench\[movement\]."):
        pose_recording().to_movement()


NOON = datetime(2024, 5, 1, 12)


@pytest.mark.parametrize("offset", [-19, -7, -1, 0, 1, 5, 9])
@pytest.mark.parametrize("zone", [None, timezone(timedelta(hours=2))])
def test_labels_are_aligned_by_the_dates(offset, zone):
    codes = np.arange(20) % 2
    start = NOON + timedelta(seconds=offset / 10)
    start = start if zone is None else (start + timedelta(hours=2)).replace(tzinfo=zone)
    aligned, change = align_start(Annotation.from_frames(codes, ["rest", "run"], rate=10), start, NOON, 10)
    expected = [int(codes[frame - offset]) if 0 <= frame - offset < 20 else -1 for frame in range(min(20 + offset, 10))]
    assert aligned.to_codes().tolist() == expected
    direction = "after" if offset > 0 else "before"
    changes = [f"labels start {abs(offset) / 10:g} s {direction} the signals; aligned by their dates"] if offset else []
    changes += [f"labels end {10 + offset} frames after the signals; cropped"] if 20 + offset > 10 else []
    assert change == "; ".join(changes)


@pytest.mark.parametrize("offset", [-20, 10])
def test_labels_that_do_not_overlap_the_signals_are_refused(offset):
    with pytest.raises(MismatchError, match="do not overlap"):
        align_start(Annotation.from_frames([0] * 20, ["rest"], rate=10), NOON + timedelta(seconds=offset / 10), NOON, 10)


def test_features_are_loaded_once():
    loaded = []

    def load() -> Signals:
        loaded.append(1)
        return Signals(np.zeros((5, 1)), ("x",), 10.0)

    recording = Recording("r", features=load)
    assert recording.features is recording.features
    assert loaded == [1]


def test_labels_that_start_with_the_signals_are_unchanged():
    annotation = Annotation.from_bouts([0, 8], [2, 10], ["a", "a"], ["a"], 10, 10)
    start = datetime(2024, 5, 1, 12)
    same, change = align_start(annotation, start, start, 10)
    assert (same, change) == (annotation, "")
    for seconds, change in (
        (0.9, "labels start 0.9 s after the signals; aligned by their dates"),
        (-0.9, "labels start 0.9 s before the signals"),
    ):
        assert align_start(annotation, start + timedelta(seconds=seconds), start, 10)[1].startswith(change)
    for seconds in (1, -1):
        with pytest.raises(MismatchError, match="they do not overlap"):
            align_start(annotation, start + timedelta(seconds=seconds), start, 10)


def test_a_single_animal_of_movement_is_not_named_as_subject():
    pytest.importorskip("xarray")
    dataset = pose_recording(25.0, 2).to_movement()
    assert Recording.from_movement(dataset, "two").subjects == ("resident", "intruder")
    assert Recording.from_movement(dataset.isel(individuals=[1]), "one").subjects == ()
