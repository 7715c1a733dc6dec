"""Recordings laid end to end in one array, so that a batch of windows is one indexing operation."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.core.annotation import UNOBSERVED
from ethobench.core.intervals import Intervals

Inputs = NDArray[np.float32]
Targets = NDArray[np.int16]
Rows = NDArray[np.int64]
MAX_BYTES_IN_MEMORY = 1 << 30  # larger arrays are memory-mapped
CHECKSUM_STEP = 997  # rows between those that enter the checksum
STATISTICS_ROWS = 1 << 17  # rows whose mean and variance are computed at a time


class Chunk(NamedTuple):
    """Consecutive frames of a recording.

    Attributes
    ----------
    start : int
        Their first frame.
    values : array of float32 (n_frames, n_channels)
        Without gaps.
    incomplete : array of bool (n_frames,)
        Where at least one channel was missing.
    absent : array of bool (n_frames,)
        Where all channels were missing.
    """

    start: int
    values: Inputs
    incomplete: NDArray[np.bool_]
    absent: NDArray[np.bool_]


class FrameReader(Protocol):
    """Network inputs of one recording, read in chunks."""

    @property
    def n_channels(self) -> int:
        """Number of inputs per frame."""

    def __len__(self) -> int:
        """Return the number of frames."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield all frames in order."""


@dataclass(frozen=True, eq=False)
class JoinedRecordings:
    """Recordings laid end to end, with padding.

    Attributes
    ----------
    values : array of float32 (n_rows, n_channels)
        In memory, or memory-mapped if large.
    targets : array of int16 (n_rows,) or (n_rows, n_behaviors)
        Class labels, or 0 and 1 for each behavior; -1 where unobserved, and in the padding.
    first_rows, lengths : array of int64 (n_recordings,)
        Row of each recording's first frame, and number of rows up to the padding of the next one.
    """

    values: Inputs
    targets: Targets
    first_rows: Rows
    lengths: Rows

    @property
    def checksum(self) -> int:
        """A CRC of all targets and a sample of the values; identifies the data in checkpoints."""
        return zlib.crc32(np.ascontiguousarray(self.values[::CHECKSUM_STEP]).data, zlib.crc32(np.ascontiguousarray(self.targets).data))

    def statistics(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean and the variance of each channel."""
        shift = self.values[0].astype(np.float64)
        total, squares = np.zeros_like(shift), np.zeros_like(shift)
        for start in range(0, len(self.values), STATISTICS_ROWS):
            shifted = self.values[start : start + STATISTICS_ROWS] - shift
            total += shifted.sum(axis=0)
            squares += np.square(shifted).sum(axis=0)
        mean = total / len(self.values)
        return shift + mean, np.maximum(squares / len(self.values) - mean**2, 0)

    def labeled(self) -> Intervals:
        """Return the rows in which at least one behavior is observed."""
        return iv.from_mask(is_observed(self.targets))


def join_recordings(
    readers: Sequence[FrameReader], targets: Sequence[Targets], *, before: int = 0, after: int = 0, min_length: int = 0
) -> tuple[JoinedRecordings, int]:
    """Lay recordings end to end.

    Parameters
    ----------
    readers : sequence of FrameReader
    targets : sequence of array of int16
        As in `JoinedRecordings`, of every frame.
    before, after : int
        Rows of zeros before and after each recording.
    min_length : int
        Shorter recordings are padded to this length with the mean of each channel.

    Returns
    -------
    joined : JoinedRecordings
    n_masked : int
        Labeled frames that are treated as unobserved because a channel is missing.
    """
    lengths = np.array([max(len(reader), min_length) for reader in readers])
    padded = lengths + before + after
    first_rows = np.cumsum(padded) - padded + before
    n_rows, n_channels = int(padded.sum()), readers[0].n_channels
    values = _allocate((n_rows, n_channels))
    labels = np.full((n_rows, *targets[0].shape[1:]), UNOBSERVED, dtype=np.int16)
    n_masked = 0
    for reader, target, first, length in zip(readers, targets, first_rows, lengths, strict=True):
        reader_labels = labels[first : first + len(reader)]
        reader_labels[: len(target)] = target[: len(reader)]
        total = np.zeros(n_channels)
        for chunk in reader.chunks():
            stop = chunk.start + len(chunk.values)
            values[first + chunk.start : first + stop] = chunk.values
            chunk_labels = reader_labels[chunk.start : stop]
            n_masked += int((chunk.incomplete & is_observed(chunk_labels)).sum())
            chunk_labels[chunk.incomplete] = UNOBSERVED
            total += chunk.values.sum(axis=0, dtype=np.float64)
        values[first + len(reader) : first + length] = total / max(len(reader), 1)
    return JoinedRecordings(values, labels, first_rows, lengths), n_masked


def is_observed(targets: Targets) -> NDArray[np.bool_]:
    """Return the frames in which at least one behavior is observed (n_frames,)."""
    observed = targets != UNOBSERVED
    return observed if observed.ndim == 1 else np.asarray(observed.any(axis=1))


def _allocate(shape: tuple[int, int]) -> Inputs:
    """Allocate zeros in memory, or in a temporary file that has no name and so is removed even after a crash."""
    if 4 * shape[0] * shape[1] <= MAX_BYTES_IN_MEMORY:
        return np.zeros(shape, dtype=np.float32)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
