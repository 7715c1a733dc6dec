"""Requests of the page and errors: bodies are limited in size, depth and time; errors become JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ethobench.app.blinding import HiddenError
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError

MAX_BYTES = 1_000_000
MAX_DEPTH = 8  # of nested lists and objects; the page sends three
BODY_SECONDS = 30.0


class TooLargeError(EthobenchError):
    """The request is larger than the viewer accepts."""


def failure(error: Exception, description: str) -> Response:
    """Return the response to a request that failed."""
    if isinstance(error, TimeoutError):  # a subclass of OSError
        return JSONResponse({"error": f"{description}: the request was not complete within {BODY_SECONDS:g} s"}, 408)
    if isinstance(error, OSError):
        return JSONResponse({"error": f"{description}: {error.strerror or error}"}, 500)
    statuses = {HiddenError: 403, NotFoundError: 404, MismatchError: 409, TooLargeError: 413}
    status = next((status for kind, status in statuses.items() if isinstance(error, kind)), 400)
    return JSONResponse({"error": str(error)}, status)


async def read_body(request: Request, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Receive and parse the body of a change."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise EthobenchError("the request must have the content type application/json")
    content = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.stream():
            content += chunk
            if len(content) > max_bytes:
                raise TooLargeError(f"a request can have at most {max_bytes} bytes")
    return await run_in_threadpool(_parse, bytes(content))


def _parse(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except RecursionError:
        raise EthobenchError(f"the JSON of a request can be nested at most {MAX_DEPTH} levels deep") from None
    except ValueError:
        raise EthobenchError("the body of the request is not valid JSON") from None
    if not isinstance(body, dict):
        raise EthobenchError("the body of the request must be a JSON object")
    level: list[Any] = [body]
    for _ in range(MAX_DEPTH):
        nested = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for values in nested for value in values if isinstance(value, dict | list)]
        if not level:
            return body
    raise EthobenchError(f"the JSON of a request can be nested at most {MAX_DEPTH} levels deep")


def query_integer(request: Request, name: str) -> int:
    """Return an integer of the query, or raise an error."""
    text = request.query_params.get(name, "")
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise EthobenchError(f"{name} must be an integer, got {text!r}")
    return int(text)


def read_route(path: str, answer: Callable[[Request], Any]) -> Route:
    """Return a route for GET that runs a handler in a thread; what it returns becomes JSON, and so do errors."""

    @wraps(answer)
    async def respond(request: Request) -> Response:
        try:
            content = await run_in_threadpool(answer, request)
        except (EthobenchError, OSError) as error:
            return failure(error, "cannot be read")
        return content if isinstance(content, Response) else JSONResponse(content)

    return Route(path, respond, methods=["GET"])


def change_route(path: str, change: Callable[[Request, dict[str, Any]], Any]) -> Route:
    """Return a route for POST that runs a handler in a thread with the request and its body; the result and errors become JSON."""

    @wraps(change)
    async def respond(request: Request) -> Response:
        try:
            body = await read_body(request)
            return JSONResponse(await run_in_threadpool(change, request, body))
        except (EthobenchError, OSError) as error:
            return failure(error, "not done")

    return Route(path, respond, methods=["POST"])
