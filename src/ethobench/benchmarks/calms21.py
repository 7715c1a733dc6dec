"""CalMS21 / MABe 2021: three tasks, five seeds, the published networks and any other model.

Task 1 is classification. Task 2 goes on from its augmented network to each annotator's style, zero-shot beside it, and one network
that knows all of them. Task 3 goes on to behaviors that were annotated in few videos. Training and test recordings come with the
data; figures are means over seeds.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ethobench.benchmarks.jobs import make_job
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import load_dataset
from ethobench.models import models
from ethobench.runs import Job, Plan

NAME = "calms21"
TASKS = (1, 2, 3)
SEEDS = (42, 43, 44, 45, 46)
MODELS = ("conv1d", "dense", "lstm", "attention")
SUITES = ("calms21", "ethobench", "banos")
AUGMENTED = "augmented"
RECIPES = ("paper", "code")
CLASS_WEIGHTS = {
    "approach": 20.0,
    "disengaged": 50.0,
    "groom": 5.0,
    "intromission": 3.0,
    "mount_attempt": 100.0,
    "sniff_face": 20.0,
    "whiterearing": 10.0,
}
"""What a frame of each behavior of task 3 weighs against one of the background, as published."""

_short = {"past": 50, "future": 50, "frame_stride": 1}
VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "conv1d": {"baseline": {}, AUGMENTED: {**_short, "epochs": 50, "augment": ["published"]}, "causal": {"future": 0}},
    "dense": {
        "baseline": {},
        "single frame": {
            "past": 0,
            "future": 0,
            "frame_stride": 1,
            "layers": [512, 256, 128, 64],
            "learning_rate": 5e-3,
            "epochs": 15,
            "dropout": 0.2,
        },
    },
    "lstm": {"baseline": {**_short, "epochs": 20}},
    "attention": {"baseline": {**_short, "epochs": 20}},
}
"""Published configurations of the networks, by model and setting."""
CONDITIONED = {"condition": "annotator", "frames_per_example": 1}
"""One network for all annotators; frames in a row are learnt for one of them only."""
PAPER = {"past": 100, "future": 100, "frame_stride": 2, "augment": ["rotation", "translation", "reflection"]}
"""What the paper tells of the network that tasks 2 and 3 begin with, where its code did otherwise."""
TUNED = {
    2: {"head_epochs": 5, "epochs": 10, "learning_rate": 1e-4},
    3: {"head_epochs": 30, "head_learning_rate": 1e-3, "epochs": 20, "learning_rate": 5e-5},
}
"""How the published recipes of tasks 2 and 3 go on from the augmented network."""


@dataclass(frozen=True)
class Protocol:
    """What all jobs of a run share.

    Attributes
    ----------
    seeds : tuple of int
    share : float
        Share of the training recordings of task 1 to learn from: 1, or 0.8 as in the published validation runs.
    recipe : {"paper", "code"}
        Tasks 2 and 3 as the code did them, on which the published figures rest, or as the paper tells: other windows and augmentation
        of the network to begin with, behaviors weighed by how rare they are, and other fine-tuning (`plan_phases`).
    params : mapping
        Hyper-parameters that come before the published ones, by model.
    """

    seeds: Sequence[int] = SEEDS
    share: float = 1.0
    recipe: str = "code"
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.recipe not in RECIPES:
            raise EthobenchError(f"fine-tuning follows the {' or the '.join(RECIPES)}, not {self.recipe!r}")
        if not 0 < self.share <= 1:
            raise EthobenchError(f"the share of the training recordings lies between 0 and 1, not at {self.share}")


def plans(tasks: Sequence[int] = TASKS, chosen: Sequence[str] = MODELS, protocol: Protocol | None = None) -> Iterator[Plan]:
    """Plan tasks.

    Parameters
    ----------
    tasks : sequence of {1, 2, 3}
    chosen : sequence of str
        Models. Tasks 2 and 3 go on from a network of task 1, so they take those that can begin with what was learnt before.
    protocol : Protocol, optional
    """
    if wrong := [str(task) for task in tasks if task not in TASKS]:
        raise NotFoundError(f"CalMS21 has the tasks 1, 2 and 3, not {', '.join(wrong)}")
    told = protocol or Protocol()
    able = [model for model in chosen if "init" in {f.name for f in fields(models[model].Params)}]
    if not able and {2, 3} & {*tasks}:
        raise EthobenchError(f"tasks 2 and 3 go on from a network of task 1; none of {', '.join(chosen)} can")
    first = load_dataset(f"{NAME}/task1")
    if 1 in tasks:
        yield _task1(first, chosen, told)
    for task in (2, 3):
        if task in tasks:
            data = load_dataset(f"{NAME}/task{task}")
            for model in able:
                yield _fine_tuning(task, first, data, model, told)


def _task1(data: Dataset, chosen: Sequence[str], told: Protocol) -> Plan:
    jobs = []
    for model in chosen:
        for setting, params in VARIANTS.get(model, {"full": {}}).items():
            jobs += [_task1_job(data, model, setting, params, seed, told) for seed in told.seeds]
    yield jobs


def _task1_job(
    data: Dataset, model: str, setting: str, params: Mapping[str, Any], seed: int, told: Protocol, keep: tuple[str, ...] = ()
) -> Job:
    train = _of(data, "train")
    if told.share < 1:
        train = _share(data, train, told.share, seed)
        setting = f"{setting}, {told.share:.0%} of the training data"
    return make_job(
        NAME,
        data,
        model,
        train,
        _of(data, "test"),
        {**params, **told.params.get(model, {})},
        seed=seed,
        suites=SUITES,
        setting=setting,
        keep=("model",) if setting == AUGMENTED else keep,
    )


def _fine_tuning(task: int, first: Dataset, data: Dataset, model: str, told: Protocol) -> Plan:
    """Train the network of task 1, then go on from it for every annotator (task 2) or behavior (task 3)."""
    known = VARIANTS.get(model, {})
    params = known.get(AUGMENTED) or {**known.get("baseline", {}), "augment": ["published"]}
    if told.recipe == "paper":
        params = {**params, **PAPER}
    setting = AUGMENTED if told.recipe == "code" else f"{AUGMENTED}, as the paper tells"
    begun = [_task1_job(first, model, setting, params, seed, replace(told, share=1.0), keep=("model",)) for seed in told.seeds]
    results = yield begun
    if failed := [result.error for result in results if result.error]:
        raise EthobenchError(f"task {task} cannot begin: its network of task 1 failed ({failed[0]})")
    shaped = {name: value for name, value in params.items() if name in ("past", "future", "frame_stride", "augment")}
    before = {**shaped, **told.params.get(model, {}), "recipe": told.recipe}
    if task == 3:
        yield [_new_behavior(data, model, group, job, before) for group in _with_both(data) for job in begun]
        return
    conditioned = {}
    jobs = []
    for job in begun:
        for group in _with_both(data):
            jobs += [_style(data, model, group, job, before, "zero-shot"), _style(data, model, group, job, before, "fine-tuned")]
        conditioned[job.seed] = _together(data, model, job, before)
    yield [*jobs, *conditioned.values()]
    yield [
        _style(data, model, group, conditioned[seed], {**before, **CONDITIONED}, "conditioned")
        for seed in told.seeds
        for group in _with_both(data)
    ]


def _style(data: Dataset, model: str, group: str, begin: Job, before: Mapping[str, Any], way: str) -> Job:
    """Learn one annotator's style from their own videos, or none at all; or take one that knows all as it is."""
    rest = {"epochs": 0, "head_epochs": 0} if way != "fine-tuned" else {}
    together = way == "conditioned"
    return make_job(
        NAME,
        data,
        model,
        _of(data, "train", None if together else group),
        _of(data, "test", group),
        {**TUNED[2], **before, **rest},
        seed=begin.seed,
        suites=SUITES,
        annotator=group,
        teacher="all" if together else "",
        setting=f"{group}, {way}",
        begin_with=begin.key,
    )


def _together(data: Dataset, model: str, begin: Job, before: Mapping[str, Any]) -> Job:
    """Learn from all annotators at once, each with a style of their own."""
    job = _style(data, model, _with_both(data)[0], begin, {**before, **CONDITIONED}, "fine-tuned")
    return replace(job, train=tuple(_of(data, "train")), teacher="all", stage="beginning", setting="conditioned", keep=("model",))


def _new_behavior(data: Dataset, model: str, group: str, begin: Job, before: Mapping[str, Any]) -> Job:
    """Learn one behavior from the few videos in which it was annotated."""
    recordings = [data[name] for name in _of(data, "train", group)]
    names = next(r.annotation(group).ethogram for r in recordings).names
    behavior = next((name for name in names if name != data.ethogram.background_name), group)
    return make_job(
        NAME,
        data,
        model,
        (r.id for r in recordings),
        _of(data, "test", group),
        {**TUNED[3], "class_weight": _weight(group) if before["recipe"] == "code" else "balanced", "decode": "f1", **before},
        seed=begin.seed,
        suites=SUITES,
        annotator=group,
        behaviors=tuple(names),
        setting=f"{behavior}, fine-tuned",
        begin_with=begin.key,
    )


def _weight(group: str) -> float | str:
    """Return what the published code weighs a behavior with, by its name or by its number in the challenge."""
    number = re.fullmatch(r"behavior-(\d)", group)
    name = list(CLASS_WEIGHTS)[int(number[1])] if number and int(number[1]) < len(CLASS_WEIGHTS) else group
    return CLASS_WEIGHTS.get(name, "balanced")


def _with_both(data: Dataset) -> list[str]:
    """List the annotators (or behaviors) with videos to learn from and videos to test on; says so where one lacks some."""
    found = []
    for group in data.annotators:
        splits = {data.splits.get(r.id) for r in data if group in r.annotations}
        if {"train", "test"} <= splits:
            found.append(group)
        else:
            warnings.warn(f"{group!r} of {data.name} has no {'test' if 'train' in splits else 'training'} videos: left out", stacklevel=2)
    if not found:
        raise NotFoundError(f"nobody in {data.name} has both training and test videos")
    return found


def _of(data: Dataset, split: str, group: str | None = None) -> list[str]:
    """List the recordings of a split that somebody annotated."""
    found = [r.id for r in data if data.splits.get(r.id) == split and (group in r.annotations if group else r.annotations)]
    if not found:
        raise NotFoundError(f"{data.name} has no {split} recordings{f' of {group}' if group else ''}")
    return found


def _share(data: Dataset, names: Sequence[str], share: float, seed: int) -> list[str]:
    """Take a share of whole recordings, those with an attack and those without alike."""
    random = np.random.default_rng(seed)
    kept: set[str] = set()
    rare = "attack" if "attack" in data.ethogram.names else data.ethogram.names[0]
    shows = {name: bool((data[name].annotation().behavior == data[name].annotation().ethogram.code(rare)).any()) for name in names}
    for kind in (True, False):
        alike = [name for name in names if shows[name] == kind]
        kept |= {alike[k] for k in random.permutation(len(alike))[: round(share * len(alike))]}
    return [name for name in names if name in kept]
