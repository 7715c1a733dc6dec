"""The protocol by folds: choose hyper-parameters on the first fold, report the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import ceil
from typing import Any

from ethobench.benchmarks.jobs import make_job
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError
from ethobench.models import create_model, models
from ethobench.runs import Job, Plan, Search

TrainFolds = Callable[[int, Sequence[int]], Sequence[int]]


def all_others(fold: int, folds: Sequence[int]) -> Sequence[int]:
    """Train on every fold but the one that is tested."""
    return [other for other in folds if other != fold]


def one_before(fold: int, folds: Sequence[int]) -> Sequence[int]:
    """Train on the fold before the one that is tested: the setting with little data."""
    place = list(folds).index(fold)
    return [folds[place - 1]]


def fold_plan(
    benchmark: str,
    data: Dataset,
    model: str,
    *,
    dataset: str,
    source: str = "",
    options: Mapping[str, Any] | None = None,
    search: Search | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    params: Mapping[str, Any] | None = None,
    train_folds: TrainFolds = all_others,
    skip_first: bool = False,
    setting: str = "full",
    suites: Sequence[str] = ("ethobench",),
    choose_by: tuple[str, str] = ("ethobench", "f1"),
    annotator: str | None = None,
    seed: int = 0,
) -> Plan:
    """Plan a model on a dataset: a search, if any, on the first fold; then the other folds with the best.

    Individuals are never split, since folds are dealt by individual. Cells that fail are reported and not chosen.

    Parameters
    ----------
    benchmark : str
    data : Dataset
        With folds.
    model : str
    dataset, source, options
        The dataset's name, and how workers load it.
    search : Search, optional
        How hyper-parameters are chosen; without it they are the defaults, and all folds are reported.
    grid : mapping, optional
        Hyper-parameters to the values tried; the model's own unless given.
    params : mapping, optional
        Hyper-parameters that are fixed.
    train_folds : callable
        The folds to train on for a tested one.
    skip_first : bool
        Whether the first fold is left out also where nothing is searched, as if it had been used to choose.
    setting : str
    suites : sequence of str
    choose_by : tuple of str
        Suite and measure by which the best is chosen.
    annotator : str, optional
    seed : int
        Of the first fold; the others count up from it.
    """
    folds = sorted(set(data.folds.values()))
    if len(folds) < 2:
        raise EthobenchError(f"{data.name or dataset} has no folds; a benchmark needs at least two")

    create_model(model, **(params or {}))  # complains now rather than in every job

    def job(fold: int, chosen: Mapping[str, Any], stage: str, share: float = 1.0) -> Job:
        train = train_folds(fold, folds)
        train = train[: max(1, ceil(share * len(train)))]
        return make_job(
            benchmark,
            data,
            model,
            (r.id for r in data if data.folds[r.id] in train),
            (r.id for r in data if data.folds[r.id] == fold),
            {**(params or {}), **chosen},
            dataset=dataset,
            options=options or {},
            seed=seed + fold,
            suites=tuple(suites),
            annotator=annotator,
            setting=setting,
            stage=stage,
            fold=fold,
            source=source,
        )

    cells = {name: values for name, values in (models[model].grid if grid is None else grid).items() if name not in (params or {})}
    best: Mapping[str, Any] = {}
    if search is not None and cells:
        best = yield from search.choose(cells, lambda cell, share: job(folds[0], cell, "search", share), choose_by)
        skip_first = True
    yield [job(fold, best, "final") for fold in folds[skip_first:]]


def only_folds(plan: Plan, wanted: Collection[int]) -> Plan:
    """Leave out the final jobs of other folds; the store takes them later.

    Parameters
    ----------
    plan : Plan
        Of any benchmark whose jobs have folds.
    wanted : collection of int
    """
    jobs = next(plan)
    while True:
        kept = [job for job in jobs if job.stage != "final" or job.fold in wanted]
        if jobs and not kept:
            raise EthobenchError(f"none of the folds {_listed(wanted)} is tested here; there are: {_listed({job.fold for job in jobs})}")
        results = yield kept
        try:
            jobs = plan.send(results)
        except StopIteration:
            return


def _listed(folds: Collection[int]) -> str:
    return ", ".join(map(str, sorted(folds)))
