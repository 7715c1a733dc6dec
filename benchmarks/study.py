"""Time to draft a study from 10,000 files.

Run it from the root of a checkout::

    python benchmarks/study.py [--recordings 2500]

Each recording has a pose file of DeepLabCut, a video, and the annotations of two raters, in a folder for each of them. The videos are empty
files: their frame rates are not needed, since the annotations state one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from ethobench.datasets.discover import discover_study

MAX_SECONDS = 20.0
TRACKER = "DLC_resnet50_benchmarkMay1shuffle1_500000"


def write_files(folder: Path, recordings: int, frames: int = 600) -> int:
    """Write the files of a study; return their number."""
    points = [f"{part},{part},{part}" for part in ("nose", "left_ear", "right_ear", "center", "tail_base")]
    header = ["scorer," + ",".join([TRACKER[4:]] * 15), "bodyparts," + ",".join(points), "coords," + ",".join(["x,y,likelihood"] * 5)]
    rows = [f"{i}," + ",".join([f"{100 + i / 7:.4f},{200 - i / 9:.4f},0.98"] * 5) for i in range(frames)]
    poses = "\n".join([*header, *rows]) + "\n"
    for subfolder in ("poses", "videos", "anna", "ben"):
        (folder / subfolder).mkdir(parents=True)
    for i in range(recordings):
        name = f"mouse{i // 4:03d}_day{i % 4 + 1}"
        (folder / "poses" / f"{name}{TRACKER}.csv").write_text(poses, encoding="utf-8")
        (folder / "videos" / f"{name}.mp4").write_bytes(b"")
        for rater in ("anna", "ben"):
            (folder / rater / f"{name}_{rater}.csv").write_text(_boris_export(name, frames, rater), encoding="utf-8")
    return recordings * 4


def _boris_export(name: str, frames: int, rater: str) -> str:
    """Return a tabular export of BORIS with 40 bouts."""
    media, length = f"C:/films/{name}.mp4", frames / 30
    head = [f"Observation id,{name}", "", "Media file(s)", "", f"Player #1,{media}", "", "Observation date,2024-05-01 10:00:00", ""]
    head += ["Description,", "", "Time offset (s),0.0", "", "independent variables", "variable,value", ""]
    rows = ["Time,Media file path,Total length,FPS,Subject,Behavior,Behavioral category,Comment,Status"]
    for k in range(40):
        for status, offset in (("START", 0.0), ("STOP", 0.2)):
            rows.append(f"{k * length / 41 + offset:.3f},{media},{length:.3f},30.0,{rater}'s mouse,behavior{k % 5},,,{status}")
    return "\n".join([*head, *rows]) + "\n"


def main() -> None:
    """Write the files, draft the study, and print the time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--recordings", type=int, default=2500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "study"
        files = write_files(folder, arguments.recordings)
        start, cpu = time.perf_counter(), time.process_time()
        draft = discover_study(folder)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        complete = sum(bool(row["signals"] and row["annotations"] and row["video"]) for row in draft.rows)
        print(f"study make: {files:,} files, {len(draft.recordings):,} recordings, {complete:,} complete rows")
        limit = MAX_SECONDS * files / 10_000
        print(f"  {seconds:.1f} s ({cpu:.1f} s of CPU time); at most {limit:.1f} s: {'yes' if seconds <= limit else 'NO'}")


if __name__ == "__main__":
    main()
