"""Batch prediction: annotate many recordings with a saved model, on one machine or a cluster.

`BatchPrediction` plans the jobs and runs them on the engine of `ethobench.runs`. `ethobench.runs.prediction_store` says what is finished,
and `ethobench.runs.prediction_worker` predicts one recording.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError
from ethobench.formats import formats
from ethobench.models.audit import LoggedPrediction
from ethobench.models.network_use import check_consent
from ethobench.models.registry import modules_of_saved_model
from ethobench.runs.engine import Engine, RunControl, RunEvent
from ethobench.runs.executors import WorkerPool, local_pool, preload_workers, this_process
from ethobench.runs.plan import plan_at_once
from ethobench.runs.prediction_inputs import InputFiles, PredictionFailure, find_inputs, name_outputs
from ethobench.runs.prediction_store import PredictionJob, PredictionOptions, PredictionStore
from ethobench.runs.prediction_worker import load_for_prediction, model_digest, run_prediction
from ethobench.runs.worker import WorkerOptions


@dataclass(frozen=True)
class PredictionEvent:
    """A recording of a batch that ended.

    Attributes
    ----------
    ended, total : int
        Number of recordings that ended, including those of earlier runs, and of all.
    prediction : LoggedPrediction, optional
        The annotation that was written.
    failure : PredictionFailure, optional
        Why there is none.
    message : str
        What happened, for other events.
    """

    ended: int
    total: int
    prediction: LoggedPrediction | None = None
    failure: PredictionFailure | None = None
    message: str = ""


@dataclass
class PredictionSummary:
    """The result of a batch prediction.

    Attributes
    ----------
    out : Path
        Folder of the annotations.
    total : int
        Number of recordings.
    predicted : list of LoggedPrediction
        Annotations that were written.
    reused : list of LoggedPrediction
        Annotations that earlier runs with the same model, settings and inputs have written.
    failures : list of PredictionFailure
        Recordings that could not be predicted.

    Examples
    --------
    >>> from ethobench import PredictionSummary
    >>> failure = PredictionFailure("m1.csv", "the file is empty (0 bytes)")
    >>> PredictionSummary(Path("annotations"), total=1, failures=[failure]).to_dict()["failures"]
    [{'input': 'm1.csv', 'error': 'the file is empty (0 bytes)'}]
    """

    out: Path
    total: int
    predicted: list[LoggedPrediction] = field(default_factory=list)
    reused: list[LoggedPrediction] = field(default_factory=list)
    failures: list[PredictionFailure] = field(default_factory=list)

    @property
    def annotations(self) -> list[LoggedPrediction]:
        """All annotations, in the order of their file names."""
        return sorted([*self.predicted, *self.reused], key=lambda entry: entry.file)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON values."""
        names = ("file", "recording", "input", "bouts", "seconds", "unobserved_seconds", "level", "out_of_fold")
        reused = {entry.file for entry in self.reused}
        return {
            "out": str(self.out),
            "recordings": self.total,
            "annotations": [
                {**{name: getattr(entry, name) for name in names}, "reused": entry.file in reused} for entry in self.annotations
            ],
            "failures": [dataclasses.asdict(failure) for failure in self.failures],
        }


class BatchPrediction:
    """A batch prediction that is planned: the model is loaded, and the inputs are found, but nothing is written.

    Parameters
    ----------
    model : str or Path
        Folder of a saved model.
    inputs : iterable of str or Path
        Files with signals or poses, folders of files, studies, or names of datasets.
    out : str or Path
        Folder for the annotations, one file per recording.
    options : PredictionOptions, optional

    Attributes
    ----------
    model : Model
    input_files : InputFiles
        Recordings, files that cannot be read, and notes about skipped files.
    jobs : list of PredictionJob
    """

    def __init__(self, model: str | Path, inputs: Iterable[str | Path], out: str | Path, options: PredictionOptions | None = None) -> None:
        self.out, self.options = Path(out), options or PredictionOptions()
        writer = formats[self.options.to]
        if not writer.can_write or "annotations" not in writer.contents:
            raise EthobenchError(f"annotations cannot be written as {writer.title}; see: ethobench formats")
        folder, digest = str(Path(model).resolve()), model_digest(Path(model))
        self.model = load_for_prediction(folder, digest, self.options)
        self.input_files: InputFiles = find_inputs(inputs, self.options.rate, outside=self.out, options=self.options.options)
        files = name_outputs(self.input_files.inputs, writer.suffixes[0])
        self.jobs = [
            PredictionJob(item, file, folder, digest, self.options) for item, file in zip(self.input_files.inputs, files, strict=True)
        ]
        self.store = PredictionStore(self.out, self.jobs)

    @property
    def total(self) -> int:
        """Number of recordings, including files that cannot be read."""
        return len(self.jobs) + len(self.input_files.failures)

    def run(
        self, pool: AbstractContextManager[WorkerPool] | None = None, report: Callable[[PredictionEvent], None] = lambda _: None
    ) -> PredictionSummary:
        """Predict the recordings that are not finished yet.

        Parameters
        ----------
        pool : context manager of WorkerPool, optional
            Such as `local_pool(4)`, `dask_pool(address)` or `cluster_pool(...)`. By default this process predicts.
        report : callable
            Called with a `PredictionEvent` after every recording.
        """
        check_consent(self.model.name, self.model.network_use(), allowed=self.model.allow_network, n_recordings=len(self.jobs))
        self.store.check_outputs(overwrite=self.options.overwrite)
        self.store.check_writable()
        summary = PredictionSummary(self.out, self.total, failures=list(self.input_files.failures))
        finished_before = {job.key for job in self.jobs if self.store.has(job.key)}

        def forward(event: RunEvent) -> None:
            if event.result is None:
                report(PredictionEvent(_ended(summary), summary.total, message=event.message))
                return
            is_failure = isinstance(event.result, PredictionFailure)
            (summary.failures if is_failure else summary.predicted).append(event.result)
            report(PredictionEvent(_ended(summary), summary.total, **{"failure" if is_failure else "prediction": event.result}))

        summary.reused = [entry for job in self.jobs if job.key in finished_before and (entry := self.store.result(job)) is not None]
        for n, failure in enumerate(self.input_files.failures, start=1):
            report(PredictionEvent(len(summary.reused) + n, summary.total, failure=failure))
        if len(finished_before) == len(self.jobs):
            return summary
        unfinished = [job for job in self.jobs if job.key not in finished_before]
        if pool is not None:  # long recordings first, so that no worker is still busy with one when the others have nothing left to do
            unfinished.sort(key=_input_bytes, reverse=True)
        control = RunControl()
        control.one_at_a_time = pool is None
        with pool or this_process() as workers:
            Engine(
                self.store,
                workers.make_executor,
                workers.count,
                forward,
                WorkerOptions(data=os.environ.get("ETHOBENCH_DATA", "")),
                control,
                run_prediction,
                lambda job, error: PredictionFailure(str(job), error),
            ).run([plan_at_once(unfinished)])
        return summary


def predict_files(
    model: str | Path,
    inputs: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    workers: int = 1,
    pool: AbstractContextManager[WorkerPool] | None = None,
    report: Callable[[PredictionEvent], None] = lambda _: None,
    **options: Any,
) -> PredictionSummary:
    """Annotate recordings with a saved model, one file per recording, as `ethobench predict` does.

    A call that was interrupted continues where it stopped: finished annotations of the same model, options and inputs are kept. A
    recording that cannot be predicted does not stop the others. For recordings that the model was trained on, the out-of-fold predictions
    of its cross-validation are written, if it has any.

    Parameters
    ----------
    model, inputs, out
        As for `BatchPrediction`. A single input may be given as such.
    workers : int
        Number of processes. A script that uses several needs ``if __name__ == "__main__":``.
    pool : context manager of WorkerPool, optional
        Workers of a cluster instead: ``ethobench.runs.executors.dask_pool(address)`` or ``cluster_pool("slurm", ClusterNodes(...))``.
    report : callable
        Called with a `PredictionEvent` after every recording.
    **options
        Fields of `PredictionOptions`, such as ``rate=30.0``; others are `PredictionOptions.external`.

    Returns
    -------
    PredictionSummary
        With the annotations and the recordings that failed.

    Examples
    --------
    >>> from ethobench import create_model, load_dataset, predict_files
    >>> data = load_dataset("synthetic/tag", individuals=3, seconds=20)
    >>> create_model("dt").fit(data.select(individual=["animal01", "animal02"])).save(folder / "model")
    >>> summary = predict_files(folder / "model", "synthetic/tag", folder / "annotations")
    >>> len(summary.predicted), summary.failures
    (8, [])
    >>> len(predict_files(folder / "model", "synthetic/tag", folder / "annotations").reused)
    8
    """
    paths = [inputs] if isinstance(inputs, str | Path) else inputs
    if pool is None and workers > 1:
        preload_for_prediction(model)
    batch = BatchPrediction(model, paths, out, PredictionOptions.from_keywords(**options))
    if pool is None and workers > 1:
        pool = local_pool(min(workers, max(len(batch.jobs), 1)))
    return batch.run(pool, report)


def preload_for_prediction(model: str | Path) -> None:
    """Start to import what workers of this machine need to predict with a model, while this process plans the batch."""
    preload_workers(["ethobench.runs.prediction_worker", *modules_of_saved_model(Path(model))])


def _input_bytes(job: PredictionJob) -> int:
    """Return the size of the file of a recording; 0 if it is unknown."""
    path = Path(job.input.path)
    return path.stat().st_size if job.input.format and path.is_file() else 0


def _ended(summary: PredictionSummary) -> int:
    return len(summary.predicted) + len(summary.reused) + len(summary.failures)
