"""Whether pre-training helps: few labeled animals, with and without an encoder pre-trained on the unlabeled training animals.

    python benchmarks/pretraining.py HAR --store pretraining.csv     # a folder of BEBE: harnet pre-trained, from scratch, and boost
    python benchmarks/pretraining.py RATS --poses                    # a study with poses: conv1d pre-trained, from scratch, and boost

A third of the individuals is held out. The encoder is pre-trained on all others without their labels; models are trained on 1, 2 and 4 of
them. Each seed draws other individuals. Rows are appended to the table; see ``results/pretraining.md``.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ethobench import create_model, load_dataset, score
from ethobench.core import Dataset
from ethobench.features.cache import feature_cache
from ethobench.models.pretraining import pretrain, pretrain_poses

COUNTS = (1, 2, 4)
TAG_NETWORK = {"config": "small", "rate": 30.0, "window": 300, "batch": 8}
POSE_SHAPE = {"past": 50, "future": 50, "frame_stride": 1, "inputs": "egocentric"}
POSE_NETWORK = {**POSE_SHAPE, "frames_per_example": 20, "batch": 64, "class_weight": "balanced"}


def epochs_of(updates: int, train: Dataset, frames_per_update: float, rate: float | None = None) -> int:
    """Return the epochs of about this many updates, so that all models are trained equally long."""
    n_frames = sum((r.n_frames or 0) * (rate / (r.rate or rate) if rate else 1.0) for r in train)
    return max(1, round(updates * frames_per_update / n_frames))


def tag_models(encoder: str, epochs: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the compared models of tags: name and hyper-parameters by label."""
    return {
        "pre-trained, frozen": ("harnet", {**TAG_NETWORK, "mode": "frozen", "weights": encoder, "epochs": epochs}),
        "pre-trained, fine-tuned": ("harnet", {**TAG_NETWORK, "mode": "unfrozen", "weights": encoder, "epochs": epochs}),
        "from scratch": ("harnet", {**TAG_NETWORK, "mode": "random", "epochs": epochs}),
        "boost": ("boost", {}),
    }


def pose_models(encoder: str, epochs: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the compared models of poses."""
    return {
        "pre-trained, fine-tuned": ("conv1d", {**POSE_NETWORK, "init": encoder, "epochs": epochs}),
        "from scratch": ("conv1d", {**POSE_NETWORK, "epochs": epochs}),
        "boost": ("boost", {}),
    }


def split(data: Dataset, seed: int, test: int) -> tuple[list[str], list[str]]:
    """Return the training and the test individuals, in random order."""
    individuals = list(dict.fromkeys(data.groups().values()))
    order = [individuals[k] for k in np.random.default_rng(seed).permutation(len(individuals))]
    return order[test:], order[:test]


def of_individuals(data: Dataset, names: list[str]) -> Dataset:
    """Return the recordings of some individuals."""
    groups = data.groups()
    return data.select(recordings=[recording.id for recording in data if groups[recording.id] in names])


def evaluate(name: str, params: Mapping[str, Any], train: Dataset, test: Dataset, seed: int) -> dict[str, float]:
    """Train a model and return its scores on the test recordings, and the processor time of the training."""
    start = time.process_time()
    model = create_model(name, seed=seed, **params).fit(train)
    seconds = time.process_time() - start
    predictions = {recording.id: model.predict(recording).annotation for recording in test}
    overall = score(predictions, {recording.id: recording.annotation() for recording in test}, resamples=0).overall
    return {"f1": float(overall["f1"]), "bout_f1": float(overall["bout_f1"]), "seconds": seconds}


def main() -> None:
    """Run the comparison and append its rows to a CSV file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--poses", action="store_true")
    parser.add_argument("--store", default="pretraining.csv")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument("--test", type=int, default=6, help="Individuals that are held out.")
    parser.add_argument("--train", type=int, default=100, help="Individuals to pre-train on, at most.")
    parser.add_argument("--pretrain-epochs", type=int, default=20)
    parser.add_argument("--only", default="", help="Only the models whose label contains this, such as 'pre-trained'.")
    parser.add_argument("--updates", type=int, default=100, help="Updates of each network after pre-training.")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data = load_dataset(arguments.dataset)
    label = Path(arguments.dataset).name
    with tempfile.TemporaryDirectory() as folder, feature_cache(folder):
        for seed in arguments.seeds:
            names, test_names = split(data, seed, arguments.test)
            unlabeled, test = of_individuals(data, names[: arguments.train]), of_individuals(data, test_names)
            encoder = str(Path(folder) / f"encoder{seed}")
            start = time.process_time()
            if arguments.poses:
                options = {**POSE_SHAPE, "samples_per_epoch": 8_000, "patience": 3}
                card = pretrain_poses(unlabeled, encoder, epochs=arguments.pretrain_epochs, seed=seed, **options)
            else:
                card = pretrain(unlabeled, encoder, epochs=arguments.pretrain_epochs, per_subject=4, seed=seed)
            held_out = {task: round(each["value"], 3) for task, each in card["held_out"].items()}
            print(label, seed, "pretext", held_out, "processor seconds", round(time.process_time() - start), flush=True)
            for count in arguments.counts:
                train = of_individuals(data, names[:count])
                if arguments.poses:
                    candidates = pose_models(encoder, epochs_of(arguments.updates, train, 20 * 64))
                else:
                    candidates = tag_models(encoder, epochs_of(arguments.updates, train, 300 * 8, 30.0))
                for title, (name, params) in candidates.items():
                    if arguments.only not in title:
                        continue
                    scores = evaluate(name, params, train, test, seed)
                    row = {"dataset": label, "seed": seed, "animals": count, "model": title}
                    row |= {key: round(value, 4) for key, value in scores.items()}
                    print(row, flush=True)
                    is_new = not Path(arguments.store).exists()
                    with Path(arguments.store).open("a", newline="", encoding="utf-8") as file:
                        writer = csv.DictWriter(file, list(row))
                        if is_new:
                            writer.writeheader()
                        writer.writerow(row)


if __name__ == "__main__":
    main()
