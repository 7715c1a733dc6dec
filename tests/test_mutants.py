"""Mutants: which tokens are changed, and that a mutant differs from its module in one token."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants import ROOT, Mutant, draw_mutants, find_mutants, mutants_at, related_tests, stages
from tests.mutants_in_process import changed_functions, executed_lines

SOURCE = '''
"""Text with 1 < 2 is not mutated."""


def mean(*values: int | None, scale=2.5):
    if len(values) <= 1 and not scale:
        return -1
    return scale * sum(values)
'''


def test_tokens_that_are_changed():
    assert [(m.line, m.old, m.new) for m in find_mutants(Path("m.py"), SOURCE)] == [
        (5, "2.5", "3.5"),
        (6, "<=", "<"),
        (6, "1", "2"),
        (6, "and", "or"),
        (7, "1", "2"),
        (8, "*", "+"),
    ]


def test_checks_of_other_code_are_not_changed():
    source = "@dataclass(frozen=True, eq=False)\nclass Pair:\n    both = [*zip('a', 'b', strict=True)]\n    path = resolve(strict=True)\n"
    assert [(m.line, m.old) for m in find_mutants(Path("m.py"), source)] == [(1, "False"), (4, "True")]


def test_tests_of_the_module_run_first():
    first, *others = stages(Mutant(Path("src/ethobench/metrics/suites/bebe.py"), 1, 0, "1", "2"), slow=True, also=["tests/cli"])
    assert first.paths == ["tests/metrics/test_suites.py", "src/ethobench/metrics/suites/bebe.py"]
    assert [(s.paths, s.marks) for s in others] == [
        (["tests/metrics"], "not slow"),
        (["tests/cli"], "not slow"),
        (first.paths, "not slow"),
        (["tests/metrics", "tests/cli"], "slow"),
    ]
    assert others[0].ignored == ["tests/metrics/test_suites.py"]
    assert [s.profile for s in (first, *others)] == ["mutants", "mutants", "mutants", "default", "default"]
    assert [*stages(Mutant(Path("src/ethobench/core/names.py"), 1, 0, "1", "2"))][1].paths == ["tests/core", "tests/metrics"]


def test_related_tests_name_the_module_and_are_of_other_packages():
    mutant = Mutant(Path("src/ethobench/metrics/matching.py"), 1, 0, "1", "2")
    files = related_tests(mutant, 3)
    assert 0 < len(files) <= 3
    for file in files:
        assert not file.startswith(("tests/core", "tests/metrics"))
        assert "match" in (ROOT / file).read_text(encoding="utf-8")
    assert [*stages(mutant, related=3)][-1].paths == files
    assert [*stages(mutant, related=3)][-1].is_bounded


@pytest.mark.parametrize(("number", "functions"), [(1, None), (2, None), (3, {"f"}), (4, None), (5, {"C.g"})])
def test_changes_of_functions_and_of_other_code(number, functions):
    source = "A = 1\ndef f(x=2):\n    return [y + 3 for y in x]\nclass C:\n    k = 4\n    def g(self):\n        return 5\n"
    codes = [compile(text, "m.py", "exec") for text in (source, source.replace(str(number), "9"))]
    changed = changed_functions(*codes)
    assert (changed if changed is None else {name.partition(".<")[0] for name, _ in changed}) == functions


def test_executed_lines_are_those_of_the_files_of_interest():
    here = Mutant(Path("m.py"), 1, 0, "1", "2")
    path = here.apply.__code__.co_filename
    lines = executed_lines([path], lambda: here.apply("1\n"))
    assert {file for file, _ in lines} == {path}
    assert {line for _, line in lines} >= {here.apply.__code__.co_firstlineno}
    assert executed_lines(["other.py"], lambda: here.apply("1\n")) == set()


@pytest.mark.slow
def test_mutants_are_chosen_by_line_or_token():
    mutant = draw_mutants(1, seed=0)[0]
    line = f"{mutant.path.relative_to('src/ethobench').as_posix()}:{mutant.line}"
    assert mutant in mutants_at([line])
    assert mutants_at([f"{line}:{mutant.column}"]) == [mutant]


@pytest.mark.slow
def test_mutants_of_the_packages_are_valid_and_reproducible():
    mutants = draw_mutants(40, seed=1)
    assert mutants == draw_mutants(40, seed=1) != draw_mutants(40, seed=2)
    for mutant in mutants:
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        mutated = mutant.apply(source)
        ast.parse(mutated)
        different = [(a, b) for a, b in zip(source.splitlines(), mutated.splitlines(), strict=True) if a != b]
        assert len(different) == 1
