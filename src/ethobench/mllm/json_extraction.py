"""X"""

from __future__ import annotations

import json
import re
from typing import Any

from ethobench.mllm.repair_log import RepairLog

MAX_CHARS = 12_000_000
ATTEMPTS = 200
PARTIAL_ATTEMPTS = 3
OPENING = re.compile(r"[\[{]")
BRACKET = re.compile(r"[\[\]{}]")
FLAT_OBJECT = re.compile(r"\{[^{}]*\}")
TOKEN = re.compile(
    r"""
      "(?P<double>[^"\\\n]*(?:\\.[^"\\\n]*)*)"
    | '(?P<single>[^'\\\n]*(?:\\.[^'\\\n]*)*)'
    | “(?P<curly>[^”\n]*)”
    | (?P<colon>[:=])
    | (?P<end>[,;])
    | (?P<bare>[^\s"'“{}\[\],:;=]+(?::\d+)*)
    | (?P<junk>["'“][^\n]*)
    """,
    re.VERBOSE,
)
INT_DIGITS = 18
LENIENT_CHARS = 2_000


def extract_json(text: str, log: RepairLog) -> list[Any]:
    """Return the JSON values in a text; none where there are none.

    Whole JSON is taken as it is. Otherwise fences and prose are taken off; a document that breaks off is read up to there;
    from one with mistakes the complete objects are read one by one. Nothing that was not written is made up.
    """
    text = text.lstrip("\ufeff").strip()
    whole = _whole(text, log)
    if whole is not None:
        return whole
    blocks, outside = _fenced(text)
    if not blocks:
        return _scan(text, log)
    found: list[Any] = []
    for block in blocks:
        value = _whole(block, log)
        found += _scan(block, log) if value is None else value
    if found:
        log.add("fence", count=1)
        if outside:
            log.add("prose", outside)
        return found
    return _scan(text, log)


def _whole(text: str, log: RepairLog) -> list[Any] | None:
    """Return the one value that the whole text is, or None."""
    duplicates = _Duplicates()
    try:
        value = duplicates.decoder.decode(text)
    except (ValueError, RecursionError):
        return None
    log.add("duplicate_key", count=duplicates.count)
    return [value]


def _fenced(text: str) -> tuple[list[str], str]:
    """Return what stands between ``` marks (the last may be open), and the beginning of what stands around them."""
    parts = text.split("```", 2 * ATTEMPTS)
    blocks = [re.sub(r"\A[A-Za-z0-9_+-]{0,20}[ \t]*\r?\n", "", part) for part in parts[1::2]]
    outside = " ".join(part.strip()[:80] for part in parts[::2] if part.strip())
    return [block.strip().removeprefix("json").strip() for block in blocks if OPENING.search(block)], outside


def _scan(text: str, log: RepairLog) -> list[Any]:
    """Read values from every opening bracket that begins one."""
    found: list[Any] = []
    around: list[str] = []
    at = after = failures = partials = 0
    first: int | None = None
    effort = 4 * len(text)
    while failures < ATTEMPTS and effort > 0 and (opening := OPENING.search(text, at)):
        start = opening.start()
        first = start if first is None else first
        duplicates = _Duplicates()
        try:
            value, at = duplicates.decoder.raw_decode(text, start)
        except RecursionError:
            failures, at = failures + 1, start + 1
            continue
        except ValueError as error:
            reached = getattr(error, "pos", start + 1)
            effort -= reached - start + 1
            failures, at = failures + 1, start + 1
            if partials < PARTIAL_ATTEMPTS and reached - start > 1:
                partials += 1
                effort -= len(text) - start
                breaks_off = not BRACKET.search(text, reached)
                rest = (_partial(text[start:], log) if breaks_off else []) or _salvage(text[start:], log)
                if rest:
                    _note_prose([*around, text[after:first]], log)
                    return [*found, *rest]
            continue
        effort -= at - start
        log.add("duplicate_key", count=duplicates.count)
        found.append(value)
        around.append(text[after:start])
        after, first = at, None
    if not found:
        return _salvage(text, log)
    _note_prose([*around, text[after:]], log)
    return found


def _note_prose(around: list[str], log: RepairLog) -> None:
    told = " ".join(part[:80].strip(" \t\r\n,;") for part in around).strip()
    log.add("prose", told, int(bool(told)))


def _partial(text: str, log: RepairLog) -> list[Any]:
    """Read a document that breaks off; the element in which it does is left out. Nothing if that is not what is wrong."""
    from pydantic_core import from_json

    try:
        value = from_json(text.encode("utf-8", "replace"), allow_partial=True)
    except ValueError:
        return []
    if not text.rstrip(" \t\r\n,").endswith("}"):
        value = _without_last(value)
    if value is None:
        return []
    log.add("truncated")
    return [value]


def _without_last(value: Any) -> Any:
    """Leave out the innermost last element of nested lists and objects: a cut ``13.25`` would read as ``13``."""
    path = [value]
    while isinstance(path[-1], (list, dict)) and path[-1]:
        last = path[-1][-1] if isinstance(path[-1], list) else path[-1][next(reversed(path[-1]))]
        path.append(last)
    for container in reversed(path):
        if isinstance(container, list) and container:
            del container[-1]
            return value
    return None


def _salvage(text: str, log: RepairLog) -> list[Any]:
    """Read complete objects that hold no others, one by one; such a one with mistakes is read as names and values."""
    found: list[Any] = []
    last = 0
    for match in FLAT_OBJECT.finditer(text):
        value = _strict(match[0])
        value = _lenient(match[0][:LENIENT_CHARS]) if value is None else value
        if value:
            found.append(value)
            last = match.end()
    if found:
        log.add("syntax")
        log.add("truncated", count=int("{" in text[last:]))
    return [found] if found else []


def _strict(text: str) -> Any:
    try:
        return _Duplicates().decoder.decode(text)
    except (ValueError, RecursionError):
        return None


def _lenient(text: str) -> dict[str, Any]:
    """Read ``name: value`` pairs with any quotes or none; what does not fit that is passed over."""
    made: dict[str, Any] = {}
    words: list[tuple[str, Any]] = []
    for token in TOKEN.finditer(text):
        kind = token.lastgroup or ""
        if kind in ("end", "junk"):
            words = []
            continue
        words.append((kind, token[kind]))
        if len(words) >= 3 and words[-2][0] == "colon" and words[-3][0] != "colon":
            name, value = str(words[-3][1]), words[-1]
            if value[0] != "colon":
                made.setdefault(name, _bare(value[1]) if value[0] == "bare" else value[1])
                words = []
    return made


def _bare(word: str) -> Any:
    """Return the value of a word without quotes: a number, or the word itself."""
    if word.lower() in ("null", "none", "nan"):
        return None
    try:
        return float(word[:40])
    except ValueError:
        return word


class _Duplicates:
    """A JSON decoder that counts names that stand twice in one object."""

    def __init__(self) -> None:
        self.count = 0
        self.decoder = json.JSONDecoder(object_pairs_hook=self._object, parse_int=_integer, strict=False)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        self.count += len(pairs) - len(made)
        return made


def _integer(text: str) -> float:
    """Return a whole number; one with more digits than any time has is taken as a float, which is quick."""
    return int(text) if len(text) <= INT_DIGITS else float(text)
