"""From the store of a run to a report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ethobench
from ethobench.benchmarks.learning_curve import curve_table
from ethobench.benchmarks.results import final_jobs, results_table
from ethobench.core import Annotation, Dataset
from ethobench.core.errors import EthobenchError
from ethobench.datasets import load_dataset, split_name
from ethobench.formats import read_recordings
from ethobench.metrics import Scores, score
from ethobench.metrics.pairs import AlignedPair
from ethobench.reports.benchmarks import STEPS, coverage, failures, learning_curves, more_labels, results, settings, timings
from ethobench.reports.shape import Fact, Figure, Report
from ethobench.reports.summarize import format_card, score_group
from ethobench.runs import Job, Store

FULL = "full"
OWN_SUITE = "ethobench"
RESAMPLES = 400  # a page may hold the intervals of a hundred models
MOST_NAMED = 4
MOST_RECORDINGS = 10


@dataclass(frozen=True)
class Done:
    """A finished job: its scores by suite, how long its steps took, what its model tells, and where its predictions are."""

    job: Job
    suites: Mapping[str, Any]
    timing: Mapping[str, Any]
    account: Mapping[str, Any]
    predictions: Path


def summarize_store(
    store: Store, *, datasets: Mapping[str, Dataset] | None = None, title: str = "", recordings: int = MOST_RECORDINGS
) -> Report:
    """Bring everything together that a page on a benchmark shows.

    Parameters
    ----------
    store : Store
    datasets : mapping, optional
        Names of datasets, as the jobs have them, to the data; `load_available_datasets` finds them. Only for these are ethograms
        and kinds of errors shown.
    title : str
        Of the page.
    recordings : int
        How many recordings of each dataset are drawn at most.
    """
    done = list(_final_jobs(store))
    if not done:
        raise EthobenchError(f"{store.root} holds no finished job to report")
    failed = store.failures()
    rows = results_table(store)
    jobs = [d.job for d in done]
    figures: list[Figure | None] = [
        results(rows),
        settings(rows),
        learning_curves(rows, jobs),
        more_labels(curve_table(store)),
        coverage([(d.job, d.account) for d in done]),
        timings([(d.job, d.timing) for d in done]),
        failures(failed),
    ]
    report: Report = {
        "title": title or f"Benchmark {', '.join(sorted({job.benchmark for job in jobs}))}",
        "lead": f"{_listed({job.model for job in jobs}, 'model')} on {_listed({job.dataset for job in jobs}, 'dataset')}",
        "facts": _facts(done, failed),
        "notes": store.describe_damage(),
        "groups": [{"id": "benchmark", "title": "", "behaviors": [], "figures": [figure for figure in figures if figure is not None]}],
        "version": ethobench.__version__,
    }
    for place, (name, models) in enumerate(_by_dataset(done).items()):
        pairs, told = _cases(name[1], models, (datasets or {}).get(name[1]), recordings)
        scores = {model: _scores(found) for model, found in models.items()}
        truth = next(iter(models.values()))[0].job.annotator or "truth"
        report["groups"].append(score_group(scores, pairs, truth=truth, recordings=recordings, id=f"dataset{place + 1}", title=name[1]))
        report["notes"] += told
    return report


def load_available_datasets(store: Store) -> dict[str, Dataset]:
    """Load the data of the finished jobs, as far as they are on this machine; nothing is fetched."""
    found: dict[str, Dataset] = {}
    for done in _final_jobs(store):
        job = done.job
        if job.dataset not in found and _is_here(source := job.source or job.dataset):
            found[job.dataset] = load_dataset(source, **job.options)
    return found


def _is_here(source: str) -> bool:
    if Path(source).exists():
        return True
    if Path(source).is_absolute() or Path(source).suffix == ".csv":
        return False
    family, variant = split_name(source)
    return family.is_here(variant)


def _final_jobs(store: Store) -> Iterator[Done]:
    """Yield the final jobs whose files are undamaged; the others are named in ``store.damaged``."""
    for found in final_jobs(store):
        key = found["key"]
        if store.verify(key):
            account_file = store.folder(key) / "account.json"
            account = json.loads(account_file.read_text(encoding="utf-8")) if account_file.is_file() else {}
            predictions = store.folder(key) / "predictions.parquet"
            yield Done(Job.from_dict(found["job"]), found["scores"]["suites"], store.timing(key), account, predictions)


def _by_dataset(done: Sequence[Done]) -> dict[tuple[str, str], dict[str, list[Done]]]:
    """Sort jobs by benchmark and dataset, then by model; of several settings the full data are taken, or else the first."""
    groups: dict[tuple[str, str], dict[str, dict[str, list[Done]]]] = {}
    for d in sorted(done, key=lambda d: (d.job.benchmark, d.job.dataset, d.job.model, d.job.seed, d.job.test)):
        by_setting = groups.setdefault((d.job.benchmark, d.job.dataset), {})
        by_setting.setdefault(d.job.setting, {}).setdefault(d.job.model, []).append(d)
    return {name: found[FULL if FULL in found else min(found)] for name, found in groups.items()}


def _scores(done: Sequence[Done]) -> Scores:
    """Put the stored statistics together, of our own suite where it was scored."""
    suite = OWN_SUITE if OWN_SUITE in done[0].suites else done[0].job.suites[0]
    return Scores.from_states([d.suites[suite]["state"] for d in done], resamples=RESAMPLES)


def _cases(
    name: str, models: Mapping[str, Sequence[Done]], data: Dataset | None, recordings: int
) -> tuple[dict[str, list[AlignedPair]], list[str]]:
    """Set the stored predictions beside the truth, and tell what could not be; of several seeds the first is taken."""
    if data is None:
        return {}, [f"{name}: ethograms and kinds of errors are left out, since they need the data themselves"]
    if any(d.job.version != data.version for found in models.values() for d in found):
        return {}, [f"{name}: ethograms and kinds of errors are left out, since the data have changed since the run"]
    pairs = {}
    for model, found in models.items():
        guesses: dict[str, Annotation] = {}
        for done in found:
            for recording in read_recordings(done.predictions, "tidy_parquet", warn=False):
                guesses.setdefault(recording.id, recording.annotation())
        pairs[model] = score(dict(sorted(guesses.items())), data, annotator=found[0].job.annotator, resamples=0).pairs
    drawn = max(len(several) for several in pairs.values())
    told = [f"{name}: ethograms are drawn for the first {recordings} of {drawn} recordings"] if 0 < recordings < drawn else []
    return pairs, told


def _facts(done: Sequence[Done], failed: Mapping[str, Any]) -> list[Fact]:
    seconds = sum(float(d.timing.get(step, 0.0)) for d in done for step in STEPS)
    numbers = [
        ("finished jobs", f"{len(done):,}"),
        ("failed jobs", f"{len(failed):,}"),
        ("models", f"{len({d.job.model for d in done}):,}"),
        ("datasets", f"{len({d.job.dataset for d in done}):,}"),
        ("time in final jobs", format_card(seconds)),
    ]
    return [{"label": label, "value": value, "details": []} for label, value in numbers]


def _listed(names: set[str], what: str) -> str:
    return ", ".join(sorted(names)) if len(names) <= MOST_NAMED else f"{len(names)} {what}s"
