"""Readers of small arrays."""

from __future__ import annotations

import numpy as np

from ethobench.training.channel_inputs import ChannelReader


def reader_of(values) -> ChannelReader:
    """Return a reader of an array (n_frames,) or (n_frames, n_channels) at 10 Hz."""
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    return ChannelReader(values, range(values.shape[1]), [f"c{k}" for k in range(values.shape[1])], 10.0)
