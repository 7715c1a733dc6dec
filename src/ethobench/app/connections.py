"""Connections to the viewer: a client that never finishes a request must not keep the page from being answered.

A connection waits for a request from the moment it is opened, and again after each answer. It is closed when the head of the request
is not complete in time. If too many connections wait, the one that has waited longest is closed, so that a new one can always be served:
half-open connections can exhaust neither file handles nor memory.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
MAX_WAITING = 64
BACKLOG = 64  # connections accepted in one turn of the event loop, before any of them can be closed


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 for a bounded time, and on a bounded number of connections, without a request.

    Attributes
    ----------
    head_seconds : float
        Time for the head of a request, from when the connection is opened or the last answer was sent.
    max_waiting : int
        Connections that may be waiting for a request at once.
    """

    head_seconds = HEAD_SECONDS
    max_waiting = MAX_WAITING
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._start_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle what was received; a request whose head is complete has no deadline any more."""
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
        """Close the connection without an answer."""
        self._stop_waiting()
        self.transport.abort()
