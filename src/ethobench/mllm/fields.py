"""What the fields of a segment mean: which time, which behavior, however they are written."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from ethobench.core import Ethogram
from ethobench.core.ethogram import BACKGROUND_NAMES
from ethobench.formats.text import parse_clock

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


def role_of(key: str) -> str | None:
    """Return which field a name stands for: one of `CANONICAL`, ``"duration"``, or None.

    >>> role_of("end_long_time"), role_of("Behaviour"), role_of("from"), role_of("segment_number")
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


def fields_of(segment: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return the fields of a segment by role, each with the name it had; canonical names come first."""
    found: dict[str, tuple[str, Any]] = {role: (role, segment[role]) for role in CANONICAL if role in segment}
    for key, value in segment.items():
        role = role_of(str(key)) if str(key) not in CANONICAL else None
        if role is not None:
            found.setdefault(role, (str(key), value))
    return found


class Labels:
    """Finds the behavior that a word stands for.

    Parameters
    ----------
    ethogram : Ethogram
    aliases : mapping of str to str
        Other words to behaviors' names.
    """

    def __init__(self, ethogram: Ethogram, aliases: Mapping[str, str] | None = None) -> None:
        self.ethogram = ethogram
        self._plain = {plain_word(word): ethogram.code(name) for word, name in (aliases or {}).items()}
        self._plain |= {plain_word(name): code for code, name in enumerate(ethogram.names)}
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
            found = looks_like(plain_word(word))
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


def plain_word(word: str) -> str:
    """Return a word without case, marks, punctuation and invisible characters.

    >>> plain_word("Not_Ｓcratching\u200b!")
    'not scratching'
    """
    folded = unicodedata.normalize("NFKD", word[:LONGEST_WORD]).casefold()
    kept = "".join(c if c.isalnum() else "" if unicodedata.category(c) in ("Cf", "Mn") else " " for c in folded)
    return " ".join(kept.split())


def _negated(plain: str) -> bool:
    return plain.split(" ", 1)[0] in NEGATIONS


def read_time(value: Any) -> tuple[float | None, str]:
    """Return seconds (None if unreadable) and the repair that this took: ``""``, ``"number"`` or ``"time"``.

    >>> read_time("01:20"), read_time(80), read_time("80.0"), read_time("1 min 20 s"), read_time("soon")
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


def third_part_is_a_fraction(texts: list[Any], duration: float) -> bool:
    """Whether times of three parts only fit the video when read as minutes, seconds and a fraction.

    >>> third_part_is_a_fraction(["00:12:00", "01:30:50"], duration=180), third_part_is_a_fraction(["00:01:30"], duration=180)
    (True, False)
    """
    parts = [text.strip().split(":") for text in texts if isinstance(text, str) and len(text) < LONGEST_WORD and text.count(":") == 2]
    if not parts or not all(part.isdecimal() and len(part) <= 6 for three in parts for part in three):
        return False
    longest = max(3600 * int(h) + 60 * int(m) + int(s) for h, m, s in parts)
    return longest > duration + 1 and max(60 * int(m) + int(s) for m, s, _ in parts) <= duration + 1
