"""Progress of runs and trainings: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import typer

from ethobench.cli.output import echo, make_console, make_visible, secho
from ethobench.cli.tables import format_score
from ethobench.core.deadline import Deadline, format_seconds
from ethobench.runs import RunControl

if TYPE_CHECKING:
    from ethobench.runs import Job, RunSummary, Store
    from ethobench.runs.batch_prediction import PredictionEvent
    from ethobench.runs.engine import ProgressCallback, RunEvent


@contextmanager
def show_run_progress() -> Iterator[ProgressCallback]:
    """Yield a callback for the engine that shows the progress of a run."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda event: echo(f"[{format_counts(event.summary)}] {describe_event(event)}")
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    counts = TextColumn("{task.description}", markup=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), counts)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("planning", total=None)

        def show(event: RunEvent) -> None:
            summary = event.summary
            ended = summary.done + len(summary.failed)
            text = f"{summary.running} running, {len(summary.failed)} failed, {summary.reused} reused{format_best(summary)}"
            progress.update(task, completed=ended, total=ended + summary.running + summary.waiting, description=make_visible(text))
            if not event.job_succeeded:
                progress.console.print(describe_event(event), markup=False)

        yield show


def describe_event(event: RunEvent) -> str:
    """Return the message of an event; for a job that ended, its fold, model and score."""
    from ethobench.runs.plan import Result

    return event.result.describe(event.jobs) if isinstance(event.result, Result) else event.message


@contextmanager
def show_prediction_progress(*, quiet: bool = False) -> Iterator[Callable[[PredictionEvent], None]]:
    """Yield a callback for a batch prediction: a bar with the remaining time on a terminal, a line per recording elsewhere.

    Parameters
    ----------
    quiet : bool
        Whether to print no lines to stdout.
    """
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield (lambda event: None) if quiet else (lambda event: echo(format_prediction(event)))
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    file_name = TextColumn("{task.description}", markup=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), file_name)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("starting", total=None)

        def show(event: PredictionEvent) -> None:
            name = event.prediction.file if event.prediction is not None else ""
            progress.update(task, completed=event.ended, total=event.total, description=make_visible(name))
            if event.prediction is None:
                progress.console.print(format_prediction(event), markup=False)

        yield show


def format_prediction(event: PredictionEvent) -> str:
    """Format an event of a batch prediction: "12 of 40: m12.csv, 284 bouts in 1200.0 s"."""
    if event.message:
        return event.message
    count = f"{event.ended} of {event.total}"
    if event.failure is not None:
        return f"{count}: {event.failure.input} failed: {event.failure.error}"
    entry = event.prediction
    if entry is None:
        return count
    label = f" ({entry.origin.label})" if entry.origin.label else ""
    missing = entry.unobserved_seconds
    unobserved = f"; {missing:.1f} s ({missing / entry.seconds:.1%}) unobserved (not predicted)" if missing else ""
    return f"{count}: {entry.file}, {entry.bouts} bouts in {entry.seconds:.1f} s{label}{unobserved}"


def format_counts(summary: RunSummary) -> str:
    """Format the number of ended jobs and of all jobs."""
    ended = summary.done + len(summary.failed)
    return f"{ended}/{ended + summary.running + summary.waiting}"


def format_best(summary: RunSummary) -> str:
    """Format the best final result so far; empty if there is none."""
    if summary.best is None or summary.best.headline is None:
        return ""
    job = summary.best.job
    return f"; best {format_score(summary.best.headline)} ({job.model}, {job.dataset})"


class TrainingProgress:
    """Shows the state of `ethobench train` on stderr: one live line on a terminal, a line every few seconds elsewhere.

    Parameters
    ----------
    deadline : Deadline
        Deadline of the command.
    every : float
        Seconds between lines if stderr is not a terminal.
    """

    def __init__(self, deadline: Deadline, every: float = 15.0) -> None:
        self.deadline, self.every = deadline, every
        self.phase, self.detail = "reading the data", ""
        self.seconds_left: float | None = None  # estimate, for commands without a time budget
        self._phase_start = deadline.clock()
        self._final_training_seconds = 0.0
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
        """Start the next phase of the command."""
        self.phase, self.detail, self.seconds_left = phase, "", None
        self._phase_start = self.deadline.clock()

    def say(self, text: str) -> None:
        """Print a permanent line."""
        echo(text, err=True)

    def warn(self, text: str) -> None:
        """Print a note unless it is empty."""
        if text:
            secho(f"note: {text}", err=True, fg=typer.colors.YELLOW)

    def line(self) -> str:
        """Return the state in one line: elapsed time, phase, detail, remaining time."""
        elapsed = format_seconds(self.deadline.elapsed)
        if self.deadline.is_limited:
            is_over = self.deadline.remaining <= 0
            remaining = "the budget is used up" if is_over else f"{format_seconds(self.deadline.remaining)} of the budget left"
        else:
            remaining = "estimating the time left" if self.seconds_left is None else f"about {format_seconds(self.seconds_left)} left"
        return make_visible(" | ".join(text for text in (elapsed, self.phase, self.detail, remaining) if text))

    def show_folds(self, store: Store, running: list[Job], summary: RunSummary, n_folds: int, workers: int) -> None:
        """Show the progress of a cross-validation and estimate the remaining time.

        Parameters
        ----------
        store : Store
            The store that workers report their progress to.
        running : list of Job
        summary : RunSummary
        n_folds : int
            Number of folds.
        workers : int
            Number of parallel trainings.
        """
        reports = {job.fold: store.progress(job.key) for job in running[:workers]}
        done = summary.done + summary.reused
        stages = [f"fold {fold + 1}: {_format_stage(report)}" for fold, report in sorted(reports.items())]
        self.detail = ", ".join([f"{done} of {n_folds} folds done", *stages])
        trained = summary.done + sum(report[1] for report in reports.values() if report is not None)
        if trained > 0.02:
            seconds_per_fold = (self.deadline.clock() - self._phase_start) / trained  # with several folds in parallel
            self._final_training_seconds = seconds_per_fold * min(workers, n_folds)  # a single training
            self.seconds_left = max(n_folds - summary.reused - trained, 0.0) * seconds_per_fold + self._final_training_seconds

    def show_training(self, stage: str, fraction: float) -> None:
        """Show the progress of the final training and estimate the remaining time."""
        self.detail = _format_stage((stage, fraction))
        if fraction > 0.02:
            self.seconds_left = (self.deadline.clock() - self._phase_start) * (1 - fraction) / fraction
        elif self._final_training_seconds:
            self.seconds_left = self._final_training_seconds

    def _tick(self) -> None:
        while not self._stop.wait(self.every if self._status is None else 0.5):
            if self._status is None:
                echo(self.line(), err=True)
            else:
                self._status.update(self.line())


class ShowFolds(RunControl):
    """Shows the progress of a cross-validation; another control decides which folds run.

    Parameters
    ----------
    progress : TrainingProgress
    inner : RunControl
        Decides which jobs are started.
    store : Store
    n_folds, workers : int
        Number of folds, and of parallel trainings.
    """

    def __init__(self, progress: TrainingProgress, inner: RunControl, store: Store, n_folds: int, workers: int) -> None:
        self.progress, self.inner, self.store, self.n_folds, self.workers = progress, inner, store, n_folds, workers
        self.one_at_a_time = inner.one_at_a_time

    def admits(self, job: Job, summary: RunSummary) -> bool:
        """Return whether to start a job."""
        return self.inner.admits(job, summary)

    def observe(self, running: list[Job], summary: RunSummary) -> None:
        """Show the progress of the running jobs."""
        self.progress.show_folds(self.store, running, summary, max(self.n_folds, summary.done + summary.reused), self.workers)
        self.inner.observe(running, summary)

    def report(self, event: RunEvent) -> None:
        """Print messages of the engine, such as the score of a fold."""
        self.progress.say(describe_event(event))


def _format_stage(report: tuple[str, float] | None) -> str:
    return "starting" if report is None else f"{report[0]} ({report[1]:.0%})"
