"""A provider that returns a list of replies and errors, and requests for it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from ethobench.mllm.cost import ModelSpec
from ethobench.mllm.providers import Access, Provider, ProviderError
from ethobench.mllm.request import Clip, Reply, Request, Text

SPEC = ModelSpec(name="m", input=1.0, output=10.0, frame_tokens=100, second_tokens=0, output_tokens=1000)
GOOD = Reply('{"segments": []}', input_tokens=1_000, output_tokens=100)


class Scripted(Provider):
    """Returns the replies and raises the errors of a list, then always returns `GOOD`."""

    name = "scripted"

    def __init__(self, *script: Reply | ProviderError, spec: ModelSpec = SPEC) -> None:
        super().__init__("m", Access(), spec)
        self.script, self.sent, self.concurrent, self.max_concurrent = list(script), [], 0, 0
        self.lock = threading.Lock()

    def send(self, request: Request, folder: Path) -> Reply:
        with self.lock:
            self.sent.append(request)
            self.concurrent += 1
            self.max_concurrent = max(self.max_concurrent, self.concurrent)
            result = self.script.pop(0) if self.script else GOOD
        time.sleep(0.005)
        with self.lock:
            self.concurrent -= 1
        if isinstance(result, ProviderError):
            raise result
        return result


def make_request(number: int = 0, seconds: float = 10.0, **fields) -> Request:
    """Make a request with a text and a clip; requests with different numbers have different keys."""
    clip = Clip(Path(f"v{number}.mp4"), f"digest{number}", 0.0, seconds)
    return Request("scripted", "m", "role", (Text("question"), clip), recording=f"v{number}", max_output_tokens=1000, **fields)
