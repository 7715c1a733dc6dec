"""File names made from names in the data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core.errors import EthobenchError
from ethobench.core.names import (
    MAX_BYTES,
    check_name,
    check_text,
    file_stem,
    file_stems,
    normalize_file_name,
    repair_name,
    shorten,
)


def test_file_names_are_different_and_safe():
    names = ["a/b", "a b", "..", "A_b", "ok-1.2", "Zo\u00e9", "Zoe\u0301"]
    stems = file_stems(names)
    assert stems[:5] == ["a_b", "a_b_2", "recording", "A_b_3", "ok-1.2"]
    assert len({normalize_file_name(stem) for stem in stems}) == len(names)
    assert file_stem("...") == file_stem("") == "recording"


@given(st.lists(st.text(max_size=20).map(lambda text: text * 30)))
def test_any_names_become_different_names_of_files(names):
    stems = file_stems(names)
    assert len({normalize_file_name(stem) for stem in stems}) == len(names)
    for stem in stems:
        assert len(stem.encode()) <= MAX_BYTES + 5
        assert "/" not in stem
        assert not stem.startswith(".")


@pytest.mark.parametrize("character", ["a", "é", "鼠", "🐭"])
def test_long_names_with_the_same_start_stay_different(character):
    first, second = (shorten(character * 200 + end) for end in "12")
    assert first != second
    assert max(len(first.encode()), len(second.encode())) <= MAX_BYTES
    assert first.startswith(character * (80 // len(character.encode())))


def test_a_name_of_the_maximum_length_is_unchanged():
    assert shorten("a" * 40, 40) == "a" * 40
    assert shorten("a" * 41, 40) != "a" * 41
    assert len(shorten("a" * 41, 40)) == 40


@pytest.mark.parametrize("name", ["nose\npoke", "nose\tpoke", " nose", "nose ", "nose\x00", "no\ud800se", "\r"])
def test_names_that_files_cannot_store_are_refused_and_repaired(name):
    with pytest.raises(EthobenchError, match="cannot store"):
        check_name(name, "behavior")
    check_name(repair_name(name), "behavior")


def test_texts_may_have_line_breaks():
    check_text("first\n\tsecond ", "comment")
    check_name("nose poke", "behavior")
    with pytest.raises(EthobenchError, match="a lone surrogate"):
        check_text("\udfff", "comment")
    with pytest.raises(EthobenchError, match="a control character"):
        check_text("\x07", "comment")
    with pytest.raises(EthobenchError, match="'" + "a" * 60 + r"\.\.\.'"):
        check_text("a" * 61 + "\x07", "comment")
    with pytest.raises(EthobenchError, match="'" + "a" * 59 + r"\\x07'"):
        check_text("a" * 59 + "\x07", "comment")


@pytest.mark.parametrize("length", [60, 61, 62])
def test_long_texts_are_shortened_in_messages(length):
    text = "\x01" + "y" * (length - 1)
    shown = text if length == 60 else f"{text[:60]}..."
    with pytest.raises(EthobenchError) as error:
        check_text(text, "comment")
    assert str(error.value) == f"the comment {shown!r} has a control character ('\\x01'), which files cannot store; change it"


@pytest.mark.parametrize("code", [0xD800, 0xDBFF, 0xDFFF])
def test_lone_surrogates_are_named(code):
    with pytest.raises(EthobenchError, match="has a lone surrogate"):
        check_text(chr(code), "comment")
