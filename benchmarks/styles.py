"""Compare zero-shot, fine-tuned and conditioned networks for three annotators with different styles (CalMS21's task 2).

    python benchmarks/styles.py [--minutes 10] [--seeds 42,43,44] [--folder DIR]

Poses, and annotators with different delays, thoroughness and bout borders, are generated and written in CalMS21's format. Then
`ethobench run calms21 --tasks 2` runs with the published fine-tuning, egocentric poses, and shorter windows and trainings.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ethobench.datasets.synthetic import Annotator, make_dataset
from ethobench.formats import write_recordings

PEOPLE = (
    Annotator("annotator-id_1", delay=0.0, jitter=0.05, missed=0.02),
    Annotator("annotator-id_2", delay=0.6, jitter=0.1, missed=0.05, shortest=0.5),
    Annotator("annotator-id_3", delay=0.2, jitter=0.1, missed=0.1, shortest=1.5, generous=0.4),
)
FIRST = Annotator("annotator-id_0", delay=0.2, jitter=0.05, missed=0.02)
NETWORK = (
    "past=25",
    "future=25",
    "frame_stride=1",
    "inputs=egocentric",
    "augment=reflection",
    "frames_per_example=20",
    "batch=64",
    "samples_per_epoch=15000",
)


def write_task(folder: Path, task: int, people: tuple[Annotator, ...], train: int, minutes: float) -> None:
    """Write training and test files with different recordings of every annotator."""
    for split, count in (("train", train), ("test", max(train // 2, 2))):
        recordings = []
        for index, person in enumerate(people):
            seed = 1000 * task + 10 * index + (split == "test")
            data = make_dataset("pose", individuals=count, seconds=60 * minutes, seed=seed, annotators=(person,))
            for number, recording in enumerate(data):
                recordings.append(recording.copy(id=f"task{task}/{split}/mouse{index}{number:02d}_task{task}"))
        write_recordings(recordings, folder / f"calms21_task{task}_{split}.json", "calms21")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seeds", default="42,43,44")
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp())
    data_folder = folder / "calms21"
    if not data_folder.is_dir():
        data_folder.mkdir(parents=True)
        write_task(data_folder, 1, (FIRST,), 12, args.minutes)
        write_task(data_folder, 2, PEOPLE, 6, args.minutes)
    program, store = [sys.executable, "-m", "ethobench"], str(folder / "store")
    params = [argument for pair in NETWORK for argument in ("--param", pair)]
    run = ["run", "calms21", "--tasks", "2", "--models", "conv1d", "--seeds", args.seeds, *params, "--store", store]
    environment = {**os.environ, "ETHOBENCH_DATA": str(folder)}
    subprocess.run([*program, *run], check=True, env=environment)
    for table in ("calms21", "styles"):
        subprocess.run([*program, "results", store, "--table", table], check=True, env=environment)


if __name__ == "__main__":
    main()
