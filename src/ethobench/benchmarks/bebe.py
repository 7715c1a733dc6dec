"""BEBE's protocol: hyper-parameters on fold 0, scores on folds 1 to 4, individual by individual, with all data or with little."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ethobench.benchmarks.folds import all_others, fold_plan, one_before
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import families, load_dataset
from ethobench.models import models
from ethobench.runs import Plan, Search

MODELS = ("chance", "rf", "crnn")
SETTINGS = ("full", "reduced")
SUITES = ("bebe", "ethobench")
NO_GYROSCOPE = "no gyroscope"
TABLE = "bebe_settings.csv"
NUMBERS = {"learning_rate": float, "dilation": int, "cutoff": float, "seconds": float, "omega": float, "longest": float, "mode": str}
SNAKES, DOGS, LONGEST_OF_DOGS = "desantis_rattlesnakes", "vehkaoja_dogs", 16.0
WINDOWS = {"desantis_rattlesnakes": (64, 150), "ladds_seals": (128, 150)}
WINDOW = (2048, 900)
FOREST_CUTOFFS = {"desantis_rattlesnakes": 0.0, "vehkaoja_dogs": 0.1, "maekawa_gulls": 0.1, "ladds_seals": 6.4, "pagano_bears": 6.4}
CRNN_CUTOFFS = {"jeantet_turtles": 0.4, "ladds_seals": 1.6, "pagano_bears": 1.6, "friedlaender_whales": 1.6, "vehkaoja_dogs": 6.4}
"""Cutoffs that the search with little data does not search, as the paper says (its code missed the seals' by a spelling)."""


def plans(
    datasets: Sequence[str] = (),
    chosen: Sequence[str] = MODELS,
    *,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    search: Search | None = None,
    settings: Sequence[str] = ("full",),
    without_gyroscope: bool = False,
    seed: int = 0,
) -> Iterator[Plan]:
    """Plan every model on every dataset and setting.

    Parameters
    ----------
    datasets : sequence of str
        ``HAR`` or ``bebe/HAR``, ...; those that are on this machine unless given.
    chosen : sequence of str
        Models.
    params : mapping, optional
        Hyper-parameters that are fixed, by model; they come before the published ones.
    search : Search, optional
        How hyper-parameters are chosen on fold 0; without it they are the published ones.
    settings : sequence of {"full", "reduced"}
        ``reduced`` trains on one fold only.
    without_gyroscope : bool
        Leave gyroscopes out, for comparison with models that know only acceleration.
    seed : int
        Of fold 0.
    """
    if unknown := [name for name in settings if name not in SETTINGS]:
        raise EthobenchError(f"BEBE's settings are {' and '.join(SETTINGS)}, not {', '.join(unknown)}")
    options: dict[str, Any] = {"without": "Gyr"} if without_gyroscope else {}
    for name in _names(datasets):
        data = load_dataset(f"bebe/{name}", **options)
        for setting in settings:
            title = f"{setting}, {NO_GYROSCOPE}" if without_gyroscope else setting
            for model in chosen:
                known = published_params(model, name, title)
                window = _window(model, name)
                yield fold_plan(
                    "bebe",
                    data,
                    model,
                    dataset=f"bebe/{name}",
                    options=options,
                    search=search,
                    grid=_grid(model, name),
                    params={**(known if search is None else _fixed(model, name, setting)), **window, **(params or {}).get(model, {})},
                    train_folds=all_others if setting == "full" else one_before,
                    skip_first=True,
                    setting=title,
                    suites=SUITES,
                    choose_by=("bebe", "f1"),
                    seed=seed,
                )


def published_params(model: str, dataset: str, setting: str = "full") -> dict[str, Any]:
    """Return the hyper-parameters that BEBE selected; those of a like setting, or none, where it tells none.

    Examples
    --------
    >>> published_params("rf", "HAR")
    {'cutoff': 1.6, 'seconds': 16.0}
    """
    table = _published()
    full = setting.replace("reduced", "full")
    for like in (setting, setting.partition(",")[0], f"{setting}, {NO_GYROSCOPE}", full, full.partition(",")[0]):
        if (model, like, dataset) in table:
            return dict(table[model, like, dataset])
    return {}


@lru_cache(maxsize=1)
def _published() -> Mapping[tuple[str, str, str], Mapping[str, Any]]:
    text = (files("ethobench.benchmarks") / TABLE).read_text(encoding="utf-8")
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in csv.DictReader(text.splitlines()):
        params = {name: kind(row[name]) for name, kind in NUMBERS.items() if row[name]}
        found.setdefault((row["model"], row["setting"], row["dataset"]), params)
    return found


def _names(datasets: Sequence[str]) -> list[str]:
    family = families["bebe"]
    found = [name.removeprefix("bebe/") for name in datasets] or [name for name in family.variants if family.is_here(name)]
    if unknown := [name for name in found if name not in family.variants]:
        raise NotFoundError(f"BEBE has no dataset {', '.join(unknown)}; it has: {', '.join(family.variants)}")
    if not found:
        raise NotFoundError("no dataset of BEBE is on this machine; name one with --datasets and it is fetched")
    return found


def _grid(model: str, dataset: str) -> Mapping[str, Sequence[Any]]:
    """Return what a search tries."""
    grid = dict(models[model].grid)
    if dataset == DOGS and "seconds" in grid:
        grid["seconds"] = tuple(seconds for seconds in grid["seconds"] if seconds < LONGEST_OF_DOGS)
    return grid


def _window(model: str, dataset: str) -> dict[str, Any]:
    """Return the length of the windows that networks see."""
    if "window" not in {f.name for f in fields(models[model].Params)}:
        return {}
    convolution, harnet = WINDOWS.get(dataset, WINDOW)
    if model == "harnet":
        return {"window": harnet, "config": "harnet5" if dataset in WINDOWS else "harnet30"}
    return {"window": convolution}


def _fixed(model: str, dataset: str, setting: str) -> dict[str, Any]:
    """Return what a search leaves alone."""
    if dataset == SNAKES and model in ("rf", "dt", "svm", "cnn", "crnn"):
        return {"cutoff": 0.0}
    if setting == "reduced" and model in ("rf", "dt", "svm"):
        return {"cutoff": FOREST_CUTOFFS.get(dataset, 1.6)}
    if setting == "reduced" and model in ("cnn", "crnn"):
        return {"cutoff": CRNN_CUTOFFS.get(dataset, 0.0)}
    return {}
