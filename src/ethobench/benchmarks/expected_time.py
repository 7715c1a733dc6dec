"""How long a run takes, before it starts: from finished jobs of its store, or from the speed of networks on this machine."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Dataset, Poses
from ethobench.core.errors import EthobenchError
from ethobench.core.wording import plural
from ethobench.datasets import load_dataset
from ethobench.models import create_model
from ethobench.runs import Job, JobPlan, Result, Store

if TYPE_CHECKING:
    from ethobench.models.calms21_networks import TrajectoryModel

MAX_SECONDS_LISTED = 90


@dataclass(frozen=True)
class ExpectedTime:
    """Expected duration of the jobs that a run starts with.

    Attributes
    ----------
    seconds : float
        Of all jobs that can be estimated, one after the other.
    n_estimated, n_jobs : int
        Jobs that can be estimated, and all that are not finished.
    speed, published_speed : float, optional
        Windows per second of networks that are trained on frames in a row, and of the same networks with one window per example, as
        published. None if no such network was measured.
    """

    seconds: float
    n_estimated: int
    n_jobs: int
    speed: float | None = None
    published_speed: float | None = None

    def describe(self, n_workers: int) -> str:
        """Return a line of text; empty if nothing can be estimated.

        Parameters
        ----------
        n_workers : int
            Processes, which are assumed to be equally fast.

        Examples
        --------
        >>> ExpectedTime(7200.0, 4, 5).describe(2)
        'expected time: about 60 min for 4 of 5 jobs on 2 processes; jobs that follow from their results are not counted'
        """
        if not self.n_estimated:
            return ""
        n_parallel = max(min(n_workers, self.n_estimated), 1)
        processes = plural(n_parallel, "{n} process", "{n} processes")
        jobs = f"{self.n_estimated} of {self.n_jobs}" if self.n_estimated < self.n_jobs else str(self.n_jobs)
        duration = _duration(self.seconds / n_parallel)
        speeds = ""
        if self.speed and self.published_speed:
            speeds = f"\nnetworks learn about {self.speed:,.0f} windows/s from frames in a row, {self.published_speed:,.0f} as published"
        return f"expected time: {duration} for {jobs} jobs on {processes}; jobs that follow from their results are not counted{speeds}"


def _duration(seconds: float) -> str:
    if seconds < MAX_SECONDS_LISTED:
        return f"about {max(round(seconds), 1)} s"
    if seconds < 60 * MAX_SECONDS_LISTED:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"about {seconds / 86400:.1f} days"


def peek(plan: JobPlan) -> tuple[list[Job], JobPlan]:
    """Return the jobs that a plan starts with, and the plan as it was before."""
    try:
        first = next(plan)
    except StopIteration:
        return [], plan
    except EthobenchError as error:
        return [], _failing(error)

    def restart() -> Generator[list[Job], list[Result], None]:
        jobs = first
        while True:
            results = yield jobs
            try:
                jobs = plan.send(results)
            except StopIteration:
                return

    return first, restart()


def _failing(error: EthobenchError) -> Generator[list[Job], list[Result], None]:
    """Return a plan that fails when it is run, where the failure is reported."""
    raise error
    yield []


def estimate_time(jobs: Iterable[Job], store: Store) -> ExpectedTime:
    """Estimate how long jobs take that are not in the store.

    Parameters
    ----------
    jobs : iterable of Job
    store : Store
        Its finished jobs of the same model and setting say how long a job takes. Without any, networks of the CalMS21 family are measured
        for a few updates.
    """
    missing = {job.key: job for job in jobs if not store.has(job.key)}
    finished = _finished_seconds(store) if missing else {}
    probes: dict[Any, tuple[float, float | None]] = {}
    datasets: dict[Any, Dataset] = {}
    seconds = []
    for job in missing.values():
        measured = finished.get(_kind(job))
        seconds.append(_network_seconds(job, probes, datasets) if measured is None else measured)
    estimated = [each for each in seconds if each is not None]
    pairs = [(speed, published) for speed, published in probes.values() if published is not None]
    speeds = np.median(pairs, axis=0).tolist() if pairs else [None, None]
    return ExpectedTime(float(sum(estimated)), len(estimated), len(missing), *speeds)


def _kind(job: Job) -> tuple[str, ...]:
    return (job.benchmark, job.dataset, job.model, job.stage, str(job.setting))


def _finished_seconds(store: Store) -> dict[tuple[str, ...], float]:
    """Return the median duration of finished jobs of each kind."""
    seconds: dict[tuple[str, ...], list[float]] = {}
    for key in store.finished():
        job, timing = store.job(key), store.timing(key)
        if job is not None and timing:
            seconds.setdefault(_kind(job), []).append(sum(timing.get(step, 0.0) for step in ("load", "fit", "predict", "score")))
    return {kind: float(np.median(each)) for kind, each in seconds.items()}


def _network_seconds(job: Job, probes: dict[Any, tuple[float, float | None]], datasets: dict[Any, Dataset]) -> float | None:
    """Return the seconds of a training with windows of poses, at the measured speed of the network; None for other models."""
    from ethobench.models.calms21_networks import TrajectoryModel

    source = (job.source or job.dataset, repr(sorted(job.options.items())))
    settings = repr((job.model, sorted(job.params.items(), key=str)))
    try:
        model = create_model(job.model, **{name: value for name, value in job.params.items() if name != "init"} | _initialized(job))
        if not isinstance(model, TrajectoryModel) or model.params.condition != "none":
            return None
        if source not in datasets:
            datasets[source] = load_dataset(job.source or job.dataset, **job.options)
        data = datasets[source]
        first = data[job.train[0]].signals if job.train else None
        if not isinstance(first, Poses):
            return None
        if (source[0], settings) not in probes:
            shape = (2 * len(first.individuals) * len(first.keypoints), max(len(data.ethogram), 2))
            probes[source[0], settings] = (model.windows_per_second(*shape), _published_speed(model, shape))
    except (EthobenchError, ImportError):
        return None
    speed, _ = probes[source[0], settings]
    n_frames = sum(data[name].n_frames or 0 for name in job.train)
    n_windows = min(n_frames, model.params.samples_per_epoch or n_frames)
    epochs = job.params.get("epochs", model.params.epochs) + job.params.get("head_epochs", 0)
    return epochs * n_windows / speed if speed else None


def _published_speed(model: TrajectoryModel, shape: tuple[int, int]) -> float | None:
    """Return the windows per second of a network with one window per example; None for a network that is trained so."""
    if model.params.frames_per_example < 2:
        return None
    replaced = ("frames_per_example", "batch", "init", "head_epochs", "epochs")
    params = {name: value for name, value in model.get_params().items() if name not in replaced}
    return type(model)(**params).windows_per_second(*shape)


def _initialized(job: Job) -> dict[str, Any]:
    """Return hyper-parameters with which a model of a job can be created without the network that it is initialized from."""
    if not (job.initial_job or job.params.get("init")):
        return {}
    return {"head_epochs": 0, "epochs": max(int(job.params.get("epochs", 1)), 1)}


def peek_all(plans: Sequence[JobPlan]) -> tuple[list[Job], list[JobPlan]]:
    """Return the jobs that several plans start with, and the plans as they were before."""
    peeked = [peek(plan) for plan in plans]
    return [job for jobs, _ in peeked for job in jobs], [plan for _, plan in peeked]
