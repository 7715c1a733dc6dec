"""Access control of the viewer: only this machine, only this page, only with the token.

The token is part of the address: ``?token=`` for the page itself, and the first path component of every other request. It is not a
cookie, because a browser would send a cookie of 127.0.0.1 to servers of other users on other ports. `Host` is checked against DNS
rebinding, `Origin` and `Sec-Fetch-Site` against cross-site requests.
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
    """Middleware that passes on requests of the viewer's own page with the token, and answers all others with 403.

    Parameters
    ----------
    app : ASGIApp
        The application. It sees paths without the token.
    port : int
        Port of the server.
    token : str
    launch : str
        A single-use token for the address that is passed to the browser, which other users may see in the process list. It redirects to
        the real address once.
    """

    def __init__(self, app: ASGIApp, port: int, token: str, launch: str = "") -> None:
        self.app, self.token, self.launch = app, token, launch
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
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
        # A link on another site may open the page, since it must contain the token; no other cross-site request is allowed.
        return scope["method"] == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"

    def _path(self, path: str, query: dict[str, list[str]], headers: dict[str, str]) -> str | None:
        """Return the path without the token, or None if the token is missing."""
        first, _, rest = path.removeprefix("/").partition("/")
        if _same(first, self.token):
            return f"/{rest}"
        token = query.get("token", [headers.get("x-ethobench-token", "")])[0]
        return path if _same(token, self.token) else None


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(24)


def _same(token: str, expected: str) -> bool:
    return secrets.compare_digest(token.encode(), expected.encode())


def _hardened(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            security_headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *security_headers]}
        await send(message)

    return send_with_headers


async def _answer(send: Send, status: int, location: str = "") -> None:
    body = b"not allowed: open the address printed by `ethobench view`\n" if status == 403 else b""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if location:
        headers.append((b"location", location.encode()))
    send = _hardened(send)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
