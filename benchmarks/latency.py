"""Measure the latency of causal models per frame, and the difference between streaming and batch prediction.

Run with ``OMP_NUM_THREADS=1 python benchmarks/latency.py [--frames 5000] [--json]``. Networks are trained for one epoch on a few
windows, since the time per frame does not depend on the training. ``--four-mice`` follows four mice at 120 frames per second (12
ordered pairs and 4 animals) with a causal `tcn` that was trained on several laboratories.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np

import ethobench as eb
from ethobench.core.errors import EthobenchError
from ethobench.models import models

# hyper-parameters that make each model causal, at its published size
CAUSAL: dict[str, dict[str, Any]] = {
    "conv1d": {"future": 0, "epochs": 1, "samples_per_epoch": 256},
    "dense": {"future": 0, "epochs": 1, "samples_per_epoch": 256},
    "lstm": {"future": 0, "epochs": 1, "samples_per_epoch": 256},
    "attention": {"future": 0, "epochs": 1, "samples_per_epoch": 256},
    "tcn": {"causal": True, "updates": 5},
}
WARM_UP_FRAMES = 100


def measure(name: str, frames: int) -> dict[str, Any]:
    """Stream frames one by one, and return quantiles of the time per frame in milliseconds."""
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=60)
    model = eb.create_model(name, **CAUSAL[name]).fit(data)
    recording = eb.load_dataset("synthetic/pose", individuals=1, seconds=frames / 30, seed=7).recordings[0]
    live, poses = model.stream(), recording.signals
    wall_times, cpu_times, streamed = [], [], []
    for positions, confidence in zip(poses.positions, poses.confidence, strict=True):
        wall_start, cpu_start = time.perf_counter(), time.thread_time()
        streamed.append(live.push(positions, confidence))
        cpu_times.append(1e3 * (time.thread_time() - cpu_start))
        wall_times.append(1e3 * (time.perf_counter() - wall_start))
    difference = np.abs(np.array(streamed) - model.predict(recording).probabilities).max()
    (p50, p99), (cpu50, cpu99) = (np.percentile(times[WARM_UP_FRAMES:], [50, 99]).tolist() for times in (wall_times, cpu_times))
    quantiles = {"p50_ms": p50, "p99_ms": p99, "cpu_p50_ms": cpu50, "cpu_p99_ms": cpu99}
    return {"model": name, "frames": len(wall_times), **quantiles, "off_batch": float(difference)}


def measure_four_mice(frames: int) -> dict[str, Any]:
    """Follow four mice at 120 frames per second, and return quantiles of the time per frame in milliseconds."""
    warnings.simplefilter("ignore")
    data = eb.load_dataset("synthetic/labs", videos=1, seconds=20, labs=["CRIM13", "JovialSwallow", "GroovyShrew"], metadata=False)
    data = data.select(recordings=[r.id for r in data if r.annotations and len(r.annotation())])
    model = eb.create_model("tcn", causal=True, updates=5).fit(data)
    first = data.recordings[0]
    positions = np.concatenate([first.signals.positions, first.signals.positions[::-1]], axis=1)  # two mice, forward and backward in time
    names, scale = ("mouse1", "mouse2", "mouse3", "mouse4"), float(first.metadata["pixels_per_cm"])
    live = model.stream_animals(names, first.signals.keypoints, 120.0, pixels_per_cm=scale)
    wall_times, cpu_times = [], []
    for number in range(frames):
        wall_start, cpu_start = time.perf_counter(), time.thread_time()
        predictions = live.push(positions[number % len(positions)])
        cpu_times.append(1e3 * (time.thread_time() - cpu_start))
        wall_times.append(1e3 * (time.perf_counter() - wall_start))
    (p50, p99), (cpu50, cpu99) = (np.percentile(times[WARM_UP_FRAMES:], [50, 99]).tolist() for times in (wall_times, cpu_times))
    shape = {"model": "tcn", "frames": frames, "tracks": len(predictions), "behaviors": model.n_outputs}
    return {**shape, "p50_ms": p50, "p99_ms": p99, "cpu_p50_ms": cpu50, "cpu_p99_ms": cpu99}


def main() -> None:
    """Measure the chosen models."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=5000)
    parser.add_argument("--models", nargs="*", default=["conv1d", "tcn"], choices=list(CAUSAL))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--four-mice", action="store_true", help="Follow four mice at 120 frames per second instead.")
    arguments = parser.parse_args()
    if arguments.four_mice:
        print(json.dumps(measure_four_mice(arguments.frames)))
        return
    rows = []
    for name in arguments.models:
        if name not in models:
            continue
        try:
            rows.append(measure(name, arguments.frames))
        except EthobenchError as error:
            rows.append({"model": name, "error": str(error)})
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        if "error" in row:
            print(f"{row['model']:<10} {row['error']}")
        else:
            wall, cpu_times = (f"p50 {row[f'{kind}p50_ms']:.3f} ms, p99 {row[f'{kind}p99_ms']:.3f} ms" for kind in ("", "cpu_"))
            print(f"{row['model']:<10} {wall}; processor time {cpu_times}; largest difference from batch {row['off_batch']:.1e}")


if __name__ == "__main__":
    main()
