"""Per-frame probabilities of a model, the annotation decoded from them, and which frames could not be predicted."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import intervals as iv
from ethobench.core.annotation import Annotation
from ethobench.core.errors import EthobenchError, MismatchError, Note
from ethobench.core.ethogram import Ethogram

TOLERANCE = 1e-3
ROUNDED_TO = (10, 100, 255, 256, 1_000, 10_000, 65_535, 100_000)  # steps between 0 and 1 that files keep probabilities in


class Prediction:
    """Per-frame probabilities and the annotation decoded from them.

    Parameters
    ----------
    probabilities : array-like (n_frames, n_behaviors) or (n_frames, n_behaviors + 1)
        One column per behavior. Where the ethogram names no background, a last column may stand for it.
        Rows of NaN could not be predicted.
    ethogram : Ethogram
    rate : float
        Frames per second.
    annotation : Annotation, optional
        The decoded annotation. Without it, the most probable behavior of each frame (exclusive behaviors) or every behavior
        with a probability of at least 0.5 (overlapping behaviors). Frames that could not be predicted are unobserved in it.
    exclusive : bool, optional
        Whether one behavior excludes the others (softmax), or each has a probability of its own (sigmoid). State it: where it is
        missing, it is taken from the ethogram, else inferred from the sums of rows, and `notes` say so.

    Examples
    --------
    >>> p = Prediction([[0.9, 0.1], [0.2, 0.8], [np.nan, np.nan]], Ethogram(["rest", "walk"]), rate=10, exclusive=True)
    >>> p.annotation.behavior.tolist(), p.predictable.tolist()
    ([0, 1], [True, True, False])
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
            raise MismatchError(f"probabilities of shape {self.probabilities.shape} for {n} behaviors")
        low, high = np.nanmin(self.probabilities, initial=0), np.nanmax(self.probabilities, initial=0)
        if low < -TOLERANCE or high > 1 + TOLERANCE:
            raise EthobenchError(f"probabilities lie between 0 and 1, but these between {low:.4g} and {high:.4g}")
        if annotation is not None and annotation.n_frames != len(self.probabilities):
            raise MismatchError(f"{len(self.probabilities)} rows of probabilities, but the annotation has {annotation.n_frames} frames")
        if annotation is not None and (annotation.rate != self.rate or {*annotation.ethogram.names} - {*ethogram.names}):
            raise MismatchError("the annotation of a prediction has its rate and its behaviors")
        if exclusive is None:
            exclusive = ethogram.exclusive if annotation is None or annotation.is_exclusive else False
        self._stated_exclusive = None if exclusive is None else bool(exclusive)
        self._annotation = annotation
        if annotation is not None and not self.predictable.all():
            self._annotation = annotation.mark_unobserved(iv.from_mask(~self.predictable))

    def __repr__(self) -> str:
        return f"Prediction({len(self.probabilities)} frames at {self.rate:g} Hz; {', '.join(self.ethogram.names)})"

    @property
    def n_frames(self) -> int:
        """Length in frames."""
        return len(self.probabilities)

    @cached_property
    def predictable(self) -> NDArray[np.bool_]:
        """Mask of the frames that could be predicted (n_frames,); False where the model's input was missing."""
        return np.asarray(~np.isnan(self.probabilities).any(axis=1))

    @property
    def exclusive(self) -> bool:
        """Whether one behavior excludes the others: as stated, or inferred from the sums of rows."""
        return self._inferred[0] if self._stated_exclusive is None else self._stated_exclusive

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was inferred because it was not stated."""
        return () if self._stated_exclusive is not None else (self._inferred[1],)

    @cached_property
    def _inferred(self) -> tuple[bool, Note]:
        """Infer from the sums of rows whether behaviors exclude each other, with a tolerance that rounding cannot cross."""
        values = self.probabilities[self.predictable].astype(np.float64)
        step, sums = _rounding_step(values, self.probabilities.dtype), values.sum(axis=1)
        above = sums - 1 - TOLERANCE - (values > 0).sum(axis=1) * step / 2
        exclusive = not (above > 0).any()
        complete = self.ethogram.background is not None or values.shape[1] > len(self.ethogram)  # then rows sum to 1
        if complete:
            exclusive = exclusive and not (sums < 1 - TOLERANCE - values.shape[1] * step / 2).any()
        reason = "rows sum to 1" if complete and exclusive else "no row sums to more than 1" if exclusive else "rows do not sum to 1"
        kind = "exclusive" if exclusive else "overlapping"
        rounded = f" (values are rounded to {step:.2g})" if step else ""
        return exclusive, Note(f"behaviors taken to be {kind}, since {reason}{rounded}; state exclusive=True or exclusive=False to be sure")

    @cached_property
    def annotation(self) -> Annotation:
        """The decoded annotation; frames that could not be predicted are unobserved."""
        if self._annotation is not None:
            return self._annotation
        return self._decode(exclusive=self.exclusive)

    def decoded(self, *, exclusive: bool) -> Annotation:
        """Return the annotation for a scorer that defines whether behaviors exclude each other.

        An annotation that came with the probabilities is kept where it fits; else the probabilities are decoded anew.
        """
        if exclusive == self.exclusive or (self._annotation is not None and (self._annotation.is_exclusive or not exclusive)):
            return self.annotation
        return self._decode(exclusive=exclusive)

    def without_frames(self, mask: NDArray[np.bool_]) -> Prediction:
        """Return a copy in which the frames of a mask (n_frames,) could not be predicted."""
        if not mask.any():
            return self
        dtype = self.probabilities.dtype if self.probabilities.dtype.kind == "f" else np.dtype(np.float32)
        values = np.where(mask[:, None], dtype.type(np.nan), self.probabilities.astype(dtype, copy=False))
        return Prediction(values, self.ethogram, self.rate, annotation=self._annotation, exclusive=self.exclusive)

    def _decode(self, *, exclusive: bool) -> Annotation:
        n = len(self.ethogram)
        hidden = ~self.predictable
        filled = np.where(hidden[:, None], 0, self.probabilities)
        if not exclusive:
            return Annotation.from_frames(filled[:, :n] >= 0.5, self.ethogram, self.rate, unobserved=hidden)
        if filled.shape[1] == n and self.ethogram.background is None:
            filled = np.column_stack((filled, 1 - filled.sum(axis=1)))
        return Annotation.from_frames(filled.argmax(axis=1), self.ethogram, self.rate, unobserved=hidden)


def _rounding_step(values: NDArray[np.float64], dtype: np.dtype[Any]) -> float:
    """Return the step that probabilities were rounded to, such as 0.01 or 1/255; 0 if they were not rounded."""
    sample = values[:: max(1, len(values) // 10_000)]
    precision = max(1e-7, float(np.finfo(dtype).eps)) if dtype.kind == "f" else 1e-7
    for steps in ROUNDED_TO:
        if np.abs(sample * steps - np.rint(sample * steps)).max(initial=0) < precision * steps:
            return 1 / steps
    return 0.0
