"""Text that every file format can hold: which characters names and comments may have."""

from __future__ import annotations

import re

from ethobench.core.errors import EthobenchError

# Control characters (line feed and tab aside), lone surrogates, line and paragraph separators, and byte order marks. Files with them are
# read differently than they were written, or not at all.
UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def check_name(name: str, kind: str) -> None:
    r"""Raise an error for a name that some file cannot hold.

    Parameters
    ----------
    name : str
        Of a behavior, subject, annotator or recording.
    kind : str
        What it is the name of, for the message.

    Raises
    ------
    EthobenchError
        For control characters, line breaks and tabs, lone surrogates, and blanks at an end.

    Examples
    --------
    >>> check_name("nose poke", "behavior")
    >>> check_name("nose\rpoke", "behavior")
    Traceback (most recent call last):
    ...
    ethobench.core.errors.EthobenchError: the behavior 'nose\rpoke' has a control character ('\r'), which files cannot hold; change it
    """
    check_text(name, kind)
    for character in "\n\t":
        if character in name:
            raise EthobenchError(f"the {kind} {name!r} has a line break or a tab, which files cannot hold in a name; change it")
    if name != name.strip():
        raise EthobenchError(f"the {kind} {name!r} begins or ends with a blank, which files cannot hold; change it")


def check_text(text: str, kind: str) -> None:
    """Raise an error for text (a comment, a modifier) with characters that some file cannot hold."""
    found = UNWRITABLE.search(text)
    if found:
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        what = "a lone surrogate" if "\ud800" <= found[0] <= "\udfff" else "a control character"
        raise EthobenchError(f"the {kind} {shown!r} has {what} ({found[0]!r}), which files cannot hold; change it")


def repair_text(text: str) -> str:
    r"""Return text without characters that files cannot hold: line ends become line feeds, others are replaced.

    Examples
    --------
    >>> repair_text("first\r\nsecond")
    'first\nsecond'
    """
    return UNWRITABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff"))


def repair_name(name: str) -> str:
    r"""Return a name on one line, without characters that files cannot hold and without blanks at its ends.

    Examples
    --------
    >>> repair_name(" nose\tpoke ")
    'nose poke'
    """
    return re.sub(r"\s*[\n\t]\s*", " ", repair_text(name).strip())
