"""The door of the viewer: only this machine, only this page, only with the token.

The token stands in the address: as ``?token=`` of the page itself and as the first part of the path of everything that the page
asks for. It is not a cookie, since a browser would show a cookie of 127.0.0.1 to the servers of other users on other ports.
`Host` is checked so that no foreign name can be made to point here, `Origin` and `Sec-Fetch-Site` so that no foreign page can ask.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


class Guard:
    """Let through what carries the token and comes from our own page; answer everything else with 403.

    Parameters
    ----------
    app : ASGIApp
        What is guarded. It sees paths without the token.
    port : int
        Where the server listens.
    token : str
    launch : str
        A key for the one address that is handed to a browser, where other users may see it among the processes: it
        leads to the real address once, and is worth nothing afterwards.
    """

    def __init__(self, app: ASGIApp, port: int, token: str, launch: str = "") -> None:
        self.app, self.token, self.launch = app, token, launch
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if not self._is_ours(scope, headers):
            await _answer(send, 403)
        elif self.launch and scope["path"] == "/" and _same(query.get("launch", [""])[0], self.launch):
            self.launch = ""
            await _answer(send, 303, location=f"/?token={self.token}")
        elif (path := self._path(scope["path"], query, headers)) is None:
            await _answer(send, 403)
        else:
            await self.app({**scope, "path": path, "raw_path": path.encode()}, receive, _hardened(send))

    def _is_ours(self, scope: Scope, headers: dict[str, str]) -> bool:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self.hosts or (origin is not None and origin != f"http://{host}"):
            return False
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return True
        # A link from elsewhere may lead here, as it must know the token; nothing else may come from elsewhere.
        return scope["method"] == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"

    def _path(self, path: str, query: dict[str, list[str]], headers: dict[str, str]) -> str | None:
        """Return the path without the token, or None where there is no token."""
        first, _, rest = path.removeprefix("/").partition("/")
        if _same(first, self.token):
            return f"/{rest}"
        given = query.get("token", [headers.get("x-ethobench-token", "")])[0]
        return path if _same(given, self.token) else None


def new_token() -> str:
    """Make a token that nobody can guess."""
    return secrets.token_urlsafe(24)


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode(), wanted.encode())


def _hardened(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *own]}
        await send(message)

    return send_with_headers


async def _answer(send: Send, status: int, location: str = "") -> None:
    told = b"not allowed: open the address that `ethobench view` printed\n" if status == 403 else b""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(told)).encode())]
    if location:
        headers.append((b"location", location.encode()))
    send = _hardened(send)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": told})
