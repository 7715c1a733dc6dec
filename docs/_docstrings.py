"""Turn numpydoc docstrings and signatures into Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

LISTS = ("Parameters", "Attributes", "Returns", "Yields", "Raises")
SECTIONS = (*LISTS, "Examples", "Notes", "Conventions", "See Also")


@dataclass
class Entry:
    """A parameter or attribute: names, type, and meaning."""

    names: tuple[str, ...]
    kind: str
    meaning: str


@dataclass
class Docstring:
    """A parsed docstring."""

    text: str = ""
    lists: dict[str, list[Entry]] = field(default_factory=dict)
    prose: dict[str, str] = field(default_factory=dict)

    def meanings(self) -> dict[str, Entry]:
        """Return the entry of each parameter and attribute, by name."""
        entries = [entry for section in ("Parameters", "Attributes") for entry in self.lists.get(section, [])]
        return {name: entry for entry in entries for name in entry.names}


def parse(docstring: str | None) -> Docstring:
    """Parse a numpydoc docstring into its sections."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    starts = [i for i, line in enumerate(lines[:-1]) if line.strip() in SECTIONS and set(lines[i + 1].strip()) == {"-"}]
    parsed = Docstring(plain("\n".join(lines[: starts[0] if starts else len(lines)]).strip()))
    for start, end in pairwise([*starts, len(lines)]):
        name, body = lines[start].strip(), lines[start + 2 : end]
        if name in LISTS:
            parsed.lists[name] = _entries(body)
        else:
            parsed.prose[name] = "\n".join(body).strip()
    return parsed


def _entries(lines: list[str]) -> list[Entry]:
    entries: list[Entry] = []
    for line in lines:
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            entries.append(Entry(tuple(name.strip() for name in names.split(",")), kind.strip(), ""))
        elif line.strip() and entries:
            entries[-1].meaning = f"{entries[-1].meaning} {line.strip()}".strip()
    for entry in entries:
        entry.meaning = plain(entry.meaning)
    return entries


def plain(text: str) -> str:
    """Convert reStructuredText literals to Markdown."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def cell(text: str) -> str:
    """Escape text for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Format a Markdown table."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(cell(text) for text in line) + " |" for line in lines)


def markdown(docstring: str | None) -> str:
    """Render a docstring."""
    parts = parse(docstring)
    blocks = [parts.text]
    for name, entries in parts.lists.items():
        rows = [(", ".join(f"`{n}`" for n in entry.names), plain(entry.kind), entry.meaning) for entry in entries]
        blocks.append(f"**{name}**\n\n" + table(("name", "type", "meaning"), rows))
    for name, text in parts.prose.items():
        blocks.append(f"**{name}**\n\n```pycon\n{text}\n```" if name == "Examples" else f"**{name}**\n\n{plain(text)}")
    return "\n\n".join(block for block in blocks if block)


def signature(name: str, thing: Any) -> str:
    """Format a signature; one parameter per line if it is long."""
    try:
        parsed = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parameters = [_shown(p) for p in parsed.parameters.values() if p.name not in ("self", "cls")]
    short = str(parsed.replace(parameters=parameters, return_annotation=parsed.empty))
    if len(name) + len(short) <= 100:
        return name + short
    marks = [str(parsed.replace(parameters=[p], return_annotation=parsed.empty))[1:-1] for p in parameters]
    first = next((i for i, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY), None)
    if first is not None:
        marks = [mark.removeprefix("*, ") for mark in marks]
        marks.insert(first, "*")
    return f"{name}(\n" + "".join(f"    {mark},\n" for mark in marks) + ")"


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """Remove the annotation, and show functions by name."""
    default = parameter.default
    return parameter.replace(annotation=parameter.empty, default=_Name(default.__name__) if inspect.isroutine(default) else default)


class _Name(str):
    """A default value that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
