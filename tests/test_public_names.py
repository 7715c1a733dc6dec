"""The names that ``import ethobench as eb`` offers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ethobench as eb


@pytest.mark.parametrize("name", eb.__all__)
def test_every_public_name_exists_and_is_documented(name):
    value = getattr(eb, name)
    assert name == "__version__" or (value.__doc__ or "").strip()


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(eb.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.asname or alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported == {*eb.__all__} - {"__version__"}


def test_unknown_names_are_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'scoer'"):
        eb.scoer  # noqa: B018


def test_importing_the_package_imports_no_large_library():
    code = "import sys, ethobench; print([m for m in ('numpy', 'pandas', 'sklearn', 'torch', 'matplotlib') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


@pytest.mark.slow
def test_names_signatures_and_commands_are_frozen():
    # in a process of its own, since other tests register benchmarks
    changed = subprocess.run([sys.executable, "-m", "tests.public_api"], capture_output=True, text=True, check=True).stdout.strip()
    advice = "if this is intended, run `python -m tests.public_api --update`"
    assert changed == "no differences", f"the public interface changed; {advice}:\n{changed}"
