"""How a run shows what it does: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import typer

from ethobench.cli._output import echo, make_console, make_visible, secho
from ethobench.core.deadline import Deadline, format_seconds
from ethobench.runs import RunControl

if TYPE_CHECKING:
    from ethobench.runs import Job, RunSummary, Store
    from ethobench.runs.engine import ProgressCallback


@contextmanager
def shown_progress() -> Iterator[ProgressCallback]:
    """Yield what the engine tells its lines to."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda line, summary: echo(f"[{counts(summary)}] {line}")
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    told = TextColumn("{task.description}", markup=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), told)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("planning", total=None)

        def show(line: str, summary: RunSummary) -> None:
            ended = summary.done + len(summary.failed)
            words = f"{summary.running} running, {len(summary.failed)} failed, {summary.reused} reused{best_so_far(summary)}"
            progress.update(task, completed=ended, total=ended + summary.running + summary.waiting, description=make_visible(words))
            if not line.endswith(": done"):
                progress.console.print(line, markup=False)

        yield show


def counts(summary: RunSummary) -> str:
    """Tell how far a run is, in few words."""
    ended = summary.done + len(summary.failed)
    return f"{ended}/{ended + summary.running + summary.waiting}"


def best_so_far(summary: RunSummary) -> str:
    """Tell the best final result, if there is one."""
    if summary.best is None or summary.best.headline is None:
        return ""
    job = summary.best.job
    return f"; best {summary.best.headline:.3f} ({job.model}, {job.dataset})"


class TrainingProgress:
    """Shows the state of `ethobench train` on stderr: one live line on a terminal, a line every few seconds elsewhere.

    Parameters
    ----------
    deadline : Deadline
        Of the command.
    every : float
        Seconds between lines where stderr is not a terminal.
    """

    def __init__(self, deadline: Deadline, every: float = 15.0) -> None:
        self.deadline, self.every = deadline, every
        self.phase, self.detail = "reading the data", ""
        self.left: float | None = None  # estimated seconds, where there is no budget
        self._phase_start = deadline.clock()
        self._later = 0.0
        self._stop = threading.Event()
        self._status: Any = None

    def __enter__(self) -> Self:
        console = make_console(stderr=True)
        if console.is_terminal:
            self._status = console.status(self.line())
            self._status.start()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._status is not None:
            self._status.stop()

    def start_phase(self, phase: str) -> None:
        """Begin another phase of the command."""
        self.phase, self.detail, self.left = phase, "", None
        self._phase_start = self.deadline.clock()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        echo(text, err=True)

    def warn(self, text: str) -> None:
        """Print a note, if there is something to say."""
        if text:
            secho(f"note: {text}", err=True, fg=typer.colors.YELLOW)

    def line(self) -> str:
        """Return the state in one line: time passed, phase, what is being computed, time left."""
        passed = format_seconds(self.deadline.elapsed)
        if self.deadline.is_limited:
            left = (
                f"{format_seconds(self.deadline.remaining)} of the budget left" if self.deadline.remaining > 0 else "the budget is used up"
            )
        else:
            left = "estimating the time left" if self.left is None else f"about {format_seconds(self.left)} left"
        return make_visible(" | ".join(part for part in (passed, self.phase, self.detail, left) if part))

    def show_folds(self, store: Store, running: list[Job], summary: RunSummary, n_folds: int, workers: int) -> None:
        """Show how far the folds of a cross-validation are, and estimate the time left from that.

        Parameters
        ----------
        store : Store
            In which workers report.
        running : list of Job
        summary : RunSummary
        n_folds : int
            How many are to be done.
        workers : int
            Trainings at a time.
        """
        reports = {job.fold: store.progress(job.key) for job in running[:workers]}
        done = summary.done + summary.reused
        shown = [f"fold {fold + 1}: {_stage(found)}" for fold, found in sorted(reports.items())]
        self.detail = ", ".join([f"{done} of {n_folds} folds done", *shown])
        trained = summary.done + sum(found[1] for found in reports.values() if found is not None)
        if trained > 0.02:
            each = (self.deadline.clock() - self._phase_start) / trained  # seconds for each fold, several at a time
            self._later = each * min(workers, n_folds)  # the final training, alone
            self.left = max(n_folds - summary.reused - trained, 0.0) * each + self._later

    def show_training(self, stage: str, fraction: float) -> None:
        """Show how far the final training is, and estimate the time left from that; a listener to progress."""
        self.detail = _stage((stage, fraction))
        if fraction > 0.02:
            self.left = (self.deadline.clock() - self._phase_start) * (1 - fraction) / fraction
        elif self._later:
            self.left = self._later

    def _tick(self) -> None:
        while not self._stop.wait(self.every if self._status is None else 0.5):
            if self._status is None:
                echo(self.line(), err=True)
            else:
                self._status.update(self.line())


class ShowFolds(RunControl):
    """Shows the progress of a cross-validation that another control decides about.

    Parameters
    ----------
    progress : TrainingProgress
    inner : RunControl
        Decides.
    store : Store
    n_folds, workers : int
        How many folds are to be done, and how many at a time.
    """

    def __init__(self, progress: TrainingProgress, inner: RunControl, store: Store, n_folds: int, workers: int) -> None:
        self.progress, self.inner, self.store, self.n_folds, self.workers = progress, inner, store, n_folds, workers
        self.one_at_a_time = inner.one_at_a_time

    def admits(self, job: Job, summary: RunSummary) -> bool:
        """Return whether to start a job."""
        return self.inner.admits(job, summary)

    def observe(self, running: list[Job], summary: RunSummary) -> None:
        """Show how far the jobs are that are under way."""
        self.progress.show_folds(self.store, running, summary, max(self.n_folds, summary.done + summary.reused), self.workers)
        self.inner.observe(running, summary)

    def watch(self, line: str, summary: RunSummary) -> None:
        """Print what the engine says, except that jobs are done: that is in the line of the progress."""
        if not line.endswith(": done"):
            self.progress.say(line)


def _stage(found: tuple[str, float] | None) -> str:
    return "starting" if found is None else f"{found[0]} ({found[1]:.0%})"
