"""Published figures as data, to stand beside ours."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

TABLE = "published.csv"


class Published(NamedTuple):
    """A figure from a paper or its code, and where it stands."""

    value: float
    source: str


@lru_cache(maxsize=1)
def published_figures() -> dict[tuple[str, ...], Published]:
    """Return published figures by benchmark, dataset, model, setting, suite and metric."""
    text = (files("ethobench.benchmarks") / TABLE).read_text(encoding="utf-8")
    names = ("benchmark", "dataset", "model", "setting", "suite", "metric")
    return {tuple(row[name] for name in names): Published(float(row["value"]), row["source"]) for row in csv.DictReader(text.splitlines())}
