"""From a store to one tidy table."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.benchmarks.published import Published, published_figures
from ethobench.metrics import Scores
from ethobench.runs import Store

NAMES = ("benchmark", "dataset", "model", "setting", "suite", "metric")
COLUMNS = (*NAMES, "mean", "std", "n", "over", "published", "difference")
TIMINGS = ("jobs", "fit_seconds", "predict_seconds", "hosts")
UNDECODED = "undecoded"
OVER_SEEDS = ("calms21",)
"""Benchmarks whose figures are means over seeds, each with the same test recordings."""
MIXED = (*OVER_SEEDS, "few-shot", "rodentbench")
"""Benchmarks that test a recording several times within a setting, with other seeds."""
IN_PARTS = (*OVER_SEEDS, "few-shot")
"""Benchmarks whose settings are made of parts that tables look at."""
Row = dict[str, Any]


def results_table(store: Store, *, timings: bool = False, only: Collection[str] | None = None) -> list[Row]:
    """Bring the final jobs of each benchmark, dataset, model and setting together.

    Parameters
    ----------
    store : Store
    timings : bool
        Whether to tell times and hosts, which differ from run to run.
    only : collection of str, optional
        Keys of the jobs to look at, such as those of one run (`Outcome.keys`).

    Returns
    -------
    list of dict
        Sorted; the same for the same jobs. ``mean`` is the suite's own figure of all test recordings together, ``std`` the
        standard deviation over individuals (population; None with one), ``n`` their number, or all this over seeds where ``over`` says so;
        ``published`` what a paper or its code gives,
        and ``difference`` ours minus theirs.
    """
    rows = []
    for name, jobs, scores in grouped_scores(store, only):
        parts, over = scores.overall_per("individual"), "individuals"
        overall = scores.overall
        if name[0] in OVER_SEEDS:
            parts, over = _by_seed(jobs, name), "seeds"
            overall = {measure: float(np.mean(values)) for measure, values in parts.items()}
        more = _timings(store, jobs) if timings else {}
        for measure, value in overall.items():
            known = parts[measure][np.isfinite(parts[measure])]
            mean = value if np.isfinite(value) else None
            spread = float(known.std()) if len(known) > 1 else None
            theirs = published_of((*name, measure), decoded=UNDECODED in jobs[0]["scores"])
            beside = (theirs.value, None if mean is None else mean - theirs.value) if theirs else (None, None)
            row = dict(zip(COLUMNS, (*name, measure, mean, spread, len(known), over, *beside), strict=True))
            rows.append({**row, **more})
    return rows


def published_of(name: tuple[str, ...], *, decoded: bool) -> Published | None:
    """Return the published figure of a row: all are of the most probable behavior of each frame, so not of decoded ones.

    Parameters
    ----------
    name : tuple of str
        Benchmark, dataset, model, setting, suite and metric.
    decoded : bool
        Whether the row is of jobs that decode.
    """
    plain = name[3].removesuffix(f", {UNDECODED}")
    return published_figures().get((*name[:3], plain, *name[4:])) if not decoded or plain != name[3] else None


def final_jobs(store: Store, only: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the final jobs of a store: ``key``, ``job`` and ``scores``.

    Where a store holds a try of a model more than once, with other hyper-parameters, data or seeds, the settings say in what they
    differ (of CalMS21 and of few recordings, whose settings have parts of their own, the models do). What an earlier revision of the
    model did is left out if there is a later one.
    """
    found = ((key, store.job(key)) for key in list(store.finished()) if only is None or key in only)
    jobs = {key: job for key, job in found if job is not None and job["stage"] == "final"}
    names = _told_apart(jobs)
    for key, job in jobs.items():
        scores = store.scores(key) if key in names else None
        if scores is not None:
            yield {"key": key, "job": {**job, **names[key]}, "scores": scores}


def _told_apart(jobs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the models and settings of jobs by key, each told apart from the others; jobs that are superseded have none."""
    groups: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for key, job in jobs.items():
        groups.setdefault(tuple(job[name] for name in NAMES[:4]), {})[key] = job
    result: dict[str, dict[str, str]] = {}
    for name, members in groups.items():
        latest = max(job["revision"] for job in members.values())
        facts = {key: _facts(job) for key, job in members.items() if job["revision"] == latest}
        told = [{fact: json.dumps(value) for fact, value in own.items()} for own in facts.values()]
        differing = [fact for fact in sorted({*chain(*told)}) if len({own.get(fact) for own in told}) > 1]
        model, setting = name[2:4]
        for key, own in facts.items():
            label = "".join(f", {fact} {own[fact]}" for fact in differing if own.get(fact) is not None)
            inside = name[0] in IN_PARTS
            result[key] = {"model": f"{model}{label if inside else ''}", "setting": f"{setting}{'' if inside else label}"}
    return result


def _facts(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return in what two tries of one model may differ."""
    seed = None if job["benchmark"] in MIXED else job["seed"] - job["fold"] or None
    return {
        **job["params"],
        "annotator": job["annotator"],
        "seed": seed,
        "data": job["version"] or None,
        "time budget": job.get("budget") or None,
    }


def grouped_scores(store: Store, only: Collection[str] | None = None) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]], Scores]]:
    """Yield benchmark, dataset, model, setting and suite, sorted, with their final jobs and the scores of these together."""
    for name, jobs in grouped_jobs(store, only):
        yield name, jobs, Scores.from_states(states_of(name, jobs), resamples=0)


def grouped_jobs(store: Store, only: Collection[str] | None = None) -> list[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """Return benchmark, dataset, model, setting and suite, sorted, with their final jobs."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for found in final_jobs(store, only):
        job = found["job"]
        place = (job["benchmark"], job["dataset"], job["model"])
        for suite in found["scores"]["suites"]:
            groups.setdefault((*place, job["setting"], suite), []).append(found)
            if UNDECODED in found["scores"]:
                groups.setdefault((*place, f"{job['setting']}, {UNDECODED}", suite), []).append(found)
    return sorted(groups.items())


def states_of(name: tuple[str, ...], jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what the scores of a group are made of, in an order that does not depend on that of the jobs."""
    return sorted((job["scores"][_part(name)][name[-1]]["state"] for job in jobs), key=lambda state: state["recordings"])


def _by_seed(jobs: Sequence[Mapping[str, Any]], name: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
    """Return the figures of each seed by measure."""
    part = _part(name)
    each = [Scores.from_states([job["scores"][part][name[-1]]["state"]], resamples=0).overall for job in jobs]
    told = [{**computed, **job["scores"][part][name[-1]].get("overall", {})} for computed, job in zip(each, jobs, strict=True)]
    return {measure: np.array([np.nan if t[measure] is None else t[measure] for t in told], dtype=np.float64) for measure in each[0]}


def _part(name: tuple[str, ...]) -> str:
    return UNDECODED if name[3].endswith(f", {UNDECODED}") else "suites"


def _timings(store: Store, jobs: Sequence[Mapping[str, Any]]) -> Row:
    timings = [timing for job in jobs if (timing := store.timing(job["key"]))]
    hosts = ", ".join(sorted({timing["host"] for timing in timings}))
    seconds = (sum(timing[step] for timing in timings) for step in ("fit", "predict"))
    return dict(zip(TIMINGS, (len(jobs), *seconds, hosts), strict=True))
