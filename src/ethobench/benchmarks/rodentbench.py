"""Rodent-Bench: multimodal LLMs annotate videos, scored second by second and compared with chance.

Every video is one job. An LLM sees it alone, or with worked examples from the other videos of its dataset; chance models, and a supervised
model on motion features, are fitted to the other videos. The short version ends each video after 599 seconds, the long version does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethobench.benchmarks.base import Benchmark, BenchmarkOptions, Table, make_job, option, register_benchmark
from ethobench.benchmarks.rodentbench_tables import NAME, layout_summary, summarize
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import load_dataset, split_name
from ethobench.datasets.rodentbench import SETS, VERSIONS, features_folder
from ethobench.mllm.annotate import send_requests
from ethobench.mllm.cost import Budget
from ethobench.mllm.model import Mllm
from ethobench.mllm.runner import BatchRunner, RequestRunner
from ethobench.models import CONSENSUS
from ethobench.runs import Job, JobPlan, Setting, Store, hash_files
from ethobench.runs.plan import plan_at_once
from ethobench.training.video_embedding import embed_videos

DATASETS = tuple(f"{NAME}/{name}" for name in SETS)
PROVIDERS = ("", "gemini", "openai", "replay")
SUPERVISED = ("", "boost", "tcn", "auto")
MOTION = "motion"
READINGS = ("repair", "published")
CHANCE_DRAWS = {"majority": 1, "random": 5, "renewal": 5}
"""Number of draws of each kind of chance, as published."""


@dataclass(frozen=True, kw_only=True)
class RodentBenchOptions(BenchmarkOptions):
    """Options of the Rodent-Bench benchmark."""

    datasets: tuple[str, ...] = option((), "Datasets, such as freezing, separated by commas; by default those on this machine.")
    provider: str = option("", "gemini, openai or replay; only chance by default.", choices=PROVIDERS)
    models: tuple[str, ...] = option(
        (), "Models of the provider, separated by commas. With the provider replay: folders of stored answers."
    )
    answers: Path | None = option(None, "Folder of stored answers, for the provider replay.")  # noqa: RUF009
    supervised: str = option(
        "", "Model that is trained on motion features of the other videos, for comparison: boost, tcn or auto.", choices=SUPERVISED
    )
    versions: tuple[str, ...] = option(VERSIONS, "short, long, or both, separated by commas.", choices=VERSIONS)
    shots: int = option(0, "Number of worked examples in each prompt.", minimum=0)
    reading: str = option("repair", "How answers are parsed: repair (repair what can be repaired), or published.", choices=READINGS)
    base_url: str = option("", "Address of another server.")
    max_cost: float | None = option(None, "Maximum cost in US dollars.", minimum=0)
    batch: bool = option(False, "Send requests in batches: cheaper and slower.")
    annotator: str | None = option(None, "Reference annotator, where there are several; or 'consensus'.")
    seed: int = option(0, "Random seed of the first draw.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.provider != "replay" and self.answers is not None:
            raise EthobenchError("`answers` needs provider 'replay'")
        if not self.provider and (self.models or self.shots or self.max_cost is not None or self.batch or self.base_url):
            raise EthobenchError("`models`, `shots`, `base_url`, `max_cost` and `batch` need a `provider`")


@register_benchmark(NAME)
class RodentBench(Benchmark):
    """Rodent-Bench: videos of rodents, annotated by multimodal LLMs."""

    title = "Videos of rodents, annotated by multimodal LLMs."
    description = """Run Rodent-Bench: multimodal LLMs annotate videos of rodents, compared with chance.

Example: [bold]ethobench run rodentbench --provider gemini --models gemini-2.5-flash --max-cost 5 --store runs/rodents[/bold]
"""
    Options = RodentBenchOptions
    options: RodentBenchOptions
    tables = (
        Table(
            "rodentbench",
            "means with standard errors, failures, repairs and human agreement",
            lambda store, options: summarize(store),
            layout=layout_summary,
        ),
    )
    tests_repeatedly = True

    def jobs(self, store: Store | None = None, *, n_workers: int = 1, report: Callable[[str], None] = lambda _: None) -> Iterator[JobPlan]:
        """Send all requests, within the maximum cost, and yield the plan of the jobs that score the answers."""
        if self.options.supervised:
            for name in _dataset_names(self.options.datasets):
                embed_dataset(load_dataset(name), name, report)
        planned = self.plan_jobs()
        spent = request_answers(planned, max_cost=self.options.max_cost, batch=self.options.batch, report=report)
        if spent:
            report(f"${spent:.4f} spent")
        yield plan_at_once(planned)

    def plan_jobs(self) -> list[Job]:
        """Return the jobs of every annotating system on every video, without sending any request."""
        options = self.options
        planned = []
        for name in _dataset_names(options.datasets):
            for version in options.versions:
                for system in self.systems():
                    data = load_dataset(name, version=version, **system.options)
                    for draw in range(system.draws):
                        planned += _system_jobs(data, name, version, system, options.annotator, options.seed + draw)
        return planned

    def systems(self) -> list[AnnotatingSystem]:
        """Return the systems that are compared: the three kinds of chance, a supervised model, and the provider's models."""
        options = self.options
        systems = [AnnotatingSystem(f"chance: {kind}", "chance", {"kind": kind}, draws) for kind, draws in CHANCE_DRAWS.items()]
        if options.supervised:
            systems.append(AnnotatingSystem(f"{options.supervised} on motion features", options.supervised, options={"features": MOTION}))
        for name in (options.models or ("",)) if options.provider else ():
            model = "" if options.provider == "replay" else name
            params: dict[str, Any] = {"provider": options.provider, "model": model, "shots": options.shots, "rule": options.reading}
            if options.base_url:
                params["base_url"] = options.base_url
            if options.answers is not None:
                params["answers"] = str((options.answers / name if name else options.answers).resolve())
            systems.append(AnnotatingSystem(name or options.provider, "mllm", params))
        return systems


@dataclass(frozen=True)
class AnnotatingSystem:
    """A system that annotates videos.

    Attributes
    ----------
    label : str
        Name in the results.
    model : str
        ``"mllm"``, ``"chance"``, or a supervised model.
    params : mapping
        Hyper-parameters of the model.
    draws : int
        Number of times it annotates each video, with different seeds.
    options : mapping
        Options of the dataset beside its version.
    """

    label: str
    model: str = "mllm"
    params: Mapping[str, Any] = field(default_factory=dict)
    draws: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def setting(self, version: str) -> Setting:
        """Return the setting of a job."""
        reading = "published reading" if self.params.get("rule") == "published" else ""
        return Setting(version, system=self.label, shots=self.params.get("shots", 0), reading=reading)


def embed_dataset(data: Dataset, name: str, report: Callable[[str], None] = lambda _: None) -> None:
    """Compute motion features of all videos of a dataset, where they are not in the cache.

    Parameters
    ----------
    data : Dataset
        The long version.
    name : str
        Such as ``"rodentbench/freezing"``.
    report : callable
        Called with lines of text.

    Raises
    ------
    EthobenchError
        If a recording has no video, or a video cannot be read.
    """
    folder = features_folder(name.partition("/")[2], data.version.partition("-")[0])
    for number, recording in enumerate(data, start=1):
        if recording.video is None or recording.video.stem != recording.id:
            raise EthobenchError(f"{name}: a supervised model needs the video of {recording.id!r}, named like its annotation")
        for result in embed_videos([recording.video], folder):
            if result.status == "failed":
                raise EthobenchError(f"{name}: {result.error}")
            report(f"motion features of video {number} of {len(data)}: {recording.id} {result.status}")


def request_answers(
    planned: Sequence[Job],
    *,
    max_cost: float | None = None,
    n_parallel: int = 4,
    per_minute: float | None = None,
    batch: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> float:
    """Send the requests of many jobs from one process, so that limits of cost and rate hold; the jobs then read the cached answers.

    Parameters
    ----------
    planned : sequence of Job
    max_cost : float, optional
        Maximum cost in US dollars.
    n_parallel, per_minute
        Requests in parallel and per minute.
    batch : bool
        Send requests in batches.
    report : callable
        Called with lines of text.

    Returns
    -------
    float
        Cost in US dollars.
    """
    budget = Budget(max_cost)
    groups: dict[str, list[Job]] = {}
    for job in planned:
        if job.model == "mllm":
            groups.setdefault(repr(sorted(job.params.items())), []).append(job)
    for group in groups.values():
        fitted = [_fit(job) for job in group]
        provider = fitted[0][0].provider
        if provider.is_free:
            continue
        runner = RequestRunner(provider, budget=budget, max_concurrent=n_parallel, max_per_minute=per_minute, log=report)
        recordings = [model.requests(data[job.test[0]]) for job, (model, data) in zip(group, fitted, strict=True)]
        send_all = BatchRunner(runner, log=report).send_all if batch else runner.send_all
        for number, (recording, results) in enumerate(send_requests(recordings, send_all), start=1):
            errors = [result.error for result in results if result.error]
            report(f"video {number} of {len(recordings)}: {recording.recording} {errors[0] if errors else ''}".rstrip())
    return budget.spent


def _dataset_names(datasets: Sequence[str]) -> list[str]:
    """Return full names; by default of the datasets on this machine."""
    names = [name if "/" in name else f"{NAME}/{name}" for name in datasets]
    unknown = [name for name in names if name not in DATASETS]
    if unknown:
        raise NotFoundError(f"Rodent-Bench has no dataset {', '.join(unknown)}. Available: {', '.join(DATASETS)}")
    if names:
        return names
    local = [name for name in DATASETS if split_name(name)[0].is_here(name.partition("/")[2])]
    if not local:
        split_name(DATASETS[0])[0].fetch(DATASETS[0].partition("/")[2])  # raises an error that says where to put the files
    return local


def _system_jobs(data: Dataset, name: str, version: str, system: AnnotatingSystem, annotator: str | None, seed: int) -> list[Job]:
    params = dict(system.params)
    if params.get("answers"):
        answers = Path(params["answers"]) / name.partition("/")[2]
        if not answers.exists() and not answers.with_suffix(".jsonl").exists():
            raise EthobenchError(f"{answers} does not exist: put the answers on {name} there, or into {answers.name}.jsonl beside it")
        answers = answers if answers.exists() else answers.with_suffix(".jsonl")
        params |= {"answers": str(answers), "digest": hash_files(answers)}
    groups = data.groups()
    planned = []
    for number, recording in enumerate(data):
        if annotator != CONSENSUS:
            recording.annotation(annotator)  # raises an error before any job starts if the annotator is ambiguous
        planned.append(
            make_job(
                NAME,
                data,
                system.model,
                (r.id for r in data if groups[r.id] != groups[recording.id]),
                (recording.id,),
                params,
                dataset=name,
                options={"version": version, **system.options},
                seed=seed,
                suites=(NAME,) if params.get("rule") == "published" else (NAME, "ethobench"),
                annotator=annotator,
                setting=system.setting(version),
                fold=number,
            )
        )
    return planned


def _fit(job: Job) -> tuple[Mllm, Dataset]:
    """Return the fitted model of a job, and its data."""
    data = load_dataset(job.dataset, **job.options)
    model = Mllm(seed=job.seed, **job.params)
    return model.fit(data.select(recordings=job.train), annotator=job.annotator), data
