"""The API reference: public names of the package and its subpackages, with their docstrings."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

from _docstrings import markdown, parse, signature
from _reference import Page

PACKAGES = (
    "ethobench",
    "ethobench.core",
    "ethobench.formats",
    "ethobench.datasets",
    "ethobench.metrics",
    "ethobench.decoding",
    "ethobench.training",
    "ethobench.models",
    "ethobench.mllm",
    "ethobench.mllm.providers",
    "ethobench.runs",
    "ethobench.benchmarks",
    "ethobench.reports",
)
MAIN = "ethobench"


def api_pages() -> list[Page]:
    """Make a page for each package that has public names."""
    modules = [import_module(name) for name in PACKAGES]
    return [_package_page(module) for module in modules if public(module)]


def public(module: ModuleType) -> list[str]:
    """Return the names in a package's ``__all__``."""
    return sorted((name for name in getattr(module, "__all__", ()) if not name.startswith("__")), key=str.lower)


def _package_page(module: ModuleType) -> Page:
    main = import_module(MAIN)
    summary = parse(module.__doc__).text.partition("\n")[0]
    parts = [f"# `{module.__name__}`", parse(module.__doc__).text]
    for name in public(module):
        thing = getattr(module, name)
        if module is not main and name in main.__all__ and getattr(main, name) is thing:
            parts.append(f"## `{name}`\n\nSee [`{MAIN}.{name}`]({MAIN}.md#{name.lower()}).")
        else:
            parts.append(f"## `{name}`\n\n{_described(name, thing)}")
    return Page(module.__name__, f"`{module.__name__}`", "\n\n".join(parts) + "\n", {"content": summary})


def _described(name: str, thing: Any) -> str:
    if inspect.ismodule(thing):
        functions = [getattr(thing, n) for n in sorted(vars(thing)) if _is_defined_in(n, getattr(thing, n), thing.__name__)]
        return "\n\n".join([markdown(thing.__doc__), *(f"### `{name}.{f.__name__}`\n\n{_called(f)}" for f in functions)])
    if inspect.isclass(thing):
        return "\n\n".join([_called(thing), *(_member(name, n, m) for n, m in _members(thing))])
    if inspect.isroutine(thing):
        return _called(thing)
    kind = type(thing)
    return f"A `{kind.__name__}`. {parse(kind.__doc__).text}"


def _is_defined_in(name: str, thing: Any, module: str) -> bool:
    return not name.startswith("_") and inspect.isfunction(thing) and f"{thing.__module__}.".startswith(f"{module}.")


def _called(thing: Any) -> str:
    return f"```python\n{signature(thing.__name__, thing)}\n```\n\n{markdown(thing.__doc__)}"


def _members(cls: type) -> list[tuple[str, Any]]:
    """Return the public methods and properties of a class and its base classes in this package."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(MAIN):
            members |= {name: member for name, member in vars(base).items() if not name.startswith("_")}
    kinds = (property, classmethod, staticmethod)
    return sorted((n, m) for n, m in members.items() if isinstance(m, kinds) or inspect.isfunction(m) or hasattr(m, "attrname"))


def _member(owner: str, name: str, member: Any) -> str:
    function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
    text = markdown(getattr(function, "__doc__", None))
    if isinstance(member, property) or hasattr(member, "attrname"):
        return f"### `{owner}.{name}`\n\n{text}"
    return f"### `{owner}.{name}`\n\n```python\n{signature(name, function)}\n```\n\n{text}"
