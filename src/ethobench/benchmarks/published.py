"""Published scores, with their sources."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

FILE = "published.csv"
KEYS = ("benchmark", "dataset", "model", "setting", "suite", "metric")


class PublishedScore(NamedTuple):
    """A score from a paper or its code, and its source."""

    value: float
    source: str


@lru_cache(maxsize=1)
def published_scores() -> dict[tuple[str, ...], PublishedScore]:
    """Return published scores by benchmark, dataset, model, setting (as text), suite and metric."""
    text = (files("ethobench.benchmarks") / FILE).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {tuple(row[key] for key in KEYS): PublishedScore(float(row["value"]), row["source"]) for row in rows}
