"""Columns of bouts on a frame clock: what an `Annotation` is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.ethogram import Ethogram
from ethobench.core.intervals import BoolArray, IntArray, Intervals
from ethobench.core.observed import Observed

FloatArray: TypeAlias = NDArray[np.float64]
TextArray: TypeAlias = NDArray[np.object_]

NO_SUBJECT = -1


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
        return [None if c == NO_SUBJECT else self.subjects[c] for c in codes]

    def spans(self, behavior: str | int, subject: str | None = None, target: str | None = None) -> Intervals:
        """Return the bouts of one behavior as intervals, as scored: they may touch or overlap."""
        code = self.ethogram.code(behavior) if isinstance(behavior, str) else behavior
        return self._spans(self._chosen(subject, target) & (self.behavior == code))

    def tracks(self) -> list[tuple[str, str | None, str | None]]:
        """List the (behavior, subject, target) combinations that occur."""
        seen = {*zip(self.behavior.tolist(), self.subject.tolist(), self.target.tolist(), strict=True)}
        name = {NO_SUBJECT: None, **dict(enumerate(self.subjects))}
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
        nobody = np.full(len(self), NO_SUBJECT)
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
                chosen &= codes == NO_SUBJECT
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


def as_frames(values: ArrayLike, name: str) -> IntArray:
    """Convert frame numbers to int64; refuse text, missing values and fractions."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iubf":
        raise MismatchError(f"{name} holds numbers, not {array.dtype}")
    if array.ndim != 1:
        raise MismatchError(f"{name} is one column of frames, not an array with {array.ndim} axes")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise MismatchError(f"{name} has missing or infinite entries")
    whole = array.astype(np.int64) if array.size else np.zeros(0, dtype=np.int64)
    if array.size and not np.array_equal(whole, array):
        raise MismatchError(f"{name} holds frames, which are whole numbers; times in seconds are converted when a file is read")
    return whole


def behavior_codes(behavior: Sequence[str] | ArrayLike, ethogram: Ethogram, n: int) -> IntArray:
    """Return the codes of behaviors (n,), from names or codes."""
    if isinstance(behavior, (list, tuple)) and all(isinstance(name, str) for name in behavior):
        codes_by_name = {name: ethogram.code(name) for name in dict.fromkeys(behavior)}  # an array of text would pad all to the longest
        return np.array([codes_by_name[name] for name in behavior], dtype=np.int64)
    values = np.asarray(behavior)
    if values.size and values.dtype.kind in "OUS":
        return np.array([ethogram.code(str(name)) for name in values.tolist()], dtype=np.int64)
    codes = as_frames(values.reshape(-1), "behavior") if values.size else np.zeros(0, dtype=np.int64)
    if codes.size and (codes.min() < 0 or codes.max() >= len(ethogram)):
        raise NotFoundError(f"behavior codes run from 0 to {len(ethogram) - 1}, but {codes.min()} to {codes.max()} were given")
    return codes


def names_of(subjects: Iterable[str], *columns: Sequence[str | None] | None) -> tuple[str, ...]:
    """Return all subject names, without duplicates: the ones listed first, then those in the columns, sorted."""
    names = dict.fromkeys(subjects)
    for column in columns:
        if isinstance(column, str):
            raise MismatchError(f"subjects and targets are one name for each bout, not the single text {column!r}")
        names.update(dict.fromkeys(sorted({str(s) for s in column if is_named(s)}) if column is not None else ()))
    return tuple(names)


def is_named(who: object) -> bool:
    """Whether an entry names somebody: not None, not empty, not NaN."""
    return bool(who) and not is_nan(who)


def subject_codes(column: Sequence[str | None] | None, names: tuple[str, ...], n: int) -> IntArray:
    """Return the codes of subjects or targets (n,); `NO_SUBJECT` where none is named."""
    if column is None:
        return np.full(n, NO_SUBJECT, dtype=np.int64)
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[str(s)] if is_named(s) else NO_SUBJECT for s in column], dtype=np.int64)


def check_clock(rate: float, n_frames: int) -> None:
    """Check that the rate is positive and the length an integer number of frames."""
    if not isinstance(rate, Real) or not np.isfinite(rate) or rate <= 0:
        raise EthobenchError(f"a rate is a positive number of frames per second, not {rate!r}")
    if not isinstance(n_frames, Real) or not np.isfinite(n_frames) or n_frames < 0 or int(n_frames) != n_frames:
        raise EthobenchError(f"a recording has a whole number of frames, not {n_frames!r}")


def check_bounds(start: IntArray, stop: IntArray, n_frames: int) -> None:
    """Check that each bout stops after it starts and lies within the recording."""
    for bad, what in (
        (stop < start, "stops before it starts"),
        (start < 0, "starts before the recording"),
        (stop > n_frames, f"stops after the last of {n_frames} frames"),
    ):
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise MismatchError(f"bout {i} (frames {start[i]} to {stop[i]}) {what}; {int(bad.sum())} such in all")


def as_observed(observed: Observed | Intervals | BoolArray | None, n_frames: int) -> Observed:
    """Return the observed frames as `Observed`, from any accepted type; None means all frames."""
    if observed is None:
        return Observed.full(n_frames)
    if isinstance(observed, Intervals):
        return Observed(iv.clip(observed, 0, n_frames))
    if isinstance(observed, Observed):
        return observed.apply(lambda a: iv.clip(a, 0, n_frames))
    mask = np.asarray(observed, dtype=bool)
    if mask.shape != (n_frames,):
        raise MismatchError(f"the mask of observed frames has shape {mask.shape}, the recording {n_frames} frames")
    return Observed(iv.from_mask(mask))


def sort_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Sort columns by start (then stop, behavior, subject, target, order) and make them read-only; they must be our own."""
    start = columns["start"]
    rises = start[1:] > start[:-1]
    order = None
    if not rises.all():
        order = np.argsort(start, kind="stable")
        if (start[order][1:] == start[order][:-1]).any():
            order = np.lexsort([columns[name] for name in ("order", "target", "subject", "behavior", "stop", "start")])
    result: dict[str, Any] = {}
    for name, column in columns.items():
        if column is None:
            result[name] = None
            continue
        result[name] = column if order is None else column[order]
        result[name].setflags(write=False)
    return result


def is_nan(value: object) -> bool:
    """Whether something is the number that is not one."""
    return isinstance(value, float) and bool(np.isnan(value))


def hidden_codes(codes: NDArray[Any], unobserved: int | ArrayLike | None) -> BoolArray | None:
    """Return the mask of unobserved frames (n_frames,) of a column of codes; None if all are observed."""
    if unobserved is None:
        return None
    if np.isscalar(unobserved):
        return np.asarray(np.isnan(codes) if is_nan(unobserved) else codes == unobserved)
    mask = np.asarray(unobserved, dtype=bool)
    if mask.shape != codes.shape[:1]:
        raise MismatchError(f"the mask of unobserved frames has shape {mask.shape}, the recording {len(codes)} frames")
    return mask


def hidden_rows(frames: NDArray[Any], unobserved: int | ArrayLike | None) -> BoolArray | None:
    """Return the mask of unobserved frames (n_frames,) of one-hot frames; None if all are observed."""
    if unobserved is None or not np.isscalar(unobserved):
        return hidden_codes(frames, unobserved)
    return np.asarray((np.isnan(frames) if is_nan(unobserved) else frames == unobserved).all(axis=1))


def bouts_of_codes(codes: NDArray[Any], hidden: BoolArray | None, n_behaviors: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return start, stop and behavior of the runs of equal codes (n_frames,)."""
    visible = codes if hidden is None else np.where(hidden, n_behaviors, codes)
    runs = iv.encode_runs(visible)
    if not np.isfinite(runs.values).all() or not np.array_equal(np.floor(runs.values), runs.values):
        raise EthobenchError("frame codes are whole numbers; mark missing ones with unobserved=mask")
    values = runs.values.astype(np.int64)
    bad = (values < 0) | (values > n_behaviors)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise NotFoundError(f"frame {runs.start[first]} has code {values[first]}, but codes run from 0 to {n_behaviors - 1}")
    keep = values < n_behaviors
    return runs.start[keep], runs.stop[keep], values[keep]


def bouts_of_columns(frames: NDArray[Any], hidden: BoolArray | None) -> tuple[IntArray, IntArray, IntArray]:
    """Return start, stop and behavior of the runs of ones in each column of one-hot frames (n_frames, n_behaviors)."""
    parts = []
    for code in range(frames.shape[1]):
        column = np.ascontiguousarray(frames[:, code])
        on = column if column.dtype == bool else column == 1
        if hidden is not None:
            column, on = column[~hidden], on & ~hidden
        if column.dtype != bool and not (on.sum() + (column == 0).sum() == len(column)):
            raise EthobenchError(
                "one-hot frames hold only 0 and 1; probabilities belong in a Prediction, missing rows are marked with unobserved="
            )
        parts.append(iv.from_mask(on))
    behavior = np.repeat(np.arange(len(parts)), [len(p.start) for p in parts])
    start = np.concatenate([p.start for p in parts]) if parts else np.zeros(0, dtype=np.int64)
    stop = np.concatenate([p.stop for p in parts]) if parts else np.zeros(0, dtype=np.int64)
    return start, stop, behavior


def scale(frames: IntArray, ratio: float) -> IntArray:
    """Convert frame numbers to another clock, rounded half up."""
    scaled: IntArray = np.floor(frames * ratio + 0.5).astype(np.int64)
    return scaled


def optional_numbers(column: ArrayLike | None) -> FloatArray | None:
    """Return a column of numbers, or None where it says nothing."""
    if column is None:
        return None
    try:
        values = np.array(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise MismatchError("confidence is a number for each bout, or NaN") from None
    return None if np.isnan(values).all() else values


def optional_texts(column: Sequence[str] | None) -> TextArray | None:
    """Return a column of texts, or None where it says nothing."""
    return None if column is None or not any(column) else np.array([text or "" for text in column], dtype=object)


def same(a: Any, b: Any) -> bool:
    """Compare two fields of an annotation; NaN equals NaN."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        floats = a.dtype.kind == "f" and b.dtype.kind == "f"
        return np.array_equal(a, b, equal_nan=True) if floats else np.array_equal(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return bool(a == b)
