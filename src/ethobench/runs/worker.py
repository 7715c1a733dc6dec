"""Workers: train, predict, score and store one job."""

from __future__ import annotations

import json
import os
import platform
import shutil
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ethobench.core import Dataset, Prediction, Recording
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.files import write_text
from ethobench.core.progress import progress_listener, progress_range, report_progress
from ethobench.features.cache import feature_cache
from ethobench.runs.executors import preload_workers
from ethobench.runs.leases import LEASE_SECONDS, Leases, StoreError
from ethobench.runs.plan import Job
from ethobench.runs.store import Store

if TYPE_CHECKING:
    from ethobench.metrics import Scores
    from ethobench.models import Model

DONE, BUSY, FAILED = "done", "busy", "failed"
KEEPABLE = ("probabilities", "model")
MAX_CRASHES = 3
FITTING_SHARE = 0.78
"""Share of a job's time for fitting; the rest is for prediction and scoring."""

LIBRARIES = ("ethobench.models", "ethobench.metrics.suites.ethobench", "ethobench.formats.tidy", "scipy.signal", "pyarrow.parquet")
"""What nearly every job imports, beside the module of its model."""


class WorkerCrashError(EthobenchError):
    """A job crashes its workers."""


@dataclass(frozen=True)
class WorkerOptions:
    """Options of workers that do not change the result of a job.

    Attributes
    ----------
    run : str
        Name of the run.
    keep : tuple of {"probabilities", "model"}
        What to store beside the predicted bouts.
    data : str
        Folder of named datasets, for workers where ``$ETHOBENCH_DATA`` is not set.
    deadlines : mapping of str to float
        Deadlines of jobs by key, on the clock `time.monotonic`, so only for workers on the machine of the run. Jobs whose results
        depend on it have `Job.time_budget` in their key.
    features : str
        Folder in which features are cached for other jobs (`feature_cache`); empty for no cache.
    prepare_until : float
        Time, on the same clock, until which workers compute features of all recordings together before their first training.
    """

    run: str = ""
    keep: tuple[str, ...] = ()
    data: str = ""
    deadlines: Mapping[str, float] = field(default_factory=dict)
    features: str = ""
    prepare_until: float = 0.0


def preload_for_training(models: Iterable[str]) -> None:
    """Start to import what workers of this machine need to run jobs, once for all workers, while this process does something else.

    Parameters
    ----------
    models : iterable of str
        Names of the models of the jobs.
    """
    from ethobench.models.registry import modules_for_training

    preload_workers([__name__, *LIBRARIES, *modules_for_training(models)])


def run_job(values: Mapping[str, Any], root: str, options: WorkerOptions | None = None) -> tuple[str, str]:
    """Run one job and store its result.

    Parameters
    ----------
    values : mapping
        The job, as returned by `Job.to_dict`.
    root : str
        Folder of the store.
    options : WorkerOptions, optional

    Returns
    -------
    state : {"done", "busy", "failed"}
        ``"busy"`` if another process runs the job.
    error : str
        Why it failed; empty otherwise.

    Raises
    ------
    StoreError
        If the store cannot be written, so that no other job could be stored either.
    """
    options = options or WorkerOptions()
    job, store = Job.from_dict(values), Store(root)

    def work() -> None:
        use_data_folder(options.data)
        with progress_listener(ProgressFile(store.progress_file(job.key))), feature_cache(options.features or None):
            _run(job, store, options)

    try:
        return run_leased(job, store, options.run, work)
    finally:
        store.progress_file(job.key).unlink(missing_ok=True)


class LeasedStore(Protocol):
    """What `run_leased` needs of a store."""

    @property
    def leases(self) -> Leases:
        """Leases on the jobs in progress."""
        ...

    def has(self, key: str) -> bool:
        """Return whether a job is finished."""
        ...

    def fail(self, job: Any, error: str, traceback: str = "") -> None:
        """Record the failure of a job."""


def run_leased(job: Any, store: LeasedStore, run: str, work: Callable[[], None]) -> tuple[str, str]:
    """Run one job, unless it is finished or another process runs it.

    Parameters
    ----------
    job : Job
        Or another object with a ``key``.
    store : LeasedStore
    run : str
        Name of the run.
    work : callable
        Runs the job and stores its result.

    Returns
    -------
    state, error
        As `run_job` returns them.
    """
    if store.has(job.key):
        return DONE, ""
    crashes = store.leases.acquire(job.key, run)
    if crashes is None:
        return BUSY, ""
    if store.has(job.key):  # another process finished the job and released its lease just before this one acquired it
        store.leases.release(job.key)
        return DONE, ""
    stop = threading.Event()
    renewal = threading.Thread(target=_renew_lease, args=(store.leases, job.key, stop), daemon=True)
    renewal.start()
    try:
        if crashes >= MAX_CRASHES:
            raise WorkerCrashError(f"its worker crashed {crashes} times")
        work()
    except StoreError:
        raise
    except Exception as error:
        message = _describe_error(error)
        store.fail(job, message, traceback.format_exc())
        return FAILED, message
    finally:
        stop.set()
        renewal.join()
        store.leases.release(job.key)
    return DONE, ""


def use_data_folder(folder: str) -> None:
    """Set ``$ETHOBENCH_DATA`` in a worker where it is not set."""
    if folder and "ETHOBENCH_DATA" not in os.environ and Path(folder).is_dir():
        os.environ["ETHOBENCH_DATA"] = folder


def _describe_error(error: Exception) -> str:
    if isinstance(error, EthobenchError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"{type(error).__name__}: {error}"


class ProgressFile:
    """A progress listener that writes the latest report to a small file, which the run reads.

    Parameters
    ----------
    path : Path
    every : float
        Minimum number of seconds between two writes, and before the first.
    """

    def __init__(self, path: Path, every: float = 1.0) -> None:
        self.path, self.every = path, every
        self._written = time.monotonic()

    def __call__(self, stage: str, fraction: float) -> None:
        """Write a report, unless the last one is recent."""
        now = time.monotonic()
        if now - self._written < self.every:
            return
        self._written = now
        with suppress(OSError):  # a full disk must not end a training
            write_text(self.path, json.dumps({"stage": stage, "fraction": fraction}), overwrite=True, durable=False)


def _run(job: Job, store: Store, options: WorkerOptions) -> None:
    from ethobench.models import create_model

    timing, mark = {}, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report_progress("reading", 0.0)
        data = _load_data(job)
        timing["load"] = time.perf_counter() - mark
        mark = time.perf_counter()
        model = create_model(job.model, seed=job.seed, **{**job.params, **_initial_model(job, store)})
        model.checkpoint = store.root / "checkpoints" / job.key
        _fit(model, data, job, options)
        model.style = job.annotator if job.train_annotator else None
        timing["fit"] = time.perf_counter() - mark
        mark = time.perf_counter()
        predictions = _predict(model, data, job.test)
        timing["predict"] = time.perf_counter() - mark
        report_progress("scoring", 0.99)
        mark = time.perf_counter()
        scores = _score(predictions, data.select(recordings=job.test), job, model)
        timing["score"] = time.perf_counter() - mark
    log = "".join([f"{job}\n", *(f"{w.category.__name__}: {w.message}\n" for w in caught)])
    store.finish(job, lambda folder: _write(folder, job, model, data, predictions, scores, timing, log, options))
    shutil.rmtree(model.checkpoint, ignore_errors=True)


def _score(predictions: Mapping[str, Prediction], tested: Dataset, job: Job, model: Model) -> dict[str, Any]:
    """Score predictions with all suites; where the model decodes, also the most probable behavior of each frame."""
    scores = _score_suites(predictions, tested, job)
    content: dict[str, Any] = {"suites": {name: {**_summarize(s), "state": s.to_state()} for name, s in scores.items()}}
    if model.decoder is not None and model.directed is None:
        plain = {name: Prediction(p.probabilities, p.ethogram, p.rate, exclusive=p.exclusive) for name, p in predictions.items()}
        content["undecoded"] = {name: {"state": s.to_state()} for name, s in _score_suites(plain, tested, job).items()}
    content["confusion"] = next(iter(scores.values())).confusion()
    return content


def _score_suites(predictions: Mapping[str, Prediction], tested: Dataset, job: Job) -> dict[str, Scores]:
    from ethobench.metrics import score
    from ethobench.metrics.suites import Suite, suites

    scores = {}
    for name in job.suites:
        admissible: Mapping[str, Any] = predictions
        if type(suites[name]).admissible is not Suite.admissible:
            admissible = {r: suites[name].admissible(p.annotation, tested[r].metadata) for r, p in predictions.items()}
        scores[name] = score(admissible, tested, suite=name, annotator=job.annotator, resamples=0)
    return scores


def _summarize(scores: Scores) -> dict[str, Any]:
    values = scores.to_dict()
    individuals = values[f"{scores.suite.unit}s"]
    return {"overall": values["overall"], "individuals": {name: group["overall"] for name, group in individuals.items()}}


def _write(
    folder: Path,
    job: Job,
    model: Model,
    data: Dataset,
    predictions: Mapping[str, Prediction],
    scores: Mapping[str, Any],
    timing: Mapping[str, float],
    log: str,
    options: WorkerOptions,
) -> None:
    """Write the files of a finished job."""
    from ethobench.formats import write_recordings
    from ethobench.models.held_out import PREDICTIONS, PROBABILITIES, write_probabilities

    (folder / "scores.json").write_text(json.dumps(scores, separators=(",", ":")), encoding="utf-8")
    times = {**timing, "host": platform.node(), "pid": os.getpid(), "ended": time.time()}
    (folder / "timing.json").write_text(json.dumps(times), encoding="utf-8")
    (folder / "log.txt").write_text(log, encoding="utf-8")
    if model.fit_report:
        (folder / "fit_report.json").write_text(json.dumps(model.fit_report), encoding="utf-8")
    predicted = [
        Recording(name, individual=data[name].individual, annotations={job.model: p.annotation}) for name, p in predictions.items()
    ]
    write_recordings(predicted, folder / PREDICTIONS, "tidy_parquet")
    if "probabilities" in options.keep:
        write_probabilities(folder / PROBABILITIES, predictions)
    if "model" in (*options.keep, *job.keep):
        model.save(folder / "model")


def _load_data(job: Job) -> Dataset:
    """Load the dataset of a job, in the version that the job was planned with."""
    source = job.source or job.dataset, json.dumps(dict(job.options), sort_keys=True)
    data = load_cached(*source)
    if job.version and data.version != job.version:
        load_cached.cache_clear()  # the data may have changed since this worker read them
        data = load_cached(*source)
    if job.version and data.version != job.version:
        raise MismatchError(
            f"{job.dataset} has changed since the job was planned (version {data.version}, not {job.version}); run the command again"
        )
    return data.select(behaviors=job.behaviors) if job.behaviors else data


def _fit(model: Model, data: Dataset, job: Job, options: WorkerOptions) -> None:
    """Fit a model to the training recordings of a job, by its deadline if it has one."""
    if options.prepare_until > time.monotonic():
        with progress_range(0.0, 0.0):
            model.prepare(data, Deadline().until(options.prepare_until))
    if job.key in options.deadlines:
        model.deadline = Deadline().until(options.deadlines[job.key]).share(FITTING_SHARE)
    with progress_range(0.0, FITTING_SHARE):
        model.fit(data.select(recordings=job.train), annotator=job.train_annotator or job.annotator)


def _predict(model: Model, data: Dataset, names: Sequence[str]) -> dict[str, Prediction]:
    predictions = {}
    for index, name in enumerate(names):
        report_progress("predicting", FITTING_SHARE + (1 - FITTING_SHARE) * index / len(names))
        predictions[name] = model.predict(data[name])
    return predictions


def _initial_model(job: Job, store: Store) -> dict[str, Any]:
    """Return the hyper-parameter that names the model from which a job's model is initialized."""
    if not job.initial_job:
        return {}
    folder = store.path(job.initial_job, "model")
    if folder is None:
        reason = store.damage[-1].reason if store.damage else f"{store.folder(job.initial_job)} contains no model"
        raise MismatchError(f"the model of job {job.initial_job}, which this job is initialized from, cannot be used: {reason}")
    return {"init": str(folder)}


@lru_cache(maxsize=2)
def load_cached(dataset: str, options: str) -> Dataset:
    """Load a dataset, or return the one loaded before; `options` is JSON of the keyword arguments of `load_dataset`."""
    from ethobench.datasets import load_dataset

    return load_dataset(dataset, **json.loads(options))


def _renew_lease(leases: Leases, key: str, stop: threading.Event) -> None:
    while not stop.wait(LEASE_SECONDS / 4):
        try:
            leases.renew(key)
        except OSError:  # the disk may be full or disconnected for a while; then the lease expires, as it should
            continue
