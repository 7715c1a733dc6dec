"""Columns of bouts on a frame clock: what an `Annotation` is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import intervals as iv
from ethobench.core.columns import NOBODY, FloatArray, TextArray, same, sort_columns
from ethobench.core.errors import NotFoundError
from ethobench.core.ethogram import Ethogram
from ethobench.core.intervals import BoolArray, IntArray, Intervals
from ethobench.core.observed import Observed


@dataclass(frozen=True, eq=False)
class Bouts:
    """The columns, and what can be done with them bout by bout."""

    ethogram: Ethogram
    rate: float
    n_frames: int
    start: IntArray
    stop: IntArray
    behavior: IntArray
    subject: IntArray
    target: IntArray
    order: IntArray
    subjects: tuple[str, ...]
    observed: Observed
    confidence: FloatArray | None = None
    modifiers: TextArray | None = None
    comment: TextArray | None = None

    def __len__(self) -> int:
        return len(self.start)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bouts):
            return NotImplemented
        return all(same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.n_frames / self.rate

    @property
    def is_exclusive(self) -> bool:
        """Whether no subject does two things in one frame."""
        if (self.start[1:] >= self.stop[:-1]).all():
            return True
        for code in np.unique(self.subject):
            mine = self.subject == code
            kinds = np.unique(self.behavior[mine])
            parts = sum(iv.total(iv.union(self._spans(mine & (self.behavior == b)))) for b in kinds)
            if parts != iv.total(iv.union(self._spans(mine))):
                return False
        return True

    def names(self, codes: IntArray) -> list[str | None]:
        """Return the names of subject or target codes, None where nobody is named."""
        return [None if c == NOBODY else self.subjects[c] for c in codes]

    def spans(self, behavior: str | int, subject: str | None = None, target: str | None = None) -> Intervals:
        """Return the bouts of one behavior as intervals, as scored: they may touch or overlap."""
        code = self.ethogram.code(behavior) if isinstance(behavior, str) else behavior
        return self._spans(self._chosen(subject, target) & (self.behavior == code))

    def tracks(self) -> list[tuple[str, str | None, str | None]]:
        """List the (behavior, subject, target) combinations that occur."""
        seen = {*zip(self.behavior.tolist(), self.subject.tolist(), self.target.tolist(), strict=True)}
        name = {NOBODY: None, **dict(enumerate(self.subjects))}
        return [(self.ethogram[b].name, name[s], name[t]) for b, s, t in sorted(seen)]

    def take(self, chosen: ArrayLike) -> Self:
        """Keep the bouts at these places, or where this mask is true."""
        chosen = np.asarray(chosen)
        chosen = chosen if chosen.size else chosen.astype(np.int64 if chosen.dtype != bool else bool)
        return self._with_columns({name: column[chosen] for name, column in self._columns().items()})

    def select(self, subject: str | None = None, target: str | None = None) -> Self:
        """Keep the bouts of one subject, or towards one target; "" picks those that name none."""
        return self.take(self._chosen(subject, target))

    def without_subjects(self) -> Self:
        """Forget who did what to whom."""
        nobody = np.full(len(self), NOBODY)
        return replace(self._with_columns({**self._columns(), "subject": nobody, "target": nobody.copy()}), subjects=())

    def with_subject(self, subject: str) -> Self:
        """Say who did all this."""
        codes = np.zeros(len(self), dtype=np.int64)
        return replace(self._with_columns({**self._columns(), "subject": codes}), subjects=tuple(dict.fromkeys([subject, *self.subjects])))

    def drop_short(self, shorter_than: int) -> Self:
        """Drop bouts of fewer than `shorter_than` frames; point events stay."""
        points = np.array([b.point for b in self.ethogram], dtype=bool)
        is_point = points[self.behavior] if len(self) else np.zeros(0, dtype=bool)
        return self.take((self.stop - self.start >= shorter_than) | is_point)

    def merge_gaps(self, shorter_than: int) -> Self:
        """Join bouts of one track that lie fewer than `shorter_than` frames apart."""
        return self._per_track(lambda spans: iv.fill_gaps(spans, shorter_than))

    def merge_touching(self) -> Self:
        """Join bouts of one track that touch or overlap, as frames would show them."""
        return self._per_track(lambda spans: spans)

    def _spans(self, chosen: BoolArray) -> Intervals:
        return Intervals(self.start[chosen], self.stop[chosen])

    def _chosen(self, subject: str | None, target: str | None) -> BoolArray:
        chosen = np.ones(len(self), dtype=bool)
        for name, codes in ((subject, self.subject), (target, self.target)):
            if name == "":
                chosen &= codes == NOBODY
            elif name is not None:
                if name not in self.subjects:
                    raise NotFoundError(f"no subject {name!r}; there are: {', '.join(self.subjects) or 'none'}")
                chosen &= codes == self.subjects.index(name)
        return chosen

    def _columns(self) -> dict[str, NDArray[Any]]:
        names = ("start", "stop", "behavior", "subject", "target", "order", "confidence", "modifiers", "comment")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def _with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Self:
        return replace(self, **sort_columns(dict(columns)))

    def _per_track(self, change: Callable[[Intervals], Intervals]) -> Self:
        """Apply a change to the united spans of each track; each result keeps the details of its earliest bout."""
        keep: list[NDArray[Any]] = [np.flatnonzero(self.start == self.stop)]
        stops: list[NDArray[Any]] = [self.stop[keep[0]]]
        key = np.stack((self.behavior, self.subject, self.target))
        for track in np.unique(key, axis=1).T:
            places = np.flatnonzero((key == track[:, None]).all(axis=0) & (self.stop > self.start))
            spans = change(iv.union(Intervals(self.start[places], self.stop[places])))
            keep.append(places[np.searchsorted(self.start[places], spans.start)])
            stops.append(spans.stop)
        places, stop = np.concatenate(keep), np.concatenate(stops)
        columns = {name: column[places] for name, column in self._columns().items()}
        return self._with_columns({**columns, "stop": stop})
