"""How long a causal model takes for one frame, and how far what it says is from batch prediction.

Run with ``OMP_NUM_THREADS=1 python benchmarks/latency.py [--frames 5000] [--json]``. Networks are untrained in all but name: one
epoch on a few windows, which costs the same per frame as a good one.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

import ethobench as eb
from ethobench.core.errors import EthobenchError
from ethobench.models import models

# what makes each model causal, at its published size
CAUSAL: dict[str, dict[str, Any]] = {
    "conv1d": {"future": 0, "epochs": 1, "samples_per_epoch": 256},
    "dense": {"future": 0, "epochs": 1, "samples_per_epoch": 256},
    "lstm": {"future": 0, "epochs": 1, "samples_per_epoch": 256},
    "attention": {"future": 0, "epochs": 1, "samples_per_epoch": 256},
    "tcn": {"causal": True, "updates": 5},
}
WARM = 100


def measure(name: str, frames: int) -> dict[str, Any]:
    """Push frames one after the other, and tell the quantiles of the time each took, in milliseconds."""
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=60)
    model = eb.create_model(name, **CAUSAL[name]).fit(data)
    recording = eb.load_dataset("synthetic/pose", individuals=1, seconds=frames / 30, seed=7).recordings[0]
    live, poses = model.stream(), recording.signals
    took, cpu, said = [], [], []
    for positions, confidence in zip(poses.positions, poses.confidence, strict=True):
        mark, own = time.perf_counter(), time.thread_time()
        said.append(live.push(positions, confidence))
        cpu.append(1e3 * (time.thread_time() - own))
        took.append(1e3 * (time.perf_counter() - mark))
    off = np.abs(np.array(said) - model.predict(recording).probabilities).max()
    (p50, p99), (cpu50, cpu99) = (np.percentile(each[WARM:], [50, 99]).tolist() for each in (took, cpu))
    times = {"p50_ms": p50, "p99_ms": p99, "cpu_p50_ms": cpu50, "cpu_p99_ms": cpu99}
    return {"model": name, "frames": len(took), **times, "off_batch": float(off)}


def main() -> None:
    """Measure every causal model that there is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=5000)
    parser.add_argument("--models", nargs="*", default=["conv1d", "tcn"], choices=list(CAUSAL))
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args()
    rows = []
    for name in told.models:
        if name not in models:
            continue
        try:
            rows.append(measure(name, told.frames))
        except EthobenchError as error:
            rows.append({"model": name, "error": str(error)})
    if told.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        if "error" in row:
            print(f"{row['model']:<10} {row['error']}")
        else:
            wall, cpu = (f"p50 {row[f'{kind}p50_ms']:.3f} ms, p99 {row[f'{kind}p99_ms']:.3f} ms" for kind in ("", "cpu_"))
            print(f"{row['model']:<10} {wall}; of the processor's time {cpu}; off batch by {row['off_batch']:.1e}")


if __name__ == "__main__":
    main()
