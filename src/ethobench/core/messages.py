"""Messages that name a setting as the reader of the message would set it: ``rate=30`` in Python, ``--rate 30`` on the command line.

A function of the library does not know who reads its errors and notes. It writes the setting as an `Option` inside a `Message`. As a
string, a message names settings as in Python; the command line prints `Message.on_command_line` instead.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """A setting that a message names.

    Attributes
    ----------
    name : str
        The keyword argument in Python.
    value : object
        The value to set; None if the reader has to choose it. A list is an option that is repeated, a mapping a pair such as ``OLD=NEW``.
    flag : str
        The option of the command line, if it has another name, such as ``"--from"`` for ``format``.

    Examples
    --------
    >>> print(Option("rate", 30), Option("rate", 30).on_command_line)
    rate=30 --rate 30
    >>> print(Option("overwrite", True), Option("overwrite", True).on_command_line)
    overwrite=True --overwrite
    >>> print(Option("rename", {"i": "interact"}), Option("rename", {"i": "interact"}).on_command_line)
    rename={'i': 'interact'} --rename i=interact
    >>> print(Option("format", flag="--from"), Option("format", flag="--from").on_command_line)
    format= --from
    """

    name: str
    value: object = None
    flag: str = ""

    def __str__(self) -> str:
        return f"{self.name}={'' if self.value is None else repr(self.value)}"

    @property
    def on_command_line(self) -> str:
        """The option with its value, quoted for a shell."""
        flag = self.flag or f"--{self.name.replace('_', '-')}"
        if self.value is None or self.value is True:
            return flag
        if isinstance(self.value, Mapping):
            values = [f"{key}={value}" for key, value in self.value.items()]
        else:
            values = [str(value) for value in (self.value if isinstance(self.value, (list, tuple)) else [self.value])]
        return " ".join(f"{flag} {shlex.quote(value)}" for value in values)


def rate_option(rate: float) -> Option:
    """Return the setting of a frame rate.

    Examples
    --------
    >>> print(rate_option(30.0), rate_option(29.97).on_command_line)
    rate=30 --rate 29.97
    """
    shown = float(f"{rate:g}")
    return Option("rate", int(shown) if shown.is_integer() else shown)


class ReaderOption(Option):
    """A setting of the reader of a file: a keyword argument in Python, ``--option NAME=VALUE`` on the command line.

    Examples
    --------
    >>> print(ReaderOption("label", "sp"), ReaderOption("label", "sp").on_command_line)
    label='sp' --option label=sp
    >>> print(ReaderOption("units"), ReaderOption("units").on_command_line)
    units= --option units=...
    """

    @property
    def on_command_line(self) -> str:
        """The option with its value, quoted for a shell."""
        if self.value is None:
            return f"--option {self.name}=..."
        text = self.value if isinstance(self.value, str) else json.dumps(self.value)
        return f"--option {shlex.quote(f'{self.name}={text}')}"


class Message(str):
    """A text that names settings. As a string, it names them as in Python.

    Parameters
    ----------
    *parts : object
        Joined without separators. Messages, errors and notes inside keep their settings; f-strings and other string operations lose them.

    Examples
    --------
    >>> message = Message("no frame rate in the file (set it with ", Option("rate"), ")")
    >>> print(message)
    no frame rate in the file (set it with rate=)
    >>> print(Message("note: ", message).on_command_line)
    note: no frame rate in the file (set it with --rate)
    """

    __slots__ = ("parts",)
    parts: tuple[str | Option, ...]

    def __new__(cls, *parts: object) -> Message:
        """Join the parts."""
        flat: list[str | Option] = []
        for component in parts:
            text = component if isinstance(component, Option) else str(component)
            flat += text.parts if isinstance(text, Message) else [text]
        message = super().__new__(cls, "".join(map(str, flat)))
        message.parts = tuple(flat)
        return message

    def __str__(self) -> str:
        return self  # that of `str` would return a plain string, without the settings

    @property
    def on_command_line(self) -> str:
        """The text with settings as options of the command line."""
        return "".join(component.on_command_line if isinstance(component, Option) else component for component in self.parts)

    def in_one_line(self) -> Message:
        """Replace line breaks and repeated spaces by single spaces, and remove those at the ends."""
        parts = [component if isinstance(component, Option) else re.sub(r"\s+", " ", component) for component in self.parts]
        for end, strip in ((0, str.lstrip), (-1, str.rstrip)):
            if parts and isinstance(text := parts[end], str):
                parts[end] = strip(text)
        return Message(*parts)


def text_for_command_line(message: object) -> str:
    """Return the text of an error, note or message with settings as options of the command line."""
    text = str(message)
    return text.on_command_line if isinstance(text, Message) else text
