"""The synthetic benchmark: generated recordings of poses and of a tag, under two minutes on a laptop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ethobench.benchmarks.base import Benchmark, CrossValidationOptions, option, register_benchmark
from ethobench.benchmarks.folds import fold_plan, select_folds
from ethobench.core.errors import NotFoundError
from ethobench.datasets import load_dataset
from ethobench.runs import JobPlan, Store

NAME = "synthetic"
DATASETS = ("synthetic/pose", "synthetic/tag")
ALL_DATASETS = (*DATASETS, "synthetic/trio")
DATASET_OPTIONS: dict[str, Any] = {"individuals": 8, "seconds": 120.0, "folds": 4}


@dataclass(frozen=True, kw_only=True)
class SyntheticOptions(CrossValidationOptions):
    """Options of the synthetic benchmark."""

    datasets: tuple[str, ...] = option(DATASETS, "pose, tag or trio, separated by commas.")


@register_benchmark(NAME)
class Synthetic(Benchmark):
    """Generated recordings of two kinds."""

    title = "Generated recordings, under two minutes on a laptop."
    description = """Run models on generated recordings, under two minutes on a laptop.

Example: [bold]ethobench run synthetic --models chance,rf --store runs/first[/bold]
"""
    Options = SyntheticOptions
    options: SyntheticOptions
    models = ("chance", "rf")

    def jobs(self, store: Store | None = None, *, n_workers: int = 1, report: Callable[[str], None] = lambda _: None) -> Iterator[JobPlan]:
        """Yield one plan for each combination of hyper-parameters, dataset and model."""
        options = self.options
        search = options.make_search(store, n_workers)
        for params in options.combinations():
            for dataset in options.datasets:
                name = dataset if "/" in dataset else f"synthetic/{dataset}"
                if name not in ALL_DATASETS:
                    raise NotFoundError(f"the synthetic benchmark has no dataset {dataset!r}. Available: {', '.join(ALL_DATASETS)}")
                data = load_dataset(name, **DATASET_OPTIONS)
                for model in options.models or self.models:
                    fixed = params.get(model, options.params_of(model))
                    plan = fold_plan(
                        NAME, data, model, dataset=name, options=DATASET_OPTIONS, params=fixed, search=search, seed=options.seed
                    )
                    yield select_folds(plan, options.folds)
