"""The synthetic benchmark: both kinds of made-up data, under two minutes on a laptop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ethobench.benchmarks.folds import fold_plan
from ethobench.core.errors import NotFoundError
from ethobench.datasets import load_dataset
from ethobench.runs import Plan, Search

DATASETS = ("synthetic/pose", "synthetic/tag")
ALL = (*DATASETS, "synthetic/trio")
MODELS = ("chance", "rf")
OPTIONS: dict[str, Any] = {"individuals": 8, "seconds": 120.0, "folds": 4}


def plans(
    datasets: Sequence[str] = DATASETS,
    chosen: Sequence[str] = MODELS,
    *,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    search: Search | None = None,
    seed: int = 0,
) -> Iterator[Plan]:
    """Plan every model on every dataset.

    Parameters
    ----------
    datasets : sequence of str
        ``synthetic/pose``, ``synthetic/tag`` or ``synthetic/trio``, or just ``pose`` and so on.
    chosen : sequence of str
        Models.
    params : mapping, optional
        Hyper-parameters that are fixed, by model.
    search : Search, optional
        How each model's hyper-parameters are chosen, on the first fold.
    seed : int
    """
    for dataset in datasets:
        name = dataset if "/" in dataset else f"synthetic/{dataset}"
        if name not in ALL:
            raise NotFoundError(f"the synthetic benchmark has {', '.join(ALL)}, not {dataset!r}")
        data = load_dataset(name, **OPTIONS)
        for model in chosen:
            yield fold_plan(
                "synthetic", data, model, dataset=name, options=OPTIONS, params=(params or {}).get(model), search=search, seed=seed
            )
