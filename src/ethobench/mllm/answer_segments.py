"""Segments in the JSON of an answer: where they are, what their fields mean, which time and which behavior is meant."""

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
FIELDS = (START, STOP, BEHAVIOR)
FIELD_WORDS = {
    START: ("start", "begin", "onset", "from"),
    STOP: ("end", "stop", "finish", "offset", "until", "to"),
    BEHAVIOR: ("behav", "label", "action", "activity", "class", "category", "event", "type", "name"),
    DURATION: ("duration", "length"),
}
SEGMENTS = "segments"
LIST_NAMES = frozenset(
    {SEGMENTS, "annotations", "annotation", "bouts", "events", "intervals", "results", "result", "behaviors", "behaviours"}
)
MAX_SEGMENTS = 200_000
MAX_DEPTH = 6
MAX_VALUES = 50_000
MAX_INSPECTED = 20
MAX_WORD_CHARS = 100
MAX_REMEMBERED_LABELS = 1_000
MIN_SIMILARITY = 0.8
MIN_SIMILARITY_LEAD = 0.04
NEGATIONS = ("not", "no", "non", "without")
TIME_IN_WORDS = re.compile(
    r"(?:(\d{1,4})\s*h[a-z]*\.?)?\s*(?:(\d{1,6})\s*m[a-z]*\.?)?\s*(?:(\d{1,8}(?:[.,]\d*)?)\s*s[a-z]*\.?)?", re.IGNORECASE
)
TIME_WITH_COLONS = re.compile(r"\d{1,6}(?::\d{1,6}){1,3}(?:[.,]\d{0,9})?")


def field_role(key: str) -> str | None:
    """Return which field a key means: one of `FIELDS`, ``"duration"``, or None.

    >>> field_role("end_long_time"), field_role("Behaviour"), field_role("from"), field_role("segment_number")
    ('end_time', 'behavior', 'start_time', None)
    """
    return _field_role(key[:MAX_WORD_CHARS])


@lru_cache(maxsize=4096)
def _field_role(key: str) -> str | None:
    plain = re.sub(r"[^a-z]+", "_", key.lower()).strip("_")
    pieces = plain.split("_")
    for role, words in FIELD_WORDS.items():
        if any(piece == word or (len(word) > 3 and piece.startswith(word)) for piece in pieces for word in words):
            return role
    for role, words in FIELD_WORDS.items():
        if any(len(word) > 2 and word in plain for word in words[:3]):
            return role
    return None


def segment_fields(segment: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return the key and the value of each field of a segment, by role. Expected keys take precedence."""
    fields: dict[str, tuple[str, Any]] = {role: (role, segment[role]) for role in FIELDS if role in segment}
    for key, value in segment.items():
        role = field_role(str(key)) if str(key) not in FIELDS else None
        if role is not None:
            fields.setdefault(role, (str(key), value))
    return fields


class LabelMatcher:
    """Matches the labels in an answer to behaviors.

    Parameters
    ----------
    ethogram : Ethogram
    aliases : mapping of str to str
        Other names of behaviors.
    """

    def __init__(self, ethogram: Ethogram, aliases: Mapping[str, str] | None = None) -> None:
        self.ethogram = ethogram
        self._codes = {normalize_label(word): ethogram.code(name) for word, name in (aliases or {}).items()}
        self._codes |= {normalize_label(name): code for code, name in enumerate(ethogram.names)}
        self._matches: dict[str, int | None] = {}

    def code(self, label: Any) -> int | None:
        """Return the code of the behavior that a label means; None if no behavior has this or a similar name."""
        if isinstance(label, list) and len(label) == 1:
            label = label[0]
        if not isinstance(label, str):
            return None
        if label in self.ethogram:
            return self.ethogram.code(label)
        label = label[:MAX_WORD_CHARS]
        if label not in self._matches:
            is_full = len(self._matches) >= MAX_REMEMBERED_LABELS  # a flood of labels is only compared exactly, which is fast
            code = (self._codes.get if is_full else self._most_similar)(normalize_label(label))
            if is_full:
                return code
            self._matches[label] = code
        return self._matches[label]

    def is_unnamed_background(self, label: Any) -> bool:
        """Whether a label means "no behavior" and the ethogram has no background."""
        return isinstance(label, str) and self.ethogram.background is None and label.strip().lower()[:MAX_WORD_CHARS] in BACKGROUND_NAMES

    def _most_similar(self, plain: str) -> int | None:
        if plain in self._codes:
            return self._codes[plain]
        if plain in BACKGROUND_NAMES and self.ethogram.background is not None:
            return self.ethogram.background
        # "not scratching" is similar to "scratching" and means the opposite
        candidates = [(name, code) for name, code in self._codes.items() if _is_negated(name) == _is_negated(plain)]
        prefixes = {
            code for name, code in candidates if min(len(name), len(plain)) >= 3 and (name.startswith(plain) or plain.startswith(name))
        }
        if len(prefixes) == 1:
            return prefixes.pop()
        ranking = sorted(((SequenceMatcher(None, plain, name).ratio(), code) for name, code in candidates), reverse=True)
        if not ranking or ranking[0][0] < MIN_SIMILARITY:
            return None
        others = [ratio for ratio, code in ranking if code != ranking[0][1]]
        return ranking[0][1] if not others or ranking[0][0] - others[0] >= MIN_SIMILARITY_LEAD else None


def normalize_label(word: str) -> str:
    """Return a label without case, diacritics, punctuation and invisible characters.

    >>> normalize_label("Not_Ｓcratching\u200b!")
    'not scratching'
    """
    folded = unicodedata.normalize("NFKD", word[:MAX_WORD_CHARS]).casefold()
    plain = "".join(c if c.isalnum() else "" if unicodedata.category(c) in ("Cf", "Mn") else " " for c in folded)
    return " ".join(plain.split())


def _is_negated(plain: str) -> bool:
    return plain.split(" ", 1)[0] in NEGATIONS


def parse_time(value: Any) -> tuple[float | None, str]:
    """Return a time in seconds and the kind of repair: ``""``, ``"number"`` or ``"time"``; None and ``"unreadable"`` for other values.

    >>> parse_time("01:20"), parse_time(80), parse_time("80.0"), parse_time("1 min 20 s"), parse_time("soon")
    ((80.0, ''), (80.0, ''), (80.0, 'number'), (80.0, 'time'), (None, 'unreadable'))
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None, "unreadable"
    if not isinstance(value, str):
        return (float(value), "") if math.isfinite(value) else (None, "unreadable")
    if len(value) > MAX_WORD_CHARS:
        return None, "unreadable"
    text = unicodedata.normalize("NFKC", value).strip()
    seconds = parse_clock(text)
    if seconds is not None and math.isfinite(seconds):
        return seconds, "" if ":" in text else "number"
    sign = -1.0 if text.startswith("-") else 1.0
    text = text.lstrip("+-").strip()
    if TIME_WITH_COLONS.fullmatch(text):
        numbers = [float(number.replace(",", ".")) for number in text.split(":")][:3]
        return sign * sum(number * 60.0**power for power, number in enumerate(reversed(numbers))), "time"
    in_words = TIME_IN_WORDS.fullmatch(text)
    if in_words and any(in_words.groups()):
        hours, minutes, rest = (float((number or "0").replace(",", ".")) for number in in_words.groups())
        return sign * (3600 * hours + 60 * minutes + rest), "time"
    return None, "unreadable"


def third_number_is_fraction(times: list[Any], duration: float) -> bool:
    """Whether times such as 00:12:50 fit into the video only if read as minutes, seconds and fraction.

    >>> third_number_is_fraction(["00:12:00", "01:30:50"], duration=180), third_number_is_fraction(["00:01:30"], duration=180)
    (True, False)
    """
    triples = [text.strip().split(":") for text in times if isinstance(text, str) and len(text) < MAX_WORD_CHARS and text.count(":") == 2]
    if not triples or not all(number.isdecimal() and len(number) <= 6 for triple in triples for number in triple):
        return False
    longest = max(3600 * int(h) + 60 * int(m) + int(s) for h, m, s in triples)
    return longest > duration + 1 and max(60 * int(m) + int(s) for m, s, _ in triples) <= duration + 1


def find_segments(values: list[Any], labels: LabelMatcher, log: RepairLog) -> list[Any] | None:
    """Return the segments in JSON values; None if there are none, an empty list if the answer is an empty list.

    The expected structures are an object with ``segments`` and a bare list. These are accepted too, and logged as ``shape``: other names of
    the list, nested objects, numbered segments, a single object or several in a row, ``[start, end, behavior]``, columns, and lists of
    intervals by behavior.

    Parameters
    ----------
    values : list
    labels : LabelMatcher
    log : RepairLog
    """
    answers: list[tuple[list[Any], bool]] = []
    search = _SegmentSearch(labels)
    for value in values:
        if value == [] and len(values) > 1:
            continue  # an empty pair of brackets in a text is not an answer
        expected = _expected_segments(value)
        segments = expected if expected is not None else search.search(value)
        if segments is not None:
            answers.append((segments, expected is not None))
    if not answers:
        return None
    if len(answers) > 1 and all(len(segments) == 1 and not is_expected for segments, is_expected in answers):
        log.add("shape")
        return [segments[0] for segments, _ in answers]
    if len(answers) > 1:
        log.add("several", count=len(answers) - 1)
    longest: list[Any]
    longest, is_expected = max(reversed(answers), key=lambda answer: len(answer[0]))
    log.add("shape", count=int(not is_expected))
    return longest


def _expected_segments(value: Any) -> list[Any] | None:
    """Return the segments of a value with one of the expected structures; None for other values."""
    items: Any = value.get(SEGMENTS) if isinstance(value, dict) else value
    if not isinstance(items, list) or (items and not any(_is_segment(item) for item in items[:MAX_INSPECTED])):
        return None
    return list(items)


class _SegmentSearch:
    """Search for the longest list of segments in nested values; the number of values is bounded for all searches together."""

    def __init__(self, labels: LabelMatcher) -> None:
        self.labels = labels
        self.remaining_values = MAX_VALUES

    def search(self, value: Any, depth: int = 0) -> list[Any] | None:
        self.remaining_values -= 1
        if depth > MAX_DEPTH or self.remaining_values < 0:
            return None
        if isinstance(value, list):
            return self._search_list(value, depth)
        if not isinstance(value, dict):
            return None
        if _is_segment(value):
            return [value]
        segments = _segments_from_columns(value) or _segments_by_behavior(value, self.labels)
        if segments is not None:
            return segments
        nested = self._search_nested(value.values(), depth)
        if nested:
            is_numbered = len(nested) > 1 and all(len(segments) == 1 for segments in nested)
            return [segments[0] for segments in nested] if is_numbered else max(nested, key=len)
        has_empty_list = any(item == [] for key, item in value.items() if str(key).lower() in LIST_NAMES)
        return [] if has_empty_list else None

    def _search_list(self, items: list[Any], depth: int) -> list[Any] | None:
        head = items[:MAX_INSPECTED]
        if any(_is_segment(item) for item in head):
            return items
        if any(_is_triple(item) for item in head):
            return [_segment_from_triple(item) if _is_triple(item) else item for item in items]
        return max(self._search_nested(items, depth), key=len, default=None)

    def _search_nested(self, items: Iterable[Any], depth: int) -> list[list[Any]]:
        results = []
        for item in items:
            if self.remaining_values < 0:
                break
            if isinstance(item, (list, dict)) and (segments := self.search(item, depth + 1)):
                results.append(segments)
        return results


def _is_segment(item: Any) -> bool:
    """Whether an object has at least two of the three fields, with single values."""
    return isinstance(item, dict) and sum(not isinstance(v, (list, dict)) for _, v in segment_fields(_first_items(item)).values()) >= 2


def _first_items(item: dict[str, Any]) -> dict[str, Any]:
    return item if len(item) <= MAX_INSPECTED else {key: item[key] for key in list(item)[:MAX_INSPECTED]}


def _is_triple(item: Any) -> bool:
    """Whether a list is ``[start, end, behavior]`` in any order, possibly with a number in front."""
    if not isinstance(item, list) or not 3 <= len(item) <= 4:
        return False
    is_time = [parse_time(value)[0] is not None for value in item]
    return sum(is_time) >= 2 and any(isinstance(value, str) and not time for value, time in zip(item, is_time, strict=True))


def _segment_from_triple(item: list[Any]) -> dict[str, Any]:
    times = [value for value in item if parse_time(value)[0] is not None][-2:]
    label = next(value for value in item if isinstance(value, str) and parse_time(value)[0] is None)
    return {START: times[0], STOP: times[1], BEHAVIOR: label}


def _segments_from_columns(value: dict[str, Any]) -> list[Any] | None:
    """Convert lists of start times, end times and behaviors to segments; None for other values."""
    columns = {role: item for key, item in _first_items(value).items() if isinstance(item, list) and (role := field_role(str(key)))}
    if not {START, STOP, BEHAVIOR} <= {*columns}:
        return None
    if any(isinstance(item, (list, dict)) for column in columns.values() for item in column[:1]):
        return None
    rows = zip(columns[START], columns[STOP], columns[BEHAVIOR], strict=False)
    return [{START: start, STOP: stop, BEHAVIOR: label} for start, stop, label in rows]


def _segments_by_behavior(value: dict[str, Any], labels: LabelMatcher) -> list[Any] | None:
    """Convert lists of intervals by behavior to segments; None for other values."""
    intervals_of = {key: item for key, item in _first_items(value).items() if isinstance(item, list) and labels.code(key) is not None}
    if not intervals_of or len(intervals_of) < len(_first_items(value)) or not any(intervals_of.values()):
        return None
    segments: list[Any] = []
    for label, intervals in intervals_of.items():
        for interval in intervals:
            if isinstance(interval, list) and len(interval) == 2:
                segments.append({START: interval[0], STOP: interval[1], BEHAVIOR: label})
            elif isinstance(interval, dict):
                segments.append({**interval, BEHAVIOR: label})
            else:
                segments.append(interval)
    return segments
