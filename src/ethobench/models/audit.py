"""Which of the recordings that are scored a model was trained on.

`ethobench predict` leaves a log beside the files it writes, which says of each whether the model had seen the recording; the log
holds the hash of each file, so that a file that was replaced since is not mistaken for the one predicted. `audit_scores` brings
this log and the list of training recordings of a saved model together with scores.
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
from ethobench.core.errors import FormatError, NotFoundError
from ethobench.core.files import check_self_contained, write_text
from ethobench.metrics import Scores
from ethobench.models.held_out import Origin, list_names
from ethobench.models.provenance import INDIVIDUAL, RECORDING, UNKNOWN, TrainingData, TrainingMatch
from ethobench.models.saving import CARD

LOG = ".ethobench-predictions.json"
LOG_VERSION = 1


@dataclass(frozen=True)
class LoggedPrediction:
    """A file that `ethobench predict` wrote.

    Attributes
    ----------
    file, digest : str
        Its name within the folder, and the hash of its content.
    recording : str
        The id of the recording.
    model, model_digest : str
        The model's folder, and the hash of its files.
    level, training_id, matched_by : str
        How the recording relates to the model's training data, as in `TrainingMatch`.
    out_of_fold : bool
        Whether this is an out-of-fold prediction.
    split : str
        What the cross-validation held out together.
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

    @property
    def origin(self) -> Origin:
        """Where the prediction comes from."""
        return Origin(TrainingMatch(self.level, self.training_id, self.matched_by), self.out_of_fold, self.split)


def log_prediction(path: Path, recording: str, model: Path, origin: Origin) -> LoggedPrediction:
    """Describe a file of predictions that was just written.

    Parameters
    ----------
    path : Path
    recording : str
        The id of the recording.
    model : Path
        The folder of the model.
    origin : Origin
    """
    digest = str(_read_card(model).get("digest", ""))
    return LoggedPrediction(
        path.name,
        _file_hash(path),
        recording,
        model.resolve().name,
        digest,
        **dataclasses.asdict(origin.match),
        out_of_fold=origin.out_of_fold,
        split=origin.split,
    )


def write_log(folder: Path, predictions: Iterable[LoggedPrediction]) -> None:
    """Add predictions to the log of a folder; entries of files that were written before stay."""
    entries = {entry.file: entry for entry in [*_read_log(folder), *predictions]}
    if not entries:
        return
    content = {"format_version": LOG_VERSION, "predictions": [dataclasses.asdict(entry) for entry in entries.values()]}
    write_text(folder / LOG, json.dumps(content, ensure_ascii=False, indent=1), overwrite=True)


def read_log(path: Path) -> list[LoggedPrediction]:
    """Return what `ethobench predict` logged of a file, or of the files of a folder, that have not changed since."""
    folder = path if path.is_dir() else path.parent
    entries = [entry for entry in _read_log(folder) if path.is_dir() or entry.file == path.name]
    return [entry for entry in entries if (folder / entry.file).is_file() and _file_hash(folder / entry.file) == entry.digest]


@dataclass(frozen=True)
class TrainingAudit:
    """Where the predictions that are scored come from.

    Attributes
    ----------
    model : str
        What to call the model.
    origins : mapping of recording to Origin
        Of every recording that is scored.
    notes : tuple of str
        What else a reader should know.
    """

    model: str
    origins: Mapping[str, Origin]
    notes: tuple[str, ...] = ()

    @property
    def seen(self) -> list[str]:
        """Recordings that the model was trained on, without an out-of-fold prediction."""
        return [name for name, origin in self.origins.items() if origin.match.is_training_recording and not origin.out_of_fold]

    @property
    def unseen(self) -> list[str]:
        """Recordings predicted by a model that was not trained on them."""
        return [name for name, o in self.origins.items() if o.out_of_fold or o.match.level not in (RECORDING, UNKNOWN)]

    @property
    def warning(self) -> str:
        """One sentence for the head of a report; empty if no recording was seen in training."""
        if not self.seen:
            return ""
        return (
            f"Seen in training: {len(self.seen)} of {len(self.origins)} recordings were used to train {self.model}, "
            "so these scores say nothing about new animals."
        )

    def messages(self) -> list[str]:
        """Say what a reader of the scores must know."""
        names = {level: [n for n, o in self.origins.items() if o.match.level == level] for level in (INDIVIDUAL, UNKNOWN)}
        out_of_fold = [name for name, origin in self.origins.items() if origin.out_of_fold]
        by_name = [name for name in self.seen if self.origins[name].match.matched_by == "name"]
        lines = [*self.notes]
        if self.seen:
            lines.append(f"{self.warning} Seen: {list_names(self.seen)}; not seen: {list_names(self.unseen) or 'none'}")
        if by_name:
            lines.append(f"matched with training recordings by name only, since there are no signals to compare: {list_names(by_name)}")
        if out_of_fold:
            lines.append(
                f"{len(out_of_fold)} of {len(self.origins)} predictions are out-of-fold: made by models that had not seen the recording"
            )
        if names[INDIVIDUAL]:
            lines.append(f"new recordings of individuals seen in the training of {self.model}: {list_names(names[INDIVIDUAL])}")
        if names[UNKNOWN]:
            lines.append(f"unknown whether {self.model} was trained on: {list_names(names[UNKNOWN])}")
        if len(self.unseen) == len(self.origins) and not out_of_fold:
            lines.append(f"none of the {len(self.origins)} recordings was used to train {self.model}")
        return lines

    def to_dict(self, scores: Scores) -> dict[str, Any]:
        """Return plain values that JSON can hold, with the scores of the recordings that were not seen, where some were."""
        content: dict[str, Any] = {
            "model": self.model,
            "seen_in_training": self.seen,
            "unseen": self.unseen,
            "recordings": {
                name: {**dataclasses.asdict(origin.match), "out_of_fold": origin.out_of_fold} for name, origin in self.origins.items()
            },
        }
        if self.seen and self.unseen:
            content["unseen_scores"] = scores.select(self.unseen).to_dict()
        return content


def audit_scores(
    scores: Scores, *, model: str | Path | None = None, log: Iterable[LoggedPrediction] = (), data: Dataset | None = None
) -> TrainingAudit | None:
    """Tell which of the recordings that are scored a model was trained on.

    Parameters
    ----------
    scores : Scores
    model : str or Path, optional
        The folder of the saved model that made the predictions.
    log : iterable of LoggedPrediction
        What `read_log` says of the files that are scored.
    data : Dataset, optional
        The reference side, whose signals are compared where annotations and names do not decide.

    Returns
    -------
    TrainingAudit or None
        None where nothing is known: no model is given and there is no log.
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
            notes.append(f"{model} was saved by an earlier version, which did not keep the list of training recordings")
        digests = {entry.model_digest for entry in entries.values()}
        if digests - {card.get("digest", "")}:
            notes.append(
                f"some predictions were made by another model than {model}: {list_names(sorted({e.model for e in entries.values()}))}"
            )
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
    called = (
        _card_folder(Path(model)).resolve().name if model is not None else list_names(sorted({entry.model for entry in entries.values()}))
    )
    return TrainingAudit(called, origins, tuple(notes))


def _combine(match: TrainingMatch, entry: LoggedPrediction | None) -> Origin:
    """Prefer the log, which compared signals when it was written; only the reference side may know the individual."""
    if entry is None or entry.level == UNKNOWN or (not entry.origin.match.is_training_recording and match.level == INDIVIDUAL):
        return Origin(match)
    return entry.origin


def _card_folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _read_card(path: Path) -> dict[str, Any]:
    """Read the card of a saved model, given its folder or a file in it."""
    from ethobench.core.files import read_json

    folder = _card_folder(path)
    if not path.exists() or not (folder / CARD).is_file():
        raise NotFoundError(f"{path} is not a saved model: it has no {CARD}")
    check_self_contained(folder)
    card = read_json(folder / CARD)
    if not isinstance(card, dict):
        raise FormatError(folder / CARD, "the model's card is damaged")
    return card


def _read_log(folder: Path) -> list[LoggedPrediction]:
    """Read the log of a folder; a damaged one, or that of a later version, counts as none."""
    try:
        content = json.loads((folder / LOG).read_text(encoding="utf-8"))
        if content["format_version"] != LOG_VERSION:
            return []
        return [LoggedPrediction(**entry) for entry in content["predictions"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
