"""Learning curves: scores as a function of the amount of training data.

Two kinds: shares of the training individuals of a study (`learning_curve_jobs`, ``ethobench train --learning-curve``), which shows whether
more labels would help; and few recordings of each behavior (`FewShot`, ``ethobench run few-shot``), which shows how many labeled recordings
a new behavior needs, with and without a pre-trained model.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ethobench.benchmarks.base import STUDY_LABEL, Benchmark, ModelOptions, Params, Row, Table, make_job, option, register_benchmark
from ethobench.benchmarks.folds import resolve_source, select_annotated, with_folds
from ethobench.benchmarks.results import group_jobs
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import load_dataset
from ethobench.models import reference_annotation
from ethobench.runs import Job, JobPlan, Setting, Store
from ethobench.runs.plan import PRETRAINING

SHARES = (0.125, 0.25, 0.5)
MIN_GAIN = 0.02
"""Gain in F1 by twice as many labels from which on more labels are recommended."""
METRIC = "f1"
FEW_SHOT = "few-shot"
FROM_SCRATCH, PRETRAINED = "from scratch", "pre-trained"
SHARED_PARAMS = (
    "past", "future", "frame_stride", "inputs", "min_confidence", "layers", "kernel", "batch", "samples_per_epoch", "frames_per_example",
    "epochs", "augment"
)  # fmt: skip
"""Hyper-parameters that a pre-trained network has in common with those that are initialized from it."""
HEAD_PARAMS = ("head_epochs", "head_learning_rate")
"""Hyper-parameters of fine-tuning, which training from scratch does not take."""


def learning_curve_jobs(
    dataset: str,
    model: str,
    *,
    params: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    shares: Sequence[float] = SHARES,
    annotator: str | None = None,
    split: str = "individual",
    seed: int = 0,
) -> list[Job]:
    """Return jobs that train a model on shares of the training individuals; the complete data are used by the cross-validation itself.

    Parameters
    ----------
    dataset : str
        A folder, a ``recordings.csv``, or the name of a dataset.
    model : str
    params : mapping, optional
        Hyper-parameters.
    options : mapping, optional
        Options of `load_dataset`.
    shares : sequence of float
        Approximate shares of the individuals of the training folds; each is a subset of the next larger one. Shares of less than one
        individual are skipped.
    annotator, split, seed
        As for `study_plan`.
    """
    source = resolve_source(dataset)
    data = with_folds(select_annotated(load_dataset(source, **(options or {})), annotator), split=split)
    groups = data.groups() if split == "individual" else {r.id: r.id for r in data}
    orders = {}
    for fold in sorted(set(data.folds.values())):
        available = sorted({groups[r.id] for r in data if data.folds[r.id] != fold})
        orders[fold] = [available[k] for k in np.random.default_rng([seed, fold]).permutation(len(available))]
    jobs = []
    for share in sorted(shares):
        counts = {fold: round(share * len(order)) for fold, order in orders.items() if 0 < round(share * len(order)) < len(order)}
        actual = float(np.mean([count / len(orders[fold]) for fold, count in counts.items()])) if counts else share
        for fold, count in counts.items():
            chosen = {*orders[fold][:count]}
            train = [r.id for r in data if groups[r.id] in chosen and data.folds[r.id] != fold]
            test = [r.id for r in data if data.folds[r.id] == fold]
            fields = {"source": source, "options": options or {}, "annotator": annotator, "seed": seed + fold, "fold": fold}
            jobs.append(make_job(STUDY_LABEL, data, model, train, test, params, setting=Setting("", train_share=actual), **fields))
    return jobs


def learning_curve_table(store: Store, only: Collection[str] | None = None) -> list[Row]:
    """Return the learning curve of each behavior.

    Parameters
    ----------
    store : Store
    only : collection of str, optional
        Keys of the jobs to use, where there are others of the same model.

    Returns
    -------
    list of dict
        Rows of ``dataset, model, behavior``, F1 at each share of the training data (``f1_12.5%`` ... ``f1_100%``), the recent gain by
        twice as many labels (``gained``), and whether more labels would help (``more_labels``).
    """
    curves: dict[tuple[str, str], dict[str, dict[float, float]]] = {}
    for group in group_jobs(store, only):
        setting = group.setting
        is_point = setting == Setting("", train_share=setting.train_share) and setting.train_share < 1
        is_complete = setting in (Setting("full"), Setting("split by recording"))
        if group.benchmark != STUDY_LABEL or group.suite != "ethobench" or not (is_point or is_complete):
            continue
        share = round(setting.train_share, 3)
        behaviors = curves.setdefault((group.dataset, group.model), {})
        for name, values in group.scores().behaviors.items():
            behaviors.setdefault(name, {})[share] = values[METRIC]
    return [
        summarize_curve(dataset, model, behavior, values)
        for (dataset, model), behaviors in sorted(curves.items())
        for behavior, values in behaviors.items()
    ]


def summarize_curve(dataset: str, model: str, behavior: str, values: Mapping[float, float]) -> Row:
    """Return the row of one learning curve; `values` are F1 by share of the training data."""
    row: Row = {"dataset": dataset, "model": model, "behavior": behavior}
    finite = {share: value for share, value in sorted(values.items()) if np.isfinite(value)}
    row |= {f"f1_{100 * share:g}%": value for share, value in finite.items()}
    row["gained"] = row["more_labels"] = None
    if len(finite) > 1:
        shares = np.log2(list(finite))[-3:]
        slope = float(np.polyfit(shares, list(finite.values())[-3:], 1)[0])
        row["gained"] = slope
        row["more_labels"] = "would help" if slope >= MIN_GAIN else "would hardly help"
    return row


# ------------------------------------------------------------------------------------------------------------------------ few-shot


@dataclass(frozen=True, kw_only=True)
class FewShotOptions(ModelOptions):
    """Options of few-shot learning curves."""

    path: str = option("", "Folder of the study, its recordings.csv, or the name of a dataset.", is_argument=True)
    counts: tuple[int, ...] = option(
        (1, 2, 4, 8, 16),
        "Numbers of training recordings that show the behavior, separated by commas; skipped where fewer than twice as many do.",
    )
    behaviors: tuple[str, ...] = option((), "Behaviors to learn, separated by commas; all but the background by default.")
    pretrain_on: str = option(
        "", "Study with other labels of the same recordings, on which a network is pre-trained. Test recordings are excluded."
    )
    pretrain_params: Params | None = option(  # noqa: RUF009
        None, "Hyper-parameters of the pre-training by model; by default those of `params` that both have in common.", is_hidden=True
    )
    folds: tuple[int, ...] = option((), "Test only these folds, separated by commas.")
    suites: tuple[str, ...] = option(("calms21", "ethobench"), "Suites to score with, separated by commas.", name="suite")
    annotator: str | None = option(None, "Annotator to train on, where there are several; or 'consensus'.")
    seed: int = option(0, "Random seed of the first fold; fold k has seed + k.")


@register_benchmark(FEW_SHOT)
class FewShot(Benchmark):
    """Learning curves over few training recordings of each behavior."""

    title = "How many labeled recordings a new behavior needs."
    description = """Learn each behavior from few recordings, from scratch and from a pre-trained network.

Shows how many labeled recordings a new behavior needs. Each behavior is learned separately against all others.

Example: [bold]ethobench run few-shot rare/ --counts 1,2,4,8 --pretrain-on my_study/ --models conv1d --store runs/few[/bold]
"""
    Options = FewShotOptions
    options: FewShotOptions
    models = ("conv1d",)
    tables = (
        Table("few-shot", "new behaviors learned from few recordings", lambda store, options: few_shot_table(store, options.metrics)),
    )
    tests_repeatedly = True
    varies_by_model = True

    def jobs(self, store: Store | None = None, *, n_workers: int = 1, report: Callable[[str], None] = lambda _: None) -> Iterator[JobPlan]:
        """Yield one plan for each model and tested fold."""
        options = self.options
        source = resolve_source(options.path)
        data = with_folds(select_annotated(load_dataset(source), options.annotator))
        background = data.ethogram.background_name
        available = [name for name in data.ethogram.names if name != background]
        if unknown := [name for name in options.behaviors if name not in available]:
            raise NotFoundError(f"{data.name} has no behavior {', '.join(unknown)}. Available: {', '.join(available)}")
        if background is None:
            raise EthobenchError(f"{data.name} has no background behavior, against which a single behavior could be learned")
        folds = sorted(set(data.folds.values()))
        if wrong := [str(fold) for fold in options.folds if fold not in folds]:
            raise NotFoundError(f"{data.name} has no fold {', '.join(wrong)}. Available: {', '.join(map(str, folds))}")
        recordings = {name: _recordings_with(data, name, options.annotator) for name in options.behaviors or available}
        for model in options.models or self.models:
            for fold in options.folds or folds:
                yield _FewShotFold(data, source, model, fold, options).plan(recordings)


@dataclass(frozen=True)
class _FewShotFold:
    """The jobs of one model and one tested fold."""

    data: Dataset
    source: str
    model: str
    fold: int
    options: FewShotOptions

    @property
    def test(self) -> tuple[str, ...]:
        return tuple(r.id for r in self.data if self.data.folds[r.id] == self.fold)

    def plan(self, recordings: Mapping[str, Sequence[str]]) -> JobPlan:
        """Pre-train a network, if any, then learn every behavior from few of its recordings."""
        initial_job = ""
        if self.options.pretrain_on:
            job = self._pretraining_job()
            (result,) = yield [job]
            if result.error:
                raise EthobenchError(f"the pre-training for fold {self.fold} failed: {result.error}")
            initial_job = job.key
        yield [job for behavior, shown_in in recordings.items() for job in self._curve(behavior, shown_in, initial_job)]

    def _job(self, train: Sequence[str], params: Mapping[str, Any], **fields: Any) -> Job:
        shared = {
            "source": self.source,
            "annotator": self.options.annotator,
            "seed": self.options.seed + self.fold,
            "suites": self.options.suites,
            "fold": self.fold,
        }
        return make_job(FEW_SHOT, self.data, self.model, train, self.test, params, **{**shared, **fields})

    def _pretraining_job(self) -> Job:
        source = resolve_source(self.options.pretrain_on)
        data = load_dataset(source)
        train = [r.id for r in data if r.id not in self.test]
        if self.options.pretrain_params is None:
            params = {name: value for name, value in self.options.params_of(self.model).items() if name in SHARED_PARAMS}
        else:
            params = dict(self.options.pretrain_params.get(self.model, {}))
        fields = {"dataset": data.name, "version": data.version, "source": source, "setting": Setting("pre-training")}
        return self._job(train, params, stage=PRETRAINING, keep=("model",), **fields)

    def _curve(self, behavior: str, recordings: Sequence[str], initial_job: str) -> Iterator[Job]:
        """Yield jobs on increasing numbers of random training recordings, each a subset of the next."""
        available = [name for name in recordings if name not in self.test]
        random = np.random.default_rng([self.options.seed, self.fold, zlib.crc32(behavior.encode())])
        order = [available[k] for k in random.permutation(len(available))]
        ethogram = self.data.ethogram
        behaviors = tuple(name for name in ethogram.names if name in (behavior, ethogram.background_name))
        params = self.options.params_of(self.model)
        scratch_params = {name: value for name, value in params.items() if name not in HEAD_PARAMS}
        for count in self.options.counts:
            if len(recordings) < 2 * count or len(available) < count:
                continue
            setting: dict[str, Any] = {"name": "", "behavior": behavior, "n_recordings": count}
            yield self._job(order[:count], scratch_params, behaviors=behaviors, setting=Setting(transfer=FROM_SCRATCH, **setting))
            if initial_job:
                pretrained = Setting(transfer=PRETRAINED, **setting)
                yield self._job(order[:count], params, behaviors=behaviors, setting=pretrained, initial_job=initial_job)


def few_shot_table(store: Store, metrics: Sequence[str] = ()) -> list[Row]:
    """Return few-shot curves: a row for each behavior, kind of initialization and metric, a column for each number of recordings.

    Parameters
    ----------
    store : Store
    metrics : sequence of str
        Metrics of suite ``calms21``, here of the behavior alone; ``macro_f1`` and ``map`` if empty.
    """
    curves: dict[tuple[str, ...], dict[int, float | None]] = {}
    for group in group_jobs(store):
        if group.benchmark != FEW_SHOT or group.suite != "calms21":
            continue
        setting, overall = group.setting, group.scores().overall
        initialization = f"{setting.transfer}, undecoded" if setting.undecoded else setting.transfer
        for metric in metrics or ("macro_f1", "map"):
            if metric in overall:
                value = float(overall[metric]) if np.isfinite(overall[metric]) else None
                curves.setdefault((group.dataset, group.model, setting.behavior, initialization, metric), {})[setting.n_recordings] = value
    counts = sorted({count for curve in curves.values() for count in curve})
    names = ("dataset", "model", "behavior", "way", "metric")
    return [{**dict(zip(names, key, strict=True)), **{str(n): curve.get(n) for n in counts}} for key, curve in sorted(curves.items())]


def _recordings_with(data: Dataset, behavior: str, annotator: str | None) -> list[str]:
    """Return the ids of the recordings that show a behavior."""
    ids = []
    for recording in data:
        annotation = reference_annotation(recording, annotator)
        if behavior in annotation.ethogram.names and bool((annotation.behavior == annotation.ethogram.code(behavior)).any()):
            ids.append(recording.id)
    return ids
