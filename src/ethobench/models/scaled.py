"""Signals as a network takes them: scaled by what they were in training, and by what is usual in the recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core.recording import Data
from ethobench.core.signals import Keypoint
from ethobench.features.multiscale import Baseline, base_signals
from ethobench.training.augmentation import Layout

OWN, SEEN = "|own", "|seen"
FAR = 5.0  # deviations beyond which a value says no more


class Inputs(NamedTuple):
    """Signals of a stretch: as measured, and relative to the recording."""

    measured: NDArray[np.float32]
    own: NDArray[np.float32]
    names: tuple[str, ...]


def read_inputs(data: Data, rate: float, baseline: Baseline, keypoints: Mapping[str, Keypoint]) -> Inputs:
    """Compute the signals of a stretch."""
    rows, names = base_signals(data, rate, baseline, keypoints)
    own = (rows - np.array(baseline.median)[:, None]) / np.array(baseline.half_range)[:, None]
    return Inputs(rows.T.astype(np.float32), own.T.astype(np.float32), names)


@dataclass(frozen=True)
class Scaling:
    """Mean and deviation of the signals in training.

    Attributes
    ----------
    names : tuple of str
        The signals.
    mean, scale : tuple of float
        As measured; those relative to the recording are taken as they are.
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def of(cls, inputs: Sequence[Inputs]) -> Self:
        """Measure the training's signals."""
        count = np.zeros(len(inputs[0].names))
        total, squares = np.zeros_like(count), np.zeros_like(count)
        level = np.nan_to_num(inputs[0].measured[0].astype(np.float64))
        for part in inputs:
            known = np.isfinite(part.measured)
            around = np.where(known, part.measured - level, 0.0)
            count += known.sum(axis=0)
            total += around.sum(axis=0)
            squares += np.square(around).sum(axis=0)
        mean = total / np.maximum(count, 1)
        scale = np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0))
        scale = np.where(scale > 1e-9, scale, 1.0)
        return cls(inputs[0].names, tuple(map(float, mean + level)), tuple(map(float, scale)))

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of all channels."""
        return (*self.names, *(f"{name}{OWN}" for name in self.names), SEEN)

    def layout(self) -> Layout:
        """Tell augmentations what the channels are."""
        rest = len(self.names) + 1
        return Layout(self.channels, mean=(*self.mean, *[0.0] * rest), scale=(*self.scale, *[1.0] * rest))

    def apply(self, inputs: Inputs) -> NDArray[np.float32]:
        """Return the channels: within a few deviations, 0 where something is missing, and last how much is known."""
        scaled = (inputs.measured - np.array(self.mean, dtype=np.float32)) / np.array(self.scale, dtype=np.float32)
        known = np.isfinite(inputs.measured).mean(axis=1, dtype=np.float32, keepdims=True)
        joined = np.concatenate([scaled, inputs.own, known], axis=1)
        return np.asarray(np.nan_to_num(np.clip(joined, -FAR, FAR), copy=False))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make one from what `dataclasses.asdict` gave, after it was written and read as JSON."""
        mean, scale = (tuple(map(float, plain[key])) for key in ("mean", "scale"))
        return cls(tuple(map(str, plain["names"])), mean, scale)
