"""Measure batch prediction: the gain of a second worker, the overhead of a recording, and a worker that is killed.

    python benchmarks/batch_prediction.py [--recordings 16] [--minutes 30] [--small 1000] [--folder DIR]

Recordings are synthetic. One and two workers alternate, because the load of the machine varies, and include the start of the processes.
The overhead is the time of a batch in one process beyond that of reading, predicting and writing the same files in a loop. The last part
kills one of two Dask workers with SIGKILL while it predicts, and counts how often each recording was predicted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

import ethobench as eb
from ethobench.models.audit import LOG
from ethobench.runs.executors import ClusterNodes, cluster_pool, local_pool

SMALL_SECONDS = 20.0
RATE = 30.0


def write_poses(recording: eb.Recording, path: Path, repeats: int = 1) -> None:
    """Write the poses of a recording as DeepLabCut does, repeated to make a longer one."""
    poses = recording.signals
    positions, confidence = np.tile(poses.positions, (repeats, 1, 1, 1)), np.tile(poses.confidence, (repeats, 1, 1))
    longer = eb.Poses(positions, confidence, poses.individuals, poses.keypoints, poses.rate)
    eb.write_recordings([eb.Recording(path.stem, signals=longer)], path, "deeplabcut")


def prepare(folder: Path, n_long: int, minutes: int, n_small: int) -> None:
    """Train a model, and write long and small recordings."""
    data = eb.load_dataset("synthetic/pose", individuals=4, seconds=60)
    eb.create_model("rf", trees=50).fit(data.select(individual=["animal01", "animal02"])).save(folder / "model")
    for name, count, repeats in (("long", n_long, minutes), ("small", n_small, 1)):
        (folder / name).mkdir()
        recordings = eb.load_dataset("synthetic/pose", individuals=4, seconds=60.0 if name == "long" else SMALL_SECONDS).recordings
        for k in range(count):
            path = folder / name / f"m{k:04d}.csv"
            if k < len(recordings):
                write_poses(recordings[k], path, repeats)
            else:
                path.write_bytes((folder / name / f"m{k % len(recordings):04d}.csv").read_bytes())


def show(name: str, value: str, target: str = "") -> None:
    print(f"{name:<78} {value:>12}  {target}", flush=True)


def processor_time() -> float:
    """Return the processor time of this process and its ended children, in seconds."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measure_workers(folder: Path, rounds: int = 2) -> None:
    """Compare one worker with two, and with two commands that predict one half of the recordings each."""
    files = sorted((folder / "long").iterdir())
    walls = {"one": 0.0, "two": 0.0, "commands": 0.0}
    processor = dict.fromkeys(walls, 0.0)
    for turn in range(rounds):
        for name in walls:
            out, start, used_before = folder / f"{name}-{turn}", time.perf_counter(), processor_time()
            if name == "commands":
                call = [sys.executable, "-m", "ethobench", "predict", str(folder / "model"), "--workers", "1", "--rate", str(RATE)]
                halves = [subprocess.Popen([*call, *map(str, files[k::2]), "--out", str(out)], stdout=subprocess.PIPE) for k in (0, 1)]
                assert [process.wait() for process in halves] == [0, 0]
            else:
                pool = local_pool(1 if name == "one" else 2)
                summary = eb.predict_files(folder / "model", files, out, rate=RATE, pool=pool)
                assert len(summary.predicted) == len(files), summary.failures
            walls[name] += time.perf_counter() - start
            processor[name] += processor_time() - used_before
    show(f"{len(files)} recordings, one worker: seconds", f"{walls['one'] / rounds:.1f}")
    show(f"{len(files)} recordings, two workers: times as fast", f"{walls['one'] / walls['two']:.2f}", ">= 1.8 on two idle cores")
    show("  by processor time, which other programs affect less", f"{2 * processor['one'] / processor['two']:.2f}", ">= 1.8")
    show("  relative to two commands with one half each", f"{walls['commands'] / walls['two']:.0%}", ">= 90 %")


def measure_overhead(folder: Path, count: int = 100) -> None:
    """Compare a batch in this process with a loop over the same files."""
    files = sorted((folder / "small").iterdir())[:count]
    model = eb.load_model(folder / "model")
    (folder / "loop").mkdir()
    elapsed = {"loop": 0.0, "batch": 0.0}
    for turn in range(4):
        some_files = files[turn::4]
        start = time.perf_counter()
        for file in some_files:
            (recording,) = eb.read_recordings(file, warn=False, rate=RATE)
            annotated = recording.copy(annotations={"rf": model.annotate(recording)}, signals=None)
            eb.write_recordings([annotated], folder / "loop" / f"{file.stem}.csv", "tidy")
        elapsed["loop"] += time.perf_counter() - start
        start = time.perf_counter()
        assert len(eb.predict_files(folder / "model", some_files, folder / "overhead", rate=RATE).predicted) == len(some_files)
        elapsed["batch"] += time.perf_counter() - start
    per_recording = {name: 1000 * seconds / len(files) for name, seconds in elapsed.items()}
    show("small recording, read, predicted and written in a loop: milliseconds", f"{per_recording['loop']:.0f}")
    show("overhead of a recording of a batch: milliseconds", f"{per_recording['batch'] - per_recording['loop']:.0f}", "<= 50")


def kill_a_worker(out: Path, killed: list[int]) -> None:
    """Kill one worker that is predicting, once ten recordings are finished."""
    while not killed:
        holders = [path for path in (out / LOG / "leases").glob("*") if re.fullmatch("[0-9a-f]{24}", path.name)]
        if len(list(out.glob("*.csv"))) >= 10 and holders:
            try:
                pid = json.loads(holders[0].read_text(encoding="utf-8"))["pid"]
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            except (OSError, ValueError):
                continue
        time.sleep(0.01)


def measure_kill(folder: Path) -> None:
    """Predict small recordings on a local Dask cluster while one of its two workers is killed."""
    out, killed = folder / "dask", []
    threading.Thread(target=kill_a_worker, args=(out, killed), daemon=True).start()
    start = time.perf_counter()
    summary = eb.predict_files(folder / "model", folder / "small", out, rate=RATE, pool=cluster_pool("local", ClusterNodes(2, 1)))
    elapsed = time.perf_counter() - start
    log = "".join(path.read_text(encoding="utf-8") for path in (out / LOG / "logs").iterdir())
    counts = Counter(re.findall(r" ([0-9a-f]{24}) .*: done$", log, re.MULTILINE))
    n_files = len(list((folder / "small").iterdir()))
    show(f"{n_files} recordings, two Dask workers, one killed: seconds", f"{elapsed:.0f}")
    show("  predicted, failed", f"{len(summary.predicted)}, {len(summary.failures)}", f"{n_files}, 0")
    show("  most often predicted: times", f"{max(counts.values())}", "1")
    assert killed, "no worker was killed"
    assert len(list(out.glob("*.csv"))) == len(counts) == n_files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=16)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--small", type=int, default=1000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        show(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}", "")
        prepare(folder, arguments.recordings, arguments.minutes, arguments.small)
        measure_overhead(folder)
        measure_workers(folder)
        measure_kill(folder)


if __name__ == "__main__":
    main()
