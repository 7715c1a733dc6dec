"""Streaming gives the probabilities of batch prediction, frame by frame."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError

pytestmark = pytest.mark.slow

CAUSAL = {
    "conv1d": {"past": 17, "frame_stride": 2, "layers": (8, 6), "kernel": 3},
    "dense": {"past": 3, "frame_stride": 2, "layers": (16,)},
    "lstm": {"past": 3, "frame_stride": 1, "hidden": 8, "layers": (8,)},
    "attention": {"past": 5, "frame_stride": 3, "layers": (8,)},
}
QUICK = {"future": 0, "epochs": 1, "samples_per_epoch": 256}


@pytest.fixture(scope="module")
def mice() -> Dataset:
    return eb.load_dataset("synthetic/pose", individuals=2, seconds=20, missing=0.1)


def push_all(stream, poses) -> np.ndarray:
    return np.array([stream.push(*frame) for frame in zip(poses.positions, poses.confidence, strict=True)])


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("inputs", ["coordinates", "egocentric"])
def test_frame_by_frame_is_batch_prediction(name, inputs, mice, stir):
    model = eb.create_model(name, inputs=inputs, min_confidence=0.3, **CAUSAL[name], **QUICK).fit(mice)
    stir(model.module)
    recording = mice.recordings[0]
    stream, batch = model.stream(), model.predict(recording).probabilities
    assert push_all(stream, recording.signals) == pytest.approx(batch, abs=1e-5)
    stream.reset()
    assert push_all(stream, recording.signals[:40]) == pytest.approx(batch[:40], abs=1e-5)
    assert np.ptp(batch, axis=0).max() > 0.01


def test_the_published_causal_network_too(mice, stir):
    model = eb.create_model("conv1d", **QUICK).fit(mice)
    stir(model.module)
    recording = mice.recordings[1]
    assert push_all(model.stream(), recording.signals) == pytest.approx(model.predict(recording).probabilities, abs=1e-5)


def test_later_frames_do_not_change_predictions(mice):
    model = eb.create_model("conv1d", inputs="egocentric", **CAUSAL["conv1d"], **QUICK).fit(mice)
    recording = mice.recordings[0].copy(metadata={})
    complete = model.predict(recording).probabilities
    for cut in (50, 333):
        short = recording.copy(signals=recording.signals[:cut], n_frames=cut, annotations={})
        assert model.predict(short).probabilities == pytest.approx(complete[:cut], abs=1e-6)


def test_channels_of_a_tag_and_overlapping_behaviors():
    random = np.random.default_rng(0)
    frames = random.random((300, 2)) < 0.5
    values = frames + random.normal(0, 1, (300, 2))
    values[40:50, 1] = np.nan
    truth = Annotation.from_frames(frames, Ethogram(["a", "b"]), 10.0)
    recording = Recording("r", signals=Signals(values, ("x", "y"), 10.0), annotations={"me": truth})
    model = eb.create_model("conv1d", **CAUSAL["conv1d"], **QUICK).fit(Dataset((recording,), truth.ethogram))
    stream = model.stream()
    streamed = np.array([stream.push(row) for row in values])
    assert streamed == pytest.approx(model.predict(recording).probabilities, abs=1e-5)


def test_an_arena_of_another_size_can_be_stated(mice, stir):
    model = eb.create_model("dense", **CAUSAL["dense"], **QUICK).fit(mice)
    stir(model.module)
    poses = mice.recordings[0].signals
    twice = dataclasses.replace(poses, positions=2 * poses.positions)
    larger = mice.recordings[0].copy(signals=twice, metadata={"width": 2048, "height": 1140})
    assert push_all(model.stream(arena=(2048, 1140)), twice) == pytest.approx(model.predict(larger).probabilities, abs=1e-5)
    assert not np.allclose(push_all(model.stream(), twice), model.predict(larger).probabilities, atol=1e-3)


def test_models_that_are_not_causal_do_not_support_streaming(mice):
    with pytest.raises(EthobenchError, match="is not fitted"):
        eb.create_model("conv1d").stream()
    ahead = eb.create_model("dense", past=2, future=1, layers=(4,), epochs=1, samples_per_epoch=64).fit(mice)
    with pytest.raises(EthobenchError, match="train it with future=0"):
        ahead.stream()
    features = eb.create_model("dense", past=2, future=0, layers=(4,), epochs=1, samples_per_epoch=64, inputs="features").fit(mice)
    with pytest.raises(EthobenchError, match="inputs='coordinates' or 'egocentric'"):
        features.stream()
    with pytest.raises(EthobenchError, match="'chance' does not support streaming: it is not causal"):
        eb.create_model("chance").fit(mice).stream()


def test_frames_of_another_shape_are_refused(mice):
    stream = eb.create_model("dense", **CAUSAL["dense"], **QUICK).fit(mice).stream()
    with pytest.raises(MismatchError, match=r"a frame must have shape \(2, 7, 2\), got \(2, 7\)"):
        stream.push(np.zeros((2, 7)))


def test_streaming_does_not_change_torchs_settings(mice):
    stream = eb.create_model("dense", **CAUSAL["dense"], **QUICK).fit(mice).stream()
    stream.push(mice.recordings[0].signals.positions[0])
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


@pytest.fixture(scope="module")
def laboratories():
    data = eb.load_dataset("synthetic/labs", videos=1, seconds=8, labs=["CRIM13", "CalMS21_task1", "LyricalHare"], metadata=False)
    data = data.select(recordings=[r.id for r in data if r.annotations])
    return data, eb.create_model("tcn", causal=True, updates=2, width=8, levels=3).fit(data)


def test_several_animals_are_followed_as_in_a_batch(laboratories):
    data, model = laboratories
    recording = next(r for r in data if r.rate == model.role_inputs.rate)
    poses, scale = recording.signals, float(recording.metadata["pixels_per_cm"])
    stream = model.stream_animals(poses.individuals, poses.keypoints, recording.rate, pixels_per_cm=scale)
    streamed = [stream.push(*frame) for frame in zip(poses.positions, poses.confidence, strict=True)]
    batch = model.predict(recording)
    for actors, prediction in batch.by_actors.items():
        assert np.array([each[actors] for each in streamed]) == pytest.approx(prediction.probabilities, abs=1e-5)
    subjects = {subject for subject, _ in batch.by_actors}
    assert set(streamed[0]) == {*batch.by_actors, *((subject, None) for subject in subjects)}


def test_a_stream_of_any_skeleton_rate_and_number_of_animals(laboratories):
    _, model = laboratories
    mice, parts = ("a", "b", "c"), ("nose", "ear_left", "ear_right", "tail_base", "antenna")
    stream = model.stream_animals(mice, parts, 120.02, animal_length=80.0)
    positions = np.random.default_rng(0).uniform(0, 300, (3, 5, 2))
    first = stream.push(positions)
    assert len(first) == 6 + 3
    assert stream.push(positions + 500) is first  # the model has 30 frames per second
    positions[2] = np.nan
    for _ in range(600):
        last = stream.push(positions)
    assert np.isnan(last["a", "c"]).all()
    assert np.isfinite(last["a", "b"]).all()
    assert np.isnan(last["c", None]).all()
    stream.reset()
    assert np.isfinite(stream.push(np.nan_to_num(positions))["a", "b"]).all()


def test_invalid_streams_of_several_animals_are_refused(laboratories, mice):
    _, model = laboratories
    with pytest.raises(EthobenchError, match="inputs by role: use `stream_animals`"):
        model.stream()
    with pytest.raises(EthobenchError, match="scale of the stream is unknown: set `pixels_per_cm` or `animal_length`"):
        model.stream_animals(["a", "b"], ["nose", "tail_base"], 30.0)
    with pytest.raises(EthobenchError, match="`pixels_per_cm` must be a number > 0, got 0"):
        model.stream_animals(["a", "b"], ["nose", "tail_base"], 30.0, pixels_per_cm=0)
    with pytest.raises(EthobenchError, match="has a known role"):
        model.stream_animals(["a", "b"], ["antenna"], 30.0, animal_length=80)
    with pytest.raises(EthobenchError, match="shape"):
        model.stream_animals(["a", "b"], ["nose", "tail_base"], 30.0, animal_length=80).push(np.zeros((2, 3, 2)))
    with pytest.raises(EthobenchError, match="use `stream`"):
        eb.create_model("dense", **CAUSAL["dense"], **QUICK).fit(mice).stream_animals(["a"], ["nose"], 30.0, animal_length=80)
