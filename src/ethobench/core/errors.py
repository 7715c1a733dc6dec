"""The few errors and the one warning that Ethobench raises on purpose."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


class EthobenchError(Exception):
    """Base of all errors whose message alone tells the user what is wrong and what to do."""


class FormatError(EthobenchError):
    """A file cannot be read: says which file, where in it, and what was expected."""

    def __init__(self, path: str | Path, message: str, location: str = "") -> None:
        self.path, self.location = Path(path), location
        one_line = " ".join(str(message).split())  # text from a file may contain line breaks
        super().__init__(f"{path}{', ' + location if location else ''}: {one_line}")


class MismatchError(EthobenchError):
    """Two things that must fit do not: rates, lengths, behaviors, channels."""


class NotFoundError(EthobenchError):
    """A name is unknown: a behavior, entry, dataset, format, model."""


class NotFittedError(EthobenchError):
    """A model is used before it was fitted."""


class MissingDataError(EthobenchError):
    """A dataset is not on this machine and could not be fetched."""


class ReadWarning(UserWarning):
    """Something in a file was repaired, dropped or not understood; the message says what."""


@dataclass(frozen=True)
class Note:
    """Something that a reader or writer repaired, dropped or could not match.

    Attributes
    ----------
    message : str
        A sentence for people.
    location : str
        Where in the file, such as ``"row 12"``.
    code : str
        The kind of note, such as ``"assumed-rate"``. Programs compare the code, never the message.
    """

    message: str
    location: str = ""
    code: str = ""

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


def summarize_notes(notes: Iterable[Note]) -> list[str]:
    """Return the first note of each kind, with how many more there are; notes that differ only in numbers are of one kind."""
    kinds: dict[str, list[Note]] = {}
    for note in notes:
        kinds.setdefault(re.sub(r"[\d.,]+", "#", note.message), []).append(note)
    return [f"{same[0]} (and {len(same) - 1} more notes like this)" if len(same) > 1 else str(same[0]) for same in kinds.values()]
