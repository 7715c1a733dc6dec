"""Errors that Ethobench raises on purpose, the warning of its readers, and messages for exceptions of other libraries.

Every error is an `EthobenchError` and also the built-in exception that fits: catch either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ethobench.core.messages import Message
from ethobench.core.wording import plural


class EthobenchError(Exception):
    """Base class of all errors whose message alone says what is wrong and what to do.

    Examples
    --------
    >>> import ethobench as eb
    >>> try:
    ...     eb.create_model("xgboost")
    ... except eb.EthobenchError as error:
    ...     print(str(error).split(". ")[0])
    no model 'xgboost'; did you mean 'boost'? Available: attention, auto, boost, chance, ...
    """

    def __str__(self) -> str:
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()  # KeyError would print the message in quotes


class FormatError(EthobenchError, ValueError):
    """A file that cannot be read. The message names the file, the location in it, and what was expected.

    Parameters
    ----------
    path : str or Path
    message : str
        What is wrong, and what was expected.
    location : str
        Where in the file: a row, a column, an entry.

    Examples
    --------
    >>> error = FormatError("bouts.csv", "stop is before start", "row 7")
    >>> print(error)
    bouts.csv, row 7: stop is before start
    """

    def __init__(self, path: str | Path, message: str, location: str = "") -> None:
        self.path, self.location = Path(path), location
        self.message = Message(message).in_one_line()  # text quoted from a file may contain line breaks
        super().__init__(Message(f"{path}{', ' + location if location else ''}: ", self.message))

    def __reduce__(self) -> tuple[type[FormatError], tuple[Path, str, str]]:
        return type(self), (self.path, self.message, self.location)


class ParameterError(EthobenchError, ValueError):
    """A parameter with an invalid value.

    Examples
    --------
    >>> import ethobench as eb
    >>> eb.create_model("rf", trees=0)
    Traceback (most recent call last):
    ethobench.core.errors.ParameterError: model 'rf': `trees` must be >= 1, got 0
    """


class MismatchError(EthobenchError, ValueError):
    """Two inputs that must agree but differ: rates, lengths, behaviors, channels.

    Examples
    --------
    >>> from ethobench import Annotation, score
    >>> score(Annotation.from_frames([0, 1], ["run"], rate=25), Annotation.from_frames([0, 1], ["run"], rate=30))
    Traceback (most recent call last):
    ethobench.core.errors.MismatchError: the prediction has 25 Hz, the truth 30 Hz; resample one of them first
    """


class NotFoundError(EthobenchError, KeyError):
    """An unknown name of a behavior, recording, dataset, format or model.

    Examples
    --------
    >>> from ethobench import Ethogram
    >>> Ethogram(["rest", "run"])["rum"]
    Traceback (most recent call last):
    ethobench.core.errors.NotFoundError: no behavior 'rum' in the ethogram (rest, run)
    """


class NotFittedError(EthobenchError, ValueError, AttributeError):
    """A model or decoder that is used before it is fitted. Has the same built-in bases as scikit-learn's error of this name.

    Examples
    --------
    >>> import ethobench as eb
    >>> eb.create_model("chance").predict(eb.load_dataset("synthetic/tag", individuals=1, seconds=10)["animal01"])
    Traceback (most recent call last):
    ethobench.core.errors.NotFittedError: ... is not fitted: call `fit`, or load a saved model
    """


class MissingDataError(EthobenchError, FileNotFoundError):
    """A dataset that is not on this machine and could not be downloaded."""


class PathExistsError(EthobenchError, FileExistsError):
    """A file or folder that would have to be overwritten."""


class ReadWarning(UserWarning):
    """A warning from a reader: something in a file was repaired, dropped or not understood.

    Examples
    --------
    >>> import warnings
    >>> from ethobench import read_annotation, write_annotation
    >>> _ = write_annotation(annotation, folder / "frames.csv", "onehot")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", ReadWarning)
    ...     _ = read_annotation(folder / "frames.csv", "onehot")
    >>> print(str(caught[0].message).partition(": ")[2])
    no frame rate in the file; assuming 30 Hz (set it with rate=)
    """


@dataclass(frozen=True)
class Note:
    """A message from a reader or writer: what was repaired, dropped or could not be matched.

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
        return Message(self.location, ": ", self.message) if self.location else self.message


def summarize_notes(notes: Iterable[Note]) -> list[str]:
    """Return the first note of each kind and the number of further ones; notes that differ only in numbers are of one kind.

    Examples
    --------
    >>> summarize_notes([Note("row 2 is empty; skipped"), Note("row 7 is empty; skipped"), Note("no frame rate; using 30 Hz")])
    ['row 2 is empty; skipped (and 1 more note like this)', 'no frame rate; using 30 Hz']
    """
    kinds: dict[str, list[Note]] = {}
    for note in notes:
        kinds.setdefault(re.sub(r"[\d.,]+", "#", note.message), []).append(note)
    more = (" (and {n} more note like this)", " (and {n} more notes like this)")
    return [Message(same[0], plural(len(same) - 1, *more)) if len(same) > 1 else str(same[0]) for same in kinds.values()]


MAX_LENGTH = 200
"""Maximum number of characters in a message of `describe_exception`."""

REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (RecursionError, "it is nested too deeply"),
    (MemoryError, "it needs more memory than available"),
    (OverflowError, "a number in it is too large"),
    (ZeroDivisionError, "a number in it is 0 where it must not be"),
    (IndexError, "a list or table in it is shorter than expected"),
    (EOFError, "it ends too early"),
    (TypeError, "a value in it has an unexpected type"),
    (AttributeError, "a value in it has an unexpected type"),
    (AssertionError, "a value in it is not as expected"),
)


def describe_exception(error: BaseException) -> str:
    """Describe in one line what is wrong with an input that made other code raise an exception, without names of Python classes.

    Examples
    --------
    >>> describe_exception(KeyError("tracks"))
    "it has no entry 'tracks'"
    >>> describe_exception(ValueError("could not convert string to float: 'x'"))
    "a value in it is not as expected (could not convert string to float: 'x')"
    >>> describe_exception(IndexError("list index out of range"))
    'a list or table in it is shorter than expected'
    """
    text = " ".join(str(error).split())[:MAX_LENGTH]
    if isinstance(error, EthobenchError):
        return text
    if isinstance(error, UnicodeDecodeError):
        return f"its text is not valid {error.encoding.upper()} (byte {error.start})"
    if isinstance(error, KeyError) and len(error.args) == 1:
        key = error.args[0]
        is_sentence = isinstance(key, str) and " " in key  # h5py and others pass a complete message as the key
        return " ".join(key.split())[:MAX_LENGTH] if is_sentence else f"it has no entry {key!r}"[:MAX_LENGTH]
    if isinstance(error, OSError) and text:  # Arrow raises it for damaged files, with a sentence
        return text
    for kind, reason in REASONS:
        if isinstance(error, kind):
            return reason
    return f"a value in it is not as expected ({text})" if text else "a value in it is not as expected"
