"""Test mutants in forks of one process that has collected the tests.

The tests run once, traced: which of them execute which lines of the mutated packages, and how long they take. For each mutant, a fork
of the process replaces the code of the mutated function in memory and runs the tests that execute the mutated line, the cheapest first,
until one fails. A mutant outside functions (a constant, a default value, a field of a dataclass) acts when its module is imported and
cannot be tested this way.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

Lines = dict[str, dict[int, set[str]]]  # tests (node ids) by file and line


def changed_functions(old: CodeType, new: CodeType) -> dict[tuple[str, int], CodeType] | None:
    """Return the new code of each function that differs, by qualified name and first line; None if code outside functions differs."""
    is_function = bool(old.co_flags & 0x02)  # CO_NEWLOCALS: modules and bodies of classes lack it
    if old == new:
        return {}
    pairs = [(a, b) for a, b in zip(old.co_consts, new.co_consts, strict=False) if isinstance(a, CodeType) and isinstance(b, CodeType)]
    changed: dict[tuple[str, int], CodeType] = {(new.co_qualname, new.co_firstlineno): new} if is_function else {}
    for a, b in pairs:
        inner = changed_functions(a, b)
        if inner is None:
            return None
        changed |= inner
    if not is_function:
        plain = [tuple(c for c in code.co_consts if not isinstance(c, CodeType)) for code in (old, new)]
        if old.co_code != new.co_code or repr(plain[0]) != repr(plain[1]):
            return None
    return changed


def executed_lines(files: Sequence[str], run: Callable[[], object]) -> set[tuple[str, int]]:
    """Return the lines of some files that a function executes."""
    lines: set[tuple[str, int]] = set()
    of_interest = set(files)

    def trace_line(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace_line

    def trace_call(frame: FrameType, _event: str, _argument: object) -> Any:
        if frame.f_code.co_filename not in of_interest:
            return None
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace_line

    threading.settrace(trace_call)
    sys.settrace(trace_call)
    try:
        run()
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
    return lines


class MutantRuns:
    """Plugin of pytest that tests mutants instead of running the collected tests once.

    Parameters
    ----------
    sources : dict
        Files to their sources.
    mutants : dict
        Mutants to their files and mutated sources, and the line of the change.
    report : callable
        Called with a mutant, its result and the test that failed, as soon as they are known. Results: "killed", "survived",
        "time limit", "not in a function", "not executed".
    workers : int
    time_limit : float
        Seconds for the tests of one mutant.
    minutes : float
        No mutant is started after this time.
    """

    def __init__(
        self,
        sources: dict[str, str],
        mutants: dict[Any, tuple[str, str, int]],
        report: Callable[[Any, str, str], None],
        *,
        workers: int = 1,
        time_limit: float = 300.0,
        minutes: float = 60.0,
    ) -> None:
        self.sources, self.mutants, self.report = sources, mutants, report
        self.workers, self.time_limit = workers, time_limit
        self.broken: set[str] = set()
        self.end = time.monotonic() + 60 * minutes
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a failure."""
        if report.failed:
            self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Trace the tests once, then test each mutant in a fork."""
        items = {item.nodeid: item for item in session.items}
        lines, seconds, self.broken = self._traced(session.items)
        if self.broken:
            return True
        functions: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        for value in gc.get_objects():
            if isinstance(value, FunctionType) and value.__code__.co_filename in self.sources:
                functions[value.__code__.co_filename, value.__code__.co_qualname, value.__code__.co_firstlineno].append(value)
        running: dict[int, tuple[Any, int, float]] = {}
        for mutant, (path, source, line) in self.mutants.items():
            if time.monotonic() > self.end:
                break
            old = compile(self.sources[path], path, "exec", dont_inherit=True)
            changed = changed_functions(old, compile(source, path, "exec", dont_inherit=True))
            if changed is None:
                self.report(mutant, "not in a function", "")
                continue
            covering = lines[path].get(line) or _tests_of_function(lines[path], changed)
            chosen = [items[name] for name in sorted(covering, key=seconds.__getitem__)]
            if not chosen:
                self.report(mutant, "not executed", "")
                continue
            replaced = [(function, new) for (name, first), new in changed.items() for function in functions[path, name, first]]
            while len(running) >= self.workers:
                self._wait(running)
            read, write = os.pipe()
            if (pid := os.fork()) == 0:
                os.close(read)
                self._run_fork(chosen, replaced, write)
            os.close(write)
            running[pid] = (mutant, read, time.monotonic())
        while running:
            self._wait(running)
        return True

    def _traced(self, items: Sequence[pytest.Item]) -> tuple[Lines, dict[str, float], set[str]]:
        """Run the tests in a fork; return those that execute each line, the time of each, and those that fail without a mutant."""
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "lines")
            if (pid := os.fork()) == 0:
                _silence()
                result.write_bytes(pickle.dumps(self._trace(items)))
                os._exit(0)
            os.waitpid(pid, 0)
            traced: tuple[Lines, dict[str, float], set[str]] = pickle.loads(result.read_bytes())
        return traced

    def _trace(self, items: Sequence[pytest.Item]) -> tuple[Lines, dict[str, float], set[str]]:
        lines: Lines = {path: {} for path in self.sources}
        seconds, broken = {}, set()
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.failed = ""
            start = time.process_time()
            executed = executed_lines([*self.sources], lambda item=item, following=following: _run_test(item, following))
            seconds[item.nodeid] = time.process_time() - start
            if self.failed:
                broken.add(item.nodeid)
            for path, line in executed:
                lines[path].setdefault(line, set()).add(item.nodeid)
        return lines, seconds, broken

    def _run_fork(self, items: Sequence[pytest.Item], replaced: Sequence[tuple[FunctionType, CodeType]], write: int) -> None:
        os.setsid()
        _silence()
        code = 1
        with contextlib.suppress(BaseException):
            signal.alarm(int(self.time_limit))
            for function, new in replaced:
                function.__code__ = new
            for item, following in zip(items, [*items[1:], None], strict=True):
                _run_test(item, following)
                if self.failed:
                    os.write(write, self.failed.encode())
                    break
            code = 1 if self.failed else 0
        os._exit(code)

    def _wait(self, running: dict[int, tuple[Any, int, float]]) -> None:
        pid, status = os.wait()
        if pid not in running:
            return
        mutant, read, _ = running.pop(pid)
        with os.fdopen(read, "rb") as pipe:
            name = pipe.read().decode()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # processes that the tests started
        if os.WIFSIGNALED(status):
            self.report(mutant, "time limit" if os.WTERMSIG(status) == signal.SIGALRM else "killed", name)
        else:
            self.report(mutant, "survived" if os.WEXITSTATUS(status) == 0 else "killed", name)


def _tests_of_function(lines: dict[int, set[str]], changed: dict[tuple[str, int], CodeType]) -> set[str]:
    """Return the tests that execute any line of the changed functions."""
    numbers = {line for code in changed.values() for _, _, line in code.co_lines() if line is not None}
    return {test for number in numbers for test in lines.get(number, ())}


def _run_test(item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _silence() -> None:
    output = os.open(os.devnull, os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
