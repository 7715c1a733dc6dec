"""Words for exceptions that nobody foresaw: what a user can make of them, without the names of Python's classes."""

from __future__ import annotations

LONGEST = 200
REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (RecursionError, "it is nested too deeply"),
    (MemoryError, "it claims more memory than there is"),
    (OverflowError, "a number in it is too large"),
    (ZeroDivisionError, "a number in it is 0 where it cannot be"),
    (IndexError, "a list or table in it is shorter than expected"),
    (EOFError, "it ends too early"),
    (TypeError, "a value in it is of another kind than expected"),
    (AttributeError, "a value in it is of another kind than expected"),
    (AssertionError, "a value in it is not as expected"),
)


def explain_exception(error: BaseException) -> str:
    """Say in one line what is wrong with an input that made some code raise an exception.

    Examples
    --------
    >>> explain_exception(KeyError("tracks"))
    "it has no entry 'tracks'"
    >>> explain_exception(ValueError("could not convert string to float: 'x'"))
    "a value in it is not as expected (could not convert string to float: 'x')"
    >>> explain_exception(IndexError("list index out of range"))
    'a list or table in it is shorter than expected'
    """
    text = " ".join(str(error).split())[:LONGEST]
    if isinstance(error, UnicodeDecodeError):
        return f"its text is not valid {error.encoding.upper()} (byte {error.start})"
    if isinstance(error, KeyError) and len(error.args) == 1:
        key = error.args[0]
        is_sentence = isinstance(key, str) and " " in key  # h5py and others give their whole message as the key
        return " ".join(key.split())[:LONGEST] if is_sentence else f"it has no entry {key!r}"[:LONGEST]
    if isinstance(error, OSError) and text:  # Arrow raises it for damaged files, with a sentence
        return text
    for kind, reason in REASONS:
        if isinstance(error, kind):
            return reason
    return f"a value in it is not as expected ({text})" if text else "a value in it is not as expected"
