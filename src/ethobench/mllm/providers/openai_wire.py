"""Chat completions as plain JSON, as any OpenAI-compatible server speaks them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ethobench.formats.text import format_clock
from ethobench.mllm.cost import ModelFacts
from ethobench.mllm.providers.base import ProviderError
from ethobench.mllm.request import BLOCKED, LENGTH, STOP, Clip, Reply, Request


def chat_body(request: Request, folder: Path, facts: ModelFacts, *, limit_name: str) -> dict[str, Any]:
    """Return the body of a chat completion.

    Parameters
    ----------
    request : Request
    folder : Path
        For files that have to be made.
    facts : ModelFacts
        Limits of the model.
    limit_name : str
        What the server calls the limit of output tokens.
    """
    content: list[dict[str, Any]] = []
    for part in request.parts:
        content += _clip_parts(part, folder, facts) if isinstance(part, Clip) else [{"type": "text", "text": part.text}]
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": content}],
        "temperature": request.temperature,
        "top_p": request.top_p,
        limit_name: request.max_output_tokens,
    }
    if request.draw:
        body["seed"] = request.draw
    if request.structured == "schema" and request.schema is not None:
        described = {"name": "answer", "strict": True, "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": described}
    elif request.structured == "object":
        body["response_format"] = {"type": "json_object"}
    return body


def reply_of(response: Mapping[str, Any]) -> Reply:
    """Read a chat completion: the first choice, why it ended, and what it took."""
    usage = response.get("usage") or {}
    answered: dict[str, Any] = {
        "input_tokens": usage.get("prompt_tokens"),
        "output_tokens": usage.get("completion_tokens"),
        "model": str(response.get("model") or ""),
        "raw": dict(response),
    }
    choices = response.get("choices") or []
    if not choices:
        return Reply("", BLOCKED, "there is no answer, and no reason given", **answered)
    message = choices[0].get("message") or {}
    text, refusal = str(message.get("content") or ""), message.get("refusal")
    reason = str(choices[0].get("finish_reason") or "stop")
    if refusal or reason == "content_filter":
        return Reply(text, BLOCKED, f"the answer was withheld: {str(refusal or reason)[:200]}", **answered)
    if reason == "length":
        return Reply(text, LENGTH, "the answer reached the limit of output tokens", **answered)
    return Reply(text, STOP, "" if reason == "stop" else reason, **answered)


def _clip_parts(clip: Clip, folder: Path, facts: ModelFacts) -> list[dict[str, Any]]:
    if clip.form == "link":
        return [{"type": "video_url", "video_url": {"url": clip.address}}]
    if clip.form == "video":
        file, mime = clip.file(folder)
        data = file.read_bytes()
        _check_size(clip, len(data), facts)
        shown = {"fps": clip.fps} if clip.fps else {}  # as DashScope takes it
        return [{"type": "video_url", "video_url": {"url": _data_url(data, mime)}, **shown}]
    parts: list[dict[str, Any]] = []
    size = 0
    for at, picture in clip.frames(facts.fps):
        size += len(picture)
        parts.append({"type": "text", "text": format_clock(int(at))})
        parts.append({"type": "image_url", "image_url": {"url": _data_url(picture, "image/jpeg")}})
    _check_size(clip, size, facts)
    return parts


def _data_url(data: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def _check_size(clip: Clip, size: int, facts: ModelFacts) -> None:
    if size > facts.inline_bytes:
        raise ProviderError(
            f"{clip.video.name}: {size / 1e6:.1f} MB of video, and {facts.name} takes {facts.inline_bytes / 1e6:.0f} MB with a question; "
            "use a lower --height or --fps, or a --window"
        )
