"""Measure the gain by decoding: models in grouped cross-validation, decoded frame by frame, by smoothing, and by all decoders.

    python benchmarks/decoding.py rats --models rf,boost,tcn,boost+tcn --against rf --cache DIR --out rats.csv
    python benchmarks/decoding.py rats --models conv1d --param samples_per_epoch=60000 --param frames_per_example=20 --param batch=64 ...

For each model and fold, the probabilities of the test recordings and the out-of-fold probabilities of the training recordings are
cached, so that a second run computes only what is missing. Decoders and the blend of models are fitted on training recordings, as in the
model `auto`; `auto` itself is trained once per fold. Prints the scores of all recordings together (each tested once), and the differences
from the best smoothed baseline with intervals over individuals; the CSV file has one row for each recording, decoding and metric.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ethobench as eb
from ethobench.benchmarks.folds import select_annotated, with_folds
from ethobench.cli.options import parse_params
from ethobench.core import Annotation, Dataset, Prediction
from ethobench.core.deadline import Deadline
from ethobench.decoding.blending import fit_blend
from ethobench.decoding.search import fit_decoder
from ethobench.models import reference_annotation
from ethobench.models.auto import fit_decoder_on_subsample
from ethobench.models.cross_validation import cross_validate, inner_folds

DECODINGS = {"frame by frame": None, "smoothed": False, "decoded": True}
METRICS = {"calms21": ("macro_f1",), "banos": ("f1_score",), "ethobench": ("bout_f1", "segment_f1_50")}
RESAMPLES = 2000
Predictions = dict[str, Prediction]


class Study:
    """A dataset with its folds and reference annotations."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.data: Dataset = with_folds(select_annotated(eb.load_dataset(args.dataset)))
        self.truths = {r.id: reference_annotation(r, None).with_ethogram(self.data.ethogram) for r in self.data}
        self.groups = {r.id: r.individual or r.id for r in self.data}
        self.folds = [int(fold) for fold in args.folds.split(",")]

    def sides(self, model: str, params: dict[str, Any], fold: int) -> tuple[Predictions, Predictions]:
        """Return the out-of-fold predictions of the training recordings, and the predictions of the test recordings."""
        path = self.args.cache / f"{self.data.name or 'data'}-{model}-{fold}.npz"
        if not path.is_file():
            started = time.perf_counter()
            sides = self._fit(model, params, fold)
            values = {
                f"{side}/{name}": p.probabilities.astype(np.float16)
                for side, predictions in enumerate(sides)
                for name, p in predictions.items()
            }
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.with_suffix(".part").open("wb") as file:
                np.savez_compressed(file, seconds=time.perf_counter() - started, **values)
            path.with_suffix(".part").replace(path)
        loaded: tuple[Predictions, Predictions] = ({}, {})
        with np.load(path) as stored:
            for key in stored.files:
                side, _, name = key.partition("/")
                if name:
                    values = stored[key].astype(np.float32)
                    loaded[int(side)][name] = Prediction(values, self.data.ethogram, self.data[name].rate or 1.0, exclusive=True)
        return loaded

    def _fit(self, name: str, params: dict[str, Any], fold: int) -> tuple[Predictions, Predictions]:
        data = self.data
        train = data.select(recordings=[r.id for r in data if data.folds[r.id] != fold])
        model = eb.create_model(name, seed=fold, **params)

        def fit_others(held_out: Sequence[str], _: Deadline) -> eb.Model:
            return model.clone().fit(train.select(recordings=[r.id for r in train if r.id not in held_out]))

        folds = inner_folds(train, self.truths)[: self.args.thirds]
        results = cross_validate(fit_others, train, folds, Deadline(), reserved_fits=0)
        out_of_fold = {name: prediction for result in results for name, prediction in result.predictions.items()}
        model.fit(train)
        return out_of_fold, {r.id: model.predict(r) for r in data if data.folds[r.id] == fold}

    def decode(
        self, sequences: bool | None, out_of_fold: Predictions, tested: Predictions, priors: dict[str, float]
    ) -> dict[str, Annotation]:
        """Decode the probabilities of test recordings by a decoder that is fitted to out-of-fold predictions of the training recordings."""
        if sequences is None:
            return {name: prediction.annotation for name, prediction in tested.items()}
        truths, groups = ({name: values[name] for name in out_of_fold} for values in (self.truths, self.groups))
        if priors and sequences:
            decoder, trials = fit_decoder_on_subsample(out_of_fold, truths, "balanced", groups, priors)
        else:
            decoder, trials = fit_decoder(out_of_fold, truths, groups=groups, sequences=sequences)
        print("   ", next(dataclasses.asdict(trial.config) for trial in trials if trial.chosen), flush=True)
        return {name: decoder.apply(prediction).annotation for name, prediction in tested.items()}

    def model(self, name: str, params: dict[str, Any]) -> dict[str, dict[str, Annotation]]:
        """Return the annotations of all test recordings by each decoding."""
        restricted = {"chance": ("frame by frame",), "auto": ("frame by frame", "decoded")}  # chance cannot be decoded
        decodings = {decoding: sequences for decoding, sequences in DECODINGS.items() if decoding in restricted.get(name, DECODINGS)}
        annotations: dict[str, dict[str, Annotation]] = {decoding: {} for decoding in decodings}
        for fold in self.folds:
            path = self.args.cache / f"{self.data.name or 'data'}-{name}-{fold}-decoded.npz"
            if not path.is_file():
                if name == "auto":
                    decoded = self.automatic(params, fold)
                else:
                    out_of_fold, tested, priors = (
                        self.blended(name.split("+"), fold) if "+" in name else (*self.sides(name, params, fold), {})
                    )
                    decoded = {decoding: self.decode(sequences, out_of_fold, tested, priors) for decoding, sequences in decodings.items()}
                codes = {f"{decoding}/{r}": a.to_codes().astype(np.int16) for decoding, each in decoded.items() for r, a in each.items()}
                np.savez_compressed(path, **codes)
            with np.load(path) as stored:
                for key in stored.files:
                    decoding, _, r = key.partition("/")
                    if decoding in annotations:
                        rate = self.data[r].rate or 1.0
                        annotations[decoding][r] = Annotation.from_frames(stored[key], self.data.ethogram, rate, unobserved=-1)
        return annotations

    def automatic(self, params: dict[str, Any], fold: int) -> dict[str, dict[str, Annotation]]:
        """Return the annotations of `auto`, which chooses its decoder, before and after decoding."""
        started, data = time.perf_counter(), self.data
        model = eb.create_model("auto", seed=fold, **params).fit(data.select(recordings=[r.id for r in data if data.folds[r.id] != fold]))
        print("   ", f"{time.perf_counter() - started:.0f} s,", *(row["weight"] for row in model.fit_report["candidates"]), flush=True)
        tested = {r.id: model.predict(r) for r in data if data.folds[r.id] == fold}
        plain = {name: Prediction(p.probabilities, p.ethogram, p.rate, exclusive=p.exclusive).annotation for name, p in tested.items()}
        return {"frame by frame": plain, "decoded": {name: p.annotation for name, p in tested.items()}}

    def blended(self, names: list[str], fold: int) -> tuple[Predictions, Predictions, dict[str, float]]:
        """Return the predictions of a blend of models, as `sides` does, and the priors of its decoder."""
        sides = {name: self.sides(name, {}, fold) for name in names}
        out_of_fold = {name: predictions[0] for name, predictions in sides.items()}
        recordings = out_of_fold[names[0]]
        blend, blended = fit_blend(out_of_fold, {r: self.truths[r] for r in recordings}, {r: self.groups[r] for r in recordings})
        print("   ", blend.weights, flush=True)
        tested = {r: blend.apply({name: predictions[1][r] for name, predictions in sides.items()}) for r in sides[names[0]][1]}
        return blended, tested, blend.priors(self.data.ethogram)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--models", default="chance,rf", help="separated by commas; boost+tcn is a blend of two models, as in auto")
    parser.add_argument("--param", action="append", default=[])
    parser.add_argument("--folds", default="0,1,2,3,4")
    parser.add_argument("--thirds", type=int, default=3, help="number of thirds of the training recordings on which decoders are fitted")
    parser.add_argument(
        "--against", default="", help="baselines, separated by commas; all models are compared with the best of them, smoothed"
    )
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    study, names = Study(args), args.models.split(",")
    params = parse_params(args.param, [name for name in names if "+" not in name], "")
    annotations = {
        (name, decoding): by_recording for name in names for decoding, by_recording in study.model(name, params.get(name, {})).items()
    }
    report(study, annotations, args)


def report(study: Study, annotations: dict[tuple[str, str], dict[str, Annotation]], args: argparse.Namespace) -> None:
    """Print the scores of all recordings together and the gain over the best smoothed baseline; write those of each recording."""
    rows, table, gains = [], [], []
    baselines = [name for name in args.against.split(",") if (name, "smoothed") in annotations]
    for suite, metrics in METRICS.items():
        test = study.data.select(recordings=list(next(iter(annotations.values()))))
        scored = {key: eb.score(each, test, suite=suite, resamples=RESAMPLES) for key, each in annotations.items()}
        for (name, decoding), scores in scored.items():
            for metric in metrics:
                values = {r: group["overall"][metric] for r, group in scores.to_dict()["recordings"].items()}
                spread = float(np.nanstd([value for value in values.values() if value is not None]))
                table.append((name, decoding, metric, scores.overall[metric], spread))
                rows += [(name, decoding, suite, metric, r, study.data.folds[r], value) for r, value in values.items()]
                if baselines:
                    best = max(baselines, key=lambda each: scored[each, "smoothed"].overall[metric])
                    gain = scores.compare(scored[best, "smoothed"], [metric])[metric]
                    gains.append((name, decoding, metric, best, gain["difference"], gain["low"], gain["high"]))
    if args.out:
        columns = ["model", "way", "suite", "metric", "recording", "fold", "value"]
        pd.DataFrame(rows, columns=columns).to_csv(args.out, index=False, float_format="%.4f")
    wide = pd.DataFrame(table, columns=["model", "way", "metric", "value", "std"]).set_index(["model", "way", "metric"]).unstack()  # noqa: PD010
    print(wide.round(3).to_string())
    if gains:
        print(pd.DataFrame(gains, columns=["model", "way", "metric", "smoothed baseline", "gain", "low", "high"]).round(3).to_string())


if __name__ == "__main__":
    main()
