"""Network inputs from poses and channels."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import ethobench as eb
from ethobench import Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.signals import Keypoint
from ethobench.formats.calms21 import KEYPOINTS, MICE
from ethobench.training.trajectory_inputs import POSE_INPUTS, InputTransform, fit_input_transform, hold_gaps, stated_arena

pytestmark = pytest.mark.slow

RATE = 10.0  # half a second, for which gaps are bridged, is five frames


def recording_of(positions: np.ndarray, who=("a", "b"), points=("nose", "tail_base"), **changes) -> Recording:
    sure = np.full(positions.shape[:3], np.nan)
    return Recording("r", signals=Poses(positions, sure, who, points, RATE)).copy(**changes)


def walk(n: int = 40, animals: int = 2, points: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(50, 500, (n, animals, points, 2))


def prepared(recording: Recording, kind: str = "coordinates", *, causal: bool = False, **changes) -> np.ndarray:
    transform = fit_input_transform([recording], kind, RATE, causal=causal, **changes)
    return transform.open(recording).read(0, len(recording.signals))


def test_coordinates_are_fractions_of_the_arena_by_animal_keypoint_and_axis():
    positions = walk()
    values = prepared(recording_of(positions, metadata={"width": 1000, "height": 500}))
    assert values.dtype == np.float32
    for animal in range(2):
        for point in range(2):
            for axis, side in enumerate((1000, 500)):
                assert values[:, 4 * animal + 2 * point + axis] == pytest.approx(positions[:, animal, point, axis] / side, rel=1e-6)


def test_the_arena_is_stated_or_that_of_calms21_or_estimated():
    positions = np.random.default_rng(0).uniform(0, 500, (3, 2, 7, 2))
    mice = recording_of(positions, MICE, KEYPOINTS, metadata={"group": "annotator-id_0"})
    assert stated_arena(mice) == (0, 0, 1024, 570)
    assert stated_arena(mice.copy(metadata={"group": "x", "width": 640, "height": 480})) == (0, 0, 640, 480)
    assert stated_arena(mice.copy(metadata={})) is None
    assert stated_arena(mice.copy(metadata={"width": "wide", "height": 3})) is None
    values = prepared(recording_of(walk(n=4000)))
    assert values.min() == pytest.approx(0, abs=0.01)
    assert values.max() == pytest.approx(1, abs=0.01)


def test_short_gaps_are_interpolated_and_long_ones_are_zero():
    positions = walk()
    positions[10:14, 0, 0] = np.nan
    positions[20:28, 1, 1] = np.nan
    values = prepared(recording_of(positions, metadata={"width": 1, "height": 1}))
    step = np.linspace(positions[9, 0, 0], positions[14, 0, 0], 6)[1:-1]
    assert values[10:14, :2] == pytest.approx(step, rel=1e-5)
    assert (values[20:28, 6:] == 0).all()
    assert (values[20:28, :6] != 0).all()


def test_causal_inputs_keep_the_last_position_and_use_no_later_frame():
    positions = walk()
    positions[10:14, 0, 0] = np.nan
    positions[20:28, 1, 1] = np.nan
    recording = recording_of(positions, metadata={"width": 1, "height": 1})
    values = prepared(recording, causal=True)
    assert values[10:14, :2] == pytest.approx(np.tile(positions[9, 0, 0], (4, 1)), rel=1e-5)
    assert values[20:25, 6:] == pytest.approx(np.tile(positions[19, 1, 1], (5, 1)), rel=1e-5)
    assert (values[25:28, 6:] == 0).all()
    transform = fit_input_transform([recording], "egocentric", RATE, causal=True)
    for cut in (12, 24, 30):
        short = recording_of(positions[:cut], metadata=recording.metadata)
        assert np.array_equal(transform.open(short).read(0, cut), transform.open(recording).read(0, cut))


def test_holding_gaps_agrees_with_a_plain_loop():
    random = np.random.default_rng(1)
    positions = random.normal(size=(60, 2, 3, 2))
    positions[random.random((60, 2, 3)) < 0.6] = np.nan
    expected, last, age = positions.copy(), np.full((2, 3, 2), np.nan), np.zeros((2, 3))
    for t in range(60):
        lost = np.isnan(positions[t, ..., 0])
        age = np.where(lost, age + 1, 0)
        last = np.where(lost[..., None], last, positions[t])
        expected[t] = np.where((age <= 3)[..., None], last, np.nan)
    hold_gaps(positions, 3)
    assert np.array_equal(positions, expected, equal_nan=True)


@pytest.mark.parametrize("kind", POSE_INPUTS)
@pytest.mark.parametrize("causal", [False, True])
def test_reading_in_pieces_equals_reading_at_once(kind, causal):
    positions = walk(200)
    positions[np.random.default_rng(2).random((200, 2, 2)) < 0.3] = np.nan
    features = Signals(np.random.default_rng(3).normal(5, 3, (200, 3)), ("g1", "g2", "g3"), RATE)
    recording = recording_of(positions, features=features)
    transform = fit_input_transform([recording], kind, RATE, causal=causal)
    opened = transform.open(recording)
    complete = opened.read(-7, 205)
    assert np.isfinite(complete).all()
    assert (complete[:7] == 0).all()
    assert (complete[207:] == 0).all()
    pieces = [opened.read(start, start + 53) for start in range(-7, 205, 53)]
    assert np.concatenate(pieces)[:212] == pytest.approx(complete, abs=1e-5)
    again = InputTransform.from_dict(json.loads(json.dumps(dataclasses.asdict(transform))))
    assert again == transform


def test_features_and_channels_are_standardized_coordinates_are_not():
    features = Signals(np.random.default_rng(3).normal(5, 3, (400, 2)), ("g1", "g2"), RATE)
    values = prepared(recording_of(walk(400), features=features, metadata={"width": 1, "height": 1}), "coordinates+given")
    assert values[:, :8] == pytest.approx(walk(400).reshape(400, 8), rel=1e-6)
    assert values[:, 8:].mean(axis=0) == pytest.approx([0, 0], abs=1e-5)
    assert values[:, 8:].std(axis=0) == pytest.approx([1, 1], abs=1e-5)
    channels = np.random.default_rng(3).normal([1e4, 0, 3], [1, 0, 2], (500, 3))
    channels[7, 0] = np.nan
    tag = Recording("t", signals=Signals(channels, ("a", "b", "c"), RATE))
    values = prepared(tag)
    assert values[7, 0] == 0
    assert values.std(axis=0) == pytest.approx([1, 0, 1], abs=2e-3)


def test_egocentric_inputs_do_not_change_with_rotation():
    positions, angle = walk(), 0.7
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    first, second = (prepared(recording_of(p), "egocentric") for p in (positions, positions @ turn + 30))
    assert second == pytest.approx(first, abs=1e-4)


def test_inputs_are_ordered_by_name():
    positions = walk(animals=3)
    recording = recording_of(positions[:, :2], metadata={"width": 9, "height": 9})
    transform = fit_input_transform([recording], "coordinates", RATE, causal=False)
    mixed = recording_of(positions[:, [2, 1, 0]][:, :, ::-1], ("c", "b", "a"), ("tail_base", "nose"), metadata=recording.metadata)
    assert np.array_equal(transform.open(mixed).read(0, 40), transform.open(recording).read(0, 40))


def test_keypoints_below_the_minimum_confidence_are_missing():
    positions = walk()
    recording = recording_of(positions, metadata={"width": 1, "height": 1})
    sure = np.ones((40, 2, 2))
    sure[30:, 0, 0] = 0.1
    doubtful = recording.copy(signals=dataclasses.replace(recording.signals, confidence=sure))
    assert (prepared(doubtful, min_confidence=0.5)[30:, :2] == 0).all()
    assert np.array_equal(prepared(doubtful), prepared(recording))


def test_invalid_recordings_are_refused():
    recording = recording_of(walk())
    with pytest.raises(EthobenchError, match="`inputs` must be one of coordinates"):
        fit_input_transform([recording], "pixels", RATE, causal=False)
    with pytest.raises(MismatchError, match="does not come with features"):
        fit_input_transform([recording], "coordinates+given", RATE, causal=False)
    with pytest.raises(EthobenchError, match="no frames"):
        fit_input_transform([recording_of(walk(0))], "coordinates", RATE, causal=False)
    transform = fit_input_transform([recording], "coordinates", RATE, causal=False)
    with pytest.raises(MismatchError, match="has channels, but the model was trained on poses"):
        transform.open(recording.copy(signals=Signals(np.zeros((5, 1)), ("x",), RATE)))
    with pytest.raises(MismatchError, match="b not found among a, c"):
        transform.open(recording_of(walk(), ("a", "c"))).read(0, 5)


def test_a_recording_without_any_keypoint_is_all_zeros():
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=5)
    transform = fit_input_transform(data.recordings, "coordinates", 30.0, causal=False)
    poses = data.recordings[0].signals
    nothing = dataclasses.replace(poses, positions=np.full_like(poses.positions, np.nan))
    assert (transform.open(data.recordings[0].copy(signals=nothing, metadata={})).read(0, 150) == 0).all()


def test_stated_roles_and_partners_are_used():
    positions = walk()
    named, coded = (recording_of(positions, points=points) for points in (("nose", "tail_base"), ("p1", "p2")))
    stated = {"p1": Keypoint("p1", "tail_base", "p2"), "p2": Keypoint("p2", "nose", "p1")}
    plain = prepared(named, "egocentric")
    assert prepared(coded, "egocentric", keypoints=stated) == pytest.approx(-plain, abs=1e-5)  # it now looks the other way
    transform = fit_input_transform([coded], "coordinates", RATE, causal=False, keypoints=stated)
    assert transform.layout().mirrored == (1, 0)
    assert fit_input_transform([named], "coordinates", RATE, causal=False).layout().mirrored == (0, 1)
    assert InputTransform.from_dict(json.loads(json.dumps(dataclasses.asdict(transform)))).stated_keypoints == stated
