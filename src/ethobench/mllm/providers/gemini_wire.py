"""Gemini's requests and responses as plain JSON, as they stand in batch files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ethobench.mllm.request import BLOCKED, LENGTH, STOP, Reply, Request

WITHHELD = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)


def generation_config(request: Request) -> dict[str, Any]:
    """Return how the answer is to be made."""
    config: dict[str, Any] = {
        "temperature": request.temperature,
        "topP": request.top_p,
        "maxOutputTokens": request.max_output_tokens,
        "seed": request.draw,
    }
    if request.structured != "none":
        config["responseMimeType"] = "application/json"
    if request.structured == "schema" and request.schema is not None:
        config["responseJsonSchema"] = dict(request.schema)
    return config


def reply_of(response: Mapping[str, Any]) -> Reply:
    """Read a response: the text of the first candidate, why it ended, and what it took."""
    usage = response.get("usageMetadata") or {}
    answered: dict[str, Any] = {
        "input_tokens": usage.get("promptTokenCount"),
        "output_tokens": (usage.get("candidatesTokenCount") or 0) + (usage.get("thoughtsTokenCount") or 0) if usage else None,
        "model": str(response.get("modelVersion") or ""),
        "raw": dict(response),
    }
    refused = (response.get("promptFeedback") or {}).get("blockReason")
    candidates = response.get("candidates") or []
    if refused or not candidates:
        return Reply("", BLOCKED, f"the question was blocked: {refused or 'no answer, and no reason given'}", **answered)
    first = candidates[0]
    parts = (first.get("content") or {}).get("parts") or []
    text = "".join(str(part.get("text") or "") for part in parts if not part.get("thought"))
    reason = str(first.get("finishReason") or "STOP")
    if reason in WITHHELD or (reason not in ("STOP", "MAX_TOKENS") and not text):
        return Reply(text, BLOCKED, f"the answer was withheld: {reason}", **answered)
    if reason == "MAX_TOKENS":
        return Reply(text, LENGTH, "the answer reached the limit of output tokens", **answered)
    return Reply(text, STOP, "" if reason == "STOP" else reason, **answered)
