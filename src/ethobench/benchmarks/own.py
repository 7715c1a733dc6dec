"""Your own data as a benchmark: grouped folds, any model, the scores that papers ask for."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.benchmarks.folds import fold_plan
from ethobench.benchmarks.results import final_jobs
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError, NotFoundError, ReadWarning
from ethobench.core.folds import assign_folds
from ethobench.datasets import load_dataset
from ethobench.metrics import Scores
from ethobench.models import ALL, CONSENSUS, Model
from ethobench.models.held_out import Predicted, read_predictions
from ethobench.runs import Plan, Search, Store
from ethobench.runs.claims import StoreError

MODELS = ("chance", "rf")
WHOLE = ("full", "split by recording")
CARD_SUITE = "ethobench"
CARD_RESAMPLES = 1000


def with_folds(data: Dataset, n_folds: int = 5, by: str = "individual") -> Dataset:
    """Keep the folds that the data come with, or deal some by individual; folds that split an individual are refused."""
    if by == "individual" and len(set(data.folds.values())) > 1:
        groups = data.groups()
        if lacking := [recording.id for recording in data if recording.id not in data.folds]:
            raise EthobenchError(f"some recordings have a fold and some have none, such as {lacking[0]!r}: give all of them one, or none")
        folds: dict[str, set[int]] = {}
        for name, fold in data.folds.items():
            folds.setdefault(groups[name], set()).add(fold)
        if split := [who for who, own in folds.items() if len(own) > 1]:
            way_out = "put its recordings into one fold, or compare recordings of the same individual with --split recording"
            raise EthobenchError(f"the folds split individual {split[0]!r}: {way_out}")
        return data
    return replace(data, folds=assign_folds(data, n_folds, by))


def annotated(data: Dataset, annotator: str | None = None) -> Dataset:
    """Return the recordings that can be learnt from; says so where some are left out, and complains where the annotator is unclear.

    Parameters
    ----------
    data : Dataset
    annotator : str, optional
        As for `Model.fit`: a name, several separated by commas, ``"consensus"`` or ``"all"``.
    """
    together = annotator in (CONSENSUS, ALL)
    kept = []
    for recording in data:
        with contextlib.suppress(NotFoundError):
            if not (together and recording.annotations):
                recording.annotation(annotator)
            kept.append(recording.id)
    if not kept:
        by = "" if annotator is None or together else f" by {annotator!r}; annotators are: {', '.join(data.annotators) or 'none'}"
        raise NotFoundError(f"no recording of {data.name or 'the dataset'} is annotated{by}")
    if len(kept) < len(data):
        left = [recording.id for recording in data if recording.id not in kept]
        named = f"{', '.join(left[:5])}{', ...' if len(left) > 5 else ''}"
        warnings.warn(f"{len(left)} recordings without annotations to learn from are left out: {named}", ReadWarning, stacklevel=2)
    return data.select(recordings=kept)


def plans(
    dataset: str,
    chosen: Sequence[str] = MODELS,
    *,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    options: Mapping[str, Any] | None = None,
    search: Search | None = None,
    annotator: str | None = None,
    by: str = "individual",
    suites: Sequence[str] = ("ethobench",),
    seed: int = 0,
    data: Dataset | None = None,
) -> Iterator[Plan]:
    """Plan models on a dataset of your own.

    Parameters
    ----------
    dataset : str
        A name, a folder, or a ``recordings.csv``.
    chosen : sequence of str
        Models.
    params : mapping, optional
        Hyper-parameters that are fixed, by model.
    options : mapping, optional
        What `load_dataset` takes besides.
    search : Search, optional
        How hyper-parameters are chosen, on the first fold.
    annotator : str, optional
        Whom to learn from and to compare with, where there are several.
    by : {"individual", "recording"}
        What is never split between training and test.
    suites : sequence of str
    seed : int
    data : Dataset, optional
        The annotated recordings, where they were loaded before.
    """
    path = Path(dataset)
    source = str(path.resolve()) if path.exists() else dataset
    data = with_folds(annotated(load_dataset(source, **(options or {})), annotator) if data is None else data, by=by)
    setting = WHOLE[by != "individual"]
    for model in chosen:
        yield fold_plan(
            "own",
            data,
            model,
            dataset=data.name or dataset,
            source=source,
            options=options,
            params=(params or {}).get(model),
            search=search,
            setting=setting,
            suites=suites,
            choose_by=(suites[0], "f1"),
            annotator=annotator,
            seed=seed,
        )


def evaluation(store: Store, model: str, only: Collection[str] | None = None) -> dict[str, Any]:
    """Return what a model's card tells of its cross-validation: figures and intervals over individuals, of all and each behavior.

    Parameters
    ----------
    store : Store
        In which the jobs of `plans` are done.
    model : str
    only : collection of str, optional
        Keys of the jobs to look at, where there are others of the same model.
    """
    done = [f for f in final_jobs(store, only) if f["job"]["model"] == model and f["job"]["setting"] in WHOLE]
    states = sorted((f["scores"]["suites"][CARD_SUITE]["state"] for f in done), key=lambda state: state["recordings"])
    if not states:
        raise EthobenchError(f"{store.root} holds no cross-validation of {model!r}")
    scores = Scores.from_states(states, resamples=CARD_RESAMPLES)
    between, occurrence = scores.intervals, scores.occurrence
    return {
        "suite": CARD_SUITE,
        "folds": len(done),
        "split": "recording" if done[0]["job"]["setting"] == WHOLE[1] else "individual",
        "scores": _known(scores.overall),
        "intervals": between["overall"],
        "behaviors": {name: _known(figures) for name, figures in scores.behaviors.items()},
        "behavior_intervals": between["behaviors"],
        "never_annotated": list(occurrence.never_annotated) if occurrence is not None else [],
        "only_predicted": list(occurrence.only_predicted) if occurrence is not None else [],
        **{name: between[name] for name in ("n", "unit", "reason")},
    }


def out_of_fold(store: Store, model: str, only: Collection[str] | None = None) -> CrossValidation:
    """Return what the cross-validation of a model predicts of each recording, by models that were not trained on it.

    Parameters
    ----------
    store : Store
        In which the jobs of `plans` are done.
    model : str
    only : collection of str, optional
        Keys of the jobs to look at, where there are others of the same model.
    """
    predictions: dict[str, Predicted] = {}
    folds: dict[str, int] = {}
    split = "individual"
    for finished in final_jobs(store, only):
        job = finished["job"]
        if job["model"] != model or job["setting"] not in WHOLE:
            continue
        split = "recording" if job["setting"] == WHOLE[1] else "individual"
        held_out = {*job["test"]} - {*job["train"]}
        if not store.verify(finished["key"]):
            raise StoreError(f"{store.damaged[-1]}: run the command again")
        fold_predictions = read_predictions(store.folder(finished["key"]))
        predictions |= {name: predicted for name, predicted in fold_predictions.items() if name in held_out}
        folds |= dict.fromkeys(held_out & {*fold_predictions}, job["fold"])
    return CrossValidation(predictions, folds, split)


@dataclass(frozen=True)
class CrossValidation:
    """The out-of-fold predictions of a cross-validation.

    Attributes
    ----------
    predictions : dict of recording id to Prediction or Annotation
    folds : dict of recording id to int
        The fold that held each recording out.
    split : {"individual", "recording"}
        What was never split between training and test.
    """

    predictions: dict[str, Predicted]
    folds: dict[str, int]
    split: str

    def keep_with(self, model: Model) -> list[str]:
        """Keep the predictions with a model that was fitted to the same recordings; return the ids of those left out.

        Left out are recordings that the model from which this one was initialised had seen, or their individuals: every fold
        began with that model.
        """
        training = model.training
        if training is None:
            raise EthobenchError(f"{model!r} is not fitted")
        left_out = [r.id for r in training.direct if r.id in self.predictions and not training.held_out_by_initial_model(r)]
        kept = [r.id for r in training.direct if r.id in self.predictions and r.id not in left_out]
        model.out_of_fold = {name: self.predictions[name] for name in kept}
        model.training = training.with_folds({name: self.folds[name] for name in kept}, self.split)
        return left_out


def _known(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items() if np.isfinite(value)}
