"""Answers from files: earlier answers are parsed and scored again, nothing is sent."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ethobench.core.errors import FormatError, ReadWarning
from ethobench.core.messages import Message, Option
from ethobench.mllm.cache import check_format_version, verify_replies
from ethobench.mllm.providers.base import Provider, ProviderError, register_provider
from ethobench.mllm.providers.gemini import parse_gemini_response
from ethobench.mllm.providers.openai import parse_chat_completion
from ethobench.mllm.request import Reply, Request

RepliesByWindow = dict[tuple[float, float] | None, Reply]
MAX_BYTES = 500_000_000


@register_provider("replay")
class Replay(Provider):
    """Answers from files, by recording.

    The answers are in a folder, one ``<recording>.json`` or ``.txt`` each, with the text of the answer or as ``annotate`` writes them to
    ``answers``. Or they are in one ``.jsonl`` file, with ``recording`` (or ``key``, or ``custom_id``) and ``text`` or ``response`` on each
    line, as in the batch files of Gemini and OpenAI.
    """

    title = "answers from files: nothing is sent"
    needs_video = False
    is_free = True
    uses_network = False

    def send(self, request: Request, folder: Path) -> Reply:
        """Return the stored answer for the recording and window of a request."""
        by_window = self.answers.get(request.recording) or self.answers.get(request.key)
        if by_window is None:
            raise ProviderError(f"replay: no answer for {request.recording!r} in {self.access.answers}")
        window = (round(request.window[0], 3), round(request.window[1], 3))
        reply = by_window.get(window) or by_window.get(None)
        if reply is None:
            raise ProviderError(f"replay: no answer for {request.recording!r} from {window[0]:g} s to {window[1]:g} s")
        return reply

    @property
    def identity(self) -> str:
        """The name: answers are identified by their content, not by their path."""
        return self.name

    @cached_property
    def answers(self) -> dict[str, RepliesByWindow]:
        """All answers by recording, window None for an answer that covers the complete recording."""
        path = self.access.answers
        if path is None:
            raise ProviderError(Message("replay needs a folder or .jsonl file of answers: set it with ", Option("answers")))
        if path.is_dir():
            return _read_folder(path)
        if not path.is_file():
            raise FormatError(path, "no such file or folder of answers")
        return _read_lines(path)


@dataclass(frozen=True)
class _AnswerFile:
    """The answers in one file, all for one recording; not verified if some have no checksum."""

    recording: str
    by_window: RepliesByWindow
    is_verified: bool = True


def _read_folder(folder: Path) -> dict[str, RepliesByWindow]:
    paths = sorted(p for p in folder.iterdir() if p.suffix in (".json", ".txt") and p.is_file())
    if not paths:
        raise ProviderError(f"replay: no answers (.json or .txt) in {folder}")
    files = {path.stem: _read_answer_file(path) for path in paths}
    unverified = sum(not file.is_verified for file in files.values())
    if unverified:
        message = f"{folder}: {unverified} files of answers have no checksums and cannot be verified"
        warnings.warn(message, ReadWarning, stacklevel=2)
    by_recording = {file.recording: file.by_window for file in files.values()}  # file names may be shortened
    return {**by_recording, **{stem: file.by_window for stem, file in files.items()}}


def _read_text(path: Path) -> str:
    if path.stat().st_size > MAX_BYTES:
        raise FormatError(path, f"larger than {MAX_BYTES / 1e6:.0f} MB, the limit for answers")
    return path.read_text(encoding="utf-8", errors="replace")


def _read_answer_file(path: Path) -> _AnswerFile:
    """Read a file that ``annotate`` wrote; the content of any other file is the text of one answer."""
    text = _read_text(path)
    try:
        content = json.loads(text)
        if content["ethobench"] != "answers":
            return _AnswerFile(path.stem, {None: Reply(text)})
        rows, version = content["answers"], content.get("format_version")
        windows = ((tuple(round(float(edge), 3) for edge in row["window"]), row["reply"]) for row in rows)
        by_window: RepliesByWindow = {window: Reply(**reply) for window, reply in windows if reply}  # type: ignore[misc]
        recording = str(content["recording"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _AnswerFile(path.stem, {None: Reply(text)})
    check_format_version(path, version)
    return _AnswerFile(recording, by_window, verify_replies(path, rows))


def _read_lines(path: Path) -> dict[str, RepliesByWindow]:
    answers: dict[str, RepliesByWindow] = {}
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            name = next(str(entry[key]) for key in ("recording", "key", "custom_id") if key in entry)
        except (ValueError, StopIteration, TypeError, RecursionError):
            message = "each line must be an object with a recording (or key) and a text (or response)"
            raise FormatError(path, message, f"line {number}") from None
        answers[name] = {None: _reply_from_entry(entry)}
    return answers


def _reply_from_entry(entry: dict[str, Any]) -> Reply:
    response = entry.get("response")
    if isinstance(response, dict) and isinstance(response.get("body"), dict):
        return parse_chat_completion(response["body"])
    if isinstance(response, dict):
        return parse_gemini_response(response)
    text = entry.get("text")
    return Reply(text if isinstance(text, str) else json.dumps(text) if text is not None else "")
