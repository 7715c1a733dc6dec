"""What a paper claims of its results, beside what a store shows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files

import numpy as np

from ethobench.benchmarks.behaviors import compare_settings, summarize_comparison
from ethobench.benchmarks.results import Row, results_table
from ethobench.core.errors import NotFoundError
from ethobench.runs import Store

TABLE = "claims.csv"
COLUMNS = ("benchmark", "claim", "published", "ours", "datasets", "source")
NETWORKS = ("cnn", "crnn", "rnn", "harnet", "wavelet_rnn")
CLASSICAL = ("rf", "dt", "svm", "wavelet_rf", "wavelet_dt", "wavelet_svm")
Figures = Mapping[tuple[str, str, str], float]
Answer = tuple[str, int] | None


class Evidence:
    """What a store shows, computed once."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
    def figures(self) -> Figures:
        """BEBE's F1 by dataset, model and setting."""
        rows = [row for row in results_table(self.store) if row["suite"] == "bebe" and row["metric"] == "f1"]
        return {(row["dataset"], row["model"], row["setting"]): row["mean"] for row in rows if row["mean"] is not None}

    @cached_property
    def compared(self) -> list[Row]:
        """Behaviors with little and with all data."""
        try:
            return [row for row in compare_settings(self.store) if row["suite"] == "bebe"]
        except NotFoundError:
            return []


def claims_table(store: Store) -> list[Row]:
    """Set every claim beside the same figure from a store.

    Returns
    -------
    list of dict
        Rows of ``benchmark, claim, published, ours, datasets, source``; ``ours`` is None where the store lacks the models or
        settings that the claim is about, ``datasets`` counts those that went into it.
    """
    evidence = Evidence(store)
    text = (files("ethobench.benchmarks") / TABLE).read_text(encoding="utf-8")
    told = []
    for claim in csv.DictReader(text.splitlines()):
        answer = MEASURED[claim["kind"]](evidence, claim["model"]) if claim["kind"] else None
        ours, datasets = answer or (None, 0)
        values = (claim["benchmark"], claim["claim"], claim["value"], ours, datasets, claim["source"])
        told.append(dict(zip(COLUMNS, values, strict=True)))
    return told


def _lead_of_networks(evidence: Evidence, _: str) -> Answer:
    leads, figures = [], evidence.figures
    for dataset in _datasets(figures):
        best = [
            max((f for (d, m, s), f in figures.items() if d == dataset and m in kind and s == "full"), default=None)
            for kind in (NETWORKS, CLASSICAL)
        ]
        if best[0] is not None and best[1] is not None:
            leads.append(best[0] - best[1])
    return _mean(leads)


def _best_is(evidence: Evidence, models: str) -> Answer:
    """Count datasets whose best model is among some, where there are others."""
    names, setting = models.split(":", maxsplit=1)[0].split("|"), models.split(":")[1]
    wins, figures = [], evidence.figures
    for dataset in _datasets(figures):
        found = {m: f for (d, m, s), f in figures.items() if d == dataset and s == setting}
        if {*names} & {*found} and {*found} - {*names}:
            wins.append(max(found, key=lambda m: found[m]) in names)
    return (f"{sum(wins)} of {len(wins)}", len(wins)) if wins else None


def _loss(evidence: Evidence, model: str) -> Answer:
    figures = evidence.figures
    pairs = [[figures.get((d, model, s)) for s in ("full", "reduced")] for d in _datasets(figures)]
    return _mean([full - little for full, little in pairs if full is not None and little is not None])


def _correlation(evidence: Evidence, model: str) -> Answer:
    return _of_comparison(evidence, model, "correlation")


def _median_gain(evidence: Evidence, model: str) -> Answer:
    return _of_comparison(evidence, model, "median_difference")


def _fold_one(evidence: Evidence, model: str) -> Answer:
    """Tell the figure of the jobs that test fold 1 of HAR."""
    store = evidence.store
    for key in store.finished():
        job = store.job(key)
        if job and (job["dataset"], job["model"], job["stage"], job["fold"], job["setting"]) == ("bebe/HAR", model, "final", 1, "full"):
            scores = store.scores(key)
            return (f"{scores['suites']['bebe']['overall']['f1']:.3f}", 1) if scores else None
    return None


MEASURED: dict[str, Callable[[Evidence, str], Answer]] = {
    "lead of networks": _lead_of_networks,
    "best is": _best_is,
    "loss": _loss,
    "correlation": _correlation,
    "median gain": _median_gain,
    "fold 1": _fold_one,
}


def _of_comparison(evidence: Evidence, model: str, name: str) -> Answer:
    rows = [row for row in evidence.compared if row["model"] == model]
    found = summarize_comparison(rows)
    return (f"{found[0][name]:.3f}", len({r["dataset"] for r in rows})) if found and found[0][name] is not None else None


def _datasets(figures: Figures) -> list[str]:
    return sorted({dataset for dataset, _, _ in figures})


def _mean(values: Sequence[float]) -> Answer:
    return (f"{np.mean(values):.3f}", len(values)) if values else None
