"""Measure how large and how entangled the code is, as markdown.

Run it from the root of a checkout::

    python -m tests.code_metrics [SRC]           # size, private imports, complexity, tests across modules, banned names
    python -m tests.code_metrics [SRC] --hops    # functions and modules that a few commands enter
    python -m tests.code_metrics [SRC] --check   # fail on banned names and phrases and on private imports; part of `make check`

`SRC` is the folder that holds the package ``ethobench`` (``src`` unless given); its tests are expected in ``SRC/../tests``.
``--hops`` runs commands of that package on small data, some of them from ``$ETHOBENCH_DATA``.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

PACKAGE = "ethobench"
MAX_COMPLEXITY = 15
BANNED_NAMES = frozenset(
    "told said found known own seen wanted asked taken made left given usual place places part some whole".split()  # noqa: SIM905
)
BANNED_IN_SOURCE = frozenset({"who", "whom", "where", "what", "several", "everything"})
"""Names that are banned in the package, and fine in tests."""
BARE_ONLY = frozenset({"left", "part"})
"""Banned names that are fine as attributes."""
BANNED_PHRASES = re.compile(
    r"\b(stands? twice|left alone|looked at|passed over|learnt|is no (saved|valid|store|folder|BEBE|format|dataset)|"
    r"cannot follow along|begun (from|with)|as the paper tells|judg(ed|ing) (\w+ )?as wholes|in sight|(taken|took) as one recording|"
    r"made on the spot|whole numbers?)\b"
)
BANNED_IN_TEST_NAMES = re.compile(
    r"(?<![a-z])(told|tells?|said|says?_so|learnt|begun|strangers?|strange|familiar|dress(ed|es)?|nonsense|asked_for|goes_on|go_on|"
    r"left_(alone|behind)|looked_at|passed_over|stands?_(twice|where|beside)|taken_(as|for|out|to_be|apart)|there_and_back|made_one|whole|"
    r"(?<!there_)(is|are)_no|(?<!there_)(is|are)_(none|nothing)|not_there|in_sight)(?![a-z])"
)
"""Words and phrases of the banned dialect in the names of test functions."""
TEXT_SUFFIXES = frozenset({".py", ".js", ".html", ".css", ".csv", ".md"})
JS_DECLARATION = re.compile(r"\b(?:const|let|var)\s+(\w+)")


# ------------------------------------------------------------------------------------------------------------------ reading the code


def python_files(folder: Path) -> list[Path]:
    """Return the Python files below a folder."""
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def parse(path: Path) -> ast.Module:
    """Parse a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def top_package(module: str) -> str:
    """Return the package below ``ethobench`` that a dotted module path lies in; ``ethobench`` itself for its own modules."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else PACKAGE


def imported_names(tree: ast.Module, module: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield line, module and name (empty for ``import module``) of each import from ``ethobench``.

    Parameters
    ----------
    tree : ast.Module
    module : sequence of str
        The dotted path of the file's package, to resolve relative imports.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    yield node.lineno, alias.name, ""
        elif isinstance(node, ast.ImportFrom):
            base = list(module[: len(module) - node.level + 1]) if node.level else []
            source = ".".join([*base, *((node.module or "").split(".") if node.module else [])])
            if source.split(".")[0] == PACKAGE:
                for alias in node.names:
                    yield node.lineno, source, alias.name


def is_private(module: str, name: str) -> bool:
    """Return whether a module path or an imported name has a component that starts with a single underscore."""
    return any(component.startswith("_") and not component.startswith("__") for component in (*module.split("."), name))


def private_imports(source: Path) -> list[str]:
    """List imports of private modules and names from another top-level package."""
    lines = []
    for path in python_files(source / PACKAGE):
        relative = path.relative_to(source)
        package = list(relative.parts[:-1])
        file_package = relative.parts[1] if len(relative.parts) > 2 else relative.stem
        for line, module, name in imported_names(parse(path), package):
            target = top_package(f"{module}.{name}" if module == PACKAGE else module)
            if is_private(module, name) and target != file_package:
                lines.append(f"{relative}:{line} {module} {name}".rstrip())
    return lines


def private_imports_of_tests(tests: Path) -> list[str]:
    """List imports of private modules and names in tests."""
    return [
        f"{path.relative_to(tests.parent)}:{line} {module} {name}".rstrip()
        for path in python_files(tests)
        for line, module, name in imported_names(parse(path), [])
        if is_private(module, name)
    ]


def assigned_names(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield line, name and whether it is an attribute, for assigned names, loop targets, parameters and assigned attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id, False
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg, False
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr, True


def banned_names_of(path: Path) -> list[tuple[int, str]]:
    """Return line and name of the banned names in a file. ``left`` is a side, and fine, where ``right`` is assigned in the same line."""
    banned = BANNED_NAMES | BANNED_IN_SOURCE if PACKAGE in path.parts else BANNED_NAMES
    assigned = list(assigned_names(parse(path)))
    sides = {line for line, name, _ in assigned if name == "right"}
    return [
        (line, name)
        for line, name, is_attribute in assigned
        if name in banned and not (is_attribute and name in BARE_ONLY) and not (name == "left" and line in sides)
    ]


def banned_names(folder: Path) -> Counter[str]:
    """Count banned names in all files below a folder."""
    return Counter(name for path in python_files(folder) for _, name in banned_names_of(path))


def banned_name_lines(folder: Path) -> list[str]:
    """List each banned name with its file and line."""
    return [
        f"{path}:{line}: variable {name!r} does not say what it holds"
        for path in python_files(folder)
        for line, name in banned_names_of(path)
    ]


def banned_script_names(folder: Path) -> list[str]:
    """List each banned name that a script of a page declares, with file and line."""
    return [
        f"{path}:{number}: variable {match[1]!r} does not say what it holds"
        for path in sorted(folder.rglob("*.js"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for match in JS_DECLARATION.finditer(line)
        if match[1] in BANNED_NAMES - BARE_ONLY
    ]


def banned_phrase_lines(root: Path) -> list[str]:
    """List phrases of the banned dialect in the text files of a checkout, with file and line."""
    folders = ("src", "docs", "benchmarks")
    texts = [path for folder in folders for path in sorted((root / folder).rglob("*")) if path.suffix in TEXT_SUFFIXES]
    texts += [root / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [
        f"{path}:{number}: {match[0]!r} (see docs/glossary.md for the terms to use)"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (match := BANNED_PHRASES.search(line))
    ]


def banned_test_names(tests: Path) -> list[str]:
    """List test functions whose name has a word or phrase of the banned dialect, with file and line."""
    return [
        f"{path}:{node.lineno}: {match[0]!r} in {node.name} (see docs/glossary.md for the terms to use)"
        for path in python_files(tests)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and (match := BANNED_IN_TEST_NAMES.search(node.name))
    ]


def complex_functions(folder: Path) -> list[str]:
    """List functions above the limit of cyclomatic complexity, as ruff counts it."""
    options = ("--isolated", "--no-cache", "--select", "C901", "--config", f"lint.mccabe.max-complexity={MAX_COMPLEXITY}")
    command = [sys.executable, "-m", "ruff", "check", *options, "--output-format", "json", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise RuntimeError(done.stderr)
    return [
        f"{Path(entry['filename']).relative_to(folder.resolve())}:{entry['location']['row']} {entry['message']}"
        for entry in json.loads(done.stdout)
    ]


def tests_without_module(source: Path, tests: Path) -> list[str]:
    """List the test files that are not about one module: those across modules, and those of the tests' own tools.

    ``tests/X/test_Y.py`` and ``tests/X/test_Y_ASPECT.py`` are about the module or package ``ethobench/X/Y``, ``tests/X/test_X.py`` about
    the package ``ethobench/X``, and ``tests/test_Y.py`` also about ``tests/Y.py``.
    """
    lines = []
    for path in sorted(tests.rglob("test_*.py")):
        relative = path.relative_to(tests)
        package = source / PACKAGE / relative.parent
        words = path.stem.removeprefix("test_").split("_")
        names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
        modules = [path.with_name(f"{names[-1]}.py"), package.parent / names[-1] / "__init__.py"]
        modules += [module for name in names for module in (package / f"{name}.py", package / name / "__init__.py")]
        if not any(module.exists() for module in modules):
            lines.append(str(relative))
    return lines


def check(source: Path, tests: Path) -> list[str]:
    """List what `make check` refuses: banned names, banned phrases, and private imports across packages and in tests."""
    return [
        *banned_name_lines(source / PACKAGE),
        *banned_name_lines(tests),
        *banned_script_names(source / PACKAGE),
        *banned_phrase_lines(source.parent),
        *banned_test_names(tests),
        *(f"{line} (private)" for line in (*private_imports(source), *private_imports_of_tests(tests))),
    ]


# ---------------------------------------------------------------------------------------------------------------------------- tables


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def size_rows(source: Path) -> list[tuple[object, ...]]:
    """Return package, files, lines, median lines and largest file; the last row is for all of them."""
    lengths: dict[str, dict[str, int]] = defaultdict(dict)
    for path in python_files(source / PACKAGE):
        relative = path.relative_to(source / PACKAGE)
        package = relative.parts[0] if len(relative.parts) > 1 else "(root)"
        lengths[package][str(relative)] = len(path.read_text(encoding="utf-8").splitlines())
    everything = {name: count for files in lengths.values() for name, count in files.items()}
    rows: list[tuple[object, ...]] = []
    for package, files in (*sorted(lengths.items()), ("all", everything)):
        largest = max(files, key=lambda name: files[name])
        rows.append((package, len(files), sum(files.values()), f"{median(files.values()):.0f}", f"{files[largest]} ({largest})"))
    return rows


def listed(title: str, lines: Sequence[str]) -> list[str]:
    """Return a section with a count in its title and one line per finding."""
    return ["", f"## {title}: {len(lines)}", "", *(f"- {line}" for line in lines)]


def report(source: Path, tests: Path) -> list[str]:
    """Return all measurements as markdown."""
    across, in_tests = private_imports(source), private_imports_of_tests(tests)
    complexity, cross_module_tests = complex_functions(source / PACKAGE), tests_without_module(source, tests)
    in_source, in_test_code = banned_names(source / PACKAGE), banned_names(tests)
    summary = [
        ("private imports across packages", len(across)),
        ("private imports in tests", len(in_tests)),
        (f"functions over complexity {MAX_COMPLEXITY}", len(complexity)),
        ("test files across modules", f"{len(cross_module_tests)} of {len(list(tests.rglob('test_*.py')))}"),
        ("banned names in src", in_source.total()),
        ("banned names in tests", in_test_code.total()),
    ]
    names = sorted(BANNED_NAMES | BANNED_IN_SOURCE, key=lambda name: -(in_source[name] + in_test_code[name]))
    return [
        "# Code metrics",
        "",
        *table(("measure", "count"), summary),
        "",
        "## Size",
        "",
        *table(("package", "files", "lines", "median lines", "largest file"), size_rows(source)),
        "",
        "## Banned variable names",
        "",
        *table(("name", "src", "tests"), [(name, in_source[name], in_test_code[name]) for name in names]),
        *listed("Private imports across packages", across),
        *listed("Private imports in tests", in_tests),
        *listed(f"Functions over complexity {MAX_COMPLEXITY}", complexity),
        *listed("Test files across modules", cross_module_tests),
    ]


# ------------------------------------------------------------------------------------------------------------------------ call hops

PROFILER = '''
"""Write each function of ethobench that is called, once per process, to the file that ETHOBENCH_HOPS names."""
import os, sys, threading

ROOT, TARGET = os.environ["ETHOBENCH_HOPS_ROOT"] + os.sep, os.open(os.environ["ETHOBENCH_HOPS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
ENTERED = set()

def profile(frame, event, argument):
    code = frame.f_code
    if event != "call" or code in ENTERED or not code.co_filename.startswith(ROOT):
        return
    if not code.co_flags & 1 or code.co_name.startswith("<"):  # bodies of modules and classes, comprehensions, lambdas
        return
    depth, caller = 0, frame
    while caller is not None:
        name = caller.f_code.co_filename
        if name.startswith("<frozen importlib"):  # called while a module is imported
            return
        depth += name.startswith(ROOT) and not caller.f_code.co_name.startswith("<")
        caller = caller.f_back
    ENTERED.add(code)
    os.write(TARGET, f"{code.co_filename[len(ROOT):]}\\t{code.co_qualname}\\t{depth}\\n".encode())

threading.setprofile(profile)
sys.setprofile(profile)
'''


def trace(source: Path, commands: Sequence[Sequence[object]], data: Path | None = None) -> list[tuple[str, str, int]]:
    """Run commands of ``ethobench`` and return file, function and call depth of every function of the package that they enter.

    Worker processes are included. Functions that are called only while modules are imported are not. The depth is the number of
    functions of the package on the stack when the function is first entered.

    Parameters
    ----------
    source : Path
        Folder that holds the package.
    commands : sequence of sequences
        Arguments of ``ethobench``, run one after the other.
    data : Path, optional
        Folder for ``$ETHOBENCH_DATA``.
    """
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "sitecustomize.py").write_text(PROFILER, encoding="utf-8")
        target = Path(scratch) / "hops.tsv"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([scratch, str(source.resolve())]),
            "ETHOBENCH_HOPS": str(target),
            "ETHOBENCH_HOPS_ROOT": str(source.resolve() / PACKAGE),
            "ETHOBENCH_CACHE": str(Path(scratch) / "cache"),
            **({} if data is None else {"ETHOBENCH_DATA": str(data)}),
        }
        for command in commands:
            arguments = [sys.executable, "-m", PACKAGE, *map(str, command)]
            done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr[-800:]}")
        deepest: dict[tuple[str, str], int] = {}
        for line in target.read_text(encoding="utf-8").splitlines():
            file, function, depth = line.split("\t")
            deepest[file, function] = max(int(depth), deepest.get((file, function), 0))
    return sorted((file, function, depth) for (file, function), depth in deepest.items())


def hops(source: Path) -> list[str]:
    """Trace ``score``, ``train``, and ``run bebe`` with ``results``; return a markdown report."""
    from tests.equality import cut_bebe, data_folder, write_study

    with tempfile.TemporaryDirectory() as scratch:
        folder, raters = Path(scratch), data_folder() / "boris_two_raters"
        study = write_study(folder / "study", "tag", individuals=3, seconds=20.0)
        cut_bebe(data_folder() / "bebe/HAR", folder / "data/bebe/HAR", rows=1500)
        score = ("score", raters / "brett_initial/DLC1.csv", raters / "donnie_initial/DLC1.csv")
        train = ("train", study, "--model", "rf", "--param", "trees=5", "--workers", 1, "--out", folder / "model")
        models = ("--datasets", "HAR", "--models", "rf", "--published", "--workers", 1)
        traced = {
            "ethobench score A B": trace(source, [score]),
            "ethobench train STUDY --model rf": trace(source, [train]),
            "ethobench run bebe --models rf, then results": trace(
                source, [("run", "bebe", *models, "--store", folder / "store"), ("results", folder / "store")], folder / "data"
            ),
        }
    rows, sections = [], []
    for command, functions in traced.items():
        modules = Counter(file for file, _, _ in functions)
        packages = Counter(file.split("/")[0] if "/" in file else "(root)" for file in modules)
        rows.append((f"`{command}`", len(functions), len(modules), len(packages), max(depth for _, _, depth in functions)))
        sections += ["", f"## {command}", "", *table(("module", "functions"), sorted(modules.items()))]
    header = ("command", "functions", "modules", "packages", "deepest call")
    explanation = (
        "Distinct functions and modules of ethobench that each command enters, worker processes included, and the largest number of them "
        "on the stack. Calls while modules are imported are not counted. Inputs: two BORIS tables; a study of three synthetic tags; ten "
        "clips of HAR with published hyper-parameters."
    )
    return ["# Functions and modules entered by a command", "", explanation, "", *table(header, rows), *sections]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.code_metrics", description="Measure the code, as markdown.")
    parser.add_argument("source", nargs="?", type=Path, default=Path("src"), metavar="SRC", help="folder that holds the package")
    parser.add_argument("--tests", type=Path, help="folder of the tests; SRC/../tests unless given")
    parser.add_argument("--hops", action="store_true", help="count functions and modules that commands enter instead")
    parser.add_argument("--check", action="store_true", help="list banned names and phrases and private imports; exit 1 if there are any")
    options = parser.parse_args()
    tests = options.tests or options.source.resolve().parent / "tests"
    if options.check:
        problems = check(options.source, tests)
        print("\n".join([*problems, f"{len(problems)} banned names, phrases and private imports"]))
        raise SystemExit(bool(problems))
    print("\n".join(hops(options.source) if options.hops else report(options.source, tests)))


if __name__ == "__main__":
    main()
