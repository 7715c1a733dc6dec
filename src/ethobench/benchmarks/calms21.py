"""CalMS21 / MABe 2021: three tasks, five seeds, the published networks and any other model.

Task 1 is classification. Task 2 adapts the augmented network of task 1 to the style of each annotator: zero-shot, fine-tuned, and as one
network conditioned on the annotator. Task 3 fine-tunes it on behaviors that were annotated in few videos. Training and test recordings are
given by the data; scores are means over seeds.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ethobench.benchmarks.base import Benchmark, ModelOptions, Table, make_job, option, register_benchmark
from ethobench.benchmarks.calms21_tables import NAME, difficulty_table, layout_summary, styles_table, summarize
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import load_dataset
from ethobench.models import models
from ethobench.runs import Job, JobPlan, Setting, Store
from ethobench.runs.plan import PRETRAINING

TASKS = (1, 2, 3)
SEEDS = (42, 43, 44, 45, 46)
SUITES = ("calms21", "ethobench", "banos")
AUGMENTED = "augmented"
FAST = "fast"
RECIPES = ("code", "paper", FAST)
FAST_PARAMS: Mapping[str, Mapping[str, Any]] = {"conv1d": {"frames_per_example": 20, "batch": 64}}
"""Networks that can be trained on frames in a row, which share computations, about nine times as fast."""
ZERO_SHOT, FINE_TUNED, CONDITIONED = "zero-shot", "fine-tuned", "conditioned"
CLASS_WEIGHTS = {
    "approach": 20.0,
    "disengaged": 50.0,
    "groom": 5.0,
    "intromission": 3.0,
    "mount_attempt": 100.0,
    "sniff_face": 20.0,
    "whiterearing": 10.0,
}
"""Published weight of a frame of each behavior of task 3, relative to a background frame."""

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
"""Published configurations of the networks, by model and name of the setting."""
CONDITIONED_PARAMS = {"condition": "annotator", "frames_per_example": 1}
"""One network for all annotators; consecutive frames of an example would have to be of the same annotator, so there is one frame."""
PAPER_PARAMS = {"past": 100, "future": 100, "frame_stride": 2, "augment": ["rotation", "translation", "reflection"]}
"""The pre-trained network of tasks 2 and 3 according to the paper, where its code differs."""
FINE_TUNING_PARAMS = {
    2: {"head_epochs": 5, "epochs": 10, "learning_rate": 1e-4},
    3: {"head_epochs": 30, "head_learning_rate": 1e-3, "epochs": 20, "learning_rate": 5e-5},
}
"""Published fine-tuning of the augmented network, by task."""


@dataclass(frozen=True, kw_only=True)
class Calms21Options(ModelOptions):
    """Options of the CalMS21 benchmark."""

    tasks: tuple[int, ...] = option(TASKS, "Tasks, separated by commas.")
    seeds: tuple[int, ...] = option(SEEDS, "Random seeds, separated by commas.")
    share: float = option(1.0, "Share of the training videos of task 1 to use: 1, or 0.8 as in the published validation runs.")
    recipe: str = option(
        "code",
        "Tasks 2 and 3 as in the published code, which gave the published scores; or as in the paper, with other windows, augmentation, "
        "class weights and fine-tuning; or fast: as in the code, but conv1d learns from 20 frames in a row, about nine times as fast. Not "
        "for comparisons with published scores.",
        choices=RECIPES,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if wrong := [str(task) for task in self.tasks if task not in TASKS]:
            raise NotFoundError(f"`tasks` must be 1, 2 or 3, got {', '.join(wrong)}")
        if not 0 < self.share <= 1:
            raise EthobenchError(f"`share` must be > 0 and <= 1, got {self.share}")

    def fast_params(self, model: str) -> dict[str, Any]:
        """Return the hyper-parameters with which the fast recipe trains a model; empty for other recipes and models."""
        return dict(FAST_PARAMS.get(model, {})) if self.recipe == FAST else {}


@register_benchmark(NAME)
class Calms21(Benchmark):
    """CalMS21: social behavior of mice (Sun et al. 2021)."""

    title = "Social behavior of mice: three tasks, five seeds (Sun et al. 2021)."
    description = """Run CalMS21 (MABe 2021): social behavior of pairs of mice (Sun et al. 2021).

Task 1 is classification, task 2 adapts to the style of each annotator, task 3 learns new behaviors from few videos.

As published, this takes days on a processor; the expected time is printed before it starts. The recipe fast trains the same conv1d on
frames in a row.

Example: [bold]ethobench run calms21 --tasks 1,2,3 --store runs/calms21[/bold]

Faster: [bold]ethobench run calms21 --recipe fast --store runs/calms21[/bold]
"""
    Options = Calms21Options
    options: Calms21Options
    models = ("conv1d", "dense", "lstm", "attention")
    tables = (
        Table("calms21", "means over seeds, annotators and behaviors", lambda store, options: summarize(store), layout=layout_summary),
        Table("difficulty", "new behaviors by frequency and bout length", lambda store, options: difficulty_table(store)),
        Table("styles", "differences between annotators", lambda store, options: styles_table(store)),
    )
    averaged_over = "seeds"
    tests_repeatedly = True
    varies_by_model = True

    def jobs(self, store: Store | None = None, *, n_workers: int = 1, report: Callable[[str], None] = lambda _: None) -> Iterator[JobPlan]:
        """Yield one plan for task 1, and one for each model and further task.

        Tasks 2 and 3 are run for models that can be initialized from a network of task 1.
        """
        options = self.options
        chosen = options.models or self.models
        transferable = [model for model in chosen if "init" in {f.name for f in fields(models[model].Params)}]
        if not transferable and {2, 3} & {*options.tasks}:
            raise EthobenchError(f"tasks 2 and 3 start from a network of task 1, but {', '.join(chosen)} cannot be initialized from one")
        task1 = load_dataset(f"{NAME}/task1")
        if 1 in options.tasks:
            yield _plan_task1(task1, chosen, options)
        for task in (2, 3):
            if task in options.tasks:
                data = load_dataset(f"{NAME}/task{task}")
                for model in transferable:
                    yield _Transfer(task, data, model, options).plan(task1)


def _plan_task1(data: Dataset, chosen: Sequence[str], options: Calms21Options) -> JobPlan:
    jobs = []
    for model in chosen:
        for variant, params in VARIANTS.get(model, {"full": {}}).items():
            jobs += [_task1_job(data, model, Setting(variant), params, seed, options) for seed in options.seeds]
    yield jobs


def _task1_job(
    data: Dataset, model: str, setting: Setting, params: Mapping[str, Any], seed: int, options: Calms21Options, keep: tuple[str, ...] = ()
) -> Job:
    train = recordings_of(data, "train")
    if options.fast_params(model):
        params, setting = {**params, **options.fast_params(model)}, replace(setting, recipe=FAST)
    if options.share < 1:
        train = select_share(data, train, options.share, seed)
        setting = replace(setting, train_share=options.share)
    return make_job(
        NAME,
        data,
        model,
        train,
        recordings_of(data, "test"),
        {**params, **options.params_of(model)},
        seed=seed,
        suites=SUITES,
        setting=setting,
        keep=("model",) if setting in (Setting(AUGMENTED), Setting(AUGMENTED, recipe=FAST)) else keep,
    )


@dataclass(frozen=True)
class _Transfer:
    """Jobs that start from the augmented network of task 1: for every annotator (task 2) or new behavior (task 3)."""

    task: int
    data: Dataset
    model: str
    options: Calms21Options

    def plan(self, task1: Dataset) -> JobPlan:
        """Train the network of task 1, then transfer it."""
        variants = VARIANTS.get(self.model, {})
        params = dict(variants.get(AUGMENTED) or {**variants.get("baseline", {}), "augment": ["published"]})
        setting = Setting(AUGMENTED)
        if self.options.recipe == "paper":
            params |= PAPER_PARAMS
            setting = Setting(AUGMENTED, recipe="as in the paper")
        complete = replace(self.options, share=1.0)
        pretrained = [_task1_job(task1, self.model, setting, params, seed, complete, keep=("model",)) for seed in self.options.seeds]
        results = yield pretrained
        if failed := [result.error for result in results if result.error]:
            raise EthobenchError(f"task {self.task} cannot start: training of its network on task 1 failed ({failed[0]})")
        shape = {name: value for name, value in params.items() if name in ("past", "future", "frame_stride", "augment")}
        recipe = "code" if self.options.recipe == FAST else self.options.recipe
        shared = {**shape, **self.options.fast_params(self.model), **self.options.params_of(self.model), "recipe": recipe}
        groups = groups_with_both_splits(self.data)
        if self.task == 3:
            yield [self._new_behavior(group, job, shared) for group in groups for job in pretrained]
            return
        fast = self.options.fast_params(self.model)
        conditioned_params = {name: value for name, value in shared.items() if name not in fast} | CONDITIONED_PARAMS
        jobs, conditioned = [], {}
        for job in pretrained:
            for group in groups:
                jobs += [self._style(group, job, shared, ZERO_SHOT), self._style(group, job, shared, FINE_TUNED)]
            conditioned[job.seed] = self._conditioned_training(groups[0], job, conditioned_params)
        yield [*jobs, *conditioned.values()]
        yield [self._style(group, conditioned[seed], conditioned_params, CONDITIONED) for seed in self.options.seeds for group in groups]

    def _setting(self, **fields: Any) -> Setting:
        return Setting("", recipe=FAST if self.options.fast_params(self.model) else "", **fields)

    def _style(self, annotator: str, initial: Job, params: Mapping[str, Any], transfer: str) -> Job:
        """Learn one annotator's style from their videos (fine-tuned), or use the initial network unchanged."""
        no_training = {"epochs": 0, "head_epochs": 0} if transfer != FINE_TUNED else {}
        is_conditioned = transfer == CONDITIONED
        return make_job(
            NAME,
            self.data,
            self.model,
            recordings_of(self.data, "train", None if is_conditioned else annotator),
            recordings_of(self.data, "test", annotator),
            {**FINE_TUNING_PARAMS[2], **params, **no_training},
            seed=initial.seed,
            suites=SUITES,
            annotator=annotator,
            train_annotator="all" if is_conditioned else "",
            setting=self._setting(annotator=annotator, transfer=transfer),
            initial_job=initial.key,
        )

    def _conditioned_training(self, annotator: str, initial: Job, params: Mapping[str, Any]) -> Job:
        """Train one network on all annotators, conditioned on the annotator."""
        job = self._style(annotator, initial, params, FINE_TUNED)
        return replace(
            job,
            train=tuple(recordings_of(self.data, "train")),
            train_annotator="all",
            stage=PRETRAINING,
            setting=self._setting(transfer=CONDITIONED),
            keep=("model",),
        )

    def _new_behavior(self, group: str, initial: Job, params: Mapping[str, Any]) -> Job:
        """Learn one behavior from the few videos in which it was annotated."""
        recordings = [self.data[name] for name in recordings_of(self.data, "train", group)]
        names = next(r.annotation(group).ethogram for r in recordings).names
        behavior = next((name for name in names if name != self.data.ethogram.background_name), group)
        class_weight = behavior_weight(group) if params["recipe"] == "code" else "balanced"
        return make_job(
            NAME,
            self.data,
            self.model,
            (r.id for r in recordings),
            recordings_of(self.data, "test", group),
            {**FINE_TUNING_PARAMS[3], "class_weight": class_weight, "decode": "f1", **params},
            seed=initial.seed,
            suites=SUITES,
            annotator=group,
            behaviors=tuple(names),
            setting=self._setting(behavior=behavior, transfer=FINE_TUNED),
            initial_job=initial.key,
        )


def behavior_weight(group: str) -> float | str:
    """Return the published class weight of a behavior, given by its name or by its number in the challenge."""
    number = re.fullmatch(r"behavior-(\d)", group)
    name = list(CLASS_WEIGHTS)[int(number[1])] if number and int(number[1]) < len(CLASS_WEIGHTS) else group
    return CLASS_WEIGHTS.get(name, "balanced")


def groups_with_both_splits(data: Dataset) -> list[str]:
    """Return the annotators (or behaviors) that have training and test videos; warns about those that are skipped."""
    groups = []
    for group in data.annotators:
        splits = {data.splits.get(r.id) for r in data if group in r.annotations}
        if {"train", "test"} <= splits:
            groups.append(group)
        else:
            without_test, without_training = "{0!r} of {1} has no test videos: skipped", "{0!r} of {1} has no training videos: skipped"
            warnings.warn((without_test if "train" in splits else without_training).format(group, data.name), stacklevel=2)
    if not groups:
        raise NotFoundError(f"no annotator of {data.name} has both training and test videos")
    return groups


def recordings_of(data: Dataset, split: str, group: str | None = None) -> list[str]:
    """Return the ids of the annotated recordings of a split, optionally only those annotated by one annotator."""
    ids = [r.id for r in data if data.splits.get(r.id) == split and (group in r.annotations if group else r.annotations)]
    if not ids:
        raise NotFoundError(f"{data.name} has no {split} recordings of {group}" if group else f"{data.name} has no {split} recordings")
    return ids


def select_share(data: Dataset, names: Sequence[str], share: float, seed: int) -> list[str]:
    """Return a random share of recordings, stratified by whether they show the rarest behavior, attack."""
    random = np.random.default_rng(seed)
    selected: set[str] = set()
    rare = "attack" if "attack" in data.ethogram.names else data.ethogram.names[0]
    shows = {name: bool((data[name].annotation().behavior == data[name].annotation().ethogram.code(rare)).any()) for name in names}
    for stratum in (True, False):
        members = [name for name in names if shows[name] == stratum]
        selected |= {members[k] for k in random.permutation(len(members))[: round(share * len(members))]}
    return [name for name in names if name in selected]
