"""Predictions of complete recordings, against one window at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ethobench.models.bebe_modules import FrameNetwork
from ethobench.training import inference
from ethobench.training.channel_inputs import ChannelReader
from ethobench.training.inference import predict_windows

pytestmark = pytest.mark.slow


@pytest.fixture
def network() -> FrameNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return FrameNetwork(2, 3, convolutions=1, cell="gru", width=4, hidden=4, dilation=2).eval()


def published(network: FrameNetwork, values: np.ndarray, window: int) -> np.ndarray:
    """Go window by window, the last padded with the mean of its frames."""
    probabilities = []
    for start in range(0, len(values), window):
        piece = values[start : start + window]
        padded = np.pad(piece, ((0, window - len(piece)), (0, 0)), mode="mean")
        with torch.no_grad():
            scores = network(torch.from_numpy(padded[None]).float())[0]
        probabilities.append(torch.softmax(scores, dim=-1).numpy()[: len(piece)])
    return np.concatenate(probabilities)


@pytest.mark.parametrize("n_frames", [1, 15, 16, 17, 100, 128])
def test_batches_of_windows_equal_single_windows(network, n_frames, monkeypatch):
    values = np.random.default_rng(0).normal(3, 2, (n_frames, 2)).astype(np.float32)
    monkeypatch.setattr(inference, "WINDOW_FRAMES", 50)
    probabilities = predict_windows(network, ChannelReader(values, [0, 1], ["a", "b"], 10.0), 16, exclusive=True)
    assert probabilities.dtype == np.float32
    assert probabilities == pytest.approx(published(network, values, 16), abs=1e-6)


def test_overlapping_behaviors_have_a_sigmoid_each(network):
    values = np.random.default_rng(0).normal(size=(20, 2))
    reader = ChannelReader(values, [0, 1], ["a", "b"], 10.0)
    probabilities = predict_windows(network, reader, 20, exclusive=False)
    with torch.no_grad():
        scores = network(torch.from_numpy(values[None]).float())[0].numpy()
    assert probabilities == pytest.approx(1 / (1 + np.exp(-scores)), abs=1e-6)


def test_frames_without_any_channel_are_not_predicted(network):
    values = np.random.default_rng(0).normal(size=(20, 2))
    values[3:6] = np.nan
    values[7, 0] = np.nan
    probabilities = predict_windows(network, ChannelReader(values, [0, 1], ["a", "b"], 10.0), 8, exclusive=True)
    assert np.flatnonzero(np.isnan(probabilities).any(axis=1)).tolist() == [3, 4, 5]


def test_an_empty_recording_has_no_predictions(network):
    assert predict_windows(network, ChannelReader(np.zeros((0, 2)), [0, 1], ["a", "b"], 10.0), 8, exclusive=True).shape == (0, 3)
