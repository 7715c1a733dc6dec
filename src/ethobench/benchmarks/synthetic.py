"""The synthetic benchmark: both kinds of made-up data, under two minutes on a laptop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ethobench.benchmarks.folds import fold_plan
from ethobench.core.errors import NotFoundError
from ethobench.datasets import load_dataset
from ethobench.models import models
from ethobench.runs import Plan

DATASETS = ("synthetic/pose", "synthetic/tag")
MODELS = ("chance", "rf")
OPTIONS = {"individuals": 8, "seconds": 120.0, "folds": 4}


def plans(datasets: Sequence[str] = DATASETS, chosen: Sequence[str] = MODELS, *, search: str = "", seed: int = 0) -> Iterator[Plan]:
    """Plan every model on every dataset.

    Parameters
    ----------
    datasets : sequence of str
        ``synthetic/pose`` and ``synthetic/tag``, or just ``pose`` and ``tag``.
    chosen : sequence of str
        Models.
    search : {"", "grid"}
        Whether each model's published grid is searched on the first fold.
    seed : int
    """
    for dataset in datasets:
        name = dataset if "/" in dataset else f"synthetic/{dataset}"
        if name not in DATASETS:
            raise NotFoundError(f"the synthetic benchmark has {', '.join(DATASETS)}, not {dataset!r}")
        data = load_dataset(name, **OPTIONS)
        for model in chosen:
            grid = models[model].grid if search == "grid" else None
            yield fold_plan("synthetic", data, model, dataset=name, options=OPTIONS, grid=grid or None, seed=seed)
