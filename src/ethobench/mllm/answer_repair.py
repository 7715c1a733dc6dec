"""X"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    third_field_is_fraction,
)
from ethobench.mllm.repair_log import RepairLog

ROUNDING = 1.0  # times are asked for in whole seconds, so an end may lie up to one beyond the video's


@dataclass(frozen=True)
class BoutColumns:
    """Bouts in frames, in the order in which they were listed."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    behavior: NDArray[np.int64]
    order: NDArray[np.int64]

    def take(self, kept: NDArray[Any]) -> BoutColumns:
        """Keep some of the bouts."""
        return BoutColumns(self.start[kept], self.stop[kept], self.behavior[kept], self.order[kept])


def mend(segments: list[Any], labels: LabelMatcher, duration: float, rate: float, n_frames: int, log: RepairLog, *, exclusive: bool) -> BoutColumns:
    """Return the bouts that segments stand for; the log tells what was mended or dropped."""
    rows = _read_rows(segments, labels, duration, log)
    start, stop = (np.array([row[k] for row in rows], dtype=float) for k in (0, 1))
    code, order = (np.array([row[k] for row in rows], dtype=np.int64) for k in (2, 3))
    point = np.array([b.point for b in labels.ethogram], dtype=bool)[code] if len(rows) else np.zeros(0, dtype=bool)

    reverse = stop < start
    log.add("reversed", count=int(reverse.sum()))
    early = ~reverse & (start < 0)
    log.add("negative", count=int(early.sum()))
    late = ~reverse & ((stop > duration + ROUNDING) | (start >= duration))
    log.add("beyond", count=int(late.sum()))
    gone = reverse | (start >= duration) | (stop < 0)
    first, last = (np.clip(np.floor(np.clip(t, 0, duration) * rate + 0.5), 0, n_frames).astype(np.int64) for t in (start, stop))
    empty = ~gone & (first == last) & ~point
    log.add("empty", count=int(empty.sum()))
    last = np.where(point, first, last)
    bouts = BoutColumns(first, last, code, order).take(~gone & ~empty)

    bouts = _without_duplicates(bouts, log)
    if len(bouts.start) and (np.diff(bouts.start) < 0).any():
        log.add("unordered", count=int((np.diff(bouts.start) < 0).sum()))
    return _without_overlaps(bouts, log) if exclusive else bouts


def _read_rows(segments: list[Any], labels: LabelMatcher, duration: float, log: RepairLog) -> list[tuple[float, float, int, int]]:
    """Return start, stop, code and place of every segment that names a behavior and times."""
    parts = [segment_fields(segment) if isinstance(segment, dict) else {} for segment in segments]
    shifted = third_field_is_fraction([part[role][1] for part in parts for role in (START, STOP) if role in part], duration)
    if shifted:
        log.add("time", "minutes:seconds:fraction")
    times = [_times(part, shifted, log) for part in parts]
    rows = []
    for place, (part, (start, stop)) in enumerate(zip(parts, times, strict=True)):
        if not part:
            log.add("shape", segments[place])
            continue
        for role in (START, STOP, BEHAVIOR):
            if role in part and part[role][0] != role:
                log.add("key", part[role][0])
        word = part.get(BEHAVIOR, ("", None))[1]
        code = labels.code(word)
        if code is None:
            if word is None or word == "":
                log.add("incomplete", "no behavior")
            elif not labels.means_nothing(word):
                log.add("unknown_label", word)
            continue
        first = start if start is not None else _neighbour(times, place - 1, 1, part, START)
        last = stop if stop is not None else _neighbour(times, place + 1, 0, part, STOP)
        if first is None or last is None:
            unreadable = any(role in part and part[role][1] not in (None, "") for role, t in ((START, start), (STOP, stop)) if t is None)
            log.add("unreadable" if unreadable else "incomplete", part.get(START if first is None else STOP, ("", None))[1])
            continue
        log.add("missing", count=int(start is None) + int(stop is None))
        if word not in labels.ethogram:
            log.add("label", word)
        rows.append((first, last, code, place))
    return rows


def _times(part: dict[str, tuple[str, Any]], shifted: bool, log: RepairLog) -> tuple[float | None, float | None]:
    """Return start and stop in seconds; None where missing or unreadable."""
    found: list[float | None] = []
    for role in (START, STOP):
        value = part.get(role, ("", None))[1]
        if shifted and isinstance(value, str) and value.count(":") == 2:
            whole, _, fraction = value.strip().rpartition(":")
            value = f"{whole}.{fraction}"
        seconds, repair = parse_time(value)
        if seconds is not None and repair:
            log.add(repair, value)
        found.append(seconds)
    if found[1] is None and found[0] is not None and DURATION in part:
        length = parse_time(part[DURATION][1])[0]
        if length is not None:
            log.add("key", part[DURATION][0])
            found[1] = found[0] + length
    return found[0], found[1]


def _neighbour(
    times: list[tuple[float | None, float | None]], place: int, side: int, part: dict[str, tuple[str, Any]], role: str
) -> float | None:
    """Return the time at which the neighbouring segment touches this one, where this one's is missing altogether."""
    given = part.get(role, ("", None))[1]
    if given not in (None, "") or not 0 <= place < len(times):
        return None
    return times[place][side]


def _without_duplicates(bouts: BoutColumns, log: RepairLog) -> BoutColumns:
    if not len(bouts.start):
        return bouts
    _, first = np.unique(np.stack([bouts.start, bouts.stop, bouts.behavior]), axis=1, return_index=True)
    log.add("duplicate", count=len(bouts.start) - len(first))
    return bouts.take(np.sort(first))


def _without_overlaps(bouts: BoutColumns, log: RepairLog) -> BoutColumns:
    """Give every stretch to the segment listed first; a segment may be shortened, split or lost by that."""
    lasting = bouts.stop > bouts.start
    by_start = np.argsort(bouts.start[lasting], kind="stable")
    start, stop = bouts.start[lasting][by_start], bouts.stop[lasting][by_start]
    if not (start[1:] < np.maximum.accumulate(stop)[:-1]).any():
        return bouts
    edges = np.unique(np.concatenate([bouts.start, bouts.stop]))
    owner = _claim(np.searchsorted(edges, bouts.start).tolist(), np.searchsorted(edges, bouts.stop).tolist(), len(edges))
    change = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
    kept = owner[change[:-1]]
    pieces = BoutColumns(edges[change[:-1]], edges[change[1:]], bouts.behavior[kept], bouts.order[kept]).take(kept >= 0)
    points = bouts.take(~lasting)
    before, after = np.zeros(len(bouts.start), dtype=np.int64), np.zeros(len(bouts.start), dtype=np.int64)
    before[:] = bouts.stop - bouts.start
    np.add.at(after, kept[kept >= 0], (pieces.stop - pieces.start))
    log.add("overlap", count=int((before != after).sum()))
    joined = [np.concatenate([getattr(pieces, name), getattr(points, name)]) for name in ("start", "stop", "behavior", "order")]
    return BoutColumns(*joined).take(np.argsort(joined[3], kind="stable"))


def _claim(first: list[int], last: list[int], n_edges: int) -> NDArray[np.int64]:
    """Let segments claim the stretches between edges in turn; return each stretch's owner, -1 where there is none.

    A stretch that is taken points to the next that may be free, so that long overlapping segments cost no more than short ones.
    """
    owner = np.full(n_edges, -1, dtype=np.int64)
    following = list(range(n_edges + 1))

    def free_from(k: int) -> int:
        path = []
        while following[k] != k:
            path.append(k)
            k = following[k]
        for seen in path:
            following[seen] = k
        return k

    for segment, (begin, end) in enumerate(zip(first, last, strict=True)):
        k = free_from(begin)
        while k < end:
            owner[k] = segment
            following[k] = k + 1
            k = free_from(k)
    return owner
