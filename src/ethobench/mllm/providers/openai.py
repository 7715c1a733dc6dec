"""Any server that speaks OpenAI's chat completions: OpenAI, Qwen on DashScope, vLLM, Ollama, ..."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from ethobench.mllm.providers.base import BROKEN, DONE, RUNNING, Provider, ProviderError, register_provider
from ethobench.mllm.providers.openai_wire import chat_body, reply_of
from ethobench.mllm.providers.transport import transport_errors
from ethobench.mllm.request import Reply, Request

ENDPOINT = "/v1/chat/completions"
BATCH_STATES = {"completed": DONE, "failed": BROKEN, "expired": BROKEN, "cancelled": BROKEN}


@register_provider("openai")
class OpenAI(Provider):
    """Asks through the openai library; ``base_url`` names any other server."""

    title = "OpenAI or any compatible server (--base-url): key in OPENAI_API_KEY, or DASHSCOPE_API_KEY for Qwen"
    forms = ("frames", "video", "link")
    can_batch = True
    default_host = "api.openai.com"
    address_variables = ("OPENAI_BASE_URL",)

    @property
    def usual_key_variables(self) -> tuple[str, ...]:
        """OpenAI's own, or that of DashScope, which serves Qwen."""
        return ("DASHSCOPE_API_KEY",) if "aliyun" in self.access.base_url else ("OPENAI_API_KEY",)

    @cached_property
    def _client(self) -> Any:
        try:
            import openai
        except ImportError:
            raise ProviderError("openai needs the library openai; install it with: pip install 'ethobench[mllm]'") from None
        key = self.key(optional=bool(self.access.base_url))  # local servers need none
        connections = openai.DefaultHttpxClient(follow_redirects=False)
        weakref.finalize(self, connections.close)
        return openai.OpenAI(
            api_key=key or "none",
            base_url=self.access.base_url or None,
            timeout=self.access.timeout,
            max_retries=0,
            http_client=connections,
        )

    @property
    def _limit_name(self) -> str:
        """OpenAI's newer models refuse the old name, and other servers do not know the new one."""
        return "max_tokens" if self.access.base_url else "max_completion_tokens"

    def ask(self, request: Request, folder: Path) -> Reply:
        """Ask once."""
        body = self._body(request, folder)
        with self._errors():
            response = self._client.chat.completions.create(**body)
            raw = response.model_dump(mode="json", exclude_none=True) if hasattr(response, "model_dump") else None
        if not isinstance(raw, dict):
            raise ProviderError("openai: the server's answer is no chat completion; is the address right?")
        return reply_of(self.clean(raw))

    def _body(self, request: Request, folder: Path) -> dict[str, Any]:
        """Return what is sent; pictures are made once, however often it is sent."""
        kept = folder / f"{request.key}.json"
        if not kept.exists():
            kept.write_text(json.dumps(chat_body(request, folder, self.facts, limit_name=self._limit_name)), encoding="utf-8")
        body: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return body

    def batch_line(self, request: Request, folder: Path) -> str:
        """Return the line of a batch file."""
        body = self._body(request, folder)
        return json.dumps({"custom_id": request.key, "method": "POST", "url": ENDPOINT, "body": body})

    def submit_batch(self, lines: Path, label: str) -> str:
        """Upload a batch file and have it worked on."""
        with self._errors():
            uploaded = self._client.files.create(file=lines, purpose="batch")
            job = self._client.batches.create(
                input_file_id=uploaded.id, endpoint=ENDPOINT, completion_window="24h", metadata={"label": label}
            )
        return str(job.id)

    def find_batch(self, label: str) -> str | None:
        """Look for a batch among those handed in."""
        with self._errors():
            return next((str(job.id) for job in self._client.batches.list() if (job.metadata or {}).get("label") == label), None)

    def batch_state(self, name: str) -> tuple[str, str]:
        """Tell how far a batch is."""
        with self._errors():
            job = self._client.batches.retrieve(name)
        faults = [str(fault.message) for fault in (job.errors.data or [])] if job.errors else []
        return BATCH_STATES.get(job.status, RUNNING), self.clean("; ".join([job.status, *faults[:3]]))

    def batch_answers(self, name: str) -> Iterator[tuple[str, Reply | ProviderError]]:
        """Fetch the answers of a batch."""
        with self._errors():
            job = self._client.batches.retrieve(name)
            files = [file for file in (job.output_file_id, job.error_file_id) if file]
            texts = [self._client.files.content(file).read().decode("utf-8", errors="replace") for file in files]
        for line in (line for text in texts for line in text.splitlines() if line.strip()):
            try:
                entry = json.loads(line)
                key, response = str(entry["custom_id"]), entry.get("response") or {}
                status, body = int(response.get("status_code") or 0), response.get("body")
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # the question to which it belongs counts as unanswered, and is told as such
            if status == 200 and isinstance(body, dict):
                yield key, reply_of(self.clean(body))
            else:
                fault = entry.get("error") or (body or {}).get("error") or {}
                yield key, self.failure(status, str(fault.get("message") or "no answer"))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the client's errors into ours."""
        _ = self._client  # says in words what is missing, the library or the key
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            told = error.body.get("message") if isinstance(error.body, dict) else None
            raise self.failure(error.status_code, str(told or error.message), dict(error.response.headers)) from None
        except (openai.APIConnectionError, openai.APIResponseValidationError, json.JSONDecodeError) as error:
            raise self.lost(error) from None
        except transport_errors() as error:
            raise self.lost(error) from None
        except openai.OpenAIError as error:
            raise ProviderError(f"openai: {self.clean(str(error))}") from None
