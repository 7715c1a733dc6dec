"""What a network says of a whole recording, window after window, many windows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ethobench.training.streams import Stream

if TYPE_CHECKING:
    import torch

BATCH_FRAMES = 1 << 15  # larger batches fall out of the cache and are slower


def predict_windows(
    module: torch.nn.Module, stream: Stream, window: int, *, exclusive: bool, first: int = 0, last: int | None = None
) -> NDArray[np.float32]:
    """Return the probabilities of every frame.

    As published, windows do not overlap, and the last one is padded with the means of its own frames.
    Only `BATCH_FRAMES` frames (one window at least) are in memory at a time.

    Parameters
    ----------
    module : Module
        Turns (windows, frames, channels) into scores of the same frames.
    stream : Stream
    window : int
        Frames of a window.
    exclusive : bool
        One behavior at a time (softmax), or each on its own (sigmoid).
    first, last : int
        Only these frames, without the last; `first` is a multiple of the window.

    Returns
    -------
    array (n_frames, n_outputs)
        NaN in frames that lack every channel.
    """
    import torch

    module.eval()
    device = next(module.parameters()).device
    size = max(BATCH_FRAMES // window, 1) * window
    found: NDArray[np.float32] | None = None
    end = len(stream) if last is None else min(last, len(stream))
    with torch.inference_mode():
        for start in range(first, max(end, first + 1), size):
            values, _, absent = stream.read(start, min(start + size, end))
            scores = module(torch.from_numpy(_windows(values, window)).to(device))
            chances = torch.softmax(scores, dim=-1) if exclusive else torch.sigmoid(scores)
            part = chances.flatten(0, 1)[: len(values)].cpu().numpy()
            if found is None:
                found = np.empty((max(end - first, 0), part.shape[1]), dtype=np.float32)
            found[start - first : start - first + len(part)] = np.where(absent[:, None], np.float32(np.nan), part)
    assert found is not None  # noqa: S101 - at least one batch was run
    return found


def _windows(values: NDArray[np.float32], window: int) -> NDArray[np.float32]:
    """Cut frames into windows, the last of them padded with its mean."""
    count = max(-(-len(values) // window), 1)
    lacking = count * window - len(values)
    if lacking:
        last = values[(count - 1) * window :]
        mean = last.mean(axis=0, dtype=np.float64) if len(last) else np.zeros(values.shape[1])
        values = np.concatenate([values, np.tile(mean.astype(np.float32), (lacking, 1))])
    return values.reshape(count, window, -1)
