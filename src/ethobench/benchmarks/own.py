"""Your own data as a benchmark: grouped folds, any model, the scores that papers ask for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.benchmarks.folds import fold_plan
from ethobench.benchmarks.results import final_jobs
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError
from ethobench.core.folds import deal_folds
from ethobench.datasets import load_dataset
from ethobench.metrics import Scores
from ethobench.runs import Plan, Search, Store

MODELS = ("chance", "rf")
WHOLE = ("full", "split by recording")
CARD_SUITE = "ethobench"
CARD_RESAMPLES = 1000


def with_folds(data: Dataset, n_folds: int = 5, by: str = "individual") -> Dataset:
    """Keep the folds that the data come with, or deal some by individual."""
    if by == "individual" and len(set(data.folds.values())) > 1 and len(data.folds) == len(data):
        return data
    return replace(data, folds=deal_folds(data, n_folds, by))


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
    """
    path = Path(dataset)
    source = str(path.resolve()) if path.exists() else dataset
    data = with_folds(load_dataset(source, **(options or {})), by=by)
    for recording in data:
        recording.annotation(annotator)  # complains now rather than in every job
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
    """Return what a model's card tells of its cross-validation: figures and intervals over individuals, of all and each behaviour.

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
    between = scores.intervals
    return {
        "suite": CARD_SUITE,
        "split": "recording" if done[0]["job"]["setting"] == WHOLE[1] else "individual",
        "figures": _known(scores.overall),
        "intervals": between["overall"],
        "behaviors": {name: _known(figures) for name, figures in scores.behaviors.items()},
        "behavior_intervals": between["behaviors"],
    }


def _known(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items() if np.isfinite(value)}
