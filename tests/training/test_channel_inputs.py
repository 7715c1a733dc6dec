"""Channels as network inputs: chunks equal the complete recording, gaps are filled and reported."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Poses, Signals
from ethobench.core.errors import EthobenchError
from ethobench.features.filters import split_frequencies
from ethobench.training import channel_inputs
from ethobench.training.channel_inputs import ChannelReader, acceleration_factors, open_channels

NAMES = ("AccX", "AccY", "Depth")


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(5000, 3)).cumsum(axis=0)


@pytest.mark.parametrize("cutoff", [0.0, 0.4, 3.0])
def test_chunks_join_to_the_filtered_recording(values, cutoff, monkeypatch):
    monkeypatch.setattr(channel_inputs, "CHUNK_FRAMES", 700)
    reader = ChannelReader(values, [0, 1, 2], NAMES, 25.0, cutoff)
    complete, names = split_frequencies(values, NAMES, 25.0, cutoff)
    joined = np.concatenate([chunk.values for chunk in reader.chunks()])
    assert reader.n_channels == len(names) == joined.shape[1]
    assert joined.dtype == np.float32
    assert joined == pytest.approx(complete, rel=1e-5, abs=1e-4)
    assert [chunk.start for chunk in reader.chunks()] == list(range(0, 5000, 700))


def test_only_the_requested_frames_are_read(values, tmp_path):
    class Watched(np.memmap):
        read = 0

        def __getitem__(self, key):
            values = super().__getitem__(key)
            Watched.read += len(values)
            return values

    np.save(tmp_path / "v.npy", values)
    watched = np.load(tmp_path / "v.npy", mmap_mode="r").view(Watched)
    reader = ChannelReader(watched, [2, 0], ("Depth", "AccX"), 25.0, 1.0)
    chunk = reader.read(1000, 1100)
    assert len(chunk.values) == 100
    assert Watched.read <= 100 + 2 * reader.margin


def test_gaps_are_filled_with_the_channels_mean_and_reported(values):
    values[10:20, 0] = np.nan
    values[15:30] = np.inf
    chunk = ChannelReader(values, [0, 1, 2], NAMES, 25.0).read(0, 100)
    frames = np.arange(100)
    assert np.array_equal(chunk.incomplete, (frames >= 10) & (frames < 30))
    assert np.array_equal(chunk.absent, (frames >= 15) & (frames < 30))
    finite = [column[np.isfinite(column)].mean() for column in values.T]
    assert chunk.values[15:30] == pytest.approx(np.tile(finite, (15, 1)), rel=1e-5)
    assert chunk.values[12, 1:] == pytest.approx(values[12, 1:], rel=1e-5)


def test_gaps_do_not_spread_through_the_filter(values):
    values[10:20, 0] = np.nan
    chunk = ChannelReader(values, [0, 1, 2], NAMES, 25.0, 1.0).read(0, 100)
    assert np.isfinite(chunk.values).all()
    assert chunk.incomplete.sum() == 10


def test_a_channel_without_any_value_is_zero(values):
    values[:, 1] = np.nan
    assert not ChannelReader(values, [1], ["AccY"], 25.0).read(0, 50).values.any()


def test_reading_beyond_the_end_stops_there(values):
    reader = ChannelReader(values, [0], ["AccX"], 25.0, 1.0)
    assert len(reader.read(4990, 9999).values) == 10
    assert len(ChannelReader(values[:0], [0], ["AccX"], 25.0).read(0, 10).values) == 0


def test_a_cutoff_above_what_the_rate_allows_is_refused(values):
    with pytest.raises(EthobenchError, match=r"`cutoff` must be below"):
        ChannelReader(values, [0], ["AccX"], 5.0, 6.4)


def test_channels_are_in_the_order_of_the_inputs(values):
    reader = open_channels(Signals(values, NAMES, 25.0), ("Depth", "AccX"), 25.0)
    assert reader.read(0, 10).values == pytest.approx(values[:10, [2, 0]], rel=1e-6)


def test_keypoints_are_in_the_order_of_the_inputs_and_gaps_are_interpolated():
    positions = np.arange(2 * 2 * 3 * 2 * 10, dtype=float).reshape(20, 2, 3, 2)
    positions[5:8, 1, 0] = np.nan
    poses = Poses(positions, np.ones((20, 2, 3)), ("a", "b"), ("nose", "neck", "tail"), 30.0)
    chunk = open_channels(poses, ("b/nose", "a/tail"), 30.0).read(0, 20)
    assert not chunk.incomplete.any()
    straight = np.arange(20)[:, None] * np.full(2, 12)
    assert chunk.values[:, :2] == pytest.approx(straight + np.array([6, 7]))
    assert chunk.values[:, 2:] == pytest.approx(straight + np.array([4, 5]))


def test_a_channel_without_values_does_not_affect_the_scaling_of_others():
    random = np.random.default_rng(0)
    values = np.concatenate([random.normal(0, 9.8, (500, 3)), np.full((500, 1), np.nan)], axis=1)
    values[::7, 0] = np.nan
    names = ["AccX", "AccY", "AccZ", "Depth"]
    complete = np.linalg.norm(values[np.isfinite(values[:, 0])][:, :3], axis=1).mean()
    factors = acceleration_factors(ChannelReader(values, range(4), names, 25.0))
    np.testing.assert_allclose(factors, [1 / complete] * 3 + [1.0], rtol=1e-6)
