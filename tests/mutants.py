"""Mutation tests of `ethobench.core` and `ethobench.metrics`: do the tests fail if one token of the code is wrong?

``python -m tests.mutants --count 60 --seed 0`` draws random mutants: a comparison, an arithmetic sign, ``and``/``or``, ``True``/``False``
or a number that is changed in one place. First, the fast tests of both packages that execute the mutated line run until one fails, in a
fork of one process (`tests.mutants_in_process`). Mutants outside functions (constants, default values) are written to a temporary copy of
the project instead, in which the tests and examples of the mutated module run, then the other fast tests of the packages that use it.
Survivors are tested with the tests that ``--also`` names and, with ``--slow``, with those of the module with all examples of hypothesis,
and the slow ones; with ``--related``, with the test files of other packages, fast and slow tests alike, that name the module or its
public functions and classes; those that name them most often run first, and ``--seconds`` bounds them. A mutant survives if no test
fails. The same seed draws the same mutants as long as the code of the packages is the same. ``--only`` tests those at some lines
instead, such as the survivors after a new test, and ``--modules`` all of some modules.

Two kinds of tokens are not mutated, because no result depends on them: ``frozen=`` of dataclasses and ``strict=`` of `zip`. Both only
raise an error if other code is wrong. Some survivors remain harmless, such as a changed limit of a message.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import keyword
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.mutants_in_process import MutantRuns

ROOT = Path(__file__).parents[1]
PACKAGES = ("core", "metrics")
COPIED = ("src", "tests", "docs", "benchmarks", "conftest.py", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "&": "|",
    "+=": "-=", "-=": "+=", "and": "or", "or": "and", "True": "False", "False": "True",
}  # fmt: skip
BINARY = {"+", "-", "*", "/", "//", "&"}
UNCHANGED_KEYWORDS = {"dataclass": "frozen", "zip": "strict"}
PRELOADED = ["pytest", "numpy", "pandas", "scipy.optimize", "scipy.stats", "sklearn.metrics"]
KILLED, SURVIVED, TIMED_OUT, UNTESTED = "killed", "survived", "time limit", "not tested"
NOT_A_FUNCTION, NOT_EXECUTED = "not in a function", "not executed"
RELATED, FIRST = "related", ("module", "packages")
FAST, SLOW, ALL = "not slow", "slow", "slow or not slow"


@dataclass(frozen=True)
class Mutant:
    """One changed token.

    Attributes
    ----------
    path : Path
        Module, relative to the project.
    line, column : int
        Position of the token; lines start at 1, columns at 0.
    old, new : str
    """

    path: Path
    line: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path.as_posix()}:{self.line}:{self.column}  {self.old} -> {self.new}"

    def apply(self, source: str) -> str:
        """Return the mutated source."""
        lines = source.splitlines(keepends=True)
        text = lines[self.line - 1]
        assert text[self.column :].startswith(self.old)
        lines[self.line - 1] = text[: self.column] + self.new + text[self.column + len(self.old) :]
        return "".join(lines)


def find_mutants(path: Path, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module. Text, docstrings, type annotations and `UNCHANGED_KEYWORDS` are not mutated."""
    unchanged = {
        (keyword_argument.value.lineno, keyword_argument.value.col_offset)
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        for keyword_argument in call.keywords
        if keyword_argument.arg == UNCHANGED_KEYWORDS.get(call.func.id, "")
    }
    previous = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.NL, tokenize.COMMENT):
            continue
        new = _replacement(token, previous)
        if new is not None and token.start not in unchanged:
            yield Mutant(path, *token.start, token.string, new)
        previous = token


def _replacement(token: tokenize.TokenInfo, previous: tokenize.TokenInfo | None) -> str | None:
    if token.type == tokenize.NUMBER:
        try:
            return str(int(token.string, 0) + 1)
        except ValueError:
            return repr(float(token.string) + 1.0)
    if token.type not in (tokenize.OP, tokenize.NAME) or token.string not in SWAPS:
        return None
    follows_operand = previous is not None and (  # otherwise it is a sign or an unpacking
        previous.type == tokenize.NUMBER
        or (previous.type == tokenize.NAME and not keyword.iskeyword(previous.string))
        or previous.string in (")", "]")
    )
    return SWAPS[token.string] if token.string not in BINARY or follows_operand else None


def all_mutants(packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """Return the mutants of all modules of the packages."""
    mutants: list[Mutant] = []
    for package in packages:
        for path in sorted((ROOT / "src" / "ethobench" / package).rglob("*.py")):
            mutants += find_mutants(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    return mutants


def mutants_at(positions: Sequence[str], packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """Return the mutants at positions such as ``core/bouts.py:65`` or, of one token, ``core/bouts.py:65:12``."""

    def is_at(mutant: Mutant) -> bool:
        line = f"{mutant.path.as_posix()}:{mutant.line}"
        return line.endswith(tuple(positions)) or f"{line}:{mutant.column}".endswith(tuple(positions))

    return [mutant for mutant in all_mutants(packages) if is_at(mutant)]


def draw_mutants(count: int, seed: int, packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """Draw mutants of all modules of the packages at random, each token at most once."""
    mutants = all_mutants(packages)
    return random.Random(seed).sample(mutants, min(count, len(mutants)))  # noqa: S311


def test_in_process(mutants: Sequence[Mutant], time_limit: float, minutes: float, workers: int) -> tuple[dict[Mutant, str], set[str]]:
    """Test mutants of functions with the fast tests that execute them.

    Returns
    -------
    dict, set of str
        The results, without mutants outside functions and those that no test executes; and the tests that fail without a mutant.
    """
    import pytest

    files = {ROOT / mutant.path for mutant in mutants}
    sources = {str(path): path.read_text(encoding="utf-8") for path in files}
    results: dict[Mutant, str] = {}

    def report(mutant: Mutant, result: str, test: str) -> None:
        results[mutant] = result
        print(f"{result:22s}{mutant}  {test}", flush=True)

    mutated = {m: (str(ROOT / m.path), m.apply(sources[str(ROOT / m.path)]), m.line) for m in mutants}
    runs = MutantRuns(sources, mutated, report, workers=workers, time_limit=time_limit, minutes=minutes)
    os.environ.update(HYPOTHESIS_PROFILE="mutants", OMP_NUM_THREADS="1")
    folders = [str(ROOT / folder / package) for package in PACKAGES for folder in ("tests", "src/ethobench")]
    pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), "-m", FAST, *folders], plugins=[runs])
    return results, runs.broken


@dataclass(frozen=True)
class Stage:
    """Some of the tests.

    Attributes
    ----------
    name : str
    paths : list of str
        Files and folders, relative to the project.
    marks : str
        Expression of pytest that selects tests by their marks.
    ignored : list of str
        Files to skip, because an earlier stage ran them.
    profile : str
        Profile of hypothesis: "mutants" tests ten examples of each property, "default" as many as the complete suite.
    is_bounded : bool
        Whether the tests that pass until the time limit count as passed. Otherwise reaching it counts as a failure: an endless loop.
    """

    name: str
    paths: list[str]
    marks: str = FAST
    ignored: Sequence[str] = ()
    profile: str = "mutants"
    is_bounded: bool = False

    def run(self, project: Path, time_limit: float) -> str:
        """Run the tests in a copy of the project until one fails.

        They run in a fork of a process that has loaded the libraries, which takes as long as the tests of most modules.
        """
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", self.marks, *(f"--ignore={path}" for path in self.ignored)]
        process = multiprocessing.get_context("forkserver").Process(
            target=_run_pytest, args=(project, [*options, *self.paths], self.profile)
        )
        process.start()
        process.join(time_limit)
        if process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid or 0, signal.SIGKILL)  # with the processes that the tests started
            process.join()
            return SURVIVED if self.is_bounded else TIMED_OUT
        return SURVIVED if process.exitcode in (0, 5) else KILLED  # 5: no test was selected


def _run_pytest(project: Path, arguments: list[str], profile: str) -> None:
    """Run pytest on a copy of the project, without output, and exit with its code."""
    os.setsid()
    os.chdir(project)
    os.environ.update(PYTHONPATH=str(project / "src"), HYPOTHESIS_PROFILE=profile, OMP_NUM_THREADS="1")
    sys.path[:] = [str(project / "src"), *(path for path in sys.path if Path(path or ".").resolve() not in (ROOT, ROOT / "src"))]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "ethobench")]:
        del sys.modules[name]
    output = os.open(os.devnull, os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    import pytest

    os._exit(pytest.main(arguments))


def related_tests(mutant: Mutant, limit: int) -> list[str]:
    """Return the test files of other packages that name a module or its public functions and classes, most mentions first."""
    tree = ast.parse((ROOT / mutant.path).read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")}
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names | {mutant.path.stem})))})\b")
    own_value = [ROOT / "tests" / name for name in PACKAGES]
    mentions = {
        path.relative_to(ROOT).as_posix(): len(words.findall(path.read_text(encoding="utf-8")))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if not any(folder in path.parents for folder in own_value) and path.stem != "test_mutants"
    }
    chosen = sorted((path for path, count in mentions.items() if count), key=lambda path: -mentions[path])
    return chosen[:limit]


def stages(mutant: Mutant, *, slow: bool = False, also: Sequence[str] = (), related: int = 0) -> Iterator[Stage]:
    """Yield the tests to run on a mutant, those that most likely fail first."""
    package, module = mutant.path.parts[2], mutant.path.stem
    folder = ROOT / "tests" / package
    twins = sorted(folder.glob(f"test_{module}*.py")) or sorted(folder.glob(f"test_{mutant.path.parts[-2]}.py"))
    nearest = [path.relative_to(ROOT).as_posix() for path in twins]
    using = [f"tests/{name}" for name in PACKAGES[PACKAGES.index(package) :]]  # packages import only those before them
    yield Stage("module", [*nearest, mutant.path.as_posix()])
    yield Stage("packages", using, ignored=nearest)
    if also:
        yield Stage("also", list(also))
    if slow:
        yield Stage("examples", [*nearest, mutant.path.as_posix()], profile="default", is_bounded=True)
        yield Stage("slow", [*using, *also], SLOW, profile="default", is_bounded=True)
    if related and (files := related_tests(mutant, related)):
        yield Stage(RELATED, files, ALL, is_bounded=True)


def run_tests(project: Path, mutant: Mutant, chosen: Sequence[Stage], time_limit: float) -> str:
    """Write a mutant into a copy of the project and run stages of tests until one fails; return the result.

    Related tests of other packages count only if they pass without the mutant: some need files that are not copied.
    """
    module = project / mutant.path
    source = module.read_text(encoding="utf-8")
    for stage in chosen:
        module.write_text(mutant.apply(source), encoding="utf-8")
        try:
            result = stage.run(project, time_limit)
        finally:
            module.write_text(source, encoding="utf-8")
        if result != SURVIVED and (stage.name != RELATED or stage.run(project, 2 * time_limit) == SURVIVED):
            return f"{result} ({stage.name})"
    return SURVIVED


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw and test mutants; print each result, how many were killed, and the lines of those that survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Mutation tests of core and metrics.")
    parser.add_argument("--count", type=int, default=60, help="number of mutants (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--packages", default=",".join(PACKAGES), help="packages to mutate, separated by commas (default: core,metrics)")
    parser.add_argument(
        "--only", nargs="+", metavar="FILE:LINE", help="the mutants at these lines, such as core/bouts.py:65, or tokens, :65:12"
    )
    parser.add_argument("--modules", nargs="+", metavar="FILE", help="all mutants of these modules, such as core/bouts.py")
    parser.add_argument("--also", nargs="+", default=[], metavar="PATH", help="further tests for the survivors, such as tests/formats")
    parser.add_argument("--slow", action="store_true", help="run all examples and the slow tests on the survivors of the fast tests")
    parser.add_argument(
        "--related", type=int, default=0, metavar="N", help="run up to N related test files of other packages on the survivors"
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="time limit of each stage of the tests of one mutant (default: 600)")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no further mutant after this time (default: 60)")
    parser.add_argument("--workers", type=int, default=1, help="mutants tested at the same time (default: 1)")
    options = parser.parse_args(arguments)
    packages = options.packages.split(",")
    if options.modules:
        mutants = [mutant for mutant in all_mutants(packages) if mutant.path.as_posix().endswith(tuple(options.modules))]
    else:
        mutants = mutants_at(options.only, packages) if options.only else draw_mutants(options.count, options.seed, packages)
    end = time.monotonic() + 60 * options.minutes
    results, broken = test_in_process(mutants, options.seconds, options.minutes, options.workers)
    if broken:
        print(f"These tests fail without a mutant; fix them first: {', '.join(sorted(broken))}")
        return 1
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    undecided = [mutant for mutant in mutants if results.get(mutant, UNTESTED) in (SURVIVED, UNTESTED, NOT_A_FUNCTION, NOT_EXECUTED)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.workers) as pool:
        projects: SimpleQueue[Path] = SimpleQueue()
        for k in range(options.workers):
            projects.put(_copy_project(Path(folder, str(k))))

        # before the first mutant, because test files that are added later are not in the copies
        chosen = {
            m: [
                stage
                for stage in stages(m, slow=options.slow, also=options.also, related=options.related)
                if results.get(m) != SURVIVED or stage.name not in FIRST
            ]
            for m in undecided
        }

        def test(mutant: Mutant, tests: Sequence[Stage]) -> None:
            if time.monotonic() > end:
                if results.get(mutant) != SURVIVED:
                    results[mutant] = UNTESTED
                return
            project = projects.get()
            results[mutant] = run_tests(project, mutant, tests, options.seconds)
            projects.put(project)
            print(f"{results[mutant]:22s}{mutant}", flush=True)

        print(f"{len(undecided)} mutants that survived or are not in a function that the tests execute", flush=True)
        list(pool.map(test, chosen, chosen.values()))
    counts = {result: list(results.values()).count(result) for result in sorted(set(results.values()))}
    print(f"\n{len(mutants)} mutants: " + ", ".join(f"{count} {result}" for result, count in counts.items()))
    for mutant in [mutant for mutant in mutants if results.get(mutant) == SURVIVED]:
        line = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
        print(f"  {mutant}\n      {line}")
    return 0


def _copy_project(folder: Path) -> Path:
    folder.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


if __name__ == "__main__":
    sys.exit(main())
