"""Measure `predict` of a saved model by stage, for one or several versions of the package that take turns.

    python benchmarks/prediction_speed.py MODEL STUDY [--package SRC ...] [--runs 10]

MODEL is a folder that `train` made, and STUDY a folder with a recordings.csv. Each version runs in its own process on one thread, and
predicts all recordings in each of its turns, so that a varying load of the machine affects all versions alike. Times are processor seconds;
the files are read before. Without `--package`, the version is the one that runs this script.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import ethobench as eb
from ethobench.models.auto import Auto
from ethobench.models.boost import Boost
from ethobench.models.tcn import Tcn

TOTAL, REST = "total", "other"
STAGES = {  # where the time of each stage is spent; the first stage of a recording also computes what the others share
    "statistics of the recording": (Auto, "signal_baseline"),
    "features for the trees": (Boost, "_features"),
    "trees": (Boost, "predict_rows"),
    "networks": (Tcn, "_predict"),
    "decoding": (Auto, "_decode"),
}


def timed(function: Callable[..., Any], stage: str, seconds: Counter[str]) -> Callable[..., Any]:
    """Return a function that adds its processor time to a stage."""

    def call(*args: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args, **options)
        finally:
            seconds[stage] += time.process_time() - start

    return call


def serve(model_path: str, study: str) -> None:
    """Predict the study each time that a line is read; print the number of frames first, then the seconds of each stage."""
    warnings.simplefilter("ignore")
    recordings = [recording for recording in eb.load_dataset(study) if recording.signals is not None]
    model, seconds = eb.load_model(model_path), Counter[str]()
    model.predict(recordings[0])
    for stage, (kind, method) in STAGES.items():
        setattr(kind, method, timed(getattr(kind, method), stage, seconds))
    predict = timed(model.predict, TOTAL, seconds)
    print(json.dumps(sum(len(recording.signals) for recording in recordings)), flush=True)
    for _ in sys.stdin:
        seconds.clear()
        for recording in recordings:
            predict(recording)
        print(json.dumps(seconds), flush=True)


def start_server(source: str, args: argparse.Namespace) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"} | ({"PYTHONPATH": source} if source else {})
    command = [sys.executable, __file__, args.model, args.study, "--serve"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def take_turns(servers: list[subprocess.Popen[str]], runs: int) -> list[pd.DataFrame]:
    """Return the seconds of each run and stage, for each server; every second round is in the opposite order."""
    rows: list[list[dict[str, float]]] = [[] for _ in servers]
    for number in range(runs):
        for index in range(len(servers))[:: 1 if number % 2 == 0 else -1]:
            print("predict", file=servers[index].stdin, flush=True)
            rows[index].append(json.loads(servers[index].stdout.readline()))
    return [pd.DataFrame(each).fillna(0.0) for each in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("study")
    parser.add_argument("--package", nargs="+", default=[""], metavar="SRC", help="folders that contain the package ethobench")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.model, args.study)
        return
    servers = [start_server(source, args) for source in args.package]
    counts = [json.loads(server.stdout.readline()) for server in servers]
    n_frames = counts[0]
    versions = take_turns(servers, args.runs)
    for source, seconds in zip(args.package, versions, strict=True):
        speeds = n_frames / seconds[TOTAL]
        stages = seconds[[stage for stage in STAGES if stage in seconds]]
        stages = stages.assign(**{REST: seconds[TOTAL] - stages.sum(axis=1)})
        spread = f"median of {args.runs}; {speeds.min():,.0f} to {speeds.max():,.0f}"
        print(f"{source or 'this version'}: {speeds.median():,.0f} frames/s ({spread})")
        print("  ms per 10,000 frames: " + ", ".join(f"{name} {1e7 * value / n_frames:.1f}" for name, value in stages.median().items()))
    for source, seconds in zip(args.package[1:], versions[1:], strict=True):
        ratio = versions[0][TOTAL] / seconds[TOTAL]
        print(f"{source} is {ratio.median():.2f} ({np.min(ratio):.2f} to {np.max(ratio):.2f}) times as fast as {args.package[0]}")


if __name__ == "__main__":
    main()
