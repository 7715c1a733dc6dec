"""Values that several models compute from one recording, kept while it is predicted.

The members of model `auto` have the same signals as inputs. Inside `share_values`, such values are computed by the first member only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

Value = TypeVar("Value")


class _Entry(NamedTuple):
    kind: str
    sources: tuple[object, ...]
    settings: Any
    value: Any


_active: ContextVar[list[_Entry] | None] = ContextVar("shared_values", default=None)


@contextmanager
def share_values() -> Iterator[None]:
    """Keep values from `shared` while the context is active; inside another such context, that one keeps them."""
    if _active.get() is not None:
        yield
        return
    token = _active.set([])
    try:
        yield
    finally:
        _active.reset(token)


def shared(kind: str, sources: tuple[object, ...], settings: Any, compute: Callable[[], Value]) -> Value:
    """Return a value that was computed before in the active context, or compute it.

    Parameters
    ----------
    kind : str
        The kind of value.
    sources : tuple of object
        What it is computed from; must be the same objects, which nothing may change.
    settings : object
        Everything else that the value depends on; must be equal.
    compute : callable
    """
    entries = _active.get()
    if entries is None:
        return compute()
    for entry in entries:
        same_sources = len(entry.sources) == len(sources) and all(a is b for a, b in zip(entry.sources, sources, strict=True))
        if entry.kind == kind and same_sources and entry.settings == settings:
            return entry.value  # type: ignore[no-any-return]
    value = compute()
    entries.append(_Entry(kind, sources, settings, value))
    return value
