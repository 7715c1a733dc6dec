"""How many labelled recordings a new behavior needs: curves over few training recordings, with and without a network to begin with."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.benchmarks.jobs import make_job
from ethobench.benchmarks.own import annotated, with_folds
from ethobench.benchmarks.results import UNDECODED, Row, results_table
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import load_dataset
from ethobench.models import reference_annotation
from ethobench.runs import Job, Plan, Store

COUNTS = (1, 2, 4, 8, 16)
NAME = "few-shot"
SHARED = (
    "past", "future", "frame_stride", "inputs", "min_confidence", "layers", "kernel", "batch", "samples_per_epoch", "frames_per_example", "epochs", "augment"
)  # fmt: skip
"""Hyper-parameters that the network to begin with has in common with those that go on from it."""
SCRATCH, BEGUN = "from scratch", "begun with what is known"


@dataclass(frozen=True)
class Curve:
    """What is drawn.

    Attributes
    ----------
    counts : tuple of int
        Training recordings, drawn among those that show the behavior; left out where fewer than twice as many do.
    behaviors : tuple of str
        All but the background unless given.
    before : str
        Dataset of the same recordings with other labels, on which the network to begin with is trained; test recordings are kept
        out of it too. Without it, models begin from scratch only.
    params, params_before : mapping
        Hyper-parameters by model: of the new behaviors, and of what is known before.
    folds : tuple of int
        Which folds are tested; all unless given.
    suites : tuple of str
    """

    counts: Sequence[int] = COUNTS
    behaviors: Sequence[str] = ()
    before: str = ""
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    params_before: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folds: Sequence[int] = ()
    suites: Sequence[str] = ("calms21", "ethobench")


def plans(dataset: str, chosen: Sequence[str], curve: Curve, *, annotator: str | None = None, seed: int = 0) -> Iterator[Plan]:
    """Plan curves, for each model and tested fold.

    Parameters
    ----------
    dataset : str
        A folder or ``recordings.csv``; the behaviors are learnt one by one against everything else.
    chosen : sequence of str
        Models.
    curve : Curve
    annotator : str, optional
    seed : int
    """
    source = str(Path(dataset).resolve()) if Path(dataset).exists() else dataset
    data = with_folds(annotated(load_dataset(source), annotator))
    known = [name for name in data.ethogram.names if name != data.ethogram.background_name]
    if unknown := [name for name in curve.behaviors if name not in known]:
        raise NotFoundError(f"{data.name} has no {', '.join(unknown)}; it has: {', '.join(known)}")
    if data.ethogram.background_name is None:
        raise EthobenchError(f"{data.name} names no background, against which one behavior could be learnt")
    dealt = sorted(set(data.folds.values()))
    if wrong := [str(fold) for fold in curve.folds if fold not in dealt]:
        raise NotFoundError(f"{data.name} has no fold {', '.join(wrong)}; it has: {', '.join(map(str, dealt))}")
    shows = {name: _showing(data, name, annotator) for name in curve.behaviors or known}
    for model in chosen:
        for fold in curve.folds or dealt:
            yield _fold_plan(_Fold(data, source, model, fold, annotator, seed), shows, curve)


@dataclass(frozen=True)
class _Fold:
    """A model and a fold on which it is tested."""

    data: Dataset
    source: str
    model: str
    fold: int
    annotator: str | None
    seed: int

    @property
    def test(self) -> tuple[str, ...]:
        return tuple(r.id for r in self.data if self.data.folds[r.id] == self.fold)

    def job(self, train: Sequence[str], params: Mapping[str, Any], suites: Sequence[str], **more: Any) -> Job:
        shared = {"annotator": self.annotator, "seed": self.seed + self.fold, "suites": tuple(suites), "fold": self.fold}
        return make_job(NAME, self.data, self.model, train, self.test, params, **{"source": self.source, **shared, **more})


def _fold_plan(place: _Fold, shows: Mapping[str, Sequence[str]], curve: Curve) -> Plan:
    begin = ""
    if curve.before:
        source = str(Path(curve.before).resolve()) if Path(curve.before).exists() else curve.before
        known = load_dataset(source)
        train = [r.id for r in known if r.id not in place.test]
        params = curve.params_before.get(place.model, {})
        about = {"dataset": known.name, "version": known.version, "source": source, "setting": "what is known before"}
        job = place.job(train, params, curve.suites, stage="beginning", keep=("model",), **about)
        (result,) = yield [job]
        if result.error:
            raise EthobenchError(f"there is nothing to begin with on fold {place.fold}: {result.error}")
        begin = job.key
    yield [job for name, found in shows.items() for job in _curve(place, name, found, curve, begin)]


def _curve(place: _Fold, behavior: str, shows: Sequence[str], curve: Curve, begin: str) -> Iterator[Job]:
    """Draw training recordings, each draw part of the next larger one."""
    free = [name for name in shows if name not in place.test]
    random = np.random.default_rng([place.seed, place.fold, zlib.crc32(behavior.encode())])
    order = [free[k] for k in random.permutation(len(free))]
    names = tuple(n for n in place.data.ethogram.names if n in (behavior, place.data.ethogram.background_name))
    for count in curve.counts:
        if len(shows) < 2 * count or len(free) < count:
            continue
        params = curve.params.get(place.model, {})
        for way, key in ((SCRATCH, ""), (BEGUN, begin)):
            if way == SCRATCH or begin:
                setting = f"{behavior}, {count} recordings, {way}"
                told = {name: value for name, value in params.items() if key or name not in ("head_epochs", "head_learning_rate")}
                yield place.job(order[:count], told, curve.suites, behaviors=names, setting=setting, begin_with=key)


def curves_table(store: Store, metrics: Sequence[str] = ()) -> list[Row]:
    """Lay curves out: one row for each behavior, way to begin and metric, one column for each number of training recordings.

    Parameters
    ----------
    store : Store
    metrics : sequence of str
        Of suite ``calms21``: ``macro_f1`` and ``map`` unless given, here of the behavior alone.
    """
    wanted = tuple(metrics) or ("macro_f1", "map")
    curves: dict[tuple[str, ...], dict[int, float | None]] = {}
    for row in results_table(store):
        if row["benchmark"] == NAME and row["suite"] == "calms21" and row["metric"] in wanted:
            behavior, count, way = str(row["setting"]).removesuffix(f", {UNDECODED}").rsplit(", ", 2)
            decoded = f", {UNDECODED}" if str(row["setting"]).endswith(UNDECODED) else ""
            name = (row["dataset"], row["model"], behavior, way + decoded, row["metric"])
            curves.setdefault(name, {})[int(count.split()[0])] = row["mean"]
    counts = sorted({count for curve in curves.values() for count in curve})
    names = ("dataset", "model", "behavior", "way", "metric")
    return [{**dict(zip(names, name, strict=True)), **{str(n): curve.get(n) for n in counts}} for name, curve in sorted(curves.items())]


def _showing(data: Dataset, behavior: str, annotator: str | None) -> list[str]:
    """List the recordings that show a behavior."""
    found = []
    for recording in data:
        truth = reference_annotation(recording, annotator)
        if behavior in truth.ethogram.names and bool((truth.behavior == truth.ethogram.code(behavior)).any()):
            found.append(recording.id)
    return found
