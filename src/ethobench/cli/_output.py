r"""The one place through which commands print.

Names of files, behaviors and annotators, notes and errors hold text that others wrote. Printed as it is, an escape sequence in it would
move the cursor, clear the screen or set the title of the terminal, and a bidirectional override would show text in another order than it
has. Here such characters become visible: an escape character is printed as ``\x1b``. Sequences of our own (colors, progress) are added
afterwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from rich.console import Console

# Control characters of ASCII (line feed and tab aside) and of Latin-1, line and paragraph separators, bidirectional embeddings, overrides
# and isolates, and lone surrogates, which a terminal cannot encode.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def make_visible(text: str) -> str:
    r"""Return text whose control characters are written out, as Python does in a literal.

    Examples
    --------
    >>> print(make_visible("rear\x1b[2J"))
    rear\x1b[2J
    """
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line to stdout, or to stderr."""
    typer.echo(make_visible(str(message)), err=err, nl=nl)


def secho(message: object, *, err: bool = False, nl: bool = True, fg: str | None = None, bold: bool | None = None) -> None:
    """Print a line in color, where the terminal has colors."""
    typer.secho(make_visible(str(message)), err=err, nl=nl, fg=fg, bold=bold)


def echo_json(value: Any, **options: Any) -> None:
    """Print a value as JSON; control characters in its texts are escaped, others stay as they are unless `ensure_ascii` is set."""
    text = json.dumps(value, indent=1, **{"ensure_ascii": False, **options})
    typer.echo(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def make_console(*, stderr: bool = False, plain_width: int | None = None) -> Console:
    """Return a Rich console that makes control characters visible in every text and table cell.

    Parameters
    ----------
    stderr : bool
        Print to stderr.
    plain_width : int, optional
        Columns where the output is not a terminal; as many as Rich assumes unless given.
    """
    from rich.console import Console
    from rich.text import Text

    class VisibleConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(make_visible(text), **options)

    console = VisibleConsole(stderr=stderr, markup=False, highlight=False)
    if plain_width is not None and not console.is_terminal:
        console.width = plain_width
    return console


class VisibleGroup(TyperGroup):
    """The group of all commands; messages about wrong usage, which repeat arguments such as names of files, are made visible."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments of the command as a whole."""
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
        if hasattr(error, "format_message"):  # an error of click, or of the copy of it that newer versions of typer bring along
            vars(error).update(message=make_visible(vars(error)["message"]))
        raise
