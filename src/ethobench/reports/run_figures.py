"""Figures of a run: results beside published ones, settings, learning curves, timings, failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ethobench.metrics.suites import suites
from ethobench.reports.report_data import Figure, make_figure
from ethobench.reports.score_tables import describe
from ethobench.runs import Job
from ethobench.runs.store import Failure

STEPS = ("load", "fit", "predict", "score")
MIN_SIZES = 3  # of training sets, for a learning curve


def results(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the table of results, beside published values; `rows` are those of `results_table`."""
    shown = [row for row in rows if row["metric"] in suites[row["suite"]].headline or row.get("published") is not None]
    names: dict[str, Any] = {}
    for row in shown:
        if row["metric"] not in names:
            names[row["metric"]] = describe(suites[row["suite"]], (row["metric"],))[0]
    cells = [(*_key(row), row["metric"], row["mean"], row["std"], row["n"], row.get("published"), row.get("difference")) for row in shown]
    compared = any(row.get("published") is not None for row in shown)
    return make_figure(
        "results",
        "pivot",
        "Results",
        "Score of all test recordings together, ± the standard deviation over individuals."
        + (" Below it, the published value and the difference to it." if compared else ""),
        ["benchmark", "dataset", "suite", "model", "setting", "measure", "mean", "std", "n", "published", "difference"],
        cells,
        {
            "group": ["dataset", "suite"],
            "row": ["model", "setting"],
            "column": "measure",
            "value": "mean",
            "spread": "std",
            "reference": "published",
            "difference": "difference",
        },
        measures=list(names.values()),
        reference="published",
    )


def settings(rows: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Compare settings, such as full and reduced data; None if there is only one."""
    if len({row["setting"] for row in rows}) < 2:
        return None
    shown = [row for row in rows if row["metric"] in suites[row["suite"]].headline and row["mean"] is not None]
    return make_figure(
        "settings",
        "dots",
        "Full and reduced data",
        "The same models in each setting; lines extend one standard deviation over individuals to either side.",
        ["dataset", "suite", "measure", "model", "setting", "mean", "low", "high"],
        [(r["dataset"], r["suite"], r["metric"], r["model"], r["setting"], *_mean_and_range(r)) for r in shown],
        {
            "choose": ["suite", "measure"],
            "facet": "dataset",
            "y": "model",
            "x": "mean",
            "low": "low",
            "high": "high",
            "series": "setting",
        },
        measures=_describe_measures(shown),
    )


def learning_curves(rows: Sequence[Mapping[str, Any]], jobs: Sequence[Job]) -> Figure | None:
    """Return scores against the number of training recordings; None unless a model was trained on three different numbers of them."""
    n_train: dict[tuple[str, ...], list[int]] = {}
    for job in jobs:
        n_train.setdefault((job.benchmark, job.dataset, job.model, str(job.setting)), []).append(len(job.train))
    sizes = {key: sum(counts) / len(counts) for key, counts in n_train.items()}
    by_model: dict[tuple[str, ...], set[float]] = {}
    for key, size in sizes.items():
        by_model.setdefault(key[:3], set()).add(size)
    with_curve = {key for key, model_sizes in by_model.items() if len(model_sizes) >= MIN_SIZES}
    shown = [
        row
        for row in rows
        if (row["benchmark"], row["dataset"], row["model"]) in with_curve
        and row["metric"] in suites[row["suite"]].headline
        and row["mean"] is not None
    ]
    if not shown:
        return None
    points = [
        (
            r["dataset"],
            r["suite"],
            r["metric"],
            r["model"],
            sizes[r["benchmark"], r["dataset"], r["model"], r["setting"]],
            *_mean_and_range(r),
        )
        for r in shown
    ]
    return make_figure(
        "learning-curves",
        "curves",
        "Learning curves",
        "Scores against the number of training recordings; bands extend one standard deviation over individuals to either side.",
        ["dataset", "suite", "measure", "model", "recordings", "mean", "low", "high"],
        sorted(points),
        {
            "choose": ["suite", "measure"],
            "facet": "dataset",
            "line": "model",
            "x": "recordings",
            "y": "mean",
            "low": "low",
            "high": "high",
        },
        measures=_describe_measures(shown),
        axis="training recordings",
    )


def more_labels(rows: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Return the table that estimates for each behavior whether more labels would help; `rows` are those of `learning_curve_table`."""
    with_curve = [row for row in rows if row["more_labels"]]
    if not with_curve:
        return None
    shares = sorted({name for row in with_curve for name in row if name.startswith("f1_")}, key=lambda name: float(name[3:-1]))
    cells = [
        (
            *(row[name] for name in ("dataset", "model", "behavior")),
            *(None if row.get(name) is None else round(row[name], 3) for name in shares),
            round(row["gained"], 3),
            row["more_labels"],
        )
        for row in with_curve
    ]
    return make_figure(
        "more-labels",
        "table",
        "Would more labels help?",
        "F1 of each behavior for models trained on a share of the training individuals, the gain from the last doubling, and whether "
        "more labels are likely to help.",
        ["dataset", "model", "behavior", *(f"F1 at {name[3:]}" for name in shares), "gain from doubling", "more labels"],
        cells,
    )


def coverage(accounts: Sequence[tuple[Job, Mapping[str, Any]]]) -> Figure | None:
    """Return accuracy against coverage for models that abstain below a confidence; None if no model reports it."""
    points: dict[tuple[str, str, float], list[tuple[float, float]]] = {}
    for job, account in accounts:
        for point in account.get("coverage", []):
            if point["accuracy"] is not None and point["accuracy"] == point["accuracy"]:  # nor NaN
                key = (job.dataset, job.model, float(point["confidence"]))
                points.setdefault(key, []).append((float(point["coverage"]), float(point["accuracy"])))
    if not points:
        return None
    means = [(*key, *(sum(column) / len(values) for column in zip(*values, strict=True))) for key, values in sorted(points.items())]
    return make_figure(
        "coverage",
        "curves",
        "Abstention",
        "Accuracy against the share of frames that are predicted if the model abstains below a confidence; "
        "from cross-validation within the training data, mean over jobs.",
        ["dataset", "model", "confidence", "coverage", "accuracy"],
        means,
        {"facet": "dataset", "line": "model", "x": "coverage", "y": "accuracy"},
        unit_square=True,
    )


def timings(jobs: Sequence[tuple[Job, Mapping[str, Any]]]) -> Figure | None:
    """Return the seconds of each step, summed over all final jobs of a model; None if there are no timings."""
    seconds: dict[tuple[str, str], dict[str, float]] = {}
    counts: dict[tuple[str, str], int] = {}
    for job, timing in jobs:
        if any(step in timing for step in STEPS):
            key = (job.dataset, job.model)
            counts[key] = counts.get(key, 0) + 1
            for step in STEPS:
                seconds.setdefault(key, dict.fromkeys(STEPS, 0.0))[step] += float(timing.get(step, 0.0))
    if not seconds:
        return None
    rows = [(*key, step, time, counts[key]) for key, steps in sorted(seconds.items()) for step, time in steps.items()]
    return make_figure(
        "timings",
        "bars",
        "Timings",
        "Wall time of each step in seconds, summed over the final jobs of a model.",
        ["dataset", "model", "step", "seconds", "jobs"],
        rows,
        {"facet": "dataset", "y": "model", "part": "step", "x": "seconds", "total": "seconds"},
        parts=list(STEPS),
        palette="step",
        unit="s",
    )


def failures(failed: Mapping[str, Failure]) -> Figure | None:
    """Return the table of failed jobs; None if there are none."""
    if not failed:
        return None
    columns = ("benchmark", "dataset", "model", "setting", "stage", "fold")
    rows = [(*(str(getattr(failure.job, name)) for name in columns[:-1]), failure.job.fold, failure.error) for failure in failed.values()]
    return make_figure(
        "failures", "table", "Failed jobs", "Jobs that ended with an error; the store keeps their tracebacks.", [*columns, "error"], rows
    )


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("benchmark", "dataset", "suite", "model", "setting"))


def _mean_and_range(row: Mapping[str, Any]) -> tuple[float, float | None, float | None]:
    mean, std = row["mean"], row["std"]
    return (mean, None, None) if std is None else (mean, mean - std, mean + std)


def _describe_measures(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    pairs = dict.fromkeys((row["suite"], row["metric"]) for row in rows)
    return list({metric: describe(suites[suite], (metric,))[0] for suite, metric in pairs}.values())
