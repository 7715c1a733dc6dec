"""X"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from ethobench.core import Ethogram
from ethobench.core.ethogram import BACKGROUND_NAMES
from ethobench.formats.text import parse_clock
from ethobench.mllm.repair_log import RepairLog

START, STOP, BEHAVIOR, DURATION = "start_time", "end_time", "behavior", "duration"
CANONICAL = (START, STOP, BEHAVIOR)
WORDS = {
    START: ("start", "begin", "onset", "from"),
    STOP: ("end", "stop", "finish", "offset", "until", "to"),
    BEHAVIOR: ("behav", "label", "action", "activity", "class", "category", "event", "type", "name"),
    DURATION: ("duration", "length"),
}
LONGEST_WORD = 100
MANY_LABELS = 1_000
NEAR = 0.8
CLEARLY = 0.04
NEGATIONS = ("not", "no", "non", "without")
SPOKEN = re.compile(r"(?:(\d{1,4})\s*h[a-z]*\.?)?\s*(?:(\d{1,6})\s*m[a-z]*\.?)?\s*(?:(\d{1,8}(?:[.,]\d*)?)\s*s[a-z]*\.?)?", re.IGNORECASE)
COLONS = re.compile(r"\d{1,6}(?::\d{1,6}){1,3}(?:[.,]\d{0,9})?")


def field_role(key: str) -> str | None:
    """Return which field a name stands for: one of `CANONICAL`, ``"duration"``, or None.

    >>> field_role("end_long_time"), field_role("Behaviour"), field_role("from"), field_role("segment_number")
    ('end_time', 'behavior', 'start_time', None)
    """
    return _role_of(key[:LONGEST_WORD])


@lru_cache(maxsize=4096)
def _role_of(key: str) -> str | None:
    plain = re.sub(r"[^a-z]+", "_", key.lower()).strip("_")
    parts = plain.split("_")
    for role, words in WORDS.items():
        if any(part == word or (len(word) > 3 and part.startswith(word)) for part in parts for word in words):
            return role
    for role, words in WORDS.items():
        if any(len(word) > 2 and word in plain for word in words[:3]):
            return role
    return None


def segment_fields(segment: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return the fields of a segment by role, each with the name it had; canonical names come first."""
    found: dict[str, tuple[str, Any]] = {role: (role, segment[role]) for role in CANONICAL if role in segment}
    for key, value in segment.items():
        role = field_role(str(key)) if str(key) not in CANONICAL else None
        if role is not None:
            found.setdefault(role, (str(key), value))
    return found


class LabelMatcher:
    """Finds the behavior that a word stands for.

    Parameters
    ----------
    ethogram : Ethogram
    aliases : mapping of str to str
        Other words to behaviors' names.
    """

    def __init__(self, ethogram: Ethogram, aliases: Mapping[str, str] | None = None) -> None:
        self.ethogram = ethogram
        self._plain = {normalize_label(word): ethogram.code(name) for word, name in (aliases or {}).items()}
        self._plain |= {normalize_label(name): code for code, name in enumerate(ethogram.names)}
        self._known: dict[str, int | None] = {}

    def code(self, word: Any) -> int | None:
        """Return a behavior's code, or None if the word is no behavior's name, nor near one."""
        if isinstance(word, list) and len(word) == 1:
            word = word[0]
        if not isinstance(word, str):
            return None
        if word in self.ethogram:
            return self.ethogram.code(word)
        word = word[:LONGEST_WORD]
        if word not in self._known:
            looks_like = self._near if len(self._known) < MANY_LABELS else self._plain.get
            found = looks_like(normalize_label(word))
            if len(self._known) >= MANY_LABELS:
                return found
            self._known[word] = found
        return self._known[word]

    def means_nothing(self, word: Any) -> bool:
        """Whether a word says that none of the behaviors goes on, where the ethogram has no name for that."""
        return isinstance(word, str) and self.ethogram.background is None and word.strip().lower()[:LONGEST_WORD] in BACKGROUND_NAMES

    def _near(self, plain: str) -> int | None:
        if plain in self._plain:
            return self._plain[plain]
        if plain in BACKGROUND_NAMES and self.ethogram.background is not None:
            return self.ethogram.background
        fitting = [(name, code) for name, code in self._plain.items() if _negated(name) == _negated(plain)]
        longer = {code for name, code in fitting if min(len(name), len(plain)) >= 3 and (name.startswith(plain) or plain.startswith(name))}
        if len(longer) == 1:
            return longer.pop()
        scored = sorted(((SequenceMatcher(None, plain, name).ratio(), code) for name, code in fitting), reverse=True)
        if not scored or scored[0][0] < NEAR:
            return None
        rivals = [ratio for ratio, code in scored if code != scored[0][1]]
        return scored[0][1] if not rivals or scored[0][0] - rivals[0] >= CLEARLY else None


def normalize_label(word: str) -> str:
    """Return a word without case, marks, punctuation and invisible characters.

    >>> normalize_label("Not_Ｓcratching\u200b!")
    'not scratching'
    """
    folded = unicodedata.normalize("NFKD", word[:LONGEST_WORD]).casefold()
    kept = "".join(c if c.isalnum() else "" if unicodedata.category(c) in ("Cf", "Mn") else " " for c in folded)
    return " ".join(kept.split())


def _negated(plain: str) -> bool:
    return plain.split(" ", 1)[0] in NEGATIONS


def parse_time(value: Any) -> tuple[float | None, str]:
    """Return seconds (None if unreadable) and the repair that this took: ``""``, ``"number"`` or ``"time"``.

    >>> parse_time("01:20"), parse_time(80), parse_time("80.0"), parse_time("1 min 20 s"), parse_time("soon")
    ((80.0, ''), (80.0, ''), (80.0, 'number'), (80.0, 'time'), (None, 'unreadable'))
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None, "unreadable"
    if not isinstance(value, str):
        return (float(value), "") if math.isfinite(value) else (None, "unreadable")
    if len(value) > LONGEST_WORD:
        return None, "unreadable"
    text = unicodedata.normalize("NFKC", value).strip()
    seconds = parse_clock(text)
    if seconds is not None and math.isfinite(seconds):
        return seconds, "" if ":" in text else "number"
    sign = -1.0 if text.startswith("-") else 1.0
    text = text.lstrip("+-").strip()
    if COLONS.fullmatch(text):
        parts = [float(part.replace(",", ".")) for part in text.split(":")][:3]
        return sign * sum(part * 60.0**power for power, part in enumerate(reversed(parts))), "time"
    spoken = SPOKEN.fullmatch(text)
    if spoken and any(spoken.groups()):
        hours, minutes, rest = (float((part or "0").replace(",", ".")) for part in spoken.groups())
        return sign * (3600 * hours + 60 * minutes + rest), "time"
    return None, "unreadable"


def third_field_is_fraction(texts: list[Any], duration: float) -> bool:
    """Whether times of three parts only fit the video when read as minutes, seconds and a fraction.

    >>> third_field_is_fraction(["00:12:00", "01:30:50"], duration=180), third_field_is_fraction(["00:01:30"], duration=180)
    (True, False)
    """
    parts = [text.strip().split(":") for text in texts if isinstance(text, str) and len(text) < LONGEST_WORD and text.count(":") == 2]
    if not parts or not all(part.isdecimal() and len(part) <= 6 for three in parts for part in three):
        return False
    longest = max(3600 * int(h) + 60 * int(m) + int(s) for h, m, s in parts)
    return longest > duration + 1 and max(60 * int(m) + int(s) for m, s, _ in parts) <= duration + 1


MAX_SEGMENTS = 200_000
MAX_DEPTH = 6
MAX_PLACES = 50_000
LOOKED_AT = 20
SEGMENTS = "segments"
LISTS = frozenset({SEGMENTS, "annotations", "annotation", "bouts", "events", "intervals", "results", "result", "behaviors", "behaviours"})


def find_segments(values: list[Any], labels: LabelMatcher, log: RepairLog) -> list[Any] | None:
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
        log.add("shape")
        return [segments[0] for segments, _ in found]
    if len(found) > 1:
        log.add("several", count=len(found) - 1)
    best: list[Any]
    best, plain = max(reversed(found), key=lambda part: len(part[0]))
    log.add("shape", count=int(not plain))
    return best


def _as_asked(value: Any) -> list[Any] | None:
    items: Any = value.get(SEGMENTS) if isinstance(value, dict) else value
    if not isinstance(items, list) or (items and not any(_is_segment(item) for item in items[:LOOKED_AT])):
        return None
    return list(items)


class _Search:
    """Looks for segments inside values; the longest list counts, and only so many places are looked at."""

    def __init__(self, labels: LabelMatcher) -> None:
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
    return isinstance(item, dict) and sum(not isinstance(v, (list, dict)) for _, v in segment_fields(_few(item)).values()) >= 2


def _few(item: dict[str, Any]) -> dict[str, Any]:
    return item if len(item) <= LOOKED_AT else {key: item[key] for key in list(item)[:LOOKED_AT]}


def _is_triple(item: Any) -> bool:
    if not isinstance(item, list) or not 3 <= len(item) <= 4:
        return False
    times = [parse_time(part)[0] is not None for part in item]
    return sum(times) >= 2 and any(isinstance(part, str) and not time for part, time in zip(item, times, strict=True))


def _of_triple(item: list[Any]) -> dict[str, Any]:
    times = [part for part in item if parse_time(part)[0] is not None][-2:]
    word = next(part for part in item if isinstance(part, str) and parse_time(part)[0] is None)
    return {START: times[0], STOP: times[1], BEHAVIOR: word}


def _of_columns(value: dict[str, Any]) -> list[Any] | None:
    """Turn lists of starts, ends and behaviors into segments."""
    columns = {role: item for key, item in _few(value).items() if isinstance(item, list) and (role := field_role(str(key)))}
    if not {START, STOP, BEHAVIOR} <= {*columns}:
        return None
    if any(isinstance(item, (list, dict)) for column in columns.values() for item in column[:1]):
        return None
    rows = zip(columns[START], columns[STOP], columns[BEHAVIOR], strict=False)
    return [{START: start, STOP: stop, BEHAVIOR: word} for start, stop, word in rows]


def _of_labels(value: dict[str, Any], labels: LabelMatcher) -> list[Any] | None:
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
