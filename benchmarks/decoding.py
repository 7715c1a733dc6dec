"""What decoding gains: models by grouped cross-validation, each decoded frame by frame, by tuned smoothing, and by all there is.

    python benchmarks/decoding.py rats --models rf,boost,tcn,boost+tcn --against rf --cache DIR --out rats.csv
    python benchmarks/decoding.py rats --models conv1d --param samples_per_epoch=60000 --param frames_per_example=20 --param batch=64 ...

Of each model and fold, the probabilities of the test recordings, and out-of-fold ones of the training recordings, are kept in the
cache, so that a run that is started again does what is missing. Decoders are chosen on training recordings alone; so is the blend of
models, as the model `auto` does it; `auto` itself is trained once a fold, since it does all of this within. Printed are figures of
all recordings together (each tested once), and differences to the best smoothed baseline, with intervals over individuals; the CSV
file has one row for each recording, way of decoding and figure.
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
from ethobench.benchmarks.folds import select_annotated, with_folds
from ethobench.cli._options import parse_params
from ethobench.core import Annotation, Dataset, Prediction
from ethobench.core.folds import assign_folds
from ethobench.decoding.blending import fit_blend
from ethobench.decoding.search import fit_decoder
from ethobench.models import reference_annotation
from ethobench.models.auto import fit_decoder_on_subsample

WAYS = {"frame by frame": None, "smoothed": False, "decoded": True}
FIGURES = {"calms21": ("macro_f1",), "banos": ("f1_score",), "ethobench": ("bout_f1", "segment_f1_50")}
RESAMPLES = 2000
Predictions = dict[str, Prediction]


class Study:
    """A dataset, its folds and truths."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.data: Dataset = with_folds(select_annotated(eb.load_dataset(args.dataset)))
        self.truths = {r.id: reference_annotation(r, None).with_ethogram(self.data.ethogram) for r in self.data}
        self.groups = {r.id: r.individual or r.id for r in self.data}
        self.folds = [int(part) for part in args.folds.split(",")]

    def sides(self, model: str, params: dict[str, Any], fold: int) -> tuple[Predictions, Predictions]:
        """Return what a model says of training recordings that it did not see, and of test recordings."""
        path = self.args.cache / f"{self.data.name or 'data'}-{model}-{fold}.npz"
        if not path.is_file():
            started = time.perf_counter()
            sides = self._learn(model, params, fold)
            values = {f"{side}/{name}": p.probabilities.astype(np.float16) for side, part in enumerate(sides) for name, p in part.items()}
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.with_suffix(".part").open("wb") as file:
                np.savez_compressed(file, seconds=time.perf_counter() - started, **values)
            path.with_suffix(".part").replace(path)
        found: tuple[Predictions, Predictions] = ({}, {})
        with np.load(path) as stored:
            for key in stored.files:
                side, _, name = key.partition("/")
                if name:
                    values = stored[key].astype(np.float32)
                    found[int(side)][name] = Prediction(values, self.data.ethogram, self.data[name].rate or 1.0, exclusive=True)
        return found

    def _learn(self, name: str, params: dict[str, Any], fold: int) -> tuple[Predictions, Predictions]:
        data = self.data
        train = data.select(recordings=[r.id for r in data if data.folds[r.id] != fold])
        model, told = eb.create_model(name, seed=fold, **params), {}
        dealt = assign_folds(train, 3)
        for third in range(self.args.thirds):
            fresh = model.clone().fit(train.select(recordings=[r for r, own in dealt.items() if own != third]))
            told |= {r: fresh.predict(train[r]) for r, own in dealt.items() if own == third}
        model.fit(train)
        return told, {r.id: model.predict(r) for r in data if data.folds[r.id] == fold}

    def decode(self, way: bool | None, told: Predictions, said: Predictions, priors: dict[str, float]) -> dict[str, Annotation]:
        """Turn the probabilities of test recordings into bouts, as out-of-fold ones of the training recordings teach it."""
        if way is None:
            return {name: prediction.annotation for name, prediction in said.items()}
        truths, groups = ({name: part[name] for name in told} for part in (self.truths, self.groups))
        if priors and way:
            decoder, trials = fit_decoder_on_subsample(told, truths, "balanced", groups, priors)
        else:
            decoder, trials = fit_decoder(told, truths, groups=groups, sequences=way)
        print("   ", next(dataclasses.asdict(trial.config) for trial in trials if trial.chosen), flush=True)
        return {name: decoder.apply(prediction).annotation for name, prediction in said.items()}

    def model(self, name: str, params: dict[str, Any]) -> dict[str, dict[str, Annotation]]:
        """Return the annotations of all test recordings by each way to decode."""
        wanted = {"chance": ("frame by frame",), "auto": ("frame by frame", "decoded")}  # of noise there is nothing to decode
        ways = {way: sequences for way, sequences in WAYS.items() if way in wanted.get(name, WAYS)}
        found: dict[str, dict[str, Annotation]] = {way: {} for way in ways}
        for fold in self.folds:
            path = self.args.cache / f"{self.data.name or 'data'}-{name}-{fold}-decoded.npz"
            if not path.is_file():
                if name == "auto":
                    made = self.automatic(params, fold)
                else:
                    told, said, priors = self.blended(name.split("+"), fold) if "+" in name else (*self.sides(name, params, fold), {})
                    made = {way: self.decode(sequences, told, said, priors) for way, sequences in ways.items()}
                codes = {f"{way}/{r}": a.to_codes().astype(np.int16) for way, part in made.items() for r, a in part.items()}
                np.savez_compressed(path, **codes)
            with np.load(path) as stored:
                for key in stored.files:
                    way, _, r = key.partition("/")
                    if way in found:
                        found[way][r] = Annotation.from_frames(stored[key], self.data.ethogram, self.data[r].rate or 1.0, unobserved=-1)
        return found

    def automatic(self, params: dict[str, Any], fold: int) -> dict[str, dict[str, Annotation]]:
        """Return what a model says that chooses its own decoder, before and after decoding."""
        started, data = time.perf_counter(), self.data
        model = eb.create_model("auto", seed=fold, **params).fit(data.select(recordings=[r.id for r in data if data.folds[r.id] != fold]))
        print("   ", f"{time.perf_counter() - started:.0f} s,", *(row["weight"] for row in model.fit_report["candidates"]), flush=True)
        said = {r.id: model.predict(r) for r in data if data.folds[r.id] == fold}
        plain = {name: Prediction(p.probabilities, p.ethogram, p.rate, exclusive=p.exclusive).annotation for name, p in said.items()}
        return {"frame by frame": plain, "decoded": {name: p.annotation for name, p in said.items()}}

    def blended(self, names: list[str], fold: int) -> tuple[Predictions, Predictions, dict[str, float]]:
        """Return what the blend of some models says, as `sides` does, and the priors of its decoder."""
        sides = {name: self.sides(name, {}, fold) for name in names}
        told = {name: part[0] for name, part in sides.items()}
        some = told[names[0]]
        blend, joined = fit_blend(told, {r: self.truths[r] for r in some}, {r: self.groups[r] for r in some})
        print("   ", blend.weights, flush=True)
        said = {r: blend.apply({name: part[1][r] for name, part in sides.items()}) for r in sides[names[0]][1]}
        return joined, said, blend.priors(self.data.ethogram)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--models", default="chance,rf", help="separated by commas; boost+tcn is their blend, as auto makes it")
    parser.add_argument("--param", action="append", default=[])
    parser.add_argument("--folds", default="0,1,2,3,4")
    parser.add_argument("--thirds", type=int, default=3, help="of the training recordings on which decoders are chosen")
    parser.add_argument("--against", default="", help="baselines, with the best of which, smoothed, all are compared")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    study, names = Study(args), args.models.split(",")
    params = parse_params(args.param, [name for name in names if "+" not in name], "")
    found = {(name, way): part for name in names for way, part in study.model(name, params.get(name, {})).items()}
    report(study, found, args)


def report(study: Study, found: dict[tuple[str, str], dict[str, Annotation]], args: argparse.Namespace) -> None:
    """Print figures of all recordings together and what they gain on the best smoothed baseline; write those of each recording."""
    rows, table, gains = [], [], []
    baselines = [name for name in args.against.split(",") if (name, "smoothed") in found]
    for suite, figures in FIGURES.items():
        test = study.data.select(recordings=list(next(iter(found.values()))))
        scored = {place: eb.score(part, test, suite=suite, resamples=RESAMPLES) for place, part in found.items()}
        for (name, way), scores in scored.items():
            for metric in figures:
                own = {r: part["overall"][metric] for r, part in scores.to_dict()["recordings"].items()}
                spread = float(np.nanstd([value for value in own.values() if value is not None]))
                table.append((name, way, metric, scores.overall[metric], spread))
                rows += [(name, way, suite, metric, r, study.data.folds[r], value) for r, value in own.items()]
                if baselines:
                    best = max(baselines, key=lambda each: scored[each, "smoothed"].overall[metric])
                    told = scores.compare(scored[best, "smoothed"], [metric])[metric]
                    gains.append((name, way, metric, best, told["difference"], told["low"], told["high"]))
    if args.out:
        columns = ["model", "way", "suite", "metric", "recording", "fold", "value"]
        pd.DataFrame(rows, columns=columns).to_csv(args.out, index=False, float_format="%.4f")
    wide = pd.DataFrame(table, columns=["model", "way", "metric", "value", "std"]).set_index(["model", "way", "metric"]).unstack()  # noqa: PD010
    print(wide.round(3).to_string())
    if gains:
        print(pd.DataFrame(gains, columns=["model", "way", "metric", "smoothed baseline", "gain", "low", "high"]).round(3).to_string())


if __name__ == "__main__":
    main()
