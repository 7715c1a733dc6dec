"""Jobs, their settings and results, and plans: the jobs of a benchmark in stages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
FINAL, SEARCH, PRETRAINING = "final", "search", "pretraining"
"""Stages of a job. Only final jobs are reported; the others choose hyper-parameters, or train a model that final jobs start from."""
DEFAULT_SETTING = "full"
"""The setting that is not mentioned in messages."""


@dataclass(frozen=True)
class Setting:
    """The condition under which a model is trained and tested, such as full or reduced training data.

    Results are reported for each benchmark, dataset, model and setting. Tables select by its fields; `str` renders it for display.

    Attributes
    ----------
    name : str
        Data, or variant of the model: ``"full"``, ``"reduced"``, ``"baseline"``, ``"short"``, ... May be empty.
    gyroscope : bool
        False where gyroscope channels are excluded.
    annotator : str
        The annotator whose annotations are learned, where a benchmark compares annotators.
    behavior : str
        The only behavior that is learned, where a benchmark learns each behavior separately.
    train_share : float
        Share of the training data that is used, from 0 to 1.
    n_recordings : int
        Number of training recordings, where a benchmark varies it; otherwise 0.
    transfer : str
        How a pre-trained model is used: ``"zero-shot"``, ``"fine-tuned"``, ``"conditioned"``, ...
    recipe : str
        Variant of the training recipe, where it is not that of the published code.
    system : str
        The system that annotates, where it is not a model of this package: a provider's model, or a kind of chance.
    shots : int
        Number of worked examples in each prompt.
    reading : str
        How answers are parsed, where it is not the default.
    variation : tuple of (str, str)
        Hyper-parameters, seed or data that distinguish this try from others of the same store.
    undecoded : bool
        True for scores of the most probable behavior of each frame, where a decoder is used otherwise.

    Examples
    --------
    >>> str(Setting("full", gyroscope=False)), str(Setting("", annotator="anna", transfer="zero-shot"))
    ('full, no gyroscope', 'anna, zero-shot')
    """

    name: str = "full"
    gyroscope: bool = True
    annotator: str = ""
    behavior: str = ""
    train_share: float = 1.0
    n_recordings: int = 0
    transfer: str = ""
    recipe: str = ""
    system: str = ""
    shots: int = 0
    reading: str = ""
    variation: tuple[tuple[str, str], ...] = ()
    undecoded: bool = False

    def __str__(self) -> str:
        decimals = 0 if self.name else 1  # CalMS21 names a share in whole percent, learning curves need more
        texts = (
            self.name,
            "" if self.gyroscope else "no gyroscope",
            self.annotator,
            self.behavior,
            f"{self.train_share:.{decimals}%} of the training data" if self.train_share < 1 else "",
            f"{self.n_recordings} recordings" if self.n_recordings else "",
            self.transfer,
            self.recipe,
            self.system,
            f"{self.shots} shots" if self.shots else "",
            self.reading,
            *(f"{name} {value}" for name, value in self.variation),
            "undecoded" if self.undecoded else "",
        )
        return ", ".join(filter(None, texts))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, and the name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name == "name" or getattr(self, f.name) != f.default}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Setting:
        """Create a setting from the output of `to_dict`, or from JSON of it."""
        variation = tuple((str(name), str(value)) for name, value in values.get("variation", ()))
        return cls(**{**values, "variation": variation})


@dataclass(frozen=True)
class Job:
    """Training of one model on some recordings, and its test on others.

    Everything that can change the result is part of its `key`: the content of the data, the recordings, the model with its
    hyper-parameters, seed and revision, and the suites.

    Attributes
    ----------
    benchmark, dataset : str
    version : str
        Version of the dataset.
    train, test : tuple of str
        Ids of the recordings.
    model : str
    revision : int
        Revision of the model.
    params : mapping
        Hyper-parameters that differ from the defaults.
    options : mapping
        Options of `load_dataset`.
    seed : int
    suites : tuple of str
    annotator : str, optional
        Whose annotations the predictions are compared with.
    setting : Setting
    stage : {"final", "search", "pretraining"}
        Only final jobs are reported.
    fold : int
    behaviors : tuple of str
        Learn and test only these behaviors; all if empty.
    train_annotator : str
        Whose annotations are learned, where it is not `annotator`; ``"all"`` for all annotators.
    initial_job : str
        Key of the job whose model this one is initialized from; that job must keep its model.
    files_digest : str
        Hash of the files that hyper-parameters name (`hash_files`).
    keep : tuple of {"model"}
        What later jobs need from this one.
    time_budget : float
        Time limit in seconds of the command that runs the job, for models that observe deadlines; 0 for no limit. The result of such a
        job depends on the speed of the machine.
    source : str
        Argument of `load_dataset` where it is not the name of the dataset, such as the path of a study. Not part of the key.
    """

    benchmark: str
    dataset: str
    version: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    model: str
    revision: int = 1
    params: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    suites: tuple[str, ...] = ("ethobench",)
    annotator: str | None = None
    setting: Setting = Setting()
    stage: str = FINAL
    fold: int = 0
    behaviors: tuple[str, ...] = ()
    train_annotator: str = ""
    initial_job: str = ""
    files_digest: str = ""
    keep: tuple[str, ...] = ()
    time_budget: float = 0.0
    source: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can represent."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain: dict[str, Any] = json.loads(json.dumps({**values, "setting": self.setting.to_dict()}))
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Job:
        """Create a job from the output of `to_dict`, or from JSON of it."""
        tuples = {name: tuple(values[name]) for name in ("train", "test", "suites", "behaviors", "keep") if name in values}
        setting = {"setting": Setting.from_dict(values["setting"])} if "setting" in values else {}
        return cls(**{**values, **tuples, **setting})

    @cached_property
    def key(self) -> str:
        """Hash of everything that can change the result."""
        values = {name: value for name, value in self.to_dict().items() if name != "source"}
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"{self.benchmark} {self.dataset} {self.model} {self.setting} {self.stage} fold {self.fold}"


def hash_files(*paths: Path) -> str:
    """Return a hash of files, and of the files in folders, by name and content; empty if there are none."""
    digest = hashlib.blake2b(digest_size=8)
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path]) if file.is_file()]
    for file in files:
        digest.update(file.name.encode() + hashlib.blake2b(file.read_bytes()).digest())
    return digest.hexdigest() if files else ""


@dataclass(frozen=True)
class Result:
    """The result of a job.

    Attributes
    ----------
    job : Job
    overall : dict of str to dict
        Metric values by suite and metric.
    error : str
        Why the job failed; empty if it succeeded.
    """

    job: Job
    overall: dict[str, dict[str, float | None]] = field(default_factory=dict)
    error: str = ""

    def value(self, suite: str, metric: str) -> float | None:
        """Return the value of a metric; None where the job failed or the metric is undefined."""
        return self.overall.get(suite, {}).get(metric)

    @property
    def headline(self) -> float | None:
        """Value of the first headline metric of the job's first suite."""
        from ethobench.metrics.suites import suites

        name = self.job.suites[0]
        return self.value(name, suites[name].headline[0])

    def describe(self, jobs: Sequence[Job] = ()) -> str:
        """Return what was run and how it ended, in one line.

        Parameters
        ----------
        jobs : sequence of Job
            The jobs that run together with this one, such as the folds of a cross-validation.

        Examples
        --------
        >>> folds = [Job("own", "my_study", "1", ("a",), ("b",), "rf", fold=k, setting=Setting("full")) for k in range(5)]
        >>> Result(folds[1], {"ethobench": {"f1": 0.618}}).describe(folds)
        'my_study, fold 2 of 5: rf, frame F1 .62'
        """
        from ethobench.metrics.base import measure_label
        from ethobench.metrics.suites import suites

        job = self.job
        folds = {each.fold for each in jobs if (each.dataset, each.model, each.setting) == (job.dataset, job.model, job.setting)} | {
            job.fold
        }
        fold = f"fold {job.fold + 1} of {max(len(folds), max(folds) + 1)}" if len(folds) > 1 else ""
        stage = {FINAL: "", SEARCH: "hyper-parameter search"}.get(job.stage, job.stage)
        setting = "" if str(job.setting) == DEFAULT_SETTING else str(job.setting)
        params = ", ".join(f"{name} {value}" for name, value in job.params.items()) if job.stage == SEARCH else ""
        if self.error:
            outcome = f"failed: {self.error}"
        elif (value := self.headline) is None:
            outcome = "done"
        else:
            outcome = f"{measure_label(suites[job.suites[0]].headline[0])} {value:.2f}".replace(" 0.", " .").replace(" -0.", " -.")
        head = ", ".join(filter(None, (job.dataset, fold, stage)))
        return f"{head}: {', '.join(filter(None, (job.model, setting, params, outcome)))}"


JobPlan: TypeAlias = Generator[list[Job], list[Result], None]
"""The jobs of a benchmark in stages: yields the jobs that can run now, is sent their results, and yields the next ones."""


def plan_at_once(jobs: list[T]) -> Generator[list[T], list[Any], None]:
    """Plan jobs that do not depend on each other, in one stage."""
    yield jobs
