"""Messages that depend on numbers and lists have complete phrases, in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ethobench
from ethobench.core.wording import UNITS, count_units, join_names, plural

ENDINGS = {"", "s", "es", "y", "ies", "is", "are", "was", "were", "has", "have", "use", "uses"}
FOLDER = Path(ethobench.__file__).parent
SOURCES = [path for path in sorted(FOLDER.rglob("*.py")) if path.name != "wording.py"]


def test_names_in_braces_stay_as_they_are():
    assert plural(1, "{n} bout of {name}", "{n} bouts of {name}", name="{n}") == "1 bout of {n}"
    assert plural(0, "{n} bout", "{n} bouts") == "0 bouts"


@pytest.mark.parametrize("unit", UNITS)
def test_units_have_both_forms(unit):
    assert count_units(1, unit) == f"1 {unit.removesuffix('s')}"
    assert count_units(1234, unit) == f"1,234 {unit}"


def test_other_units_keep_their_name():
    assert count_units(3, "cages") == "3 cages"


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"), ("abcd", "a, b and 2 more")]
)
def test_lists_of_names(names, text):
    assert join_names(names, most=None if len(names) < 4 else 2) == text


def test_no_other_module_builds_plural_forms():
    endings = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FormattedValue) and isinstance(choice := node.value, ast.IfExp):
                texts = [branch.value for branch in (choice.body, choice.orelse) if isinstance(branch, ast.Constant)]
                if len(texts) == 2 and {*texts} <= ENDINGS:
                    endings.append(f"{path.relative_to(FOLDER)}:{node.lineno}")
    assert endings == []
