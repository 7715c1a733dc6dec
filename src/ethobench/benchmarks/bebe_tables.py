"""Tables of BEBE: behaviors with reduced and with full data, and the claims of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ethobench.benchmarks.base import Row
from ethobench.benchmarks.published import CLAIM_FILE, read_rows
from ethobench.benchmarks.results import results_table
from ethobench.benchmarks.tables import behaviors_table
from ethobench.core.errors import NotFoundError
from ethobench.runs import Setting, Store
from ethobench.runs.plan import FINAL

COMPARED = ("benchmark", "dataset", "model", "suite", "behavior")
SETTINGS = ("reduced", "full")
CLAIM_COLUMNS = ("benchmark", "claim", "published", "ours", "datasets", "source")
NETWORKS = ("cnn", "crnn", "rnn", "harnet", "wavelet_rnn")
CLASSICAL = ("rf", "dt", "svm", "wavelet_rf", "wavelet_dt", "wavelet_svm")
ClaimValue = tuple[str, int] | None
"""The value of a claim as text, and the number of datasets it is computed from; None if the store lacks models or settings."""


def compare_settings(store: Store, settings: Sequence[str] = SETTINGS, metric: str = "f1") -> list[Row]:
    """Compare behaviors under two settings, as BEBE's Fig. 6 does for reduced and full data.

    Parameters
    ----------
    store : Store
    settings : sequence of str
        The two settings, before and after.
    metric : str

    Returns
    -------
    list of dict
        Rows of ``benchmark, dataset, model, suite, behavior``, the value under each setting, and their ``difference``.
    """
    before, after = settings
    values: dict[tuple[str, ...], dict[str, float]] = {}
    for row in behaviors_table(store, [metric]):
        if row["value"] is not None and row["setting"] in settings:
            values.setdefault(tuple(row[name] for name in COMPARED), {})[row["setting"]] = row["value"]
    pairs = {names: pair for names, pair in values.items() if len(pair) == 2}
    if not pairs:
        raise NotFoundError(f"{store.root}: no model was scored with {metric!r} under both {before!r} and {after!r}")
    return [
        {**dict(zip(COMPARED, names, strict=True)), before: pair[before], after: pair[after], "difference": pair[after] - pair[before]}
        for names, pair in pairs.items()
    ]


def summarize_comparison(rows: Sequence[Row], settings: Sequence[str] = SETTINGS) -> list[Row]:
    """Summarize a comparison of settings for each suite and model: correlation, median and largest difference.

    Parameters
    ----------
    rows : list of dict
        Rows of `compare_settings`.
    settings : sequence of str
    """
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["benchmark"], row["suite"], row["model"]), []).append(row)
    summary = []
    for (benchmark, suite, model), behaviors in sorted(groups.items()):
        before, after = (np.array([row[setting] for row in behaviors]) for setting in settings)
        largest = max(behaviors, key=lambda row: float(row["difference"]))
        values: dict[str, Any] = {"benchmark": benchmark, "suite": suite, "model": model, "behaviors": len(behaviors)}
        values["correlation"] = _correlation(before, after)
        values["median_difference"] = float(np.median(after - before))
        values["largest_difference"] = f"{largest['difference']:+.3f} ({largest['behavior']})"
        summary.append(values)
    return summary


def _correlation(x: np.ndarray, y: np.ndarray) -> float | None:
    """Return Pearson's correlation; None where it is undefined."""
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 2 and x.std() > 0 and y.std() > 0 else None


# -------------------------------------------------------------------------------------------------------------------------- claims


class Evidence:
    """The results of a store that claims are checked against, computed once."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
    def f1(self) -> Mapping[tuple[str, str, str], float]:
        """BEBE's F1 by dataset, model and setting."""
        rows = [row for row in results_table(self.store) if row["suite"] == "bebe" and row["metric"] == "f1"]
        return {(row["dataset"], row["model"], row["setting"]): row["mean"] for row in rows if row["mean"] is not None}

    @property
    def datasets(self) -> list[str]:
        """All datasets with results."""
        return sorted({dataset for dataset, _, _ in self.f1})

    def models(self, dataset: str, setting: str) -> dict[str, float]:
        """Return the F1 of all models on a dataset."""
        return {model: value for (name, model, condition), value in self.f1.items() if (name, condition) == (dataset, setting)}

    @cached_property
    def comparison(self) -> list[Row]:
        """Behaviors with reduced and with full data."""
        try:
            return [row for row in compare_settings(self.store) if row["suite"] == "bebe"]
        except NotFoundError:
            return []


def claims_table(store: Store) -> list[Row]:
    """Compare every published claim with the same number from a store.

    Returns
    -------
    list of dict
        Rows of ``benchmark, claim, published, ours, datasets, source``. ``ours`` is None where the store lacks the models or settings of
        the claim; ``datasets`` is the number of datasets it is computed from.
    """
    evidence = Evidence(store)
    rows = []
    for claim in read_rows(CLAIM_FILE):
        value = CLAIM_VALUES[claim["kind"]](evidence, claim["model"]) if claim["kind"] else None
        ours, n_datasets = value or (None, 0)
        cells = (claim["benchmark"], claim["claim"], claim["value"], ours, n_datasets, claim["source"])
        rows.append(dict(zip(CLAIM_COLUMNS, cells, strict=True)))
    return rows


def _advantage_of_networks(evidence: Evidence, _: str) -> ClaimValue:
    """Return the mean over datasets of the best network's F1 minus the best classical model's."""
    differences = []
    for dataset in evidence.datasets:
        values = evidence.models(dataset, "full")
        network, classical = ([values[name] for name in family if name in values] for family in (NETWORKS, CLASSICAL))
        if network and classical:
            differences.append(max(network) - max(classical))
    return _mean(differences)


def _best_model(evidence: Evidence, claim: str) -> ClaimValue:
    """Count the datasets whose best model is one of some, where there are others; `claim` is ``model|model:setting``."""
    names, setting = claim.split(":")
    claimed, wins = {*names.split("|")}, []
    for dataset in evidence.datasets:
        values = evidence.models(dataset, setting)
        if claimed & {*values} and {*values} - claimed:
            wins.append(max(values, key=lambda model: values[model]) in claimed)
    return (f"{sum(wins)} of {len(wins)}", len(wins)) if wins else None


def _loss(evidence: Evidence, model: str) -> ClaimValue:
    """Return the mean F1 that is lost with reduced data."""
    pairs = [[evidence.f1.get((dataset, model, setting)) for setting in ("full", "reduced")] for dataset in evidence.datasets]
    return _mean([full - reduced for full, reduced in pairs if full is not None and reduced is not None])


def _correlation_of_settings(evidence: Evidence, model: str) -> ClaimValue:
    return _from_comparison(evidence, model, "correlation")


def _median_gain(evidence: Evidence, model: str) -> ClaimValue:
    return _from_comparison(evidence, model, "median_difference")


def _first_fold(evidence: Evidence, model: str) -> ClaimValue:
    """Return the F1 on fold 1 of HAR."""
    store = evidence.store
    for key in store.finished():
        job = store.job(key)
        if job and (job.dataset, job.model, job.stage, job.fold, job.setting) == ("bebe/HAR", model, FINAL, 1, Setting()):
            scores = store.scores(key)
            return (f"{scores['suites']['bebe']['overall']['f1']:.3f}", 1) if scores else None
    return None


CLAIM_VALUES: dict[str, Callable[[Evidence, str], ClaimValue]] = {
    "lead of networks": _advantage_of_networks,
    "best is": _best_model,
    "loss": _loss,
    "correlation": _correlation_of_settings,
    "median gain": _median_gain,
    "fold 1": _first_fold,
}


def _from_comparison(evidence: Evidence, model: str, name: str) -> ClaimValue:
    rows = [row for row in evidence.comparison if row["model"] == model]
    summary = summarize_comparison(rows)
    return (f"{summary[0][name]:.3f}", len({r["dataset"] for r in rows})) if summary and summary[0][name] is not None else None


def _mean(values: Sequence[float]) -> ClaimValue:
    return (f"{np.mean(values):.3f}", len(values)) if values else None
