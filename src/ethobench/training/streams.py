"""A recording's channels as float32, read a piece at a time: what networks are fed with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

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

PIECE = 1 << 17


class Piece(NamedTuple):
    """Some frames of a stream: values without gaps, and in which frames some channel, or every one, was missing."""

    values: NDArray[np.float32]
    missing: NDArray[np.bool_]
    absent: NDArray[np.bool_]


class Stream:
    """Channels of one recording, of which only the piece asked for is in memory.

    Missing values are filled with the channel's mean over the recording.

    Parameters
    ----------
    values : array (n_frames, n_channels)
        May be memory-mapped.
    places : sequence of int
        Which channels, in which order.
    names : sequence of str
        Their names.
    rate : float
        Frames per second.
    cutoff : float
        Split accelerations at this frequency (Hz) into a slow and a fast part; 0 leaves them alone.
    factors : array, optional
        What to multiply each channel with.
    """

    def __init__(
        self,
        values: NDArray[Any],
        places: Sequence[int],
        names: Sequence[str],
        rate: float,
        cutoff: float = 0.0,
        factors: NDArray[np.float64] | None = None,
    ) -> None:
        self.raw, self.places, self.names = values, list(places), tuple(names)
        self.rate, self.cutoff, self.factors = rate, cutoff, factors
        check_cutoff(cutoff, rate)
        self.margin = filter_order(rate, cutoff) // 2 + 1 if cutoff else 0

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def n_channels(self) -> int:
        """How many channels are read, the split ones counted twice."""
        return len(self.places) + (sum(map(is_accelerometer, self.names)) if self.cutoff else 0)

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean of each channel before the split, missing values left out; 0 for a channel without any."""
        total, count = np.zeros(len(self.places)), np.zeros(len(self.places))
        for start in range(0, len(self), PIECE):
            part = self._raw(start, start + PIECE)
            there = np.isfinite(part)
            total += np.where(there, part, 0).sum(axis=0)
            count += there.sum(axis=0)
        return total / np.maximum(count, 1)

    def read(self, start: int, stop: int) -> Piece:
        """Read the frames ``[start, stop)``; what lies beyond the end is left out."""
        stop = min(stop, len(self))
        low, high = max(start - self.margin, 0), min(stop + self.margin, len(self))
        values = self._raw(low, high)
        gaps = ~np.isfinite(values)
        if gaps.any():
            values = np.where(gaps, self.means, values)
        inside = slice(start - low, stop - low)
        values, _ = split_frequencies(values, self.names, self.rate, self.cutoff)
        missing, absent = np.any(gaps[inside], axis=1), np.all(gaps[inside], axis=1)
        return Piece(values[inside].astype(np.float32, copy=False), missing, absent)

    def pieces(self) -> Iterator[tuple[int, Piece]]:
        """Yield the whole recording as pieces with their first frames."""
        for start in range(0, len(self), PIECE):
            yield start, self.read(start, start + PIECE)

    def scaled(self, factors: NDArray[np.float64]) -> Stream:
        """Return the same stream, each channel multiplied by a factor."""
        return Stream(self.raw, self.places, self.names, self.rate, self.cutoff, factors)

    def resampled(self, rate: float) -> Stream:
        """Return the stream at another rate; all of it is then in memory."""
        return Stream(resample(self._raw(0, len(self)), self.rate, rate), range(len(self.places)), self.names, rate, self.cutoff)

    def _raw(self, start: int, stop: int) -> NDArray[np.float64]:
        values = np.asarray(self.raw[start:stop], dtype=np.float64)[:, self.places]
        return values if self.factors is None else values * self.factors


def open_stream(data: Data, inputs: Sequence[str], rate: float, cutoff: float = 0.0) -> Stream:
    """Open a recording's signals or poses for reading.

    Parameters
    ----------
    data : Signals or Poses
        Coordinates of poses become channels; where the tracker lost a keypoint, it is taken to move straight.
    inputs : sequence of str
        Channels, or keypoints as ``individual/keypoint``, in the order that the network learnt.
    rate, cutoff : float
        As for `Stream`.
    """
    if isinstance(data, Signals):
        return Stream(data.values, [data.channels.index(name) for name in inputs], inputs, rate, cutoff)
    signals = data.to_signals()
    values, _ = interpolate_missing(np.asarray(signals.values, dtype=np.float64))
    names = [f"{name}/{axis}" for name in inputs for axis in "xyz"[: data.positions.shape[3]]]
    return Stream(values, [signals.channels.index(name) for name in names], names, rate, cutoff)


def unit_factors(stream: Stream) -> NDArray[np.float64]:
    """Return what turns each accelerometer of a stream into multiples of its mean length over the recording; 1 for other channels."""
    triples = [places for name, places in axis_triples(stream.names).items() if is_accelerometer(name)]
    total, frames = np.zeros(len(triples)), np.zeros(len(triples))
    for start in range(0, len(stream), PIECE):
        part = stream._raw(start, start + PIECE)
        lengths = [np.linalg.norm(part[:, places], axis=1) for places in triples]
        total += [np.nansum(length) for length in lengths]
        frames += [np.isfinite(length).sum() for length in lengths]
    factors = np.ones(stream.n_channels)
    for places, length in zip(triples, total / np.maximum(frames, 1), strict=True):
        factors[places] = 1 / (length + SMALL) if length > 0 else 1.0
    return factors
