"""Blind mode: annotators label independently, so the server sends a blind page nothing of other annotators and of models.

The page states its annotator, and whether it is blind, in headers of every request. While the request is handled, `blind_annotator` is
that annotator, and `OpenRecording.tracks` contains only the correction of this name. Names of behaviors and of animals are shared by all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ethobench.core.errors import EthobenchError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

ANNOTATOR_HEADER, BLIND_HEADER = b"x-ethobench-annotator", b"x-ethobench-blind"

_annotator: ContextVar[str | None] = ContextVar("blind_annotator", default=None)


class HiddenError(EthobenchError):
    """The request is for something that blind mode hides."""


def blind_annotator() -> str | None:
    """Return the annotator of the blind page whose request is handled ("" if it has none yet); None if the page may see everything."""
    return _annotator.get()


def refuse_if_blind(hidden_items: str) -> None:
    """Raise an error in a request of a blind page.

    Parameters
    ----------
    what : str
        What is hidden, in the plural.
    """
    if blind_annotator() is not None:
        raise HiddenError(f"{hidden_items} are hidden in blind mode")


@contextmanager
def blinded(annotator: str | None) -> Iterator[None]:
    """Handle what is inside as a request of a blind page of this annotator; of a page that sees everything if None.

    Examples
    --------
    >>> with blinded("anna"):
    ...     blind_annotator()
    'anna'
    """
    token = _annotator.set(annotator)
    try:
        yield
    finally:
        _annotator.reset(token)


class Blinding:
    """Middleware that handles the requests of blind pages as such.

    Parameters
    ----------
    app : ASGIApp
    always : bool
        Whether all pages are blind (``ethobench view --blind``); otherwise those that state it.
    """

    def __init__(self, app: ASGIApp, *, always: bool = False) -> None:
        self.app, self.always = app, always

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        headers = dict(scope.get("headers", ()))
        is_blind = self.always or headers.get(BLIND_HEADER) == b"1"
        annotator = unquote(headers.get(ANNOTATOR_HEADER, b"").decode("latin-1")).strip()
        with blinded(annotator if is_blind else None):
            await self.app(scope, receive, send)
