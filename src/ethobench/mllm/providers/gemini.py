"""Google's Gemini models, with an API key or through Vertex AI."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from ethobench.core.messages import Message
from ethobench.mllm.providers.base import (
    BATCH_DONE,
    BATCH_FAILED,
    BATCH_RUNNING,
    SMALLER_VIDEO,
    Provider,
    ProviderError,
    register_provider,
    transport_errors,
)
from ethobench.mllm.request import BLOCKED, LENGTH, STOP, Clip, Part, Reply, Request

KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
BATCH_STATES = {
    "JOB_STATE_SUCCEEDED": BATCH_DONE,
    "JOB_STATE_PARTIALLY_SUCCEEDED": BATCH_DONE,
    "JOB_STATE_FAILED": BATCH_FAILED,
    "JOB_STATE_CANCELLED": BATCH_FAILED,
    "JOB_STATE_EXPIRED": BATCH_FAILED,
}
NOT_STORED = {"sdk_http_response", "parsed", "automatic_function_calling_history"}
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


@register_provider("gemini")
class Gemini(Provider):
    """Gemini through the library google-genai.

    With ``GOOGLE_GENAI_USE_VERTEXAI=true``, requests go through Vertex AI with the credentials of Google Cloud.
    """

    title = "Google Gemini: API key in GEMINI_API_KEY, or Vertex AI with GOOGLE_GENAI_USE_VERTEXAI=true"
    input_types = ("video", "link")
    can_batch = True
    default_host = "generativelanguage.googleapis.com"
    base_url_variables = ("GOOGLE_GEMINI_BASE_URL",)

    @property
    def default_key_variables(self) -> tuple[str, ...]:
        """Google's variables."""
        return KEY_VARIABLES

    @property
    def host(self) -> str:
        """Host of the Gemini API or of Vertex AI."""
        return "aiplatform.googleapis.com" if self._uses_vertex and not self.access.base_url else super().host

    @cached_property
    def _uses_vertex(self) -> bool:
        return os.environ.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() in ("1", "true")

    @cached_property
    def _client(self) -> Any:
        try:
            from google import genai
            from google.genai import types
        except ImportError:
            raise ProviderError("gemini needs google-genai; install it with: pip install 'ethobench[mllm]'") from None
        options = types.HttpOptions(
            timeout=int(self.access.timeout * 1000), base_url=self.access.base_url or None, client_args={"follow_redirects": False}
        )
        key = self.key(optional=self._uses_vertex)
        try:
            return genai.Client(vertexai=self._uses_vertex, api_key=key or None, http_options=options)
        except (ValueError, OSError) as error:
            raise ProviderError(f"gemini: {self.redact(str(error))}") from None

    @cached_property
    def _uploads(self) -> dict[str, tuple[str, str]]:
        """URL and MIME type of uploaded clips by key. Google stores uploads for two days."""
        return {}

    def send(self, request: Request, folder: Path) -> Reply:
        """Send a request once."""
        with self._convert_errors():
            from google.genai import types

            content = {"role": "user", "parts": [self._encode_part(item, folder) for item in request.parts]}
            response = self._client.models.generate_content(
                model=request.model,
                contents=[types.Content.model_validate_json(json.dumps(content))],
                config={**_generation_config(request), "systemInstruction": request.system},
            )
            raw = response.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=NOT_STORED)
        return parse_gemini_response(self.redact(raw))

    def batch_line(self, request: Request, folder: Path) -> str:
        """Return the line of a batch file."""
        with self._convert_errors():
            parts = [self._encode_part(item, folder, upload=True) for item in request.parts]
        body = {
            "contents": [{"role": "user", "parts": parts}],
            "systemInstruction": {"parts": [{"text": request.system}]},
            "generationConfig": _generation_config(request),
        }
        return json.dumps({"key": request.key, "request": body})

    def submit_batch(self, lines: Path, label: str) -> str:
        """Upload a batch file and start the batch."""
        if self._uses_vertex:
            raise ProviderError("batches on Vertex AI need a file in Cloud Storage, which is not supported; use an API key instead")
        with self._convert_errors():
            uploaded = self._client.files.upload(file=str(lines), config={"mime_type": "jsonl", "display_name": label})
            job = self._client.batches.create(model=self.model, src=uploaded.name, config={"display_name": label})
        return str(job.name)

    def find_batch(self, label: str) -> str | None:
        """Return the name of the batch with this label."""
        with self._convert_errors():
            return next((str(job.name) for job in self._client.batches.list() if job.display_name == label), None)

    def batch_state(self, name: str) -> tuple[str, str]:
        """Return the state of a batch."""
        with self._convert_errors():
            job = self._client.batches.get(name=name)
        state = job.state.name if job.state else ""
        detail = f"{state}: {self.redact(str(job.error.message))}" if job.error else state
        return BATCH_STATES.get(state, BATCH_RUNNING), detail

    def batch_replies(self, name: str) -> Iterator[tuple[str, Reply | ProviderError]]:
        """Yield the replies of a batch."""
        with self._convert_errors():
            job = self._client.batches.get(name=name)
            if job.dest is None or not job.dest.file_name:
                raise ProviderError(f"gemini: batch {name} has no file of replies")
            lines = self._client.files.download(file=job.dest.file_name).decode("utf-8", errors="replace").splitlines()
        for line in filter(str.strip, lines):
            try:
                entry = json.loads(line)
                key, response = str(entry["key"]), entry.get("response")
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # its request is reported as one without a reply
            if isinstance(response, dict):
                yield key, parse_gemini_response(self.redact(response))
            else:
                fault = entry.get("error") or entry.get("status") or {}
                yield key, self.http_error(int(fault.get("code") or 0), str(fault.get("message") or "no reply"))

    def _encode_part(self, item: Part, folder: Path, *, upload: bool = False) -> dict[str, Any]:
        """Return a part as the API expects it. Videos that are too large for a request are uploaded first."""
        if not isinstance(item, Clip):
            return {"text": item.text}
        metadata: dict[str, Any] = {"videoMetadata": {"fps": item.fps}} if item.fps else {}
        if item.input_type == "link":
            return {"fileData": {"fileUri": item.url, "mimeType": "video/mp4"}, **metadata}
        if item.key not in self._uploads:
            file, mime = item.file(folder)
            size = file.stat().st_size
            transfer = self.access.transfer
            if transfer == "auto":
                transfer = "inline" if size <= self.spec.inline_bytes else "upload"
            if self._uses_vertex or (transfer == "inline" and not upload):
                self._check_size(item, size, self.spec.inline_bytes, "within a request")
                return {"inlineData": {"data": base64.b64encode(file.read_bytes()).decode(), "mimeType": mime}, **metadata}
            self._check_size(item, size, self.spec.file_bytes, "per file")
            self._uploads[item.key] = (self._upload(file, mime), mime)
        url, mime = self._uploads[item.key]
        return {"fileData": {"fileUri": url, "mimeType": mime}, **metadata}

    def _check_size(self, clip: Clip, size: int, limit: int, scope: str) -> None:
        if size > limit:
            message = f"{clip.video.name}: {size / 1e6:.0f} MB exceed the limit of gemini, {limit / 1e6:.0f} MB {scope}; "
            raise ProviderError(Message(message, SMALLER_VIDEO))

    def _upload(self, file: Path, mime: str) -> str:
        """Upload a video, wait until it is processed, and return its URL."""
        uploaded = self._client.files.upload(file=str(file), config={"mime_type": mime})
        deadline = time.monotonic() + self.access.timeout
        while uploaded.state is not None and uploaded.state.name == "PROCESSING":
            if time.monotonic() > deadline:
                raise ProviderError(f"gemini: {file.name} was not processed within {self.access.timeout:g} s of its upload", transient=True)
            time.sleep(self.access.poll)
            uploaded = self._client.files.get(name=uploaded.name)
        if uploaded.state is not None and uploaded.state.name == "FAILED":
            raise ProviderError(f"gemini cannot read {file.name}; check that it is a valid video")
        return str(uploaded.uri)

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert errors of the client library to `ProviderError`."""
        _ = self._client  # raises a clear error if the library or the key is missing
        from google.genai import errors

        try:
            yield
        except errors.APIError as error:
            headers = getattr(error.response, "headers", None) or {}
            converted = self.http_error(error.code or 0, str(error.message or error.status or "no reason"), dict(headers))
            if converted.retry_after is None:
                converted.retry_after = _retry_delay(error.details)
            raise converted from None
        except (errors.UnknownApiResponseError, json.JSONDecodeError) as error:
            raise self.connection_error(error) from None
        except transport_errors() as error:
            raise self.connection_error(error) from None


def parse_gemini_response(response: Mapping[str, Any]) -> Reply:
    """Parse a response in JSON form, as it is in batch files too: text of the first candidate, finish reason and tokens."""
    usage = response.get("usageMetadata") or {}
    fields: dict[str, Any] = {
        "input_tokens": usage.get("promptTokenCount"),
        "output_tokens": (usage.get("candidatesTokenCount") or 0) + (usage.get("thoughtsTokenCount") or 0) if usage else None,
        "model": str(response.get("modelVersion") or ""),
        "raw": dict(response),
    }
    block_reason = (response.get("promptFeedback") or {}).get("blockReason")
    candidates = response.get("candidates") or []
    if block_reason or not candidates:
        return Reply("", BLOCKED, f"the request was blocked: {block_reason or 'no reason'}", **fields)
    first = candidates[0]
    parts = (first.get("content") or {}).get("parts") or []
    text = "".join(str(item.get("text") or "") for item in parts if not item.get("thought"))
    reason = str(first.get("finishReason") or "STOP")
    if reason in WITHHELD or (reason not in ("STOP", "MAX_TOKENS") and not text):
        return Reply(text, BLOCKED, f"the answer was withheld: {reason}", **fields)
    if reason == "MAX_TOKENS":
        return Reply(text, LENGTH, "the answer reached the limit of output tokens", **fields)
    return Reply(text, STOP, "" if reason == "STOP" else reason, **fields)


def _generation_config(request: Request) -> dict[str, Any]:
    """Return the sampling parameters and the output format in JSON form."""
    config: dict[str, Any] = {
        "temperature": request.temperature,
        "topP": request.top_p,
        "maxOutputTokens": request.max_output_tokens,
        "seed": request.seed,
    }
    if request.structured_output != "none":
        config["responseMimeType"] = "application/json"
    if request.structured_output == "schema" and request.schema is not None:
        config["responseJsonSchema"] = dict(request.schema)
    return config


def _retry_delay(details: Any) -> float | None:
    """Return the seconds in the ``retryDelay`` of Google's error details, such as ``"23s"``."""
    entries = ((details or {}).get("error") or {}).get("details") or [] if isinstance(details, dict) else []
    for entry in entries:
        delay = str(entry.get("retryDelay") or "") if isinstance(entry, dict) else ""
        if delay.removesuffix("s").replace(".", "", 1).isdigit():
            return float(delay.removesuffix("s"))
    return None
