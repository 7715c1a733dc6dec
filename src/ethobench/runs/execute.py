"""Where jobs are done: any `concurrent.futures.Executor`, fed by plans."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field, replace
from multiprocessing import active_children
from typing import IO

from ethobench.core.errors import EthobenchError
from ethobench.runs.perform import BUSY, DONE, How, perform
from ethobench.runs.plan import Job, Plan, Result
from ethobench.runs.store import Store

PATIENCE = 1.0


@dataclass
class Outcome:
    """What a run did, and what it has still to do.

    Attributes
    ----------
    done, there : int
        Jobs that this run did, and those that were finished before.
    failed : dict of str to str
        Why jobs failed, by key.
    broken : list of str
        Why whole plans could not go on.
    running, waiting : int
        Jobs under way and jobs known to follow.
    best : Result, optional
        The best final result so far.
    keys : set of str
        Of all jobs that its plans asked for.
    skipped : set of str
        Keys of those that were not done because the run's control decided so.
    """

    done: int = 0
    there: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    running: int = 0
    waiting: int = 0
    best: Result | None = None
    keys: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)


class StopRun(Exception):  # noqa: N818
    """Raised by a `RunControl` to end a run at once."""


class RunControl:
    """Looks on while a run is under way; this one lets everything happen.

    Attributes
    ----------
    one_at_a_time : bool
        Whether each worker is handed its next job only after the last one, so that `admits` is asked as late as possible.
    """

    one_at_a_time: bool = False

    def admits(self, job: Job, outcome: Outcome) -> bool:
        """Return whether to start a job; one that is not started is among the outcome's `skipped`."""
        return True

    def look(self, under_way: list[Job], outcome: Outcome) -> None:
        """Look at the jobs that are under way, about once a second; may raise `StopRun`."""


Watch = Callable[[str, Outcome], None]


class _Stage:
    """The jobs that a plan waits for."""

    def __init__(self, plan: Plan, jobs: list[Job]) -> None:
        self.plan, self.jobs = plan, jobs
        self.keys = {job.key for job in jobs}
        self.results: dict[str, Result] = {}

    def is_over(self) -> bool:
        return len(self.results) == len(self.keys)


class Engine:
    """Does the jobs of many plans, each once, whatever dies in between.

    Parameters
    ----------
    store : Store
    make_executor : callable
        Makes an executor; called again when one breaks.
    workers : int or callable
        How many jobs can be under way; a cluster may grow.
    watch : callable, optional
        Is handed a line and the outcome so far after every job.
    how : How, optional
        What workers must know; the run's name is filled in.
    control : RunControl, optional
        Looks on while jobs are done, decides which of them to start, and may end the run.
    """

    def __init__(
        self,
        store: Store,
        make_executor: Callable[[], Executor],
        workers: int | Callable[[], int],
        watch: Watch = lambda _, __: None,
        how: How | None = None,
        control: RunControl | None = None,
    ) -> None:
        self.store, self.make_executor, self.watch = store, make_executor, watch
        self.workers = workers if callable(workers) else lambda: workers
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{socket.gethostname()}-{os.getpid()}"
        self.how = replace(how or How(), run=name)
        self.control = control or RunControl()
        self.outcome = Outcome()
        self._queue: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._waiting: dict[str, list[_Stage]] = {}
        self._under_way: dict[Future[tuple[str, str]], Job] = {}
        self._busy: dict[str, tuple[float, Job]] = {}
        self._log: IO[str] | None = None

    def run(self, plans: Iterable[Plan]) -> Outcome:
        """Run plans to their end."""
        self.store.check_writable()
        self.store.remove_leftovers()
        with (self.store.root / "logs" / f"{self.how.run}.log").open("a", encoding="utf-8") as self._log:
            for plan in plans:
                self._advance(plan)
            if self._queue:
                self._work()
        return self.outcome

    def _work(self) -> None:
        executor = self.make_executor()
        try:
            while self._queue or self._suspects or self._under_way or self._busy:
                try:
                    self._submit(executor)
                    self._collect()
                    self.control.look([job for future, job in self._under_way.items() if not future.done()], self.outcome)
                except BrokenExecutor:
                    executor.shutdown(wait=True)
                    self._bury()
                    executor = self.make_executor()
        except KeyboardInterrupt:
            self._stop()
            raise
        except StopRun:
            self._abandon()
        finally:
            for future in self._under_way:
                future.cancel()
            executor.shutdown(wait=True)

    def _tell(self, line: str) -> None:
        if self._log is not None:
            self._log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
            self._log.flush()
        self.outcome.running = min(len(self._under_way), self.workers())
        self.outcome.waiting = len(self._waiting) - self.outcome.running
        self.watch(line, self.outcome)

    def _stop(self) -> None:
        """Let jobs that are under way come to their end; at a second Ctrl-C, end them at once. Either way nothing is half done."""
        begun = [future for future in self._under_way if not future.cancel()]
        self._tell(f"stopping after {len(begun)} jobs that are under way; Ctrl-C again stops at once")
        try:
            wait(begun)
        except KeyboardInterrupt:
            for process in active_children():
                process.kill()

    def _abandon(self) -> None:
        """End jobs that are under way at once; nothing of them is kept, and the rest is not begun."""
        for future in self._under_way:
            future.cancel()
        for process in active_children():
            process.kill()
        unfinished = [*self._under_way.values(), *self._queue, *self._suspects]
        self.outcome.skipped |= {job.key for job in unfinished if not self.store.has(job.key)}
        self._under_way = {}

    def _advance(self, plan: Plan, results: list[Result] | None = None) -> None:
        """Ask a plan for its next jobs until some of them need a worker."""
        while True:
            try:
                jobs = next(plan) if results is None else plan.send(results)
            except StopIteration:
                return
            except EthobenchError as error:
                self.outcome.broken.append(str(error))
                self._tell(f"a plan cannot go on: {error}")
                return
            stage = _Stage(plan, jobs)
            self.outcome.keys |= stage.keys
            for job in {job.key: job for job in jobs}.values():
                self._look_up(job, stage)
            if not stage.is_over():
                return
            results = [stage.results[job.key] for job in stage.jobs]

    def _look_up(self, job: Job, stage: _Stage) -> None:
        """Take a job's result from the store, or put it into the queue."""
        found = self.store.result(job) if self.store.has(job.key) and self.store.verify(job.key) else None
        self._tell_damaged()
        if found is not None:
            self.outcome.there += 1
            self._remember(found)
            stage.results[job.key] = found
            return
        others = self._waiting.setdefault(job.key, [])
        if not others:
            self._queue.append(job)
        others.append(stage)

    def _tell_damaged(self) -> None:
        while self.store.damaged:
            self._tell(self.store.damaged.pop())

    def _submit(self, executor: Executor) -> None:
        now = time.monotonic()
        for key, (since, job) in list(self._busy.items()):
            if now - since >= PATIENCE:
                del self._busy[key]
                if self.store.has(key):
                    self._end(job, "")
                else:
                    self._queue.append(job)
        while self._suspects:  # one at a time and alone, so that it is known which one kills its worker
            if self._under_way:
                return
            self._hand_over(executor, self._suspects)
        most = (1 if self.control.one_at_a_time else 2) * max(1, self.workers())
        while self._queue and len(self._under_way) < most:
            if self.control.admits(self._queue[0], self.outcome):
                self._hand_over(executor, self._queue)
            else:
                self.outcome.skipped.add(self._queue.popleft().key)

    def _hand_over(self, executor: Executor, jobs: deque[Job]) -> None:
        future = executor.submit(perform, jobs[0].to_dict(), str(self.store.root), self.how)
        self._under_way[future] = jobs.popleft()

    def _collect(self) -> None:
        if not self._under_way:
            time.sleep(PATIENCE / 4)
            return
        finished, _ = wait(self._under_way, timeout=PATIENCE, return_when=FIRST_COMPLETED)
        for future in finished:
            try:
                state, told = future.result()
            except CancelledError as error:
                raise EthobenchError("the cluster has gone; start it and the run again: what is done is kept") from error
            except Exception as error:
                if type(error).__name__ != "KilledWorker":  # distributed's, which need not be installed
                    raise
                state, told = BUSY, ""
                self._tell(f"workers died at {self._under_way[future]}; tried again")
            job = self._under_way.pop(future)
            if state == BUSY:
                self._busy[job.key] = (time.monotonic(), job)
                continue
            self._end(job, "" if state == DONE else told)

    def _end(self, job: Job, error: str) -> None:
        """Hand a job's result to all plans that wait for it."""
        result = Result(job, error=error) if error else self.store.result(job)
        self._tell_damaged()
        if result is None:
            self._queue.append(job)
            return
        stages = self._waiting.pop(job.key, [])
        if error:
            self.outcome.failed[job.key] = error
        else:
            self.outcome.done += 1
            self._remember(result)
        self._tell(f"{job.key} {job}: {'failed: ' + error if error else 'done'}")
        for stage in stages:
            stage.results[job.key] = result
            if stage.is_over():
                self._advance(stage.plan, [stage.results[j.key] for j in stage.jobs])

    def _remember(self, result: Result) -> None:
        if result.job.stage == "final" and (value := result.headline) is not None:
            best = None if self.outcome.best is None else self.outcome.best.headline
            if best is None or value > best:
                self.outcome.best = result

    def _bury(self) -> None:
        """After workers have died: those whose job was begun are suspects, the rest goes back to the queue."""
        under_way, self._under_way = self._under_way, {}
        self._tell("a worker died; what it was doing is tried again")
        for job in under_way.values():
            if self.store.has(job.key):
                self._end(job, "")
            elif self.store.claims.begun(job.key):
                self._suspects.append(job)
            else:
                self._queue.append(job)
