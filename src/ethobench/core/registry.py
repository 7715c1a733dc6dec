"""Things that are registered where they are defined and found by the name of their file."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from ethobench.core.errors import EthobenchError, NotFoundError

T = TypeVar("T")
C = TypeVar("C", bound=type)


class Registry(Generic[T]):
    """The members of one package, listed without importing them.

    A module of the package whose name does not begin with ``_`` is a member of the same name; other distributions
    add theirs as entry points. Modules named in `helpers` are not members.

    Parameters
    ----------
    kind : str
        What a member is called in messages: "format", "model", ...
    package : str
        The package whose modules are the members.
    helpers : tuple of str
        Public modules of the package that are not members.
    classes : bool
        Whether members are the classes themselves, not an instance of each.
    """

    def __init__(self, kind: str, package: str, helpers: tuple[str, ...] = (), *, classes: bool = False) -> None:
        self.kind, self.package, self.helpers, self.classes = kind, package, helpers, classes
        self.group = f"ethobench.{kind}s"
        self._members: dict[str, T] = {}
        self._names: tuple[str, ...] | None = None

    def register(self, member: C) -> C:
        """Enrol a class; its module's name is the member's name. Used as a decorator."""
        name = member.__module__.rpartition(".")[2]
        entry: Any = member if self.classes else member()
        entry.name = name
        self._members[name] = entry
        return member

    def names(self) -> tuple[str, ...]:
        """All names, sorted; nothing is imported."""
        if self._names is None:
            path = import_module(self.package).__path__
            own = (m.name for m in iter_modules(path) if not m.name.startswith("_") and m.name not in self.helpers)
            self._names = tuple(sorted({*own, *(e.name for e in entry_points(group=self.group))}))
        return self._names

    def __iter__(self) -> Iterator[T]:
        return (self[name] for name in self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> T:
        if name not in self._members:
            names = self.names()
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise NotFoundError(f"no {self.kind} {name!r}{hint} There are: {', '.join(names)}")
            entries = entry_points(group=self.group, name=name)
            for entry in entries:
                entry.load()
            module = next((entry.module for entry in entries), f"{self.package}.{name}")
            import_module(module)
            if name not in self._members:
                raise EthobenchError(f"module {module} registers no {self.kind} {name!r}")
        return self._members[name]
