"""The engine: runs the jobs of plans on any `concurrent.futures.Executor`, each once, and survives crashes of workers."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field, replace
from multiprocessing import active_children
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias

from ethobench.core.errors import EthobenchError
from ethobench.runs.leases import Leases
from ethobench.runs.plan import FINAL, Result
from ethobench.runs.worker import BUSY, DONE, WorkerOptions, run_job

POLL_SECONDS = 1.0


class EngineJob(Protocol):
    """What the engine needs of a job; see `ethobench.runs.plan.Job`."""

    @property
    def key(self) -> str:
        """Unique name of the job."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain values, which are sent to a worker."""
        ...


class JobStore(Protocol):
    """What the engine needs of a store of results; see `ethobench.runs.store.Store`."""

    @property
    def root(self) -> Path:
        """Folder that workers find the store by."""
        ...

    @property
    def logs(self) -> Path:
        """Folder for the log of each run."""
        ...

    @property
    def leases(self) -> Leases:
        """Leases on the jobs in progress."""
        ...

    def check_writable(self) -> None:
        """Raise an error if results cannot be stored."""

    def remove_leftovers(self) -> None:
        """Remove what killed processes have left."""

    def has(self, key: str) -> bool:
        """Return whether a job is finished."""
        ...

    def verify(self, key: str) -> bool:
        """Return whether a finished job is undamaged and can be reused."""
        ...

    def result(self, job: Any) -> Any:
        """Return the result of a finished job; None if it is damaged."""
        ...

    def repair(self) -> list[str]:
        """Make damaged jobs repeatable; return one message for each."""
        ...


Plan: TypeAlias = Generator[list[Any], list[Any], None]
"""Jobs in stages: yields the jobs that can run now, is sent their results, and yields the next ones; such as a `JobPlan`."""

JobFunction: TypeAlias = Callable[[dict[str, Any], str, Any], tuple[str, str]]
"""Runs one job in a worker, as `ethobench.runs.worker.run_job` does."""


@dataclass
class RunSummary:
    """Counts and errors of a run, while it is in progress and afterwards.

    Attributes
    ----------
    done : int
        Jobs finished by this run.
    reused : int
        Jobs that were finished before.
    failed : dict of str to str
        Error messages of failed jobs, by key.
    failed_plans : list of str
        Error messages of plans that could not continue.
    running, waiting : int
        Jobs in progress, and jobs that follow.
    best : Result, optional
        The best final result so far.
    keys : set of str
        Keys of all jobs of the plans.
    skipped : set of str
        Keys of jobs that the run's control did not start.
    """

    done: int = 0
    reused: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    failed_plans: list[str] = field(default_factory=list)
    running: int = 0
    waiting: int = 0
    best: Result | None = None
    keys: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)


class StopRun(Exception):  # noqa: N818
    """Raised by a `RunControl` to end a run immediately."""


class RunControl:
    """Decides which jobs a run starts, and when it ends; this default starts all jobs.

    Attributes
    ----------
    one_at_a_time : bool
        Whether each worker gets its next job only after the previous one has ended, so that `admits` is called as late as possible.
    """

    one_at_a_time: bool = False

    def admits(self, job: Any, summary: RunSummary) -> bool:
        """Return whether to start a job; otherwise it is added to `RunSummary.skipped`."""
        return True

    def observe(self, running: list[Any], summary: RunSummary) -> None:
        """Observe the jobs in progress, about once a second; may raise `StopRun`."""


@dataclass(frozen=True)
class RunEvent:
    """An event of a run.

    Attributes
    ----------
    message : str
    summary : RunSummary
        The summary of the run so far.
    job_succeeded : bool
        Whether the message only says that a job succeeded.
    result : optional
        The result of the job that ended; None for other events.
    jobs : sequence
        The jobs that a plan runs together with that one, such as the folds of a cross-validation.
    """

    message: str
    summary: RunSummary
    job_succeeded: bool = False
    result: Any = None
    jobs: Sequence[Any] = ()


ProgressCallback = Callable[[RunEvent], None]


class _Stage:
    """The jobs that a plan waits for."""

    def __init__(self, plan: Plan, jobs: list[EngineJob]) -> None:
        self.plan, self.jobs = plan, jobs
        self.keys = {job.key for job in jobs}
        self.results: dict[str, Any] = {}

    def is_complete(self) -> bool:
        return len(self.results) == len(self.keys)


class Engine:
    """Runs the jobs of several plans, each job once.

    Parameters
    ----------
    store : JobStore
        A `Store`, or another folder of results.
    make_executor : callable
        Creates an executor; called again when an executor breaks.
    workers : int or callable
        Maximum number of jobs in progress; a callable, since a cluster may grow.
    report : callable, optional
        Called with a `RunEvent` after every job, and when something unusual happens.
    options : optional
        Options of the workers: `WorkerOptions`, or another dataclass with the field ``run``, which is set to the name of the run.
    control : RunControl, optional
        Decides which jobs are started, and may end the run.
    run_job : callable
        Runs one job in a worker.
    failure : callable
        Returns the result of a job that failed, from the job and the reason.
    """

    def __init__(
        self,
        store: JobStore,
        make_executor: Callable[[], Executor],
        workers: int | Callable[[], int],
        report: ProgressCallback = lambda _: None,
        options: Any = None,
        control: RunControl | None = None,
        run_job: JobFunction = run_job,
        failure: Callable[[Any, str], Any] = lambda job, error: Result(job, error=error),
    ) -> None:
        self.store, self.make_executor, self.report = store, make_executor, report
        self.run_job, self.failure = run_job, failure
        self.workers = workers if callable(workers) else lambda: workers
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{socket.gethostname()}-{os.getpid()}"
        self.options = replace(options or WorkerOptions(), run=name)
        self.control = control or RunControl()
        self.summary = RunSummary()
        self._queue: deque[EngineJob] = deque()
        self._suspects: deque[EngineJob] = deque()
        self._waiting: dict[str, list[_Stage]] = {}
        self._running: dict[Future[tuple[str, str]], EngineJob] = {}
        self._busy: dict[str, tuple[float, EngineJob]] = {}
        self._log_file: IO[str] | None = None

    def run(self, plans: Iterable[Plan]) -> RunSummary:
        """Run plans to their end."""
        self.store.check_writable()
        self.store.remove_leftovers()
        with (self.store.logs / f"{self.options.run}.log").open("a", encoding="utf-8") as self._log_file:
            for plan in plans:
                self._advance(plan)
            if self._queue:
                self._run_queue()
        return self.summary

    def _run_queue(self) -> None:
        executor = self.make_executor()
        try:
            while self._queue or self._suspects or self._running or self._busy:
                try:
                    self._submit(executor)
                    self._collect()
                    self.control.observe([job for future, job in self._running.items() if not future.done()], self.summary)
                except BrokenExecutor:
                    executor.shutdown(wait=True)
                    self._requeue_after_crash()
                    executor = self.make_executor()
        except KeyboardInterrupt:
            self._stop()
            raise
        except StopRun:
            self._abandon()
        finally:
            for future in self._running:
                future.cancel()
            executor.shutdown(wait=True)

    def _log(self, line: str, *, job_succeeded: bool = False, result: Any = None, jobs: Sequence[Any] = ()) -> None:
        if self._log_file is not None:
            self._log_file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
            self._log_file.flush()
        self.summary.running = min(len(self._running), self.workers())
        self.summary.waiting = len(self._waiting) - self.summary.running
        self.report(RunEvent(line, self.summary, job_succeeded, result, jobs))

    def _stop(self) -> None:
        """Wait for the jobs in progress; a second Ctrl-C kills them. Either way no job is stored incompletely."""
        started = [future for future in self._running if not future.cancel()]
        if not started:
            return
        self._log(f"stopping after {len(started)} jobs in progress; press Ctrl-C again to stop immediately")
        try:
            wait(started)
        except KeyboardInterrupt:
            for process in active_children():
                process.kill()

    def _abandon(self) -> None:
        """Kill the jobs in progress, and do not start the others."""
        for future in self._running:
            future.cancel()
        for process in active_children():
            process.kill()
        unfinished = [*self._running.values(), *self._queue, *self._suspects]
        self.summary.skipped |= {job.key for job in unfinished if not self.store.has(job.key)}
        self._running = {}

    def _advance(self, plan: Plan, results: list[Any] | None = None) -> None:
        """Get the next jobs of a plan until one of them needs a worker."""
        while True:
            try:
                jobs = next(plan) if results is None else plan.send(results)
            except StopIteration:
                return
            except EthobenchError as error:
                self.summary.failed_plans.append(str(error))
                self._log(f"a plan cannot continue: {error}")
                return
            stage = _Stage(plan, jobs)
            self.summary.keys |= stage.keys
            for job in {job.key: job for job in jobs}.values():
                self._reuse_or_queue(job, stage)
            if not stage.is_complete():
                return
            results = [stage.results[job.key] for job in stage.jobs]

    def _reuse_or_queue(self, job: EngineJob, stage: _Stage) -> None:
        """Read the result of a job from the store, or add the job to the queue."""
        result = self.store.result(job) if self.store.has(job.key) and self.store.verify(job.key) else None
        self._repair()
        if result is not None:
            self.summary.reused += 1
            self._update_best(result)
            stage.results[job.key] = result
            return
        stages = self._waiting.setdefault(job.key, [])
        if not stages:
            self._queue.append(job)
        stages.append(stage)

    def _repair(self) -> None:
        """Move damaged jobs to quarantine, so that they are repeated."""
        for message in self.store.repair():
            self._log(message)

    def _submit(self, executor: Executor) -> None:
        now = time.monotonic()
        for key, (since, job) in list(self._busy.items()):
            if now - since >= POLL_SECONDS:
                del self._busy[key]
                if self.store.has(key):
                    self._end(job, "")
                else:
                    self._queue.append(job)
        while self._suspects:  # one at a time and alone, which identifies the job that crashes its worker
            if self._running:
                return
            self._start(executor, self._suspects)
        limit = (1 if self.control.one_at_a_time else 2) * max(1, self.workers())
        while self._queue and len(self._running) < limit:
            if self.control.admits(self._queue[0], self.summary):
                self._start(executor, self._queue)
            else:
                self.summary.skipped.add(self._queue.popleft().key)

    def _start(self, executor: Executor, jobs: deque[EngineJob]) -> None:
        try:
            future = executor.submit(self.run_job, jobs[0].to_dict(), str(self.store.root), self.options)
        except ConnectionError as error:  # the server of the workers ended while it was asked for one
            executor.shutdown(wait=True, cancel_futures=True)
            raise BrokenExecutor(str(error)) from error
        self._running[future] = jobs.popleft()

    def _collect(self) -> None:
        if not self._running:
            time.sleep(POLL_SECONDS / 4)
            return
        finished, _ = wait(self._running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        for future in finished:
            try:
                state, error = future.result()
            except CancelledError as cancelled:
                raise EthobenchError(
                    "the cluster has stopped; start it and run the same command again: finished jobs are kept"
                ) from cancelled
            except Exception as problem:
                if type(problem).__name__ != "KilledWorker":  # an error of distributed, which need not be installed
                    raise
                state, error = BUSY, ""
                self._log(f"workers crashed on {self._running[future]}; trying again")
            job = self._running.pop(future)
            if state == BUSY:
                self._busy[job.key] = (time.monotonic(), job)
                continue
            self._end(job, "" if state == DONE else error)

    def _end(self, job: EngineJob, error: str) -> None:
        """Pass the result of a job to all plans that wait for it."""
        result = self.failure(job, error) if error else self.store.result(job)
        self._repair()
        if result is None:
            self._queue.append(job)
            return
        stages = self._waiting.pop(job.key, [])
        if error:
            self.summary.failed[job.key] = error
        else:
            self.summary.done += 1
            self._update_best(result)
        self._log(
            f"{job.key} {job}: {'failed: ' + error if error else 'done'}",
            job_succeeded=not error,
            result=result,
            jobs=stages[0].jobs if stages else [job],
        )
        for stage in stages:
            stage.results[job.key] = result
            if stage.is_complete():
                self._advance(stage.plan, [stage.results[j.key] for j in stage.jobs])

    def _update_best(self, result: Any) -> None:
        if isinstance(result, Result) and result.job.stage == FINAL and (value := result.headline) is not None:
            best = None if self.summary.best is None else self.summary.best.headline
            if best is None or value > best:
                self.summary.best = result

    def _requeue_after_crash(self) -> None:
        """Queue the jobs of crashed workers again; those that had started are suspected of crashing their worker."""
        interrupted, self._running = self._running, {}
        self._log("a worker crashed; its job is repeated")
        for job in interrupted.values():
            if self.store.has(job.key):
                self._end(job, "")
            elif self.store.leases.exists(job.key):
                self._suspects.append(job)
            else:
                self._queue.append(job)
