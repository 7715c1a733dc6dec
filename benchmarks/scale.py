"""How runs scale: the real planner, store and engine with jobs that sleep or compute, and write what real jobs write.

    python benchmarks/scale.py [--jobs 10000] [--workers 8] [--executors pool,dask] [--folder DIR]

Prints, for each executor: the cost of a job beyond its own work, the size of the store, the time to resume when all but one
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
from pathlib import Path
from typing import Any

import numpy as np

from ethobench import Annotation, load_dataset, score
from ethobench.benchmarks import results_table
from ethobench.core import Recording
from ethobench.formats import write_recordings
from ethobench.runs import Engine, Job, Store, execute
from ethobench.runs.worker import BUSY, DONE
from ethobench.runs.executors import ClusterNodes, cluster_pool, local_pool

OPTIONS = {"individuals": 4, "seconds": 60.0}
_made: dict[str, Any] = {}


def template() -> dict[str, Any]:
    """Make once in each worker what every job writes: scores with their counts, and the bouts of four recordings."""
    if not _made:
        data = load_dataset("synthetic/tag", **OPTIONS)
        random = np.random.default_rng(0)
        wrong = {}
        for recording in data:
            truth = next(iter(recording.annotations.values()))
            wrong[recording.id] = Annotation.from_frames(np.roll(truth.to_codes(), int(random.integers(5, 50))), data.ethogram, truth.rate)
        scores = score(wrong, data, resamples=0)
        facts = scores.to_dict()
        suite = {"overall": facts["overall"], "individuals": {}, "state": scores.to_state()}
        _made["scores"] = json.dumps({"suites": {"ethobench": suite}}, separators=(",", ":"))
        _made["recordings"] = [Recording(name, annotations={"m": a}) for name, a in wrong.items()]
    return _made


def sleeping(plain: dict[str, Any], root: str, how: Any = None) -> tuple[str, str]:
    """Stand in for `perform`: claim, work, store, release; only the work is made up."""
    job, store = Job.from_dict(plain), Store(root)
    if store.has(job.key):
        return DONE, ""
    if store.leases.acquire(job.key, how.run) is None:
        return BUSY, ""
    try:
        work(job.params)
        made = template()

        def fill(folder: Path) -> None:
            (folder / "scores.json").write_text(made["scores"], encoding="utf-8")
            timing = {"fit": 0.0, "predict": 0.0, "host": "here", "pid": os.getpid()}
            (folder / "timing.json").write_text(json.dumps(timing), encoding="utf-8")
            (folder / "log.txt").write_text(str(job), encoding="utf-8")
            write_recordings(made["recordings"], folder / "predictions.parquet", "tidy_parquet")

        store.finish(job, fill)
    finally:
        store.leases.release(job.key)
    return DONE, ""


def work(params: Any) -> None:
    """Sleep, or compute until so much time of the processor is spent."""
    if "sleep" in params:
        time.sleep(params["sleep"])
        return
    begun, x = time.process_time(), np.random.default_rng(0).random(1000)
    while time.process_time() - begun < params["compute"]:
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
    """Seconds of the processor that this process and its ended children have taken."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measured(run: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, cpu = time.perf_counter(), processor_time()
    found = run()
    return time.perf_counter() - wall, processor_time() - cpu, found


def workers_for(kind: str, count: int) -> Any:
    return local_pool(count) if kind == "pool" else cluster_pool("local", ClusterNodes(count, 1))


def run_jobs(store: Store, kind: str, count: int, n_jobs: int, **params: float) -> Any:
    with workers_for(kind, count) as staff:
        return Engine(store, staff.make_executor, staff.count).run([plan(n_jobs, **params)])


def show(name: str, value: str, wanted: str = "") -> None:
    print(f"{name:<66}{value:>22}  {wanted}", flush=True)


def measure(kind: str, workers: int, n_jobs: int, folder: Path) -> None:
    """Print the figures of one executor."""
    root = folder / kind
    _, idle, _ = measured(lambda: run_jobs(Store(folder / f"{kind}-idle"), kind, workers, workers, sleep=0.0))
    wall, cpu, outcome = measured(lambda: run_jobs(Store(root), kind, workers, n_jobs, sleep=0.05))
    assert outcome.done == n_jobs, outcome
    name = f"{kind}, {n_jobs:,} jobs that sleep 50 ms, {workers} workers:"
    show(f"{name} wall", f"{wall:.0f} s")
    show("  processor time of a job beyond starting the workers", f"{(cpu - idle) / n_jobs * 1e3:.1f} ms", "<= 20 ms")
    files = [path for path in root.rglob("*") if path.is_file()]
    size = sum(path.stat().st_blocks * 512 for path in files)
    show("  store: files, size on disk", f"{len(files):,}, {size / 1e6:.0f} MB")
    victim = next(iter(Store(root).finished()))
    shutil.rmtree(Store(root).folder(victim))
    seconds, _, outcome = measured(lambda: run_jobs(Store(root), "pool", 1, n_jobs, sleep=0.05))
    assert (outcome.done, outcome.there) == (1, n_jobs - 1), outcome
    show(f"  resume with {n_jobs - 1:,} done", f"{seconds:.1f} s", "<= 5 s")
    seconds, _, rows = measured(lambda: results_table(Store(root)))
    show(f"  results ({len(rows):,} rows)", f"{seconds:.1f} s", "<= 5 s")


def efficiency(kind: str, folder: Path, n_jobs: int = 120) -> None:
    """Print how well the cores are used by jobs that compute for a second, against bare processes that compute the same."""
    cores = os.cpu_count() or 1
    with workers_for(kind, cores) as staff, ProcessPoolExecutor(cores) as bare:
        list(bare.map(work, [{"compute": 0.1}] * cores))
        Engine(Store(folder / f"{kind}-warm"), staff.make_executor, staff.count).run([plan(cores, sleep=0.0)])
        walls = [0.0, 0.0]
        for turn in range(2):  # in turns, because other work on the machine comes and goes
            walls[0] += measured(lambda: list(bare.map(work, [{"compute": 1.0}] * (n_jobs // 2))))[0]
            store = Store(folder / f"{kind}-busy{turn}")
            walls[1] += measured(lambda: Engine(store, staff.make_executor, staff.count).run([plan(n_jobs // 2, compute=1.0)]))[0]  # noqa: B023
    name = f"{kind}: efficiency of {cores} cores, {n_jobs} jobs of 1 s of computing:"
    show(f"{name} of the cores' time", f"{n_jobs / cores / walls[1]:.0%}", ">= 90 % on an idle machine")
    show("  against bare processes", f"{walls[0] / walls[1]:.0%}", ">= 90 %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--executors", default="pool,dask")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    execute.perform = sleeping  # the only thing that is made up: what a worker does
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        show(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}", "")
        for kind in chosen.executors.split(","):
            measure(kind, chosen.workers, chosen.jobs, Path(folder))
            efficiency(kind, Path(folder))


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # so that workers find this file as a module
    import scale

    scale.main()
