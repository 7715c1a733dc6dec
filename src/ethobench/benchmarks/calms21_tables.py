"""Tables of CalMS21: means over seeds, annotators and behaviors; difficulty of new behaviors; differences between annotators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ethobench.benchmarks.base import Row
from ethobench.benchmarks.results import UNDECODED, final_jobs, find_published, group_jobs
from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.datasets import load_dataset
from ethobench.metrics import Scores
from ethobench.runs import Setting, Store

NAME = "calms21"
COLUMNS = ("dataset", "model", "setting", "metric", "mean", "std", "n", "published")
HEADLINE = ("macro_f1", "macro_precision", "map")
GROUP_FIELDS = {"calms21/task2": ("annotator", "all annotators"), "calms21/task3": ("behavior", "all behaviors")}
"""The field of a setting that is averaged over, and its name in the mean."""
BUDGET_TRUE_TIME, BUDGET_MODEL_TIME, BUDGET_TRUE_BOUTS, BUDGET_MODEL_BOUTS = 1, 2, 3, 4
"""Columns of the statistics of time budgets."""

Condition = tuple[str, str, Setting]
"""Dataset, model and setting."""
SeedValues = dict[int, dict[str, float]]
"""Metric values by seed."""


def summarize(store: Store) -> list[Row]:
    """Summarize a run of CalMS21.

    Returns
    -------
    list of dict
        Rows of ``dataset, model, setting, metric, mean, std, n, published``: mean and population standard deviation over `n` seeds, best
        first as ranked in the challenge, by macro F1, then by precision. Task 2 has rows for each annotator and for the mean over all of
        them, task 3 for each behavior and for their mean.
    """
    values: dict[Condition, SeedValues] = {}
    decoded: set[Condition] = set()
    for _, job, scores in final_jobs(store):
        if job.benchmark != NAME:
            continue
        condition = (job.dataset, job.model, job.setting)
        values.setdefault(condition, {})[job.seed] = dict(_metrics(scores["suites"][NAME]["state"]))
        if UNDECODED in scores:
            decoded |= {condition, _mean_condition(condition)}
            plain = (job.dataset, job.model, replace(job.setting, undecoded=True))
            values.setdefault(plain, {})[job.seed] = dict(_metrics(scores[UNDECODED][NAME]["state"]))
    groups: dict[Condition, list[SeedValues]] = {}
    for condition, by_seed in values.items():
        if condition[2].transfer:
            groups.setdefault(_mean_condition(condition), []).append(by_seed)
    for condition, members in groups.items():
        complete = [seed for seed in sorted({*members[0]}) if all(seed in member for member in members)]
        means = {seed: {metric: float(np.mean([m[seed][metric] for m in members])) for metric in HEADLINE} for seed in complete}
        if means:
            values[condition] = means
    return [row for condition in rank(values) for row in _rows(condition, values[condition], is_decoded=condition in decoded)]


def rank(values: Mapping[Condition, SeedValues]) -> list[Condition]:
    """Sort conditions by dataset, then by mean macro F1 and macro precision, best first; undefined values come last."""

    def key(condition: Condition) -> tuple[Any, ...]:
        by_seed = values[condition].values()
        means = [float(np.mean([metrics[metric] for metrics in by_seed])) for metric in HEADLINE[:2]]
        return (condition[0], *(-mean if np.isfinite(mean) else 1.0 for mean in means), *map(str, condition))

    return sorted(values, key=key)


def layout_summary(rows: Sequence[Row]) -> tuple[list[str], list[list[Any]]]:
    """Return the rows of `summarize` for display: one line for each model and setting, one column for each metric."""
    metrics = list(dict.fromkeys(str(row["metric"]) for row in rows))
    lines: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in rows:
        published = "" if row["published"] is None else f" (published {row['published']:.3f})"
        lines.setdefault((row["dataset"], row["model"], row["setting"]), {})[row["metric"]] = (
            f"{row['mean']:.3f} ± {row['std']:.3f}{published}"
        )
    return ["dataset", "model", "setting", *metrics], [[*names, *(line.get(m, "") for m in metrics)] for names, line in lines.items()]


def difficulty_table(store: Store) -> list[Row]:
    """Return the score of each new behavior of task 3, with its frequency and the length of its bouts.

    Returns
    -------
    list of dict
        Rows of ``model, behavior, f1, share`` (of the observed test frames), ``bouts`` and ``seconds`` (mean duration of a bout).
    """
    dataset = f"{NAME}/task3"
    f1 = {(r["model"], r["setting"]): r["mean"] for r in summarize(store) if r["dataset"] == dataset and r["metric"] == "macro_f1"}
    jobs = {(job.model, str(job.setting)): job for _, job, _ in final_jobs(store) if job.dataset == dataset}
    rows = []
    for key, job in sorted(jobs.items()):
        data = load_dataset(job.dataset, **job.options)
        behavior = job.setting.behavior
        annotations = [data[name].annotation(job.annotator) for name in job.test]
        bouts = [_bouts(annotation, behavior) for annotation in annotations]
        seconds = sum(iv.total(each) / annotation.rate for each, annotation in zip(bouts, annotations, strict=True))
        observed = sum(iv.total(annotation.observed.of(behavior)) / annotation.rate for annotation in annotations)
        n_bouts = sum(len(each.start) for each in bouts)
        values = {"share": seconds / observed if observed else None, "bouts": n_bouts, "seconds": seconds / n_bouts if n_bouts else None}
        rows.append({"model": job.model, "behavior": behavior, "f1": f1[key], **values})
    return sorted(rows, key=lambda row: (row["model"], -(row["share"] or 0)))


def styles_table(store: Store) -> list[Row]:
    """Compare annotators of different videos through a model that was trained on none of them.

    Returns
    -------
    list of dict
        Rows of ``dataset, model, annotator, behavior, f1``, how many seconds later than the model the annotator starts
        (``later_onset``) and ends a bout (``later_offset``), and the ratio of the annotator's to the model's number of bouts (``bouts``)
        and duration (``time``). The difference between two rows is the difference between two annotators.
    """
    rows = []
    for group in group_jobs(store):
        if group.setting.transfer != "zero-shot" or group.setting.undecoded or group.suite != "ethobench":
            continue
        scores = group.scores()
        measure = next(m for m in scores.suite.measures if m.name == "count_error")
        budget = np.asarray(scores.statistics(measure).sum(axis=0))
        for code, (behavior, values) in enumerate(scores.behaviors.items()):
            if behavior == scores.ethogram.background_name:
                continue
            row: Row = {"dataset": group.dataset, "model": group.model, "annotator": group.setting.annotator, "behavior": behavior}
            row["f1"] = _finite(values["f1"])
            row["later_onset"], row["later_offset"] = (_finite(-values[name]) for name in ("onset_error", "offset_error"))
            row["bouts"] = _ratio(budget[code, BUDGET_TRUE_BOUTS], budget[code, BUDGET_MODEL_BOUTS])
            row["time"] = _ratio(budget[code, BUDGET_TRUE_TIME], budget[code, BUDGET_MODEL_TIME])
            rows.append(row)
    return rows


def _bouts(annotation: Annotation, behavior: str) -> iv.Intervals:
    chosen = annotation.behavior == annotation.ethogram.code(behavior)
    return iv.intervals(annotation.start[chosen], annotation.stop[chosen])


def _mean_condition(condition: Condition) -> Condition:
    """Return the condition of the mean over all annotators or behaviors."""
    dataset, model, setting = condition
    name, label = GROUP_FIELDS.get(dataset, ("annotator", "all"))
    return dataset, model, replace(setting, **{name: label})


def _metrics(state: dict[str, Any]) -> Iterator[tuple[str, float]]:
    scores = Scores.from_states([state], resamples=0)
    yield from ((metric, float(scores.overall[metric])) for metric in HEADLINE)
    yield from ((f"f1 of {name}", values["macro_f1"]) for name, values in scores.behaviors.items() if name != state["background"])


def _rows(condition: Condition, by_seed: SeedValues, *, is_decoded: bool) -> Iterator[Row]:
    dataset, model, setting = condition
    for metric in dict.fromkeys(metric for metrics in by_seed.values() for metric in metrics):
        values = [metrics[metric] for metrics in by_seed.values() if metric in metrics]
        published = find_published(NAME, dataset, model, setting, NAME, metric, is_decoded=is_decoded)
        cells = (dataset, model, str(setting), metric, float(np.mean(values)), float(np.std(values)), len(values))
        yield dict(zip(COLUMNS, (*cells, published.value if published else None), strict=True))


def _ratio(numerator: float, denominator: float) -> float | None:
    return _finite(numerator / denominator) if denominator else None


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
