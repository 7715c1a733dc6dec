"""Batch prediction: annotate many recordings with a saved model, on one machine or a cluster.

The folder of the annotations is the store of the run. An annotation appears in it whole or not at all, after its entry in the log
(`ethobench.models.audit`). The entry identifies the model, the settings and the input by their hashes: when the same command runs again,
annotations that are finished are kept, and only the others are predicted. The hidden folder of the log also has the leases on recordings
in progress, so several commands may share a folder.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, Note, PathExistsError
from ethobench.core.files import (
    remove_stale_temporaries,
    rename_to_new,
    sync_folder,
    temporary_folder,
    temporary_name,
    write_text,
)
from ethobench.core.messages import Message, Option
from ethobench.features.identity_swaps import identity_swap_notes
from ethobench.formats import formats, write_recordings
from ethobench.models import load_model
from ethobench.models.adapt import with_rate
from ethobench.models.audit import LOG, LoggedPrediction, hash_file, read_entry, remove_entry, write_entry
from ethobench.models.held_out import predict_or_held_out
from ethobench.models.network_use import check_consent
from ethobench.models.saving import read_card
from ethobench.runs.engine import Engine, RunControl, RunEvent
from ethobench.runs.executors import WorkerPool, local_pool, this_process
from ethobench.runs.leases import Leases, StoreError
from ethobench.runs.plan import plan_at_once
from ethobench.runs.prediction_inputs import InputFiles, PredictionFailure, PredictionInput, find_inputs, name_outputs
from ethobench.runs.worker import run_leased, use_data_folder

if TYPE_CHECKING:
    from ethobench.models import Model


@dataclass(frozen=True)
class PredictionSettings:
    """What changes the annotations, besides the model and the recordings.

    Attributes
    ----------
    to : str
        Format of the annotations.
    rate : float, optional
        Frames per second of files that do not state it.
    style : str
        Annotator whose style to predict, for a model trained with ``condition="annotator"``.
    min_confidence : float, optional
        Abstain where the most probable behavior has a lower probability (model ``auto``).
    in_sample : bool
        For training recordings, write in-sample predictions instead of out-of-fold ones.
    external : mapping of str to str
        Settings that are never read from a model folder; see `load_model`.
    options : mapping of str to object
        Options for reading files.
    """

    to: str = "tidy"
    rate: float | None = None
    style: str = ""
    min_confidence: float | None = None
    in_sample: bool = False
    external: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def uses_out_of_fold(self) -> bool:
        """Whether out-of-fold predictions are written for training recordings. They exist only for the settings of the training."""
        return not self.in_sample and not self.style and self.min_confidence is None


@dataclass(frozen=True)
class PredictionJob:
    """The prediction of one recording.

    Attributes
    ----------
    input : PredictionInput
    file : str
        Name of the file of annotations.
    model, model_digest : str
        Folder of the model, and hash of its files.
    settings : PredictionSettings
    """

    input: PredictionInput
    file: str
    model: str
    model_digest: str
    settings: PredictionSettings

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PredictionJob:
        """Create a job from the output of `to_dict`."""
        return cls(**{**values, "input": PredictionInput(**values["input"]), "settings": PredictionSettings(**values["settings"])})

    @cached_property
    def key(self) -> str:
        """Hash of the request: the model, the settings, the recording of the file, and the name of the output."""
        settings = dataclasses.asdict(self.settings)
        if not settings["options"]:
            del settings["options"]  # annotations that were written before this setting existed keep their key
        request = [self.file, self.model_digest, self.input.entry, settings]
        return hashlib.blake2b(json.dumps(request, sort_keys=True).encode(), digest_size=12).hexdigest()

    def __str__(self) -> str:
        return self.input.label


class PredictionStore:
    """A folder of annotations, with the interface of `ethobench.runs.store.Store` that the engine uses.

    Parameters
    ----------
    root : Path
        The folder.
    jobs : iterable of PredictionJob
        The jobs that the store is asked about.
    """

    def __init__(self, root: str | Path, jobs: Iterable[PredictionJob]) -> None:
        self.root = Path(root)
        self.jobs = {job.key: job for job in jobs}
        self.log = self.root / LOG
        self.logs = self.log / "logs"
        self.leases = Leases(self.log / "leases")

    def check_writable(self) -> None:
        """Create the folder. Raise `StoreError` if annotations cannot be written to it."""
        try:
            for folder in (self.leases.folder, self.logs, self.log / "tmp", self.log / "failed"):
                folder.mkdir(parents=True, exist_ok=True)
            probe = self.root / temporary_name()
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError as error:
            raise StoreError(f"{self.root}: annotations cannot be written to this folder ({error.strerror})") from None

    def remove_leftovers(self) -> None:
        """Remove what killed processes have left."""
        for folder in (self.root, self.log / "tmp", self.log / "files", self.leases.folder):
            remove_stale_temporaries(folder)
        for job in self.jobs.values():
            if self.leases.exists(job.key) and self.has(job.key) and self.leases.acquire(job.key) is not None:
                self.leases.release(job.key)

    def has(self, key: str) -> bool:
        """Return whether the file of a job exists, as the same request has written it."""
        entry = read_entry(self.root, self.jobs[key].file)
        return entry is not None and entry.key == key and entry.is_unchanged(self.root)

    def verify(self, key: str) -> bool:
        """Return whether the input of a finished job has not changed since."""
        job = self.jobs[key]
        entry = read_entry(self.root, job.file)
        return entry is not None and _is_same_input(entry, job.input)

    def result(self, job: PredictionJob) -> LoggedPrediction | None:
        """Return the log entry of a finished job."""
        return read_entry(self.root, job.file)

    def repair(self) -> list[str]:
        """Return nothing: a file that was changed belongs to the user."""
        return []

    def fail(self, job: PredictionJob, error: str, traceback: str = "") -> None:
        """Write the traceback of a job that failed, for a report."""
        try:
            write_text(self.log / "failed" / f"{job.file}.txt", f"{job}: {error}\n{traceback}", overwrite=True, durable=False)
        except OSError as problem:
            raise StoreError(f"{self.root}: annotations cannot be written to this folder ({problem.strerror})") from None

    def check_outputs(self, *, overwrite: bool) -> None:
        """Refuse to replace files that are not finished annotations of the jobs, unless `overwrite`."""
        for_others = [job for job in self.jobs.values() if self._is_occupied(job)]
        if for_others and not overwrite:
            names = ", ".join(job.file for job in for_others[:3]) + (", ..." if len(for_others) > 3 else "")
            message = (
                f"{len(for_others)} of {len(self.jobs)} files already exist in {self.root}, and are not annotations of these recordings by "
                f"this model with these settings: {names} (use "
            )
            raise PathExistsError(Message(message, Option("overwrite", True), " to replace them)"))
        for job in for_others:
            remove_entry(self.root, job.file)

    def _is_occupied(self, job: PredictionJob) -> bool:
        return os.path.lexists(self.root / job.file) and not (self.has(job.key) and self.verify(job.key))


@dataclass(frozen=True)
class BatchOptions:
    """Options of the workers of a batch prediction, which do not change its result.

    Attributes
    ----------
    run : str
        Name of the run.
    overwrite : bool
        Replace existing files.
    allow_network : bool
        Whether the model may send data to the provider that it names.
    data : str
        Folder of named datasets, for workers where ``$ETHOBENCH_DATA`` is not set.
    """

    run: str = ""
    overwrite: bool = False
    allow_network: bool = False
    data: str = ""


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
    settings : PredictionSettings
    overwrite : bool
        Replace existing files. Finished annotations of the same request are kept.
    allow_network : bool
        Whether the model may send data to the provider that it names; see `load_model`.

    Attributes
    ----------
    model : Model
    input_files : InputFiles
        Recordings, files that cannot be read, and notes about skipped files.
    jobs : list of PredictionJob
    """

    def __init__(
        self,
        model: str | Path,
        inputs: Iterable[str | Path],
        out: str | Path,
        settings: PredictionSettings | None = None,
        *,
        overwrite: bool = False,
        allow_network: bool = False,
    ) -> None:
        settings = settings or PredictionSettings()
        writer = formats[settings.to]
        if not writer.can_write or "annotations" not in writer.contents:
            raise EthobenchError(f"annotations cannot be written as {writer.title}; see: ethobench formats")
        folder = Path(model).resolve()
        self.model_digest = _model_digest(Path(model))
        self.model = load_for_prediction(str(folder), self.model_digest, _as_text(settings), allow_network)
        self.out, self.settings = Path(out), settings
        self.options = BatchOptions(overwrite=overwrite, allow_network=allow_network, data=os.environ.get("ETHOBENCH_DATA", ""))
        self.input_files: InputFiles = find_inputs(inputs, settings.rate, outside=self.out, options=settings.options)
        files = name_outputs(self.input_files.inputs, writer.suffixes[0])
        self.jobs = [
            PredictionJob(item, file, str(folder), self.model_digest, settings)
            for item, file in zip(self.input_files.inputs, files, strict=True)
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
        control = RunControl()
        control.one_at_a_time = pool is None
        with pool or this_process() as workers:
            Engine(
                self.store,
                workers.make_executor,
                workers.count,
                forward,
                self.options,
                control,
                run_prediction,
                lambda job, error: PredictionFailure(str(job), error),
            ).run([plan_at_once([job for job in self.jobs if job.key not in finished_before])])
        return summary


def predict_files(
    model: str | Path,
    inputs: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    to: str = "tidy",
    rate: float | None = None,
    style: str = "",
    min_confidence: float | None = None,
    in_sample: bool = False,
    overwrite: bool = False,
    allow_network: bool = False,
    workers: int = 1,
    pool: AbstractContextManager[WorkerPool] | None = None,
    report: Callable[[PredictionEvent], None] = lambda _: None,
    options: Mapping[str, Any] | None = None,
    **external: str,
) -> PredictionSummary:
    """Annotate recordings with a saved model, one file per recording, as `ethobench predict` does.

    A call that was interrupted continues where it stopped: finished annotations of the same model, settings and inputs are kept. A
    recording that cannot be predicted does not stop the others. For recordings that the model was trained on, the out-of-fold predictions
    of its cross-validation are written, if it has any.

    Parameters
    ----------
    model : str or Path
        Folder of a saved model.
    inputs : str, Path or iterable of them
        Files with signals or poses, folders of files, studies, or names of datasets.
    out : str or Path
        Folder for the annotations.
    to : str
        Format of the annotations.
    rate : float, optional
        Frames per second of files that do not state it.
    style : str
        Annotator whose style to predict, for a model trained with ``condition="annotator"``.
    min_confidence : float, optional
        Abstain where the most probable behavior has a lower probability (model ``auto``).
    in_sample : bool
        For training recordings, write in-sample predictions instead of out-of-fold ones.
    overwrite : bool
        Replace existing files. Otherwise a file that is not a finished annotation of the same request is an error, before anything is
        written.
    allow_network : bool
        Whether the model may send data to the provider that it names; see `load_model`.
    workers : int
        Number of processes. A script that uses several needs ``if __name__ == "__main__":``.
    pool : context manager of WorkerPool, optional
        Workers of a cluster instead: ``ethobench.runs.executors.dask_pool(address)`` or ``cluster_pool("slurm", ClusterNodes(...))``.
    report : callable
        Called with a `PredictionEvent` after every recording.
    options : mapping of str to object, optional
        Options for reading files, such as ``{"units": "g"}``. Each is passed to the formats that have it.
    **external : str
        Settings that are never read from a model folder; see `load_model`.

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
    settings = PredictionSettings(to, rate, style, min_confidence, in_sample, external, dict(options or {}))
    batch = BatchPrediction(model, paths, out, settings, overwrite=overwrite, allow_network=allow_network)
    if pool is None and workers > 1:
        pool = local_pool(min(workers, max(len(batch.jobs), 1)))
    return batch.run(pool, report)


# ------------------------------------------------------------------------------------------------------------- one recording in a worker


def run_prediction(values: dict[str, Any], root: str, options: BatchOptions) -> tuple[str, str]:
    """Predict one recording and write its annotation, in a worker; see `ethobench.runs.worker.run_job`."""
    job = PredictionJob.from_dict(values)
    store = PredictionStore(root, [job])
    return run_leased(job, store, options.run, partial(_predict, job, store, options))


def _predict(job: PredictionJob, store: PredictionStore, options: BatchOptions) -> None:
    use_data_folder(options.data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        model = load_for_prediction(job.model, job.model_digest, _as_text(job.settings), options.allow_network)
        stamp = job.input.stamp()
        recording, keypoints = job.input.read(job.settings.rate, job.settings.options)
        recording = with_rate(recording, model.rate)
        adapted = model.adapt(recording, keypoints)
        annotate = partial(model.annotate, adapted)
        predicted, origin = predict_or_held_out(model, recording, annotate, use_out_of_fold=job.settings.uses_out_of_fold)
    annotation = predicted.annotation if isinstance(predicted, Prediction) else predicted
    messages = dict.fromkeys(str(warning.message).replace(f"recording {recording.id!r}", "the recording") for warning in caught)
    notes = [*adapted.notes, *identity_swap_notes(recording), *map(Note, messages)]
    annotated = adapted.copy(annotations={model.name: annotation}, signals=None, features=None)

    def entry_of(path: Path, losses: Sequence[Note]) -> LoggedPrediction:
        return LoggedPrediction(
            job.file,
            hash_file(path),
            recording.id,
            Path(job.model).name,
            job.model_digest,
            **dataclasses.asdict(origin.match),
            out_of_fold=origin.out_of_fold,
            split=origin.split,
            key=job.key,
            input=job.input.path,
            input_stamp=stamp,
            input_digest=job.input.digest(),
            bouts=len(annotation),
            seconds=annotation.n_frames / annotation.rate,
            unobserved_seconds=_unobserved_frames(annotation) / annotation.rate,
            notes=tuple(dict.fromkeys([*notes, *losses])),
        )

    try:
        with temporary_folder(store.log / "tmp") as folder:
            path = folder / job.file
            losses = write_recordings([annotated], path, job.settings.to)
            write_entry(store.root, entry_of(path, losses))
            if options.overwrite:
                path.replace(store.root / job.file)
            else:
                rename_to_new(path, store.root / job.file)
            sync_folder(store.root)
    except PathExistsError:
        raise
    except OSError as error:
        raise StoreError(f"{store.root}: annotations cannot be written to this folder ({error.strerror})") from None
    (store.log / "failed" / f"{job.file}.txt").unlink(missing_ok=True)


@lru_cache(maxsize=2)
def load_for_prediction(folder: str, digest: str, settings: str, allow_network: bool) -> Model:
    """Load a model with the settings of a prediction, once in each process.

    Parameters
    ----------
    folder, digest : str
        Folder of the model, and hash of its files, which must not have changed.
    settings : str
        JSON of `PredictionSettings`.
    allow_network : bool
    """
    values = PredictionSettings(**json.loads(settings))
    if _model_digest(Path(folder)) != digest:
        raise EthobenchError(f"the model {folder} has changed since the command started; run it again")
    model = load_model(folder, allow_network=allow_network, **values.external)
    if values.style:
        styles = getattr(model, "styles", ())
        if values.style not in styles:
            available = f"it has the styles of {', '.join(styles)}" if styles else "it has no styles (train with condition=annotator)"
            raise EthobenchError(f"this model cannot annotate in the style of {values.style!r}: {available}")
        model.style = values.style
    if values.min_confidence is not None:
        if model.name != "auto":
            raise EthobenchError(f"min_confidence needs model 'auto'; model {model.name!r} does not abstain")
        model.set_params(min_confidence=values.min_confidence)
    return model


def _model_digest(folder: Path) -> str:
    return str(read_card(folder).get("digest", ""))


def _as_text(settings: PredictionSettings) -> str:
    return json.dumps(dataclasses.asdict(settings), sort_keys=True)


def _unobserved_frames(annotation: Annotation) -> int:
    return annotation.n_frames - iv.total(annotation.observed.of_any())


def _is_same_input(entry: LoggedPrediction, item: PredictionInput) -> bool:
    """Whether the content of an input is that of a finished prediction; an unchanged file is not read."""
    try:
        return (entry.input, entry.input_stamp) == (item.path, item.stamp()) or entry.input_digest == item.digest()
    except OSError:
        return False


def _ended(summary: PredictionSummary) -> int:
    return len(summary.predicted) + len(summary.reused) + len(summary.failures)
