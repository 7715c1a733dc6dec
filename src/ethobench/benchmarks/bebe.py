"""BEBE: hyper-parameters are chosen on fold 0, scores are computed on folds 1 to 4 for each individual, with full or reduced data."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ethobench.benchmarks.base import SEARCHES, Benchmark, CrossValidationOptions, Table, option, register_benchmark
from ethobench.benchmarks.bebe_tables import claims_table, compare_settings, summarize_comparison
from ethobench.benchmarks.folds import all_other_folds, fold_plan, previous_fold, select_folds
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.core.messages import Message, Option
from ethobench.datasets import families, load_dataset
from ethobench.models import models
from ethobench.runs import JobPlan, Setting, Store

NAME = "bebe"
SETTINGS = ("full", "reduced")
SUITES = ("bebe", "ethobench")
PARAMETER_FILE = "bebe_settings.csv"
PARAMETER_TYPES = {
    "learning_rate": float,
    "dilation": int,
    "cutoff": float,
    "seconds": float,
    "omega": float,
    "longest": float,
    "mode": str,
}
SNAKES, DOGS, MAX_SECONDS_OF_DOGS = "desantis_rattlesnakes", "vehkaoja_dogs", 16.0
CONVOLUTION_WINDOWS = {"desantis_rattlesnakes": 64, "ladds_seals": 128}
CONVOLUTION_WINDOW, HARNET_WINDOW, SHORT_HARNET_WINDOW = 2048, 900, 150
FOREST_CUTOFFS = {"desantis_rattlesnakes": 0.0, "vehkaoja_dogs": 0.1, "maekawa_gulls": 0.1, "ladds_seals": 6.4, "pagano_bears": 6.4}
CRNN_CUTOFFS = {"jeantet_turtles": 0.4, "ladds_seals": 1.6, "pagano_bears": 1.6, "friedlaender_whales": 1.6, "vehkaoja_dogs": 6.4}
"""Cutoffs that are fixed in the search with reduced data, as in the paper (its code missed that of the seals through a misspelling)."""


@dataclass(frozen=True, kw_only=True)
class BebeOptions(CrossValidationOptions):
    """Options of the BEBE benchmark."""

    datasets: tuple[str, ...] = option((), "Datasets, such as HAR or bebe/HAR, separated by commas; by default those on this machine.")
    settings: tuple[str, ...] = option(("full",), "full, reduced (train on one fold), or both, separated by commas.", choices=SETTINGS)
    gyroscope: bool = option(True, "Use gyroscope channels; without them models can be compared with those for acceleration only.")
    published: bool = option(False, "Use the published hyper-parameters instead of a search.")
    search: str | None = option(None, "Choose hyper-parameters on fold 0: grid (the default), optuna, or none.", choices=(*SEARCHES, None))  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published and self.search not in (None, "none"):
            raise EthobenchError("`published` uses the published hyper-parameters and `search` chooses others: give only one of them")
        if self.search is None:
            object.__setattr__(self, "search", "none" if self.published else "grid")


@register_benchmark(NAME)
class Bebe(Benchmark):
    """BEBE: nine datasets of bio-logger recordings (Hoffman et al. 2024)."""

    title = "Bio-logger recordings of nine species (Hoffman et al. 2024)."
    description = """Run BEBE: nine datasets of bio-logger recordings (Hoffman et al. 2024).

Hyper-parameters are chosen on fold 0 (or are the published ones), and folds 1 to 4 are tested.

Example: [bold]ethobench run bebe --datasets HAR --models rf,cnn --published --store runs/bebe[/bold]
"""
    Options = BebeOptions
    options: BebeOptions
    models = ("chance", "rf", "crnn")
    tables = (
        Table(
            "settings",
            "each behavior with reduced and with full data",
            lambda store, options: compare_settings(store, metric=options.metrics[0] if options.metrics else "f1"),
            summarize=summarize_comparison,
        ),
        Table("claims", "claims of the paper, with the same numbers from this store", lambda store, options: claims_table(store)),
    )

    def jobs(self, store: Store | None = None, *, n_workers: int = 1, report: Callable[[str], None] = lambda _: None) -> Iterator[JobPlan]:
        """Yield one plan for each combination of hyper-parameters, dataset, setting and model."""
        options = self.options
        search = options.make_search(store, n_workers)
        dataset_options: dict[str, Any] = {} if options.gyroscope else {"without": "Gyr"}
        for params in options.combinations():
            for name in _dataset_names(options.datasets):
                data = load_dataset(f"bebe/{name}", **dataset_options)
                for setting in (Setting(name, gyroscope=options.gyroscope) for name in options.settings):
                    for model in options.models or self.models:
                        fixed = published_params(model, name, setting) if search is None else fixed_params(model, name, setting.name)
                        plan = fold_plan(
                            NAME,
                            data,
                            model,
                            dataset=f"bebe/{name}",
                            options=dataset_options,
                            search=search,
                            grid=search_grid(model, name),
                            params={**fixed, **_window(model, name), **params.get(model, options.params_of(model))},
                            train_folds=all_other_folds if setting.name == "full" else previous_fold,
                            skip_first=True,
                            setting=setting,
                            suites=SUITES,
                            choose_by=("bebe", "f1"),
                            seed=options.seed,
                        )
                        yield select_folds(plan, options.folds)


def published_params(model: str, dataset: str, setting: Setting | None = None) -> dict[str, Any]:
    """Return the hyper-parameters that BEBE selected; those of the most similar setting, or none, where none are published.

    Examples
    --------
    >>> published_params("rf", "HAR")
    {'cutoff': 1.6, 'seconds': 16.0}
    """
    setting = setting or Setting()
    table = _published_params()
    candidates = [
        (setting.name, setting.gyroscope),
        (setting.name, True),
        (setting.name, False),
        ("full", setting.gyroscope),
        ("full", True),
    ]
    for name, gyroscope in candidates:
        params = table.get((model, str(Setting(name, gyroscope=gyroscope)), dataset))
        if params is not None:
            return dict(params)
    return {}


@lru_cache(maxsize=1)
def _published_params() -> Mapping[tuple[str, str, str], Mapping[str, Any]]:
    text = (files("ethobench.benchmarks") / PARAMETER_FILE).read_text(encoding="utf-8")
    table: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in csv.DictReader(text.splitlines()):
        params = {name: convert(row[name]) for name, convert in PARAMETER_TYPES.items() if row[name]}
        table.setdefault((row["model"], row["setting"], row["dataset"]), params)
    return table


def _dataset_names(datasets: Sequence[str]) -> list[str]:
    family = families["bebe"]
    names = [name.removeprefix("bebe/") for name in datasets] or [name for name in family.variants if family.is_here(name)]
    if unknown := [name for name in names if name not in family.variants]:
        raise NotFoundError(f"BEBE has no dataset {', '.join(unknown)}. Available: {', '.join(family.variants)}")
    if not names:
        raise NotFoundError(Message("no dataset of BEBE is on this machine; name one with ", Option("datasets"), " to download it"))
    return names


def search_grid(model: str, dataset: str) -> Mapping[str, Sequence[Any]]:
    """Return the values that a search tries for each hyper-parameter."""
    grid = dict(models[model].grid)
    if dataset == DOGS and "seconds" in grid:
        grid["seconds"] = tuple(seconds for seconds in grid["seconds"] if seconds < MAX_SECONDS_OF_DOGS)
    return grid


def fixed_params(model: str, dataset: str, setting: str) -> dict[str, Any]:
    """Return the hyper-parameters that a search does not change."""
    if dataset == SNAKES and model in ("rf", "dt", "svm", "cnn", "crnn"):
        return {"cutoff": 0.0}
    if setting == "reduced" and model in ("rf", "dt", "svm"):
        return {"cutoff": FOREST_CUTOFFS.get(dataset, 1.6)}
    if setting == "reduced" and model in ("cnn", "crnn"):
        return {"cutoff": CRNN_CUTOFFS.get(dataset, 0.0)}
    return {}


def _window(model: str, dataset: str) -> dict[str, Any]:
    """Return the window length of networks, in samples."""
    if "window" not in {f.name for f in fields(models[model].Params)}:
        return {}
    if model == "harnet":
        is_short = dataset in CONVOLUTION_WINDOWS
        window, config = (SHORT_HARNET_WINDOW, "harnet5") if is_short else (HARNET_WINDOW, "harnet30")
        return {"window": window, "config": config}
    return {"window": CONVOLUTION_WINDOWS.get(dataset, CONVOLUTION_WINDOW)}
