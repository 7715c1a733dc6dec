"""What a job is, and how a benchmark yields them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from ethobench.runs.claims import StoreError

LATER = ("behaviors", "teacher", "begin_with", "digest", "keep", "budget")
"""Part of a job's key only where they are set, so that jobs from before there were such fields keep theirs."""


@dataclass(frozen=True)
class Job:
    """Train one model on some recordings and test it on others.

    Everything that can change the result is part of its `key`: the content of the data, the recordings, the model with its
    hyper-parameters, seed and revision, and the suites.

    Attributes
    ----------
    benchmark, dataset : str
    options : mapping
        What the dataset takes.
    version : str
        Of the dataset.
    train, test : tuple of str
        Recordings' ids.
    model : str
    params : mapping
        Hyper-parameters that differ from the defaults.
    revision : int
        Of the model.
    seed : int
    suites : tuple of str
    annotator : str, optional
    setting : str
        What is compared with what: ``"full"`` data, ``"reduced"``, ...
    stage : str
        ``"search"`` or ``"final"``; only the latter is reported.
    fold : int
    behaviors : tuple of str
        Learn and test only these; the others are nothing. All unless told.
    teacher : str
        Whom to learn from, where it is somebody else than `annotator`, with whom the test compares; ``"all"`` for everybody.
    begin_with : str
        Key of the job whose model this one begins with; it must have kept it.
    digest : str
        Hash of files that hyper-parameters name, so that other files make another job (`digest_of`).
    keep : tuple of {"model"}
        What later jobs need of this one.
    budget : float
        Seconds that the command may take for which the job is done, where the model keeps deadlines; 0 for no limit. What the job
        learns then depends on the speed of the machine.
    source : str
        What `load_dataset` takes where that is not the dataset's name: the path of your own. No part of the key.
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
    setting: str = "full"
    stage: str = "final"
    fold: int = 0
    behaviors: tuple[str, ...] = ()
    teacher: str = ""
    begin_with: str = ""
    digest: str = ""
    keep: tuple[str, ...] = ()
    budget: float = 0.0
    source: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        plain: dict[str, Any] = json.loads(json.dumps({f.name: getattr(self, f.name) for f in fields(self)}))
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Job:
        """Make a job from what `to_dict` gave."""
        later = [name for name in plain if name not in {f.name for f in fields(cls)}]
        if later and {"benchmark", "model", "dataset"} <= {*plain}:
            raise StoreError(f"a later version of ethobench made this job: it tells of {', '.join(later)}")
        lists = {name: tuple(plain[name]) for name in ("train", "test", "suites", "behaviors", "keep") if name in plain}
        return cls(**{**plain, **lists})

    @cached_property
    def key(self) -> str:
        """Hash of everything that can change the result."""
        told = {name: value for name, value in self.to_dict().items() if name != "source" and (value or name not in LATER)}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"{self.benchmark} {self.dataset} {self.model} {self.setting} {self.stage} fold {self.fold}"


def digest_of(*paths: Path) -> str:
    """Hash files, and the files in folders, by name and content; nothing for none."""
    digest = hashlib.blake2b(digest_size=8)
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path]) if file.is_file()]
    for file in files:
        digest.update(file.name.encode() + hashlib.blake2b(file.read_bytes()).digest())
    return digest.hexdigest() if files else ""


@dataclass(frozen=True)
class Result:
    """What came of a job.

    Attributes
    ----------
    job : Job
    overall : dict of str to dict
        Figures by suite.
    error : str
        Empty, or why the job failed.
    """

    job: Job
    overall: dict[str, dict[str, float | None]] = field(default_factory=dict)
    error: str = ""

    def figure(self, suite: str, measure: str) -> float | None:
        """Return one figure; None where the job failed or the figure is undefined."""
        return self.overall.get(suite, {}).get(measure)

    @property
    def headline(self) -> float | None:
        """The first figure that the job's first suite shows."""
        from ethobench.metrics.suites import suites

        name = self.job.suites[0]
        return self.figure(name, suites[name].headline[0])


Plan: TypeAlias = Generator[list[Job], list[Result], None]
"""A benchmark's jobs in stages: yields the jobs that can be done now, is sent their results, and yields the next ones."""
