"""Extraction of JSON from a model's answer, in bounded time and memory for any text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from ethobench.mllm.repair_log import RepairLog

MAX_CHARS = 12_000_000
MAX_FAILED_STARTS = 200
MAX_PARTIAL_PARSES = 3
MAX_INT_DIGITS = 18
MAX_LENIENT_CHARS = 2_000
OPENING_BRACKET = re.compile(r"[\[{]")
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


def extract_json(text: str, log: RepairLog) -> list[Any]:
    """Return the JSON values in a text; an empty list if there are none.

    A text that is valid JSON is returned unchanged. Otherwise code fences and surrounding text are removed. A document that is cut off is
    read up to the cut. From a document with syntax errors, the complete objects are read one by one. No value is invented.

    Parameters
    ----------
    text : str
    log : RepairLog
        Repairs are added to it.
    """
    text = text.lstrip("\ufeff").strip()
    values = _parse_document(text, log)
    if values is not None:
        return values
    blocks, outside = _fenced_blocks(text)
    if not blocks:
        return _scan(text, log)
    extracted: list[Any] = []
    for block in blocks:
        values = _parse_document(block, log)
        extracted += _scan(block, log) if values is None else values
    if extracted:
        log.add("fence", count=1)
        if outside:
            log.add("prose", outside)
        return extracted
    return _scan(text, log)


def _parse_document(text: str, log: RepairLog) -> list[Any] | None:
    """Return the value of a text that is one valid JSON document, in a list; None for other texts."""
    decoder = _CountingDecoder()
    try:
        value = decoder.json_decoder.decode(text)
    except (ValueError, RecursionError):
        return None
    log.add("duplicate_key", count=decoder.duplicate_keys)
    return [value]


def _fenced_blocks(text: str) -> tuple[list[str], str]:
    """Return the texts between ``` marks (the last may be unclosed), and the beginning of the text outside of them."""
    pieces = text.split("```", 2 * MAX_FAILED_STARTS)
    blocks = [re.sub(r"\A[A-Za-z0-9_+-]{0,20}[ \t]*\r?\n", "", piece) for piece in pieces[1::2]]
    outside = " ".join(piece.strip()[:80] for piece in pieces[::2] if piece.strip())
    return [block.strip().removeprefix("json").strip() for block in blocks if OPENING_BRACKET.search(block)], outside


@dataclass
class _Scanner:
    """State of a scan for JSON values in other text.

    Attributes
    ----------
    text : str
    values : list
        The JSON values so far.
    prose : list of str
        The text before each of them.
    position : int
        Where the search for the next value starts.
    value_end : int
        Where the last value ends.
    failed_starts, partial_parses : int
        Number of brackets at which no value starts, and of attempts to read an incomplete one.
    effort : int
        Characters that may still be parsed; bounds the time for texts with many brackets.
    """

    text: str
    values: list[Any] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    position: int = 0
    value_end: int = 0
    failed_starts: int = 0
    partial_parses: int = 0
    effort: int = 0


def _scan(text: str, log: RepairLog) -> list[Any]:
    """Read a JSON value at every opening bracket that starts one."""
    scan = _Scanner(text, effort=4 * len(text))
    prose_end: int | None = None
    while scan.failed_starts < MAX_FAILED_STARTS and scan.effort > 0 and (opening := OPENING_BRACKET.search(text, scan.position)):
        start = opening.start()
        prose_end = start if prose_end is None else prose_end
        decoder = _CountingDecoder()
        try:
            value, scan.position = decoder.json_decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            scan.failed_starts, scan.position = scan.failed_starts + 1, start + 1
            if not isinstance(error, RecursionError) and (salvaged := _salvage_at(scan, start, getattr(error, "pos", start + 1), log)):
                _log_prose([*scan.prose, text[scan.value_end : prose_end]], log)
                return [*scan.values, *salvaged]
            continue
        scan.effort -= scan.position - start
        log.add("duplicate_key", count=decoder.duplicate_keys)
        scan.values.append(value)
        scan.prose.append(text[scan.value_end : start])
        scan.value_end, prose_end = scan.position, None
    if not scan.values:
        return _read_flat_objects(text, log)
    _log_prose([*scan.prose, text[scan.value_end :]], log)
    return scan.values


def _salvage_at(scan: _Scanner, start: int, error_position: int, log: RepairLog) -> list[Any]:
    """Read what is complete of an invalid document that begins at `start`; an empty list if nothing is."""
    scan.effort -= error_position - start + 1
    if scan.partial_parses >= MAX_PARTIAL_PARSES or error_position - start <= 1:
        return []
    scan.partial_parses += 1
    scan.effort -= len(scan.text) - start
    is_cut_off = not BRACKET.search(scan.text, error_position)
    document = scan.text[start:]
    return (_read_cut_off(document, log) if is_cut_off else []) or _read_flat_objects(document, log)


def _log_prose(pieces: list[str], log: RepairLog) -> None:
    prose = " ".join(piece[:80].strip(" \t\r\n,;") for piece in pieces).strip()
    log.add("prose", prose, int(bool(prose)))


def _read_cut_off(text: str, log: RepairLog) -> list[Any]:
    """Read a document that is cut off, without its last, incomplete element; an empty list if it has another error."""
    from pydantic_core import from_json

    try:
        value = from_json(text.encode("utf-8", "replace"), allow_partial=True)
    except ValueError:
        return []
    if not text.rstrip(" \t\r\n,").endswith("}"):
        value = _drop_last_element(value)
    if value is None:
        return []
    log.add("truncated")
    return [value]


def _drop_last_element(value: Any) -> Any:
    """Drop the last element of the innermost list that is open at the end: ``13.25`` cut to ``13`` would otherwise be read as 13."""
    path = [value]
    while isinstance(path[-1], (list, dict)) and path[-1]:
        last = path[-1][-1] if isinstance(path[-1], list) else path[-1][next(reversed(path[-1]))]
        path.append(last)
    for container in reversed(path):
        if isinstance(container, list) and container:
            del container[-1]
            return value
    return None


def _read_flat_objects(text: str, log: RepairLog) -> list[Any]:
    """Read all objects without nested objects, one by one; invalid ones are read leniently."""
    objects: list[Any] = []
    end = 0
    for match in FLAT_OBJECT.finditer(text):
        value = _parse_object(match[0])
        value = _parse_leniently(match[0][:MAX_LENIENT_CHARS]) if value is None else value
        if value:
            objects.append(value)
            end = match.end()
    if objects:
        log.add("syntax")
        log.add("truncated", count=int("{" in text[end:]))
    return [objects] if objects else []


def _parse_object(text: str) -> Any:
    try:
        return _CountingDecoder().json_decoder.decode(text)
    except (ValueError, RecursionError):
        return None


def _parse_leniently(text: str) -> dict[str, Any]:
    """Read ``name: value`` pairs with any kind of quotes or none; skip everything else."""
    pairs: dict[str, Any] = {}
    tokens: list[tuple[str, Any]] = []
    for token in TOKEN.finditer(text):
        kind = token.lastgroup or ""
        if kind in ("end", "junk"):
            tokens = []
            continue
        tokens.append((kind, token[kind]))
        if len(tokens) >= 3 and tokens[-2][0] == "colon" and tokens[-3][0] != "colon":
            name, value = str(tokens[-3][1]), tokens[-1]
            if value[0] != "colon":
                pairs.setdefault(name, _parse_bare_word(value[1]) if value[0] == "bare" else value[1])
                tokens = []
    return pairs


def _parse_bare_word(word: str) -> Any:
    """Return the value of a word without quotes: None, a number, or the word itself."""
    if word.lower() in ("null", "none", "nan"):
        return None
    try:
        return float(word[:40])
    except ValueError:
        return word


class _CountingDecoder:
    """A JSON decoder that counts duplicate keys."""

    def __init__(self) -> None:
        self.duplicate_keys = 0
        self.json_decoder = json.JSONDecoder(object_pairs_hook=self._make_object, parse_int=_parse_integer, strict=False)

    def _make_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        self.duplicate_keys += len(pairs) - len(content)
        return content


def _parse_integer(text: str) -> float:
    """Return an integer. Numbers with more digits than any time has become floats, since huge integers are slow."""
    return int(text) if len(text) <= MAX_INT_DIGITS else float(text)
