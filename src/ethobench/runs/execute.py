"""Where jobs are done: any `concurrent.futures.Executor`, fed by plans."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context

from ethobench.runs.perform import BUSY, DONE, perform
from ethobench.runs.plan import Job, Plan, Result
from ethobench.runs.store import Store

MOST_DEATHS = 3
PATIENCE = 1.0


@dataclass
class Outcome:
    """What a run did."""

    done: int = 0
    there: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def process_pool(workers: int) -> Executor:
    """Make a pool of processes that share the cores fairly."""
    threads = max(1, (os.cpu_count() or 1) // workers)
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_set_up, initargs=(threads,))


def _set_up(threads: int) -> None:
    """Set a worker up: numerical libraries must not take all cores in every process (those already loaded are told so)."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run as a whole to act on
    threadpool_limits(threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = str(threads)


class _Stage:
    """The jobs that a plan waits for."""

    def __init__(self, plan: Plan, jobs: list[Job]) -> None:
        self.plan, self.jobs = plan, jobs
        self.results: dict[str, Result] = {}

    def is_over(self) -> bool:
        return len(self.results) == len({job.key for job in self.jobs})


class Engine:
    """Does the jobs of many plans, each once, whatever dies in between.

    Parameters
    ----------
    store : Store
    make_executor : callable
        Makes an executor; called again when one breaks.
    workers : int
        How many jobs may be under way.
    tell : callable, optional
        Is handed a line after every job.
    """

    def __init__(
        self, store: Store, make_executor: Callable[[], Executor], workers: int, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self.store, self.make_executor, self.workers, self.tell = store, make_executor, workers, tell
        self.outcome = Outcome()
        self._queue: deque[Job] = deque()
        self._waiting: dict[str, list[_Stage]] = {}
        self._deaths: dict[str, int] = {}
        self._under_way: dict[Future[tuple[str, str]], Job] = {}
        self._busy: dict[str, tuple[float, Job]] = {}

    def run(self, plans: Iterable[Plan]) -> Outcome:
        """Run plans to their end."""
        for plan in plans:
            self._advance(plan, None)
        executor = self.make_executor()
        try:
            while self._queue or self._under_way or self._busy:
                try:
                    self._submit(executor)
                    self._collect()
                except BrokenExecutor:
                    executor.shutdown(wait=False, cancel_futures=True)
                    self._bury()
                    executor = self.make_executor()
        except KeyboardInterrupt:
            self._stop()
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
        return self.outcome

    def _stop(self) -> None:
        """Let jobs that are under way come to their end; at a second Ctrl-C, end them at once. Either way nothing is half done."""
        begun = [future for future in self._under_way if not future.cancel()]
        self.tell(f"stopping after {len(begun)} jobs that are under way; Ctrl-C again stops at once")
        try:
            wait(begun)
        except KeyboardInterrupt:
            for process in active_children():
                process.kill()

    def _advance(self, plan: Plan, results: list[Result] | None) -> None:
        """Ask a plan for its next jobs; those that are done already need no worker."""
        try:
            jobs = next(plan) if results is None else plan.send(results)
        except StopIteration:
            return
        stage = _Stage(plan, jobs)
        for job in {job.key: job for job in jobs}.values():
            found = self.store.result(job)
            if found is not None:
                self.outcome.there += 1
                stage.results[job.key] = found
                continue
            others = self._waiting.setdefault(job.key, [])
            if not others:
                self._queue.append(job)
            others.append(stage)
        self._close(stage)

    def _close(self, stage: _Stage) -> None:
        if stage.is_over():
            self._advance(stage.plan, [stage.results[job.key] for job in stage.jobs])

    def _submit(self, executor: Executor) -> None:
        now = time.monotonic()
        for key, (since, job) in list(self._busy.items()):
            if now - since >= PATIENCE:
                del self._busy[key]
                self._queue.append(job)
        while self._queue and len(self._under_way) < 2 * self.workers:
            job = self._queue[0]
            future = executor.submit(perform, job.to_dict(), str(self.store.root))
            self._queue.popleft()
            self._under_way[future] = job

    def _collect(self) -> None:
        if not self._under_way:
            time.sleep(PATIENCE / 4)
            return
        finished, _ = wait(self._under_way, timeout=PATIENCE, return_when=FIRST_COMPLETED)
        for future in finished:
            state, told = future.result()
            job = self._under_way.pop(future)
            if state == BUSY:
                self._busy[job.key] = (time.monotonic(), job)
                continue
            self._end(job, "" if state == DONE else told)

    def _end(self, job: Job, error: str) -> None:
        """Hand a job's result to all plans that wait for it."""
        result = Result(job, error=error) if error else self.store.result(job)
        if result is None:  # what was stored is damaged and in quarantine: once more
            self._queue.append(job)
            return
        if error:
            self.outcome.failed[job.key] = error
        else:
            self.outcome.done += 1
        self.tell(f"{job}: {'failed: ' + error if error else 'done'}")
        for stage in self._waiting.pop(job.key, []):
            stage.results[job.key] = result
            self._close(stage)

    def _bury(self) -> None:
        """After workers have died: those whose job was begun are suspects, all that is not done goes back to the queue."""
        under_way, self._under_way = self._under_way, {}
        alive = set(self.store.claimed())
        for job in under_way.values():
            if self.store.has(job.key):
                self._end(job, "")
                continue
            begun = (self.store.root / "claims" / job.key).exists() and job.key not in alive
            if begun:
                self.store.release(job.key)
                self._deaths[job.key] = self._deaths.get(job.key, 0) + 1
            if self._deaths.get(job.key, 0) >= MOST_DEATHS:
                error = f"its worker died {MOST_DEATHS} times"
                self.store.fail(job, error)
                self._end(job, error)
            else:
                self._queue.append(job)
