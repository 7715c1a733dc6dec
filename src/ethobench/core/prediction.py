"""Predictions: per-frame probabilities, the annotation decoded from them, and which frames could not be predicted."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import intervals as iv
from ethobench.core.annotation import Annotation
from ethobench.core.errors import MismatchError, Note, ParameterError
from ethobench.core.ethogram import Ethogram
from ethobench.core.notebook_html import html_table, raster_svg
from ethobench.core.occurrence import Occurrence

TOLERANCE = 1e-3
ROUNDING_STEPS = (10, 100, 255, 256, 1_000, 10_000, 65_535, 100_000)
"""Numbers of steps between 0 and 1 that files round probabilities to."""


class Prediction:
    """Per-frame probabilities and the annotation decoded from them.

    Parameters
    ----------
    probabilities : array-like (n_frames, n_behaviors) or (n_frames, n_behaviors + 1)
        One column per behavior. If the ethogram has no background, a last column may be that of the background. Rows of NaN could not be
        predicted.
    ethogram : Ethogram
    rate : float
        Frames per second.
    annotation : Annotation, optional
        The decoded annotation. Default: the most probable behavior of each frame (exclusive behaviors), or every behavior with a
        probability of at least 0.5 (overlapping behaviors). Frames that could not be predicted are unobserved.
    exclusive : bool, optional
        Whether behaviors exclude each other (softmax), or each has an independent probability (sigmoid). Should be stated. Default: as
        stated by the ethogram, else inferred from the sums of rows, which `notes` report.
    boundaries : array-like (n_models, n_frames, 2), optional
        Probabilities that a bout of any behavior starts, and that one stops, close to each frame, according to one or more models.
        Decoders may use them.

    Raises
    ------
    MismatchError
        If the shape does not fit the ethogram, or the annotation does not fit the probabilities.
    ParameterError
        If values are not between 0 and 1.

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
        boundaries: ArrayLike | None = None,
    ) -> None:
        self.probabilities: NDArray[np.floating] = np.asarray(probabilities)
        if self.probabilities.dtype.kind not in "fiub":
            raise ParameterError(f"`probabilities` must be numbers, got {self.probabilities.dtype}")
        if not isinstance(ethogram, Ethogram):
            ethogram = Ethogram(ethogram)
        self.ethogram, self.rate = ethogram, float(rate)
        n = len(ethogram)
        allowed = {n} if ethogram.background is not None else {n, n + 1}
        if self.probabilities.ndim != 2 or self.probabilities.shape[1] not in allowed:
            raise MismatchError(f"`probabilities` has shape {self.probabilities.shape} for {n} behaviors")
        self.boundaries: NDArray[np.floating] | None = None if boundaries is None else np.asarray(boundaries)
        if self.boundaries is not None and (self.boundaries.ndim != 3 or self.boundaries.shape[1:] != (len(self.probabilities), 2)):
            raise MismatchError(f"`boundaries` has shape {self.boundaries.shape}, expected (n_models, {len(self.probabilities)}, 2)")
        low, high = np.nanmin(self.probabilities, initial=0), np.nanmax(self.probabilities, initial=0)
        if low < -TOLERANCE or high > 1 + TOLERANCE:
            raise ParameterError(f"`probabilities` must be between 0 and 1, got {low:.4g} to {high:.4g}")
        if annotation is not None and annotation.n_frames != len(self.probabilities):
            raise MismatchError(f"`probabilities` has {len(self.probabilities)} rows, but `annotation` has {annotation.n_frames} frames")
        if annotation is not None and (annotation.rate != self.rate or {*annotation.ethogram.names} - {*ethogram.names}):
            raise MismatchError("`annotation` must have the rate and the behaviors of the prediction")
        if exclusive is None:
            exclusive = ethogram.exclusive if annotation is None or annotation.is_exclusive else False
        self._stated_exclusive = None if exclusive is None else bool(exclusive)
        self._annotation = annotation
        if annotation is not None and not self.predictable.all():
            self._annotation = annotation.mark_unobserved(iv.from_mask(~self.predictable))

    def __repr__(self) -> str:
        return f"Prediction({len(self.probabilities)} frames at {self.rate:g} Hz; {', '.join(self.ethogram.names)})"

    def _repr_html_(self) -> str:
        """Return a raster of the decoded annotation, and a table of mean probabilities and decoded time, for notebooks."""
        seconds = {name: iv.total(iv.union(self.annotation.spans(name))) / self.rate for name in self.annotation.ethogram.names}
        means = self.probabilities[self.predictable].mean(axis=0) if self.predictable.any() else [np.nan] * len(self.ethogram)
        rows = [(name, f"{mean:.3f}", f"{seconds.get(name, 0):.6g}") for name, mean in zip(self.ethogram.names, means, strict=False)]
        raster = raster_svg(self.annotation, Occurrence.count(self.annotation.ethogram, [self.annotation]).color_indices())
        return raster + html_table(("behavior", "mean probability", "decoded seconds"), rows, repr(self))

    @property
    def n_frames(self) -> int:
        """Length in frames."""
        return len(self.probabilities)

    @cached_property
    def predictable(self) -> NDArray[np.bool_]:
        """Mask of the frames that could be predicted (n_frames,); False if the input of the model was missing."""
        return np.asarray(~np.isnan(self.probabilities).any(axis=1))

    @property
    def exclusive(self) -> bool:
        """Whether behaviors exclude each other: as stated, or inferred from the sums of rows."""
        return self._inferred[0] if self._stated_exclusive is None else self._stated_exclusive

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on what was inferred because it was not stated."""
        return () if self._stated_exclusive is not None else (self._inferred[1],)

    @cached_property
    def _inferred(self) -> tuple[bool, Note]:
        """Infer from the sums of rows whether behaviors exclude each other, with a tolerance for rounding."""
        values = self.probabilities[self.predictable].astype(np.float64)
        step, sums = _rounding_step(values, self.probabilities.dtype), values.sum(axis=1)
        excess = sums - 1 - TOLERANCE - (values > 0).sum(axis=1) * step / 2
        exclusive = not (excess > 0).any()
        complete = self.ethogram.background is not None or values.shape[1] > len(self.ethogram)  # then rows sum to 1
        if complete:
            exclusive = exclusive and not (sums < 1 - TOLERANCE - values.shape[1] * step / 2).any()
        conclusion = "behaviors taken to be overlapping, since rows do not sum to 1"
        if exclusive:
            at_most, exactly = "since no row sums to more than 1", "since rows sum to 1"
            conclusion = f"behaviors taken to be exclusive, {exactly if complete else at_most}"
        rounded = f" (values are rounded to {step:.2g})" if step else ""
        message = f"{conclusion}{rounded}; pass exclusive=True or exclusive=False to be sure"
        return exclusive, Note(message, code="inferred-exclusive")

    @cached_property
    def annotation(self) -> Annotation:
        """The decoded annotation; frames that could not be predicted are unobserved."""
        if self._annotation is not None:
            return self._annotation
        return self._decode(exclusive=self.exclusive)

    def decoded(self, *, exclusive: bool) -> Annotation:
        """Return the annotation for a scorer that defines whether behaviors exclude each other.

        The annotation passed to the constructor is returned if it fits; else the probabilities are decoded again.
        """
        if exclusive == self.exclusive or (self._annotation is not None and (self._annotation.is_exclusive or not exclusive)):
            return self.annotation
        return self._decode(exclusive=exclusive)

    def without_frames(self, mask: NDArray[np.bool_]) -> Prediction:
        """Return a copy in which the frames of a mask (n_frames,) are not predictable."""
        if not mask.any():
            return self
        dtype = self.probabilities.dtype if self.probabilities.dtype.kind == "f" else np.dtype(np.float32)
        values = np.where(mask[:, None], dtype.type(np.nan), self.probabilities.astype(dtype, copy=False))
        return Prediction(
            values, self.ethogram, self.rate, annotation=self._annotation, exclusive=self.exclusive, boundaries=self.boundaries
        )

    def _decode(self, *, exclusive: bool) -> Annotation:
        n = len(self.ethogram)
        unobserved = ~self.predictable
        filled = np.where(unobserved[:, None], 0, self.probabilities)
        if not exclusive:
            return Annotation.from_frames(filled[:, :n] >= 0.5, self.ethogram, self.rate, unobserved=unobserved)
        if filled.shape[1] == n and self.ethogram.background is None:
            filled = np.column_stack((filled, 1 - filled.sum(axis=1)))
        return Annotation.from_frames(filled.argmax(axis=1), self.ethogram, self.rate, unobserved=unobserved)


def _rounding_step(values: NDArray[np.float64], dtype: np.dtype[Any]) -> float:
    """Return the step to which probabilities are rounded, such as 0.01 or 1/255; 0 if they are not rounded."""
    sample = values[:: max(1, len(values) // 10_000)]
    precision = max(1e-7, float(np.finfo(dtype).eps)) if dtype.kind == "f" else 1e-7
    for steps in ROUNDING_STEPS:
        if np.abs(sample * steps - np.rint(sample * steps)).max(initial=0) < precision * steps:
            return 1 / steps
    return 0.0
