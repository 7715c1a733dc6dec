"""Local HTTP servers with the APIs of Gemini and of OpenAI, which also return errors, hang or break off, as a test needs."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """Reply with a text."""

    text: str
    cut: bool = False


@dataclass(frozen=True)
class Fail:
    """Reply with an HTTP error."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "try later"


@dataclass(frozen=True)
class Hang:
    """Accept the request and send nothing for a while."""

    seconds: float = 5.0


@dataclass(frozen=True)
class BreakOff:
    """Close the connection in the middle of the body."""


@dataclass(frozen=True)
class HalfJson:
    """Send a complete HTTP body that is half a JSON document."""


@dataclass(frozen=True)
class Block:
    """Withhold the answer."""

    prompt: bool = False


NOTHING = Say('{"segments": []}')
Act = Say | Fail | Hang | BreakOff | HalfJson | Block


class Stub:
    """A server that performs a list of acts, one per request, and then always the same act."""

    def __init__(self, *acts: Act, always: Act | Callable[[dict[str, Any]], Act] = NOTHING) -> None:
        self.acts, self.always = deque(acts), always
        self.questions: list[dict[str, Any]] = []
        self.received: list[tuple[str, str, dict[str, str]]] = []
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.batch_is_done = True
        self.polls = 0
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Print nothing."""

            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                with stub.lock:
                    stub.received.append((self.command, self.path, dict(self.headers.items())))
                stub.handle(self, self.command, self.path.partition("?")[0], body, self.headers)

            do_GET = do_POST = _handle  # noqa: N815

        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Stub:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def handle(self, http: Any, method: str, path: str, body: bytes, headers: Message) -> None:
        raise NotImplementedError

    def completion(self, act: Say | Block) -> dict[str, Any]:
        raise NotImplementedError

    def error(self, act: Fail) -> dict[str, Any]:
        raise NotImplementedError

    def act(self, question: dict[str, Any]) -> Act:
        with self.lock:
            self.questions.append(question)
            if self.acts:
                return self.acts.popleft()
        return self.always(question) if callable(self.always) else self.always

    def play(self, http: Any, question: dict[str, Any]) -> None:
        act = self.act(question)
        if isinstance(act, Hang):
            time.sleep(act.seconds)
            http.close_connection = True
        elif isinstance(act, BreakOff):
            body = json.dumps(self.completion(Say('{"segments": []}'))).encode()
            http.send_response(200)
            http.send_header("content-type", "application/json")
            http.send_header("content-length", str(len(body) + 1000))
            http.end_headers()
            http.wfile.write(body[: len(body) // 2])
            http.close_connection = True
        elif isinstance(act, HalfJson):
            body = json.dumps(self.completion(Say('{"segments": []}'))).encode()
            send(http, body[: len(body) // 2])
        elif isinstance(act, Fail):
            send(http, json.dumps(self.error(act)).encode(), act.status, act.headers)
        else:
            send(http, json.dumps(self.completion(act)).encode())


class GeminiStub(Stub):
    """Serves ``models/*:generateContent``, resumable uploads, files and batches."""

    def handle(self, http: Any, method: str, path: str, body: bytes, headers: Message) -> None:
        if path.startswith("/upload/"):
            self._upload(http, body, headers)
        elif path.endswith(":generateContent"):
            self.play(http, json.loads(body))
        elif path.endswith(":batchGenerateContent"):
            submitted = json.loads(body)["batch"]
            name = f"batches/{len(self.batches) + 1}"
            self.batches[name] = submitted
            send(http, json.dumps({"name": name, "metadata": self._metadata(name)}).encode())
        elif path.endswith("/batches"):
            listed = [{"name": name, "metadata": self._metadata(name)} for name in self.batches]
            send(http, json.dumps({"operations": listed}).encode())
        elif "/batches/" in path:
            self.polls += 1
            name = f"batches/{path.rpartition('/')[2]}"
            send(http, json.dumps({"name": name, "done": self.batch_is_done, "metadata": self._metadata(name)}).encode())
        elif path.endswith(":download"):
            name = path.rpartition("/")[2].removesuffix(":download")
            send(http, self._results(f"batches/{name.removeprefix('results-')}"))
        elif "/files/" in path:
            send(http, json.dumps(self._file(f"files/{path.rpartition('/')[2]}", "ACTIVE")).encode())
        else:
            send(http, b"{}", 404)

    def completion(self, act: Say | Block) -> dict[str, Any]:
        usage = {"promptTokenCount": 1000, "candidatesTokenCount": 200, "thoughtsTokenCount": 50, "totalTokenCount": 1250}
        if isinstance(act, Block) and act.prompt:
            return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage, "modelVersion": "stub-1"}
        if isinstance(act, Block):
            return {"candidates": [{"finishReason": "SAFETY", "index": 0}], "usageMetadata": usage, "modelVersion": "stub-1"}
        content = {"parts": [{"text": "thinking", "thought": True}, {"text": act.text}], "role": "model"}
        first = {"content": content, "finishReason": "MAX_TOKENS" if act.cut else "STOP", "index": 0}
        return {"candidates": [first], "usageMetadata": usage, "modelVersion": "stub-1"}

    def error(self, act: Fail) -> dict[str, Any]:
        return {"error": {"code": act.status, "message": act.message, "status": "RESOURCE_EXHAUSTED"}}

    def _upload(self, http: Any, body: bytes, headers: Message) -> None:
        if headers.get("X-Goog-Upload-Command") == "start":
            send(http, b"{}", 200, {"x-goog-upload-url": f"{self.url}/upload/f{len(self.files) + 1}"})
            return
        name = f"files/f{len(self.files) + 1}"
        self.files[name] = body
        send(http, json.dumps({"file": self._file(name, "PROCESSING")}).encode(), 200, {"x-goog-upload-status": "final"})

    def _file(self, name: str, state: str) -> dict[str, Any]:
        return {"name": name, "uri": f"{self.url}/v1beta/{name}", "mimeType": "video/mp4", "state": state}

    def _metadata(self, name: str) -> dict[str, Any]:
        state = "BATCH_STATE_SUCCEEDED" if self.batch_is_done else "BATCH_STATE_RUNNING"
        metadata: dict[str, Any] = {"state": state, "displayName": self.batches[name]["displayName"], "model": "models/stub"}
        if self.batch_is_done:
            metadata["output"] = {"responsesFile": f"files/results-{name.rpartition('/')[2]}"}
        return metadata

    def _results(self, name: str) -> bytes:
        lines = self.files[self.batches[name]["inputConfig"]["fileName"]].decode().splitlines()
        entries = []
        for line in map(json.loads, lines):
            act = self.act(line["request"])
            if isinstance(act, Fail):
                entries.append({"key": line["key"], "error": self.error(act)["error"]})
            else:
                entries.append({"key": line["key"], "response": self.completion(act)})
        return "\n".join(map(json.dumps, entries)).encode()


class OpenAIStub(Stub):
    """Serves ``/chat/completions``, files and batches."""

    def handle(self, http: Any, method: str, path: str, body: bytes, headers: Message) -> None:
        if path.endswith("/chat/completions"):
            self.play(http, json.loads(body))
        elif path.endswith("/files"):
            name = f"file-{len(self.files) + 1}"
            payload = body.partition(b"filename=")[2].partition(b"\r\n\r\n")[2]
            self.files[name] = payload[: payload.rfind(b"\r\n--")]
            send(
                http, json.dumps({"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "q", "purpose": "batch"}).encode()
            )
        elif path.endswith("/batches") and method == "POST":
            name = f"batch_{len(self.batches) + 1}"
            self.batches[name] = json.loads(body)
            send(http, json.dumps(self._batch(name)).encode())
        elif path.endswith("/batches"):
            send(http, json.dumps({"object": "list", "data": [self._batch(n) for n in self.batches], "has_more": False}).encode())
        elif "/batches/" in path:
            self.polls += 1
            send(http, json.dumps(self._batch(path.rpartition("/")[2])).encode())
        elif path.endswith("/content"):
            send(http, self._results(path.split("/")[-2].removeprefix("out-")))
        else:
            send(http, b"{}", 404)

    def completion(self, act: Say | Block) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None if isinstance(act, Block) else act.text}
        reason = "content_filter" if isinstance(act, Block) else "length" if act.cut else "stop"
        usage = {"prompt_tokens": 1000, "completion_tokens": 250, "total_tokens": 1250}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {"id": "c1", "object": "chat.completion", "created": 1, "model": "stub-1", "choices": [choice], "usage": usage}

    def error(self, act: Fail) -> dict[str, Any]:
        return {"error": {"message": act.message, "type": "requests", "code": "rate_limit_exceeded"}}

    def _batch(self, name: str) -> dict[str, Any]:
        submitted = self.batches[name]
        return {
            "id": name,
            "object": "batch",
            "endpoint": submitted["endpoint"],
            "input_file_id": submitted["input_file_id"],
            "completion_window": "24h",
            "created_at": 1,
            "status": "completed" if self.batch_is_done else "in_progress",
            "metadata": submitted.get("metadata"),
            "output_file_id": f"out-{name}" if self.batch_is_done else None,
        }

    def _results(self, name: str) -> bytes:
        lines = self.files[self.batches[name]["input_file_id"]].decode().splitlines()
        entries = []
        for line in map(json.loads, lines):
            act = self.act(line["body"])
            status, body = (act.status, self.error(act)) if isinstance(act, Fail) else (200, self.completion(act))
            entries.append({"id": "r", "custom_id": line["custom_id"], "response": {"status_code": status, "body": body}, "error": None})
        return "\n".join(map(json.dumps, entries)).encode()


def send(http: Any, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
    http.send_response(status)
    for name, value in {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}.items():
        http.send_header(name, value)
    http.end_headers()
    http.wfile.write(body)
