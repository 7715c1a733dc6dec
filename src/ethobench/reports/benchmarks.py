"""The figures of a run: results beside published ones, more and less data, time, failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ethobench.metrics.suites import suites
from ethobench.reports.measures import describe
from ethobench.reports.shape import Figure, make_figure
from ethobench.runs import Job
from ethobench.runs.store import Failure

STEPS = ("load", "fit", "predict", "score")
FEWEST_SIZES = 3


def results(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Make the table of results; `rows` are those of `results_table`, where published figures may stand beside ours."""
    shown = [row for row in rows if row["metric"] in suites[row["suite"]].headline or row.get("published") is not None]
    names: dict[str, Any] = {}
    for row in shown:
        if row["metric"] not in names:
            names[row["metric"]] = describe(suites[row["suite"]], (row["metric"],))[0]
    cells = [(*_place(row), row["metric"], row["mean"], row["std"], row["n"], row.get("published"), row.get("difference")) for row in shown]
    compared = any(row.get("published") is not None for row in shown)
    return make_figure(
        "results",
        "pivot",
        "Results",
        "The suite's figure of all test recordings together, ± the standard deviation over individuals."
        + (" Below it the published figure, and ours minus it." if compared else ""),
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
    """Compare settings, such as full and reduced data; None where there is only one."""
    if len({row["setting"] for row in rows}) < 2:
        return None
    shown = [row for row in rows if row["metric"] in suites[row["suite"]].headline and row["mean"] is not None]
    return make_figure(
        "settings",
        "dots",
        "Full and reduced data",
        "The same models under each setting; lines reach one standard deviation over individuals to either side.",
        ["dataset", "suite", "measure", "model", "setting", "mean", "low", "high"],
        [(r["dataset"], r["suite"], r["metric"], r["model"], r["setting"], *_around(r)) for r in shown],
        {
            "choose": ["suite", "measure"],
            "facet": "dataset",
            "y": "model",
            "x": "mean",
            "low": "low",
            "high": "high",
            "series": "setting",
        },
        measures=_described(shown),
    )


def learning_curves(rows: Sequence[Mapping[str, Any]], jobs: Sequence[Job]) -> Figure | None:
    """Draw scores against the number of recordings learnt from; None unless some model learnt from three numbers of them."""
    learnt: dict[tuple[str, ...], list[int]] = {}
    for job in jobs:
        learnt.setdefault((job.benchmark, job.dataset, job.model, str(job.setting)), []).append(len(job.train))
    sizes = {place: sum(counts) / len(counts) for place, counts in learnt.items()}
    by_model: dict[tuple[str, ...], set[float]] = {}
    for place, size in sizes.items():
        by_model.setdefault(place[:3], set()).add(size)
    curved = {place for place, found in by_model.items() if len(found) >= FEWEST_SIZES}
    shown = [
        row
        for row in rows
        if (row["benchmark"], row["dataset"], row["model"]) in curved
        and row["metric"] in suites[row["suite"]].headline
        and row["mean"] is not None
    ]
    if not shown:
        return None
    points = [
        (r["dataset"], r["suite"], r["metric"], r["model"], sizes[r["benchmark"], r["dataset"], r["model"], r["setting"]], *_around(r))
        for r in shown
    ]
    return make_figure(
        "learning-curves",
        "curves",
        "Learning curves",
        "Scores against the number of recordings learnt from; bands reach one standard deviation over individuals to either side.",
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
        measures=_described(shown),
        axis="recordings learnt from",
    )


def more_labels(rows: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Tell behavior by behavior whether more labels would help; `rows` are those of `learning_curve_table`, None where it has no curve."""
    curved = [row for row in rows if row["more_labels"]]
    if not curved:
        return None
    shares = sorted({name for row in curved for name in row if name.startswith("f1_")}, key=lambda name: float(name[3:-1]))
    cells = [
        (
            *(row[name] for name in ("dataset", "model", "behavior")),
            *(None if row.get(name) is None else round(row[name], 3) for name in shares),
            round(row["gained"], 3),
            row["more_labels"],
        )
        for row in curved
    ]
    return make_figure(
        "more-labels",
        "table",
        "Would more labels help?",
        "F1 of each behavior after learning from a share of the training individuals, what twice as many brought of late, and whether "
        "that is worth the work.",
        ["dataset", "model", "behavior", *(f"F1 at {name[3:]}" for name in shares), "gained by twice as many", "more labels"],
        cells,
    )


def coverage(accounts: Sequence[tuple[Job, Mapping[str, Any]]]) -> Figure | None:
    """Draw how much is left, and how good it is, where models abstain below a confidence; None where no model tells."""
    points: dict[tuple[str, str, float], list[tuple[float, float]]] = {}
    for job, account in accounts:
        for point in account.get("coverage", []):
            if point["accuracy"] is not None and point["accuracy"] == point["accuracy"]:  # nor NaN
                place = (job.dataset, job.model, float(point["confidence"]))
                points.setdefault(place, []).append((float(point["coverage"]), float(point["accuracy"])))
    if not points:
        return None
    means = [(*place, *(sum(values) / len(found) for values in zip(*found, strict=True))) for place, found in sorted(points.items())]
    return make_figure(
        "coverage",
        "curves",
        "Abstaining where unsure",
        "Share of frames that are right against the share that is left where the model abstains below a confidence; "
        "by cross-validation within the training data, mean over jobs.",
        ["dataset", "model", "confidence", "coverage", "accuracy"],
        [(dataset, model, level, left, right) for dataset, model, level, left, right in means],
        {"facet": "dataset", "line": "model", "x": "coverage", "y": "accuracy"},
        unit_square=True,
    )


def timings(jobs: Sequence[tuple[Job, Mapping[str, Any]]]) -> Figure | None:
    """Sum the seconds that each step took over all final jobs of a model; None where nothing was timed."""
    seconds: dict[tuple[str, str], dict[str, float]] = {}
    counts: dict[tuple[str, str], int] = {}
    for job, timing in jobs:
        if any(step in timing for step in STEPS):
            place = (job.dataset, job.model)
            counts[place] = counts.get(place, 0) + 1
            for step in STEPS:
                seconds.setdefault(place, dict.fromkeys(STEPS, 0.0))[step] += float(timing.get(step, 0.0))
    if not seconds:
        return None
    rows = [(*place, step, time, counts[place]) for place, steps in sorted(seconds.items()) for step, time in steps.items()]
    return make_figure(
        "timings",
        "bars",
        "Time taken",
        "Seconds of wall time in each step, summed over the final jobs of a model.",
        ["dataset", "model", "step", "seconds", "jobs"],
        rows,
        {"facet": "dataset", "y": "model", "part": "step", "x": "seconds", "total": "seconds"},
        parts=list(STEPS),
        palette="step",
        unit="s",
    )


def failures(failed: Mapping[str, Failure]) -> Figure | None:
    """List the jobs that failed; None where none did."""
    if not failed:
        return None
    columns = ("benchmark", "dataset", "model", "setting", "stage", "fold")
    rows = [(*(str(getattr(failure.job, name)) for name in columns[:-1]), failure.job.fold, failure.error) for failure in failed.values()]
    return make_figure(
        "failures", "table", "Failed jobs", "Jobs that ended with an error; the store keeps their tracebacks.", [*columns, "error"], rows
    )


def _place(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("benchmark", "dataset", "suite", "model", "setting"))


def _around(row: Mapping[str, Any]) -> tuple[float, float | None, float | None]:
    mean, std = row["mean"], row["std"]
    return (mean, None, None) if std is None else (mean, mean - std, mean + std)


def _described(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    pairs = dict.fromkeys((row["suite"], row["metric"]) for row in rows)
    return list({metric: describe(suites[suite], (metric,))[0] for suite, metric in pairs}.values())
