"""Registries: names of formats, models and other plug-ins, mapped to modules that are imported on first use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from ethobench.core.errors import EthobenchError, NotFoundError

T = TypeVar("T")
C = TypeVar("C", bound=type)


class Registry(Generic[T]):
    """Members by name; the module of a member is imported on first use.

    Other packages add members as entry points of the group ``ethobench.{kind}s``. A script adds one with the decorator.

    Parameters
    ----------
    kind : str
        Name of a member in messages: "format", "model", ...
    modules : mapping of str to str
        Module that registers each name. Several names may share a module.
    classes : bool
        Whether members are classes, not instances.

    Examples
    --------
    >>> shapes = Registry("shape", {"square": "shapes.polygons"})
    >>> @shapes.register("circle")
    ... class Circle:
    ...     pass
    >>> shapes.names(), shapes["circle"].name
    (('circle', 'square'), 'circle')
    """

    def __init__(self, kind: str, modules: Mapping[str, str], *, classes: bool = False) -> None:
        self.kind, self.modules, self.classes = kind, dict(modules), classes
        self._members: dict[str, T] = {}

    def register(self, name: str) -> Callable[[C], C]:
        """Return a class decorator that adds the class (or an instance of it) under a name.

        Parameters
        ----------
        name : str
            A name that is registered already is replaced.

        Examples
        --------
        >>> shapes = Registry("shape", {})
        >>> @shapes.register("circle")
        ... class Circle:
        ...     corners = 0
        >>> shapes["circle"].corners
        0
        """

        def add(member: C) -> C:
            entry: Any = member if self.classes else member()
            entry.name = name
            self._members[name] = entry
            return member

        return add

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted, without importing modules."""
        return tuple(sorted({*self.modules, *self._members, *(entry.name for entry in self._entry_points())}))

    def __iter__(self) -> Iterator[T]:
        return (self[name] for name in self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> T:
        if name not in self._members:
            names = self.names()
            if name not in names:
                similar = get_close_matches(name, names, n=1)
                hint = f"; did you mean {similar[0]!r}?" if similar else "."
                raise NotFoundError(f"no {self.kind} {name!r}{hint} Available: {', '.join(names)}")
            module = self.modules.get(name) or next(entry.module for entry in self._entry_points() if entry.name == name)
            import_module(module)
            if name not in self._members:
                raise EthobenchError(f"module {module} does not register a {self.kind} {name!r}")
        return self._members[name]

    def _entry_points(self) -> Any:
        return _entry_points(f"ethobench.{self.kind}s", tuple((path, _last_change(path)) for path in sys.path))


@lru_cache(maxsize=64)
def _entry_points(group: str, search_path: tuple[tuple[str, int], ...]) -> Any:
    """Return the entry points of a group. Cached, since reading them takes longer than detecting the format of a file."""
    return entry_points(group=group)


def _last_change(folder: str) -> int:
    """Return when a package was last installed into a folder; 0 if there is no such folder."""
    try:
        return os.stat(folder or ".").st_mtime_ns  # noqa: PTH116 - called for every file
    except OSError:
        return 0
