"""Answers from files: old ones are read and scored again, and nothing is sent."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ethobench.core.errors import FormatError, ReadWarning
from ethobench.mllm.cache import verify_replies
from ethobench.mllm.providers.base import Provider, ProviderError, register_provider
from ethobench.mllm.providers.gemini import parse_gemini_response
from ethobench.mllm.providers.openai import parse_chat_completion
from ethobench.mllm.request import Reply, Request

Windows = dict[tuple[float, float] | None, Reply]
MOST_BYTES = 500_000_000


@register_provider("replay")
class Replay(Provider):
    """Finds answers by the recordings' names.

    They lie in a folder, one ``<recording>.json`` or ``.txt`` with the answer's text (or what ``annotate`` wrote into
    ``answers``); or in one ``.jsonl`` file with ``recording`` (or ``key``, or ``custom_id``) and ``text`` or ``response``
    on each line, as batches have them.
    """

    title = "answers from files (--answers): nothing is sent"
    needs_video = False
    is_free = True
    uses_network = False

    def send(self, request: Request, folder: Path) -> Reply:
        """Return the answer that is kept for a recording and window."""
        found = self._answers.get(request.recording) or self._answers.get(request.key)
        if found is None:
            raise ProviderError(f"replay: {self.access.answers} holds no answer for {request.recording!r}")
        window = (round(request.window[0], 3), round(request.window[1], 3))
        reply = found.get(window) or found.get(None)
        if reply is None:
            raise ProviderError(f"replay: no answer for {request.recording!r} from {window[0]:g} s to {window[1]:g} s")
        return reply

    @property
    def identity(self) -> str:
        """Answers are known by what they are, not by where they lie."""
        return self.name

    @cached_property
    def _answers(self) -> dict[str, Windows]:
        place = self.access.answers
        if place is None:
            raise ProviderError("replay needs to know where the answers lie: --answers DIR or FILE.jsonl")
        if place.is_dir():
            files = sorted(p for p in place.iterdir() if p.suffix in (".json", ".txt") and p.is_file())
            if not files:
                raise ProviderError(f"replay: {place} holds no answers (.json or .txt)")
            contents = {file.stem: _of_file(file) for file in files}
            unverified = sum(not content.is_verified for content in contents.values())
            if unverified:
                message = (
                    f"{place}: {unverified} files of answers were kept by an earlier version, without checksums, and cannot be verified"
                )
                warnings.warn(message, ReadWarning, stacklevel=2)
            named = {content.recording: content.windows for content in contents.values()}  # the names of files may be shortened
            return {**named, **{stem: content.windows for stem, content in contents.items()}}
        if not place.is_file():
            raise FormatError(place, "there is no such file or folder of answers")
        return _of_lines(place)


@dataclass(frozen=True)
class _Answers:
    """What a file holds: the answers about one recording; not verified if ``annotate`` kept them without checksums."""

    recording: str
    windows: Windows
    is_verified: bool = True


def _text_of(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES:
        raise FormatError(path, f"larger than {MOST_BYTES / 1e6:.0f} MB, so no file of answers")
    return path.read_text(encoding="utf-8", errors="replace")


def _of_file(path: Path) -> _Answers:
    """Return the answers in a file: what ``annotate`` kept, with a window each, or else the text itself."""
    text = _text_of(path)
    try:
        kept = json.loads(text)
        if kept["ethobench"] != "answers":
            return _Answers(path.stem, {None: Reply(text)})
        rows = kept["answers"]
        windows = ((tuple(round(float(edge), 3) for edge in row["window"]), row["reply"]) for row in rows)
        answers: Windows = {window: Reply(**reply) for window, reply in windows if reply}  # type: ignore[misc]
        recording = str(kept["recording"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _Answers(path.stem, {None: Reply(text)})
    return _Answers(recording, answers, verify_replies(path, rows))


def _of_lines(path: Path) -> dict[str, Windows]:
    found: dict[str, Windows] = {}
    for number, line in enumerate(_text_of(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            name = next(str(entry[key]) for key in ("recording", "key", "custom_id") if key in entry)
        except (ValueError, StopIteration, TypeError, RecursionError):
            raise FormatError(path, "each line is an object with a recording (or key) and a text (or response)", f"line {number}") from None
        found[name] = {None: _reply_in(entry)}
    return found


def _reply_in(entry: dict[str, Any]) -> Reply:
    response = entry.get("response")
    if isinstance(response, dict) and isinstance(response.get("body"), dict):
        return parse_chat_completion(response["body"])
    if isinstance(response, dict):
        return parse_gemini_response(response)
    text = entry.get("text")
    return Reply(text if isinstance(text, str) else json.dumps(text) if text is not None else "")
