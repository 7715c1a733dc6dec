"""Published scores, with their sources."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

FILE = "published.csv"
KEYS = ("dataset", "model", "setting", "suite", "metric")


class PublishedScore(NamedTuple):
    """A score from a paper or its code, and its source."""

    value: float
    source: str


@cache
def published_scores(benchmark: str) -> dict[tuple[str, ...], PublishedScore]:
    """Return the published scores of a benchmark by dataset, model, setting (as text), suite and metric."""
    text = (files("ethobench.benchmarks") / FILE).read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["benchmark"] == benchmark]
    return {tuple(row[key] for key in KEYS): PublishedScore(float(row["value"]), row["source"]) for row in rows}
