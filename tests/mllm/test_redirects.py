"""Redirects: neither the key nor the video is sent to another address."""

from __future__ import annotations

from pathlib import Path

import pytest

from ethobench import Recording
from ethobench.datasets.fetch import RemoteFile, download, list_record
from ethobench.mllm.annotate import build_requests, create_provider
from ethobench.mllm.providers import Access, providers
from ethobench.mllm.request import RequestSettings
from ethobench.mllm.retry import RetryPolicy
from ethobench.mllm.runner import RequestRunner
from ethobench.mllm.task import load_task
from tests.mllm.conftest import KEY
from tests.mllm.outcomes import MODELS, STUBS
from tests.mllm.stubs import Fail, Stub, send

SLOW_IMPORTS = ("openai", "gemini")  # their client libraries take a second to import


def test_every_provider_that_uses_the_network_is_enrolled() -> None:
    assert {*STUBS} == {provider.name for provider in map(providers.__getitem__, providers.names()) if provider.uses_network}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("provider_name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW_IMPORTS else n for n in STUBS])
def test_no_client_follows_a_redirect(provider_name: str, status: int, short: Path) -> None:
    with (
        STUBS[provider_name]() as elsewhere,
        STUBS[provider_name](always=Fail(status, {"location": f"{elsewhere.url}/v1?key={KEY}"})) as server,
    ):
        provider = create_provider(provider_name, MODELS[provider_name], Access(base_url=server.url, timeout=5, poll=0.01))
        recording = build_requests(Recording("short", video=short), load_task("calms21"), provider, RequestSettings(fps=1))
        result = RequestRunner(provider, retry_policy=RetryPolicy(attempts=3, initial_delay=0.0)).send(recording.requests[0])
        assert elsewhere.received == []
        assert len(server.questions) == 1  # sent once: a redirect is not retried
    assert f"{provider_name} returned status {status}, a redirect to http://127.0.0.1:" in result.error
    assert "nothing was sent there" in result.error
    assert KEY not in result.error


class Files(Stub):
    """Serves a record and its file, or redirects."""

    target = ""

    def handle(self, http, method, path, body, headers) -> None:
        if self.target:
            send(http, b"", 302, {"location": self.target + path})
        elif path.endswith("/files"):
            send(http, b'{"entries": [{"key": "a.csv", "links": {"content": "%s/a.csv"}}]}' % self.url.encode())
        else:
            send(http, b"content")


def test_downloads_follow_redirects_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    with Files() as mirror, Files() as server:
        server.target = mirror.url
        assert [file.name for file in list_record(f"{server.url}/api/records/1")] == ["a.csv"]
        fetched = download(RemoteFile(url=f"{server.url}/a.csv", name="a.csv"), tmp_path)
        assert fetched.read_bytes() == b"content"
        sent = [headers for stub in (server, mirror) for *_, headers in stub.received]
    assert len(sent) == 4
    for headers in sent:
        assert not {"authorization", "cookie", "x-goog-api-key"} & {name.lower() for name in headers}
        assert KEY not in str(headers)
