"""The viewer's server: on the loopback address alone, until Ctrl-C."""

from __future__ import annotations

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

from ethobench.app.api import Api
from ethobench.app.facts import project_facts
from ethobench.app.project import Project
from ethobench.app.security import Guard, new_token
from ethobench.core.errors import EthobenchError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

LOOPBACK = "127.0.0.1"
TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}


def make_app(project: Project, port: int, token: str, launch: str = "") -> ASGIApp:
    """Make the application; see `Guard` for `port`, `token` and `launch`."""
    files = static_files()
    page = files["viewer.html"].replace(b"{{root}}", f"/{token}".encode())

    async def show_page(request: Request) -> Response:
        return Response(page, media_type="text/html")

    async def show_file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            return Response("not found\n", 404, media_type="text/plain")
        return Response(files[name], media_type=TYPES[name.rpartition(".")[2]])

    project_facts(project)  # so that the first answer does not have to wait for what is made only once
    routes = [Route("/", show_page), Route("/static/{name}", show_file), *Api(project).routes]
    return Guard(Starlette(routes=routes), port, token, launch)


def static_files() -> dict[str, bytes]:
    """Read the page's own files; nothing else can be asked for."""
    folder = resources.files("ethobench.app") / "static"
    return {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file() and f.name.rpartition(".")[2] in TYPES}


def configure(app: ASGIApp) -> uvicorn.Config:
    """Return how the server runs: quietly, without web sockets, and with bounds on connections that do not send a request."""
    import uvicorn

    from ethobench.app.connections import BACKLOG, BoundedProtocol

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
        0 for any free one.
    browser : bool
        Open the page in the user's browser.
    ready : callable
        Told the address once connections are accepted.
    """
    import uvicorn

    try:
        listener = socket.create_server((LOOPBACK, port), backlog=64)
    except OSError as error:
        raise EthobenchError(f"port {port} cannot be used ({error.strerror}); choose another with --port") from None
    with listener:
        port = listener.getsockname()[1]
        token, launch = new_token(), new_token() if browser else ""
        config = configure(make_app(project, port, token, launch))
        ready(f"http://{LOOPBACK}:{port}/?token={token}")
        if browser:
            opener = threading.Thread(target=webbrowser.open, args=(f"http://{LOOPBACK}:{port}/?launch={launch}",), daemon=True)
            opener.start()
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            return
