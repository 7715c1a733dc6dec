"""Google's Gemini models, by API key or through Vertex AI."""

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

from ethobench.mllm.providers.base import DONE, FAILED_BATCH, RUNNING, Provider, ProviderError, register_provider, transport_errors
from ethobench.mllm.request import BLOCKED, LENGTH, STOP, Clip, Reply, Request

KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
BATCH_STATES = {"JOB_STATE_SUCCEEDED": DONE, "JOB_STATE_PARTIALLY_SUCCEEDED": DONE}
BROKEN_STATES = ("JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED")
UNKEPT = {"sdk_http_response", "parsed", "automatic_function_calling_history"}


@register_provider("gemini")
class Gemini(Provider):
    """Asks through google-genai. With ``GOOGLE_GENAI_USE_VERTEXAI`` set, through Vertex AI with Google Cloud's own credentials."""

    title = "Google Gemini: API key in GEMINI_API_KEY, or Vertex AI with GOOGLE_GENAI_USE_VERTEXAI=true"
    input_types = ("video", "link")
    can_batch = True
    default_host = "generativelanguage.googleapis.com"
    base_url_variables = ("GOOGLE_GEMINI_BASE_URL",)

    @property
    def default_key_variables(self) -> tuple[str, ...]:
        """Google's own."""
        return KEY_VARIABLES

    @property
    def host(self) -> str:
        """That of the Gemini API, or of Vertex AI."""
        return "aiplatform.googleapis.com" if self._vertex and not self.access.base_url else super().host

    @cached_property
    def _vertex(self) -> bool:
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
        key = self.key(optional=self._vertex)
        try:
            return genai.Client(vertexai=self._vertex, api_key=key or None, http_options=options)
        except (ValueError, OSError) as error:
            raise ProviderError(f"gemini: {self.redact(str(error))}") from None

    @cached_property
    def _uploaded(self) -> dict[str, tuple[str, str]]:
        """Addresses and types of the clips that lie with Google already; they stay there for two days."""
        return {}

    def send(self, request: Request, folder: Path) -> Reply:
        """Ask once."""
        with self._errors():
            from google.genai import types

            content = {"role": "user", "parts": [self._part(part, folder) for part in request.parts]}
            response = self._client.models.generate_content(
                model=request.model,
                contents=[types.Content.model_validate_json(json.dumps(content))],
                config={**generation_config(request), "systemInstruction": request.system},
            )
            raw = response.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=UNKEPT)
        return parse_gemini_response(self.redact(raw))

    def batch_line(self, request: Request, folder: Path) -> str:
        """Return the line of a batch file."""
        with self._errors():
            parts = [self._part(part, folder, upload=True) for part in request.parts]
        asked = {
            "contents": [{"role": "user", "parts": parts}],
            "systemInstruction": {"parts": [{"text": request.system}]},
            "generationConfig": generation_config(request),
        }
        return json.dumps({"key": request.key, "request": asked})

    def submit_batch(self, lines: Path, label: str) -> str:
        """Upload a batch file and have it worked_examples on."""
        if self._vertex:
            raise ProviderError("on Vertex AI a batch file must lie in Cloud Storage, which this does not do; use an API key instead")
        with self._errors():
            uploaded = self._client.files.upload(file=str(lines), config={"mime_type": "jsonl", "display_name": label})
            job = self._client.batches.create(model=self.model, src=uploaded.name, config={"display_name": label})
        return str(job.name)

    def find_batch(self, label: str) -> str | None:
        """Look for a batch among those handed in."""
        with self._errors():
            return next((str(job.name) for job in self._client.batches.list() if job.display_name == label), None)

    def batch_state(self, name: str) -> tuple[str, str]:
        """Tell how far a batch is."""
        with self._errors():
            job = self._client.batches.get(name=name)
        state = job.state.name if job.state else ""
        told = f"{state}: {self.redact(str(job.error.message))}" if job.error else state
        return BATCH_STATES.get(state, FAILED_BATCH if state in BROKEN_STATES else RUNNING), told

    def batch_replies(self, name: str) -> Iterator[tuple[str, Reply | ProviderError]]:
        """Fetch the answers of a batch."""
        with self._errors():
            job = self._client.batches.get(name=name)
            if job.dest is None or not job.dest.file_name:
                raise ProviderError(f"gemini: batch {name} has no file of answers")
            lines = self._client.files.download(file=job.dest.file_name).decode("utf-8", errors="replace").splitlines()
        for line in filter(str.strip, lines):
            try:
                entry = json.loads(line)
                key, response = str(entry["key"]), entry.get("response")
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # the question to which it belongs counts as unanswered, and is told as such
            if isinstance(response, dict):
                yield key, parse_gemini_response(self.redact(response))
            else:
                fault = entry.get("error") or entry.get("status") or {}
                yield key, self.http_error(int(fault.get("code") or 0), str(fault.get("message") or "no answer"))

    def _part(self, part: Any, folder: Path, *, upload: bool = False) -> dict[str, Any]:
        """Return a part as Gemini takes it; videos that are too large to go along are uploaded first."""
        if not isinstance(part, Clip):
            return {"text": part.text}
        shown: dict[str, Any] = {"videoMetadata": {"fps": part.fps}} if part.fps else {}
        if part.input_type == "link":
            return {"fileData": {"fileUri": part.url, "mimeType": "video/mp4"}, **shown}
        if part.key not in self._uploaded:
            file, mime = part.file(folder)
            size = file.stat().st_size
            chosen = self.access.transfer if self.access.transfer != "auto" else "inline" if size <= self.spec.inline_bytes else "upload"
            if self._vertex or (chosen == "inline" and not upload):
                self._check_size(part, size, self.spec.inline_bytes, "with a question")
                return {"inlineData": {"data": base64.b64encode(file.read_bytes()).decode(), "mimeType": mime}, **shown}
            self._check_size(part, size, self.spec.file_bytes, "in one file")
            self._uploaded[part.key] = (self._upload(file, mime), mime)
        address, mime = self._uploaded[part.key]
        return {"fileData": {"fileUri": address, "mimeType": mime}, **shown}

    def _check_size(self, clip: Clip, size: int, limit: int, how: str) -> None:
        if size > limit:
            raise ProviderError(
                f"{clip.video.name}: {size / 1e6:.0f} MB, and gemini takes {limit / 1e6:.0f} MB {how}; "
                "use a lower --height or --fps, or a --window"
            )

    def _upload(self, file: Path, mime: str) -> str:
        """Upload a video and wait until it can be asked about."""
        made = self._client.files.upload(file=str(file), config={"mime_type": mime})
        deadline = time.monotonic() + self.access.timeout
        while made.state is not None and made.state.name == "PROCESSING":
            if time.monotonic() > deadline:
                raise ProviderError(f"gemini: {file.name} was not ready {self.access.timeout:g} s after its upload", transient=True)
            time.sleep(self.access.poll)
            made = self._client.files.get(name=made.name)
        if made.state is not None and made.state.name == "FAILED":
            raise ProviderError(f"gemini could not read {file.name}; is it a sound video?")
        return str(made.uri)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the client's errors into ours."""
        _ = self._client  # says in words what is missing, the library or the key
        from google.genai import errors

        try:
            yield
        except errors.APIError as error:
            headers = getattr(error.response, "headers", None) or {}
            failure = self.http_error(error.code or 0, str(error.message or error.status or "no reason given"), dict(headers))
            failure.retry_after = failure.retry_after if failure.retry_after is not None else _retry_delay(error.details)
            raise failure from None
        except (errors.UnknownApiResponseError, json.JSONDecodeError) as error:
            raise self.connection_error(error) from None
        except transport_errors() as error:
            raise self.connection_error(error) from None


def _retry_delay(details: Any) -> float | None:
    """Return the delay that Google's error details ask for, such as ``"23s"``."""
    entries = ((details or {}).get("error") or {}).get("details") or [] if isinstance(details, dict) else []
    for entry in entries:
        delay = str(entry.get("retryDelay") or "") if isinstance(entry, dict) else ""
        if delay.removesuffix("s").replace(".", "", 1).isdigit():
            return float(delay.removesuffix("s"))
    return None


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
        "seed": request.seed,
    }
    if request.structured_output != "none":
        config["responseMimeType"] = "application/json"
    if request.structured_output == "schema" and request.schema is not None:
        config["responseJsonSchema"] = dict(request.schema)
    return config


def parse_gemini_response(response: Mapping[str, Any]) -> Reply:
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
