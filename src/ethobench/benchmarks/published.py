"""Published scores, with their sources."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

FILE = "published.csv"
CLAIM_FILE = "claims.csv"
KEYS = ("dataset", "model", "setting", "suite", "metric")
COLUMNS = ("benchmark", *KEYS, "value", "std", "source")
"""Columns of `published`."""


class PublishedScore(NamedTuple):
    """A score from a paper or its code, and its source."""

    value: float
    source: str


@cache
def published_scores(benchmark: str) -> dict[tuple[str, ...], PublishedScore]:
    """Return the published scores of a benchmark by dataset, model, setting (as text), suite and metric."""
    rows = [row for row in read_rows(FILE) if row["benchmark"] == benchmark]
    return {tuple(row[key] for key in KEYS): PublishedScore(float(row["value"]), row["source"]) for row in rows}


def read_rows(file: str) -> list[dict[str, str]]:
    """Read a table of this package: published scores, or claims."""
    return list(csv.DictReader((files("ethobench.benchmarks") / file).read_text(encoding="utf-8").splitlines()))


def published(benchmark: str | None = None) -> pd.DataFrame:
    """Return published scores: from papers, from the results that their code comes with, or from their code run again.

    Parameters
    ----------
    benchmark : str, optional
        ``"bebe"``, ``"calms21"``, ...; all by default.

    Returns
    -------
    pandas.DataFrame
        One row for each score: ``benchmark, dataset, model, setting, suite, metric, value, std, source``. Names are those of ``ethobench
        results``. ``std`` is missing where none is published. Statements of a paper on several datasets or settings have an empty
        ``dataset`` and ``setting``, and the statement as ``metric``. A benchmark whose paper has no numbers, only figures, has no rows.

    Raises
    ------
    NotFoundError
        If there is no benchmark of this name.

    Examples
    --------
    >>> scores = published("calms21")
    >>> baseline = scores.query("dataset == 'calms21/task1' and setting == 'baseline' and metric == 'macro_f1'")
    >>> baseline.set_index("model")[["value", "std"]].loc["conv1d"].to_dict()
    {'value': 0.7928, 'std': 0.0114}
    """
    import pandas as pd

    from ethobench.benchmarks.base import benchmarks

    if benchmark is not None:
        _ = benchmarks[benchmark]  # an unknown name is an error
    scores = pd.DataFrame([*read_rows(FILE), *_claim_rows()], columns=list(COLUMNS))
    scores[["value", "std"]] = scores[["value", "std"]].apply(pd.to_numeric)
    return scores if benchmark is None else scores[scores["benchmark"] == benchmark].reset_index(drop=True)


def _claim_rows() -> list[dict[str, str]]:
    """Return the numbers among the claims of papers as rows of `published`."""
    claims = [claim for claim in read_rows(CLAIM_FILE) if claim["value"].replace(".", "", 1).isdigit()]
    names = {"dataset": "", "setting": "", "std": ""}
    return [{**names, **claim, "suite": claim["benchmark"], "metric": claim["claim"]} for claim in claims]
