"""Cross-validation: grouped folds of annotated recordings, and plans that choose hyper-parameters on the first fold and test the others."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from ethobench.benchmarks.base import make_job
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError, NotFoundError, ReadWarning
from ethobench.core.folds import assign_folds
from ethobench.core.messages import Message, Option
from ethobench.models import ALL, CONSENSUS, create_model, models
from ethobench.runs import Job, JobPlan, Search, Setting
from ethobench.runs.plan import FINAL, SEARCH

TrainFolds = Callable[[int, Sequence[int]], Sequence[int]]
N_FOLDS = 5
MAX_NAMED = 5


def resolve_source(dataset: str) -> str:
    """Return what `load_dataset` takes in any working directory: the absolute path of a study, or the name of a dataset."""
    return str(Path(dataset).resolve()) if Path(dataset).exists() else dataset


def select_annotated(data: Dataset, annotator: str | None = None) -> Dataset:
    """Return the recordings that a model can be trained on; warns about those that are skipped.

    Parameters
    ----------
    data : Dataset
    annotator : str, optional
        As for `Model.fit`: a name, several separated by commas, ``"consensus"`` or ``"all"``.

    Raises
    ------
    NotFoundError
        If no recording is annotated by the annotator.
    """
    combines_annotators = annotator in (CONSENSUS, ALL)
    annotated = []
    for recording in data:
        with contextlib.suppress(NotFoundError):
            if not (combines_annotators and recording.annotations):
                recording.annotation(annotator)
            annotated.append(recording.id)
    if not annotated:
        missing = f"no recording of {data.name or 'the dataset'} is annotated"
        if annotator is None or combines_annotators:
            raise NotFoundError(missing)
        raise NotFoundError(f"{missing} by {annotator!r}; annotators: {', '.join(data.annotators) or 'none'}")
    if len(annotated) < len(data):
        skipped = [recording.id for recording in data if recording.id not in annotated]
        names = f"{', '.join(skipped[:MAX_NAMED])}{', ...' if len(skipped) > MAX_NAMED else ''}"
        warnings.warn(f"{len(skipped)} recordings without annotations are skipped: {names}", ReadWarning, stacklevel=2)
    return data.select(recordings=annotated)


def with_folds(data: Dataset, n_folds: int = N_FOLDS, split: str = "individual") -> Dataset:
    """Return the dataset with its folds, or with folds assigned by individual or recording if it has none.

    Parameters
    ----------
    data : Dataset
    n_folds : int
        Maximum number of folds to assign.
    split : {"individual", "recording"}
        What is never split between training and test.

    Raises
    ------
    EthobenchError
        If the dataset's folds split an individual, or only some recordings have a fold.
    """
    if split != "individual" or len(set(data.folds.values())) < 2:
        return replace(data, folds=assign_folds(data, n_folds, split))
    groups = data.groups()
    if missing := [recording.id for recording in data if recording.id not in data.folds]:
        raise EthobenchError(f"some recordings have a fold and some have none, such as {missing[0]!r}: give all of them one, or none")
    folds_of: dict[str, set[int]] = {}
    for name, fold in data.folds.items():
        folds_of.setdefault(groups[name], set()).add(fold)
    if divided := [individual for individual, folds in folds_of.items() if len(folds) > 1]:
        raise EthobenchError(
            Message(
                f"the folds split individual {divided[0]!r}: put its recordings into one fold, or use ",
                Option("split", "recording"),
                ", which allows recordings of one individual in training and test",
            )
        )
    return data


def all_other_folds(fold: int, folds: Sequence[int]) -> Sequence[int]:
    """Return every fold but the tested one."""
    return [other for other in folds if other != fold]


def previous_fold(fold: int, folds: Sequence[int]) -> Sequence[int]:
    """Return the fold before the tested one, which is BEBE's setting with reduced data."""
    return [folds[list(folds).index(fold) - 1]]


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
    train_folds: TrainFolds = all_other_folds,
    skip_first: bool = False,
    setting: Setting | None = None,
    suites: Sequence[str] = ("ethobench",),
    choose_by: tuple[str, str] = ("ethobench", "f1"),
    annotator: str | None = None,
    seed: int = 0,
) -> JobPlan:
    """Plan the cross-validation of a model: a search, if any, on the first fold; then the other folds with the best hyper-parameters.

    Individuals are never split, since folds are assigned by individual. Candidates of the search that fail are reported and not chosen.

    Parameters
    ----------
    benchmark : str
    data : Dataset
        A dataset with folds.
    model : str
    dataset, source, options
        The name of the dataset, and how workers load it.
    search : Search, optional
        How hyper-parameters are chosen. Without it the defaults are used, and all folds are reported.
    grid : mapping, optional
        Values to try for each hyper-parameter; the model's grid by default.
    params : mapping, optional
        Hyper-parameters that are fixed.
    train_folds : callable
        Returns the training folds of a tested fold.
    skip_first : bool
        Whether the first fold is not tested even without a search, as if it had been used for one.
    setting : Setting, optional
    suites : sequence of str
    choose_by : tuple of str
        Suite and metric by which the best hyper-parameters are chosen.
    annotator : str, optional
    seed : int
        Random seed of the first fold; fold k has ``seed + k``.
    """
    folds = sorted(set(data.folds.values()))
    if len(folds) < 2:
        raise EthobenchError(f"{data.name or dataset} has no folds; a benchmark needs at least two")

    create_model(model, **(params or {}))  # refuses invalid hyper-parameters before any job starts

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
            setting=setting or Setting(),
            stage=stage,
            fold=fold,
            source=source,
        )

    free_grid = {name: values for name, values in (models[model].grid if grid is None else grid).items() if name not in (params or {})}
    best: Mapping[str, Any] = {}
    if search is not None and free_grid:
        best = yield from search.choose(free_grid, lambda cell, share: job(folds[0], cell, SEARCH, share), choose_by)
        skip_first = True
    yield [job(fold, best, FINAL) for fold in folds[skip_first:]]


def select_folds(plan: JobPlan, folds: Collection[int]) -> JobPlan:
    """Drop the final jobs of other folds from a plan; all are kept if `folds` is empty."""
    if not folds:
        yield from plan
        return
    jobs = next(plan)
    while True:
        selected = [job for job in jobs if job.stage != FINAL or job.fold in folds]
        if jobs and not selected:
            tested = {job.fold for job in jobs}
            raise EthobenchError(f"none of the folds {_join(folds)} is tested; folds of this benchmark: {_join(tested)}")
        results = yield selected
        try:
            jobs = plan.send(results)
        except StopIteration:
            return


def _join(folds: Collection[int]) -> str:
    return ", ".join(map(str, sorted(folds)))
