"""A study as a benchmark: cross-validation of any model by individual on one's own recordings, and its out-of-fold predictions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ethobench.benchmarks.base import STUDY_LABEL, Benchmark, CrossValidationOptions, Table, option, register_benchmark
from ethobench.benchmarks.folds import fold_plan, resolve_source, select_annotated, select_folds, with_folds
from ethobench.benchmarks.learning_curves import learning_curve_table
from ethobench.benchmarks.results import ScoredJob, final_jobs
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError
from ethobench.datasets import load_dataset
from ethobench.metrics import Scores
from ethobench.metrics.human_ceiling import score_annotators
from ethobench.models import Model
from ethobench.models.held_out import Predicted, read_predictions
from ethobench.runs import JobPlan, Search, Setting, Store, StoreError

SPLITS = {"individual": Setting("full"), "recording": Setting("split by recording")}
"""What is never split between training and test, with the setting that is reported."""
EVALUATION_SUITE = "ethobench"
EVALUATION_RESAMPLES = 1000


@dataclass(frozen=True, kw_only=True)
class StudyOptions(CrossValidationOptions):
    """Options of the benchmark of a study."""

    path: str = option("", "Folder of the study, its recordings.csv, or the name of a dataset.", is_argument=True)
    suite: tuple[str, ...] = option(("ethobench",), "Suites to score with, separated by commas.")
    annotator: str | None = option(None, "Annotator to train on, where there are several; or 'consensus'.")
    split: str = option("individual", "What is never split between training and test: individual or recording.", choices=tuple(SPLITS))


@register_benchmark("study")
class Study(Benchmark):
    """Cross-validation on a study."""

    label = STUDY_LABEL
    title = "Your own study: cross-validation by individual."
    description = """Cross-validate models on your own study.

Folds are those of recordings.csv, or are assigned so that no individual is in both training and test.

Example: [bold]ethobench run study my_study/ --models boost --search optuna --trials 30 --store runs/mine[/bold]

Example: [bold]ethobench run study my_study/ --models conv1d --vary past+future=25,50 --vary frame_stride=1,2 --store runs/windows[/bold]
"""
    Options = StudyOptions
    options: StudyOptions
    models = ("chance", "rf")
    tables = (Table("curve", "whether more labels would help", lambda store, options: learning_curve_table(store), per_behavior=True),)

    def jobs(self, store: Store | None = None, *, n_workers: int = 1, report: Callable[[str], None] = lambda _: None) -> Iterator[JobPlan]:
        """Yield one plan for each combination of hyper-parameters and model."""
        options = self.options
        search = options.make_search(store, n_workers)
        data = select_annotated(load_dataset(resolve_source(options.path)), options.annotator)
        for params in options.combinations():
            for model in options.models or self.models:
                plan = study_plan(
                    options.path,
                    model,
                    data=data,
                    params=params.get(model, options.params_of(model)),
                    search=search,
                    annotator=options.annotator,
                    split=options.split,
                    suites=options.suite,
                    seed=options.seed,
                )
                yield select_folds(plan, options.folds)


def study_plan(
    dataset: str,
    model: str,
    *,
    data: Dataset | None = None,
    params: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    search: Search | None = None,
    annotator: str | None = None,
    split: str = "individual",
    suites: Sequence[str] = ("ethobench",),
    seed: int = 0,
) -> JobPlan:
    """Plan the cross-validation of a model on a study.

    Parameters
    ----------
    dataset : str
        A folder, a ``recordings.csv``, or the name of a dataset.
    model : str
    data : Dataset, optional
        The annotated recordings, where they have been loaded already.
    params : mapping, optional
        Hyper-parameters that are fixed.
    options : mapping, optional
        Options of `load_dataset`.
    search : Search, optional
        How hyper-parameters are chosen, on the first fold.
    annotator : str, optional
        Annotator to train on and to compare with, where there are several.
    split : {"individual", "recording"}
        What is never split between training and test.
    suites : sequence of str
    seed : int
    """
    source = resolve_source(dataset)
    if data is None:
        data = select_annotated(load_dataset(source, **(options or {})), annotator)
    return fold_plan(
        STUDY_LABEL,
        with_folds(data, split=split),
        model,
        dataset=data.name or dataset,
        source=source,
        options=options,
        params=params,
        search=search,
        setting=SPLITS[split],
        suites=suites,
        choose_by=(suites[0], "f1"),
        annotator=annotator,
        seed=seed,
    )


def is_cross_validation(setting: Setting) -> bool:
    """Return whether a setting is that of a cross-validation on all data, rather than a point of a learning curve."""
    return setting in SPLITS.values()


def summarize_cross_validation(
    store: Store, model: str, only: Collection[str] | None = None, *, data: Dataset | None = None, annotator: str | None = None
) -> dict[str, Any]:
    """Return the evaluation on a model's card: scores of its cross-validation with intervals over individuals, overall and per behavior.

    Parameters
    ----------
    store : Store
        Store with the finished jobs of `study_plan`.
    model : str
    only : collection of str, optional
        Keys of the jobs to use, where there are others of the same model.
    data : Dataset, optional
        The recordings, to compare the model with the agreement of their annotators.
    annotator : str, optional
        The annotator whose annotations were learned.

    Returns
    -------
    dict
        ``scores`` and ``intervals`` of all behaviors, ``behaviors`` and ``behavior_intervals`` of each; ``amounts``, the annotated
        ``bouts`` and ``seconds`` of each; ``confusions``, the most frequent ones (`Scores.worst_confusions`); ``human``, the scores of
        annotators against each other (`score_annotators`), empty unless there are several.
    """
    jobs = list(_cross_validation_jobs(store, model, only))
    states = sorted((finished.scores["suites"][EVALUATION_SUITE]["state"] for finished in jobs), key=lambda state: state["recordings"])
    if not states:
        raise EthobenchError(f"{store.root} contains no cross-validation of {model!r}")
    scores = Scores.from_states(states, resamples=EVALUATION_RESAMPLES)
    intervals, occurrence = scores.intervals, scores.occurrence
    return {
        "suite": EVALUATION_SUITE,
        "folds": len(jobs),
        "split": _split_of(jobs[0]),
        "scores": _finite(scores.overall),
        "intervals": intervals["overall"],
        "behaviors": {name: _finite(values) for name, values in scores.behaviors.items()},
        "behavior_intervals": intervals["behaviors"],
        "never_annotated": list(occurrence.never_annotated) if occurrence is not None else [],
        "only_predicted": list(occurrence.only_predicted) if occurrence is not None else [],
        "amounts": {name: amount._asdict() for name, amount in occurrence.annotated.items()} if occurrence is not None else {},
        "confusions": scores.worst_confusions(),
        "human": {} if data is None else score_annotators(data, annotator),
        **{name: intervals[name] for name in ("n", "unit", "reason")},
    }


@dataclass(frozen=True)
class CrossValidationPredictions:
    """Predictions of a cross-validation, each by a model that was not trained on the recording.

    Attributes
    ----------
    predictions : dict of recording id to Prediction or Annotation
    folds : dict of recording id to int
        The test fold of each recording.
    split : {"individual", "recording"}
        What was never split between training and test.
    """

    predictions: dict[str, Predicted]
    folds: dict[str, int]
    split: str

    def attach_to(self, model: Model) -> list[str]:
        """Attach the predictions to a model that was fitted to the same recordings; return the ids of recordings that are excluded.

        A recording is excluded if it, or another one of the same individual, was used to train the model that this one was
        initialized from, since every fold was initialized from that model too.
        """
        training = model.training
        if training is None:
            raise EthobenchError(f"{model!r} does not know its training recordings, so no predictions can be attached to them")
        excluded = [r.id for r in training.direct if r.id in self.predictions and not training.held_out_by_initial_model(r)]
        included = [r.id for r in training.direct if r.id in self.predictions and r.id not in excluded]
        model.out_of_fold = {name: self.predictions[name] for name in included}
        model.training = training.with_folds({name: self.folds[name] for name in included}, self.split)
        return excluded


def read_out_of_fold(store: Store, model: str, only: Collection[str] | None = None) -> CrossValidationPredictions:
    """Return the out-of-fold predictions of a model's cross-validation.

    Parameters
    ----------
    store : Store
        Store with the finished jobs of `study_plan`.
    model : str
    only : collection of str, optional
        Keys of the jobs to use, where there are others of the same model.
    """
    predictions: dict[str, Predicted] = {}
    folds: dict[str, int] = {}
    split = "individual"
    for finished in _cross_validation_jobs(store, model, only):
        job, split = finished.job, _split_of(finished)
        held_out = {*job.test} - {*job.train}
        if not store.verify(finished.key):
            raise StoreError(f"{store.describe_damage()[-1]}: run the same command again")
        fold_predictions = read_predictions(store.folder(finished.key))
        predictions |= {name: predicted for name, predicted in fold_predictions.items() if name in held_out}
        folds |= dict.fromkeys(held_out & {*fold_predictions}, job.fold)
    return CrossValidationPredictions(predictions, folds, split)


def _cross_validation_jobs(store: Store, model: str, only: Collection[str] | None) -> Iterator[ScoredJob]:
    for finished in final_jobs(store, only):
        if finished.job.model == model and is_cross_validation(finished.job.setting):
            yield finished


def _split_of(finished: ScoredJob) -> str:
    return next(split for split, setting in SPLITS.items() if setting == finished.job.setting)


def _finite(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}
