"""Audit of scores: which of the scored recordings a model was trained on.

`ethobench predict` keeps a log in a hidden folder beside its files: one entry per file, with the origin of the prediction. An entry has
the hash of its file, so that a file that was replaced later is not mistaken for a prediction. `audit_scores` combines scores with this log
and with the list of training recordings of a saved model.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethobench.core import Dataset, Recording
from ethobench.core.errors import FormatError, Note, NotFoundError
from ethobench.core.files import check_self_contained, read_json, write_text
from ethobench.core.wording import plural
from ethobench.metrics import Scores
from ethobench.models.held_out import Origin, list_names
from ethobench.models.provenance import INDIVIDUAL, RECORDING, UNKNOWN, TrainingData, TrainingMatch
from ethobench.models.saving import CARD

LOG = ".ethobench-predictions"
ENTRIES = "files"
"""Folder of the log with one entry per file of predictions."""
LOG_FORMAT_VERSION = 2


@dataclass(frozen=True)
class LoggedPrediction:
    """A file that `ethobench predict` wrote.

    Attributes
    ----------
    file, digest : str
        Name within the folder, and hash of the content.
    recording : str
        The id of the recording.
    model, model_digest : str
        Folder of the model, and hash of its files.
    level, training_id, matched_by : str
        How the recording relates to the model's training data, as in `TrainingMatch`.
    out_of_fold : bool
        Whether this is an out-of-fold prediction.
    split : str
        What the cross-validation never split.
    key : str
        Hash of the model, the settings and the name of the file: the same for the same request.
    input, input_stamp, input_digest : str
        Path of the input; its size and modification time; the hash of its content.
    bouts : int
        Number of bouts.
    seconds, unobserved_seconds : float
        Length of the recording, and how much of it was not predicted.
    notes : tuple of Note
        From the reader, the model and the writer.
    """

    file: str
    digest: str
    recording: str
    model: str
    model_digest: str
    level: str
    training_id: str = ""
    matched_by: str = ""
    out_of_fold: bool = False
    split: str = ""
    key: str = ""
    input: str = ""
    input_stamp: str = ""
    input_digest: str = ""
    bouts: int = 0
    seconds: float = 0.0
    unobserved_seconds: float = 0.0
    notes: tuple[Note, ...] = ()

    @property
    def origin(self) -> Origin:
        """Origin of the prediction."""
        return Origin(TrainingMatch(self.level, self.training_id, self.matched_by), self.out_of_fold, self.split)

    def is_unchanged(self, folder: Path) -> bool:
        """Return whether the file is still as it was written."""
        path = folder / self.file
        return path.is_file() and hash_file(path) == self.digest


def write_entry(folder: Path, entry: LoggedPrediction) -> None:
    """Write the log entry of a file of predictions, before the file itself appears in its folder."""
    content = {"format_version": LOG_FORMAT_VERSION, **dataclasses.asdict(entry)}
    write_text(_entry_path(folder, entry.file), json.dumps(content, ensure_ascii=False), overwrite=True)


def read_entry(folder: Path, file: str) -> LoggedPrediction | None:
    """Read the log entry of a file; None if it is missing or damaged.

    Raises
    ------
    FormatError
        If the entry has another format version, so that predictions of a newer ethobench are not taken for files without an entry.
    """
    path = _entry_path(folder, file)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content.pop("format_version")
        if version != LOG_FORMAT_VERSION:
            raise FormatError(path, f"format version {version!r} is not supported, only {LOG_FORMAT_VERSION}; update ethobench")
        return LoggedPrediction(**{**content, "notes": tuple(Note(**note) for note in content["notes"])})
    except FormatError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def remove_entry(folder: Path, file: str) -> None:
    """Remove the log entry of a file that is about to be replaced."""
    _entry_path(folder, file).unlink(missing_ok=True)


def read_log(path: Path) -> list[LoggedPrediction]:
    """Return the log entries of a file, or of the files of a folder, that have not changed since they were written."""
    folder = path if path.is_dir() else path.parent
    files = [p.name.removesuffix(".json") for p in sorted((folder / LOG / ENTRIES).glob("*.json"))] if path.is_dir() else [path.name]
    entries = [entry for file in files if (entry := read_entry(folder, file)) is not None]
    return [entry for entry in entries if entry.is_unchanged(folder)]


def _entry_path(folder: Path, file: str) -> Path:
    return folder / LOG / ENTRIES / f"{file}.json"


@dataclass(frozen=True)
class TrainingAudit:
    """The origins of scored predictions.

    Attributes
    ----------
    model : str
        Name of the model.
    origins : mapping of recording to Origin
        Of every scored recording.
    notes : tuple of str
        Further notes for the reader.
    """

    model: str
    origins: Mapping[str, Origin]
    notes: tuple[str, ...] = ()

    @property
    def in_sample(self) -> list[str]:
        """Recordings that the model was trained on, without an out-of-fold prediction."""
        return [name for name, origin in self.origins.items() if origin.match.is_training_recording and not origin.out_of_fold]

    @property
    def held_out(self) -> list[str]:
        """Recordings that were predicted by a model that was not trained on them."""
        return [name for name, o in self.origins.items() if o.out_of_fold or o.match.level not in (RECORDING, UNKNOWN)]

    @property
    def warning(self) -> str:
        """One sentence for the top of a report; empty if no prediction is in-sample."""
        if not self.in_sample:
            return ""
        return (
            f"Seen in training: {len(self.in_sample)} of {len(self.origins)} recordings were used to train {self.model}, "
            "so these scores say nothing about new animals."
        )

    def messages(self) -> list[str]:
        """Return notes for the reader of the scores."""
        names = {level: [n for n, o in self.origins.items() if o.match.level == level] for level in (INDIVIDUAL, UNKNOWN)}
        out_of_fold = [name for name, origin in self.origins.items() if origin.out_of_fold]
        by_name = [name for name in self.in_sample if self.origins[name].match.matched_by == "name"]
        lines = [*self.notes]
        if self.in_sample:
            lines.append(f"{self.warning} Seen: {list_names(self.in_sample)}; not seen: {list_names(self.held_out) or 'none'}")
        if by_name:
            lines.append(f"matched with training recordings only by name, since there are no signals to compare: {list_names(by_name)}")
        if out_of_fold:
            lines.append(
                f"{len(out_of_fold)} of {len(self.origins)} predictions are out-of-fold: by models that were not trained on the recording"
            )
        if names[INDIVIDUAL]:
            lines.append(f"new recordings of individuals seen in the training of {self.model}: {list_names(names[INDIVIDUAL])}")
        if names[UNKNOWN]:
            lines.append(f"unknown whether {self.model} was trained on: {list_names(names[UNKNOWN])}")
        if len(self.held_out) == len(self.origins) and not out_of_fold:
            one, other = (
                "the model {model} was not trained on the recording",
                "the model {model} was not trained on any of the {n} recordings",
            )
            lines.append(plural(len(self.origins), one, other, model=self.model))
        return lines

    def to_dict(self, scores: Scores) -> dict[str, Any]:
        """Return the audit as JSON values, with the scores of held-out recordings if some recordings are in-sample."""
        content: dict[str, Any] = {
            "model": self.model,
            "seen_in_training": self.in_sample,
            "unseen": self.held_out,
            "recordings": {
                name: {**dataclasses.asdict(origin.match), "out_of_fold": origin.out_of_fold} for name, origin in self.origins.items()
            },
        }
        if self.in_sample and self.held_out:
            content["unseen_scores"] = scores.select(self.held_out).to_dict()
        return content


def audit_scores(
    scores: Scores, *, model: str | Path | None = None, log: Iterable[LoggedPrediction] = (), data: Dataset | None = None
) -> TrainingAudit | None:
    """Find out which of the scored recordings a model was trained on.

    Parameters
    ----------
    scores : Scores
    model : str or Path, optional
        Folder of the saved model of the predictions.
    log : iterable of LoggedPrediction
        Result of `read_log` for the scored files.
    data : Dataset, optional
        The reference recordings, whose signals are compared if annotations and names do not decide.

    Returns
    -------
    TrainingAudit or None
        None without a model and without a log.
    """
    entries = {name: entry for entry in log for name in (Path(entry.file).stem, entry.recording)}
    if model is None and not entries:
        return None
    notes: list[str] = []
    training = None
    if model is not None:
        card = _read_card(Path(model))
        training = TrainingData.read(_card_folder(Path(model)))
        if training is None:
            notes.append(f"{model} has no list of training recordings")
        digests = {entry.model_digest for entry in entries.values()}
        if digests - {card.get("digest", "")}:
            notes.append(f"some predictions are by another model than {model}: {list_names(sorted({e.model for e in entries.values()}))}")
    references = {} if data is None else {recording.id: recording for recording in data}
    truths = {case.id: {"reference": case.truth} for case in scores.pairs}
    ids = {*references, *entries, *(r.id for r in (training.recordings if training is not None else ()))}
    single = len(scores.recordings) == 1 and len({entry.file for entry in entries.values()}) == 1
    origins = {}
    for name in scores.recordings:
        recording_id = name if name in ids else name.rpartition("@")[0] or name  # with several annotators: recording@annotator
        match = TrainingMatch(UNKNOWN)
        if training is not None:
            reference = references.get(recording_id) or Recording(recording_id, annotations=truths.get(name))
            match = training.match(reference, read_signals=False)
            match = match if match.matched_by == "annotation" else training.match(reference)
        entry = next(iter(entries.values())) if single else entries.get(recording_id)  # a single file may have any name
        origins[name] = _combine(match, entry)
    model_name = (
        _card_folder(Path(model)).resolve().name if model is not None else list_names(sorted({entry.model for entry in entries.values()}))
    )
    return TrainingAudit(model_name, origins, tuple(notes))


def _combine(match: TrainingMatch, entry: LoggedPrediction | None) -> Origin:
    """Prefer the log, which compared signals when it was written; only the reference has the individual."""
    if entry is None or entry.level == UNKNOWN or (not entry.origin.match.is_training_recording and match.level == INDIVIDUAL):
        return Origin(match)
    return entry.origin


def _card_folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _read_card(path: Path) -> dict[str, Any]:
    """Read the card of a saved model from its folder, or from a file in it."""
    folder = _card_folder(path)
    if not path.exists() or not (folder / CARD).is_file():
        raise NotFoundError(f"{path} is not a saved model: it has no {CARD}")
    check_self_contained(folder)
    card = read_json(folder / CARD)
    if not isinstance(card, dict):
        raise FormatError(folder / CARD, "the model's card is damaged")
    return card


def hash_file(path: Path) -> str:
    """Hash the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
