"""Training data of a model: which recordings it was trained on, and whether a recording is one of them.

Scores on training recordings say nothing about new animals, so every model has a description of its training data: ids, individuals,
and hashes of the content. A saved model has it in ``training.json``.

**Signals** are hashed channel by channel (poses: keypoint by keypoint of each individual, coordinates only), as little-endian
32-bit floats, in which all NaN are one value and -0 is 0. The hash depends neither on the file format and how the file is read,
nor on the rate, the order of channels, or additional channels. Channels that never vary are not hashed, since they are equal
in unrelated recordings. Two recordings are the same if all channels of the same names are equal, or if one has all channels
of the other under any names (formats name animals differently).

**Annotations** are hashed by their bouts in time order (start and stop in frames, behavior, subject, target) and their rate.
Background, length and observed frames are not hashed, since file formats differ in them. Annotations with fewer than three bouts
are not hashed, since unrelated recordings often have equal ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Poses, Recording, Signals
from ethobench.core.errors import FormatError
from ethobench.core.files import check_self_contained, read_json

TRAINING = "training.json"
FORMAT_VERSION = 1
MIN_BOUTS = 3
BLOCK = 1 << 16  # frames hashed at a time
DIGEST_BYTES = 8

RECORDING, INDIVIDUAL, SAME_NAME, NEW, UNKNOWN = "recording", "individual", "same name", "new", "unknown"


def hash_signals(data: Signals | Poses) -> dict[str, str]:
    """Hash the content of each channel, or of each keypoint of each individual.

    Parameters
    ----------
    data : Signals or Poses
        May be memory-mapped; it is read in blocks of frames.

    Returns
    -------
    dict of str to str
        Hashes by name (``"AccX"``, ``"mouse1/nose"``), sorted by name, without channels that never vary.

    Examples
    --------
    >>> tag = Signals(np.array([[0.0, 1.0], [0.5, 1.0]]), ("AccX", "constant"), rate=10)
    >>> hash_signals(tag)
    {'AccX': '693350869d842db3'}
    """
    if isinstance(data, Poses):
        names = [f"{individual}/{keypoint}" for individual in data.individuals for keypoint in data.keypoints]
        values = data.positions.reshape(len(data), len(names), -1)
    else:
        names, values = list(data.channels), data.values.reshape(len(data), len(data.channels), 1)
    digests = [hashlib.blake2b(digest_size=DIGEST_BYTES) for _ in names]
    first, varies = _bits(values[:1]), np.zeros(len(names), dtype=bool)
    for start in range(0, len(values), BLOCK):
        block = _bits(values[start : start + BLOCK])
        varies |= (block != first).any(axis=(0, 2))
        for digest, channel in zip(digests, np.ascontiguousarray(block.transpose(1, 0, 2)), strict=True):
            digest.update(channel)
    columns = sorted(zip(names, digests, varies, strict=True), key=_by_name)
    return {name: digest.hexdigest() for name, digest, variable in columns if variable}


def hash_annotation(annotation: Annotation) -> str:
    """Hash the bouts of an annotation; empty for one with fewer than three bouts, which does not identify a recording.

    Examples
    --------
    >>> bouts = ([0, 20, 40], [10, 30, 50], ["rest", "run", "rest"])
    >>> hash_annotation(Annotation.from_bouts(*bouts, ["rest", "run"], rate=30, n_frames=60))
    '9c18a42e233d84eb'
    """
    names = annotation.ethogram.names
    rows = sorted(
        (int(start), int(stop), names[code], subject or "", target or "")
        for start, stop, code, subject, target in zip(
            annotation.start,
            annotation.stop,
            annotation.behavior,
            annotation.names(annotation.subject),
            annotation.names(annotation.target),
            strict=True,
        )
        if code != annotation.ethogram.background
    )
    if len(rows) < MIN_BOUTS:
        return ""
    content = json.dumps([f"{annotation.rate:.6g}", rows], ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(content.encode(), digest_size=DIGEST_BYTES).hexdigest()


@dataclass(frozen=True)
class TrainingRecording:
    """A recording that a model was trained on.

    Attributes
    ----------
    id, individual : str
    signals : mapping of str to str
        Hashes by channel or keypoint (`hash_signals`); empty for models that do not use signals.
    annotations : tuple of str
        Hashes of its annotations (`hash_annotation`) by all annotators.
    fold : int, optional
        The fold of the cross-validation that held it out.
    model : str
        The model that was trained on it, if this model was initialized from that one; empty for this model.
    """

    id: str
    individual: str
    signals: Mapping[str, str] = field(default_factory=dict)
    annotations: tuple[str, ...] = ()
    fold: int | None = None
    model: str = ""

    @property
    def animals(self) -> frozenset[str]:
        """The animals named by `individual`."""
        return Recording(self.id, self.individual).animals


@dataclass(frozen=True)
class TrainingMatch:
    """How a recording relates to the training data of a model.

    Attributes
    ----------
    level : {"recording", "individual", "same name", "new", "unknown"}
        The model was trained on this recording; on another recording of the same individual; on another recording that has the
        same id; on none of these. ``"unknown"`` for a model without a list of training recordings.
    training_id : str
        The id of the training recording that it matches.
    matched_by : {"signals", "annotation", "name", ""}
        How the recording was recognized.
    """

    level: str
    training_id: str = ""
    matched_by: str = ""

    @property
    def is_training_recording(self) -> bool:
        """Whether the model was trained on this recording."""
        return self.level == RECORDING

    @property
    def label(self) -> str:
        """A short label for tables and tracks; empty for new recordings."""
        return {RECORDING: "seen in training", INDIVIDUAL: "individual seen in training"}.get(self.level, "")

    def describe(self, recording_id: str) -> str:
        """Return one sentence about the match; empty for new recordings."""
        if self.level == RECORDING:
            evidence = {
                "signals": f"same signals as training recording {self.training_id!r}",
                "annotation": f"same annotation as training recording {self.training_id!r}",
                "name": "a training recording has the same name",
            }[self.matched_by]
            return f"{recording_id}: seen in training ({evidence})"
        if self.level == INDIVIDUAL:
            return f"{recording_id}: new recording of an individual seen in training (in {self.training_id!r})"
        if self.level == SAME_NAME:
            return f"{recording_id}: same name as a training recording but different content; treated as new"
        return ""


@dataclass(frozen=True)
class TrainingData:
    """The recordings that a model was trained on.

    Attributes
    ----------
    recordings : tuple of TrainingRecording
        Including those of the model that this one was initialized from.
    split : str
        What cross-validation never split: ``"individual"`` or ``"recording"``; empty without cross-validation.
    """

    recordings: tuple[TrainingRecording, ...]
    split: str = ""

    @classmethod
    def from_dataset(cls, data: Dataset, *, signals: bool = True, extra: Iterable[Annotation] = ()) -> TrainingData:
        """Describe the recordings of a dataset.

        Parameters
        ----------
        data : Dataset
        signals : bool
            Whether to load and hash signals.
        extra : iterable of Annotation
            One more annotation per recording, such as a consensus.
        """
        additional = [[annotation] for annotation in extra] or [[] for _ in data]
        described = []
        for recording, merged in zip(data, additional, strict=True):
            annotations = [*recording.annotations.values(), *merged]
            hashes = dict.fromkeys(digest for each in annotations if (digest := hash_annotation(each)))
            channels = hash_signals(recording.signals) if signals and recording.signals is not None else {}
            described.append(TrainingRecording(recording.id, recording.individual, channels, tuple(hashes)))
        return cls(tuple(described))

    @property
    def direct(self) -> tuple[TrainingRecording, ...]:
        """The recordings of this model, without those of the model it was initialized from."""
        return tuple(r for r in self.recordings if not r.model)

    @cached_property
    def hashes_signals(self) -> bool:
        """Whether any recording has hashes of signals."""
        return any(r.signals for r in self.recordings)

    def select(self, ids: Collection[str]) -> TrainingData:
        """Return the training data with only the recordings of these ids."""
        chosen = {*ids}
        return dataclasses.replace(self, recordings=tuple(r for r in self.recordings if r.id in chosen))

    def initialized_from(self, other: TrainingData, model: str) -> TrainingData:
        """Return the training data with that of the model that this one was initialized from."""
        inherited = tuple(dataclasses.replace(r, model=r.model or model, fold=None) for r in other.recordings)
        return dataclasses.replace(self, recordings=(*self.recordings, *inherited))

    def with_folds(self, folds: Mapping[str, int], split: str) -> TrainingData:
        """Return the training data with the fold that held each recording out."""
        recordings = (r if r.model else dataclasses.replace(r, fold=folds.get(r.id)) for r in self.recordings)
        return TrainingData(tuple(recordings), split)

    def match(self, recording: Recording, *, read_signals: bool = True) -> TrainingMatch:
        """Return how a recording relates to the training data.

        Its content decides if it can be compared, else its id and individual. A renamed copy of a training recording is recognized, and
        a recording of another study with the same name is not mistaken for one.

        Parameters
        ----------
        recording : Recording
        read_signals : bool
            Whether to load and compare signals; else annotations and names decide.
        """
        comparable = read_signals and self.hashes_signals and recording.signals is not None
        channels = hash_signals(recording.signals) if comparable and recording.signals is not None else {}
        equal = {id(r): _equal_signals(channels, r.signals) for r in self.recordings}
        for candidate in self.recordings:
            if equal[id(candidate)]:
                return TrainingMatch(RECORDING, candidate.id, "signals")
        hashes = {hash_annotation(a) for a in recording.annotations.values()} - {""}
        for candidate in self.recordings:
            same_name, unequal = candidate.id == recording.id, equal[id(candidate)] is False
            if hashes & {*candidate.annotations} and (same_name or not unequal):
                return TrainingMatch(RECORDING, candidate.id, "annotation")
        for candidate in self.recordings:
            anonymous = recording.individual == recording.id
            if candidate.id == recording.id and equal[id(candidate)] is None and (anonymous or candidate.animals & recording.animals):
                return TrainingMatch(RECORDING, candidate.id, "name")
        return self._match_individual(recording)

    def _match_individual(self, recording: Recording) -> TrainingMatch:
        """Match the individual of a recording; an individual that has the recording's id as its name is not compared."""
        if recording.individual != recording.id:
            for candidate in self.recordings:
                if candidate.animals & recording.animals:
                    return TrainingMatch(INDIVIDUAL, candidate.id)
        namesake = next((r.id for r in self.recordings if r.id == recording.id), None)
        return TrainingMatch(NEW) if namesake is None else TrainingMatch(SAME_NAME, namesake)

    def held_out_by_initial_model(self, recording: TrainingRecording) -> bool:
        """Return whether the model that this one was initialized from was trained neither on a recording nor on its individual."""
        return not any(
            r.animals & recording.animals or r.id == recording.id or _equal_signals(recording.signals, r.signals)
            for r in self.recordings
            if r.model
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the training data as JSON values."""
        return {"format_version": FORMAT_VERSION, "split": self.split, "recordings": [dataclasses.asdict(r) for r in self.recordings]}

    def write(self, folder: Path) -> None:
        """Write ``training.json`` into the folder of a model."""
        (folder / TRAINING).write_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: str | Path) -> TrainingData | None:
        """Read ``training.json`` of a saved model; None if it has none.

        Raises
        ------
        FormatError
            For an unsupported format version, or a damaged file.
        """
        path = Path(folder) / TRAINING
        if not path.is_file():
            return None
        check_self_contained(path.parent)
        content = read_json(path)
        try:
            version = content["format_version"]
            if version != FORMAT_VERSION:
                raise FormatError(path, f"format version {version} is not supported, only {FORMAT_VERSION}; update ethobench")
            recordings = [TrainingRecording(**{**r, "annotations": tuple(r["annotations"])}) for r in content["recordings"]]
            return cls(tuple(recordings), str(content["split"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise FormatError(path, f"the list of training recordings is damaged ({error})") from None


def initial_training_data(params: object) -> tuple[str, TrainingData] | None:
    """Return name and training data of the saved model that hyper-parameters name to initialize from; None if there are none."""
    for name in ("init", "weights"):
        folder = getattr(params, name, "")
        if isinstance(folder, str) and folder and (training := TrainingData.read(folder)) is not None:
            return Path(folder).name, training
    return None


def _bits(values: NDArray[Any]) -> NDArray[np.uint32]:
    """Return values as the bits of 32-bit floats, with one NaN and one zero."""
    with np.errstate(over="ignore"):  # values beyond the range of 32 bits become infinite
        single = np.asarray(values).astype("<f4")
    single[np.isnan(single)] = np.nan
    single += 0.0  # -0 becomes 0
    return single.view("<u4")


def _by_name(item: tuple[str, Any, Any]) -> str:
    return item[0]


def _equal_signals(first: Mapping[str, str], second: Mapping[str, str]) -> bool | None:
    """Compare hashes of channels; None if one side has none.

    Signals are equal if all channels with the same names are, or if one side has all channels of the other under any names.
    """
    if not first or not second:
        return None
    shared = first.keys() & second.keys()
    if shared and all(first[name] == second[name] for name in shared):
        return True
    contents = {*first.values()}, {*second.values()}
    return contents[0] <= contents[1] or contents[1] <= contents[0]
