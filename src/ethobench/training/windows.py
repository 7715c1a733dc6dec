"""Windows of recordings to train on: one sampler for all networks.

A window is placed by its anchor, a row of the joined recordings (`JoinedRecordings`). `WindowSampler` holds the anchors that are allowed,
the offsets of the input and target frames from the anchor, and the strategy that draws the anchors of an epoch:

===========================  =====================================================================================
`CoverTwice`                 without replacement, until each frame was in about two windows (BEBE)
`RandomBatches`              with replacement, a fixed number of batches
`ShuffledFrames`             every labeled frame once (CalMS21)
`ShuffledRuns`               every labeled frame about once, in runs of consecutive frames
===========================  =====================================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.intervals import Intervals
from ethobench.training.augmentation import Layout, augment
from ethobench.training.joined_recordings import FrameReader, Inputs, JoinedRecordings, Rows, Targets, is_observed, join_recordings


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
        if not self.augmentations or self.layout is None:
            return windows
        import torch

        generator = torch.Generator().manual_seed(seed)
        return augment(torch.from_numpy(windows), self.augmentations, self.layout, generator).numpy()


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
    augmentations, layout
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
        return WindowSampler(joined, anchors, offsets, target_offsets, batch_size, epoch, augmentations, layout, rows, n_annotators)
    n_rows = len(joined.values)
    length = min(frames_per_example, n_rows - span.before - span.after)
    runs = ShuffledRuns(length, span.before, n_rows - span.after - length, samples)
    offsets = np.arange(-span.before, length + span.after)
    return WindowSampler(joined, anchors, offsets, np.arange(length), batch_size, runs, augmentations, layout)


def select_rows(rows: Intervals, numbers: Rows) -> Rows:
    """Return the n-th rows of disjoint intervals, for each number."""
    before = np.concatenate(([0], np.cumsum(rows.stop - rows.start)))
    interval = np.searchsorted(before, numbers, side="right") - 1
    return np.asarray(rows.start[interval] + numbers - before[interval])


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
