"""Rodent-Bench's own way to sum a run up: means with standard errors, the entropy-weighted MCC, failures, repairs, the ceiling."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.benchmarks.results import final_jobs
from ethobench.benchmarks.rodentbench import NAME
from ethobench.core import Annotation, Dataset
from ethobench.core.errors import EthobenchError
from ethobench.core.files import check_new_path
from ethobench.datasets import load_dataset
from ethobench.datasets.rodentbench import label_shares
from ethobench.formats import read_recordings
from ethobench.metrics import Scores, ceiling, score
from ethobench.metrics.suites.rodentbench import entropy_weighted_mcc
from ethobench.mllm.annotate import FAILED, AnnotationOutcome, count_repairs, outcomes_from_fit_report
from ethobench.runs import Store

ALL = "(all, weighted by entropy)"
FAILURES = ("count", "drop")


@dataclass
class _Group:
    """The jobs of one contender on one dataset; chance draws several times."""

    options: Mapping[str, Any]
    annotator: str | None
    draws: dict[int, dict[str, Annotation]] = field(default_factory=dict)
    outcomes: list[AnnotationOutcome] = field(default_factory=list)

    @property
    def failed(self) -> set[str]:
        return {outcome.recording for outcome in self.outcomes if outcome.state == FAILED}


def summary(store: Store, *, failures: str = "count") -> list[dict[str, Any]]:
    """Sum a run up.

    Parameters
    ----------
    store : Store
    failures : {"count", "drop"}
        A video whose answer could not be read counts as one without any behavior; or is left out, as published.

    Returns
    -------
    list of dict
        Sorted rows of ``dataset, setting, metric, mean, se, n, failed, failure_rate, repairs`` and, where two people
        annotated the same videos, ``human`` and ``reached``. ``se`` is the published one: population standard deviation over
        videos, divided by the root of their number less one. A last row for each setting has the MCC of all datasets.
    """
    if failures not in FAILURES:
        raise EthobenchError(f"videos that failed are handled by {' or '.join(FAILURES)}, not {failures!r}")
    rows: list[dict[str, Any]] = []
    together: dict[str, dict[str, list[Scores]]] = {}
    for (dataset, setting), group in sorted(_groups(store).items()):
        data = load_dataset(dataset, **group.options)
        left_out = group.failed if failures == "drop" else set()
        draws = [{name: p for name, p in sorted(draw.items()) if name not in left_out} for _, draw in sorted(group.draws.items())]
        about = {
            "failed": len(group.failed),
            "failure_rate": len(group.failed) / len(next(iter(group.draws.values()))),
            "repairs": count_repairs(group.outcomes),
        }
        if not draws[0]:
            rows.append({"dataset": dataset, "setting": setting, "metric": "mcc", "mean": None, "se": None, "n": 0, **about})
            continue
        several = [score(draw, data, suite=NAME, annotator=group.annotator, resamples=0) for draw in draws]
        together.setdefault(setting, {})[dataset] = several
        for metric in several[0].overall:
            values = np.array([[part["overall"][metric] for part in scores.per("recording").values()] for scores in several])
            rows.append({"dataset": dataset, "setting": setting, "metric": metric, **_mean(values), **about})
        rows += _ceiling_rows(data, draws[0], dataset, setting, about)
    for setting, found in sorted(together.items()):
        times = range(max(map(len, found.values())))
        value = np.mean([entropy_weighted_mcc({name: several[k % len(several)] for name, several in found.items()}) for k in times])
        rows.append({"dataset": ALL, "setting": setting, "metric": "mcc", "mean": float(value), "se": None, "n": len(found)})
    return rows


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay the rows of `summary` out as a Markdown table."""
    head, body = laid_out(rows)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *body))


def laid_out(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Lay the rows of `summary` out: one line for each dataset and setting, one column for each measure."""
    measures = list(dict.fromkeys(str(row["metric"]) for row in rows))
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        line = lines.setdefault((row["dataset"], row["setting"]), {})
        error = "" if row["se"] is None else f" ± {row['se']:.3f}"
        human = f" (people {row['human']:.3f})" if row.get("human") is not None else ""
        line[row["metric"]] = "-" if row["mean"] is None else f"{row['mean']:.3f}{error}{human}"
        if "failure_rate" in row:
            line["failed"] = f"{row['failed']} ({row['failure_rate']:.0%})"
            line["repairs"] = ", ".join(f"{kind} {count}" for kind, count in row["repairs"].items())
    head = ["dataset", "setting", *measures, "failed", "repairs"]
    body = [[*name, *(line.get(column, "") for column in head[2:])] for name, line in lines.items()]
    return head, body


def standard_error(values: Sequence[float] | np.ndarray) -> float | None:
    """Return the published error bar: population standard deviation divided by the root of the number less one.

    >>> standard_error([0.0, 1.0]), standard_error([0.3])
    (0.5, None)
    """
    return float(np.std(values) / np.sqrt(len(values) - 1)) if len(values) > 1 else None


def draw_label_shares(datasets: Sequence[Dataset], path: Path) -> None:
    """Draw the behaviors' shares of the time in each dataset as an SVG file."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    check_new_path(path)
    figure = Figure(figsize=(7, 0.6 * len(datasets) + 0.8), layout="constrained")
    axes = figure.add_subplot()
    for row, data in enumerate(datasets):
        left = 0.0
        for number, (name, share) in enumerate(label_shares(data).items()):
            axes.barh(row, share, left=left, color=f"C{number}", edgecolor="white")
            if share > 0.04:
                axes.text(left + share / 2, row, f"{name}\n{share:.0%}", ha="center", va="center", fontsize=7, parse_math=False)
            left += share
    axes.set(yticks=range(len(datasets)), yticklabels=[data.name for data in datasets], xlim=(0, 1), xlabel="share of the observed time")
    axes.invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasSVG(figure).print_svg(str(path), metadata={"Date": None})  # type: ignore[no-untyped-call]


def _groups(store: Store) -> dict[tuple[str, str], _Group]:
    groups: dict[tuple[str, str], _Group] = {}
    for found in final_jobs(store):
        job, folder = found["job"], store.folder(found["key"])
        if job["benchmark"] != NAME or not store.verify(found["key"]):
            continue
        group = groups.setdefault((job["dataset"], job["setting"]), _Group(job["options"], job["annotator"]))
        draw = group.draws.setdefault(job["seed"], {})
        for recording in read_recordings(folder / "predictions.parquet", "tidy_parquet", warn=False):
            draw[recording.id] = recording.annotation()
        account = folder / "account.json"
        group.outcomes += outcomes_from_fit_report(json.loads(account.read_text(encoding="utf-8"))) if account.exists() else []
    return groups


def _mean(values: np.ndarray) -> dict[str, Any]:
    """Average over draws, then over videos."""
    values = values[:, np.isfinite(values).all(axis=0)].mean(axis=0)
    return {"mean": float(values.mean()) if len(values) else None, "se": standard_error(values), "n": len(values)}


def _ceiling_rows(
    data: Dataset, predictions: Mapping[str, Annotation], dataset: str, setting: str, about: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Compare with people where two or more annotated all videos; the measures are Ethobench's own."""
    chosen = data.select(recordings=predictions)
    if len(data.annotators) < 2 or any(len(r.annotations) < len(data.annotators) for r in chosen):
        return []
    found = ceiling(chosen, model=dict(predictions), measures=("f1", "kappa"))
    rows = []
    for measure in ("f1", "kappa"):
        one = found.of(measure)
        told = {"mean": one["model"], "se": None, "n": len(chosen), "human": one["human"], "reached": one["reached"]}
        rows.append({"dataset": dataset, "setting": setting, "metric": f"{measure} beside people", **told, **about})
    return rows
