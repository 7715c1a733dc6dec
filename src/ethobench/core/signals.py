"""Signals: channels of a tag, or poses of tracked keypoints, one row per frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import MismatchError, NotFoundError
from ethobench.core.wording import plural

Array: TypeAlias = NDArray[Any]
FEATURE_PREFIX = "features/"
"""Start of the names of per-frame features, which tells them apart from channels and keypoints."""


@dataclass(frozen=True, eq=False)
class Signals:
    """Channels sampled at the recording's rate.

    Attributes
    ----------
    values : array (n_frames, n_channels)
        May be memory-mapped. NaN for missing samples.
    channels : tuple of str
    rate : float
        Samples per second.
    extra : Signals, optional
        Per-frame features of the same frames, where a model uses them together with the channels.

    Examples
    --------
    >>> Signals(np.zeros((100, 2)), ("AccX", "AccY"), rate=25.0)
    Signals(100 frames at 25 Hz; AccX, AccY)
    """

    values: Array
    channels: tuple[str, ...]
    rate: float
    extra: Signals | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.channels):
            raise MismatchError(f"signals of shape {self.values.shape} for {len(self.channels)} channels")
        _check_extra(self.extra, len(self))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Signals({plural(len(self), '{n} frame', '{n} frames')} at {self.rate:g} Hz; {_few(self.channels, 'channels')})"

    def __getitem__(self, frames: slice) -> Signals:
        """Return a slice of frames, without a copy."""
        return Signals(self.values[frames], self.channels, self.rate, None if self.extra is None else self.extra[frames])

    @property
    def is_features(self) -> bool:
        """Whether these are per-frame features, such as embeddings of a video, and not channels of a tag."""
        return bool(self.channels) and all(name.startswith(FEATURE_PREFIX) for name in self.channels)

    def channel(self, name: str) -> Array:
        """Return one channel by name (n_frames,)."""
        if name not in self.channels:
            raise NotFoundError(f"no channel {name!r}; available: {', '.join(self.channels)}")
        return self.values[:, self.channels.index(name)]


@dataclass(frozen=True)
class Keypoint:
    """Role of a keypoint.

    Attributes
    ----------
    name : str
    role : str
        ``nose``, ``neck``, ``tail_base``, ...: the roles that features use.
    mirror : str
        Name of its left or right partner; empty for keypoints on the midline.

    Examples
    --------
    >>> Keypoint("ear_l", role="left_ear", mirror="ear_r")
    Keypoint(name='ear_l', role='left_ear', mirror='ear_r')
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
        Coordinates in the tracker's units, NaN for missing keypoints.
    confidence : array (n_frames, n_individuals, n_keypoints)
        NaN if the tracker has none.
    individuals, keypoints : tuple of str
    rate : float or None
        Frames per second; None if unknown.
    extra : Signals, optional
        Per-frame features of the same frames, where a model uses them together with the poses.

    Examples
    --------
    >>> Poses(np.zeros((50, 1, 2, 2)), np.ones((50, 1, 2)), ("mouse",), ("nose", "tail_base"), rate=30.0)
    Poses(50 frames at 30 Hz; mouse; nose, tail_base; 0.0% missing)
    """

    positions: Array
    confidence: Array
    individuals: tuple[str, ...]
    keypoints: tuple[str, ...]
    rate: float | None = None
    extra: Signals | None = None

    def __post_init__(self) -> None:
        expected = (len(self.positions), len(self.individuals), len(self.keypoints))
        if self.positions.ndim != 4 or self.positions.shape[:3] != expected or self.positions.shape[3] not in (2, 3):
            raise MismatchError(f"positions of shape {self.positions.shape} for {expected[1]} individuals with {expected[2]} keypoints")
        if self.confidence.shape != expected:
            raise MismatchError(f"confidence of shape {self.confidence.shape} for positions of shape {self.positions.shape}")
        _check_extra(self.extra, len(self))

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        rate = "unknown rate" if self.rate is None else f"{self.rate:g} Hz"
        individuals, keypoints = _few(self.individuals, "individuals"), _few(self.keypoints, "keypoints")
        return f"Poses({plural(len(self), '{n} frame', '{n} frames')} at {rate}; {individuals}; {keypoints}; {self.missing:.1%} missing)"

    def __getitem__(self, frames: slice) -> Poses:
        """Return a slice of frames, without a copy."""
        extra = None if self.extra is None else self.extra[frames]
        return Poses(self.positions[frames], self.confidence[frames], self.individuals, self.keypoints, self.rate, extra)

    @property
    def missing(self) -> float:
        """Share of missing keypoints."""
        return float(np.isnan(self.positions[..., 0]).mean()) if self.positions.size else 0.0

    def to_signals(self) -> Signals:
        """Convert coordinates to channels named ``individual/keypoint/axis``."""
        axes = "xyz"[: self.positions.shape[3]]
        names = tuple(f"{i}/{k}/{axis}" for i in self.individuals for k in self.keypoints for axis in axes)
        return Signals(self.positions.reshape(len(self), -1), names, self.rate or 1.0)


def _check_extra(extra: Signals | None, n_frames: int) -> None:
    if extra is not None and len(extra) != n_frames:
        raise MismatchError(f"features of {len(extra)} frames for signals of {n_frames}")


def _few(names: tuple[str, ...], kind: str) -> str:
    """List up to eight names, or the number of names and the first three."""
    return ", ".join(names) if len(names) <= 8 else f"{len(names)} {kind}: {', '.join(names[:3])}, ..."
