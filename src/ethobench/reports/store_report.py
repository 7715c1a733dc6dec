"""The report of a run, from its store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ethobench
from ethobench.benchmarks.base import TableOptions
from ethobench.benchmarks.results import final_jobs, results_table
from ethobench.benchmarks.tables import find_table
from ethobench.core import Annotation, Dataset
from ethobench.core.errors import EthobenchError
from ethobench.core.wording import count_units
from ethobench.datasets import load_dataset, split_name
from ethobench.formats import read_recordings
from ethobench.metrics import Scores, score
from ethobench.metrics.pairs import AlignedPair
from ethobench.reports.report_data import Fact, Figure, Report
from ethobench.reports.run_figures import STEPS, coverage, failures, learning_curves, more_labels, results, settings, timings
from ethobench.reports.score_report import format_duration, score_group
from ethobench.runs import Job, Store

FULL = "full"
DEFAULT_SUITE = "ethobench"
RESAMPLES = 400  # a page may contain the intervals of a hundred models
MAX_NAMES = 4
MAX_RECORDINGS = 10


@dataclass(frozen=True)
class FinishedJob:
    """A finished job: scores by suite, duration of each step, the fit report of its model, and the path of its predictions."""

    job: Job
    suites: Mapping[str, Any]
    timing: Mapping[str, Any]
    fit_report: Mapping[str, Any]
    predictions: Path


def summarize_store(
    store: Store, *, datasets: Mapping[str, Dataset] | None = None, title: str = "", recordings: int = MAX_RECORDINGS
) -> Report:
    """Return the report of a run.

    Parameters
    ----------
    store : Store
    datasets : mapping, optional
        Datasets by name, as `load_available_datasets` returns them. Ethograms and kinds of errors are shown only for these.
    title : str
        Title of the page.
    recordings : int
        Maximum number of recordings of each dataset that are drawn.
    """
    done = list(_final_jobs(store))
    if not done:
        raise EthobenchError(f"{store.root} contains no finished job to report")
    failed = store.failures()
    rows = results_table(store)
    jobs = [d.job for d in done]
    figures: list[Figure | None] = [
        results(rows),
        settings(rows),
        learning_curves(rows, jobs),
        more_labels(find_table("curve").make(store, TableOptions())),
        coverage([(d.job, d.fit_report) for d in done]),
        timings([(d.job, d.timing) for d in done]),
        failures(failed),
    ]
    report: Report = {
        "title": title or f"Benchmark {', '.join(sorted({job.benchmark for job in jobs}))}",
        "lead": f"{_list_or_count({job.model for job in jobs}, 'models')} on {_list_or_count({job.dataset for job in jobs}, 'datasets')}",
        "facts": _facts(done, failed),
        "notes": store.describe_damage(),
        "groups": [{"id": "benchmark", "title": "", "behaviors": [], "figures": [figure for figure in figures if figure is not None]}],
        "version": ethobench.__version__,
    }
    for k, (name, models) in enumerate(_by_dataset(done).items()):
        pairs, remarks = _aligned_pairs(name[1], models, (datasets or {}).get(name[1]), recordings)
        scores = {model: _scores(finished) for model, finished in models.items()}
        truth = next(iter(models.values()))[0].job.annotator or "truth"
        report["groups"].append(score_group(scores, pairs, truth=truth, recordings=recordings, id=f"dataset{k + 1}", title=name[1]))
        report["notes"] += remarks
    return report


def load_available_datasets(store: Store) -> dict[str, Dataset]:
    """Load the datasets of the finished jobs that are on this machine; nothing is downloaded."""
    datasets: dict[str, Dataset] = {}
    for done in _final_jobs(store):
        job = done.job
        if job.dataset not in datasets and _is_available(source := job.source or job.dataset):
            datasets[job.dataset] = load_dataset(source, **job.options)
    return datasets


def _is_available(source: str) -> bool:
    if Path(source).exists():
        return True
    if Path(source).is_absolute() or Path(source).suffix == ".csv":
        return False
    family, variant = split_name(source)
    return family.is_here(variant)


def _final_jobs(store: Store) -> Iterator[FinishedJob]:
    """Yield the final jobs whose files are undamaged; the others are listed in ``store.damage``."""
    for key, job, scores in final_jobs(store):
        if store.verify(key):
            report_file = store.folder(key) / "fit_report.json"
            fit_report = json.loads(report_file.read_text(encoding="utf-8")) if report_file.is_file() else {}
            predictions = store.folder(key) / "predictions.parquet"
            yield FinishedJob(job, scores["suites"], store.timing(key), fit_report, predictions)


def _by_dataset(done: Sequence[FinishedJob]) -> dict[tuple[str, str], dict[str, list[FinishedJob]]]:
    """Group jobs by benchmark and dataset, then by model; of several settings use the full data, or else the first."""
    groups: dict[tuple[str, str], dict[str, dict[str, list[FinishedJob]]]] = {}
    for d in sorted(done, key=lambda d: (d.job.benchmark, d.job.dataset, d.job.model, d.job.seed, d.job.test)):
        by_setting = groups.setdefault((d.job.benchmark, d.job.dataset), {})
        by_setting.setdefault(str(d.job.setting), {}).setdefault(d.job.model, []).append(d)
    return {name: settings[FULL if FULL in settings else min(settings)] for name, settings in groups.items()}


def _scores(done: Sequence[FinishedJob]) -> Scores:
    """Combine the stored statistics, those of the default suite if it was scored."""
    suite = DEFAULT_SUITE if DEFAULT_SUITE in done[0].suites else done[0].job.suites[0]
    return Scores.from_states([d.suites[suite]["state"] for d in done], resamples=RESAMPLES)


def _aligned_pairs(
    name: str, models: Mapping[str, Sequence[FinishedJob]], data: Dataset | None, recordings: int
) -> tuple[dict[str, list[AlignedPair]], list[str]]:
    """Align the stored predictions with the truth (the first of several seeds); also return remarks about what is omitted."""
    if data is None:
        return {}, [f"{name}: ethograms and kinds of errors are omitted, because the dataset is not available"]
    if any(d.job.version != data.version for jobs in models.values() for d in jobs):
        return {}, [f"{name}: ethograms and kinds of errors are omitted, because the dataset has changed since the run"]
    pairs = {}
    for model, jobs in models.items():
        predictions: dict[str, Annotation] = {}
        for done in jobs:
            for recording in read_recordings(done.predictions, "tidy_parquet", warn=False):
                predictions.setdefault(recording.id, recording.annotation())
        pairs[model] = score(dict(sorted(predictions.items())), data, annotator=jobs[0].job.annotator, resamples=0).pairs
    total = max(len(pair_list) for pair_list in pairs.values())
    remarks = [f"{name}: ethograms are drawn for the first {recordings} of {total} recordings"] if 0 < recordings < total else []
    return pairs, remarks


def _facts(done: Sequence[FinishedJob], failed: Mapping[str, Any]) -> list[Fact]:
    seconds = sum(float(d.timing.get(step, 0.0)) for d in done for step in STEPS)
    numbers = [
        ("finished jobs", f"{len(done):,}"),
        ("failed jobs", f"{len(failed):,}"),
        ("models", f"{len({d.job.model for d in done}):,}"),
        ("datasets", f"{len({d.job.dataset for d in done}):,}"),
        ("time in final jobs", format_duration(seconds)),
    ]
    return [{"label": label, "value": value, "details": []} for label, value in numbers]


def _list_or_count(names: set[str], unit: str) -> str:
    return ", ".join(sorted(names)) if len(names) <= MAX_NAMES else count_units(len(names), unit)
