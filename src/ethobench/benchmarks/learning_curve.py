"""Would more labels help? Scores over more and more training individuals, behavior by behavior."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.benchmarks.jobs import make_job
from ethobench.benchmarks.own import WHOLE, annotated, with_folds
from ethobench.benchmarks.results import Row, grouped_scores
from ethobench.datasets import load_dataset
from ethobench.runs import Plan, Store

NAME = "own"
SHARES = (0.125, 0.25, 0.5)
WORTH_IT = 0.02  # of F1 for as many labels again
METRIC = "f1"
PART = " of the training data"


def plans(
    dataset: str,
    model: str,
    *,
    params: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    shares: Sequence[float] = SHARES,
    annotator: str | None = None,
    by: str = "individual",
    seed: int = 0,
) -> Iterator[Plan]:
    """Plan a model on shares of the training individuals; the whole of them is what cross-validation does anyway (`own.plans`).

    Parameters
    ----------
    dataset : str
        A name, a folder, or a ``recordings.csv``.
    model : str
    params : mapping, optional
        Hyper-parameters.
    options : mapping, optional
        What `load_dataset` takes besides.
    shares : sequence of float
        Of the individuals of the training folds, about; each is part of the next larger one. Shares of less than one are left out.
    annotator, by, seed
        As for `own.plans`.
    """
    source = str(Path(dataset).resolve()) if Path(dataset).exists() else dataset
    data = with_folds(annotated(load_dataset(source, **(options or {})), annotator), by=by)
    groups = data.groups() if by == "individual" else {r.id: r.id for r in data}
    orders = {}
    for fold in sorted(set(data.folds.values())):
        free = sorted({groups[r.id] for r in data if data.folds[r.id] != fold})
        orders[fold] = [free[k] for k in np.random.default_rng([seed, fold]).permutation(len(free))]
    jobs = []
    for share in sorted(shares):
        counts = {fold: round(share * len(order)) for fold, order in orders.items() if 0 < round(share * len(order)) < len(order)}
        real = float(np.mean([count / len(orders[fold]) for fold, count in counts.items()])) if counts else share
        for fold, count in counts.items():
            chosen = {*orders[fold][:count]}
            train = [r.id for r in data if groups[r.id] in chosen and data.folds[r.id] != fold]
            test = [r.id for r in data if data.folds[r.id] == fold]
            about = {"source": source, "options": options or {}, "annotator": annotator, "seed": seed + fold, "fold": fold}
            jobs.append(make_job(NAME, data, model, train, test, params, setting=_setting(real), **about))
    yield from _at_once(jobs)


def curve_table(store: Store, only: Collection[str] | None = None) -> list[Row]:
    """Tell for each behavior what more labels brought so far.

    Parameters
    ----------
    store : Store
    only : collection of str, optional
        Keys of the jobs to look at, where there are others of the same model.

    Returns
    -------
    list of dict
        Rows of ``dataset, model, behavior``, F1 at each share of the training data (``f1_12.5%`` ... ``f1_100%``), what a doubling brought
        of late (``gained``) and, if that was noticeable, that more labels would help (``more_labels``).
    """
    curves: dict[tuple[str, str], dict[str, dict[float, float]]] = {}
    for (benchmark, dataset, model, setting, suite), _, scores in grouped_scores(store, only):
        share = _share(setting)
        if benchmark != NAME or suite != "ethobench" or share is None:
            continue
        behaviors = curves.setdefault((dataset, model), {})
        for name, figures in scores.behaviors.items():
            behaviors.setdefault(name, {})[share] = figures[METRIC]
    return [_row(*place, name, values) for place, found in sorted(curves.items()) for name, values in found.items()]


def _row(dataset: str, model: str, behavior: str, values: Mapping[float, float]) -> Row:
    row: Row = {"dataset": dataset, "model": model, "behavior": behavior}
    known = {share: value for share, value in sorted(values.items()) if np.isfinite(value)}
    row |= {f"f1_{100 * share:g}%": value for share, value in known.items()}
    row["gained"] = row["more_labels"] = None
    if len(known) > 1:
        shares = np.log2(list(known))[-3:]
        slope = float(np.polyfit(shares, list(known.values())[-3:], 1)[0])
        row["gained"] = slope
        row["more_labels"] = "would help" if slope >= WORTH_IT else "would hardly help"
    return row


def _setting(share: float) -> str:
    return f"{share:.1%}{PART}"


def _share(setting: str) -> float | None:
    if setting in WHOLE:
        return 1.0
    number, _, rest = setting.partition("%")
    return float(number) / 100 if rest == PART else None


def _at_once(jobs: list[Any]) -> Iterator[Plan]:
    def plan() -> Plan:
        yield jobs

    if jobs:
        yield plan()
