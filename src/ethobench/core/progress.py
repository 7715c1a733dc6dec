"""Progress of long computations: code reports a stage and a fraction, and a listener, if there is one, receives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Listener = Callable[[str, float], None]
"""Called with the stage, such as "boosted trees", and the fraction of the computation that is done, from 0 to 1."""


@dataclass(frozen=True)
class _Scope:
    listener: Listener | None = None
    start: float = 0.0
    stop: float = 1.0
    stage: str = ""


_NO_LISTENER = _Scope()
_scope: ContextVar[_Scope] = ContextVar("progress", default=_NO_LISTENER)


@contextmanager
def progress_listener(listener: Listener) -> Iterator[None]:
    """Call a listener with the progress that is reported in the block.

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
    """Scale the progress that is reported in the block to a range of the enclosing one.

    Parameters
    ----------
    start, stop : float
        The range in the enclosing progress, from 0 to 1.
    stage : str
        Prefix of the stages reported in the block.
    """
    outer = _scope.get()
    size = outer.stop - outer.start
    stages = ": ".join(name for name in (outer.stage, stage) if name)
    token = _scope.set(_Scope(outer.listener, outer.start + start * size, outer.start + stop * size, stages))
    try:
        yield
    finally:
        _scope.reset(token)


def report_progress(stage: str, fraction: float) -> None:
    """Report the fraction of the enclosing range that is done.

    Parameters
    ----------
    stage : str
        Name of the computation.
    fraction : float
        From 0 to 1.
    """
    scope = _scope.get()
    if scope.listener is not None:
        name = ": ".join(s for s in (scope.stage, stage) if s)
        scope.listener(name, scope.start + min(max(fraction, 0.0), 1.0) * (scope.stop - scope.start))
