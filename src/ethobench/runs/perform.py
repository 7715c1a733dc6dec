"""What a worker does: train, predict, score, store."""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import threading
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethobench.core import Dataset, Prediction, Recording
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.files import write_text
from ethobench.core.progress import progress_listener, progress_range, report_progress
from ethobench.features.cache import feature_cache
from ethobench.runs.claims import LEASE, StoreError
from ethobench.runs.plan import Job
from ethobench.runs.store import Store

if TYPE_CHECKING:
    from ethobench.models import Model

DONE, BUSY, FAILED = "done", "busy", "failed"
KEEPABLE = ("probabilities", "model")
MOST_DEATHS = 3
FITTING = 0.78  # of the time for a job; the rest is for predicting and scoring


class DiedTooOften(EthobenchError):  # noqa: N818
    """A job that kills its workers."""


@dataclass(frozen=True)
class How:
    """What a worker must know besides the job; none of it changes the result.

    Attributes
    ----------
    run : str
        The run for which the job is done.
    keep : tuple of {"probabilities", "model"}
        What to store besides the bouts.
    data : str
        Where named datasets lie, for workers whose own environment does not tell.
    deadlines : mapping of str to float
        By when jobs should be done, by key, on the clock `time.monotonic`: only for workers on the machine of the run. Jobs whose
        results depend on it have it in their key as `Job.budget`.
    features : str
        Folder where features are kept for other jobs (`feature_cache`); none unless given.
    prepare_until : float
        Until when, on the same clock, workers compute features of all recordings together before their first training.
    """

    run: str = ""
    keep: tuple[str, ...] = ()
    data: str = ""
    deadlines: Mapping[str, float] = field(default_factory=dict)
    features: str = ""
    prepare_until: float = 0.0


def perform(plain: Mapping[str, Any], root: str, how: How | None = None) -> tuple[str, str]:
    """Do one job and store what came of it.

    Parameters
    ----------
    plain : mapping
        The job, as `Job.to_dict` gives it.
    root : str
        The store.
    how : How, optional

    Returns
    -------
    state : {"done", "busy", "failed"}
        ``"busy"`` if another process has it.
    told : str
        Why it failed.

    Raises
    ------
    StoreError
        If the store cannot be written; no other job could be stored either.
    """
    how = how or How()
    job, store = Job.from_dict(plain), Store(root)
    if store.has(job.key):
        return DONE, ""
    deaths = store.claims.take(job.key, how.run)
    if deaths is None:
        return BUSY, ""
    if store.has(job.key):  # another process finished it, and released its claim, just before this one took it
        store.claims.release(job.key)
        return DONE, ""
    stop = threading.Event()
    keeper = threading.Thread(target=_keep_lease, args=(store, job.key, stop), daemon=True)
    keeper.start()
    try:
        if deaths >= MOST_DEATHS:
            raise DiedTooOften(f"its worker died {deaths} times")
        if how.data and "ETHOBENCH_DATA" not in os.environ and Path(how.data).is_dir():
            os.environ["ETHOBENCH_DATA"] = how.data
        with progress_listener(ProgressFile(store.progress_file(job.key))), feature_cache(how.features or None):
            _work(job, store, how)
    except StoreError:
        raise
    except Exception as error:
        told = str(error) if isinstance(error, EthobenchError) else f"{type(error).__name__}: {error}"
        store.fail(job, told, traceback.format_exc())
        return FAILED, told
    finally:
        stop.set()
        keeper.join()
        store.claims.release(job.key)
        store.progress_file(job.key).unlink(missing_ok=True)
    return DONE, ""


class ProgressFile:
    """A listener to progress that keeps the latest report in a small file, for the run to read.

    Parameters
    ----------
    path : Path
        Written at most once in `every` seconds, and not at all by jobs that are done sooner.
    every : float
    """

    def __init__(self, path: Path, every: float = 1.0) -> None:
        self.path, self.every = path, every
        self._written = time.monotonic()

    def __call__(self, stage: str, fraction: float) -> None:
        """Keep a report, unless the last one is recent."""
        now = time.monotonic()
        if now - self._written < self.every:
            return
        self._written = now
        with suppress(OSError):  # a full disk must not end a training
            write_text(self.path, json.dumps({"stage": stage, "fraction": fraction}), overwrite=True, durable=False)


def _work(job: Job, store: Store, how: How) -> None:
    from ethobench.formats import write_recordings
    from ethobench.metrics import score
    from ethobench.models import create_model
    from ethobench.models.held_out import PREDICTIONS, PROBABILITIES, write_probabilities

    log, timing, mark = io.StringIO(), {}, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report_progress("reading", 0.0)
        data = _data_of(job)
        timing["load"] = time.perf_counter() - mark
        mark = time.perf_counter()
        model = create_model(job.model, seed=job.seed, **{**job.params, **_beginning(job, store)})
        model.checkpoint = store.root / "checkpoints" / job.key
        _fit(model, data, job, how)
        model.style = job.annotator if job.teacher else None
        timing["fit"] = time.perf_counter() - mark
        mark = time.perf_counter()
        predictions = _predict(model, data, job.test)
        timing["predict"] = time.perf_counter() - mark
        report_progress("scoring", 0.99)
        mark = time.perf_counter()
        tested = data.select(recordings=job.test)
        scores = {name: score(predictions, tested, suite=name, annotator=job.annotator, resamples=0) for name in job.suites}
        suites = {name: {**_figures(s), "state": s.to_state()} for name, s in scores.items()}
        undecoded = _undecoded(predictions, tested, job) if model.decoder is not None and model.directed is None else {}
        confusion = next(iter(scores.values())).confusion()
        timing["score"] = time.perf_counter() - mark
    log.write(f"{job}\n")
    log.writelines(f"{w.category.__name__}: {w.message}\n" for w in caught)

    def fill(folder: Path) -> None:
        (folder / "scores.json").write_text(
            json.dumps({"suites": suites, **undecoded, "confusion": confusion}, separators=(",", ":")), encoding="utf-8"
        )
        (folder / "timing.json").write_text(
            json.dumps({**timing, "host": platform.node(), "pid": os.getpid(), "ended": time.time()}), encoding="utf-8"
        )
        (folder / "log.txt").write_text(log.getvalue(), encoding="utf-8")
        if model.fit_report:
            (folder / "account.json").write_text(json.dumps(model.fit_report), encoding="utf-8")
        made = [Recording(name, individual=data[name].individual, annotations={job.model: p.annotation}) for name, p in predictions.items()]
        write_recordings(made, folder / PREDICTIONS, "tidy_parquet")
        if "probabilities" in how.keep:
            write_probabilities(folder / PROBABILITIES, predictions)
        if "model" in (*how.keep, *job.keep):
            model.save(folder / "model")

    store.finish(job, fill)
    shutil.rmtree(model.checkpoint, ignore_errors=True)


def _data_of(job: Job) -> Dataset:
    """Load the dataset of a job, in the version that the job was planned with."""
    source = job.source or job.dataset, json.dumps(dict(job.options), sort_keys=True)
    data = _load(*source)
    if job.version and data.version != job.version:
        _load.cache_clear()  # the data may have changed since this worker read them
        data = _load(*source)
    if job.version and data.version != job.version:
        raise MismatchError(f"{job.dataset} has changed since the job was planned (version {data.version}, not {job.version})")
    return data.select(behaviors=job.behaviors) if job.behaviors else data


def _fit(model: Model, data: Dataset, job: Job, how: How) -> None:
    """Train on the job's training recordings, by the job's deadline if there is one."""
    if how.prepare_until > time.monotonic():
        with progress_range(0.0, 0.0):
            model.prepare(data, Deadline().until(how.prepare_until))
    if job.key in how.deadlines:
        model.deadline = Deadline().until(how.deadlines[job.key]).share(FITTING)
    with progress_range(0.0, FITTING):
        model.fit(data.select(recordings=job.train), annotator=job.teacher or job.annotator)


def _predict(model: Model, data: Dataset, names: Sequence[str]) -> dict[str, Prediction]:
    predictions = {}
    for place, name in enumerate(names):
        report_progress("predicting", FITTING + (1 - FITTING) * place / len(names))
        predictions[name] = model.predict(data[name])
    return predictions


def _beginning(job: Job, store: Store) -> dict[str, Any]:
    """Return the model to begin with as the hyper-parameter that it is."""
    if not job.begin_with:
        return {}
    folder = store.path(job.begin_with, "model")
    if folder is None:
        reason = store.damaged[-1] if store.damaged else f"it was not kept in {store.folder(job.begin_with)}"
        raise MismatchError(f"the model of job {job.begin_with}, from which this one is initialised, cannot be used: {reason}")
    return {"init": str(folder)}


def _undecoded(predictions: Mapping[str, Prediction], tested: Dataset, job: Job) -> dict[str, Any]:
    """Score what the probabilities say frame by frame, so that it is seen what decoding does."""
    from ethobench.metrics import score

    plain = {name: Prediction(p.probabilities, p.ethogram, p.rate, exclusive=p.exclusive) for name, p in predictions.items()}
    scores = {name: score(plain, tested, suite=name, annotator=job.annotator, resamples=0) for name in job.suites}
    return {"undecoded": {name: {"state": s.to_state()} for name, s in scores.items()}}


def _figures(scores: Any) -> dict[str, Any]:
    facts = scores.to_dict()
    return {"overall": facts["overall"], "individuals": {who: part["overall"] for who, part in facts["individuals"].items()}}


@lru_cache(maxsize=2)
def _load(dataset: str, options: str) -> Dataset:
    from ethobench.datasets import load_dataset

    return load_dataset(dataset, **json.loads(options))


def _keep_lease(store: Store, key: str, stop: threading.Event) -> None:
    while not stop.wait(LEASE / 4):
        try:
            store.claims.renew(key)
        except OSError:  # the disk may be full or gone for a while; the lease then runs out, which is right
            continue
