"""Tables of Rodent-Bench: means with standard errors, the entropy-weighted MCC, failures, repairs and agreement between people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.benchmarks.base import Row
from ethobench.benchmarks.results import final_jobs
from ethobench.core import Annotation, Dataset
from ethobench.core.errors import EthobenchError
from ethobench.core.files import check_new_path
from ethobench.core.wording import join_names
from ethobench.datasets import load_dataset
from ethobench.datasets.rodentbench import label_shares
from ethobench.formats import read_recordings
from ethobench.metrics import Scores, ceiling, score
from ethobench.metrics.suites.rodentbench import entropy_weighted_mcc
from ethobench.mllm.annotate import FAILED, AnnotationOutcome, count_repairs, outcomes_from_fit_report
from ethobench.runs import Store

NAME = "rodentbench"
ALL = "(all, weighted by entropy)"
FAILURES = ("count", "drop")
MIN_LABELED_SHARE = 0.04


@dataclass
class _Group:
    """The jobs of one annotating system on one dataset; chance annotates several times."""

    options: Mapping[str, Any]
    annotator: str | None
    draws: dict[int, dict[str, Annotation]] = field(default_factory=dict)
    outcomes: list[AnnotationOutcome] = field(default_factory=list)

    @property
    def failed(self) -> set[str]:
        return {outcome.recording for outcome in self.outcomes if outcome.state == FAILED}

    def counts(self) -> Row:
        """Return the number of failures, their rate, and the number of repairs by kind."""
        n_videos = len(next(iter(self.draws.values())))
        return {"failed": len(self.failed), "failure_rate": len(self.failed) / n_videos, "repairs": count_repairs(self.outcomes)}


def summarize(store: Store, *, failures: str = "count") -> list[Row]:
    """Summarize a run of Rodent-Bench.

    Parameters
    ----------
    store : Store
    failures : {"count", "drop"}
        Whether a video whose answer could not be parsed counts as one without any behavior, or is dropped, as published.

    Returns
    -------
    list of dict
        Sorted rows of ``dataset, setting, metric, mean, se, n, failed, failure_rate, repairs`` and, where two people annotated the same
        videos, ``human`` and ``reached``. ``se`` is the published one: population standard deviation over videos, divided by the square
        root of their number minus one. A last row for each setting has the MCC of all datasets.
    """
    if failures not in FAILURES:
        raise EthobenchError(f"`failures` must be {join_names(FAILURES, 'or')}, got {failures!r}")
    rows: list[Row] = []
    scores_by_setting: dict[str, dict[str, list[Scores]]] = {}
    for (dataset, setting), group in sorted(_groups(store).items()):
        data = load_dataset(dataset, **group.options)
        dropped = group.failed if failures == "drop" else set()
        draws = [{name: p for name, p in sorted(draw.items()) if name not in dropped} for _, draw in sorted(group.draws.items())]
        names = {"dataset": dataset, "setting": setting}
        if not draws[0]:
            rows.append({**names, "metric": "mcc", "mean": None, "se": None, "n": 0, **group.counts()})
            continue
        scores_of_draws = [score(draw, data, suite=NAME, annotator=group.annotator, resamples=0) for draw in draws]
        scores_by_setting.setdefault(setting, {})[dataset] = scores_of_draws
        for metric in scores_of_draws[0].overall:
            values = np.array([[video["overall"][metric] for video in scores.per("recording").values()] for scores in scores_of_draws])
            rows.append({**names, "metric": metric, **_mean_over_videos(values), **group.counts()})
        rows += [{**names, **row, **group.counts()} for row in _human_agreement(data, draws[0])]
    for setting, by_dataset in sorted(scores_by_setting.items()):
        n_draws = max(map(len, by_dataset.values()))
        mccs = [entropy_weighted_mcc({name: draws[k % len(draws)] for name, draws in by_dataset.items()}) for k in range(n_draws)]
        rows.append({"dataset": ALL, "setting": setting, "metric": "mcc", "mean": float(np.mean(mccs)), "se": None, "n": len(by_dataset)})
    return rows


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of `summarize` as a Markdown table."""
    head, body = layout_summary(rows)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *body))


def layout_summary(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return the rows of `summarize` for display: one line for each dataset and setting, one column for each metric."""
    metrics = list(dict.fromkeys(str(row["metric"]) for row in rows))
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        line = lines.setdefault((row["dataset"], row["setting"]), {})
        error = "" if row["se"] is None else f" ± {row['se']:.3f}"
        human = f" (people {row['human']:.3f})" if row.get("human") is not None else ""
        line[row["metric"]] = "-" if row["mean"] is None else f"{row['mean']:.3f}{error}{human}"
        if "failure_rate" in row:
            line["failed"] = f"{row['failed']} ({row['failure_rate']:.0%})"
            line["repairs"] = ", ".join(f"{kind} {count}" for kind, count in row["repairs"].items())
    head = ["dataset", "setting", *metrics, "failed", "repairs"]
    body = [[*names, *(line.get(column, "") for column in head[2:])] for names, line in lines.items()]
    return head, body


def standard_error(values: Sequence[float] | np.ndarray) -> float | None:
    """Return the published standard error: population standard deviation divided by the square root of the number minus one.

    >>> standard_error([0.0, 1.0]), standard_error([0.3])
    (0.5, None)
    """
    return float(np.std(values) / np.sqrt(len(values) - 1)) if len(values) > 1 else None


def draw_label_shares(datasets: Sequence[Dataset], path: Path) -> None:
    """Draw the share of the observed time of each behavior, for each dataset, to an SVG file."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    check_new_path(path)
    figure = Figure(figsize=(7, 0.6 * len(datasets) + 0.8), layout="constrained")
    axes = figure.add_subplot()
    for row, data in enumerate(datasets):
        start = 0.0
        for number, (name, share) in enumerate(label_shares(data).items()):
            axes.barh(row, share, left=start, color=f"C{number}", edgecolor="white")
            if share > MIN_LABELED_SHARE:
                axes.text(start + share / 2, row, f"{name}\n{share:.0%}", ha="center", va="center", fontsize=7, parse_math=False)
            start += share
    axes.set(yticks=range(len(datasets)), yticklabels=[data.name for data in datasets], xlim=(0, 1), xlabel="share of the observed time")
    axes.invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasSVG(figure).print_svg(str(path), metadata={"Date": None})  # type: ignore[no-untyped-call]


def _groups(store: Store) -> dict[tuple[str, str], _Group]:
    groups: dict[tuple[str, str], _Group] = {}
    for key, job, _ in final_jobs(store):
        if job.benchmark != NAME or not store.verify(key):
            continue
        folder = store.folder(key)
        group = groups.setdefault((job.dataset, str(job.setting)), _Group(job.options, job.annotator))
        draw = group.draws.setdefault(job.seed, {})
        for recording in read_recordings(folder / "predictions.parquet", "tidy_parquet", warn=False):
            draw[recording.id] = recording.annotation()
        fit_report = folder / "fit_report.json"
        group.outcomes += outcomes_from_fit_report(json.loads(fit_report.read_text(encoding="utf-8"))) if fit_report.exists() else []
    return groups


def _mean_over_videos(values: np.ndarray) -> Row:
    """Average an array of shape (draws, videos) over draws, then over videos."""
    values = values[:, np.isfinite(values).all(axis=0)].mean(axis=0)
    return {"mean": float(values.mean()) if len(values) else None, "se": standard_error(values), "n": len(values)}


def _human_agreement(data: Dataset, predictions: Mapping[str, Annotation]) -> list[Row]:
    """Compare with people where two or more annotated all videos; with metrics of Ethobench, since none are published."""
    chosen = data.select(recordings=predictions)
    if len(data.annotators) < 2 or any(len(r.annotations) < len(data.annotators) for r in chosen):
        return []
    agreement = ceiling(chosen, model=dict(predictions), measures=("f1", "kappa"))
    rows = []
    for metric in ("f1", "kappa"):
        values = agreement.of(metric)
        row = {"mean": values["model"], "se": None, "n": len(chosen), "human": values["human"], "reached": values["reached"]}
        rows.append({"metric": f"{metric} beside people", **row})
    return rows
