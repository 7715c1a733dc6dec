"""Errors of the HTTP libraries that providers' clients use; which of the two is installed differs."""

from __future__ import annotations

from importlib import import_module


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the classes of timeouts, broken connections and bodies that break off."""
    found: list[type[Exception]] = [ConnectionError, TimeoutError]
    for name in ("httpx", "httpx2"):
        try:
            found.append(import_module(name).TransportError)
        except ImportError:
            continue
    return tuple(found)
