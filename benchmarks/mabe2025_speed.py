"""Measure the suite of MABe 2025 and the reader of its tracking files.

    python benchmarks/mabe2025_speed.py [--bouts 10000] [--frames 3000] [--files 1000] [--rows 20000]

Scores one large table with `ethobench` and with the rules written out literally, with a Python set of frames for each video, agent, target
and action, and checks that both give the same number. Then writes tracking files in the layout of the challenge and reads them as poses.
Times are processor time, which other processes on the machine affect less than the time on the clock.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ethobench.formats.mabe2025_tables import read_bouts, read_metadata, read_tracking
from ethobench.metrics.suites.mabe2025 import score_tables

ACTIONS = ("approach", "attack", "chase", "mount", "sniff", "rear")
PARTS = ("ear_left", "ear_right", "hip_left", "hip_right", "neck", "nose", "tail_base")
PAIRS = tuple((f"mouse{a}", f"mouse{t}") for a in range(1, 5) for t in range(1, 5) if a != t)
LABELED = ",".join(f'"{agent},{target},{action}"' for agent, target in PAIRS for action in ACTIONS)


def make_tables(n_bouts: int, frames: int, videos: int = 200, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return a submission, a solution and metadata; bouts of a pair do not overlap, those of the submission are shifted."""
    random = np.random.default_rng(seed)
    video, pair = random.integers(0, videos, n_bouts), random.integers(0, len(PAIRS), n_bouts)
    rank = pd.Series(0, index=range(n_bouts)).groupby([video, pair]).cumcount().to_numpy()
    start = rank * 2 * frames + random.integers(0, frames // 2, n_bouts)
    solution = pd.DataFrame(
        {
            "video_id": video,
            "agent_id": [PAIRS[k][0] for k in pair],
            "target_id": [PAIRS[k][1] for k in pair],
            "action": np.array(ACTIONS, dtype=object)[random.integers(0, len(ACTIONS), n_bouts)],
            "start_frame": start,
            "stop_frame": start + random.integers(frames // 2, frames, n_bouts),
        }
    )
    shift = random.integers(0, frames // 3, n_bouts)
    submission = solution.assign(start_frame=solution["start_frame"] + shift, stop_frame=solution["stop_frame"] + shift)
    metadata = pd.DataFrame(
        {"video_id": range(videos), "lab_id": [f"lab{k % 19}" for k in range(videos)], "behaviors_labeled": f"[{LABELED}]"}
    )
    return submission, solution, metadata


def score_literally(submission: pd.DataFrame, solution: pd.DataFrame, metadata: pd.DataFrame) -> float:
    """Return the score of the challenge from sets of frames, one rule after the other."""
    lab_of = dict(zip(metadata["video_id"], metadata["lab_id"], strict=True))
    listed = {
        video: {*text.strip("[]").strip('"').split('","')}
        for video, text in zip(metadata["video_id"], metadata["behaviors_labeled"], strict=True)
    }
    true: dict[Any, set[int]] = defaultdict(set)
    for video, agent, target, action, start, stop in solution.itertuples(index=False):
        true[video, agent, target, action].update(range(start, stop))
    videos = {key[0] for key in true}
    predicted: dict[Any, set[int]] = defaultdict(set)
    busy: dict[Any, set[int]] = defaultdict(set)  # frames in which a pair has an action
    for video, agent, target, action, start, stop in submission.itertuples(index=False):
        if video not in videos or f"{agent},{target},{action}" not in listed[video]:
            continue
        new = set(range(start, stop)) - predicted[video, agent, target, action]
        if busy[video, agent, target] & new:
            raise ValueError("two actions of one pair in one frame")
        predicted[video, agent, target, action] |= new
        busy[video, agent, target] |= new
    counts: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for key in {*true, *predicted}:
        truth, pred = true.get(key, set()), predicted.get(key, set())
        cell = counts[lab_of[key[0]], key[3]]
        cell[0] += len(truth & pred)
        cell[1] += len(pred - truth)
        cell[2] += len(truth - pred)
    by_lab: dict[str, list[float]] = defaultdict(list)
    for lab, action in {(lab_of[key[0]], key[3]) for key in {*true, *predicted}}:
        tp, fp, fn = counts[lab, action]
        by_lab[lab].append(2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0)
    return float(np.mean([np.mean(values) for values in by_lab.values()]))


def measure(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the least processor time of several calls in seconds, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return best, result


def compare_scorers(n_bouts: int, frames: int) -> None:
    submission, solution, metadata = make_tables(n_bouts, frames)
    pred, truth, videos = read_bouts(submission), read_bouts(solution), read_metadata(metadata)
    literal_seconds, literal = measure(lambda: score_literally(submission, solution, metadata), 1)
    from_frames, _ = measure(lambda: score_tables(read_bouts(submission), read_bouts(solution), read_metadata(metadata)).overall["f1"], 10)
    seconds, value = measure(lambda: score_tables(pred, truth, videos).overall["f1"], 5)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.csv" for name in ("submission", "solution", "metadata")]
        for table, path in zip((submission, solution, metadata), files, strict=True):
            table.to_csv(path, index=False)
        from_files, _ = measure(lambda: score_tables(read_bouts(files[0]), read_bouts(files[1]), read_metadata(files[2])).overall["f1"], 5)
        literal_from_files, _ = measure(lambda: score_literally(*map(pd.read_csv, files)), 1)
    assert abs(value - literal) < 1e-12, (value, literal)
    n_frames = int((solution["stop_frame"] - solution["start_frame"]).sum())
    print(f"{n_bouts:,} bouts and {n_frames:,} frames on either side; score {value:.4f} by both")
    print(f"  sets of frames in Python                  {literal_seconds * 1e3:12,.1f} ms")
    print(f"  suite mabe2025, from DataFrames           {from_frames * 1e3:12,.1f} ms  {literal_seconds / from_frames:10,.0f} x")
    print(f"  suite mabe2025, from CSV files            {from_files * 1e3:12,.1f} ms  {literal_from_files / from_files:10,.0f} x")
    print(f"  suite mabe2025, from tables already read  {seconds * 1e3:12,.1f} ms  {literal_seconds / seconds:10,.0f} x")


def read_files(n_files: int, n_rows: int) -> None:
    n_frames = max(n_rows // (2 * len(PARTS)), 1)
    frame, mouse, keypoint = np.indices((n_frames, 2, len(PARTS))).reshape(3, -1)
    random = np.random.default_rng(0)
    columns = {
        "video_frame": frame.astype(np.int32),
        "mouse_id": (mouse + 1).astype(np.int8),
        "bodypart": np.array(PARTS, dtype=object)[keypoint],
    }
    with tempfile.TemporaryDirectory() as folder:
        distinct = []
        for k in range(10):  # files are linked so that a thousand of them do not fill the disk
            table = pd.DataFrame(columns | {axis: random.normal(300, 50, len(frame)).astype(np.float32) for axis in "xy"})
            distinct.append(Path(folder) / f"{k}.parquet")
            table.to_parquet(distinct[-1], index=False)
        files = [distinct[k % len(distinct)] for k in range(n_files)]
        seconds, rows = measure(lambda: sum(read_tracking(path)[0].size // 2 for path in files), 1)
    print(f"{n_files:,} tracking files, {rows:,} rows read as poses in {seconds:.1f} s: {rows / seconds / 1e6:.1f} million rows/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--bouts", type=int, default=10_000, help="bouts of the table that is scored")
    parser.add_argument("--frames", type=int, default=3000, help="maximum length of a bout in frames")
    parser.add_argument("--files", type=int, default=1000, help="tracking files to read")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of a tracking file")
    options = parser.parse_args()
    compare_scorers(options.bouts, options.frames)
    read_files(options.files, options.rows)


if __name__ == "__main__":
    main()
