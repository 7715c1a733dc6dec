"""Prediction and truth of one recording, aligned: on one clock, in one ethogram, equally long.

This is what every metric counts from. The *tracks* of a pair are its (behavior, subject, target) combinations. Each is a set of
disjoint intervals of frames on both sides, cut to the observed frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals


@dataclass(frozen=True)
class TrackPair:
    """One behavior of one subject towards one target in truth and prediction.

    Attributes
    ----------
    behavior : int
        Code in the ethogram.
    truth, pred : Intervals
        Disjoint, sorted intervals of frames, cut to `observed`.
    observed : Intervals
        The frames that count.
    subject, target : str, optional
    """

    behavior: int
    truth: Intervals
    pred: Intervals
    observed: Intervals
    subject: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class PointPair:
    """The events of one point behavior of one subject towards one target in truth and prediction, as sorted frames."""

    behavior: int
    truth: IntArray
    pred: IntArray


@dataclass(frozen=True, eq=False)
class AlignedPair:
    """The prediction and the truth of one recording.

    Attributes
    ----------
    id, individual : str
        Names of the recording and of its individual.
    pred, truth : Annotation
        In the same ethogram, on the same clock, equally long.
    probabilities : array (n_frames, n_behaviors), optional
        Columns in the order of the ethogram.
    pool_subjects : bool
        Whether subjects are not distinguished.
    observed_by_both : bool
        Whether only frames that both sides observed count (to compare annotators), not all frames that the truth observed.
    fill_background : bool
        Whether frames without any bout count as the named background.
    metadata : mapping
        Metadata of the recording.
    """

    id: str
    individual: str
    pred: Annotation
    truth: Annotation
    probabilities: NDArray[np.floating[Any]] | None = None
    pool_subjects: bool = False
    observed_by_both: bool = False
    fill_background: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ethogram(self) -> Ethogram:
        """The behaviors that are scored."""
        return self.truth.ethogram

    @property
    def rate(self) -> float:
        """Frames per second."""
        return self.truth.rate

    @cached_property
    def tracks(self) -> tuple[TrackPair, ...]:
        """Every track that either side contains; at least one for each behavior that has a duration."""
        return tuple(
            self._track(code, subject, target)
            for code in range(len(self.ethogram))
            if not self.ethogram[code].point
            for subject, target in self._subjects_and_targets(code)
        )

    @cached_property
    def points(self) -> tuple[PointPair, ...]:
        """Every track of point events that either side contains."""
        tracks = []
        for code in range(len(self.ethogram)):
            for subject, target in self._subjects_and_targets(code) if self.ethogram[code].point else []:
                observed = self._observed(self.ethogram[code].name, subject, target)
                sides = [side.start[self.select_bouts(side, code, subject, target)] for side in (self.truth, self.pred)]
                tracks.append(PointPair(code, *(frames[_inside(frames, observed, self.truth.n_frames)] for frames in sides)))
        return tuple(tracks)

    @cached_property
    def subjects(self) -> tuple[str | None, ...]:
        """The subjects that are scored separately; ``(None,)`` if all are pooled. An empty name stands for bouts without a subject."""
        if self.pool_subjects:
            return (None,)
        names = {*(self.truth.names(np.unique(self.truth.subject))), *(self.pred.names(np.unique(self.pred.subject)))}
        return tuple(sorted(names - {None}, key=str)) + (("",) if None in names else ()) or (None,)

    @cached_property
    def exclusive(self) -> bool:
        """Whether no subject shows two behaviors at once, on either side."""
        if self.pool_subjects:
            return all(a.without_subjects().is_exclusive for a in (self.truth, self.pred))
        return self.truth.is_exclusive and self.pred.is_exclusive

    @cached_property
    def confusion(self) -> NDArray[np.float64]:
        """Frames by true (row) and predicted (column) behavior; NaN if behaviors overlap.

        Without a named background, the last row and column are frames without any behavior.
        """
        size = len(self.ethogram) + (self.ethogram.background is None)
        if not self.exclusive:
            return np.full((size, size), np.nan)
        matrix = np.zeros((size, size))
        for subject in self.subjects:
            matrix += self._confusion_of_subject(subject, size)
        return matrix

    def _confusion_of_subject(self, subject: str | None, size: int) -> NDArray[np.float64]:
        """Count the overlap of true and predicted bouts; frames that only one side or neither covers are without behavior there."""
        names = self.ethogram.names
        no_behavior = size - 1 if self.ethogram.background is None else self.ethogram.background
        observed = self.truth.observed.of_all(names, subject or None)
        if self.observed_by_both:
            observed = iv.intersection(observed, self.pred.observed.of_all(names, subject or None))
        (truth, true_codes), (pred, pred_codes) = (_observed_bouts(side, subject, observed) for side in (self.truth, self.pred))
        i, j = iv.overlapping_pairs(truth, pred)
        shared = np.minimum(truth.stop[i], pred.stop[j]) - np.maximum(truth.start[i], pred.start[j])
        counts = _sum_by_code(true_codes[i] * size + pred_codes[j], shared, size * size).reshape(size, size)
        only_true = _sum_by_code(true_codes, truth.stop - truth.start, size) - counts.sum(axis=1)
        only_pred = _sum_by_code(pred_codes, pred.stop - pred.start, size) - counts.sum(axis=0)
        neither = iv.total(observed) - counts.sum() - only_true.sum() - only_pred.sum()
        counts[:, no_behavior] += only_true
        counts[no_behavior] += only_pred
        counts[no_behavior, no_behavior] += neither
        return np.asarray(counts)

    def _subjects_and_targets(self, code: int) -> list[tuple[str | None, str | None]]:
        """List the (subject, target) combinations of a behavior on either side; the background has no targets."""
        if self.pool_subjects:
            return [(None, None)]
        if code == self.ethogram.background:
            return [(subject or None, None) for subject in self.subjects]
        combinations = set()
        for side in (self.truth, self.pred):
            chosen = side.behavior == code
            combinations |= {*zip(side.names(side.subject[chosen]), side.names(side.target[chosen]), strict=True)}
        return sorted(combinations, key=lambda names: (names[0] or "", names[1] or "")) or [(None, None)]

    def _track(self, code: int, subject: str | None, target: str | None) -> TrackPair:
        observed = self._observed(self.ethogram[code].name, subject, target)
        all_observed = len(observed.start) == 1 and iv.total(observed) == self.truth.n_frames
        sides = []
        for side in (self.truth, self.pred):
            chosen = self.select_bouts(side, code, subject, target)
            spans = iv.union(Intervals(side.start[chosen], side.stop[chosen]))
            if code == self.ethogram.background and self.fill_background:
                spans = iv.union_all([spans, self._frames_without_bouts(side, subject)])
            sides.append(spans if all_observed else iv.intersection(spans, observed))
        return TrackPair(code, sides[0], sides[1], observed, subject, target)

    def _observed(self, name: str, subject: str | None, target: str | None) -> Intervals:
        """Return the frames that count for a track."""
        observed = self.truth.observed.of(name, subject, target)
        return iv.intersection(observed, self.pred.observed.of(name, subject, target)) if self.observed_by_both else observed

    def select_bouts(self, side: Annotation, code: int, subject: str | None, target: str | None) -> NDArray[np.bool_]:
        """Return a mask of the bouts of one side (`truth` or `pred`) that belong to a track; the background has no targets."""
        chosen = side.behavior == code
        if not self.pool_subjects:
            chosen = chosen & _has_name(side, side.subject, subject)
        if not self.pool_subjects and code != self.ethogram.background:
            chosen = chosen & _has_name(side, side.target, target)
        return np.asarray(chosen)

    def _frames_without_bouts(self, side: Annotation, subject: str | None) -> Intervals:
        """Return the frames in which a subject has no bout of any behavior."""
        chosen = np.ones(len(side), dtype=bool) if self.pool_subjects else _has_name(side, side.subject, subject)
        return iv.complement(iv.union(Intervals(side.start[chosen], side.stop[chosen])), side.n_frames)


def _has_name(side: Annotation, codes: IntArray, name: str | None) -> NDArray[np.bool_]:
    """Return which of the subject (or target) codes stand for a name."""
    if name is None:
        return np.asarray(codes < 0)
    return np.asarray(codes == side.subjects.index(name)) if name in side.subjects else np.zeros(len(codes), dtype=bool)


def _inside(frames: IntArray, observed: Intervals, n_frames: int) -> NDArray[np.bool_]:
    """Return which events lie in observed frames; an event at the very end belongs to the last frame."""
    at = np.minimum(frames, max(n_frames - 1, 0))
    return np.asarray(iv.covered_before(observed, at + 1) > iv.covered_before(observed, at))


def _sum_by_code(codes: IntArray, values: IntArray, size: int) -> NDArray[np.float64]:
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64)


def _observed_bouts(side: Annotation, subject: str | None, observed: Intervals) -> tuple[Intervals, IntArray]:
    """Return a subject's bouts and their codes, without overlaps, cut to the observed frames."""
    if subject is not None:
        side = side.take(_has_name(side, side.subject, subject or None))
    if not (side.start[1:] >= side.stop[:-1]).all():
        side = side.without_subjects().merge_touching()
    side = side.take(side.stop > side.start) if (side.stop == side.start).any() else side
    spans, codes = Intervals(side.start, side.stop), side.behavior
    if iv.total(observed) == side.n_frames:
        return spans, codes
    i, j = iv.overlapping_pairs(spans, observed)
    return Intervals(np.maximum(spans.start[i], observed.start[j]), np.minimum(spans.stop[i], observed.stop[j])), codes[i]
