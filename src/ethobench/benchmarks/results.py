"""Results of a store: final jobs, grouped by benchmark, dataset, model, setting and suite, in one tidy table."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.benchmarks.base import Row, find_benchmark
from ethobench.benchmarks.published import PublishedScore
from ethobench.metrics import Scores
from ethobench.runs import Job, Setting, Store
from ethobench.runs.plan import FINAL

GROUP = ("benchmark", "dataset", "model", "setting", "suite")
COLUMNS = (*GROUP, "metric", "mean", "std", "n", "over", "published", "difference")
TIMINGS = ("jobs", "fit_seconds", "predict_seconds", "hosts")
UNDECODED = "undecoded"


class ScoredJob(NamedTuple):
    """A finished job with its scores.

    Attributes
    ----------
    key : str
        Key of the job in the store.
    job : Job
        The job, whose model and setting also name what distinguishes it from other jobs of the same store.
    scores : dict
        Content of ``scores.json``.
    """

    key: str
    job: Job
    scores: dict[str, Any]


@dataclass(frozen=True)
class ResultGroup:
    """Final jobs that are reported together.

    Attributes
    ----------
    benchmark, dataset, model : str
    setting : Setting
    suite : str
    jobs : list of ScoredJob
    """

    benchmark: str
    dataset: str
    model: str
    setting: Setting
    suite: str
    jobs: list[ScoredJob]

    @property
    def names(self) -> tuple[str, str, str, str, str]:
        """Benchmark, dataset, model, setting (as text) and suite."""
        return self.benchmark, self.dataset, self.model, str(self.setting), self.suite

    @property
    def is_decoded(self) -> bool:
        """Whether a decoder was applied to the predictions."""
        return UNDECODED in self.jobs[0].scores and not self.setting.undecoded

    def stored_scores(self, job: ScoredJob) -> dict[str, Any]:
        """Return the scores of a job with the suite of this group."""
        return dict(job.scores[UNDECODED if self.setting.undecoded else "suites"][self.suite])

    def states(self) -> list[dict[str, Any]]:
        """Return the sufficient statistics of all jobs, in an order that does not depend on that of the jobs."""
        return sorted((self.stored_scores(job)["state"] for job in self.jobs), key=lambda state: state["recordings"])

    def scores(self, resamples: int = 0) -> Scores:
        """Return the scores of all test recordings together."""
        return Scores.from_states(self.states(), resamples=resamples)

    def published(self, metric: str) -> PublishedScore | None:
        """Return the published score; all are of the most probable behavior of each frame, so none belongs to decoded predictions."""
        return find_published(self.benchmark, self.dataset, self.model, self.setting, self.suite, metric, is_decoded=self.is_decoded)


def results_table(store: Store, *, timings: bool = False, only: Collection[str] | None = None) -> list[Row]:
    """Summarize the final jobs of each benchmark, dataset, model and setting.

    Parameters
    ----------
    store : Store
    timings : bool
        Whether to add durations and hosts, which differ from run to run.
    only : collection of str, optional
        Keys of the jobs to use, such as those of one run (`RunSummary.keys`).

    Returns
    -------
    list of dict
        Sorted rows, the same for the same jobs. ``mean`` is the metric of all test recordings together, ``std`` the population standard
        deviation over individuals, or over labs in suite ``mabe2025`` (None for one of them), and ``n`` their number; or mean, standard
        deviation and number of seeds, where ``over`` is ``"seeds"``. ``published`` is the value from a paper or its code, and
        ``difference`` is ``mean - published``.
    """
    rows = []
    for group in group_jobs(store, only):
        over = find_benchmark(group.benchmark).averaged_over
        if over == "seeds":
            values = _values_by_seed(group)
            overall = {metric: float(np.mean(per_seed)) for metric, per_seed in values.items()}
        else:
            scores = group.scores()
            values, overall = scores.overall_per("individual"), scores.overall
            over = f"{scores.suite.unit}s"
        durations = _timings(store, group.jobs) if timings else {}
        for metric, value in overall.items():
            finite = values[metric][np.isfinite(values[metric])]
            mean = value if np.isfinite(value) else None
            std = float(finite.std()) if len(finite) > 1 else None
            published = group.published(metric)
            reference = (published.value, None if mean is None else mean - published.value) if published else (None, None)
            cells = (*group.names, metric, mean, std, len(finite), over, *reference)
            rows.append({**dict(zip(COLUMNS, cells, strict=True)), **durations})
    return rows


def find_published(
    benchmark: str, dataset: str, model: str, setting: Setting, suite: str, metric: str, *, is_decoded: bool
) -> PublishedScore | None:
    """Return the published score of a metric; None if there is none, or if a decoder was applied, which no published score has."""
    name = str(replace(setting, undecoded=False))
    return None if is_decoded else find_benchmark(benchmark).published().get((dataset, model, name, suite, metric))


def final_jobs(store: Store, only: Collection[str] | None = None) -> Iterator[ScoredJob]:
    """Yield the final jobs of a store with their scores; damaged ones are skipped and added to ``store.damage``.

    Where a store holds several jobs of one model that differ in hyper-parameters, data or seed, `Setting.variation` says in what (for
    benchmarks with `Benchmark.varies_by_model`, the model's name does). Jobs of an earlier revision of a model are skipped if there are
    jobs of a later one.
    """
    read = ((key, store.job(key)) for key in list(store.finished()) if only is None or key in only)
    jobs = {key: job for key, job in read if job is not None and job.stage == FINAL}
    for key, job in label_variations(jobs).items():
        scores = store.scores(key)
        if scores is not None:
            yield ScoredJob(key, job, scores)


def label_variations(jobs: Mapping[str, Job]) -> dict[str, Job]:
    """Return jobs by key, with models and settings that distinguish each from the others; jobs of superseded revisions are dropped."""
    groups: dict[tuple[str, str, str, Setting], dict[str, Job]] = {}
    for key, job in jobs.items():
        groups.setdefault((job.benchmark, job.dataset, job.model, job.setting), {})[key] = job
    labeled: dict[str, Job] = {}
    for (benchmark, *_), members in groups.items():
        latest = max(job.revision for job in members.values())
        conditions = {key: _conditions(job) for key, job in members.items() if job.revision == latest}
        as_text = [{name: json.dumps(value) for name, value in each.items()} for each in conditions.values()]
        differing = [name for name in sorted({*chain(*as_text)}) if len({each.get(name) for each in as_text}) > 1]
        for key, values in conditions.items():
            variation = tuple((name, str(values[name])) for name in differing if values.get(name) is not None)
            job = members[key]
            if find_benchmark(benchmark).varies_by_model:
                labeled[key] = replace(job, model=", ".join([job.model, *(f"{name} {value}" for name, value in variation)]))
            else:
                labeled[key] = replace(job, setting=replace(job.setting, variation=variation))
    return {key: labeled[key] for key in jobs if key in labeled}


def _conditions(job: Job) -> dict[str, Any]:
    """Return everything in which two jobs of one model and setting may differ."""
    seed = None if find_benchmark(job.benchmark).tests_repeatedly else job.seed - job.fold or None
    return {
        **job.params,
        "annotator": job.annotator,
        "seed": seed,
        "data": job.version or None,
        "time budget": job.time_budget or None,
    }


def group_jobs(store: Store, only: Collection[str] | None = None) -> list[ResultGroup]:
    """Return the final jobs of a store, grouped and sorted by benchmark, dataset, model, setting and suite."""
    groups: dict[tuple[str, str, str, Setting, str], list[ScoredJob]] = {}
    for finished in final_jobs(store, only):
        job = finished.job
        settings = [job.setting, *([replace(job.setting, undecoded=True)] if UNDECODED in finished.scores else [])]
        for suite in finished.scores["suites"]:
            for setting in settings:
                groups.setdefault((job.benchmark, job.dataset, job.model, setting, suite), []).append(finished)
    return sorted((ResultGroup(*names, jobs) for names, jobs in groups.items()), key=lambda group: group.names)


def _values_by_seed(group: ResultGroup) -> dict[str, NDArray[np.float64]]:
    """Return the values of each metric, one for each seed."""
    values: dict[str, list[float]] = {}
    for job in group.jobs:
        stored = group.stored_scores(job)
        computed = Scores.from_states([stored["state"]], resamples=0).overall
        for metric in computed:
            value = {**computed, **stored.get("overall", {})}[metric]
            values.setdefault(metric, []).append(np.nan if value is None else value)
    return {metric: np.array(per_seed, dtype=np.float64) for metric, per_seed in values.items()}


def _timings(store: Store, jobs: Sequence[ScoredJob]) -> Row:
    timings = [timing for job in jobs if (timing := store.timing(job.key))]
    hosts = ", ".join(sorted({timing["host"] for timing in timings}))
    seconds = (sum(timing[step] for timing in timings) for step in ("fit", "predict"))
    return dict(zip(TIMINGS, (len(jobs), *seconds, hosts), strict=True))
