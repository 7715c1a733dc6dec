"""Checking and converting the columns of an `Annotation`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.ethogram import Ethogram
from ethobench.core.intervals import BoolArray, IntArray, Intervals
from ethobench.core.observed import Observed

FloatArray: TypeAlias = NDArray[np.float64]
TextArray: TypeAlias = NDArray[np.object_]

NOBODY = -1


def as_frames(values: ArrayLike, name: str) -> IntArray:
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
    if column is None:
        return np.full(n, NOBODY, dtype=np.int64)
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[str(s)] if is_named(s) else NOBODY for s in column], dtype=np.int64)


def check_clock(rate: float, n_frames: int) -> None:
    if not isinstance(rate, Real) or not np.isfinite(rate) or rate <= 0:
        raise EthobenchError(f"a rate is a positive number of frames per second, not {rate!r}")
    if not isinstance(n_frames, Real) or not np.isfinite(n_frames) or n_frames < 0 or int(n_frames) != n_frames:
        raise EthobenchError(f"a recording has a whole number of frames, not {n_frames!r}")


def check_bounds(start: IntArray, stop: IntArray, n_frames: int) -> None:
    for bad, what in (
        (stop < start, "stops before it starts"),
        (start < 0, "starts before the recording"),
        (stop > n_frames, f"stops after the last of {n_frames} frames"),
    ):
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise MismatchError(f"bout {i} (frames {start[i]} to {stop[i]}) {what}; {int(bad.sum())} such in all")


def as_observed(observed: Observed | Intervals | BoolArray | None, n_frames: int) -> Observed:
    if observed is None:
        return Observed.whole(n_frames)
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
    if unobserved is None:
        return None
    if np.isscalar(unobserved):
        return np.asarray(np.isnan(codes) if is_nan(unobserved) else codes == unobserved)
    mask = np.asarray(unobserved, dtype=bool)
    if mask.shape != codes.shape[:1]:
        raise MismatchError(f"the mask of unobserved frames has shape {mask.shape}, the recording {len(codes)} frames")
    return mask


def hidden_rows(frames: NDArray[Any], unobserved: int | ArrayLike | None) -> BoolArray | None:
    if unobserved is None or not np.isscalar(unobserved):
        return hidden_codes(frames, unobserved)
    return np.asarray((np.isnan(frames) if is_nan(unobserved) else frames == unobserved).all(axis=1))


def bouts_of_codes(codes: NDArray[Any], hidden: BoolArray | None, n_behaviors: int) -> tuple[IntArray, IntArray, IntArray]:
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
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        floats = a.dtype.kind == "f" and b.dtype.kind == "f"
        return np.array_equal(a, b, equal_nan=True) if floats else np.array_equal(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return bool(a == b)
