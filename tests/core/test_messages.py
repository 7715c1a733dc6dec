"""Messages that name settings: as in Python, and as on the command line."""

from __future__ import annotations

import ast
import copy
import pickle
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ethobench
from ethobench.core.errors import EthobenchError, FormatError, Note, PathExistsError, summarize_notes
from ethobench.core.files import check_new_path
from ethobench.core.messages import Message, Option, text_for_command_line

PACKAGE = Path(ethobench.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(r"\bethobench [a-z]")
RATE = Message("no frame rate (set it with ", Option("rate", 30), ")")


@given(st.text())
def test_an_option_is_one_argument_in_a_shell_and_valid_python(value):
    option = Option("entry_name", value)
    assert shlex.split(option.on_command_line) == ["--entry-name", value]
    (keyword,) = ast.parse(f"f({option})", mode="eval").body.keywords  # type: ignore[attr-defined]
    assert (keyword.arg, ast.literal_eval(keyword.value)) == ("entry_name", value)


def test_values_of_options():
    assert Option("exclude", ["a b.csv", "c.csv"]).on_command_line == "--exclude 'a b.csv' --exclude c.csv"
    assert Option("rename", {"i": "social sniff"}).on_command_line == "--rename 'i=social sniff'"
    assert (str(Option("rate")), Option("rate").on_command_line) == ("rate=", "--rate")


def test_a_message_is_a_string_that_keeps_its_options_inside_messages_errors_and_notes():
    assert RATE == "no frame rate (set it with rate=30)"
    for holder in (RATE, EthobenchError(RATE), Note(RATE), Warning(RATE)):
        assert str(holder) == RATE
        assert text_for_command_line(holder) == "no frame rate (set it with --rate 30)"
    assert text_for_command_line(Note(RATE, "row 2")) == "row 2: no frame rate (set it with --rate 30)"
    assert [text_for_command_line(line) for line in summarize_notes([Note(RATE), Note(RATE)])] == [
        "no frame rate (set it with --rate 30) (and 1 more note like this)"
    ]
    assert text_for_command_line("plain text with rate=30") == "plain text with rate=30"


def test_a_format_error_is_one_line_and_keeps_its_options():
    error = FormatError("bouts.csv", Message(" two\n lines; set ", Option("entry", "a\nb")), "row 7")
    assert str(error) == "bouts.csv, row 7: two lines; set entry='a\\nb'"
    assert text_for_command_line(error).startswith("bouts.csv, row 7: two lines; set --entry 'a")
    assert str(FormatError("bouts.csv", " two\n lines ")) == "bouts.csv: two lines"


@pytest.mark.parametrize("error", [EthobenchError(RATE), FormatError("a.csv", RATE, "row 1"), PathExistsError(RATE)])
def test_errors_of_worker_processes_keep_their_options(error):
    for returned in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert (str(returned), text_for_command_line(returned)) == (str(error), text_for_command_line(error))
        assert "--rate 30" in text_for_command_line(returned)


def test_overwriting_is_advised_to_both_readers(tmp_path):
    with pytest.raises(PathExistsError, match=r"already exists \(use overwrite=True to replace it\)$") as caught:
        check_new_path(tmp_path, overwrite=False)
    assert text_for_command_line(caught.value).endswith("already exists (use --overwrite to replace it)")


@pytest.mark.slow
def test_no_text_of_the_library_names_an_option_of_the_command_line():
    """A Python caller has no options. Names that differ are stated as the flag of an `Option`; complete commands are fine in both."""
    named = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if "cli" not in path.relative_to(PACKAGE).parts and path != PACKAGE / "core" / "messages.py"
        for line, text in _texts(ast.parse(path.read_text(encoding="utf-8")))
        if any(not COMMAND.search(text[: match.start()].rpartition("\n")[2]) for match in OPTION.finditer(text))
    ]
    assert not named


def test_the_search_for_options_finds_them():
    source = 'raise E(f"{path}: use --rate")\nwarn(f"--{name} is ignored, or --fps")\nx = "see --a"\n'
    assert {line for line, text in _texts(ast.parse(source)) if OPTION.search(text)} == {1, 2, 3}


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the lines and texts of a module, except docstrings, flags of `Option`, and arguments of processes such as ``"--port"``."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Option":
            skipped |= {id(inner) for keyword in node.keywords if keyword.arg == "flag" for inner in ast.walk(keyword.value)}
        if isinstance(node, ast.JoinedStr) and id(node) not in skipped:
            skipped |= {id(value) for value in node.values}
            yield node.lineno, "".join(str(v.value) if isinstance(v, ast.Constant) else "x" for v in node.values)
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped
        if is_text and not re.fullmatch(r"--[a-z-]+", node.value):
            yield node.lineno, node.value
