"""What commands share: stores of runs, notes of readers, and behaviors to rename."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ethobench.cli.output import secho

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ethobench.core.errors import Note
    from ethobench.runs import Store

RenameOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--rename", help="Rename a behavior, such as i=interact; may be repeated.", metavar="OLD=NEW"),
]


def read_renames(pairs: Iterable[str] | None) -> dict[str, str]:
    """Read ``OLD=NEW`` pairs."""
    names: dict[str, str] = {}
    for pair in pairs or ():
        old, equals, new = (part.strip() for part in pair.partition("="))
        if not (old and equals and new):
            raise typer.BadParameter(f"{pair!r} is not OLD=NEW, such as i=interact", param_hint="--rename")
        if names.setdefault(old, new) != new:
            raise typer.BadParameter(f"{old!r} is renamed to both {names[old]!r} and {new!r}", param_hint="--rename")
    return names


def existing_store(path: Path) -> Store:
    """Open the store of a run; a folder that is none is an error, not a new store."""
    from ethobench.core.errors import NotFoundError
    from ethobench.runs import Store

    if not (path / "store.json").is_file():
        raise NotFoundError(f"{path} is no store of a run")
    return Store(path)


class Notes:
    """Notes that are printed together at the end."""

    def __init__(self) -> None:
        self._notes: list[Note] = []

    def add(self, notes: Iterable[Note], where: object) -> None:
        """Keep notes about a file."""
        from ethobench.core.errors import Note

        self._notes += [Note(note.message, f"{where}: {note.location}" if note.location else str(where)) for note in notes]

    def tell(self) -> None:
        """Print the first note of each kind, with how many more there are."""
        print_notes(self._notes)


def print_notes(notes: Iterable[Note]) -> None:
    """Print the first note of each kind, with how many more there are."""
    from ethobench.core.errors import summarize_notes

    for line in summarize_notes(notes):
        tell_line(line)


def tell_line(message: str) -> None:
    """Print a note to the error stream."""
    secho(f"note: {message}", err=True, fg=typer.colors.YELLOW)
