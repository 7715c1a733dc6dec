"""A small folder of recordings, a server in a thread to ask over HTTP, and a browser."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn

from ethobench import Annotation, Ethogram, write_annotation
from ethobench.app.opening import open_project
from ethobench.app.project import Project
from ethobench.app.server import configure, make_app
from ethobench.core.errors import ReadWarning
from tests.app.browsing import ASKED, CHROMIUM, settle

N, RATE = 600, 10
ETHOGRAM = Ethogram(["rest", "run", "groom", "other"], "other")
SERVE = """
import sys
from pathlib import Path
from ethobench.app.opening import open_project
from ethobench.app.server import serve
serve(open_project(sys.argv[1:]), browser=False, ready=lambda address: print(address, flush=True))
"""
TOKEN = "open-sesame"  # noqa: S105


@pytest.fixture
def lab(tmp_path) -> Path:
    """Two animals with a tag each; two people scored the first."""
    root = tmp_path / "lab"
    (root / "tags").mkdir(parents=True)
    for name in ("m1", "m2"):
        rows = "\n".join(f"{i / RATE},{np.sin(i / 5):.4f},{np.cos(i / 5):.4f},{i % 7}" for i in range(N))
        (root / "tags" / f"{name}.csv").write_text(f"time,AccX,AccY,AccZ\n{rows}\n", encoding="utf-8")
    for name, shift in (("m1_anna", 0), ("m1_ben", 5), ("m2_anna", 20)):
        codes = np.roll(np.arange(N) // 50 % 4, shift)
        write_annotation(Annotation.from_frames(codes, ETHOGRAM, RATE), root / f"{name}.csv", "tidy")
    (root / "recordings.csv").write_text(
        "recording,individual,rate,signals,annotations,annotator\n"
        "m1,mouse1,10,tags/m1.csv,m1_anna.csv,anna\n"
        "m1,mouse1,10,tags/m1.csv,m1_ben.csv,ben\n"
        "m2,mouse2,10,tags/m2.csv,m2_anna.csv,anna\n",
        encoding="utf-8",
    )
    return root


@pytest.fixture
def project(lab) -> Project:
    return open_project([str(lab)])


class Client:
    """Asks a server as a browser or a stranger would."""

    def __init__(self, port: int) -> None:
        self.port = port

    def request(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if body is None or isinstance(body, str) else json.dumps(body)
        if content is not None:
            sent.setdefault("content-type", "application/json")
        connection.putrequest(method, path, skip_host="Host" in sent)
        for name, value in sent.items():
            connection.putheader(name, value)
        if content is not None:
            connection.putheader("content-length", str(len(content)))
        connection.endheaders(content.encode() if content is not None else None)
        answer = connection.getresponse()
        content_back = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, content_back

    def get(self, path: str, status: int = 200) -> Any:
        received, _, content = self.request(f"/{TOKEN}/api/{path}")
        assert received == status, content
        return json.loads(content)

    def post(self, path: str, body: Any, status: int = 200) -> Any:
        received, _, content = self.request(f"/{TOKEN}/api/{path}", "POST", body)
        assert received == status, content
        return json.loads(content)


class QuickServer(uvicorn.Server):
    """Notices within milliseconds, not a tenth of a second, that it should exit: most tests take less than that."""

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % 864_000
            await asyncio.sleep(0.005)


@pytest.fixture
def serving() -> Iterator[Callable[..., Client]]:
    """Give a function that serves a project in a thread."""
    running: list[tuple[uvicorn.Server, threading.Thread, socket.socket]] = []

    def serve(project: Project, launch: str = "") -> Client:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        server = QuickServer(configure(make_app(project, port, TOKEN, launch)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        running.append((server, thread, listener))
        return Client(port)

    yield serve
    for server, thread, listener in running:
        server.should_exit = True
        thread.join(10)
        listener.close()


@pytest.fixture
def client(project, serving) -> Client:
    return serving(project)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright: pip install playwright")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def serve(serving, tmp_path, monkeypatch) -> Callable[..., str]:
    """Give a function that serves what it is given and returns the address."""
    monkeypatch.chdir(tmp_path)

    def start(*sources: object, **options: Any) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReadWarning)
            project = open_project([*map(str, sources)], **options)
        return f"http://127.0.0.1:{serving(project).port}/?token={TOKEN}"

    return start


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Any]]:
    """Give a function that opens an address; errors on the page, and requests that leave the machine, fail the test."""
    contexts, troubles = [], []

    def is_trouble(message: Any, allow: tuple[str, ...]) -> bool:
        handled = ("409 (Conflict)", *allow)  # which the page tells the user, and mends
        return message.type == "error" and not any(text in message.text for text in handled)

    def go(address: str, allow: tuple[str, ...] = (), **options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        context.set_default_timeout(90_000)  # milliseconds; machines of CI may be busy
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("console", lambda message: troubles.append(message.text) if is_trouble(message, allow) else None)
        page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        requested, answered = ASKED[page] = ([], [])
        page.on("request", lambda request: requested.append(request.url))
        page.on("requestfinished", lambda request: answered.append(request.url))
        page.on("requestfailed", lambda request: answered.append(request.url))
        page.on("request", lambda r: None if r.url.startswith(("http://127.0.0.1:", "blob:")) else troubles.append(r.url))
        page.goto(address)
        page.wait_for_selector("eb-recordings [aria-current]", state="attached")
        settle(page)
        return page

    yield go
    errors = list(troubles)  # before closing makes requests fail that are under way
    for context in contexts:
        context.close()
    assert errors == []
