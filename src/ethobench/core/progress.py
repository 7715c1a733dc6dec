"""Progress of long computations: whoever computes reports a stage and a fraction, whoever is interested listens.

Nothing is reported to anybody unless a listener is set, so that library code may report freely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Listener = Callable[[str, float], None]
"""Receives the stage, such as "boosted trees", and how much of the whole computation is done, from 0 to 1."""


@dataclass(frozen=True)
class _Scope:
    listener: Listener | None = None
    start: float = 0.0
    stop: float = 1.0
    stage: str = ""


_NOBODY = _Scope()
_scope: ContextVar[_Scope] = ContextVar("progress", default=_NOBODY)


@contextmanager
def progress_listener(listener: Listener) -> Iterator[None]:
    """Let a listener receive what is reported inside.

    Examples
    --------
    >>> with progress_listener(lambda stage, fraction: print(stage, fraction)):
    ...     report_progress("features", 0.5)
    ...     with progress_range(0.5, 1.0, "fold 1"):
    ...         report_progress("boosted trees", 0.5)
    features 0.5
    fold 1: boosted trees 0.75
    """
    token = _scope.set(_Scope(listener))
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def progress_range(start: float, stop: float, stage: str = "") -> Iterator[None]:
    """Scale what is reported inside to a part of the whole.

    Parameters
    ----------
    start, stop : float
        Where the part lies in what encloses it, from 0 to 1.
    stage : str
        Put before the stages reported inside.
    """
    outer = _scope.get()
    size = outer.stop - outer.start
    joined = ": ".join(name for name in (outer.stage, stage) if name)
    token = _scope.set(_Scope(outer.listener, outer.start + start * size, outer.start + stop * size, joined))
    try:
        yield
    finally:
        _scope.reset(token)


def report_progress(stage: str, fraction: float) -> None:
    """Report how much of the enclosing part is done.

    Parameters
    ----------
    stage : str
        What is being computed.
    fraction : float
        From 0 to 1.
    """
    scope = _scope.get()
    if scope.listener is not None:
        name = ": ".join(part for part in (scope.stage, stage) if part)
        scope.listener(name, scope.start + min(max(fraction, 0.0), 1.0) * (scope.stop - scope.start))
