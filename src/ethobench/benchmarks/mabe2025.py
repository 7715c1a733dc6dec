"""MABe 2025: social actions of mice from many labs, by video stratified by lab, or on labs that were not trained on.

The data of the challenge are in ``$ETHOBENCH_DATA/mabe2025``; `synthetic/labs` simulates its recording conditions. Predictions of all
folds together are a submission, which is written into the store and scored with suite ``mabe2025``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.benchmarks.base import Benchmark, CrossValidationOptions, Row, Table, option, register_benchmark
from ethobench.benchmarks.folds import fold_plan, select_annotated, select_folds
from ethobench.benchmarks.results import ResultGroup, group_jobs
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError, MissingDataError, NotFoundError
from ethobench.core.files import write_text
from ethobench.core.folds import assign_stratified_folds, count_groups
from ethobench.core.messages import Message, Option
from ethobench.core.names import file_stem
from ethobench.core.wording import join_names, plural
from ethobench.datasets import load_dataset
from ethobench.datasets.synthetic_labs import SIZES
from ethobench.formats import write_recordings
from ethobench.formats.mabe2025_submission import write_submission
from ethobench.models.held_out import Predicted, read_predictions
from ethobench.runs import JobPlan, Setting, Store

NAME = "mabe2025"
SYNTHETIC = "synthetic/labs"
DATASETS = (NAME, SYNTHETIC)
SUITE = "mabe2025"
SUITES = (SUITE, "ethobench")
PROTOCOLS = {"folds": Setting("folds by video"), "leave_one_lab_out": Setting("leave one lab out")}
SPLITS = ("recording", "individual")
SUBMISSIONS = "submissions"
"""Folder of a store that has a folder for each dataset, model and setting, with a submission, its solution and its metadata."""
MEASURES = ("f1", "f1_labeled", "precision", "recall")
MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Mabe2025Options(CrossValidationOptions):
    """Options of the MABe 2025 benchmark."""

    dataset: str = option(NAME, "mabe2025, or synthetic/labs: simulated mice in the same recording conditions.", choices=DATASETS)
    protocol: str = option(
        "folds",
        "folds: by video, stratified by lab; leave_one_lab_out: test each lab with a model of others.",
        choices=tuple(PROTOCOLS),
    )
    labs: tuple[str, ...] = option((), "Use only the videos of these labs, separated by commas.")
    n_folds: int = option(5, "Number of folds of the protocol folds.", minimum=2)
    split: str = option(
        "recording", "What the protocol folds never splits between training and test: recording or individual.", choices=SPLITS
    )
    size: str | None = option(None, "Size of synthetic/labs: small (default), medium or full.", choices=(None, *SIZES))
    videos: int | None = option(None, "Number of videos of each lab in synthetic/labs; overrides the size.", minimum=1)
    seconds: float | None = option(None, "Maximum duration of the videos of synthetic/labs; overrides the size.", minimum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        stated = [name for name in ("size", "videos", "seconds") if getattr(self, name) is not None]
        if stated and self.dataset != SYNTHETIC:
            raise EthobenchError(f"`{stated[0]}` applies to the dataset {SYNTHETIC} only")

    @property
    def dataset_options(self) -> dict[str, Any]:
        """Options of `load_dataset`."""
        values = {"labs": list(self.labs) or None, "size": self.size, "videos": self.videos, "seconds": self.seconds}
        return {name: value for name, value in values.items() if value is not None}


@register_benchmark(NAME)
class Mabe2025(Benchmark):
    """MABe 2025: social actions of mice from 19 labs (Kaggle 2025)."""

    title = "Social actions of mice from 19 labs with nine skeletons (MABe 2025)."
    description = """Run MABe 2025: social actions of two to four mice, from 19 labs with nine skeletons.

The default protocol tests videos of labs that were trained on; leave_one_lab_out tests labs that were not. The predictions of all folds are
written into the store as a submission, with the solution and the metadata that its scorer needs.

Example: [bold]ethobench run mabe2025 --dataset synthetic/labs --models boost --store runs/labs[/bold]

Example: [bold]ethobench run mabe2025 --protocol leave_one_lab_out --models boost --store runs/mabe[/bold]
"""
    Options = Mabe2025Options
    options: Mabe2025Options
    models = ("boost",)
    tables = (
        Table("labs", "scores of each lab", lambda store, options: lab_table(store)),
        Table("lab-actions", "scores of each action within each lab", lambda store, options: action_table(store)),
    )

    def jobs(self, store: Store | None = None, *, n_workers: int = 1, report: Callable[[str], None] = lambda _: None) -> Iterator[JobPlan]:
        """Yield one plan for each combination of hyper-parameters and model."""
        options = self.options
        search = options.make_search(store, n_workers)
        data, remarks = with_protocol(load_videos(options), options)
        for remark in remarks:
            report(remark)
        for params in options.combinations():
            for model in options.models or self.models:
                plan = fold_plan(
                    NAME,
                    data,
                    model,
                    dataset=options.dataset,
                    options=options.dataset_options,
                    params=params.get(model, options.params_of(model)),
                    search=search,
                    setting=PROTOCOLS[options.protocol],
                    suites=SUITES,
                    choose_by=(SUITE, "f1"),
                    seed=options.seed,
                )
                yield select_folds(plan, options.folds)

    def finish(self, store: Store, report: Callable[[str], None] = lambda _: None) -> None:
        """Write the predictions of all folds of each model as a submission into the store."""
        for path, count in write_submissions(store, load_videos(self.options), self.options.dataset):
            report(f"submission of {count} videos: {path}")


def load_videos(options: Mabe2025Options) -> Dataset:
    """Load the annotated videos.

    Raises
    ------
    MissingDataError
        If the videos of the challenge are not here.
    """
    data = load_dataset(options.dataset, **options.dataset_options)
    tracked = data.select(recordings=[r.id for r in data if r.has_signals])
    if not any(r.annotations for r in tracked):
        raise MissingDataError(
            Message(
                f"no video of {options.dataset} has both tracking and annotation; see `ethobench datasets` for where to get them, or use ",
                Option("dataset", SYNTHETIC),
            )
        )
    return select_annotated(tracked)


def with_protocol(data: Dataset, options: Mabe2025Options) -> tuple[Dataset, list[str]]:
    """Return the dataset with the folds of a protocol, and remarks on labs that it cannot treat like the others.

    Examples
    --------
    >>> options = Mabe2025Options(dataset="synthetic/labs", labs=("CRIM13", "LyricalHare"), videos=1, seconds=5)
    >>> data, remarks = with_protocol(load_videos(options), options)
    >>> remarks
    ['2 labs have one recording, which is tested by a model of other labs: CRIM13, LyricalHare']
    """
    labs = {r.id: str(r.metadata.get("lab", "")) for r in data}
    if options.protocol == "leave_one_lab_out":
        names = sorted({*labs.values()})
        if len(names) < 2:
            raise NotFoundError(f"leave_one_lab_out needs at least two labs, got {', '.join(names)}")
        return replace(data, folds={name: names.index(lab) for name, lab in labs.items()}), []
    folds = assign_stratified_folds(data, options.n_folds, by=options.split)
    single = [lab for lab, count in count_groups(data, options.split).items() if count < 2]
    remark = plural(
        len(single),
        "{n} lab has one {unit}, which is tested by a model of other labs: {labs}",
        "{n} labs have one {unit}, which is tested by a model of other labs: {labs}",
        unit=options.split,
        labs=join_names(single, "", most=MAX_NAMED),
    )
    return replace(data, folds=folds), [remark] if single else []


def write_submissions(store: Store, data: Dataset, dataset: str) -> list[tuple[Path, int]]:
    """Write the out-of-fold predictions of each model and setting as a submission, beside the solution and the metadata of its videos.

    Parameters
    ----------
    store : Store
    data : Dataset
        The videos.
    dataset : str
        Only jobs of this dataset are written.

    Returns
    -------
    list of tuple of Path and int
        Each submission, and the number of videos that were tested.
    """
    import pandas as pd

    written: list[tuple[Path, int]] = []
    for group in _groups(store, dataset):
        tested = data.select(recordings=sorted({name for finished in group.jobs for name in finished.job.test if name in data}))
        predictions: dict[str, Predicted] = {}
        for finished in group.jobs:
            predictions |= {name: p for name, p in read_predictions(store.folder(finished.key)).items() if name in tested}
        folder = store.root / SUBMISSIONS / file_stem(f"{dataset} {group.model} {group.setting}")
        folder.mkdir(parents=True, exist_ok=True)
        metadata = pd.DataFrame(
            [(r.id, r.metadata["lab"], json.dumps(list(r.metadata["behaviors_labeled"]))) for r in tested],
            columns=["video_id", "lab_id", "behaviors_labeled"],
        )
        write_text(folder / "metadata.csv", metadata.to_csv(index=False), overwrite=True)
        write_recordings(list(tested), folder / "solution.csv", "mabe2025", overwrite=True)
        write_submission(predictions, folder / "submission.csv", metadata=metadata, overwrite=True)
        written.append((folder / "submission.csv", len(tested)))
    return written


def _groups(store: Store, dataset: str = "") -> list[ResultGroup]:
    """Return the results of this benchmark in its suite."""
    groups = [group for group in group_jobs(store) if (group.benchmark, group.suite) == (NAME, SUITE) and not group.setting.undecoded]
    return [group for group in groups if dataset in ("", group.dataset)]


def lab_table(store: Store) -> list[Row]:
    """Return one row for each dataset, model, setting and lab: its number of videos and its scores."""
    rows = []
    for group in _groups(store):
        scores = group.scores()
        videos = Counter(scores.individuals_by_recording)
        for lab, values in scores.per("lab").items():
            rows.append({**_names(group), "lab": lab, "videos": videos[lab], **{m: _finite(values["overall"][m]) for m in MEASURES}})
    return rows


def action_table(store: Store) -> list[Row]:
    """Return one row for each dataset, model, setting, lab and action that is true or predicted there."""
    rows = []
    for group in _groups(store):
        for lab, values in group.scores().per("lab").items():
            for action, measures in values["behaviors"].items():
                cells = {m: _finite(measures[m]) for m in MEASURES}
                if any(value is not None for value in cells.values()):
                    rows.append({**_names(group), "lab": lab, "action": action, **cells})
    return rows


def _names(group: ResultGroup) -> Row:
    return {"dataset": group.dataset, "model": group.model, "setting": str(group.setting)}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
