"""Long work in the background: exports and conversions of videos, with progress and cancelling."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.progress import progress_listener

MAX_UNFINISHED = 8
MAX_KEPT = 20
WORKERS = 1  # encoding uses all cores by itself


class JobState(StrEnum):
    """State of a job."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class _CancelledError(Exception):
    """Raised inside a job that is cancelled, when it next reports its progress."""


@dataclass
class JobResult:
    """What a job produced: a file to download, its name, and notes."""

    path: Path | None = None
    name: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass
class Job:
    """Work in the background.

    Attributes
    ----------
    number : int
    key : str
        Two jobs with the same key do the same; the second is not started while the first is unfinished.
    state : JobState
    stage, fraction
        Progress: what is being done, and from 0 to 1 how much of it.
    error : str
    result : JobResult or None
    """

    number: int
    key: str = ""
    state: JobState = JobState.WAITING
    stage: str = ""
    fraction: float = 0.0
    error: str = ""
    result: JobResult | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def is_unfinished(self) -> bool:
        """Whether the job waits or runs."""
        return self.state in (JobState.WAITING, JobState.RUNNING)

    def payload(self) -> dict[str, Any]:
        """Return the JSON payload."""
        notes = [] if self.result is None else self.result.notes
        name = "" if self.result is None else self.result.name
        return {
            "job": self.number,
            "state": str(self.state),
            "stage": self.stage,
            "fraction": round(self.fraction, 4),
            "error": self.error,
            "notes": notes,
            "name": name,
        }


class BackgroundJobs:
    """Runs jobs one after the other in threads; the most recent ones are kept with their files.

    Examples
    --------
    >>> jobs = BackgroundJobs()
    >>> job = jobs.start(lambda folder: JobResult(notes=[folder.name]))
    >>> jobs.wait(job.number).state
    <JobState.DONE: 'done'>
    """

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._root: Path | None = None
        self._threads: dict[int, threading.Thread] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._workers = threading.Semaphore(WORKERS)

    def start(self, work: Callable[[Path], JobResult], key: str = "") -> Job:
        """Start a job.

        Parameters
        ----------
        work : callable
            Called in a thread with an empty folder, which exists until the job is forgotten. It reports its progress.
        key : str
            See `Job`.

        Raises
        ------
        MismatchError
            If too many jobs are unfinished.
        """
        with self._lock:
            unfinished = [job for job in self._jobs.values() if job.is_unfinished]
            same = next((job for job in unfinished if key and job.key == key and not job.cancelled.is_set()), None)
            if same is not None:
                return same
            if len(unfinished) >= MAX_UNFINISHED:
                raise MismatchError(f"{len(unfinished)} exports or conversions are unfinished; wait, or cancel one")
            job = Job(next(self._numbers), key)
            self._jobs[job.number] = job
            self._forget_oldest()
            folder = self._folder(job.number)
            folder.mkdir()
            thread = self._threads[job.number] = threading.Thread(target=self._run, args=(job, work, folder), daemon=True)
        thread.start()
        return job

    def job(self, number: int) -> Job:
        """Return a job by its number."""
        if number not in self._jobs:
            raise NotFoundError(f"no job {number}")
        return self._jobs[number]

    def cancel(self, number: int) -> Job:
        """Cancel a job; it ends when it next reports its progress, and leaves no file."""
        job = self.job(number)
        job.cancelled.set()
        return job

    def wait(self, number: int, seconds: float | None = None) -> Job:
        """Wait until a job has ended."""
        self._threads[number].join(seconds)
        return self.job(number)

    def _forget_oldest(self) -> None:
        finished = [number for number, job in self._jobs.items() if not job.is_unfinished]
        for number in finished[: max(len(self._jobs) - MAX_KEPT, 0)]:
            del self._jobs[number]
            self._threads.pop(number, None)
            shutil.rmtree(self._folder(number), ignore_errors=True)

    def _folder(self, number: int) -> Path:
        """Return the folder of a job, inside one that is removed when the program ends."""
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="ethobench-jobs-"))
            weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        return self._root / str(number)

    def _run(self, job: Job, work: Callable[[Path], JobResult], folder: Path) -> None:
        def listen(stage: str, fraction: float) -> None:
            job.stage, job.fraction = stage, fraction
            if job.cancelled.is_set():
                raise _CancelledError

        with self._workers:
            try:
                with progress_listener(listen):
                    if not job.cancelled.is_set():
                        job.state = JobState.RUNNING
                        job.result = work(folder)
                job.state = JobState.CANCELLED if job.result is None else JobState.DONE
                job.fraction = 1.0
            except _CancelledError:
                job.state = JobState.CANCELLED
            except (EthobenchError, OSError) as error:
                job.state, job.error = JobState.FAILED, str(error)
            except Exception as error:
                job.state, job.error = JobState.FAILED, f"an unexpected error ({type(error).__name__}: {error})"
