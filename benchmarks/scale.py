"""Measure how runs scale: the real planner, store and engine with jobs that sleep or compute, and write files like those of real jobs.

    python benchmarks/scale.py [--jobs 10000] [--workers 8] [--executors pool,dask] [--folder DIR]

Prints, for each executor: the overhead of a job, the size of the store, the time to resume when all but one
job are done, and the time of `results`; then how well two cores are used by jobs that compute for a second.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ethobench import Annotation, load_dataset, score
from ethobench.benchmarks import results_table
from ethobench.core import Recording
from ethobench.formats import write_recordings
from ethobench.runs import Engine, Job, Store
from ethobench.runs.executors import ClusterNodes, cluster_pool, local_pool
from ethobench.runs.worker import BUSY, DONE

OPTIONS = {"individuals": 4, "seconds": 60.0}
_template: dict[str, Any] = {}


def template() -> dict[str, Any]:
    """Return what every job writes: scores with their counts, and the bouts of four recordings; computed once in each worker."""
    if not _template:
        data = load_dataset("synthetic/tag", **OPTIONS)
        random = np.random.default_rng(0)
        wrong = {}
        for recording in data:
            truth = next(iter(recording.annotations.values()))
            wrong[recording.id] = Annotation.from_frames(np.roll(truth.to_codes(), int(random.integers(5, 50))), data.ethogram, truth.rate)
        scores = score(wrong, data, resamples=0)
        suite = {"overall": scores.to_dict()["overall"], "individuals": {}, "state": scores.to_state()}
        _template["scores"] = json.dumps({"suites": {"ethobench": suite}}, separators=(",", ":"))
        _template["recordings"] = [Recording(name, annotations={"m": a}) for name, a in wrong.items()]
    return _template


def run_mock_job(values: dict[str, Any], root: str, options: Any = None) -> tuple[str, str]:
    """Replace `run_job`: acquire a lease, work, store and release as it does; only the work is a mock."""
    job, store = Job.from_dict(values), Store(root)
    if store.has(job.key):
        return DONE, ""
    if store.leases.acquire(job.key, options.run) is None:
        return BUSY, ""
    try:
        work(job.params)
        content = template()

        def fill(folder: Path) -> None:
            (folder / "scores.json").write_text(content["scores"], encoding="utf-8")
            timing = {"fit": 0.0, "predict": 0.0, "host": "here", "pid": os.getpid()}
            (folder / "timing.json").write_text(json.dumps(timing), encoding="utf-8")
            (folder / "log.txt").write_text(str(job), encoding="utf-8")
            write_recordings(content["recordings"], folder / "predictions.parquet", "tidy_parquet")

        store.finish(job, fill)
    finally:
        store.leases.release(job.key)
    return DONE, ""


def work(params: Any) -> None:
    """Sleep, or compute until a processor time is reached."""
    if "sleep" in params:
        time.sleep(params["sleep"])
        return
    start, x = time.process_time(), np.random.default_rng(0).random(1000)
    while time.process_time() - start < params["compute"]:
        x = np.sort(x)[::-1].copy()


def plan(n_jobs: int, **params: float) -> Iterator[list[Job]]:
    """Plan like a search: many cells tried for each final job, as in BEBE."""
    recordings = tuple(f"recording{k:03d}" for k in range(60))
    yield [
        Job(
            "scale",
            f"dataset{k % 9}",
            "1",
            recordings[:48],
            recordings[48:],
            f"model{k // 9 % 12}",
            params={**params, "cell": k},
            stage="final" if k < n_jobs // 20 else "search",
            fold=k % 5,
        )
        for k in range(n_jobs)
    ]


def processor_time() -> float:
    """Return the processor time of this process and its ended children, in seconds."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measured(run: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, cpu = time.perf_counter(), processor_time()
    result = run()
    return time.perf_counter() - wall, processor_time() - cpu, result


def workers_for(kind: str, count: int) -> Any:
    return local_pool(count) if kind == "pool" else cluster_pool("local", ClusterNodes(count, 1))


def run_jobs(store: Store, kind: str, count: int, n_jobs: int, **params: float) -> Any:
    with workers_for(kind, count) as pool:
        return Engine(store, pool.make_executor, pool.count, run_job=run_mock_job).run([plan(n_jobs, **params)])


def show(name: str, value: str, target: str = "") -> None:
    print(f"{name:<66}{value:>22}  {target}", flush=True)


def measure(kind: str, workers: int, n_jobs: int, folder: Path) -> None:
    """Print the measurements of one executor."""
    root = folder / kind
    _, idle, _ = measured(lambda: run_jobs(Store(folder / f"{kind}-idle"), kind, workers, workers, sleep=0.0))
    wall, cpu, summary = measured(lambda: run_jobs(Store(root), kind, workers, n_jobs, sleep=0.05))
    assert summary.done == n_jobs, summary
    name = f"{kind}, {n_jobs:,} jobs that sleep 50 ms, {workers} workers:"
    show(f"{name} wall", f"{wall:.0f} s")
    show("  processor time of a job beyond starting the workers", f"{(cpu - idle) / n_jobs * 1e3:.1f} ms", "<= 20 ms")
    files = [path for path in root.rglob("*") if path.is_file()]
    size = sum(path.stat().st_blocks * 512 for path in files)
    show("  store: files, size on disk", f"{len(files):,}, {size / 1e6:.0f} MB")
    victim = next(iter(Store(root).finished()))
    shutil.rmtree(Store(root).folder(victim))
    seconds, _, summary = measured(lambda: run_jobs(Store(root), "pool", 1, n_jobs, sleep=0.05))
    assert (summary.done, summary.reused) == (1, n_jobs - 1), summary
    show(f"  resume with {n_jobs - 1:,} done", f"{seconds:.1f} s", "<= 5 s")
    seconds, _, rows = measured(lambda: results_table(Store(root)))
    show(f"  results ({len(rows):,} rows)", f"{seconds:.1f} s", "<= 5 s")


def efficiency(kind: str, folder: Path, n_jobs: int = 120) -> None:
    """Print the efficiency of jobs that compute for a second, compared with plain processes that compute the same."""
    cores = os.cpu_count() or 1
    with workers_for(kind, cores) as pool, ProcessPoolExecutor(cores) as bare:
        list(bare.map(work, [{"compute": 0.1}] * cores))
        warm_up = Engine(Store(folder / f"{kind}-warm"), pool.make_executor, pool.count, run_job=run_mock_job)
        warm_up.run([plan(cores, sleep=0.0)])
        walls = [0.0, 0.0]
        for turn in range(2):  # alternating, because the load of the machine varies
            walls[0] += measured(lambda: list(bare.map(work, [{"compute": 1.0}] * (n_jobs // 2))))[0]
            store = Store(folder / f"{kind}-busy{turn}")
            engine = Engine(store, pool.make_executor, pool.count, run_job=run_mock_job)
            walls[1] += measured(partial(engine.run, [plan(n_jobs // 2, compute=1.0)]))[0]
    name = f"{kind}: efficiency of {cores} cores, {n_jobs} jobs of 1 s of computing:"
    show(f"{name} of the cores' time", f"{n_jobs / cores / walls[1]:.0%}", ">= 90 % on an idle machine")
    show("  relative to plain processes", f"{walls[0] / walls[1]:.0%}", ">= 90 %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--executors", default="pool,dask")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        show(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}", "")
        for kind in arguments.executors.split(","):
            measure(kind, arguments.workers, arguments.jobs, Path(folder))
            efficiency(kind, Path(folder))


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # workers import this file as a module
    import scale

    scale.main()
