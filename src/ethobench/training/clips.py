"""Windows of many recordings to learn from, laid end to end so that a batch is one gather."""

from __future__ import annotations

import tempfile
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError
from ethobench.core.intervals import Intervals
from ethobench.training.streams import PIECE, Stream

UNKNOWN = -1
IN_MEMORY = 1 << 30
SAMPLED = 997


@dataclass(frozen=True, eq=False)
class Clips:
    """Recordings end to end, and where windows may begin.

    Attributes
    ----------
    values : array (n_frames, n_channels) of float32
        In memory, or memory-mapped if large.
    targets : array (n_frames,) or (n_frames, n_behaviors) of int16
        Codes, or 0 and 1 for each behavior; -1 where nothing is known.
    starts : Intervals
        Disjoint runs of first frames.
    window : int
        Frames of a window.
    batch : int
        Windows of a batch; fewer where there are not as many.
    """

    values: NDArray[np.float32]
    targets: NDArray[np.int16]
    starts: Intervals
    window: int
    batch: int

    @property
    def n_starts(self) -> int:
        """How many windows there are."""
        return iv.total(self.starts)

    @property
    def steps(self) -> int:
        """Batches of an epoch, as published: every frame is seen about twice, not once for every window it lies in."""
        full = self.n_starts // min(self.batch, self.n_starts)
        return min(full, 1 + full // max(self.window // 2, 1))

    @property
    def checksum(self) -> int:
        """A number that changes with the data: all targets, and a sample of the values."""
        return zlib.crc32(np.ascontiguousarray(self.values[::SAMPLED]).data, zlib.crc32(self.targets.data))

    def statistics(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean and variance of each channel."""
        shift = self.values[0].astype(np.float64)
        total, squares = np.zeros_like(shift), np.zeros_like(shift)
        for start in range(0, len(self.values), PIECE):
            part = self.values[start : start + PIECE] - shift
            total += part.sum(axis=0)
            squares += np.square(part).sum(axis=0)
        mean = total / len(self.values)
        return shift + mean, np.maximum(squares / len(self.values) - mean**2, 0)

    def draw(self, generator: np.random.Generator) -> list[NDArray[np.int64]]:
        """Choose the windows of an epoch: the first frames of those of each batch."""
        batch = min(self.batch, self.n_starts)
        chosen = generator.choice(self.n_starts, self.steps * batch, replace=False)
        before = np.concatenate(([0], np.cumsum(self.starts.stop - self.starts.start)))
        run = np.searchsorted(before, chosen, side="right") - 1
        return np.split(self.starts.start[run] + chosen - before[run], self.steps)

    def gather(self, plan: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int16]]:
        """Return the windows that begin at these frames, and their targets."""
        rows = plan[:, None] + np.arange(self.window)
        return np.asarray(self.values[rows]), self.targets[rows]


def make_clips(streams: Sequence[Stream], targets: Sequence[NDArray[np.int16]], window: int, batch: int) -> Clips:
    """Lay recordings end to end.

    A window may begin at every frame (as published, at one fewer than possible in each recording) from which it reaches a known
    target. A recording that is not longer than the window is padded with its channels' means, unknown, to one window.

    Parameters
    ----------
    streams : sequence of Stream
    targets : sequence of array of int16
        As in `Clips`; what they lack in length is unknown.
    window, batch : int
    """
    lengths = [max(len(stream), window + 1) for stream in streams]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    values = _allocate((int(offsets[-1]), streams[0].n_channels))
    joined = np.full((int(offsets[-1]), *targets[0].shape[1:]), UNKNOWN, dtype=np.int16)
    runs, gaps = [], 0
    for stream, target, offset, length in zip(streams, targets, offsets[:-1], lengths, strict=True):
        own = joined[offset : offset + length]
        own[: min(len(target), len(stream))] = target[: len(stream)]
        total = np.zeros(streams[0].n_channels)
        for start, piece in stream.pieces():
            values[offset + start : offset + start + len(piece.values)] = piece.values
            hidden = own[start : start + len(piece.missing)]
            gaps += int((piece.missing & is_known(hidden)).sum())
            hidden[piece.missing] = UNKNOWN
            total += piece.values.sum(axis=0, dtype=np.float64)
        values[offset + len(stream) : offset + length] = total / max(len(stream), 1)
        known = iv.from_mask(is_known(own))
        reach = iv.union(Intervals(known.start - window + 1, known.stop))
        runs.append(iv.shift(iv.clip(reach, 0, length - window), int(offset)))
    starts = Intervals(*(np.concatenate([getattr(run, side) for run in runs]) for side in ("start", "stop")))
    if not iv.total(starts):
        raise EthobenchError("there is nothing to learn from: no frame was observed")
    _tell(streams, window, gaps, int(is_known(joined).sum()))
    return Clips(values, joined, starts, window, batch)


def is_known(targets: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Tell in which frames anything is known."""
    known = targets != UNKNOWN
    return known if known.ndim == 1 else np.asarray(known.any(axis=1))


def _allocate(shape: tuple[int, int]) -> NDArray[np.float32]:
    """Make room in memory, or on disk (in a file without a name, so that nothing is ever left behind)."""
    if 4 * shape[0] * shape[1] <= IN_MEMORY:
        return np.empty(shape, dtype=np.float32)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)


def _tell(streams: Sequence[Stream], window: int, gaps: int, known: int) -> None:
    short = sum(len(stream) < window for stream in streams)
    if short:
        warnings.warn(f"{short} of {len(streams)} recordings are shorter than a window of {window} frames: they are padded", stacklevel=4)
    if gaps:
        warnings.warn(f"{gaps} annotated frames of {gaps + known} lack some channel: filled with its mean, not learnt", stacklevel=4)
