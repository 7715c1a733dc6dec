"""Network inputs from the channels of a recording: float32, without gaps, read in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Signals
from ethobench.core.recording import Data
from ethobench.features.filters import (
    SMALL,
    axis_triples,
    check_cutoff,
    filter_order,
    interpolate_missing,
    is_accelerometer,
    resample,
    split_frequencies,
)
from ethobench.training.joined_recordings import Chunk

CHUNK_FRAMES = 1 << 17


class ChannelReader:
    """Channels of one recording, of which only the requested frames are in memory.

    Missing values are replaced by the channel's mean over the recording.

    Parameters
    ----------
    values : array (n_frames, n_channels)
        May be memory-mapped.
    columns : sequence of int
        Columns to read, in this order.
    names : sequence of str
        Names of the channels read.
    rate : float
        Frames per second.
    cutoff : float
        Split accelerations at this frequency (Hz) into a low-pass and a high-pass part; 0 does not split them.
    factors : array (n_columns,), optional
        Factor of each channel.
    """

    def __init__(
        self,
        values: NDArray[Any],
        columns: Sequence[int],
        names: Sequence[str],
        rate: float,
        cutoff: float = 0.0,
        factors: NDArray[np.float64] | None = None,
    ) -> None:
        self.values, self.columns, self.names = values, list(columns), tuple(names)
        self.rate, self.cutoff, self.factors = rate, cutoff, factors
        check_cutoff(cutoff, rate)
        self.margin = filter_order(rate, cutoff) // 2 + 1 if cutoff else 0

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_channels(self) -> int:
        """Number of inputs per frame; channels that are split count twice."""
        return len(self.columns) + (sum(map(is_accelerometer, self.names)) if self.cutoff else 0)

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean of each channel before the split, without missing values; 0 for a channel without any value."""
        total, count = np.zeros(len(self.columns)), np.zeros(len(self.columns))
        for start in range(0, len(self), CHUNK_FRAMES):
            values = self.read_unfiltered(start, start + CHUNK_FRAMES)
            finite = np.isfinite(values)
            total += np.where(finite, values, 0).sum(axis=0)
            count += finite.sum(axis=0)
        return total / np.maximum(count, 1)

    def read(self, start: int, stop: int) -> Chunk:
        """Read the frames ``[start, stop)``, up to the end of the recording."""
        stop = min(stop, len(self))
        low, high = max(start - self.margin, 0), min(stop + self.margin, len(self))
        values = self.read_unfiltered(low, high)
        gaps = ~np.isfinite(values)
        if gaps.any():
            values = np.where(gaps, self.means, values)
        inside = slice(start - low, stop - low)
        values, _ = split_frequencies(values, self.names, self.rate, self.cutoff)
        incomplete, absent = np.any(gaps[inside], axis=1), np.all(gaps[inside], axis=1)
        return Chunk(start, values[inside].astype(np.float32, copy=False), incomplete, absent)

    def chunks(self) -> Iterator[Chunk]:
        """Yield all frames in order."""
        for start in range(0, len(self), CHUNK_FRAMES):
            yield self.read(start, start + CHUNK_FRAMES)

    def scaled(self, factors: NDArray[np.float64]) -> ChannelReader:
        """Return a reader that multiplies each channel by a factor."""
        return ChannelReader(self.values, self.columns, self.names, self.rate, self.cutoff, factors)

    def resampled(self, rate: float) -> ChannelReader:
        """Return a reader of the channels at another rate (Hz); all of them are then in memory."""
        values = resample(self.read_unfiltered(0, len(self)), self.rate, rate)
        return ChannelReader(values, range(len(self.columns)), self.names, rate, self.cutoff)

    def read_unfiltered(self, start: int, stop: int) -> NDArray[np.float64]:
        """Read the frames ``[start, stop)`` with their gaps, before the frequency split."""
        values = np.asarray(self.values[start:stop], dtype=np.float64)[:, self.columns]
        return values if self.factors is None else values * self.factors


def open_channels(data: Data, inputs: Sequence[str], rate: float, cutoff: float = 0.0) -> ChannelReader:
    """Open the signals or poses of a recording.

    Parameters
    ----------
    data : Signals or Poses
        The coordinates of poses become channels; positions of lost keypoints are interpolated linearly.
    inputs : sequence of str
        Channels, or keypoints as ``individual/keypoint``, in the order of the network's inputs.
    rate, cutoff : float
        As for `ChannelReader`.
    """
    if isinstance(data, Signals):
        return ChannelReader(data.values, [data.channels.index(name) for name in inputs], inputs, rate, cutoff)
    signals = data.to_signals()
    values, _ = interpolate_missing(np.asarray(signals.values, dtype=np.float64))
    names = [f"{name}/{axis}" for name in inputs for axis in "xyz"[: data.positions.shape[3]]]
    return ChannelReader(values, [signals.channels.index(name) for name in names], names, rate, cutoff)


def acceleration_factors(reader: ChannelReader) -> NDArray[np.float64]:
    """Return factors that scale each accelerometer to a mean vector length of 1 over the recording; 1 for other channels."""
    triples = [columns for name, columns in axis_triples(reader.names).items() if is_accelerometer(name)]
    total, frames = np.zeros(len(triples)), np.zeros(len(triples))
    for start in range(0, len(reader), CHUNK_FRAMES):
        values = reader.read_unfiltered(start, start + CHUNK_FRAMES)
        lengths = [np.linalg.norm(values[:, columns], axis=1) for columns in triples]
        total += [np.nansum(length) for length in lengths]
        frames += [np.isfinite(length).sum() for length in lengths]
    factors = np.ones(reader.n_channels)
    for columns, length in zip(triples, total / np.maximum(frames, 1), strict=True):
        factors[columns] = 1 / (length + SMALL) if length > 0 else 1.0
    return factors
