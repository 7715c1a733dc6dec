"""What was recorded: channels of a tag or tracked keypoints, one row per frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import MismatchError, NotFoundError

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Signals:
    """Channels sampled at the recording's rate.

    Attributes
    ----------
    values : array (n_frames, n_channels)
        May be memory-mapped. NaN where nothing was recorded.
    channels : tuple of str
    rate : float
        Samples per second.
    """

    values: Array
    channels: tuple[str, ...]
    rate: float

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.channels):
            raise MismatchError(f"signals of shape {self.values.shape} for {len(self.channels)} channels")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Signals({len(self)} frames at {self.rate:g} Hz; {_few(self.channels, 'channels')})"

    def __getitem__(self, frames: slice) -> Signals:
        """Return a stretch of frames; nothing is copied."""
        return Signals(self.values[frames], self.channels, self.rate)

    def channel(self, name: str) -> Array:
        """Return one channel by name."""
        if name not in self.channels:
            raise NotFoundError(f"no channel {name!r}; there are: {', '.join(self.channels)}")
        return self.values[:, self.channels.index(name)]


@dataclass(frozen=True)
class Keypoint:
    """What a keypoint stands for.

    Attributes
    ----------
    name : str
    role : str
        ``nose``, ``neck``, ``tail_base``, ...: what features look for.
    mirror : str
        The name of its left or right partner; empty for one on the midline.
    """

    name: str
    role: str = ""
    mirror: str = ""


@dataclass(frozen=True, eq=False)
class Poses:
    """Tracked keypoints of one or several animals.

    Attributes
    ----------
    positions : array (n_frames, n_individuals, n_keypoints, 2 or 3)
        Coordinates in the tracker's units, NaN where a keypoint is missing.
    confidence : array (n_frames, n_individuals, n_keypoints)
        NaN where the tracker gives none.
    individuals, keypoints : tuple of str
    rate : float or None
        Frames per second; None where the file does not tell.
    """

    positions: Array
    confidence: Array
    individuals: tuple[str, ...]
    keypoints: tuple[str, ...]
    rate: float | None = None

    def __post_init__(self) -> None:
        expected = (len(self.positions), len(self.individuals), len(self.keypoints))
        if self.positions.ndim != 4 or self.positions.shape[:3] != expected or self.positions.shape[3] not in (2, 3):
            raise MismatchError(f"positions of shape {self.positions.shape} for {expected[1]} individuals with {expected[2]} keypoints")
        if self.confidence.shape != expected:
            raise MismatchError(f"confidence of shape {self.confidence.shape} for positions of shape {self.positions.shape}")

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        rate = "unknown rate" if self.rate is None else f"{self.rate:g} Hz"
        who, what = _few(self.individuals, "individuals"), _few(self.keypoints, "keypoints")
        return f"Poses({len(self)} frames at {rate}; {who}; {what}; {self.missing:.1%} missing)"

    def __getitem__(self, frames: slice) -> Poses:
        """Return a stretch of frames; nothing is copied."""
        return Poses(self.positions[frames], self.confidence[frames], self.individuals, self.keypoints, self.rate)

    @property
    def missing(self) -> float:
        """Share of keypoints without a position."""
        return float(np.isnan(self.positions[..., 0]).mean()) if self.positions.size else 0.0

    def to_signals(self) -> Signals:
        """Lay the coordinates out as channels: individual, keypoint, axis."""
        axes = "xyz"[: self.positions.shape[3]]
        names = tuple(f"{i}/{k}/{axis}" for i in self.individuals for k in self.keypoints for axis in axes)
        return Signals(self.positions.reshape(len(self), -1), names, self.rate or 1.0)


def _few(names: tuple[str, ...], what: str) -> str:
    """Name a few things, or the first of many and how many there are."""
    return ", ".join(names) if len(names) <= 8 else f"{len(names)} {what}: {', '.join(names[:3])}, ..."
