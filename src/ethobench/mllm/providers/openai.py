"""OpenAI, and any server with a compatible chat-completions API: Qwen on DashScope, vLLM, Ollama."""

from __future__ import annotations

import base64
import json
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from ethobench.core.messages import Message, Option
from ethobench.formats.text import format_clock
from ethobench.mllm.cost import ModelSpec
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
from ethobench.mllm.request import BLOCKED, LENGTH, STOP, Clip, Reply, Request

ENDPOINT = "/v1/chat/completions"
BATCH_STATES = {"completed": BATCH_DONE, "failed": BATCH_FAILED, "expired": BATCH_FAILED, "cancelled": BATCH_FAILED}


@register_provider("openai")
class OpenAI(Provider):
    """OpenAI through the library openai; ``base_url`` selects a compatible server."""

    title = "OpenAI or a compatible server: API key in OPENAI_API_KEY, or DASHSCOPE_API_KEY for Qwen"
    input_types = ("frames", "video", "link")
    can_batch = True
    default_host = "api.openai.com"
    base_url_variables = ("OPENAI_BASE_URL",)

    @property
    def default_key_variables(self) -> tuple[str, ...]:
        """The variable of OpenAI, or that of DashScope, which serves Qwen."""
        return ("DASHSCOPE_API_KEY",) if "aliyun" in self.access.base_url else ("OPENAI_API_KEY",)

    @cached_property
    def _client(self) -> Any:
        try:
            import openai
        except ImportError:
            raise ProviderError("openai needs the library openai; install it with: pip install 'ethobench[mllm]'") from None
        key = self.key(optional=bool(self.access.base_url))  # local servers need none
        http_client = openai.DefaultHttpxClient(follow_redirects=False)
        weakref.finalize(self, http_client.close)
        return openai.OpenAI(
            api_key=key or "none",
            base_url=self.access.base_url or None,
            timeout=self.access.timeout,
            max_retries=0,
            http_client=http_client,
        )

    @property
    def _limit_name(self) -> str:
        """Name of the limit of output tokens. OpenAI's newer models refuse the old name, and other servers do not know the new one."""
        return "max_tokens" if self.access.base_url else "max_completion_tokens"

    def send(self, request: Request, folder: Path) -> Reply:
        """Send a request once."""
        body = self._body(request, folder)
        with self._convert_errors():
            response = self._client.chat.completions.create(**body)
            raw = response.model_dump(mode="json", exclude_none=True) if hasattr(response, "model_dump") else None
        if not isinstance(raw, dict):
            raise ProviderError(Message("openai: the response of the server is not a chat completion; check ", Option("base_url")))
        return parse_chat_completion(self.redact(raw))

    def _body(self, request: Request, folder: Path) -> dict[str, Any]:
        """Return the body of a request. Frames are encoded once, also if the request is sent several times."""
        path = folder / f"{request.key}.json"
        if not path.exists():
            path.write_text(json.dumps(_chat_body(request, folder, self.spec, limit_name=self._limit_name)), encoding="utf-8")
        body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return body

    def batch_line(self, request: Request, folder: Path) -> str:
        """Return the line of a batch file."""
        body = self._body(request, folder)
        return json.dumps({"custom_id": request.key, "method": "POST", "url": ENDPOINT, "body": body})

    def submit_batch(self, lines: Path, label: str) -> str:
        """Upload a batch file and start the batch."""
        with self._convert_errors():
            uploaded = self._client.files.create(file=lines, purpose="batch")
            job = self._client.batches.create(
                input_file_id=uploaded.id, endpoint=ENDPOINT, completion_window="24h", metadata={"label": label}
            )
        return str(job.id)

    def find_batch(self, label: str) -> str | None:
        """Return the name of the batch with this label."""
        with self._convert_errors():
            return next((str(job.id) for job in self._client.batches.list() if (job.metadata or {}).get("label") == label), None)

    def batch_state(self, name: str) -> tuple[str, str]:
        """Return the state of a batch."""
        with self._convert_errors():
            job = self._client.batches.retrieve(name)
        faults = [str(fault.message) for fault in (job.errors.data or [])] if job.errors else []
        return BATCH_STATES.get(job.status, BATCH_RUNNING), self.redact("; ".join([job.status, *faults[:3]]))

    def batch_replies(self, name: str) -> Iterator[tuple[str, Reply | ProviderError]]:
        """Yield the replies of a batch."""
        with self._convert_errors():
            job = self._client.batches.retrieve(name)
            files = [file for file in (job.output_file_id, job.error_file_id) if file]
            texts = [self._client.files.content(file).read().decode("utf-8", errors="replace") for file in files]
        for line in (line for text in texts for line in text.splitlines() if line.strip()):
            try:
                entry = json.loads(line)
                key, response = str(entry["custom_id"]), entry.get("response") or {}
                status, body = int(response.get("status_code") or 0), response.get("body")
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # its request is reported as one without a reply
            if status == 200 and isinstance(body, dict):
                yield key, parse_chat_completion(self.redact(body))
            else:
                fault = entry.get("error") or (body or {}).get("error") or {}
                yield key, self.http_error(status, str(fault.get("message") or "no reply"))

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert errors of the client library to `ProviderError`."""
        _ = self._client  # raises a clear error if the library or the key is missing
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            message = error.body.get("message") if isinstance(error.body, dict) else None
            raise self.http_error(error.status_code, str(message or error.message), dict(error.response.headers)) from None
        except (openai.APIConnectionError, openai.APIResponseValidationError, json.JSONDecodeError) as error:
            raise self.connection_error(error) from None
        except transport_errors() as error:
            raise self.connection_error(error) from None
        except openai.OpenAIError as error:
            raise ProviderError(f"openai: {self.redact(str(error))}") from None


def parse_chat_completion(response: Mapping[str, Any]) -> Reply:
    """Parse a chat completion in JSON form, as it is in batch files too: text of the first choice, finish reason and tokens."""
    usage = response.get("usage") or {}
    fields: dict[str, Any] = {
        "input_tokens": usage.get("prompt_tokens"),
        "output_tokens": usage.get("completion_tokens"),
        "model": str(response.get("model") or ""),
        "raw": dict(response),
    }
    choices = response.get("choices") or []
    if not choices:
        return Reply("", BLOCKED, "no answer, and no reason", **fields)
    message = choices[0].get("message") or {}
    text, refusal = str(message.get("content") or ""), message.get("refusal")
    reason = str(choices[0].get("finish_reason") or "stop")
    if refusal or reason == "content_filter":
        return Reply(text, BLOCKED, f"the answer was withheld: {str(refusal or reason)[:200]}", **fields)
    if reason == "length":
        return Reply(text, LENGTH, "the answer reached the limit of output tokens", **fields)
    return Reply(text, STOP, "" if reason == "stop" else reason, **fields)


def _chat_body(request: Request, folder: Path, spec: ModelSpec, *, limit_name: str) -> dict[str, Any]:
    """Return the body of a chat completion in JSON form.

    Parameters
    ----------
    request : Request
    folder : Path
        For temporary files.
    spec : ModelSpec
        Limits of the model.
    limit_name : str
        The server's name of the limit of output tokens.
    """
    content: list[dict[str, Any]] = []
    for item in request.parts:
        content += _encode_clip(item, folder, spec) if isinstance(item, Clip) else [{"type": "text", "text": item.text}]
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": content}],
        "temperature": request.temperature,
        "top_p": request.top_p,
        limit_name: request.max_output_tokens,
    }
    if request.seed:
        body["seed"] = request.seed
    if request.structured_output == "schema" and request.schema is not None:
        json_schema = {"name": "answer", "strict": True, "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    elif request.structured_output == "object":
        body["response_format"] = {"type": "json_object"}
    return body


def _encode_clip(clip: Clip, folder: Path, spec: ModelSpec) -> list[dict[str, Any]]:
    """Return the parts of a message for a clip: a video, or frames, each after its time."""
    if clip.input_type == "link":
        return [{"type": "video_url", "video_url": {"url": clip.url}}]
    if clip.input_type == "video":
        file, mime = clip.file(folder)
        data = file.read_bytes()
        _check_size(clip, len(data), spec)
        fps = {"fps": clip.fps} if clip.fps else {}  # an extension of DashScope
        return [{"type": "video_url", "video_url": {"url": _data_url(data, mime)}, **fps}]
    parts: list[dict[str, Any]] = []
    size = 0
    for seconds, frame in clip.frames(spec.fps):
        size += len(frame)
        parts.append({"type": "text", "text": format_clock(int(seconds))})
        parts.append({"type": "image_url", "image_url": {"url": _data_url(frame, "image/jpeg")}})
    _check_size(clip, size, spec)
    return parts


def _data_url(data: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def _check_size(clip: Clip, size: int, spec: ModelSpec) -> None:
    if size > spec.inline_bytes:
        limit = f"the limit of {spec.name}, {spec.inline_bytes / 1e6:.0f} MB within a request; "
        raise ProviderError(Message(f"{clip.video.name}: {size / 1e6:.1f} MB of video exceed {limit}", SMALLER_VIDEO))
