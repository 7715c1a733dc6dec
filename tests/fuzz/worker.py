"""Run tasks on untrusted input in a separate process with limits on memory and time.

`Worker` is the parent's side. The child (``python -m tests.fuzz.worker``) reads one task per line as JSON and answers each
with one line of JSON. A child that hangs or dies is replaced.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import select
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMORY_LIMIT = 2 << 30  # resident memory in bytes that no small file may exceed
ADDRESS_LIMIT = 3 << 30  # address space of the child: allocations beyond it fail
TIME_LIMIT = 20.0  # seconds for one small file
EXCEPTION_NAME = re.compile(r"\b(?:[A-Z][a-z]+)+(?:Error|Exception)\b")  # in a message: a reason for developers, not for users
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Result:
    """What became of one task.

    Attributes
    ----------
    outcome : str
        "read", "refused" (an `EthobenchError`), "escaped" (any other exception), "hung", "died" or "memory".
    detail : str
        The error's class and message, with the traceback where it escaped.
    seconds : float
    peak : int
        Largest resident memory in bytes.
    unexpected : bool
        Whether a refusal wraps an exception that the reader did not foresee, or names one.
    cause : str
        That exception, and where it was raised.
    """

    outcome: str
    detail: str = ""
    seconds: float = 0.0
    peak: int = 0
    unexpected: bool = False
    cause: str = ""

    @property
    def is_failure(self) -> bool:
        return self.outcome not in ("read", "refused")


class Worker:
    """Runs tasks in one child process, which is started again after a hang or a crash.

    Parameters
    ----------
    folder : Path
        Working folder of the child: its cache and temporary files.
    seconds : float
        Time limit for each task.
    modules : sequence of str
        Imported before the limits apply, beside those of the readers.
    """

    def __init__(self, folder: Path, seconds: float = TIME_LIMIT, modules: Sequence[str] = ()) -> None:
        self.folder, self.seconds, self.modules = folder, seconds, modules
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, task: dict[str, Any]) -> Result:
        """Run one task and return what became of it."""
        process = self._started()
        assert process.stdin
        assert process.stdout
        start = time.monotonic()
        process.stdin.write(json.dumps(task).encode() + b"\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self.seconds)
        seconds = time.monotonic() - start
        if not ready:
            self.stop()
            return Result("hung", f"no answer within {self.seconds:g} s", seconds)
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            errors = self._errors()
            self.stop()
            return Result("died", f"exit code {code}; {errors}", seconds)
        result = Result(**json.loads(line), seconds=seconds)
        if result.peak > MEMORY_LIMIT and not result.is_failure:
            return Result("memory", f"{result.peak:,} bytes; {result.detail}", seconds, result.peak)
        return result

    def stop(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            environment = {**os.environ, "ETHOBENCH_CACHE": str(self.folder / "cache"), "OMP_NUM_THREADS": "1", "TMPDIR": str(self.folder)}
            with (self.folder / "stderr.txt").open("wb") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.fuzz.worker", *self.modules],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=ROOT,
                    env=environment,
                )
            assert self._process.stdout
            self._process.stdout.readline()  # the child says when its imports are done
        return self._process

    def _errors(self) -> str:
        return (self.folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")[-2000:]


def main() -> None:
    """Answer tasks until the input ends."""
    import resource

    from tests.fuzz.tasks import TASKS, warm_up

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not be taken for an answer
    warm_up()
    for module in sys.argv[1:]:
        importlib.import_module(module)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_LIMIT, ADDRESS_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers.write(b"ready\n")
    answers.flush()
    for line in sys.stdin.buffer:
        task = json.loads(line)
        _reset_peak()
        answer = _attempt(TASKS[task.pop("task")], task)
        answers.write(json.dumps({**answer, "peak": _peak()}).encode() + b"\n")
        answers.flush()


def _attempt(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    from ethobench.core.errors import EthobenchError

    try:
        return {"outcome": "read", "detail": str(function(**arguments) or "")}
    except EthobenchError as error:
        cause = error.__cause__
        wrapped = cause is not None and not isinstance(cause, (EthobenchError, OSError))
        unexpected = wrapped or EXCEPTION_NAME.search(str(error)) is not None
        return {
            "outcome": "refused",
            "detail": str(error)[:2000],
            "unexpected": unexpected,
            "cause": _describe(cause or error) if unexpected else "",
        }
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        lines = traceback.format_exc().splitlines()[-12:]
        return {"outcome": "escaped", "detail": "\n".join([f"{type(error).__name__}: {str(error)[:300]}", *(line[:300] for line in lines)])}


def _describe(error: BaseException | None) -> str:
    """Return an exception with the last line of our sources that it passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__ if error else None) if "ethobench" in Path(frame.filename).parts]
    location = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}{location}"


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _peak() -> int:
    """Return the largest resident memory since `_reset_peak`, or of the process where the system cannot tell."""
    import resource

    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) << 10
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


if __name__ == "__main__":
    main()
