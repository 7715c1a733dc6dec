"""Time budget of training: how many folds of a cross-validation fit beside the final training, and the deadline of each."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ethobench.core import Dataset
from ethobench.core.deadline import Deadline, format_seconds
from ethobench.core.wording import plural
from ethobench.models import Model
from ethobench.runs import Job, JobPlan, RunControl, RunSummary, StopRun
from ethobench.runs.plan import plan_at_once

SAVING_SHARE = 0.08  # of the budget, reserved for scoring, intervals, saving, and a machine that becomes busier
MIN_SAVING_SECONDS = 1.0
PARALLEL_START_FACTOR = 1.5  # how much longer workers that start together take to start than one process
FINAL_FACTOR = 1.3  # duration of the final training, relative to a training of the cross-validation
MIN_TRAINING_SECONDS = 3.0  # no useful model is trained in less
MAX_PREPARATION_SHARE = 0.25  # of the remaining time, for the features of all recordings
MIN_TRAINING_PER_PREPARATION = 0.5  # minimum duration of a training, relative to computing the features of all recordings
COMFORTABLE_FACTOR = 2.0  # duration of a training, relative to the minimum, from which on further folds are added
MIN_REMAINING_SHARE = 0.5  # of the planned duration of a training, below which it is not started
GRACE_SHARE = 0.2  # of the planned duration of a training, by which the last of the cross-validation may be late


@dataclass(frozen=True)
class Schedule:
    """Schedule of the trainings of a cross-validation.

    Attributes
    ----------
    folds, n_folds : int
        Number of folds that are trained, and of all folds.
    workers : int
        Number of trainings at a time.
    training : float
        Duration of each training in seconds.
    start, end : float
        Start of the first training and end of the last, on the clock of the deadline.
    """

    folds: int
    n_folds: int
    workers: int
    training: float
    start: float
    end: float

    def end_of(self, index: int) -> float:
        """Return the deadline of a training by its index in the order of folds."""
        return self.start + (index // self.workers + 1) * self.training


def make_schedule(deadline: Deadline, n_folds: int, workers: int, *, start_up: float = 0.0, preparation: float = 0.0) -> Schedule:
    """Divide the remaining time among the folds of a cross-validation and the final training.

    There are fewer folds if each training would otherwise be too short to be useful, and none if there is not enough time for two of them
    beside the final training.

    Parameters
    ----------
    deadline : Deadline
        Deadline of the command, with a limit.
    n_folds : int
        Number of folds of a complete cross-validation.
    workers : int
        Number of trainings at a time.
    start_up : float
        Seconds that a worker takes to start and to read the data.
    preparation : float
        Seconds that one core takes to compute the features of all recordings, which is done once.

    Examples
    --------
    >>> now = lambda: 0.0
    >>> [make_schedule(Deadline(s, clock=now), 5, 2, start_up=5, preparation=15).folds for s in (30, 50, 70, 300)]
    [0, 2, 4, 5]
    """
    now = deadline.clock()
    remaining = final_deadline(deadline).remaining
    minimum = max(MIN_TRAINING_SECONDS, MIN_TRAINING_PER_PREPARATION * preparation)
    overhead = start_up + min(preparation / workers, MAX_PREPARATION_SHARE * remaining)
    if n_folds < 1:
        return Schedule(0, 0, workers, 0.0, now, now)
    choices = [n_folds, *(count for count in range(n_folds - 1, 1, -1) if count % workers == 0)]  # an incomplete round saves no time
    durations = {count: (remaining - overhead) / (math.ceil(count / workers) + FINAL_FACTOR) for count in choices}
    folds = next((count for count in choices if durations[count] >= COMFORTABLE_FACTOR * minimum), 0)
    if not folds and durations[choices[-1]] >= minimum:
        folds = choices[-1]
    training = durations.get(folds, 0.0)
    start = now + overhead
    return Schedule(folds, n_folds, workers, training, start, start + math.ceil(folds / workers) * training)


def final_deadline(deadline: Deadline) -> Deadline:
    """Return the deadline of the final training, which reserves time for saving."""
    if not deadline.is_limited:
        return deadline
    return deadline.before(max(MIN_SAVING_SECONDS, SAVING_SHARE * (deadline.end - deadline.start)))


def warn_of_final_training(deadline: Deadline, seconds: float) -> str:
    """Return a warning if the final training will exceed the time budget; empty if it may fit.

    Parameters
    ----------
    deadline : Deadline
        Deadline of the command.
    seconds : float
        Approximate duration of the final training; 0 if unknown.

    Examples
    --------
    >>> warn_of_final_training(Deadline(60, clock=lambda: 0.0), 90)
    'the final training takes about 1 min 30 s, but only 55 s of the budget remain; it is completed anyway'
    """
    remaining = final_deadline(deadline).remaining
    if remaining >= max(seconds, MIN_TRAINING_SECONDS):
        return ""
    duration = f"about {format_seconds(seconds)}" if seconds else "at least a few seconds"
    return f"the final training takes {duration}, but only {format_seconds(remaining)} of the budget remain; it is completed anyway"


@dataclass(frozen=True)
class LimitedCrossValidation:
    """A cross-validation within a time budget.

    Attributes
    ----------
    jobs : list of Job
        Jobs of all folds.
    folds : int
        Number of folds that are planned to be run, including those that are finished already.
    control : RunControl
        Decides which folds are started, and when the cross-validation ends.
    deadlines : dict of str to float
        Deadlines of the jobs, for `WorkerOptions.deadlines`.
    prepare_until : float
        Time until which workers compute features of all recordings, for `WorkerOptions.prepare_until`.
    """

    jobs: list[Job]
    folds: int
    control: RunControl = field(default_factory=RunControl)
    deadlines: dict[str, float] = field(default_factory=dict)
    prepare_until: float = 0.0

    def plan(self, other_jobs: Sequence[Job] = ()) -> JobPlan:
        """Plan the jobs of all folds together with other jobs."""
        return plan_at_once([*self.jobs, *other_jobs])

    @property
    def final_seconds(self) -> float:
        """Approximate duration of the final training, where it cannot be shortened; 0 if unknown."""
        control = self.control
        return control.final_factor * control.longest if isinstance(control, CompleteTrainings) else 0.0


def limit_cross_validation(
    model: Model, jobs: Sequence[Job], data: Dataset, deadline: Deadline, *, workers: int, finished: Collection[str] = ()
) -> LimitedCrossValidation:
    """Limit a cross-validation so that it and the final training fit into the time budget of a command.

    Parameters
    ----------
    model : Model
        The model to train.
    jobs : sequence of Job
        Jobs of all folds.
    data : Dataset
        Training data of the final model.
    deadline : Deadline
        Deadline of the command; without a limit all jobs are run unchanged.
    workers : int
        Number of trainings at a time.
    finished : collection of str
        Keys of jobs that are finished already.
    """
    if not deadline.is_limited:
        return LimitedCrossValidation(list(jobs), len(jobs))
    if not model.supports_deadline:
        return LimitedCrossValidation(list(jobs), len(jobs), CompleteTrainings(deadline, final_factor=len(jobs) / max(len(jobs) - 1, 1)))
    start_up = PARALLEL_START_FACTOR * deadline.elapsed  # workers import packages and read the data, as this process did
    limited = [replace(job, time_budget=deadline.end - deadline.start) for job in jobs]
    remaining = [job for job in limited if job.key not in finished]
    schedule = make_schedule(deadline, len(remaining), workers, start_up=start_up, preparation=model.preparation_seconds(data))
    ends = {job.key: schedule.end_of(index) for index, job in enumerate(remaining[: schedule.folds])}
    folds = len(limited) - len(remaining) + schedule.folds
    return LimitedCrossValidation(limited, folds, ShortenedTrainings(schedule, deadline, ends), ends, schedule.start)


class ShortenedTrainings(RunControl):
    """Control of a cross-validation whose model observes deadlines: starts the scheduled folds while there is time for them.

    Parameters
    ----------
    schedule : Schedule
    deadline : Deadline
        Deadline of the command; only its clock is read.
    ends : mapping of str to float
        Deadlines of jobs by key; other jobs are not started.
    """

    one_at_a_time = True

    def __init__(self, schedule: Schedule, deadline: Deadline, ends: Mapping[str, float]) -> None:
        self.schedule, self.clock, self.ends = schedule, deadline.clock, ends

    def admits(self, job: Job, summary: RunSummary) -> bool:
        """Return whether a job is scheduled, and enough of its time remains."""
        return job.key in self.ends and self.ends[job.key] - self.clock() >= MIN_REMAINING_SHARE * self.schedule.training

    def observe(self, running: list[Job], summary: RunSummary) -> None:
        """End the cross-validation if it takes time that the final training needs."""
        if self.clock() > self.schedule.end + GRACE_SHARE * self.schedule.training:
            raise StopRun


@dataclass
class CompleteTrainings(RunControl):
    """Control of a cross-validation whose model cannot be shortened: starts folds while they and the final training will fit.

    The duration of a training is estimated from those that have ended, and from those in progress, which take at least as long as they
    have been running.

    Attributes
    ----------
    deadline : Deadline
        Deadline of the command.
    final_factor : float
        Duration of the final training, which uses more recordings, relative to a training of the cross-validation.
    longest : float
        Duration of the longest training so far, in seconds.
    """

    deadline: Deadline
    final_factor: float = 1.0
    longest: float = 0.0
    one_at_a_time = True
    _started: dict[str, float] = field(default_factory=dict)

    def admits(self, job: Job, summary: RunSummary) -> bool:
        """Return whether there is time for one more training and the final one."""
        fits = (1 + self.final_factor) * self.longest <= final_deadline(self.deadline).remaining
        if fits:
            self._started[job.key] = self.deadline.clock()
        return fits

    def observe(self, running: list[Job], summary: RunSummary) -> None:
        """Measure the duration of trainings; end the cross-validation if it takes time that the final training needs."""
        now = self.deadline.clock()
        keys = {job.key for job in running}
        for key in [key for key in self._started if key not in keys]:
            self.longest = max(self.longest, now - self._started.pop(key))
        durations = [self.longest, *(now - self._started[key] for key in keys if key in self._started)]
        if keys and max(durations) * self.final_factor > final_deadline(self.deadline).remaining:
            self.longest = max(durations)
            raise StopRun


def describe_plan(model: Model, folds: int, n_folds: int, workers: int, deadline: Deadline, *, curve: int = 0) -> str:
    """Return one line that describes the number of trainings and their duration.

    Parameters
    ----------
    model : Model
    folds, n_folds : int
        Number of folds that are trained, and of all folds; 0 and 0 without cross-validation.
    workers : int
        Number of trainings at a time.
    deadline : Deadline
    curve : int
        Number of further trainings for a learning curve.

    Examples
    --------
    >>> from ethobench import create_model
    >>> describe_plan(create_model("boost"), 5, 5, 2, Deadline(300, clock=lambda: 0.0))
    'plan: 5-fold cross-validation + final training = 6 trainings of boost on 2 cores, about 5 min (budget 5 min)'
    >>> describe_plan(create_model("rf"), 0, 0, 2, Deadline())
    'plan: final training only = 1 training of rf on 2 cores; estimating the time while it runs'
    """
    if not n_folds:
        trainings = "final training only = 1 training"
    elif not folds:
        trainings = "no time for cross-validation; final training only = 1 training"
    else:
        kind = f"{folds}-fold cross-validation" if folds == n_folds else f"{folds} of {n_folds} folds of cross-validation (limited time)"
        extra = f" + {curve} trainings for the learning curve" if curve else ""
        trainings = f"{kind}{extra} + final training = {folds + curve + 1} trainings"
    cores = plural(workers, "{n} core", "{n} cores")
    line = f"plan: {trainings} of {model.name} on {cores}"
    if not deadline.is_limited:
        return f"{line}; estimating the time while it runs"
    budget = format_seconds(deadline.end - deadline.start)
    if model.supports_deadline:
        return f"{line}, about {budget} (budget {budget})"
    return (
        f"{line} (budget {budget}; a training of {model.name} cannot be shortened: folds are skipped if they take too long, "
        "and the final training is always completed)"
    )
