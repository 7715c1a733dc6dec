"""What decoding gains: models by grouped cross-validation, each decoded frame by frame, by tuned smoothing, and by all there is.

    python benchmarks/decoding.py rats --models rf,boost,tcn --folds 0,1,2,3,4 --cache DIR --out rats.csv
    python benchmarks/decoding.py rats --models conv1d --param samples=60000 --param together=20 --param batch=64 ...

Of each model and fold, the probabilities of the test recordings, and out-of-fold ones of the training recordings, are kept in the
cache, so that a run that is started again does what is missing. Decoders are chosen on training recordings alone. One row for each
recording, way of decoding, suite and figure; means and spreads over recordings are printed.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ethobench as eb
from ethobench.benchmarks.own import annotated, with_folds
from ethobench.cli._params import read_params
from ethobench.core import Annotation, Dataset, Prediction
from ethobench.core.folds import deal_folds
from ethobench.learning.decoding import fit_decoder
from ethobench.models import truth_of

WAYS = {"frame by frame": None, "smoothed": False, "decoded": True}
FIGURES = {"calms21": ("macro_f1",), "banos": ("f1_score",), "ethobench": ("f1", "bout_f1", "segment_f1_50")}
Predictions = dict[str, Prediction]


def learn(name: str, params: dict[str, Any], train: Dataset, test: Dataset, seed: int, thirds: int) -> tuple[Predictions, Predictions]:
    """Return what a model says of training recordings that it did not see, and of test recordings."""
    model, told = eb.create_model(name, seed=seed, **params), {}
    dealt = deal_folds(train, 3)
    for third in range(thirds):
        fresh = model.fresh().fit(train.select(recordings=[name for name, own in dealt.items() if own != third]))
        told |= {name: fresh.predict(train[name]) for name, own in dealt.items() if own == third}
    model.fit(train)
    return told, {recording.id: model.predict(recording) for recording in test}


def kept(path: Path, data: Dataset, make: Any) -> tuple[Predictions, Predictions]:
    """Read both sides from the cache, or make and keep them."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        sides = make()
        values = {f"{side}/{name}": p.probabilities.astype(np.float16) for side, part in enumerate(sides) for name, p in part.items()}
        with path.with_suffix(".part").open("wb") as file:
            np.savez_compressed(file, seconds=time.perf_counter() - started, **values)
        path.with_suffix(".part").replace(path)
    found: tuple[Predictions, Predictions] = ({}, {})
    with np.load(path) as stored:
        for key in stored.files:
            side, _, name = key.partition("/")
            if name:
                values = stored[key].astype(np.float32)
                found[int(side)][name] = Prediction(values, data.ethogram, data[name].rate or 1.0, exclusive=True)
    return found


def decode(way: bool | None, told: Predictions, said: Predictions, truths: dict[str, Annotation], data: Dataset) -> dict[str, Annotation]:
    """Turn the probabilities of test recordings into bouts, as out-of-fold ones of the training recordings teach it."""
    if way is None:
        return {name: prediction.annotation for name, prediction in said.items()}
    groups = {name: data[name].individual or name for name in told}
    decoder, trials = fit_decoder(told, {name: truths[name] for name in told}, groups=groups, sequences=way)
    print("   ", next(dataclasses.asdict(trial.recipe) for trial in trials if trial.chosen), flush=True)
    return {name: decoder.apply(prediction).annotation for name, prediction in said.items()}


def measure(args: argparse.Namespace, name: str, params: dict[str, Any], data: Dataset) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    truths = {recording.id: truth_of(recording, None).with_ethogram(data.ethogram) for recording in data}
    for fold in [int(part) for part in args.folds.split(",")]:
        train = data.select(recordings=[r.id for r in data if data.folds[r.id] != fold])
        test = data.select(recordings=[r.id for r in data if data.folds[r.id] == fold])
        path = args.cache / f"{data.name or 'data'}-{name}-{fold}.npz"
        told, said = kept(path, data, lambda train=train, test=test, fold=fold: learn(name, params, train, test, fold, args.thirds))
        for way, sequences in WAYS.items():
            found = decode(sequences, told, said, truths, data)
            for suite, figures in FIGURES.items():
                scores = eb.score(found, test, suite=suite, resamples=0)
                own = scores.to_dict()["recordings"]
                rows += [
                    {"model": name, "fold": fold, "way": way, "suite": suite, "metric": m, "recording": r, "value": own[r]["overall"][m]}
                    for r in own
                    for m in figures
                ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--models", default="chance,rf")
    parser.add_argument("--param", action="append", default=[])
    parser.add_argument("--folds", default="0,1,2,3,4")
    parser.add_argument("--thirds", type=int, default=3, help="of the training recordings on which decoders are chosen")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    data = with_folds(annotated(eb.load_dataset(args.dataset)))
    names = args.models.split(",")
    params = read_params(args.param, names, "")
    rows = [row for name in names for row in measure(args, name, params.get(name, {}), data)]
    table = pd.DataFrame(rows)
    if args.out:
        table.to_csv(args.out, index=False)
    spread = table.groupby(["model", "way", "metric"], sort=False)["value"].agg(["mean", lambda v: v.std(ddof=0), "count"])
    print(spread.round(3).to_string())


if __name__ == "__main__":
    main()
