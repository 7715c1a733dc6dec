"""Measure whether the probabilities of `auto` are honest: reliability, calibration error, and accuracy by coverage, on one fold.

    python benchmarks/calibration.py measure bebe/HAR --fold 1 --setting reduced --label after --out calibration.csv
    python benchmarks/calibration.py table calibration.csv

The first form fits `auto` and appends rows of the test recordings: frames by confidence (reliability), and frames that remain where the
model abstains below a minimum confidence (coverage). To measure an earlier commit, run it with that commit's package on the path. The
second prints the rows as tables, one column for each label.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import ethobench as eb
from ethobench.benchmarks.folds import select_annotated, with_folds
from ethobench.core import Dataset
from ethobench.models import reference_annotation

N_BINS = 10
MIN_CONFIDENCES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def training_recordings(data: Dataset, fold: int, setting: str) -> list[str]:
    """Return the recordings of the fold before the tested one (``reduced``, as in BEBE), or of all others (``full``)."""
    folds = sorted({*data.folds.values()})
    if setting == "reduced":
        return [r.id for r in data if data.folds[r.id] == folds[folds.index(fold) - 1]]
    return [r.id for r in data if data.folds[r.id] != fold]


def reliability(confidence: NDArray[np.floating], correct: NDArray[np.bool_]) -> list[dict[str, float]]:
    """Return for each bin of confidence its share of the frames, their mean confidence and their accuracy."""
    bins = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    rows = []
    for number in range(N_BINS):
        inside = bins == number
        if inside.any():
            values = {"share": inside.mean(), "confidence": confidence[inside].mean(), "accuracy": correct[inside].mean()}
            rows.append({"level": number / N_BINS, **{name: float(value) for name, value in values.items()}})
    return rows


def coverage(confidence: NDArray[np.floating], correct: NDArray[np.bool_], decoded: NDArray[np.bool_]) -> list[dict[str, float]]:
    """Return for each minimum confidence the share of frames that remain, and the accuracy of probabilities and of decoded labels."""
    rows = []
    for level in MIN_CONFIDENCES:
        kept = confidence >= level
        accuracies = {"accuracy": correct[kept].mean(), "decoded_accuracy": decoded[kept].mean()} if kept.any() else {}
        rows.append({"level": level, "share": float(kept.mean()), **{name: float(value) for name, value in accuracies.items()}})
    return rows


def measure(args: argparse.Namespace) -> pd.DataFrame:
    """Fit `auto`, and return the rows of the test recordings."""
    data = with_folds(select_annotated(eb.load_dataset(args.dataset)))
    train = data.select(recordings=training_recordings(data, args.fold, args.setting))
    start, model = time.process_time(), eb.create_model("auto", seed=args.fold)
    model.fit(train)
    print(f"fit: {time.process_time() - start:.0f} s of processor time", flush=True)
    confidence, correct, decoded = [], [], []
    for recording in data:
        if data.folds[recording.id] != args.fold:
            continue
        prediction = model.predict(recording)
        names = np.array([*prediction.ethogram.names, ""])
        truth = reference_annotation(recording, None)
        codes = truth.to_codes()
        true_names = np.array([*truth.ethogram.names, "", ""])[codes]
        observed = (codes >= 0) & (codes < len(truth.ethogram)) & np.isfinite(prediction.probabilities).all(axis=1)
        confidence.append(prediction.probabilities.max(axis=1)[observed])
        correct.append((names[prediction.probabilities.argmax(axis=1)] == true_names)[observed])
        decoded.append((names[prediction.annotation.to_codes()] == true_names)[observed])
    confidences, is_correct, is_decoded = (np.concatenate(values) for values in (confidence, correct, decoded))
    rows = [{"kind": "reliability", **row} for row in reliability(confidences, is_correct)]
    rows += [{"kind": "coverage", **row} for row in coverage(confidences, is_correct, is_decoded)]
    table = pd.DataFrame(rows).assign(frames=len(confidences), fold=args.fold, setting=args.setting)
    return table.assign(dataset=Path(args.dataset).name, label=args.label)


def tables(rows: pd.DataFrame) -> str:
    """Return Markdown tables: calibration error, reliability and coverage, with one column for each label."""
    labels = list(dict.fromkeys(rows.label))
    lines = []
    for (dataset, fold, setting), part in rows.groupby(["dataset", "fold", "setting"]):
        lines += [f"## {dataset}, fold {fold}, {setting}", ""]
        bins = part[part.kind == "reliability"]
        errors = {name: (each.share * (each.confidence - each.accuracy).abs()).sum() for name, each in bins.groupby("label")}
        signed = {name: (each.share * (each.confidence - each.accuracy)).sum() for name, each in bins.groupby("label")}
        frames = part.groupby("label").frames.first()
        lines += ["| | " + " | ".join(labels) + " |", "|---" * (len(labels) + 1) + "|"]
        lines += ["| frames | " + " | ".join(f"{frames[name]:,}" for name in labels) + " |"]
        lines += ["| expected calibration error | " + " | ".join(f"{errors[name]:.3f}" for name in labels) + " |"]
        lines += ["| mean confidence minus accuracy | " + " | ".join(f"{signed[name]:+.3f}" for name in labels) + " |", ""]
        lines += ["| confidence | " + " | ".join(f"{name}: share, confidence, accuracy" for name in labels) + " |"]
        lines += ["|---" * (len(labels) + 1) + "|"]
        lines += _rows(bins, labels, ("share", "confidence", "accuracy"), lambda level: f"{level:.1f} to {level + 1 / N_BINS:.1f}")
        lines += ["", "| minimum confidence | " + " | ".join(f"{name}: coverage, accuracy, decoded" for name in labels) + " |"]
        lines += ["|---" * (len(labels) + 1) + "|"]
        lines += _rows(part[part.kind == "coverage"], labels, ("share", "accuracy", "decoded_accuracy"), lambda level: f"{level:g}")
        lines += [""]
    return "\n".join(lines)


def _rows(part: pd.DataFrame, labels: list[str], columns: tuple[str, ...], name_of) -> list[str]:  # type: ignore[no-untyped-def]
    lines = []
    for level, each in part.groupby("level"):
        cells = []
        for label in labels:
            row = each[each.label == label]
            cells.append(", ".join(f"{row[column].iloc[0]:.3f}" for column in columns) if len(row) else "-")
        lines.append(f"| {name_of(level)} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure a fold, or print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("measure")
    measured.add_argument("dataset")
    measured.add_argument("--fold", type=int, default=0)
    measured.add_argument("--setting", default="full", choices=("full", "reduced"))
    measured.add_argument("--label", required=True, help="Name of this version of the package, such as its commit.")
    measured.add_argument("--out", type=Path, required=True)
    commands.add_parser("table").add_argument("rows", type=Path)
    args = parser.parse_args()
    if args.command == "table":
        print(tables(pd.read_csv(args.rows, dtype={"label": str})))
        return
    measure(args).to_csv(args.out, mode="a", header=not args.out.exists(), index=False, float_format="%.5f")


if __name__ == "__main__":
    main()
