"""Errors: their built-in base classes, messages and pickling."""

from __future__ import annotations

import pickle

import pytest

import ethobench as eb
from ethobench.core import Ethogram
from ethobench.core.errors import (
    EthobenchError,
    FormatError,
    MismatchError,
    MissingDataError,
    Note,
    NotFittedError,
    NotFoundError,
    ParameterError,
    PathExistsError,
    describe_exception,
    summarize_notes,
)

BASES = {
    NotFoundError: (KeyError,),
    MismatchError: (ValueError,),
    ParameterError: (ValueError,),
    NotFittedError: (ValueError, AttributeError),
    MissingDataError: (FileNotFoundError,),
    PathExistsError: (FileExistsError,),
}


@pytest.mark.parametrize("kind", BASES)
def test_errors_are_the_fitting_builtin_and_print_their_message(kind):
    error = kind("no behavior 'x'")
    assert isinstance(error, (EthobenchError, *BASES[kind]))
    assert all(isinstance(error, base) for base in BASES[kind])
    assert str(error) == "no behavior 'x'"  # KeyError alone would print it in quotes
    assert describe_exception(error) == "no behavior 'x'"
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (kind, str(error))


def test_format_errors_name_file_and_location_and_survive_another_process():
    error = FormatError("a.csv", "not a\nnumber", "row 3")
    assert isinstance(error, ValueError)
    assert str(error) == "a.csv, row 3: not a number"
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.location, copy.path) == (str(error), "row 3", error.path)


def test_unknown_names_can_be_caught_as_key_errors():
    with pytest.raises(KeyError, match="no behavior 'zz' in the ethogram"):
        Ethogram(["a"]).code("zz")
    with pytest.raises(KeyError, match="no dataset"):
        eb.load_dataset("synthetic/nope")


def test_notes_of_one_kind_are_summarized():
    notes = [Note("row 2 is empty", "a.csv"), Note("row 30 is empty", "a.csv"), Note("no rate")]
    assert summarize_notes(notes) == ["a.csv: row 2 is empty (and 1 more note like this)", "no rate"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (EthobenchError("no rate"), "no rate"),
        (UnicodeDecodeError("utf-8", b"ab\xff", 2, 3, "invalid"), "its text is not valid UTF-8 (byte 2)"),
        (KeyError("tracks"), "it has no entry 'tracks'"),
        (KeyError("Unable to open  object"), "Unable to open object"),
        (KeyError("a", "b"), "a value in it is not as expected (('a', 'b'))"),
        (OSError("Couldn't deserialize thrift"), "Couldn't deserialize thrift"),
        (OSError(), "a value in it is not as expected"),
        (RecursionError("x"), "it is nested too deeply"),
        (ValueError(), "a value in it is not as expected"),
        (ValueError("bad\nvalue"), "a value in it is not as expected (bad value)"),
    ],
)
def test_exceptions_of_other_code_are_described(error, text):
    assert describe_exception(error) == text
