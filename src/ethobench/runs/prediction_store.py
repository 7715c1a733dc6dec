"""The store of a batch prediction: options, one job per recording, and which annotations of a folder are finished.

The folder of the annotations is the store of the run. An annotation appears in it whole or not at all, after its entry in the log
(`ethobench.models.audit`). The entry identifies the model, the options and the input by their hashes: when the same command runs again,
annotations that are finished are kept, and only the others are predicted. The hidden folder of the log also has the leases on recordings
in progress, so several commands may share a folder.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ethobench.core.errors import PathExistsError
from ethobench.core.files import remove_stale_temporaries, temporary_name, write_text
from ethobench.core.messages import Message, Option
from ethobench.models.audit import LOG, LoggedPrediction, read_entry, remove_entry
from ethobench.runs.leases import Leases, StoreError
from ethobench.runs.prediction_inputs import PredictionInput


@dataclass(frozen=True)
class PredictionOptions:
    """Options of a batch prediction, besides the model, the recordings and the folder of the annotations.

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
        Options for reading files, such as ``{"units": "g"}``. Each is passed to the formats that have it.
    overwrite : bool
        Replace existing files. Otherwise a file that is not a finished annotation of the same request is an error, before anything is
        written. Finished annotations of the same request are kept in any case.
    allow_network : bool
        Whether the model may send data to the provider that it names; see `load_model`.

    Examples
    --------
    >>> from ethobench import PredictionOptions
    >>> PredictionOptions(to="boris_tabular", rate=30.0).uses_out_of_fold
    True
    """

    to: str = "tidy"
    rate: float | None = None
    style: str = ""
    min_confidence: float | None = None
    in_sample: bool = False
    external: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False
    allow_network: bool = False

    @classmethod
    def from_keywords(cls, **keywords: Any) -> PredictionOptions:
        """Create options from keyword arguments; those that are not options of a prediction are added to `external`."""
        names = {option.name for option in dataclasses.fields(cls)}
        options = {name: value for name, value in keywords.items() if name in names}
        others = {name: value for name, value in keywords.items() if name not in names}
        return cls(**{**options, "external": {**options.get("external", {}), **others}})

    @property
    def uses_out_of_fold(self) -> bool:
        """Whether out-of-fold predictions are written for training recordings. They exist only for the settings of the training."""
        return not self.in_sample and not self.style and self.min_confidence is None

    @property
    def request(self) -> dict[str, Any]:
        """The options that change the content of the annotations."""
        values = dataclasses.asdict(self)
        if not values["options"]:
            del values["options"]  # annotations that were written before this option existed keep their key
        return {name: value for name, value in values.items() if name not in ("overwrite", "allow_network")}


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
    options : PredictionOptions
    """

    input: PredictionInput
    file: str
    model: str
    model_digest: str
    options: PredictionOptions

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PredictionJob:
        """Create a job from the output of `to_dict`."""
        return cls(**{**values, "input": PredictionInput(**values["input"]), "options": PredictionOptions(**values["options"])})

    @cached_property
    def key(self) -> str:
        """Hash of the request: the model, the options, the recording of the file, and the name of the output."""
        request = [self.file, self.model_digest, self.input.entry, self.options.request]
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


def _is_same_input(entry: LoggedPrediction, item: PredictionInput) -> bool:
    """Whether the content of an input is that of a finished prediction; an unchanged file is not read."""
    try:
        return (entry.input, entry.input_stamp) == (item.path, item.stamp()) or entry.input_digest == item.digest()
    except OSError:
        return False
