"""Run `ethobench` without starting processes, for tests that are not about processes: each takes seconds to start."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout

import pytest

from ethobench.cli import main, train
from ethobench.runs import executors

START = [sys.executable, "-c", "from ethobench.cli import main; main()"]
SETTINGS = {"PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}


def ethobench(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command with its own handling of errors and warnings, and its workers in a thread.

    Parameters
    ----------
    *arguments : object
    **variables : str
        Added to the environment.
    """
    output, errors = io.StringIO(newline=""), io.StringIO(newline="")
    command = ["ethobench", *map(str, arguments)]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), redirect_stdout(output), redirect_stderr(errors):
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)  # as Python does unless told otherwise
        patch.setattr(sys, "argv", command)
        patch.setattr(train, "seconds_since_start", lambda: 0.0)  # of the command, not of the tests
        patch.setattr(executors, "process_pool", lambda workers: ThreadPoolExecutor(1))
        patch.setattr(executors, "START_METHOD", "spawn")  # so that nothing is preloaded for processes
        for name, value in {**SETTINGS, **variables}.items():
            patch.setenv(name, value)
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())


def ethobench_process(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a new process, and its workers in others."""
    environment = {**os.environ, **SETTINGS, **variables}
    return subprocess.run([*START, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", env=environment, check=False)
