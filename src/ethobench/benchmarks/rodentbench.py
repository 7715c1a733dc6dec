"""Rodent-Bench: language models annotate videos, scored second by second beside chance.

Every video is a job of its own. Models see it alone, or with worked examples from the other videos of its set; chance
learns from the others. Short ends each video after 599 seconds, Long does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethobench.benchmarks.jobs import make_job
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import load_dataset
from ethobench.datasets.rodentbench import SETS, VERSIONS
from ethobench.mllm.annotate import send_requests
from ethobench.mllm.cost import Budget
from ethobench.mllm.model import Mllm
from ethobench.mllm.runner import BatchRunner, RequestRunner
from ethobench.models import CONSENSUS
from ethobench.runs import Job, Plan, digest_of

NAME = "rodentbench"
DATASETS = tuple(f"{NAME}/{name}" for name in SETS)
CHANCE = {"majority": 1, "random": 5, "renewal": 5}
"""How often each kind of chance is drawn, as published."""


@dataclass(frozen=True)
class Contender:
    """Somebody who annotates.

    Attributes
    ----------
    label : str
        What results call it.
    model : str
        ``mllm`` or ``chance``.
    params : mapping
    draws : int
        How often it annotates, with one seed after the other.
    """

    label: str
    model: str = "mllm"
    params: Mapping[str, Any] = field(default_factory=dict)
    draws: int = 1


def contenders(
    provider: str, names: Sequence[str] = ("",), *, answers: Path | None = None, shots: int = 0, rule: str = "repair", **params: Any
) -> list[Contender]:
    """List what is compared: a provider's models, and the three kinds of chance.

    Parameters
    ----------
    provider : str
        ``gemini``, ``openai`` or ``replay``; empty for chance alone.
    names : sequence of str
        Models, as the provider calls them. For ``replay``: folders of answers inside `answers`; none if they lie right there.
    answers : Path, optional
        For ``replay``: ``answers[/<model>]/<dataset>`` holds the answers about a dataset.
    shots : int
        Worked examples.
    rule : {"repair", "published"}
        How answers are read.
    **params
        More hyper-parameters of model ``mllm``.
    """
    found = [Contender(f"chance: {kind}", "chance", {"kind": kind}, draws) for kind, draws in CHANCE.items()]
    for name in names if provider else ():
        told = [name or provider, f"{shots} shots" if shots else "", "published reading" if rule == "published" else ""]
        asked = {"provider": provider, "model": "" if provider == "replay" else name, "shots": shots, "rule": rule, **params}
        if answers is not None:
            asked["answers"] = str((answers / name if name else answers).resolve())
        found.append(Contender(", ".join(filter(None, told)), "mllm", asked))
    return found


def jobs(
    datasets: Sequence[str] = (),
    chosen: Sequence[Contender] = (),
    *,
    versions: Sequence[str] = VERSIONS,
    annotator: str | None = None,
    seed: int = 0,
) -> list[Job]:
    """List the jobs of every contender on every video.

    Parameters
    ----------
    datasets : sequence of str
        ``rodentbench/freezing`` or just ``freezing``; all that are on this machine unless told.
    chosen : sequence of Contender
    versions : sequence of {"short", "long"}
    annotator : str, optional
        Whose annotation is true, where there are several.
    seed : int
    """
    wrong = [version for version in versions if version not in VERSIONS]
    if wrong:
        raise NotFoundError(f"Rodent-Bench has the versions {' and '.join(VERSIONS)}, not {', '.join(wrong)}")
    made = []
    for name in _names(datasets):
        for version in versions:
            data = load_dataset(name, version=version)
            for contender in chosen:
                for draw in range(contender.draws):
                    made += _jobs_of(data, name, version, contender, annotator, seed + draw)
    return made


def plans(datasets: Sequence[str] = (), chosen: Sequence[Contender] = (), **options: Any) -> Iterator[Plan]:
    """Plan all jobs at once; parameters as for `jobs`."""
    yield _all_at_once(jobs(datasets, chosen, **options))


def plan_run(
    datasets: Sequence[str] = (),
    names: Sequence[str] = (),
    *,
    provider: str = "",
    versions: Sequence[str] = VERSIONS,
    annotator: str | None = None,
    seed: int = 0,
    max_cost: float | None = None,
    batch: bool = False,
    tell: Callable[[str], None] = lambda _: None,
    **params: Any,
) -> list[Plan]:
    """Ask everything that has to be asked, within the budget, and plan the jobs that score it: what the command does.

    Parameters
    ----------
    datasets, versions, annotator, seed
        As for `jobs`.
    names, provider, **params
        As for `contenders`: `answers`, `shots`, `rule`, `base_url`, ...
    max_cost, batch, tell
        As for `ask_ahead`.
    """
    chosen = contenders(provider, names or ("",), **params)
    planned = jobs(datasets, chosen, versions=versions, annotator=annotator, seed=seed)
    spent = ask_ahead(planned, max_cost=max_cost, batch=batch, tell=tell)
    if spent:
        tell(f"${spent:.4f} spent")
    return [_all_at_once(planned)]


def ask_ahead(
    planned: Sequence[Job],
    *,
    max_cost: float | None = None,
    at_once: int = 4,
    per_minute: float | None = None,
    batch: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> float:
    """Ask the questions of many jobs from one place, so that limits of money and rate hold; the jobs then find the answers.

    Parameters
    ----------
    planned : sequence of Job
    max_cost : float, optional
        Dollars.
    at_once, per_minute
        As for `RequestRunner`.
    batch : bool
        Ask through batches.
    tell : callable

    Returns
    -------
    float
        Dollars spent.
    """
    budget = Budget(max_cost)
    groups: dict[str, list[Job]] = {}
    for job in planned:
        if job.model == "mllm":
            groups.setdefault(repr(sorted(job.params.items())), []).append(job)
    for group in groups.values():
        models_of = [_fitted(job) for job in group]
        provider = models_of[0][0].provider
        if provider.is_free:
            continue
        runner = RequestRunner(provider, budget=budget, max_concurrent=at_once, max_per_minute=per_minute, log=tell)
        assignments = [model.requests(data[job.test[0]]) for job, (model, data) in zip(group, models_of, strict=True)]
        send_all = BatchRunner(runner, log=tell).send_all if batch else runner.send_all
        for number, (assignment, asked) in enumerate(send_requests(assignments, send_all), start=1):
            errors = [one.error for one in asked if one.error]
            tell(f"{number} of {len(assignments)} videos asked about: {assignment.recording} {errors[0] if errors else ''}".rstrip())
    return budget.spent


def _all_at_once(planned: list[Job]) -> Plan:
    yield planned


def _names(datasets: Sequence[str]) -> list[str]:
    """Return full names; those that are on this machine, if none are named."""
    from ethobench.datasets import split_name

    names = [name if "/" in name else f"{NAME}/{name}" for name in datasets]
    unknown = [name for name in names if name not in DATASETS]
    if unknown:
        raise NotFoundError(f"Rodent-Bench has {', '.join(DATASETS)}, not {', '.join(unknown)}")
    if names:
        return names
    here = [name for name in DATASETS if split_name(name)[0].is_here(name.partition("/")[2])]
    if not here:
        split_name(DATASETS[0])[0].fetch(DATASETS[0].partition("/")[2])  # says where the files belong
    return here


def _jobs_of(data: Dataset, name: str, version: str, contender: Contender, annotator: str | None, seed: int) -> list[Job]:
    params = dict(contender.params)
    if params.get("answers"):
        place = Path(params["answers"]) / name.partition("/")[2]
        if not place.exists() and not place.with_suffix(".jsonl").exists():
            raise EthobenchError(f"{place} is not there: answers about {name} belong there, or into {place.name}.jsonl beside it")
        place = place if place.exists() else place.with_suffix(".jsonl")
        params |= {"answers": str(place), "digest": digest_of(place)}
    groups = data.groups()
    made = []
    for number, recording in enumerate(data):
        if annotator != CONSENSUS:
            recording.annotation(annotator)  # complains now rather than in every job
        made.append(
            make_job(
                NAME,
                data,
                contender.model,
                (r.id for r in data if groups[r.id] != groups[recording.id]),
                (recording.id,),
                params,
                dataset=name,
                options={"version": version},
                seed=seed,
                suites=(NAME,) if params.get("rule") == "published" else (NAME, "ethobench"),
                annotator=annotator,
                setting=f"{version}, {contender.label}",
                fold=number,
            )
        )
    return made


def _fitted(job: Job) -> tuple[Mllm, Dataset]:
    """Return the model of a job as the job will have it, and its data."""
    data = load_dataset(job.dataset, **job.options)
    model = Mllm(seed=job.seed, **job.params)
    return model.fit(data.select(recordings=job.train), annotator=job.annotator), data
