"""Inputs of batch prediction: the recordings with signals in files, folders and datasets, read by the worker that predicts them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ethobench.core import Recording
from ethobench.core.errors import EthobenchError, MismatchError, Note, ParameterError
from ethobench.core.names import file_stems
from ethobench.core.signals import Keypoint
from ethobench.datasets import load_dataset
from ethobench.datasets.loose_files import check_source, detect_files, is_dataset, recording_name, skipped_files_note
from ethobench.formats import Format, detect, formats, read_at_rate
from ethobench.formats.io import UnknownFormatError
from ethobench.formats.reader_options import check_options, options_for
from ethobench.runs.plan import hash_files
from ethobench.runs.worker import load_cached

NO_SIGNALS = "no signals or poses"


@dataclass(frozen=True)
class PredictionInput:
    """A recording to predict. Plain values, which any process with the same disk can read the recording from.

    Attributes
    ----------
    name : str
        Name of the recording, which its output file is named after.
    path : str
        Absolute path of the file; for a dataset, the argument of `load_dataset`.
    format : str
        Format of the file; empty for a dataset.
    entry : str
        Which recording of the file or dataset; empty for the only one of a file.
    version : str
        Version of the dataset.
    """

    name: str
    path: str
    format: str = ""
    entry: str = ""
    version: str = ""

    @property
    def label(self) -> str:
        """What messages call it: the file, and which recording of it."""
        shown = Path(self.path).name if self.format else self.path
        return f"{shown} ({self.entry})" if self.entry else shown

    def read(self, rate: float | None, options: Mapping[str, Any] | None = None) -> tuple[Recording, Mapping[str, Keypoint]]:
        """Read the recording, and the roles of its keypoints as far as its dataset states them.

        Raises
        ------
        EthobenchError
            If it cannot be read, or has no signals.
        """
        if not self.format:
            data = load_cached(self.path, "{}")
            if data.version != self.version:
                load_cached.cache_clear()  # the data may have changed since this worker read them
                data = load_cached(self.path, "{}")
            if data.version != self.version:
                raise MismatchError(f"{self.path} has changed since the command started; run it again")
            return data[self.entry], data.keypoints
        chosen = options_for(formats[self.format], options)
        recordings = read_at_rate(self.path, rate, self.format, entry=self.entry or None, **chosen)
        with_signals = [recording for recording in recordings if recording.signals is not None]
        if not with_signals:
            raise EthobenchError(NO_SIGNALS)
        return with_signals[0], {}

    def stamp(self) -> str:
        """Return the size and modification time of the file, or the version of the dataset: if it is unchanged, so is the content."""
        if not self.format:
            return self.version
        status = Path(self.path).stat()
        return f"{status.st_size} {status.st_mtime_ns}"

    def digest(self) -> str:
        """Return a hash of the content."""
        return _hash_input(self.path, self.stamp()) if self.format else self.version


@lru_cache(maxsize=64)
def _hash_input(path: str, stamp: str) -> str:
    """Hash a file, once for all of its recordings."""
    if Path(path).is_dir():
        return hash_files(Path(path))
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@dataclass(frozen=True)
class PredictionFailure:
    """A recording that was not predicted.

    Attributes
    ----------
    input : str
        The file or dataset, and which recording of it.
    error : str
        Why it was not predicted.
    """

    input: str
    error: str


@dataclass
class InputFiles:
    """The recordings of several inputs.

    Attributes
    ----------
    inputs : list of PredictionInput
    failures : list of PredictionFailure
        Files that cannot be read.
    notes : list of Note
        Which files of folders were skipped.
    """

    inputs: list[PredictionInput] = field(default_factory=list)
    failures: list[PredictionFailure] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def find_inputs(
    paths: Iterable[str | Path],
    rate: float | None = None,
    *,
    outside: Path | None = None,
    options: Mapping[str, Any] | None = None,
) -> InputFiles:
    """Find the recordings with signals or poses in files, folders of files, and datasets. Signals are not read.

    Parameters
    ----------
    paths : iterable of str or Path
        Files, folders, studies or names of datasets.
    rate : float, optional
        Frames per second of files that do not state it.
    outside : Path, optional
        Files in this folder are no inputs.
    options : mapping of str to object, optional
        Options of the readers. Each is passed to the formats that have it; one that no file's format has is an error.

    Raises
    ------
    EthobenchError
        If a path has no signals or poses, or a dataset does not exist or has another rate.
    """
    all_inputs = InputFiles()
    for text in map(str, paths):
        path = Path(text)
        check_source(path)
        inputs = InputFiles(_inputs_of_dataset(text, rate)) if is_dataset(path) else _inputs_of_path(path, rate, outside, options)
        if not inputs.inputs and not inputs.failures:
            raise EthobenchError(f"{text} has {NO_SIGNALS}")
        all_inputs.inputs += inputs.inputs
        all_inputs.failures += inputs.failures
        all_inputs.notes += inputs.notes
    if options:
        readers = [formats[item.format] for item in all_inputs.inputs if item.format]
        if not readers and not all_inputs.failures:
            raise ParameterError("datasets have no options for reading; state them in column 'options' of recordings.csv")
        check_options(readers, options)
    all_inputs.inputs = list(dict.fromkeys(all_inputs.inputs))  # a file may be listed twice, by itself and in its folder
    return all_inputs


def _inputs_of_path(path: Path, rate: float | None, outside: Path | None, options: Mapping[str, Any] | None) -> InputFiles:
    """Find the recordings of a file, or of the files of a folder; files of a folder of unknown formats or without signals are skipped."""
    inputs, skipped = InputFiles(), []
    for file, reader in detect_files(path) if path.is_dir() else [(path, None)]:
        if path.is_dir() and (reader is None or (outside is not None and file.resolve().is_relative_to(outside.resolve()))):
            continue
        if path.is_dir() and isinstance(reader, UnknownFormatError):
            skipped.append(file)
            continue
        try:
            if isinstance(reader, Exception):
                raise reader
            inputs.inputs += _inputs_of_file(file.resolve(), reader or detect(file), rate, options)
        except EthobenchError as error:
            inputs.failures.append(_failure_of_file(file, str(error)))
        except OSError as error:
            inputs.failures.append(_failure_of_file(file, error.strerror or str(error)))
    inputs.notes = skipped_files_note(path, skipped)
    return inputs


def _failure_of_file(path: Path, error: str) -> PredictionFailure:
    return PredictionFailure(path.name, error.removeprefix(f"{path}: "))


def _inputs_of_file(path: Path, reader: Format, rate: float | None, options: Mapping[str, Any] | None) -> list[PredictionInput]:
    """List the recordings of a file, without reading their signals where the format allows it."""
    if not {"poses", "signals"} & {*reader.contents}:
        return []
    reads_everything = type(reader).entries is Format.entries
    if reader.multiple_recordings and (reads_everything or "annotations" in reader.contents):
        entries = [r.id for r in read_at_rate(path, rate, reader.name, **options_for(reader, options)) if r.has_signals]
    else:
        entries = [recording_name(path)] if reads_everything else reader.entries(path)
    if len(entries) == 1:
        return [PredictionInput(entries[0], str(path), reader.name)]
    return [PredictionInput(entry, str(path), reader.name, entry) for entry in entries]


def _inputs_of_dataset(text: str, rate: float | None) -> list[PredictionInput]:
    data = load_dataset(text)
    if rate is not None and (other := [r for r in data if r.rate not in (None, rate)]):
        raise MismatchError(
            f"the rate {rate:g} Hz applies to files without a rate, but recording {other[0].id!r} of {text} has {other[0].rate:g} Hz"
        )
    source = str(Path(text).resolve()) if Path(text).exists() else text
    return [PredictionInput(r.id, source, entry=r.id, version=data.version) for r in data if r.has_signals]


def name_outputs(inputs: Sequence[PredictionInput], suffix: str) -> list[str]:
    """Return a file name for the output of each input, all different.

    Recordings with the same name are distinguished by the folder of their file, then by numbers.

    Examples
    --------
    >>> name_outputs([PredictionInput("poses", f"/data/{mouse}/poses.csv", "deeplabcut") for mouse in ("m1", "m2")], ".csv")
    ['m1_poses.csv', 'm2_poses.csv']
    """
    counts = Counter(item.name for item in inputs)
    distinct = [f"{_origin_of(item)}_{item.name}" if counts[item.name] > 1 else item.name for item in inputs]
    return [f"{stem}{suffix}" for stem in file_stems(distinct)]


def _origin_of(item: PredictionInput) -> str:
    """Return what distinguishes recordings with the same name: the file of one recording of several, else the folder."""
    path = Path(item.path)
    return recording_name(path) if item.entry and item.format else path.parent.name if item.format else path.name
