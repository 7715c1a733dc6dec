"""Predictions of complete recordings by a network, a piece at a time, so that memory does not grow with their length."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ethobench.training.channel_inputs import ChannelReader

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Values = NDArray[np.float32]
Read = Callable[[int, int], Values]
WINDOW_FRAMES = 1 << 15  # frames of a batch of windows; larger batches do not fit the processor's cache and are slower
FRAME_PIECE = 1 << 13  # frames whose windows are scored at a time
STEP_PIECE = 1 << 15  # frames whose steps are scored at a time


def predict_windows(
    module: torch.nn.Module, reader: ChannelReader, window: int, *, exclusive: bool, first: int = 0, last: int | None = None
) -> Values:
    """Predict consecutive windows that do not overlap; the last one is padded with the mean of its frames, as in BEBE.

    Parameters
    ----------
    module : Module
        Maps (windows, frames, channels) to scores (windows, frames, outputs).
    reader : ChannelReader
    window : int
        Frames of a window.
    exclusive : bool
        Behaviors exclude each other (softmax), or may overlap (sigmoid).
    first, last : int
        Predict the frames ``[first, last)``; `first` is a multiple of the window.

    Returns
    -------
    array of float32 (n_frames, n_outputs)
        Probabilities; NaN in frames in which all channels are missing.
    """
    import torch

    module.eval()
    device = next(module.parameters()).device
    size = max(WINDOW_FRAMES // window, 1) * window
    end = len(reader) if last is None else min(last, len(reader))
    parts = []
    with torch.inference_mode():
        for start in range(first, max(end, first + 1), size):
            chunk = reader.read(start, min(start + size, end))
            scores = module(torch.from_numpy(_cut_windows(chunk.values, window)).to(device)).flatten(0, 1)
            probabilities = to_probabilities(scores, exclusive=exclusive)[: len(chunk.values)]
            parts.append(np.where(chunk.absent[:, None], np.float32(np.nan), probabilities))
    return np.concatenate(parts)


def predict_frames(
    score: Callable[[Tensor], Tensor],
    read: Read,
    shape: tuple[int, int],
    *,
    before: int,
    after: int,
    exclusive: bool,
    device: torch.device,
) -> Values:
    """Predict every frame from the window around it.

    Parameters
    ----------
    score : callable
        Maps the inputs of ``before + n + after`` frames to scores (n, outputs).
    read : callable
        Returns the inputs of the frames ``[start, stop)``; zeros beyond the ends of the recording.
    shape : (n_frames, n_outputs)
    before, after : int
        Frames that a window reaches back and ahead.
    exclusive : bool
        Behaviors exclude each other (softmax), or may overlap (sigmoid).
    device : torch.device

    Returns
    -------
    array of float32 (n_frames, n_outputs)
        Probabilities.
    """
    import torch

    probabilities = np.empty(shape, dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(probabilities), FRAME_PIECE):
            stop = min(start + FRAME_PIECE, len(probabilities))
            scores = score(torch.from_numpy(read(start - before, stop + after)).to(device))
            probabilities[start:stop] = to_probabilities(scores, exclusive=exclusive)
    return probabilities


def predict_steps(
    module: torch.nn.Module, read: Read, n_frames: int, stride: int, context: int, *, exclusive: bool, n_boundaries: int = 0
) -> Values:
    """Predict every step of a network whose steps are `stride` frames apart.

    Parameters
    ----------
    module : Module
        Maps (batch, frames, channels) to scores (batch, steps, outputs).
    read : callable
        Returns the inputs of the frames ``[start, stop)``.
    n_frames, stride : int
    context : int
        Frames to one side that a step depends on.
    exclusive : bool
        Behaviors exclude each other (softmax), or may overlap (sigmoid).
    n_boundaries : int
        Number of the last outputs that are onsets and offsets of bouts, of which none excludes another.

    Returns
    -------
    array of float32 (n_steps, n_outputs)
        Probabilities.
    """
    import torch

    module.eval()
    device = next(module.parameters()).device
    margin, size = -(-context // stride) * stride, STEP_PIECE // stride * stride
    parts = []
    with torch.inference_mode():
        for start in range(0, max(n_frames, 1), size):
            first, stop = max(start - margin, 0), min(start + size, n_frames)
            values = read(first, min(stop + margin, n_frames))
            scores = module(torch.from_numpy(values)[None].to(device))[0]
            first_step, n_steps = (start - first) // stride, -(-(stop - start) // stride)
            scores = scores[first_step : first_step + n_steps]
            n_behaviors = scores.shape[1] - n_boundaries
            values = to_probabilities(scores[:, :n_behaviors], exclusive=exclusive)
            boundaries = to_probabilities(scores[:, n_behaviors:], exclusive=False)
            parts.append(np.concatenate([values, boundaries], axis=1) if n_boundaries else values)
    return np.concatenate(parts)


def to_probabilities(scores: Tensor, *, exclusive: bool) -> Values:
    """Return the softmax (behaviors exclude each other) or the sigmoid of scores (..., n_outputs)."""
    return np.asarray((scores.softmax(dim=-1) if exclusive else scores.sigmoid()).cpu().numpy())


def _cut_windows(values: Values, window: int) -> Values:
    """Cut frames into windows; the last is padded with the mean of its frames."""
    count = max(-(-len(values) // window), 1)
    missing = count * window - len(values)
    if missing:
        last = values[(count - 1) * window :]
        mean = last.mean(axis=0, dtype=np.float64) if len(last) else np.zeros(values.shape[1])
        values = np.concatenate([values, np.tile(mean.astype(np.float32), (missing, 1))])
    return values.reshape(count, window, -1)
