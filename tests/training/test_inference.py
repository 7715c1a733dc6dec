"""What a network says of a recording, window by window as published."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ethobench.training import inference
from ethobench.training.inference import predict_windows
from ethobench.training.layers import FrameNetwork
from ethobench.training.streams import Stream

pytestmark = pytest.mark.slow


@pytest.fixture
def network() -> FrameNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return FrameNetwork(2, 3, convolutions=1, cell="gru", width=4, hidden=4, dilation=2).eval()


def published(network: FrameNetwork, values: np.ndarray, window: int) -> np.ndarray:
    """Go window by window, the last padded with the mean of what there is of it."""
    found = []
    for start in range(0, len(values), window):
        piece = values[start : start + window]
        padded = np.pad(piece, ((0, window - len(piece)), (0, 0)), mode="mean")
        with torch.no_grad():
            scores = network(torch.from_numpy(padded[None]).float())[0]
        found.append(torch.softmax(scores, dim=-1).numpy()[: len(piece)])
    return np.concatenate(found)


@pytest.mark.parametrize("n_frames", [1, 15, 16, 17, 100, 128])
def test_many_windows_at_once_say_what_one_at_a_time_says(network, n_frames, monkeypatch):
    values = np.random.default_rng(0).normal(3, 2, (n_frames, 2)).astype(np.float32)
    monkeypatch.setattr(inference, "BATCH_FRAMES", 50)
    found = predict_windows(network, Stream(values, [0, 1], ["a", "b"], 10.0), 16, exclusive=True)
    assert found.dtype == np.float32
    assert found == pytest.approx(published(network, values, 16), abs=1e-6)


def test_overlapping_behaviors_are_told_each_on_its_own(network):
    values = np.random.default_rng(0).normal(size=(20, 2))
    stream = Stream(values, [0, 1], ["a", "b"], 10.0)
    found = predict_windows(network, stream, 20, exclusive=False)
    with torch.no_grad():
        scores = network(torch.from_numpy(values[None]).float())[0].numpy()
    assert found == pytest.approx(1 / (1 + np.exp(-scores)), abs=1e-6)


def test_frames_without_any_channel_are_not_predicted(network):
    values = np.random.default_rng(0).normal(size=(20, 2))
    values[3:6] = np.nan
    values[7, 0] = np.nan
    found = predict_windows(network, Stream(values, [0, 1], ["a", "b"], 10.0), 8, exclusive=True)
    assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [3, 4, 5]


def test_nothing_is_said_of_an_empty_recording(network):
    assert predict_windows(network, Stream(np.zeros((0, 2)), [0, 1], ["a", "b"], 10.0), 8, exclusive=True).shape == (0, 3)
