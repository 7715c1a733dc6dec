"""The protocol by folds: choose hyper-parameters on the first fold, report the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError
from ethobench.models import models
from ethobench.runs import Job, Plan


def fold_plan(
    benchmark: str,
    data: Dataset,
    model: str,
    *,
    dataset: str,
    options: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    params: Mapping[str, Any] | None = None,
    suites: Sequence[str] = ("ethobench",),
    choose_by: tuple[str, str] = ("ethobench", "f1"),
    annotator: str | None = None,
    seed: int = 0,
) -> Plan:
    """Plan a model on a dataset: if there is a grid, every cell on fold 0 first; then the other folds with the best.

    Individuals are never split, since folds are dealt by individual. Cells that fail are reported and not chosen.

    Parameters
    ----------
    benchmark : str
    data : Dataset
        With folds.
    model : str
    dataset, options
        How workers load the same data.
    grid : mapping, optional
        Hyper-parameters to the values tried; none are searched without it, and all folds are reported.
    params : mapping, optional
        Hyper-parameters that are fixed.
    suites : sequence of str
    choose_by : tuple of str
        Suite and measure by which the best is chosen.
    annotator : str, optional
    seed : int
    """
    folds = sorted(set(data.folds.values()))
    if len(folds) < 2:
        raise EthobenchError(f"{data.name or dataset} has no folds; a benchmark needs at least two")

    def job(fold: int, chosen: Mapping[str, Any], stage: str) -> Job:
        return Job(
            benchmark,
            dataset,
            data.version,
            train=tuple(r.id for r in data if data.folds[r.id] != fold),
            test=tuple(r.id for r in data if data.folds[r.id] == fold),
            model=model,
            revision=models[model].revision,
            params={**(params or {}), **chosen},
            options=options or {},
            seed=seed + fold,
            suites=tuple(suites),
            annotator=annotator,
            stage=stage,
            fold=fold,
        )

    best: Mapping[str, Any] = {}
    if grid:
        cells = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        results = yield [job(folds[0], cell, "search") for cell in cells]
        scored = [(r.overall[choose_by[0]][choose_by[1]], k) for k, r in enumerate(results) if not r.error]
        known = [(value, -k) for value, k in scored if value is not None]
        if not known:
            raise EthobenchError(f"no cell of the grid of {model} on {dataset} could be scored")
        best = cells[-max(known)[1]]
        folds = folds[1:]
    yield [job(fold, best, "final") for fold in folds]
