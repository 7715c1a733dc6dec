"""Measure batch prediction: the gain of a second worker, the overhead of a recording, and a worker that is killed.

    python benchmarks/batch_prediction.py [--recordings 16] [--rounds 2] [--small 1000] [--parts workers overhead kill] [--folder DIR]

Recordings are synthetic: ten minutes of the poses of two animals at 30 Hz, and an hour of a tag at 25 Hz, predicted by model auto. Commands
with one and two workers alternate, because the load of the machine varies, and include the start of all processes. The best of several
rounds counts. Each worker uses one thread. The processor time is that of all processes of a command. On two idle cores, a second worker
makes a command at most as much faster as twice the processor time with one worker is larger than the one with two.

The overhead is the time of a batch in one process beyond that of reading, predicting and writing the same files in a loop. The last part
kills one of two Dask workers with SIGKILL while it predicts, and counts how often each recording was predicted.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
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
from ethobench.runs.executors import ClusterNodes, cluster_pool

SMALL_SECONDS = 20.0
RATE = 30.0
KINDS = {"pose": ("ten minutes of poses", 600), "tag": ("an hour of a tag", 3600)}
PR_SET_CHILD_SUBREAPER = 36


def write_signals(recording: eb.Recording, path: Path) -> None:
    """Write poses as DeepLabCut does, and a tag as a table with a column of times."""
    if isinstance(recording.signals, eb.Poses):
        eb.write_recordings([eb.Recording(path.stem, signals=recording.signals)], path, "deeplabcut")
        return
    table = np.column_stack([np.arange(recording.n_frames) / recording.rate, recording.signals.values])
    np.savetxt(path, table, delimiter=",", header=",".join(["time", *recording.signals.channels]), comments="", fmt="%.6f")


def write_files(folder: Path, kind: str, seconds: float, count: int) -> list[Path]:
    """Write recordings of four animals, repeatedly."""
    folder.mkdir()
    paths = [folder / f"m{k:04d}.csv" for k in range(count)]
    recordings = eb.load_dataset(f"synthetic/{kind}", individuals=4, seconds=seconds).recordings
    for k, path in enumerate(paths):
        if k < len(recordings):
            write_signals(recordings[k], path)
        else:
            path.write_bytes(paths[k % len(recordings)].read_bytes())
    return paths


def train(name: str, kind: str, folder: Path) -> None:
    data = eb.load_dataset(f"synthetic/{kind}", individuals=4, seconds=60)
    eb.create_model(name).fit(data.select(individual=["animal01", "animal02"])).save(folder)


def show(name: str, value: str, target: str = "") -> None:
    print(f"{name:<78} {value:>12}  {target}", flush=True)


def wait_for_children() -> None:
    """Wait for processes that a command has left behind, which are children of this process since it is their reaper."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def run_command(*arguments: object) -> tuple[float, float]:
    """Run a command to its end; return its time and the processor time of its processes, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "ethobench", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
    elapsed = time.perf_counter() - start
    wait_for_children()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_workers(folder: Path, kind: str, count: int, rounds: int) -> None:
    """Compare one worker with two."""
    description, seconds = KINDS[kind]
    train("auto", kind, folder / f"model-{kind}")
    write_files(folder / kind, kind, seconds, count)
    measured: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    for turn in range(rounds):
        for workers, times in measured.items():
            out = folder / f"{kind}-{workers}-{turn}"
            options = ("--rate", RATE) if kind == "pose" else ()
            times.append(run_command("predict", folder / f"model-{kind}", folder / kind, "--out", out, "--workers", workers, *options))
            assert len(list(out.glob("*.csv"))) == count
    (wall_one, used_one), (wall_two, used_two) = (map(min, zip(*times, strict=True)) for times in measured.values())
    show(f"{count} recordings, {description}, one worker: seconds, processor time", f"{wall_one:.1f}, {used_one:.1f}")
    show("  two workers: seconds, processor time", f"{wall_two:.1f}, {used_two:.1f}")
    show("  two workers: times as fast", f"{wall_one / wall_two:.2f}", ">= 1.8 on two idle cores")
    show("  by processor time, which other programs affect less", f"{2 * used_one / used_two:.2f}", ">= 1.8")


def measure_overhead(folder: Path, count: int = 100) -> None:
    """Compare a batch in this process with a loop over the same files."""
    files = write_files(folder / "overhead-files", "pose", SMALL_SECONDS, count)
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


def measure_kill(folder: Path, n_files: int) -> None:
    """Predict small recordings on a local Dask cluster while one of its two workers is killed."""
    write_files(folder / "small", "pose", SMALL_SECONDS, n_files)
    out, killed = folder / "dask", []
    threading.Thread(target=kill_a_worker, args=(out, killed), daemon=True).start()
    start = time.perf_counter()
    summary = eb.predict_files(folder / "model", folder / "small", out, rate=RATE, pool=cluster_pool("local", ClusterNodes(2, 1)))
    elapsed = time.perf_counter() - start
    log = "".join(path.read_text(encoding="utf-8") for path in (out / LOG / "logs").iterdir())
    counts = Counter(re.findall(r" ([0-9a-f]{24}) .*: done$", log, re.MULTILINE))
    show(f"{n_files} recordings, two Dask workers, one killed: seconds", f"{elapsed:.0f}")
    show("  predicted, failed", f"{len(summary.predicted)}, {len(summary.failures)}", f"{n_files}, 0")
    show("  most often predicted: times", f"{max(counts.values())}", "1")
    assert killed, "no worker was killed"
    assert len(list(out.glob("*.csv"))) == len(counts) == n_files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--small", type=int, default=1000)
    parser.add_argument("--parts", nargs="+", choices=("workers", "overhead", "kill"), default=("workers", "overhead", "kill"))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=tuple(KINDS))
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # so that the time of the server of the workers is counted, which nobody waits for
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        show(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}", "")
        if "workers" in arguments.parts:
            for kind in arguments.kinds:
                measure_workers(folder, kind, arguments.recordings, arguments.rounds)
        train("rf", "pose", folder / "model")
        if "overhead" in arguments.parts:
            measure_overhead(folder)
        if "kill" in arguments.parts:
            measure_kill(folder, arguments.small)
        show("load of the machine in the last minute, five and fifteen minutes", " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
