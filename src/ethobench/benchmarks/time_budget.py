"""Cross-validation and a final training within a limited time: how many folds there are, and when each training has to end."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ethobench.core import Dataset
from ethobench.core.deadline import Deadline, format_seconds
from ethobench.models import Model
from ethobench.runs import Job, Outcome, Plan, RunControl, StopRun

SAVING = 0.08  # of the budget that is kept for scoring, intervals and saving, and for a machine that becomes busier
FEWEST_SAVING_SECONDS = 1.0
SEVERAL_AT_ONCE = 1.5  # by which workers that start together take longer to do so than one process
FINAL = 1.3  # times that a training of the cross-validation may take: the final training may take so long
SMALLEST_TRAINING = 3.0  # seconds; no useful model is made in less
MOST_PREPARATION = 0.25  # of the time left that preparing all recordings may take
SMALLEST_PREPARATION = 0.5  # times what preparing all recordings takes: a training should take so long at least
GENEROUS = 2.0  # times the smallest training: so long each training should be before further folds are added
ENOUGH_TO_START = 0.5  # of the planned time of a training must be left for it to be started
GRACE = 0.2  # of the planned time of a training by which the last of the cross-validation may be late


@dataclass(frozen=True)
class Schedule:
    """When the trainings of a command have to end.

    Attributes
    ----------
    folds, n_folds : int
        How many folds are trained, and how many there are.
    workers : int
        Trainings at a time.
    training : float
        Seconds for each training of the cross-validation.
    start, end : float
        When the first of them really begins to learn, and when the last has to end, on the clock of the deadline.
    """

    folds: int
    n_folds: int
    workers: int
    training: float
    start: float
    end: float

    def end_of(self, place: int) -> float:
        """Return when a training has to end, by its place in the order of folds."""
        return self.start + (place // self.workers + 1) * self.training


def make_schedule(deadline: Deadline, n_folds: int, workers: int, *, start_up: float = 0.0, preparation: float = 0.0) -> Schedule:
    """Divide the time that is left among as many folds as there is time for, and the final training.

    There are fewer folds where each training would otherwise be too short to be useful, and none where there is not even time for
    two of them beside the final training.

    Parameters
    ----------
    deadline : Deadline
        Of the command, with a limit.
    n_folds : int
        Of a complete cross-validation.
    workers : int
        Trainings at a time.
    start_up : float
        Seconds that a worker takes to start and to read the data.
    preparation : float
        Seconds of one core to compute the features of all recordings, which is done once.

    Examples
    --------
    >>> now = lambda: 0.0
    >>> [make_schedule(Deadline(s, clock=now), 5, 2, start_up=5, preparation=15).folds for s in (30, 50, 70, 300)]
    [0, 2, 4, 5]
    """
    now = deadline.clock()
    left = _without_saving(deadline).remaining
    smallest = max(SMALLEST_TRAINING, SMALLEST_PREPARATION * preparation)
    overhead = start_up + min(preparation / workers, MOST_PREPARATION * left)
    if n_folds < 1:
        return Schedule(0, 0, workers, 0.0, now, now)
    choices = [n_folds, *(count for count in range(n_folds - 1, 1, -1) if count % workers == 0)]  # part of a round saves no time
    each = {count: (left - overhead) / (math.ceil(count / workers) + FINAL) for count in choices}
    folds = next((count for count in choices if each[count] >= GENEROUS * smallest), 0)
    if not folds and each[choices[-1]] >= smallest:
        folds = choices[-1]
    training = each.get(folds, 0.0)
    start = now + overhead
    return Schedule(folds, n_folds, workers, training, start, start + math.ceil(folds / workers) * training)


def final_deadline(deadline: Deadline) -> Deadline:
    """Return the deadline of the final training: it leaves time for saving."""
    return _without_saving(deadline)


def warn_of_final(deadline: Deadline, seconds: float) -> str:
    """Return what to say before a final training that will take longer than there is time; nothing if it may fit.

    Parameters
    ----------
    deadline : Deadline
        Of the command.
    seconds : float
        That the training takes, about; 0 if that is not known.

    Examples
    --------
    >>> warn_of_final(Deadline(60, clock=lambda: 0.0), 90)
    'the final training takes about 1 min 30 s, but 55 s of the budget are left; it is finished all the same'
    """
    left = _without_saving(deadline).remaining
    if left >= max(seconds, SMALLEST_TRAINING):
        return ""
    takes = f"takes about {format_seconds(seconds)}" if seconds else "takes some seconds at least"
    return f"the final training {takes}, but {format_seconds(left)} of the budget are left; it is finished all the same"


def _without_saving(deadline: Deadline) -> Deadline:
    if not deadline.is_limited:
        return deadline
    return deadline.before(max(FEWEST_SAVING_SECONDS, SAVING * (deadline.end - deadline.start)))


@dataclass(frozen=True)
class CrossValidation:
    """The folds of a cross-validation, and how they are kept within a time budget.

    Attributes
    ----------
    jobs : list of Job
        Of all folds.
    folds : int
        How many of them are planned to be done, those that were done before included.
    control : RunControl
        Starts and ends them.
    deadlines : dict of str to float
        When they have to end, as `How.deadlines` takes it.
    prepare_until : float
        Until when workers prepare all recordings, as `How.prepare_until` takes it.
    """

    jobs: list[Job]
    folds: int
    control: RunControl = field(default_factory=RunControl)
    deadlines: dict[str, float] = field(default_factory=dict)
    prepare_until: float = 0.0

    def plan(self, more: Sequence[Job] = ()) -> Plan:
        """Plan the jobs, and more if need be, all at once."""
        yield [*self.jobs, *more]

    @property
    def final_seconds(self) -> float:
        """About how long the final training takes, as far as trainings that cannot be shortened tell; 0 if nothing is known."""
        control = self.control
        return control.more * control.longest if isinstance(control, WholeTrainings) else 0.0


def limit_cross_validation(
    model: Model, jobs: Sequence[Job], data: Dataset, deadline: Deadline, *, workers: int, finished: Collection[str] = ()
) -> CrossValidation:
    """Keep a cross-validation within the time of a command, with enough time left for the final training.

    Parameters
    ----------
    model : Model
        To be trained.
    jobs : sequence of Job
        Of all folds.
    data : Dataset
        What is learnt from in the end.
    deadline : Deadline
        Of the command; without a limit, everything is done as it is.
    workers : int
        Trainings at a time.
    finished : collection of str
        Keys of jobs that were done before.
    """
    if not deadline.is_limited:
        return CrossValidation(list(jobs), len(jobs))
    if not model.supports_deadline:
        return CrossValidation(list(jobs), len(jobs), WholeTrainings(deadline, more=len(jobs) / max(len(jobs) - 1, 1)))
    start_up = SEVERAL_AT_ONCE * deadline.elapsed  # as this process did, workers import and read the data
    limited = [replace(job, budget=deadline.end - deadline.start) for job in jobs]
    remaining = [job for job in limited if job.key not in finished]
    schedule = make_schedule(deadline, len(remaining), workers, start_up=start_up, preparation=model.preparation_seconds(data))
    ends = {job.key: schedule.end_of(place) for place, job in enumerate(remaining[: schedule.folds])}
    folds = len(limited) - len(remaining) + schedule.folds
    return CrossValidation(limited, folds, ShortenedTrainings(schedule, deadline, ends), ends, schedule.start)


class ShortenedTrainings(RunControl):
    """Controls a cross-validation of a model that keeps deadlines: starts the folds of a schedule while there is time for them.

    Parameters
    ----------
    schedule : Schedule
    deadline : Deadline
        Of the command; only its clock is read.
    ends : mapping of str to float
        When jobs have to end, by key; others are not started.
    """

    one_at_a_time = True

    def __init__(self, schedule: Schedule, deadline: Deadline, ends: Mapping[str, float]) -> None:
        self.schedule, self.clock, self.ends = schedule, deadline.clock, ends

    def admits(self, job: Job, outcome: Outcome) -> bool:
        """Return whether a job is scheduled, and enough of its time is left."""
        return job.key in self.ends and self.ends[job.key] - self.clock() >= ENOUGH_TO_START * self.schedule.training

    def look(self, under_way: list[Job], outcome: Outcome) -> None:
        """End the cross-validation if it takes time that the final training needs."""
        if self.clock() > self.schedule.end + GRACE * self.schedule.training:
            raise StopRun


@dataclass
class WholeTrainings(RunControl):
    """Controls a cross-validation of a model that cannot be shortened: starts folds while they and the final training will fit.

    How long a training takes is known from those that have ended; a training that has not ended yet takes at least as long as it
    has been going on.

    Attributes
    ----------
    deadline : Deadline
        Of the command.
    more : float
        How much longer the final training takes than one of the cross-validation, since it learns from more recordings.
    longest : float
        Seconds of the longest training so far.
    """

    deadline: Deadline
    more: float = 1.0
    longest: float = 0.0
    one_at_a_time = True
    _started: dict[str, float] = field(default_factory=dict)

    def admits(self, job: Job, outcome: Outcome) -> bool:
        """Return whether there is time for one more training and the final one."""
        fits = (1 + self.more) * self.longest <= _without_saving(self.deadline).remaining
        if fits:
            self._started[job.key] = self.deadline.clock()
        return fits

    def look(self, under_way: list[Job], outcome: Outcome) -> None:
        """Measure trainings; end the cross-validation if it takes time that the final training needs."""
        now = self.deadline.clock()
        running = {job.key for job in under_way}
        for key in [key for key in self._started if key not in running]:
            self.longest = max(self.longest, now - self._started.pop(key))
        needed = max([self.longest, *(now - self._started[key] for key in running if key in self._started)]) * self.more
        if running and needed > _without_saving(self.deadline).remaining:
            self.longest = needed / self.more
            raise StopRun


def describe_plan(model: Model, folds: int, n_folds: int, workers: int, deadline: Deadline, *, curve: int = 0) -> str:
    """Say how many trainings there will be, and how long they take.

    Parameters
    ----------
    model : Model
    folds, n_folds : int
        How many folds are trained, and how many there are; 0 and 0 without cross-validation.
    workers : int
        Trainings at a time.
    deadline : Deadline
    curve : int
        Further trainings for a learning curve.

    Examples
    --------
    >>> from ethobench import create_model
    >>> describe_plan(create_model("boost"), 5, 5, 2, Deadline(300, clock=lambda: 0.0))
    'plan: 5-fold cross-validation + final training = 6 trainings of boost on 2 cores, about 5 min (budget 5 min)'
    >>> describe_plan(create_model("rf"), 0, 0, 2, Deadline())
    'plan: final training only = 1 training of rf on 2 cores; estimating the time while it runs'
    """
    if not n_folds:
        what = "final training only = 1 training"
    elif not folds:
        what = "no time for cross-validation; final training only = 1 training"
    else:
        kind = (
            f"{folds}-fold cross-validation" if folds == n_folds else f"{folds} of {n_folds} folds of cross-validation, for want of time,"
        )
        extra = f" + {curve} trainings for the learning curve" if curve else ""
        what = f"{kind}{extra} + final training = {folds + curve + 1} trainings"
    cores = f"{workers} core{'s' if workers > 1 else ''}"
    line = f"plan: {what} of {model.name} on {cores}"
    if not deadline.is_limited:
        return f"{line}; estimating the time while it runs"
    budget = format_seconds(deadline.end - deadline.start)
    if model.supports_deadline:
        return f"{line}, about {budget} (budget {budget})"
    return (
        f"{line} (budget {budget}; a training of {model.name} cannot be shortened: folds are left out if they take too long, "
        "and the final training is always finished)"
    )
