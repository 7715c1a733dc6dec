"""Out-of-fold predictions: what is predicted of a training recording by a model that was not trained on it.

The cross-validation of `ethobench train` predicts every recording by a model that saw neither it nor (unless split by recording)
its individual. These predictions are kept with the final model, whose own predictions of its training recordings are too good.
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
from ethobench.models.provenance import INDIVIDUAL, SAME_NAME, UNKNOWN, TrainingMatch

if TYPE_CHECKING:
    from ethobench.models.base import Model

OUT_OF_FOLD = "out_of_fold"
PREDICTIONS, PROBABILITIES = "predictions.parquet", "probabilities.parquet"
CERTAIN = 255
EXCLUSIVE = b"exclusive"
MOST_NAMES = 5

Predicted: TypeAlias = Prediction | Annotation


class OutOfFoldPredictions(Mapping[str, Predicted]):
    """Predictions by recording id, read from the folder of a model when first used.

    A value is an `Annotation` where only the bouts were kept.
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
        Whether a model that was not trained on the recording predicted it in its stead.
    split : str
        What the cross-validation held out together: ``"recording"`` if that model may have seen the individual.
    """

    match: TrainingMatch
    out_of_fold: bool = False
    split: str = ""

    @property
    def label(self) -> str:
        """A few words for tables and tracks; empty for predictions of new recordings."""
        if self.out_of_fold:
            return "out-of-fold by recording" if self.split == "recording" else "out-of-fold"
        return self.match.label


def predict_or_held_out(
    model: Model, recording: Recording, predict: Callable[[], Predicted], *, use_out_of_fold: bool = True
) -> tuple[Predicted, Origin]:
    """Return the out-of-fold prediction of a training recording, else what `predict` returns, and where it comes from.

    Parameters
    ----------
    model : Model
    recording : Recording
    predict : callable
        Predicts the recording by the model itself; called only where there is no out-of-fold prediction.
    use_out_of_fold : bool
        Whether out-of-fold predictions are preferred.
    """
    match = model.match_training(recording)
    held_out = model.held_out_prediction(recording, match) if use_out_of_fold else None
    if held_out is None:
        return predict(), Origin(match)
    return held_out, Origin(match, out_of_fold=True, split="" if model.training is None else model.training.split)


def write_predictions(folder: Path, predictions: Mapping[str, Predicted], annotator: str) -> None:
    """Write predictions into a folder: bouts as tidy Parquet, and probabilities where there are any.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    predictions : mapping of recording id to Prediction or Annotation
    annotator : str
        What to call the model.
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
    """Write probabilities as bytes (255 is certain, null is not predicted), frame after frame, recording after recording."""
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
    """Read what `write_predictions` wrote; annotations alone where no probabilities were kept."""
    from ethobench.formats import read_recordings

    decoded = {r.id: r.annotation() for r in read_recordings(folder / PREDICTIONS, "tidy_parquet", warn=False)}
    kept = _read_probabilities(folder / PROBABILITIES, decoded) if (folder / PROBABILITIES).is_file() else {}
    return {name: kept.get(name, annotation) for name, annotation in decoded.items()}


def _read_probabilities(path: Path, decoded: Mapping[str, Annotation]) -> dict[str, Prediction]:
    """Read probabilities; a column without a name is the background that the ethogram does not name."""
    import pandas as pd
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names = [name for name in table.column_names if name != "recording"]
    values = np.column_stack([table.column(name).to_numpy() for name in names]).astype(np.float32) / CERTAIN
    codes, recordings = pd.factorize(table.column("recording").to_pandas())
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    spans = {str(recordings[codes[a]]): slice(a, b) for a, b in zip(starts, [*starts[1:], len(codes)], strict=True)}
    stated = json.loads((table.schema.metadata or {}).get(EXCLUSIVE, b"{}"))
    predictions = {}
    for recording, annotation in decoded.items():
        rows = values[spans.get(recording, slice(0))]
        if len(rows) != annotation.n_frames:
            continue
        kept = [k for k, name in enumerate(names) if name or not np.isnan(rows[:, k]).all()]
        behaviors = [name for name in names if name]
        background = annotation.ethogram.background_name
        ethogram = Ethogram(behaviors, background if background in behaviors else None)
        bouts = annotation.with_ethogram(ethogram)
        exclusive = stated.get(recording)
        predictions[recording] = Prediction(rows[:, kept], ethogram, annotation.rate, annotation=bouts, exclusive=exclusive)
    return predictions


def describe_origins(model: str, origins: Mapping[str, Origin]) -> list[str]:
    """Say what a reader must know of predictions by a model, some of them on its training recordings.

    Parameters
    ----------
    model : str
        What to call the model.
    origins : mapping of recording id to Origin

    Returns
    -------
    list of str
        A sentence for each kind of prediction that needs one; none if all recordings are new.
    """

    def count(ids: Sequence[str]) -> str:
        return f"{len(ids)} of {len(origins)} recordings" if len(origins) > 1 else "the recording"

    def were(ids: Sequence[str]) -> str:
        return "was" if len(ids) == 1 else "were"

    messages = []
    if ids := [name for name, origin in origins.items() if origin.out_of_fold]:
        by_recording = any(origins[name].split == "recording" for name in ids)
        messages.append(
            f"{count(ids)} {were(ids)} used to train {model}: {list_names(ids)}. Out-of-fold predictions are used instead of its own, "
            f"made during cross-validation by models that had not seen the recording{'' if by_recording else ' or its individual'}"
        )
    if ids := [name for name, origin in origins.items() if origin.match.is_training_recording and not origin.out_of_fold]:
        messages.append(
            f"{count(ids)} {were(ids)} used to train {model} (seen in training): {list_names(ids)}. "
            "Agreement of these predictions with the labels says nothing about new animals"
        )
    if ids := [name for name, origin in origins.items() if origin.match.level == INDIVIDUAL]:
        messages.append(
            f"{count(ids)} {were(ids)} not used to train {model}, but other recordings of the same individuals were: {list_names(ids)}. "
            "Expect lower scores on new individuals"
        )
    if ids := [name for name, origin in origins.items() if origin.match.level == SAME_NAME]:
        messages.append(f"same name as a training recording of {model}, other content; treated as new: {list_names(ids)}")
    if any(origin.match.level == UNKNOWN for origin in origins.values()):
        messages.append(
            f"{model} was saved by an earlier version, which did not keep the list of training recordings; "
            "predictions of training recordings cannot be told from others"
        )
    return messages


def list_names(names: Sequence[str]) -> str:
    """List a few names, and say how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(names[:MOST_NAMES])}{more}"


def _in_ethogram(predicted: Predicted, ethogram: Ethogram) -> Predicted:
    """Express a prediction that was read back in the ethogram of its model, where the behaviors are the same."""
    if isinstance(predicted, Annotation):
        return predicted.with_ethogram(ethogram)
    if predicted.ethogram.names != ethogram.names:
        return predicted
    annotation = predicted.annotation.with_ethogram(ethogram)
    return Prediction(predicted.probabilities, ethogram, predicted.rate, annotation=annotation, exclusive=predicted.exclusive)
