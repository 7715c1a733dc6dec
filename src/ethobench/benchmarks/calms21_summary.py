"""CalMS21's own way to sum a run up: means over seeds, over annotators and over behaviors, beside the published figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ethobench.benchmarks.calms21 import NAME
from ethobench.benchmarks.results import UNDECODED, Row, final_jobs, published_of
from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.datasets import load_dataset
from ethobench.metrics import Scores
from ethobench.runs import Store

COLUMNS = ("dataset", "model", "setting", "metric", "mean", "std", "n", "published")
SUITE = "calms21"
HEADLINE = ("macro_f1", "macro_precision", "map")
EVERYONE = {2: "all annotators", 3: "all behaviours"}
WAYS = ("zero-shot", "fine-tuned", "conditioned")


def summary(store: Store) -> list[Row]:
    """Sum a run up.

    Returns
    -------
    list of dict
        Rows of ``dataset, model, setting, metric, mean, std, n, published``: mean and population standard deviation over `n` seeds,
        the best first as the challenge ranked them, by macro F1, then by precision. Task 2 has rows for each annotator and for the
        mean over all of them, task 3 for each behavior and for their mean.
    """
    figures: dict[tuple[str, str, str], dict[int, dict[str, float]]] = {}
    decoded = set()
    for found in final_jobs(store):
        job, scores = found["job"], found["scores"]
        if job["benchmark"] == NAME:
            name = (job["dataset"], job["model"], job["setting"])
            figures.setdefault(name, {})[job["seed"]] = dict(_figures(scores["suites"][SUITE]["state"]))
            if UNDECODED in scores:
                decoded |= {name, (*name[:2], _everyone(job["dataset"], name[2].rpartition(", ")[2]))}
                plain = (*name[:2], f"{name[2]}, {UNDECODED}")
                figures.setdefault(plain, {})[job["seed"]] = dict(_figures(scores[UNDECODED][SUITE]["state"]))
    for (dataset, model, way), parts in _together(figures).items():
        seeds = sorted({seed for part in parts for seed in part})
        whole = [seed for seed in seeds if all(seed in part for part in parts)]
        mean = {seed: {m: float(np.mean([part[seed][m] for part in parts])) for m in HEADLINE} for seed in whole}
        if mean:
            figures[dataset, model, _everyone(dataset, way)] = mean
    ranked = sorted(figures, key=lambda name: (name[0], *(-_mean(figures[name], m) for m in HEADLINE[:2]), name))
    return [row for name in ranked for row in _rows(name, figures[name], decoded=name in decoded)]


def laid_out(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Lay the rows of `summary` out: one line for each model and setting, one column for each measure."""
    measures = list(dict.fromkeys(str(row["metric"]) for row in rows))
    lines: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in rows:
        theirs = "" if row["published"] is None else f" (published {row['published']:.3f})"
        lines.setdefault((row["dataset"], row["model"], row["setting"]), {})[row["metric"]] = (
            f"{row['mean']:.3f} ± {row['std']:.3f}{theirs}"
        )
    return ["dataset", "model", "setting", *measures], [[*name, *(line.get(m, "") for m in measures)] for name, line in lines.items()]


def difficulty(store: Store) -> list[Row]:
    """Set what was reached for each behavior of task 3 beside how frequent it is and how long its bouts are.

    Returns
    -------
    list of dict
        Rows of ``model, behavior, f1, share`` (of the observed test frames), ``bouts`` and ``seconds`` (mean of a bout).
    """
    rows = []
    scored = {
        (r["model"], r["setting"]): r["mean"] for r in summary(store) if r["dataset"] == f"{NAME}/task3" and r["metric"] == "macro_f1"
    }
    jobs = {(f["job"]["model"], f["job"]["setting"]): f["job"] for f in final_jobs(store) if f["job"]["dataset"] == f"{NAME}/task3"}
    for place, job in sorted(jobs.items()):
        data = load_dataset(job["dataset"], **job["options"])
        behavior = job["setting"].partition(",")[0]
        truths = [data[name].annotation(job["annotator"]) for name in job["test"]]
        spans = [_bouts(truth, behavior) for truth in truths]
        seconds = sum(iv.total(part) / truth.rate for part, truth in zip(spans, truths, strict=True))
        observed = sum(iv.total(truth.observed.of(behavior)) / truth.rate for truth in truths)
        bouts = sum(len(part.start) for part in spans)
        shares = {"share": seconds / observed if observed else None, "bouts": bouts, "seconds": seconds / bouts if bouts else None}
        rows.append({"model": place[0], "behavior": behavior, "f1": scored[place], **shares})
    return sorted(rows, key=lambda row: (row["model"], -(row["share"] or 0)))


def _bouts(truth: Annotation, behavior: str) -> iv.Intervals:
    chosen = truth.behavior == truth.ethogram.code(behavior)
    return iv.intervals(truth.start[chosen], truth.stop[chosen])


def _everyone(dataset: str, way: str) -> str:
    return f"{EVERYONE.get(int(dataset[-1]), 'all')}, {way}"


def _figures(state: dict[str, Any]) -> Iterator[tuple[str, float]]:
    scores = Scores.from_states([state], resamples=0)
    yield from ((m, float(scores.overall[m])) for m in HEADLINE)
    yield from ((f"f1 of {name}", part["macro_f1"]) for name, part in scores.behaviors.items() if name != state["background"])


def _together(figures: dict[tuple[str, str, str], dict[int, dict[str, float]]]) -> dict[tuple[str, str, str], list[Any]]:
    """Collect the annotators, or behaviors, that are averaged."""
    found: dict[tuple[str, str, str], list[Any]] = {}
    for (dataset, model, setting), seeds in figures.items():
        plain = setting.removesuffix(f", {UNDECODED}")
        way = plain.rpartition(", ")[2]
        if way in WAYS:
            found.setdefault((dataset, model, way + setting.removeprefix(plain)), []).append(seeds)
    return found


def _mean(seeds: dict[int, dict[str, float]], metric: str) -> float:
    """Return the mean over seeds; the lowest where there is none, so that it is ranked last."""
    mean = float(np.mean([part[metric] for part in seeds.values()]))
    return mean if np.isfinite(mean) else -1.0


def _rows(name: tuple[str, str, str], seeds: dict[int, dict[str, float]], *, decoded: bool) -> Iterator[Row]:
    for metric in dict.fromkeys(m for part in seeds.values() for m in part):
        values = [part[metric] for part in seeds.values() if metric in part]
        theirs = published_of((NAME, *name, SUITE, metric), decoded=decoded)
        told = (*name, metric, float(np.mean(values)), float(np.std(values)), len(values), theirs.value if theirs else None)
        yield dict(zip(COLUMNS, told, strict=True))
