"""What a model says: probabilities, and the annotation decoded from them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core.annotation import Annotation
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.ethogram import Ethogram

TOLERANCE = 1e-3


class Prediction:
    """Per-frame probabilities and the annotation decoded from them.

    Parameters
    ----------
    probabilities : array-like (n_frames, n_behaviors) or (n_frames, n_behaviors + 1)
        One column per behaviour; where the ethogram names no background a last one may stand for it.
        Rows of NaN were not predicted.
    ethogram : Ethogram
    rate : float
        Frames per second.
    annotation : Annotation, optional
        Decoded by a better rule than the most probable (exclusive) or 0.5 (overlapping).
    exclusive : bool, optional
        One behaviour at a time, or each on its own; told by whether rows sum to at most 1 unless given.

    Examples
    --------
    >>> p = Prediction([[0.9, 0.1], [0.2, 0.8]], Ethogram(["rest", "walk"]), rate=10)
    >>> p.annotation.behavior.tolist()
    [0, 1]
    """

    def __init__(
        self,
        probabilities: ArrayLike,
        ethogram: Ethogram,
        rate: float,
        *,
        annotation: Annotation | None = None,
        exclusive: bool | None = None,
    ) -> None:
        self.probabilities: NDArray[np.floating] = np.asarray(probabilities)
        if self.probabilities.dtype.kind not in "fiub":
            raise EthobenchError(f"probabilities are numbers, not {self.probabilities.dtype}")
        if not isinstance(ethogram, Ethogram):
            ethogram = Ethogram(ethogram)
        self.ethogram, self.rate = ethogram, float(rate)
        n = len(ethogram)
        allowed = {n} if ethogram.background is not None else {n, n + 1}
        if self.probabilities.ndim != 2 or self.probabilities.shape[1] not in allowed:
            raise MismatchError(f"probabilities of shape {self.probabilities.shape} for {n} behaviours")
        low, high = np.nanmin(self.probabilities, initial=0), np.nanmax(self.probabilities, initial=0)
        if low < -TOLERANCE or high > 1 + TOLERANCE:
            raise EthobenchError(f"probabilities lie between 0 and 1, but these between {low:.4g} and {high:.4g}")
        if annotation is not None and annotation.n_frames != len(self.probabilities):
            raise MismatchError(f"{len(self.probabilities)} rows of probabilities, but the annotation has {annotation.n_frames} frames")
        if annotation is not None and (annotation.rate != self.rate or {*annotation.ethogram.names} - {*ethogram.names}):
            raise MismatchError("the annotation of a prediction has its rate and its behaviours")
        self._annotation, self._exclusive = annotation, exclusive

    def __repr__(self) -> str:
        return f"Prediction({len(self.probabilities)} frames at {self.rate:g} Hz; {', '.join(self.ethogram.names)})"

    @property
    def n_frames(self) -> int:
        """Length in frames."""
        return len(self.probabilities)

    @cached_property
    def exclusive(self) -> bool:
        """Whether one behaviour at a time is predicted."""
        if self._exclusive is not None:
            return self._exclusive
        return bool(np.nanmax(self.probabilities.sum(axis=1), initial=0) <= 1 + TOLERANCE)

    @cached_property
    def annotation(self) -> Annotation:
        """The annotation that came with the probabilities, or the most probable one."""
        if self._annotation is not None:
            return self._annotation
        n = len(self.ethogram)
        hidden = np.isnan(self.probabilities).any(axis=1)
        filled = np.where(hidden[:, None], 0, self.probabilities)
        if not self.exclusive:
            return Annotation.from_frames(filled[:, :n] >= 0.5, self.ethogram, self.rate, unobserved=hidden)
        if filled.shape[1] == n and self.ethogram.background is None:
            filled = np.column_stack((filled, 1 - filled.sum(axis=1)))
        return Annotation.from_frames(filled.argmax(axis=1), self.ethogram, self.rate, unobserved=hidden)
