"""Mutation tests of `ethobench.core` and `ethobench.metrics`: do the tests fail if one token of the code is wrong?

``python -m tests.mutants --count 60 --seed 0`` draws random mutants: a comparison, an arithmetic sign, ``and``/``or``, ``True``/``False``
or a number that is changed in one place. Each is written to a temporary copy of the project, in which the fast tests of both packages
run until the first failure. A mutant survives if no test fails; with ``--slow`` the slow tests run on the survivors too. The
same seed draws the same mutants. Some survivors are harmless, such as a changed limit of a message.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import io
import keyword
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("core", "metrics")
COPIED = ("src", "tests", "conftest.py", "pyproject.toml")
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "&": "|",
    "+=": "-=", "-=": "+=", "and": "or", "or": "and", "True": "False", "False": "True",
}  # fmt: skip
BINARY = {"+", "-", "*", "/", "//", "&"}
KILLED, SURVIVED, TIMED_OUT = "killed", "SURVIVED", "time limit"


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
    """Yield every mutant of a module. Text, docstrings and type annotations are not mutated."""
    previous = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.NL, tokenize.COMMENT):
            continue
        new = _replacement(token, previous)
        if new is not None:
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


def draw_mutants(count: int, seed: int, packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """Draw mutants of all modules of the packages at random, each token at most once."""
    mutants = []
    for package in packages:
        for path in sorted((ROOT / "src" / "ethobench" / package).rglob("*.py")):
            mutants += find_mutants(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    return random.Random(seed).sample(mutants, min(count, len(mutants)))  # noqa: S311


def run_tests(project: Path, mutant: Mutant, *, slow: bool, time_limit: float) -> str:
    """Run the tests in a mutated copy of the project, those of the mutated module first, until one fails."""
    package = mutant.path.parts[2]
    twin = Path("tests", package, f"test_{mutant.path.stem}.py")
    others = [Path("tests", name) for name in sorted(PACKAGES, key=lambda name: name != package)]
    paths = [*([twin] if (project / twin).is_file() else []), mutant.path, *others]
    environment = {**os.environ, "PYTHONPATH": str(project / "src"), "HYPOTHESIS_PROFILE": "fast", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "slow" if slow else "not slow"]
    try:
        done = subprocess.run(
            [*command, *map(str, paths)], cwd=project, env=environment, capture_output=True, timeout=time_limit, check=False
        )
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    return SURVIVED if done.returncode == 0 else KILLED


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw and test mutants; print each result and the share that was killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Mutation tests of core and metrics.")
    parser.add_argument("--count", type=int, default=60, help="number of mutants (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--packages", default=",".join(PACKAGES), help="packages to mutate, separated by commas (default: core,metrics)")
    parser.add_argument("--slow", action="store_true", help="run the slow tests on the survivors of the fast ones")
    parser.add_argument("--seconds", type=float, default=600.0, help="time limit of the tests of one mutant (default: 600)")
    options = parser.parse_args(arguments)
    mutants = draw_mutants(options.count, options.seed, options.packages.split(","))
    results: dict[Mutant, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, project / name)
        for k, mutant in enumerate(mutants, 1):
            module = project / mutant.path
            source = module.read_text(encoding="utf-8")
            module.write_text(mutant.apply(source), encoding="utf-8")
            results[mutant] = run_tests(project, mutant, slow=False, time_limit=options.seconds)
            if options.slow and results[mutant] == SURVIVED:
                results[mutant] = run_tests(project, mutant, slow=True, time_limit=options.seconds)
            module.write_text(source, encoding="utf-8")
            print(f"{k:4d}/{len(mutants)}  {results[mutant]:12s}{mutant}", flush=True)
    survivors = [mutant for mutant, result in results.items() if result == SURVIVED]
    counts = {result: list(results.values()).count(result) for result in (KILLED, TIMED_OUT, SURVIVED)}
    print(f"\n{len(mutants)} mutants: " + ", ".join(f"{count} {result}" for result, count in counts.items()))
    for mutant in survivors:
        line = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
        print(f"  {mutant}\n      {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
