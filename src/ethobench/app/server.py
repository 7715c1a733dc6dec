"""The viewer's web server, on the loopback address only.

A client that never finishes a request must not block the page. A connection waits for a request from the moment it is opened, and again
after each response. It is closed if the head of the request is not complete in time. If too many connections wait, the oldest is closed,
so half-open connections can exhaust neither file handles nor memory.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import webbrowser
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from ethobench.app.api import Api
from ethobench.app.background import BackgroundJobs
from ethobench.app.blinding import Blinding
from ethobench.app.exports_api import ExportsApi
from ethobench.app.payloads import project_payload
from ethobench.app.project import Project
from ethobench.app.security import Guard, new_token
from ethobench.app.teaching import Teaching
from ethobench.app.teaching_api import TeachingApi
from ethobench.app.video_api import VideoApi
from ethobench.app.zones_api import ZonesApi
from ethobench.core.errors import EthobenchError
from ethobench.core.messages import Message, Option

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

LOOPBACK = "127.0.0.1"
HEAD_SECONDS = 10.0
MAX_WAITING = 64
BACKLOG = 64  # connections accepted in one turn of the event loop, before any of them can be closed
TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with limits on the time and the number of connections without a request.

    Attributes
    ----------
    head_seconds : float
        Time limit for the head of a request, from the opening of the connection or the last response.
    max_waiting : int
        Maximum number of connections that wait for a request.
    """

    head_seconds = HEAD_SECONDS
    max_waiting = MAX_WAITING
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._start_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle received data; a request with a complete head has no deadline."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._start_waiting()
        super().on_response_complete()

    def _start_waiting(self) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        self._deadline = self.loop.call_later(self.head_seconds, self._give_up)
        waiting = {c: c._deadline.when() for c in self.connections if isinstance(c, BoundedProtocol) and c._deadline is not None}
        if len(waiting) > self.max_waiting:
            min(waiting, key=waiting.__getitem__)._give_up()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """Close the connection without a response."""
        self._stop_waiting()
        self.transport.abort()


def make_app(project: Project, port: int, token: str, launch: str = "", teaching: Teaching | None = None) -> ASGIApp:
    """Create the application; see `Guard` for `port`, `token` and `launch`."""
    teaching = Teaching(project) if teaching is None else teaching
    files = static_files()
    page = files["viewer.html"].replace(b"{{root}}", f"/{token}".encode())

    async def show_page(request: Request) -> Response:
        return Response(page, media_type="text/html")

    async def show_file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            return Response("not found\n", 404, media_type="text/plain")
        return Response(files[name], media_type=TYPES[name.rpartition(".")[2]])

    project_payload(project)  # fills caches, so that the first response is fast
    jobs = BackgroundJobs()
    apis = (Api(project), TeachingApi(teaching), VideoApi(project, jobs), ExportsApi(project, jobs), ZonesApi(project))
    routes = [Route("/", show_page), Route("/static/{name}", show_file), *(route for api in apis for route in api.routes)]
    return Guard(Blinding(Starlette(routes=routes), always=project.blind), port, token, launch)


def static_files() -> dict[str, bytes]:
    """Read the files of the page; no other file can be requested."""
    folder = resources.files("ethobench.app") / "static"
    return {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file() and f.name.rpartition(".")[2] in TYPES}


def configure(app: ASGIApp) -> uvicorn.Config:
    """Return the server configuration: no logging, no web sockets, and limits for connections without a request."""
    import uvicorn

    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        backlog=BACKLOG,
        log_level="warning",
        access_log=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=2,
    )


def serve(project: Project, port: int = 0, *, browser: bool = True, ready: Callable[[str], None]) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    project : Project
    port : int
        0 for any free port.
    browser : bool
        Open the page in the user's browser.
    ready : callable
        Called with the address once connections are accepted.
    """
    import uvicorn

    try:
        listener = socket.create_server((LOOPBACK, port), backlog=64)
    except OSError as error:
        raise EthobenchError(Message(f"port {port} cannot be used ({error.strerror}); choose another with ", Option("port"))) from None
    with listener:
        port = listener.getsockname()[1]
        token, launch = new_token(), new_token() if browser else ""
        teaching = Teaching(project)
        teaching.prepare()
        config = configure(make_app(project, port, token, launch, teaching))
        ready(f"http://{LOOPBACK}:{port}/?token={token}")
        if browser:
            opener = threading.Thread(target=webbrowser.open, args=(f"http://{LOOPBACK}:{port}/?launch={launch}",), daemon=True)
            opener.start()
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            return
        finally:
            teaching.close()
