"""Windows of recordings to train on: one sampler for all networks.

Recordings are laid end to end in one array (`join_recordings`), so that a batch is one indexing operation. A window is placed by its
anchor, a row of that array. `WindowSampler` holds the anchors that are allowed, the offsets of the input and target frames from the
anchor, and the strategy that draws the anchors of an epoch:

===========================  =====================================================================================
`CoverTwice`                 without replacement, until each frame was in about two windows (BEBE)
`RandomBatches`              with replacement, a fixed number of batches
`ShuffledFrames`             every labeled frame once (CalMS21)
`ShuffledRuns`               every labeled frame about once, in runs of consecutive frames
===========================  =====================================================================================
"""

from __future__ import annotations

import tempfile
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.core.annotation import UNOBSERVED
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.intervals import Intervals
from ethobench.training.augmentation import Layout, augment

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


@dataclass(frozen=True)
class WindowSpan:
    """Frames of a window around a current frame.

    Attributes
    ----------
    past, future : int
        Frames before and after the current one.
    stride : int
        Distance between neighboring frames of the window, in frames of the recording.
    """

    past: int
    future: int
    stride: int = 1

    def __post_init__(self) -> None:
        for name, minimum in (("past", 0), ("future", 0), ("stride", 1)):
            if getattr(self, name) < minimum:
                raise ParameterError(f"`{name}` must be >= {minimum}, got {getattr(self, name)}")

    @property
    def frames(self) -> int:
        """Number of frames in a window."""
        return self.past + 1 + self.future

    @property
    def before(self) -> int:
        """Distance from the first frame of the window to the current one, in frames of the recording."""
        return self.past * self.stride

    @property
    def after(self) -> int:
        """Distance from the current frame to the last of the window, in frames of the recording."""
        return self.future * self.stride

    @cached_property
    def offsets(self) -> Rows:
        """Offsets of the window's frames from the current one."""
        return np.arange(-self.past, self.future + 1) * self.stride


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


@dataclass(frozen=True)
class Plan:
    """The windows of a batch.

    Attributes
    ----------
    anchors : array of int64
        Rows at which windows are placed.
    seed : int
        Of the augmentation.
    """

    anchors: Rows
    seed: int = 0


class Epoch(Protocol):
    """A strategy that draws the windows of an epoch."""

    def draw(self, anchors: Intervals, batch_size: int, generator: np.random.Generator) -> list[Plan]:
        """Draw batches of anchors from those that are allowed."""


@dataclass(frozen=True)
class CoverTwice:
    """Draw windows without replacement until each frame was in about two of them, as BEBE does.

    Attributes
    ----------
    window : int
        Frames of a window.
    """

    window: int

    def draw(self, anchors: Intervals, batch_size: int, generator: np.random.Generator) -> list[Plan]:
        """Draw batches of equal size."""
        n_anchors = iv.total(anchors)
        size = min(batch_size, n_anchors)
        batches = n_anchors // size
        batches = min(batches, 1 + batches // max(self.window // 2, 1))
        drawn = generator.choice(n_anchors, batches * size, replace=False)
        return [Plan(rows) for rows in np.split(select_rows(anchors, drawn), batches)]


@dataclass(frozen=True)
class RandomBatches:
    """Draw windows with replacement.

    Attributes
    ----------
    batches : int
        Batches of an epoch.
    """

    batches: int

    def draw(self, anchors: Intervals, batch_size: int, generator: np.random.Generator) -> list[Plan]:
        """Draw batches of equal size."""
        plans = []
        for _ in range(self.batches):
            drawn = generator.integers(iv.total(anchors), size=batch_size)
            plans.append(Plan(select_rows(anchors, drawn), int(generator.integers(2**31))))
        return plans


@dataclass(frozen=True)
class ShuffledFrames:
    """Shuffle all anchors, or a sample of them.

    Attributes
    ----------
    samples : int, optional
        Maximum number of windows in an epoch; all by default.
    """

    samples: int | None = None

    def draw(self, anchors: Intervals, batch_size: int, generator: np.random.Generator) -> list[Plan]:
        """Draw batches; the last one may be smaller."""
        n_anchors = iv.total(anchors)
        is_sampled = self.samples is not None and self.samples < n_anchors
        order = generator.choice(n_anchors, self.samples, replace=False) if is_sampled else generator.permutation(n_anchors)
        cuts = np.arange(batch_size, len(order), batch_size)
        if len(cuts) and len(order) - cuts[-1] == 1:
            cuts = cuts[:-1]  # batch normalization needs at least two windows
        return [Plan(rows, int(generator.integers(2**63))) for rows in np.split(select_rows(anchors, order), cuts)]


@dataclass(frozen=True)
class ShuffledRuns:
    """Cut the rows into runs of consecutive frames, at a random phase in each epoch, and shuffle those with labeled frames.

    Attributes
    ----------
    length : int
        Frames of a run.
    first, last : int
        First and last row at which a run may start.
    samples : int, optional
        Maximum number of frames in an epoch; all by default.
    """

    length: int
    first: int
    last: int
    samples: int | None = None

    def draw(self, anchors: Intervals, batch_size: int, generator: np.random.Generator) -> list[Plan]:
        """Draw batches of runs; `anchors` are the labeled rows, the plans hold the first row of each run."""
        phase = int(generator.integers(self.length))
        labeled = select_rows(anchors, np.arange(iv.total(anchors)))
        starts = np.unique((labeled - phase) // self.length) * self.length + phase
        starts = np.unique(np.clip(starts, self.first, self.last))
        count = len(starts) if self.samples is None else min(len(starts), max(1, round(self.samples / self.length)))
        order = generator.permutation(starts)[:count]
        return [Plan(rows, int(generator.integers(2**63))) for rows in np.split(order, np.arange(batch_size, count, batch_size))]


@dataclass(frozen=True, eq=False)
class WindowSampler:
    """Batches of windows for the training loop.

    Attributes
    ----------
    recordings : JoinedRecordings
    anchors : Intervals
        Rows at which a window may be placed.
    offsets : array of int64
        Offsets of a window's input frames from its anchor.
    target_offsets : array of int64, optional
        Offsets of the frames whose targets are predicted. None for the anchor's target alone, without a frame axis.
    batch_size : int
        Windows of a batch.
    epoch : Epoch
        Draws the anchors of an epoch.
    augmentations : sequence of str
        Names in `AUGMENTATIONS`.
    layout : Layout, optional
        Meaning of the channels, for augmentations.
    noise : float
        Standard deviation of Gaussian noise that is added to every value.
    annotators : array of int16 (n_rows,), optional
        Index of each row's annotator; appended to the window as one-hot channels.
    n_annotators : int
    """

    recordings: JoinedRecordings
    anchors: Intervals
    offsets: Rows
    target_offsets: Rows | None
    batch_size: int
    epoch: Epoch
    augmentations: Sequence[str] = ()
    layout: Layout | None = None
    noise: float = 0.0
    annotators: Targets | None = None
    n_annotators: int = 0

    def __len__(self) -> int:
        return iv.total(self.anchors)

    def draw(self, generator: np.random.Generator) -> list[Plan]:
        """Draw the batches of an epoch."""
        return self.epoch.draw(self.anchors, self.batch_size, generator)

    def gather(self, plan: Plan, /) -> tuple[Inputs, Targets]:
        """Return the inputs and targets of a batch; the same plan gives the same batch.

        Returns
        -------
        inputs : array of float32 (n_windows, n_frames, n_channels)
        targets : array of int16 (n_windows, n_target_frames, ...) or (n_windows, ...)
        """
        anchors = plan.anchors[:, None]
        windows = self._augment(np.asarray(self.recordings.values[anchors + self.offsets]), plan.seed)
        if self.annotators is not None:
            one_hot = np.eye(self.n_annotators, dtype=np.float32)[self.annotators[plan.anchors]]
            windows = np.concatenate([windows, np.broadcast_to(one_hot[:, None], (*windows.shape[:2], self.n_annotators))], axis=2)
        rows = plan.anchors if self.target_offsets is None else anchors + self.target_offsets
        return windows, self.recordings.targets[rows]

    def _augment(self, windows: Inputs, seed: int) -> Inputs:
        if not self.noise and (not self.augmentations or self.layout is None):
            return windows
        import torch

        generator = torch.Generator().manual_seed(seed)
        augmented = torch.from_numpy(windows)
        if self.layout is not None:
            augmented = augment(augmented, self.augmentations, self.layout, generator)
        if self.noise:
            augmented = augmented + self.noise * torch.randn(augmented.shape, generator=generator)
        return augmented.numpy()


def sample_sequences(
    readers: Sequence[FrameReader],
    targets: Sequence[Targets],
    window: int,
    batch_size: int,
    *,
    epoch: Epoch | None = None,
    target_stride: int = 1,
    augmentations: Sequence[str] = (),
    layout: Layout | None = None,
    noise: float = 0.0,
) -> WindowSampler:
    """Sample windows in which many frames have a target, for networks that predict sequences.

    A window may start at every frame from which it contains a labeled one; as in BEBE's code, the last possible start of each recording is
    not used. A recording that is not longer than the window is padded with its channels' means to one window; the padding has no labels.
    Frames with a missing channel have no labels either.

    Parameters
    ----------
    readers : sequence of FrameReader
    targets : sequence of array of int16
        Of every frame, as in `JoinedRecordings`; frames beyond their end are unobserved.
    window : int
        Frames of a window.
    batch_size : int
    epoch : Epoch, optional
        `CoverTwice` by default.
    target_stride : int
        Predict every n-th frame of a window.
    augmentations, layout, noise
        See `WindowSampler`.
    """
    joined, n_masked = join_recordings(readers, targets, min_length=window + 1)
    runs = []
    for first, length in zip(joined.first_rows, joined.lengths, strict=True):
        labeled = iv.from_mask(is_observed(joined.targets[first : first + length]))
        starts = iv.union(Intervals(labeled.start - window + 1, labeled.stop))
        runs.append(iv.shift(iv.clip(starts, 0, int(length) - window), int(first)))
    anchors = Intervals(*(np.concatenate([getattr(run, side) for run in runs]) for side in ("start", "stop")))
    _check_labeled(anchors)
    _warn_of_padding(readers, window, n_masked, int(is_observed(joined.targets).sum()))
    return WindowSampler(
        joined,
        anchors,
        np.arange(window),
        np.arange(0, window, target_stride),
        batch_size,
        epoch or CoverTwice(window),
        augmentations,
        layout,
        noise,
    )


def sample_frames(
    readers: Sequence[FrameReader],
    targets: Sequence[Targets],
    span: WindowSpan,
    batch_size: int,
    *,
    frames_per_example: int = 1,
    samples: int | None = None,
    augmentations: Sequence[str] = (),
    layout: Layout | None = None,
    annotators: Sequence[int] | None = None,
    n_annotators: int = 0,
) -> WindowSampler:
    """Sample the window around each labeled frame, for networks that predict one frame.

    Parameters
    ----------
    readers : sequence of FrameReader
    targets : sequence of array of int16
        Of every frame, as in `JoinedRecordings`; frames beyond their end are unobserved.
    span : WindowSpan
        Frames of a window; those before the first and after the last frame of a recording are zeros.
    batch_size : int
    frames_per_example : int
        With more than 1, examples are runs of so many consecutive frames and all that their windows need.
    samples : int, optional
        Maximum number of frames in an epoch.
    augmentations, layout
        See `WindowSampler`.
    annotators : sequence of int, optional
        Index of each recording's annotator.
    n_annotators : int
    """
    joined, _ = join_recordings(readers, targets, before=span.before, after=span.after)
    anchors = joined.labeled()
    _check_labeled(anchors)
    rows = None if annotators is None else np.repeat(np.asarray(annotators, dtype=np.int16), joined.lengths + span.before + span.after)
    if frames_per_example == 1:
        offsets, target_offsets, epoch = span.offsets, None, ShuffledFrames(samples)
        return WindowSampler(joined, anchors, offsets, target_offsets, batch_size, epoch, augmentations, layout, 0.0, rows, n_annotators)
    n_rows = len(joined.values)
    length = min(frames_per_example, n_rows - span.before - span.after)
    runs = ShuffledRuns(length, span.before, n_rows - span.after - length, samples)
    offsets = np.arange(-span.before, length + span.after)
    return WindowSampler(joined, anchors, offsets, np.arange(length), batch_size, runs, augmentations, layout)


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


def select_rows(rows: Intervals, numbers: Rows) -> Rows:
    """Return the n-th rows of disjoint intervals, for each number."""
    before = np.concatenate(([0], np.cumsum(rows.stop - rows.start)))
    interval = np.searchsorted(before, numbers, side="right") - 1
    return np.asarray(rows.start[interval] + numbers - before[interval])


def _allocate(shape: tuple[int, int]) -> Inputs:
    """Allocate zeros in memory, or in a temporary file that has no name and so is removed even after a crash."""
    if 4 * shape[0] * shape[1] <= MAX_BYTES_IN_MEMORY:
        return np.zeros(shape, dtype=np.float32)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)


def _check_labeled(anchors: Intervals) -> None:
    if not iv.total(anchors):
        raise EthobenchError("nothing to train on: no frame was observed")


def _warn_of_padding(readers: Sequence[FrameReader], window: int, n_masked: int, n_labeled: int) -> None:
    short = sum(len(reader) < window for reader in readers)
    if short:
        warnings.warn(f"{short} of {len(readers)} recordings are shorter than a window of {window} frames: they are padded", stacklevel=4)
    if n_masked:
        warnings.warn(
            f"{n_masked} of {n_masked + n_labeled} annotated frames lack a channel: it is filled with its mean, "
            "and the frames are not trained on",
            stacklevel=4,
        )
