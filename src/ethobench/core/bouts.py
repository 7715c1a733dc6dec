"""Bouts as columns on a frame clock: the base class of `Annotation`, and the conversion and checks of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError, NotFoundError, ParameterError
from ethobench.core.ethogram import Ethogram
from ethobench.core.intervals import BoolArray, IntArray, Intervals
from ethobench.core.observed import Observed

FloatArray: TypeAlias = NDArray[np.float64]
TextArray: TypeAlias = NDArray[np.object_]

NO_SUBJECT = -1
"""Code of a bout without a subject or target."""

COLUMNS = ("start", "stop", "behavior", "subject", "target", "order", "confidence", "modifiers", "comment")


@dataclass(frozen=True, eq=False)
class Bouts:
    """The columns of an annotation, and operations on single bouts. See `Annotation` for the attributes."""

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
        return all(is_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    @property
    def duration(self) -> float:
        """Length of the recording in seconds."""
        return self.n_frames / self.rate

    @property
    def is_exclusive(self) -> bool:
        """Whether no subject shows two behaviors in one frame."""
        if (self.start[1:] >= self.stop[:-1]).all():
            return True
        for code in np.unique(self.subject):
            of_subject = self.subject == code
            behaviors = np.unique(self.behavior[of_subject])
            n_frames = sum(iv.total(iv.union(self._spans(of_subject & (self.behavior == b)))) for b in behaviors)
            if n_frames != iv.total(iv.union(self._spans(of_subject))):
                return False
        return True

    def names(self, codes: IntArray) -> list[str | None]:
        """Return the names of subject or target codes; None for bouts without one."""
        return [None if c == NO_SUBJECT else self.subjects[c] for c in codes]

    def spans(self, behavior: str | int, subject: str | None = None, target: str | None = None) -> Intervals:
        """Return the bouts of one behavior as intervals, as annotated: they may touch or overlap.

        Parameters
        ----------
        behavior : str or int
            Name or code.
        subject, target : str, optional
            Only bouts of this subject, or towards this target; "" selects bouts without one.
        """
        code = self.ethogram.code(behavior) if isinstance(behavior, str) else behavior
        return self._spans(self._select(subject, target) & (self.behavior == code))

    def tracks(self) -> list[tuple[str, str | None, str | None]]:
        """Return the (behavior, subject, target) combinations that occur."""
        combinations = {*zip(self.behavior.tolist(), self.subject.tolist(), self.target.tolist(), strict=True)}
        name = {NO_SUBJECT: None, **dict(enumerate(self.subjects))}
        return [(self.ethogram[b].name, name[s], name[t]) for b, s, t in sorted(combinations)]

    def take(self, selection: ArrayLike) -> Self:
        """Keep the bouts with these indices, or where this mask (n_bouts,) is true."""
        selection = np.asarray(selection)
        selection = selection if selection.size else selection.astype(np.int64 if selection.dtype != bool else bool)
        return self._with_columns({name: column[selection] for name, column in self._columns().items()})

    def select(self, subject: str | None = None, target: str | None = None) -> Self:
        """Keep the bouts of one subject, or towards one target; "" selects bouts without one."""
        return self.take(self._select(subject, target))

    def without_subjects(self) -> Self:
        """Remove subjects and targets."""
        codes = np.full(len(self), NO_SUBJECT)
        return replace(self._with_columns({**self._columns(), "subject": codes, "target": codes.copy()}), subjects=())

    def with_subject(self, subject: str) -> Self:
        """Set the subject of all bouts."""
        codes = np.zeros(len(self), dtype=np.int64)
        return replace(self._with_columns({**self._columns(), "subject": codes}), subjects=tuple(dict.fromkeys([subject, *self.subjects])))

    def drop_short(self, shorter_than: int) -> Self:
        """Drop bouts shorter than `shorter_than` frames; point events are kept."""
        points = np.array([b.point for b in self.ethogram], dtype=bool)
        is_point = points[self.behavior] if len(self) else np.zeros(0, dtype=bool)
        return self.take((self.stop - self.start >= shorter_than) | is_point)

    def merge_gaps(self, shorter_than: int) -> Self:
        """Merge bouts of one track whose gap is shorter than `shorter_than` frames."""
        return self._per_track(lambda spans: iv.fill_gaps(spans, shorter_than))

    def merge_touching(self) -> Self:
        """Merge bouts of one track that touch or overlap, as they do in a frame array."""
        return self._per_track(lambda spans: spans)

    def _spans(self, selection: BoolArray) -> Intervals:
        return Intervals(self.start[selection], self.stop[selection])

    def _select(self, subject: str | None, target: str | None) -> BoolArray:
        """Return the mask (n_bouts,) of the bouts of a subject towards a target."""
        selection = np.ones(len(self), dtype=bool)
        for name, codes in ((subject, self.subject), (target, self.target)):
            if name == "":
                selection &= codes == NO_SUBJECT
            elif name is not None:
                if name not in self.subjects:
                    raise NotFoundError(f"no subject {name!r}; available: {', '.join(self.subjects) or 'none'}")
                selection &= codes == self.subjects.index(name)
        return selection

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in COLUMNS if getattr(self, name) is not None}

    def _with_columns(self, columns: Mapping[str, NDArray[Any]]) -> Self:
        return replace(self, **sort_columns(dict(columns)))

    def _per_track(self, change: Callable[[Intervals], Intervals]) -> Self:
        """Apply a change to the united spans of each track; each result keeps the details of its earliest bout."""
        rows: list[NDArray[Any]] = [np.flatnonzero(self.start == self.stop)]
        stops: list[NDArray[Any]] = [self.stop[rows[0]]]
        key = np.stack((self.behavior, self.subject, self.target))
        for track in np.unique(key, axis=1).T:
            of_track = np.flatnonzero((key == track[:, None]).all(axis=0) & (self.stop > self.start))
            spans = change(iv.union(Intervals(self.start[of_track], self.stop[of_track])))
            rows.append(of_track[np.searchsorted(self.start[of_track], spans.start)])
            stops.append(spans.stop)
        row, stop = np.concatenate(rows), np.concatenate(stops)
        columns = {name: column[row] for name, column in self._columns().items()}
        return self._with_columns({**columns, "stop": stop})


# Conversion and checks of columns


def as_frames(values: ArrayLike, name: str) -> IntArray:
    """Convert frame numbers to int64 (n,); refuse text, missing values and fractions."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iubf":
        raise MismatchError(f"`{name}` must be numbers, got {array.dtype}")
    if array.ndim != 1:
        raise MismatchError(f"`{name}` must have 1 axis, got {array.ndim}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise MismatchError(f"`{name}` has missing or infinite values")
    frames = array.astype(np.int64) if array.size else np.zeros(0, dtype=np.int64)
    if array.size and not np.array_equal(frames, array):
        raise MismatchError(f"`{name}` must be frame numbers (integers); multiply times in seconds by the rate and round")
    return frames


def behavior_codes(behavior: Sequence[str] | ArrayLike, ethogram: Ethogram) -> IntArray:
    """Return the codes of behaviors (n,), from names or codes."""
    if isinstance(behavior, (list, tuple)) and all(isinstance(name, str) for name in behavior):
        codes_by_name = {name: ethogram.code(name) for name in dict.fromkeys(behavior)}  # an array of text would pad all to the longest
        return np.array([codes_by_name[name] for name in behavior], dtype=np.int64)
    values = np.asarray(behavior)
    if values.size and values.dtype.kind in "OUS":
        return np.array([ethogram.code(str(name)) for name in values.tolist()], dtype=np.int64)
    codes = as_frames(values.reshape(-1), "behavior") if values.size else np.zeros(0, dtype=np.int64)
    if codes.size and (codes.min() < 0 or codes.max() >= len(ethogram)):
        raise NotFoundError(f"behavior codes must be from 0 to {len(ethogram) - 1}, got {codes.min()} to {codes.max()}")
    return codes


def subject_names(subjects: Iterable[str], *columns: Sequence[str | None] | None) -> tuple[str, ...]:
    """Return all subject names without duplicates: the listed ones first, then those in the columns, sorted."""
    names = dict.fromkeys(subjects)
    for column in columns:
        if isinstance(column, str):
            raise MismatchError(f"subjects and targets must be one name per bout, got the text {column!r}")
        names.update(dict.fromkeys(sorted({str(s) for s in column if _is_named(s)}) if column is not None else ()))
    return tuple(names)


def subject_codes(column: Sequence[str | None] | None, names: tuple[str, ...], n: int) -> IntArray:
    """Return the codes of subjects or targets (n,); `NO_SUBJECT` for bouts without one."""
    if column is None:
        return np.full(n, NO_SUBJECT, dtype=np.int64)
    code = {name: i for i, name in enumerate(names)}
    return np.array([code[str(s)] if _is_named(s) else NO_SUBJECT for s in column], dtype=np.int64)


def check_clock(rate: float, n_frames: int) -> None:
    """Check that the rate is positive, and the length an integer >= 0."""
    if not isinstance(rate, Real) or not np.isfinite(rate) or rate <= 0:
        raise ParameterError(f"`rate` must be a positive number of frames per second, got {rate!r}")
    if not isinstance(n_frames, Real) or not np.isfinite(n_frames) or n_frames < 0 or int(n_frames) != n_frames:
        raise ParameterError(f"`n_frames` must be an integer >= 0, got {n_frames!r}")


def check_bounds(start: IntArray, stop: IntArray, n_frames: int) -> None:
    """Check that each bout stops after it starts and lies within the recording."""
    for is_bad, problem in (
        (stop < start, "stops before it starts"),
        (start < 0, "starts before the recording"),
        (stop > n_frames, f"stops after the last of {n_frames} frames"),
    ):
        if is_bad.any():
            i = int(np.flatnonzero(is_bad)[0])
            raise MismatchError(f"bout {i} (frames {start[i]} to {stop[i]}) {problem}; {int(is_bad.sum())} such bouts in total")


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
    """Sort columns by start (then stop, behavior, subject, target, order) and make them read-only; the arrays must not be shared."""
    start = columns["start"]
    order = None
    if not (start[1:] > start[:-1]).all():
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


def unobserved_mask(frames: NDArray[Any], unobserved: int | ArrayLike | None) -> BoolArray | None:
    """Return the mask of unobserved frames (n_frames,); None if all are observed.

    Parameters
    ----------
    frames : array (n_frames,) or (n_frames, n_behaviors)
    unobserved : int or mask (n_frames,) or None
        The value that marks unobserved frames (NaN is allowed; in one-hot frames, all columns must have it), or the mask itself.
    """
    if unobserved is None:
        return None
    if np.isscalar(unobserved):
        mask = np.asarray(np.isnan(frames) if _is_nan(unobserved) else frames == unobserved)
        return np.asarray(mask.all(axis=1)) if frames.ndim == 2 else mask
    mask = np.asarray(unobserved, dtype=bool)
    if mask.shape != frames.shape[:1]:
        raise MismatchError(f"the mask of unobserved frames has shape {mask.shape}, the recording {len(frames)} frames")
    return mask


def bouts_from_codes(codes: NDArray[Any], unobserved: BoolArray | None, n_behaviors: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return start, stop and behavior of the runs of equal codes (n_frames,)."""
    runs = iv.encode_runs(codes if unobserved is None else np.where(unobserved, n_behaviors, codes))
    if not np.isfinite(runs.values).all() or not np.array_equal(np.floor(runs.values), runs.values):
        raise MismatchError("frame codes must be integers; mark missing frames with unobserved=mask")
    values = runs.values.astype(np.int64)
    is_bad = (values < 0) | (values > n_behaviors)
    if is_bad.any():
        first = int(np.flatnonzero(is_bad)[0])
        raise NotFoundError(f"frame {runs.start[first]} has code {values[first]}, but codes must be from 0 to {n_behaviors - 1}")
    keep = values < n_behaviors
    return runs.start[keep], runs.stop[keep], values[keep]


def bouts_from_one_hot(frames: NDArray[Any], unobserved: BoolArray | None) -> tuple[IntArray, IntArray, IntArray]:
    """Return start, stop and behavior of the runs of ones in each column (n_frames, n_behaviors)."""
    spans = []
    for code in range(frames.shape[1]):
        column = np.ascontiguousarray(frames[:, code])
        is_on = column if column.dtype == bool else column == 1
        if unobserved is not None:
            column, is_on = column[~unobserved], is_on & ~unobserved
        if column.dtype != bool and not (is_on.sum() + (column == 0).sum() == len(column)):
            raise MismatchError("one-hot frames must be 0 or 1; use a Prediction for probabilities, and unobserved= for missing rows")
        spans.append(iv.from_mask(is_on))
    behavior = np.repeat(np.arange(len(spans)), [len(s.start) for s in spans])
    start = np.concatenate([s.start for s in spans]) if spans else np.zeros(0, dtype=np.int64)
    stop = np.concatenate([s.stop for s in spans]) if spans else np.zeros(0, dtype=np.int64)
    return start, stop, behavior


def scale_frames(frames: IntArray, ratio: float) -> IntArray:
    """Convert frame numbers to another clock, rounded half up."""
    scaled: IntArray = np.floor(frames * ratio + 0.5).astype(np.int64)
    return scaled


def optional_numbers(column: ArrayLike | None) -> FloatArray | None:
    """Return a column of numbers as float64; None if all are missing."""
    if column is None:
        return None
    try:
        values = np.array(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise MismatchError("`confidence` must be one number per bout, or NaN") from None
    return None if np.isnan(values).all() else values


def optional_texts(column: Sequence[str] | None) -> TextArray | None:
    """Return a column of texts; None if all are empty."""
    return None if column is None or not any(column) else np.array([text or "" for text in column], dtype=object)


def is_equal(a: Any, b: Any) -> bool:
    """Compare two fields of an annotation; NaN equals NaN."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        are_floats = a.dtype.kind == "f" and b.dtype.kind == "f"
        return np.array_equal(a, b, equal_nan=True) if are_floats else np.array_equal(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return bool(a == b)


def _is_named(name: object) -> bool:
    """Whether an entry names a subject: not None, not empty, not NaN."""
    return bool(name) and not _is_nan(name)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and bool(np.isnan(value))
