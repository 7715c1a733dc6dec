"""Measure the model `auto` on one fold: processor time, memory, speed of prediction, and scores of frames, bouts and short bouts.

    python benchmarks/auto.py rats --fold 4 --out after.csv
    python benchmarks/auto.py bebe/HAR --fold 1 --setting reduced --out after.csv
    python benchmarks/auto.py --compare before.csv after.csv

The first form appends rows of each test individual. `--setting reduced` trains on the fold before the tested one, as in BEBE,
and a number trains on so many recordings. `--model rf --decode balanced` measures another model. `--compare` prints paired differences
with intervals over individuals. To measure an earlier commit, run the script with that commit's package on the path; without `--cache`
each recording's features are computed in each run.
"""

from __future__ import annotations

import argparse
import resource
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd

import ethobench as eb
from ethobench.benchmarks.folds import select_annotated, with_folds
from ethobench.core import Annotation, Dataset
from ethobench.features.cache import feature_cache
from ethobench.models import reference_annotation

METRICS = {"bebe": ("f1",), "calms21": ("macro_f1",), "banos": ("f1_score",), "ethobench": ("bout_f1", "segment_f1_50")}
SHORT_SECONDS, MIN_IOU = 2.0, 0.5
RESAMPLES = 2000


def short_bouts_detected(predicted: Annotation, truth: Annotation) -> tuple[int, int]:
    """Return how many true bouts below two seconds overlap a prediction by half, and how many there are."""
    detected = total = 0
    for code in range(len(truth.ethogram)):
        if code == truth.ethogram.background:
            continue
        true, spans = truth.spans(code), predicted.spans(code)
        for start, stop in zip(true.start, true.stop, strict=True):
            if 0 < (stop - start) / truth.rate < SHORT_SECONDS:
                total += 1
                intersection = np.minimum(stop, spans.stop) - np.maximum(start, spans.start)
                union = np.maximum(stop, spans.stop) - np.minimum(start, spans.start)
                detected += bool((intersection >= MIN_IOU * union).any())
    return detected, total


def training_recordings(data: Dataset, fold: int, setting: str) -> list[str]:
    folds = sorted({*data.folds.values()})
    if setting == "reduced":
        return [r.id for r in data if data.folds[r.id] == folds[folds.index(fold) - 1]]
    others = [r.id for r in data if data.folds[r.id] != fold]
    return others if setting == "full" else others[: int(setting)]


def scores_of(predicted: dict[str, Annotation], truths: dict[str, Annotation], individuals: dict[str, str]) -> dict[str, float]:
    values = {}
    named = {name: individuals[name] for name in predicted}
    for suite, metrics in METRICS.items():
        overall = eb.score(predicted, truths, suite=suite, individuals=named, resamples=0).overall
        values |= {metric: float(overall[metric]) for metric in metrics if metric in overall}
    pairs = [short_bouts_detected(predicted[name], truths[name]) for name in truths]
    values["short_detected"], values["short_bouts"] = (float(sum(column)) for column in zip(*pairs, strict=True))
    return values


def measure(args: argparse.Namespace) -> pd.DataFrame:
    path = Path(args.dataset)
    data = with_folds(select_annotated(eb.load_dataset(str(path) if path.exists() else args.dataset)))
    train = data.select(recordings=training_recordings(data, args.fold, args.setting))
    test = [recording for recording in data if data.folds[recording.id] == args.fold]
    for recording in (*train, *test):
        len(recording.signals if recording.signals is not None else ())  # read before the clock starts
    start, model = time.process_time(), eb.create_model(args.model, seed=args.fold, decode=args.decode)
    with feature_cache(args.cache) if args.cache else nullcontext():
        model.fit(train)
    fit_seconds, start = time.process_time() - start, time.process_time()
    predicted = {recording.id: model.predict(recording).annotation for recording in test}
    frames_per_second = sum(recording.n_frames or 0 for recording in test) / (time.process_time() - start)
    truths = {recording.id: reference_annotation(recording, None).with_ethogram(data.ethogram) for recording in test}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    individuals = {recording.id: recording.individual or recording.id for recording in test}
    pooled = scores_of(predicted, truths, individuals) | {
        "fit_seconds": fit_seconds,
        "predicted_per_second": frames_per_second,
        "peak_mb": peak,
    }
    print(f"{args.dataset}, fold {args.fold}, {args.setting}: {len(train)} recordings")
    print("  ".join(f"{name} {value:.4g}" for name, value in pooled.items()))
    print(*(model.fit_report.get(name) for name in ("candidates", "notes", "calibration_error")))
    rows = [("all", name, value) for name, value in pooled.items()]
    for individual in dict.fromkeys(individuals.values()):
        names = [name for name in predicted if individuals[name] == individual]
        values = scores_of({name: predicted[name] for name in names}, {name: truths[name] for name in names}, individuals)
        rows += [(individual, metric, value) for metric, value in values.items()]
    table = pd.DataFrame(rows, columns=["individual", "metric", "value"])
    return table.assign(dataset=path.name, fold=args.fold, setting=args.setting)


def compare(before: Path, after: Path) -> None:
    """Print pooled values, and mean differences over individuals with bootstrap intervals."""
    keys = ["dataset", "setting", "fold", "individual", "metric"]
    merged = pd.read_csv(before, dtype={"individual": str}).merge(pd.read_csv(after, dtype={"individual": str}), on=keys)
    print(merged[merged.individual == "all"].to_string(index=False))
    random = np.random.default_rng(0)
    for (dataset, setting, metric), rows in merged[merged.individual != "all"].groupby(["dataset", "setting", "metric"]):
        difference = (rows.value_y - rows.value_x).dropna().to_numpy()
        means = (
            difference[random.integers(0, len(difference), (RESAMPLES, len(difference)))].mean(axis=1) if len(difference) else np.zeros(1)
        )
        low, high = np.quantile(means, [0.025, 0.975])
        print(f"{dataset} {setting} {metric}: {difference.mean():+.3f} ({low:.3f} to {high:.3f}), n = {len(difference)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?")
    parser.add_argument("--fold", type=int, default=0)
    parser.add_argument("--setting", default="full")
    parser.add_argument("--model", default="auto")
    parser.add_argument("--decode", default="")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", nargs=2, type=Path)
    args = parser.parse_args()
    if args.compare:
        compare(*args.compare)
        return
    table = measure(args)
    if args.out:
        table.to_csv(args.out, mode="a", header=not args.out.exists(), index=False, float_format="%.4f")


if __name__ == "__main__":
    main()
