"""Segments as a plain list, however an answer arranges them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ethobench.mllm.fields import BEHAVIOR, START, STOP, Labels, fields_of, read_time, role_of
from ethobench.mllm.ledger import Ledger

MAX_SEGMENTS = 200_000
MAX_DEPTH = 6
MAX_PLACES = 50_000
LOOKED_AT = 20
SEGMENTS = "segments"
LISTS = frozenset({SEGMENTS, "annotations", "annotation", "bouts", "events", "intervals", "results", "result", "behaviors", "behaviours"})


def segments_of(values: list[Any], labels: Labels, ledger: Ledger) -> list[Any] | None:
    """Return the segments that JSON values hold; None where they hold none, and an empty list where they say so.

    Taken as asked for: an object with ``segments``, or a bare list. Also understood, and counted as ``shape``: other names of
    the list, nested objects, numbered segments, one object alone or many one after the other, ``[start, end, behavior]``,
    columns, and lists of intervals by behavior.
    """
    found: list[tuple[list[Any], bool]] = []
    search = _Search(labels)
    for value in values:
        if value == [] and len(values) > 1:
            continue  # one of many brackets in a text says nothing
        asked_for = _as_asked(value)
        segments = asked_for if asked_for is not None else search.within(value)
        if segments is not None:
            found.append((segments, asked_for is not None))
    if not found:
        return None
    if len(found) > 1 and all(len(segments) == 1 and not plain for segments, plain in found):
        ledger.add("shape")
        return [segments[0] for segments, _ in found]
    if len(found) > 1:
        ledger.add("several", count=len(found) - 1)
    best: list[Any]
    best, plain = max(reversed(found), key=lambda part: len(part[0]))
    ledger.add("shape", count=int(not plain))
    return best


def _as_asked(value: Any) -> list[Any] | None:
    items: Any = value.get(SEGMENTS) if isinstance(value, dict) else value
    if not isinstance(items, list) or (items and not any(_is_segment(item) for item in items[:LOOKED_AT])):
        return None
    return list(items)


class _Search:
    """Looks for segments inside values; the longest list counts, and only so many places are looked at."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.places_left = MAX_PLACES

    def within(self, value: Any, depth: int = 0) -> list[Any] | None:
        self.places_left -= 1
        if depth > MAX_DEPTH or self.places_left < 0:
            return None
        if isinstance(value, list):
            return self._in_list(value, depth)
        if not isinstance(value, dict):
            return None
        if _is_segment(value):
            return [value]
        made = _of_columns(value) or _of_labels(value, self.labels)
        if made is not None:
            return made
        inside = self._deeper(value.values(), depth)
        if inside:
            numbered = len(inside) > 1 and all(len(part) == 1 for part in inside)
            return [part[0] for part in inside] if numbered else max(inside, key=len)
        empty = [item for key, item in value.items() if str(key).lower() in LISTS and item == []]
        return [] if empty else None

    def _in_list(self, items: list[Any], depth: int) -> list[Any] | None:
        head = items[:LOOKED_AT]
        if any(_is_segment(item) for item in head):
            return items
        if any(_is_triple(item) for item in head):
            return [_of_triple(item) if _is_triple(item) else item for item in items]
        return max(self._deeper(items, depth), key=len, default=None)

    def _deeper(self, items: Iterable[Any], depth: int) -> list[list[Any]]:
        found = []
        for item in items:
            if self.places_left < 0:
                break
            if isinstance(item, (list, dict)) and (part := self.within(item, depth + 1)):
                found.append(part)
        return found


def _is_segment(item: Any) -> bool:
    """Whether an object has at least two of the three fields, as single values."""
    return isinstance(item, dict) and sum(not isinstance(v, (list, dict)) for _, v in fields_of(_few(item)).values()) >= 2


def _few(item: dict[str, Any]) -> dict[str, Any]:
    return item if len(item) <= LOOKED_AT else {key: item[key] for key in list(item)[:LOOKED_AT]}


def _is_triple(item: Any) -> bool:
    if not isinstance(item, list) or not 3 <= len(item) <= 4:
        return False
    times = [read_time(part)[0] is not None for part in item]
    return sum(times) >= 2 and any(isinstance(part, str) and not time for part, time in zip(item, times, strict=True))


def _of_triple(item: list[Any]) -> dict[str, Any]:
    times = [part for part in item if read_time(part)[0] is not None][-2:]
    word = next(part for part in item if isinstance(part, str) and read_time(part)[0] is None)
    return {START: times[0], STOP: times[1], BEHAVIOR: word}


def _of_columns(value: dict[str, Any]) -> list[Any] | None:
    """Turn lists of starts, ends and behaviors into segments."""
    columns = {role: item for key, item in _few(value).items() if isinstance(item, list) and (role := role_of(str(key)))}
    if not {START, STOP, BEHAVIOR} <= {*columns}:
        return None
    if any(isinstance(item, (list, dict)) for column in columns.values() for item in column[:1]):
        return None
    rows = zip(columns[START], columns[STOP], columns[BEHAVIOR], strict=False)
    return [{START: start, STOP: stop, BEHAVIOR: word} for start, stop, word in rows]


def _of_labels(value: dict[str, Any], labels: Labels) -> list[Any] | None:
    """Turn lists of intervals by behavior into segments."""
    by_label = {key: item for key, item in _few(value).items() if isinstance(item, list) and labels.code(key) is not None}
    if not by_label or len(by_label) < len(_few(value)) or not any(by_label.values()):
        return None
    made: list[Any] = []
    for word, intervals in by_label.items():
        for interval in intervals:
            if isinstance(interval, list) and len(interval) == 2:
                made.append({START: interval[0], STOP: interval[1], BEHAVIOR: word})
            elif isinstance(interval, dict):
                made.append({**interval, BEHAVIOR: word})
            else:
                made.append(interval)
    return made
