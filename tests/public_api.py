"""List the public interface: names and signatures of ``import ethobench as eb``, and commands with their options.

    python -m tests.public_api             # print what differs from tests/public_api.txt
    python -m tests.public_api --update    # accept the differences; review them in the diff, and note them in CHANGELOG.md

Annotations of types are left out: they may become more precise without breaking anything.
"""

# ruff: noqa: T201

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

GOLDEN = Path(__file__).with_name("public_api.txt")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def interface() -> list[str]:
    """Return one line for each public name, method, property and command."""
    import ethobench as eb

    lines = [line for name in sorted(eb.__all__) if name != "__version__" for line in describe(f"eb.{name}", getattr(eb, name))]
    return [*lines, *commands()]


def describe(name: str, value: Any) -> Iterator[str]:
    """Yield the lines of a function, a class with its methods, or a module with its public names."""
    if isinstance(value, ModuleType):
        for member in sorted(value.__all__):
            yield from describe(f"{name}.{member}", getattr(value, member))
    elif inspect.isclass(value) and issubclass(value, Enum):
        yield f"{name}: {', '.join(member.name for member in value)}"
    elif inspect.isclass(value):
        yield f"{name}{signature(value)}"
        for member, attribute in sorted(inspect.getmembers_static(value)):
            if member.startswith("_") or not is_ours(value, member):
                continue
            if isinstance(attribute, property):
                yield f"{name}.{member} (property)"
            elif callable(getattr(value, member)) and not inspect.isclass(getattr(value, member)):
                yield f"{name}.{member}{signature(getattr(value, member))}"
    elif callable(value):
        yield f"{name}{signature(value)}"
    else:
        yield f"{name} ({type(value).__name__})"


def is_ours(value: type, member: str) -> bool:
    """Return whether a member is defined by a class of the package, not inherited from Python."""
    owner = next((base for base in value.__mro__ if member in vars(base)), None)
    return owner is not None and owner.__module__.partition(".")[0] == "ethobench"


def signature(value: Any) -> str:
    """Return parameters and defaults without types."""
    try:
        complete = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in complete.parameters.values()]
    return ADDRESS.sub("", str(complete.replace(parameters=bare, return_annotation=inspect.Signature.empty)))


def commands() -> Iterator[str]:
    """Yield each command with its arguments and options."""
    import click
    import typer.main

    from ethobench.cli import app

    def walk(command: Any, path: str) -> Iterator[str]:
        if hasattr(command, "list_commands"):
            context = click.Context(command)
            for name in sorted(command.list_commands(context)):
                yield from walk(command.get_command(context, name), f"{path} {name}")
            return
        arguments = [p.name.upper() for p in command.params if p.param_type_name == "argument"]
        options = sorted(max(p.opts, key=len) for p in command.params if p.param_type_name == "option")
        yield " ".join([path, *arguments, *options])

    yield from walk(typer.main.get_command(app), "ethobench")


def differences() -> list[str]:
    """Return the lines that were added or removed since the golden file was written."""
    golden = GOLDEN.read_text(encoding="utf-8").splitlines() if GOLDEN.exists() else []
    return [line for line in difflib.ndiff(golden, interface()) if line[0] in "+-"]


if __name__ == "__main__":
    print("\n".join(differences()) or "no differences")
    if "--update" in sys.argv[1:]:
        GOLDEN.write_text("\n".join(interface()) + "\n", encoding="utf-8")
