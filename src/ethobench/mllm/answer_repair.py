"""Conversion of an answer's segments to bouts: times and labels are parsed, out-of-range times and overlaps repaired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.mllm.answer_segments import (
    BEHAVIOR,
    DURATION,
    START,
    STOP,
    LabelMatcher,
    parse_time,
    segment_fields,
    third_number_is_fraction,
)
from ethobench.mllm.repair_log import RepairLog

END_TOLERANCE = 1.0  # seconds; times are requested in whole seconds, so the last one may exceed the duration by up to one

Fields: TypeAlias = dict[str, tuple[str, Any]]
Times: TypeAlias = tuple[float | None, float | None]


@dataclass(frozen=True)
class BoutColumns:
    """Bouts in frames, in the order of the answer.

    Attributes
    ----------
    start, stop, behavior : array of int (n_bouts,)
    order : array of int (n_bouts,)
        Index of the segment in the answer.
    """

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    behavior: NDArray[np.int64]
    order: NDArray[np.int64]

    def select(self, rows: NDArray[Any]) -> BoutColumns:
        """Return the bouts at a boolean mask or at indices."""
        return BoutColumns(self.start[rows], self.stop[rows], self.behavior[rows], self.order[rows])


def repair_segments(
    segments: list[Any], labels: LabelMatcher, duration: float, rate: float, n_frames: int, log: RepairLog, *, exclusive: bool
) -> BoutColumns:
    """Convert segments to bouts.

    Parameters
    ----------
    segments : list
        As from `find_segments`.
    labels : LabelMatcher
    duration : float
        Duration of the video in seconds.
    rate : float
        Frame rate of the annotation in Hz.
    n_frames : int
    log : RepairLog
        Repairs and dropped segments are added to it.
    exclusive : bool
        Whether overlaps are removed.
    """
    rows = _read_rows(segments, labels, duration, log)
    start, stop = (np.array([row[k] for row in rows], dtype=float) for k in (0, 1))
    code, order = (np.array([row[k] for row in rows], dtype=np.int64) for k in (2, 3))
    point = np.array([b.point for b in labels.ethogram], dtype=bool)[code] if len(rows) else np.zeros(0, dtype=bool)

    reverse = stop < start
    log.add("reversed", count=int(reverse.sum()))
    early = ~reverse & (start < 0)
    log.add("negative", count=int(early.sum()))
    late = ~reverse & ((stop > duration + END_TOLERANCE) | (start >= duration))
    log.add("beyond", count=int(late.sum()))
    dropped = reverse | (start >= duration) | (stop < 0)
    first, last = (np.clip(np.floor(np.clip(t, 0, duration) * rate + 0.5), 0, n_frames).astype(np.int64) for t in (start, stop))
    empty = ~dropped & (first == last) & ~point
    log.add("empty", count=int(empty.sum()))
    last = np.where(point, first, last)
    bouts = BoutColumns(first, last, code, order).select(~dropped & ~empty)

    bouts = _drop_duplicates(bouts, log)
    if len(bouts.start) and (np.diff(bouts.start) < 0).any():
        log.add("unordered", count=int((np.diff(bouts.start) < 0).sum()))
    return _remove_overlaps(bouts, log) if exclusive else bouts


def _read_rows(segments: list[Any], labels: LabelMatcher, duration: float, log: RepairLog) -> list[tuple[float, float, int, int]]:
    """Return start, stop, behavior code and index of each segment that has a known behavior and times."""
    all_fields = [segment_fields(segment) if isinstance(segment, dict) else {} for segment in segments]
    time_values = [fields[role][1] for fields in all_fields for role in (START, STOP) if role in fields]
    has_fractions = third_number_is_fraction(time_values, duration)
    if has_fractions:
        log.add("time", "minutes:seconds:fraction")
    times = [_parse_times(fields, has_fractions, log) for fields in all_fields]
    rows = []
    for index, fields in enumerate(all_fields):
        if not fields:
            log.add("shape", segments[index])
            continue
        for role in (START, STOP, BEHAVIOR):
            if role in fields and fields[role][0] != role:
                log.add("key", fields[role][0])
        label = fields.get(BEHAVIOR, ("", None))[1]
        code = labels.code(label)
        if code is None:
            _log_unknown_label(label, labels, log)
            continue
        bounds = _complete_times(times, index, fields, log)
        if bounds is None:
            continue
        if label not in labels.ethogram:
            log.add("label", label)
        rows.append((*bounds, code, index))
    return rows


def _log_unknown_label(label: Any, labels: LabelMatcher, log: RepairLog) -> None:
    if label is None or label == "":
        log.add("incomplete", "no behavior")
    elif not labels.is_unnamed_background(label):
        log.add("unknown_label", label)


def _complete_times(times: list[Times], index: int, fields: Fields, log: RepairLog) -> tuple[float, float] | None:
    """Return start and stop of a segment, where missing those of its neighbors; None if a time is unreadable or still missing."""
    start, stop = times[index]
    first = start if start is not None else _time_of_neighbor(times, index - 1, 1, fields, START)
    last = stop if stop is not None else _time_of_neighbor(times, index + 1, 0, fields, STOP)
    if first is None or last is None:
        unreadable = any(role in fields and fields[role][1] not in (None, "") for role, t in ((START, start), (STOP, stop)) if t is None)
        log.add("unreadable" if unreadable else "incomplete", fields.get(START if first is None else STOP, ("", None))[1])
        return None
    log.add("missing", count=int(start is None) + int(stop is None))
    return first, last


def _parse_times(fields: Fields, has_fractions: bool, log: RepairLog) -> Times:
    """Return start and stop in seconds; None where missing or unreadable."""
    times: list[float | None] = []
    for role in (START, STOP):
        value = fields.get(role, ("", None))[1]
        if has_fractions and isinstance(value, str) and value.count(":") == 2:
            minutes_and_seconds, _, fraction = value.strip().rpartition(":")
            value = f"{minutes_and_seconds}.{fraction}"
        seconds, repair = parse_time(value)
        if seconds is not None and repair:
            log.add(repair, value)
        times.append(seconds)
    if times[1] is None and times[0] is not None and DURATION in fields:
        length = parse_time(fields[DURATION][1])[0]
        if length is not None:
            log.add("key", fields[DURATION][0])
            times[1] = times[0] + length
    return times[0], times[1]


def _time_of_neighbor(times: list[Times], index: int, side: int, fields: Fields, role: str) -> float | None:
    """Return the start (`side` 0) or stop (1) of the neighboring segment; None if the segment has a value of its own."""
    value = fields.get(role, ("", None))[1]
    if value not in (None, "") or not 0 <= index < len(times):
        return None
    return times[index][side]


def _drop_duplicates(bouts: BoutColumns, log: RepairLog) -> BoutColumns:
    if not len(bouts.start):
        return bouts
    _, first = np.unique(np.stack([bouts.start, bouts.stop, bouts.behavior]), axis=1, return_index=True)
    log.add("duplicate", count=len(bouts.start) - len(first))
    return bouts.select(np.sort(first))


def _remove_overlaps(bouts: BoutColumns, log: RepairLog) -> BoutColumns:
    """Assign each frame to the segment listed first. Later segments are shortened, split or dropped."""
    has_duration = bouts.stop > bouts.start
    by_start = np.argsort(bouts.start[has_duration], kind="stable")
    start, stop = bouts.start[has_duration][by_start], bouts.stop[has_duration][by_start]
    if not (start[1:] < np.maximum.accumulate(stop)[:-1]).any():
        return bouts
    edges = np.unique(np.concatenate([bouts.start, bouts.stop]))
    owner = _first_segments(np.searchsorted(edges, bouts.start).tolist(), np.searchsorted(edges, bouts.stop).tolist(), len(edges))
    change = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
    segment = owner[change[:-1]]
    pieces = BoutColumns(edges[change[:-1]], edges[change[1:]], bouts.behavior[segment], bouts.order[segment]).select(segment >= 0)
    points = bouts.select(~has_duration)
    frames_before, frames_after = bouts.stop - bouts.start, np.zeros(len(bouts.start), dtype=np.int64)
    np.add.at(frames_after, segment[segment >= 0], (pieces.stop - pieces.start))
    log.add("overlap", count=int((frames_before != frames_after).sum()))
    joined = [np.concatenate([getattr(pieces, name), getattr(points, name)]) for name in ("start", "stop", "behavior", "order")]
    return BoutColumns(*joined).select(np.argsort(joined[3], kind="stable"))


def _first_segments(first: list[int], last: list[int], n_edges: int) -> NDArray[np.int64]:
    """Return the index of the first listed segment that covers each interval between edges; -1 where none does.

    Each covered interval points to the next one that may be free (union-find), so many long overlapping segments take linear time.

    Parameters
    ----------
    first, last : list of int
        Edges at which the segments start and stop.
    n_edges : int
    """
    owner = np.full(n_edges, -1, dtype=np.int64)
    following = list(range(n_edges + 1))

    def next_free(k: int) -> int:
        path = []
        while following[k] != k:
            path.append(k)
            k = following[k]
        for visited in path:
            following[visited] = k
        return k

    for segment, (begin, end) in enumerate(zip(first, last, strict=True)):
        k = next_free(begin)
        while k < end:
            owner[k] = segment
            following[k] = k + 1
            k = next_free(k)
    return owner
