"""One recording, as every metric sees it: what was predicted against what is true, on the frames that count."""

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
class Track:
    """One behavior of one subject towards one target, on both sides.

    `truth` and `pred` are disjoint sets cut to `seen`, the frames that were looked at.
    """

    behavior: int
    truth: Intervals
    pred: Intervals
    seen: Intervals
    subject: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class PointTrack:
    """The events of one point behavior of one subject towards one target, on both sides: sorted frames."""

    behavior: int
    truth: IntArray
    pred: IntArray


@dataclass(frozen=True, eq=False)
class Case:
    """A recording that is scored.

    Attributes
    ----------
    id, individual : str
    pred, truth : Annotation
        In the same ethogram, on the same clock, equally long.
    probabilities : array (n_frames, n_behaviors), optional
        In the order of the ethogram.
    merged : bool
        Whether subjects are pooled.
    both : bool
        Whether only frames that both sides looked at count (annotators among each other), not those of the truth alone.
    filled : bool
        Whether frames without any bout are the named background.
    metadata : mapping
    """

    id: str
    individual: str
    pred: Annotation
    truth: Annotation
    probabilities: NDArray[np.floating[Any]] | None = None
    merged: bool = False
    both: bool = False
    filled: bool = True
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
    def tracks(self) -> tuple[Track, ...]:
        """Every track that either side names; at least one for each behavior."""
        return tuple(
            self._track(code, subject, target)
            for code in range(len(self.ethogram))
            if not self.ethogram[code].point
            for subject, target in self._pairs(code)
        )

    @cached_property
    def points(self) -> tuple[PointTrack, ...]:
        """Every track of point events that either side names."""
        tracks = []
        for code in range(len(self.ethogram)):
            for subject, target in self._pairs(code) if self.ethogram[code].point else []:
                seen = self._seen(self.ethogram[code].name, subject, target)
                sides = [side.start[self.mine(side, code, subject, target)] for side in (self.truth, self.pred)]
                tracks.append(PointTrack(code, *(frames[_inside(frames, seen, self.truth.n_frames)] for frames in sides)))
        return tuple(tracks)

    @cached_property
    def subjects(self) -> tuple[str | None, ...]:
        """The subjects that are scored apart; None stands for all together."""
        if self.merged:
            return (None,)
        names = {*(self.truth.names(np.unique(self.truth.subject))), *(self.pred.names(np.unique(self.pred.subject)))}
        return tuple(sorted(names - {None}, key=str)) + (("",) if None in names else ()) or (None,)

    @cached_property
    def exclusive(self) -> bool:
        """Whether no subject does two things at once, on either side."""
        if self.merged:
            return all(a.without_subjects().is_exclusive for a in (self.truth, self.pred))
        return self.truth.is_exclusive and self.pred.is_exclusive

    @cached_property
    def confusion(self) -> NDArray[np.float64]:
        """Frames by true (row) and predicted (column) behavior; NaN where behaviors overlap.

        Without a named background a last row and column stand for frames without any behavior.
        """
        size = len(self.ethogram) + (self.ethogram.background is None)
        if not self.exclusive:
            return np.full((size, size), np.nan)
        matrix = np.zeros((size, size))
        for subject in self.subjects:
            matrix += self._confusion_of(subject, size)
        return matrix

    def _confusion_of(self, subject: str | None, size: int) -> NDArray[np.float64]:
        """Count overlaps of true and predicted bouts; what they leave of each other is without behavior."""
        names = self.ethogram.names
        nothing = size - 1 if self.ethogram.background is None else self.ethogram.background
        seen = self.truth.observed.of_all(names, subject or None)
        if self.both:
            seen = iv.intersection(seen, self.pred.observed.of_all(names, subject or None))
        (truth, true_codes), (pred, pred_codes) = (_pieces(side, subject, seen) for side in (self.truth, self.pred))
        i, j = iv.overlapping_pairs(truth, pred)
        shared = np.minimum(truth.stop[i], pred.stop[j]) - np.maximum(truth.start[i], pred.start[j])
        counts = _sum_by(true_codes[i] * size + pred_codes[j], shared, size * size).reshape(size, size)
        alone_true = _sum_by(true_codes, truth.stop - truth.start, size) - counts.sum(axis=1)
        alone_pred = _sum_by(pred_codes, pred.stop - pred.start, size) - counts.sum(axis=0)
        both_nothing = iv.total(seen) - counts.sum() - alone_true.sum() - alone_pred.sum()
        counts[:, nothing] += alone_true
        counts[nothing] += alone_pred
        counts[nothing, nothing] += both_nothing
        return np.asarray(counts)

    def _pairs(self, code: int) -> list[tuple[str | None, str | None]]:
        if self.merged:
            return [(None, None)]
        if code == self.ethogram.background:
            return [(subject or None, None) for subject in self.subjects]
        found = set()
        for side in (self.truth, self.pred):
            mine = side.behavior == code
            found |= {*zip(side.names(side.subject[mine]), side.names(side.target[mine]), strict=True)}
        return sorted(found, key=lambda pair: (pair[0] or "", pair[1] or "")) or [(None, None)]

    def _track(self, code: int, subject: str | None, target: str | None) -> Track:
        seen = self._seen(self.ethogram[code].name, subject, target)
        everything = len(seen.start) == 1 and iv.total(seen) == self.truth.n_frames
        sides = []
        for side in (self.truth, self.pred):
            mine = self.mine(side, code, subject, target)
            spans = iv.union(Intervals(side.start[mine], side.stop[mine]))
            if code == self.ethogram.background and self.filled:
                spans = iv.union_all([spans, self._free(side, subject)])
            sides.append(spans if everything else iv.intersection(spans, seen))
        return Track(code, sides[0], sides[1], seen, subject, target)

    def _seen(self, name: str, subject: str | None, target: str | None) -> Intervals:
        """Return the frames that count for a track."""
        seen = self.truth.observed.of(name, subject, target)
        return iv.intersection(seen, self.pred.observed.of(name, subject, target)) if self.both else seen

    def mine(self, side: Annotation, code: int, subject: str | None, target: str | None) -> NDArray[np.bool_]:
        """Tell which bouts of a side belong to a track; the background has no targets."""
        mine = side.behavior == code
        if not self.merged:
            mine = mine & _is(side, side.subject, subject)
        if not self.merged and code != self.ethogram.background:
            mine = mine & _is(side, side.target, target)
        return np.asarray(mine)

    def _free(self, side: Annotation, subject: str | None) -> Intervals:
        """Frames without any bout are background, whether or not the side says so."""
        mine = np.ones(len(side), dtype=bool) if self.merged else _is(side, side.subject, subject)
        return iv.complement(iv.union(Intervals(side.start[mine], side.stop[mine])), side.n_frames)


def _is(side: Annotation, codes: IntArray, name: str | None) -> NDArray[np.bool_]:
    if name is None:
        return np.asarray(codes < 0)
    return np.asarray(codes == side.subjects.index(name)) if name in side.subjects else np.zeros(len(codes), dtype=bool)


def _inside(frames: IntArray, seen: Intervals, n_frames: int) -> NDArray[np.bool_]:
    """Tell which events happen while somebody looks; one at the very end belongs to the last frame."""
    at = np.minimum(frames, max(n_frames - 1, 0))
    return np.asarray(iv.covered_before(seen, at + 1) > iv.covered_before(seen, at))


def _sum_by(codes: IntArray, values: IntArray, size: int) -> NDArray[np.float64]:
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64)


def _pieces(side: Annotation, subject: str | None, seen: Intervals) -> tuple[Intervals, IntArray]:
    """Return a subject's bouts and their codes, without overlaps, cut to the frames that count."""
    if subject is not None:
        side = side.take(_is(side, side.subject, subject or None))
    if not (side.start[1:] >= side.stop[:-1]).all():
        side = side.without_subjects().merge_touching()
    side = side.take(side.stop > side.start) if (side.stop == side.start).any() else side
    spans, codes = Intervals(side.start, side.stop), side.behavior
    if iv.total(seen) == side.n_frames:
        return spans, codes
    i, j = iv.overlapping_pairs(spans, seen)
    return Intervals(np.maximum(spans.start[i], seen.start[j]), np.minimum(spans.stop[i], seen.stop[j])), codes[i]
