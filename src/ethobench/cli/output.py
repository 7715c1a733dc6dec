r"""Printing: all output of the commands goes through this module.

File names, behavior names, annotator names, notes and error messages contain text from files. An escape sequence in such text could
move the cursor, clear the screen or set the terminal title, and a bidirectional override could reorder what is displayed.
This module makes such characters visible: an escape character is printed as ``\x1b``. Our own colors and progress bars are added
afterwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ethobench.core.messages import Message, text_for_command_line

if TYPE_CHECKING:
    from rich.console import Console

    from ethobench.core.errors import Note

Row = Mapping[str, Any]

# ASCII (except line feed and tab) and Latin-1 control characters, line and paragraph separators, bidirectional embeddings, overrides and
# isolates, and lone surrogates, which a terminal cannot encode.
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def make_visible(text: str) -> str:
    r"""Escape the control characters of a text, as in a Python literal.

    Examples
    --------
    >>> print(make_visible("rear\x1b[2J"))
    rear\x1b[2J
    """
    return CONTROL_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line to stdout, or to stderr."""
    typer.echo(_printable(message), err=err, nl=nl)


def secho(message: object, *, err: bool = False, nl: bool = True, fg: str | None = None, bold: bool | None = None) -> None:
    """Print a line in color if the terminal supports it."""
    typer.secho(_printable(message), err=err, nl=nl, fg=fg, bold=bold)


def _printable(message: object) -> str:
    """Return the text of a message with settings as options of the command line, and with visible control characters."""
    return make_visible(text_for_command_line(message))


def echo_json(value: Any, **options: Any) -> None:
    """Print a value as JSON. Control characters are escaped; other non-ASCII characters only if `ensure_ascii` is set."""
    text = json.dumps(value, indent=1, **{"ensure_ascii": False, **options})
    typer.echo(CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def make_console(*, stderr: bool = False) -> Console:
    """Return a Rich console that escapes control characters in texts and table cells.

    Parameters
    ----------
    stderr : bool
        Print to stderr.
    """
    from rich.console import Console
    from rich.text import Text

    class VisibleConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(make_visible(text), **options)

    return VisibleConsole(stderr=stderr, markup=False, highlight=False)


class _NamedValues:
    """Help that shows values by the names of their options (``--seed SEED``) rather than by Python types."""

    params: list[Any]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for parameter in self.params:
            if parameter.metavar is None:
                name = parameter.opts[0].lstrip("-").replace("-", "_").upper()
                parameter.metavar = "" if getattr(parameter, "is_flag", False) else name
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = _no_type  # of newer versions of typer

    def get_help_option(self, *arguments: Any) -> Any:
        """Return the option ``--help``."""
        option = super().get_help_option(*arguments)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


def _no_type(ctx: object) -> None:
    """Return no text for the type of an argument, whose name says what it is."""


class VisibleCommand(_NamedValues, TyperCommand):
    """Command whose help names values."""


class VisibleGroup(_NamedValues, TyperGroup):
    """Command group that escapes control characters in usage errors, which repeat arguments such as file names."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments of the command itself."""
        with _visible_usage_errors():
            return super().make_context(*arguments, **options)

    def invoke(self, *arguments: Any) -> Any:
        """Parse the arguments of a subcommand and run it."""
        with _visible_usage_errors():
            return super().invoke(*arguments)


@contextmanager
def _visible_usage_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):  # an error of click, or of the copy of click inside newer versions of typer
            vars(error).update(message=make_visible(vars(error)["message"]))
        raise


def print_note(message: str) -> None:
    """Print a note to stderr."""
    secho(Message("note: ", message), err=True, fg=typer.colors.YELLOW)


def print_notes(notes: Iterable[Note]) -> None:
    """Print the first note of each kind, and how many more of that kind there are."""
    from ethobench.core.errors import summarize_notes

    for line in summarize_notes(notes):
        print_note(line)


class NoteCollector:
    """Notes about several files, printed together at the end."""

    def __init__(self) -> None:
        self._notes: list[Note] = []

    def add(self, notes: Iterable[Note], file: object) -> None:
        """Add the notes about a file."""
        from ethobench.core.errors import Note

        self._notes += [Note(note.message, f"{file}: {note.location}" if note.location else str(file), note.code) for note in notes]

    def print(self) -> None:
        """Print the first note of each kind, and how many more of that kind there are."""
        print_notes(self._notes)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines below a table, aligned with its cells and within the width of the terminal."""
    from ethobench.cli.tables import print_wrapped

    print_wrapped(lines)


def print_never_annotated(names: Collection[str], only_predicted: Collection[str] = ()) -> None:
    """Print the behaviors that were never annotated, and those that were predicted but never annotated."""
    groups = {"never annotated": names, "predicted but never annotated": only_predicted}
    print_lines(f"{text}: {', '.join(group)}" for text, group in groups.items() if group)


def drop_empty_rows(rows: Sequence[Row], is_empty: Callable[[Row], bool]) -> tuple[list[Row], list[str]]:
    """Drop the behaviors whose rows are all empty.

    Parameters
    ----------
    rows : sequence of mappings
        Each with a ``behavior``.
    is_empty : callable
        Returns whether a row has nothing to show.

    Returns
    -------
    rows : list of mappings
        The rows of the other behaviors.
    dropped : list of str
        The behaviors without a row, in order.
    """
    shown_behaviors = {row["behavior"] for row in rows if not is_empty(row)}
    dropped = dict.fromkeys(row["behavior"] for row in rows if row["behavior"] not in shown_behaviors)
    return [row for row in rows if row["behavior"] in shown_behaviors], list(dropped)
