"""What a worker does: train, predict, score, store."""

from __future__ import annotations

import io
import json
import os
import platform
import threading
import time
import traceback
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ethobench.core import Dataset, Recording
from ethobench.core.errors import MismatchError
from ethobench.runs.plan import Job
from ethobench.runs.store import LEASE, Store

DONE, BUSY, FAILED = "done", "busy", "failed"


def perform(fields: Mapping[str, Any], root: str) -> tuple[str, str]:
    """Do one job and store what came of it.

    Parameters
    ----------
    fields : mapping
        The job, as `Job.to_dict` gives it.
    root : str
        The store.

    Returns
    -------
    state : {"done", "busy", "failed"}
        ``"busy"`` if another process has it.
    told : str
        Why it failed.
    """
    job, store = Job.from_dict(fields), Store(root)
    if store.has(job.key):
        return DONE, ""
    if not store.claim(job.key):
        return BUSY, ""
    stop = threading.Event()
    keeper = threading.Thread(target=_keep_lease, args=(store, job.key, stop), daemon=True)
    keeper.start()
    try:
        _work(job, store)
    except OSError:
        raise
    except Exception as error:
        store.fail(job, f"{type(error).__name__}: {error}", traceback.format_exc())
        return FAILED, f"{type(error).__name__}: {error}"
    finally:
        stop.set()
        keeper.join()
        store.release(job.key)
    return DONE, ""


def _work(job: Job, store: Store) -> None:
    from ethobench.formats import write_recordings
    from ethobench.metrics import score
    from ethobench.models import create_model

    log, timing, mark = io.StringIO(), {}, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = _load(job.dataset, json.dumps(dict(job.options), sort_keys=True))
        if job.version and data.version != job.version:
            raise MismatchError(f"{job.dataset} has changed since the job was planned (version {data.version}, not {job.version})")
        timing["load"] = time.perf_counter() - mark
        mark = time.perf_counter()
        model = create_model(job.model, seed=job.seed, **job.params).fit(data.select(recordings=job.train), annotator=job.annotator)
        timing["fit"] = time.perf_counter() - mark
        mark = time.perf_counter()
        predictions = {name: model.predict(data[name]) for name in job.test}
        timing["predict"] = time.perf_counter() - mark
        mark = time.perf_counter()
        tested = data.select(recordings=job.test)
        scores = {name: score(predictions, tested, suite=name, annotator=job.annotator, resamples=0) for name in job.suites}
        suites = {name: {**_figures(s), "state": s.to_state()} for name, s in scores.items()}
        timing["score"] = time.perf_counter() - mark
    log.write(f"{job}\n")
    log.writelines(f"{w.category.__name__}: {w.message}\n" for w in caught)

    def fill(folder: Path) -> None:
        (folder / "scores.json").write_text(json.dumps({"suites": suites}, separators=(",", ":")), encoding="utf-8")
        (folder / "timing.json").write_text(
            json.dumps({**timing, "host": platform.node(), "pid": os.getpid(), "ended": time.time()}), encoding="utf-8"
        )
        (folder / "log.txt").write_text(log.getvalue(), encoding="utf-8")
        made = [Recording(name, individual=data[name].individual, annotations={job.model: p.annotation}) for name, p in predictions.items()]
        write_recordings(made, folder / "predictions.parquet", "tidy_parquet")

    store.finish(job, fill)


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
            store.renew(key)
        except OSError:  # the disk may be full or gone for a while; the lease then runs out, which is right
            continue
