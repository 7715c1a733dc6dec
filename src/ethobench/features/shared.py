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


class _Context(NamedTuple):
    kinds: tuple[str, ...]  # all if empty
    entries: list[_Entry]


_active: ContextVar[tuple[_Context, ...]] = ContextVar("shared_values", default=())


@contextmanager
def share_values(*kinds: str) -> Iterator[None]:
    """Keep values from `shared` while the context is active.

    Contexts may be nested: a value is kept by the outermost one that keeps its kind.

    Parameters
    ----------
    *kinds : str
        The kinds of values that are kept; all by default.
    """
    token = _active.set((*_active.get(), _Context(kinds, [])))
    try:
        yield
    finally:
        _active.reset(token)


def shared(kind: str, sources: tuple[object, ...], settings: Any, compute: Callable[[], Value]) -> Value:
    """Return a value that was computed before in an active context, or compute it.

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
    context = next((each for each in _active.get() if not each.kinds or kind in each.kinds), None)
    if context is None:
        return compute()
    for entry in context.entries:
        same_sources = len(entry.sources) == len(sources) and all(a is b for a, b in zip(entry.sources, sources, strict=True))
        if entry.kind == kind and same_sources and entry.settings == settings:
            return entry.value  # type: ignore[no-any-return]
    value = compute()
    context.entries.append(_Entry(kind, sources, settings, value))
    return value
