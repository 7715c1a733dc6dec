"""Out-of-fold predictions of training recordings, saved with a model.

The cross-validation of `ethobench train` predicts every recording with a model that was trained neither on it nor (unless split by
recording) on its individual. These predictions are saved with the final model, whose in-sample predictions are too good.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ethobench.core import Annotation, Ethogram, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError, describe_exception
from ethobench.core.wording import join_names, plural
from ethobench.models.adapt import has_rate
from ethobench.models.provenance import INDIVIDUAL, SAME_NAME, UNKNOWN, TrainingMatch

if TYPE_CHECKING:
    from ethobench.models.base import Model

OUT_OF_FOLD = "out_of_fold"
PREDICTIONS, PROBABILITIES = "predictions.parquet", "probabilities.parquet"
CERTAIN = 255
EXCLUSIVE = b"exclusive"
MAX_NAMES = 5

Predicted: TypeAlias = Prediction | Annotation


class OutOfFoldPredictions(Mapping[str, Predicted]):
    """Predictions by recording id, read from the folder of a model when first used.

    A value is an `Annotation` if only the bouts were saved.
    """

    def __init__(self, folder: Path, ethogram: Ethogram) -> None:
        self.folder, self.ethogram = folder, ethogram

    @cached_property
    def _predictions(self) -> dict[str, Predicted]:
        if not (self.folder / PREDICTIONS).is_file():
            return {}
        try:
            return {name: _in_ethogram(predicted, self.ethogram) for name, predicted in read_predictions(self.folder).items()}
        except EthobenchError:
            raise
        except Exception as error:
            raise FormatError(self.folder, f"the out-of-fold predictions are damaged: {describe_exception(error)}") from None

    def __getitem__(self, recording_id: str) -> Predicted:
        return self._predictions[recording_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._predictions)

    def __len__(self) -> int:
        return len(self._predictions)


@dataclass(frozen=True)
class Origin:
    """Where a prediction of a recording comes from.

    Attributes
    ----------
    match : TrainingMatch
        How the recording relates to the training data of the final model.
    out_of_fold : bool
        Whether it is by a model of the cross-validation that was not trained on the recording.
    split : str
        What the cross-validation never split; with ``"recording"``, that model may have been trained on the individual.
    """

    match: TrainingMatch
    out_of_fold: bool = False
    split: str = ""

    @property
    def label(self) -> str:
        """A short label for tables and tracks; empty for predictions of new recordings."""
        if self.out_of_fold:
            return "out-of-fold by recording" if self.split == "recording" else "out-of-fold"
        return self.match.label


def predict_or_held_out(
    model: Model, recording: Recording, predict: Callable[[], Predicted], *, use_out_of_fold: bool = True
) -> tuple[Predicted, Origin]:
    """Return the out-of-fold prediction of a training recording, else the result of `predict`, and its origin.

    Parameters
    ----------
    model : Model
    recording : Recording
    predict : callable
        Predicts the recording with the model; called only if there is no out-of-fold prediction.
    use_out_of_fold : bool
        Whether to prefer out-of-fold predictions.
    """
    match = model.match_training(recording)
    held_out = held_out_prediction(model, recording, match) if use_out_of_fold else None
    if held_out is None:
        return predict(), Origin(match)
    return held_out, Origin(match, out_of_fold=True, split="" if model.training is None else model.training.split)


def held_out_prediction(model: Model, recording: Recording, match: TrainingMatch) -> Predicted | None:
    """Return the out-of-fold prediction of a training recording, given the result of `Model.match_training`; None if there is none."""
    predicted = model.out_of_fold.get(match.training_id) if match.is_training_recording else None
    if predicted is None or not has_rate(recording, predicted.rate):
        return None
    lengths = {recording.n_frames, None if recording.signals is None else len(recording.signals)}
    return predicted if predicted.n_frames in lengths else None


def write_predictions(folder: Path, predictions: Mapping[str, Predicted], annotator: str) -> None:
    """Write predictions to a folder: bouts as tidy Parquet, and probabilities if there are any.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.
    predictions : mapping of recording id to Prediction or Annotation
    annotator : str
        Name of the model.
    """
    from ethobench.formats import write_recordings

    folder.mkdir(exist_ok=True)
    decoded = {name: p.annotation if isinstance(p, Prediction) else p for name, p in predictions.items()}
    recordings = [Recording(name, annotations={annotator: annotation}) for name, annotation in decoded.items()]
    write_recordings(recordings, folder / PREDICTIONS, "tidy_parquet")
    probabilities = {name: p for name, p in predictions.items() if isinstance(p, Prediction)}
    if probabilities:
        write_probabilities(folder / PROBABILITIES, probabilities)


def write_probabilities(path: Path, predictions: Mapping[str, Prediction]) -> None:
    """Write probabilities as bytes (255 for 1, null if not predicted), one row per frame."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for name, prediction in predictions.items():
        ethogram, values = prediction.ethogram, prediction.probabilities
        columns = {"recording": pa.DictionaryArray.from_arrays(pa.array(np.zeros(prediction.n_frames, np.int32)), pa.array([name]))}
        for k in range(values.shape[1]):
            missing = np.isnan(values[:, k])
            scaled = np.rint(np.nan_to_num(values[:, k]) * CERTAIN).astype(np.uint8)
            columns[ethogram[k].name if k < len(ethogram) else ""] = pa.array(scaled, mask=missing if missing.any() else None)
        tables.append(pa.table(columns))
    exclusive = json.dumps({name: prediction.exclusive for name, prediction in predictions.items()})
    table = pa.concat_tables(tables, promote_options="default").replace_schema_metadata({EXCLUSIVE: exclusive})
    pq.write_table(table, path, compression="zstd")


def read_predictions(folder: Path) -> dict[str, Predicted]:
    """Read the predictions of `write_predictions`; annotations alone if there are no probabilities."""
    from ethobench.formats import read_recordings

    decoded = {r.id: r.annotation() for r in read_recordings(folder / PREDICTIONS, "tidy_parquet", warn=False)}
    with_probabilities = _read_probabilities(folder / PROBABILITIES, decoded) if (folder / PROBABILITIES).is_file() else {}
    return {name: with_probabilities.get(name, annotation) for name, annotation in decoded.items()}


def _read_probabilities(path: Path, decoded: Mapping[str, Annotation]) -> dict[str, Prediction]:
    """Read probabilities; a column without a name is the implicit background."""
    import pandas as pd
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names = [name for name in table.column_names if name != "recording"]
    values = np.column_stack([table.column(name).to_numpy() for name in names]).astype(np.float32) / CERTAIN
    codes, recordings = pd.factorize(table.column("recording").to_pandas())
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    spans = {str(recordings[codes[a]]): slice(a, b) for a, b in zip(starts, [*starts[1:], len(codes)], strict=True)}
    exclusive_by_recording = json.loads((table.schema.metadata or {}).get(EXCLUSIVE, b"{}"))
    predictions = {}
    for recording, annotation in decoded.items():
        rows = values[spans.get(recording, slice(0))]
        if len(rows) != annotation.n_frames:
            continue
        columns = [k for k, name in enumerate(names) if name or not np.isnan(rows[:, k]).all()]
        behaviors = [name for name in names if name]
        background = annotation.ethogram.background_name
        ethogram = Ethogram(behaviors, background if background in behaviors else None)
        bouts = annotation.with_ethogram(ethogram)
        exclusive = exclusive_by_recording.get(recording)
        predictions[recording] = Prediction(rows[:, columns], ethogram, annotation.rate, annotation=bouts, exclusive=exclusive)
    return predictions


def describe_origins(model: str, origins: Mapping[str, Origin]) -> list[str]:
    """Return warnings about predictions of training recordings, for the reader of their scores.

    Parameters
    ----------
    model : str
        Name of the model.
    origins : mapping of recording id to Origin

    Returns
    -------
    list of str
        One message per kind of prediction; empty if all recordings are new.
    """

    def describe(ids: Sequence[str], single: str, one: str, other: str) -> str:
        """Return the sentence for the only recording, for one of several or for more of them."""
        values = {"total": len(origins), "model": model, "names": list_names(ids)}
        return plural(len(ids), one if len(origins) > 1 else single, other, **values)

    messages = []
    if ids := [name for name, origin in origins.items() if origin.out_of_fold]:
        sentence = describe(
            ids,
            "the recording was used to train {model}: {names}.",
            "{n} of {total} recordings was used to train {model}: {names}.",
            "{n} of {total} recordings were used to train {model}: {names}.",
        )
        if any(origins[name].split == "recording" for name in ids):
            source = "Out-of-fold predictions are used, by cross-validated models that were not trained on the recording"
        else:
            source = "Out-of-fold predictions are used, by cross-validated models that were not trained on the recording or its individual"
        messages.append(f"{sentence} {source}")
    if ids := [name for name, origin in origins.items() if origin.match.is_training_recording and not origin.out_of_fold]:
        sentence = describe(
            ids,
            "the recording was used to train {model} (seen in training): {names}.",
            "{n} of {total} recordings was used to train {model} (seen in training): {names}.",
            "{n} of {total} recordings were used to train {model} (seen in training): {names}.",
        )
        messages.append(f"{sentence} Agreement of these predictions with the labels says nothing about new animals")
    if ids := [name for name, origin in origins.items() if origin.match.level == INDIVIDUAL]:
        sentence = describe(
            ids,
            "the recording was not used to train {model}, but other recordings of the same individuals were: {names}.",
            "{n} of {total} recordings was not used to train {model}, but other recordings of the same individuals were: {names}.",
            "{n} of {total} recordings were not used to train {model}, but other recordings of the same individuals were: {names}.",
        )
        messages.append(f"{sentence} Expect lower scores on new individuals")
    if ids := [name for name, origin in origins.items() if origin.match.level == SAME_NAME]:
        messages.append(f"same name as a training recording of {model} but different content; treated as new: {list_names(ids)}")
    if any(origin.match.level == UNKNOWN for origin in origins.values()):
        messages.append(f"{model} has no list of training recordings, so predictions of training recordings cannot be recognized")
    return messages


def list_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    return join_names(names, "", most=MAX_NAMES)


def _in_ethogram(predicted: Predicted, ethogram: Ethogram) -> Predicted:
    """Convert a prediction to the ethogram of its model, if the behaviors are the same."""
    if isinstance(predicted, Annotation):
        return predicted.with_ethogram(ethogram)
    if predicted.ethogram.names != ethogram.names:
        return predicted
    annotation = predicted.annotation.with_ethogram(ethogram)
    return Prediction(predicted.probabilities, ethogram, predicted.rate, annotation=annotation, exclusive=predicted.exclusive)
