"""Frame arrays: NumPy arrays, lists, pandas Series and DataFrames become annotations and predictions.

Conventions
-----------
An array has one row for each frame.

- **Codes**, integers ``(n_frames,)``: positions in `behaviors`. ``len(behaviors)`` means "none of these", as in `Annotation.to_codes`.
- **Labels**, text ``(n_frames,)``: names of behaviors. Empty text means "none".
- **One-hot**, 0 and 1 or bool ``(n_frames, n_behaviors)``: 1 where a behavior occurs; several may occur at once. For one behavior also
  ``(n_frames,)``.
- **Probabilities**, floats ``(n_frames, n_behaviors)``, for predictions only. A last column may be that of "none". Behaviors exclude each
  other if all rows sum to 1.

Unobserved frames are -1, NaN or None; in two-dimensional arrays, all columns of the row. The columns of a DataFrame name its behaviors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError, ParameterError
from ethobench.core.intervals import BoolArray

if TYPE_CHECKING:
    import pandas as pd

ROW_SUM_TOLERANCE = 0.011
"""Difference of a row of exclusive probabilities from 1: probabilities in files are often rounded to two decimals."""

CODES, LABELS, ONE_HOT, PROBABILITIES = "codes", "labels", "one-hot", "probabilities"


def is_frame_array(value: Any) -> bool:
    """Whether a value holds frames: an array, a list, a pandas Series or DataFrame, or another array such as a tensor."""
    return isinstance(value, (np.ndarray, list)) or hasattr(value, "__array__")


@dataclass(frozen=True)
class FrameArray:
    """The frames of one annotation or prediction of one recording.

    Attributes
    ----------
    location : str
        What it is and of which recording, for messages.
    kind : str
        Codes, labels, one-hot or probabilities.
    values : array
    unobserved : mask (n_frames,)
    names : tuple of str, optional
        Names of the columns.
    """

    location: str
    kind: str
    values: NDArray[Any]
    unobserved: BoolArray
    names: tuple[str, ...] | None = None

    @property
    def labels(self) -> list[str]:
        """Names of behaviors that the frames themselves state."""
        if self.kind == LABELS:
            return sorted({*self.values[~self.unobserved].tolist()} - {""})
        return list(self.names or ())


# Reading one array


def read_array(value: Any, location: str, behaviors: tuple[str, ...] | None, *, is_prediction: bool) -> FrameArray:
    """Read an array and detect its kind.

    Parameters
    ----------
    value : array, list, Series or DataFrame
    where : str
        What it is, for messages.
    behaviors : tuple of str, optional
        Names of codes and columns; of a DataFrame, the columns to read.
    is_prediction : bool
        Whether it may hold probabilities.
    """
    if hasattr(value, "columns"):
        if len(value.columns) == 1 and value.dtypes.iloc[0].kind not in "iufb":
            return read_array(value.iloc[:, 0], location, behaviors, is_prediction=is_prediction)
        return _read_table(value, location, behaviors, is_prediction=is_prediction)
    values = _as_array(value, location)
    if values.dtype.kind == "O":
        return _read_labels(values, location)
    if values.ndim == 1 and (values.dtype.kind == "b" or (behaviors is not None and len(behaviors) == 1)):
        values = values[:, None]
    if values.ndim == 1:
        unobserved = np.isnan(values) | (values == -1) if values.dtype.kind == "f" else values == -1
        _check_codes(values[~unobserved], location)
        return FrameArray(location, CODES, values, np.asarray(unobserved))
    if values.ndim != 2:
        hint = "; pass several recordings as a dict of arrays" if values.ndim > 2 else ""
        raise MismatchError(f"{location} has {values.ndim} axes; frames have 1 (codes or labels) or 2 (one column per behavior){hint}")
    return _read_columns(values, location, None, is_prediction=is_prediction)


def _as_array(value: Any, location: str) -> NDArray[Any]:
    """Return codes or columns as numbers, and labels as objects."""
    if hasattr(value, "iloc"):  # a Series; its missing values become NaN
        is_number = getattr(value.dtype, "kind", "O") in "iufb"
        values: NDArray[Any] = value.to_numpy(dtype=float, na_value=np.nan) if is_number and value.isna().any() else value.to_numpy()
    else:
        try:
            is_text = isinstance(value, list) and any(isinstance(v, str) for v in value)
            values = np.array(value, dtype=object) if is_text else np.asarray(value)
        except ValueError:
            message = f"{location} has rows of different lengths; pass one array per recording, as a dict of recording to array"
            raise MismatchError(message) from None
    if values.dtype.kind in "iufb":
        return values
    if values.dtype.kind in "US":
        return values.astype(str).astype(object)
    if values.dtype.kind != "O" or values.ndim != 1:
        raise MismatchError(f"{location} must be numbers or text, one row for each frame, got {values.dtype} of shape {values.shape}")
    if any(isinstance(v, str) for v in values):
        return values
    try:
        return np.where(_is_missing(values), np.nan, values).astype(float)
    except (TypeError, ValueError):
        raise MismatchError(f"{location} must be numbers or text, got {type(values[0]).__name__} in each frame") from None


def _is_missing(values: NDArray[Any]) -> BoolArray:
    """Return which values are None, NaN or pandas' NA."""
    import pandas as pd

    return np.asarray(pd.isna(values))


def _read_labels(values: NDArray[Any], location: str) -> FrameArray:
    if values.ndim != 1:
        raise MismatchError(f"{location} has text in {values.ndim} axes; labels have one for each frame")
    unobserved = _is_missing(values)
    wrong = [k for k in np.flatnonzero(~unobserved) if not isinstance(values[k], str)]
    if wrong:
        raise MismatchError(
            f"{location} mixes text with other values (frame {wrong[0]}: {values[wrong[0]]!r}); use names or codes, not both"
        )
    return FrameArray(location, LABELS, values, unobserved)


def _read_table(table: pd.DataFrame, location: str, behaviors: tuple[str, ...] | None, *, is_prediction: bool) -> FrameArray:
    names = tuple(map(str, table.columns))
    text = [name for name, dtype in zip(names, table.dtypes, strict=True) if getattr(dtype, "kind", "O") not in "iufb"]
    if text:
        raise MismatchError(
            f"{location}: columns with text cannot be behaviors: {', '.join(text)}; pass one column of labels, or only numbers"
        )
    missing = [name for name in behaviors or () if name not in names]
    if missing:
        raise NotFoundError(f"{location} has no column {', '.join(map(repr, missing))}. Its columns: {', '.join(names)}")
    chosen = behaviors or names
    values = table.iloc[:, [names.index(name) for name in chosen]].to_numpy(dtype=float, na_value=np.nan)
    return _read_columns(values, location, chosen, is_prediction=is_prediction)


def _read_columns(values: NDArray[Any], location: str, names: tuple[str, ...] | None, *, is_prediction: bool) -> FrameArray:
    missing = np.isnan(values) | (values == -1) if values.dtype.kind == "f" else values == -1
    unobserved = np.asarray(missing.all(axis=1))
    partial = missing.any(axis=1) & ~unobserved
    if partial.any():
        message = "is unobserved in some columns only; set the entire row to NaN, or the missing values to 0"
        raise MismatchError(f"{location}: frame {int(np.flatnonzero(partial)[0])} {message}")
    observed = values[~unobserved]
    if ((observed == 0) | (observed == 1)).all():
        return FrameArray(location, ONE_HOT, values, unobserved, names)
    low, high = observed.min(), observed.max()
    if low < 0 or high > 1:
        hint = "apply softmax or sigmoid to scores first" if values.dtype.kind == "f" else "codes have one axis"
        raise ParameterError(f"{location} has values from {low:.4g} to {high:.4g}; columns are 0 and 1, or probabilities ({hint})")
    if not is_prediction:
        raise MismatchError(f"{location} has probabilities, which only predictions may have; pass labels: 0 and 1, codes or names")
    return FrameArray(location, PROBABILITIES, values, unobserved, names)


def _check_codes(codes: NDArray[Any], location: str) -> None:
    if codes.dtype.kind == "f" and not np.array_equal(codes, np.floor(codes)):
        raise MismatchError(f"{location} has one axis, so it must have integer codes; probabilities have one column per behavior")


# Conversion


def convert_array(
    frames: FrameArray, named: Ethogram, labels: Ethogram, rate: float, exclusive: bool | None, *, overlaps: bool
) -> Annotation | Prediction:
    """Convert an array to an annotation, or to a prediction if it has probabilities.

    Parameters
    ----------
    frames : FrameArray
    named : Ethogram
        The behaviors for which codes and columns without names stand.
    labels : Ethogram
        Other names that text or named columns may have.
    rate : float
        Frames per second.
    exclusive : bool, optional
        Whether the behaviors of probabilities exclude each other. Default: if all rows sum to 1.
    overlaps : bool
        Whether behaviors overlap in other annotations of the recording, so that probabilities need not sum to 1.
    """
    if frames.kind == LABELS:
        ethogram = named.join(labels)
        codes = _label_codes(frames, ethogram)
        return Annotation.from_frames(codes, ethogram, rate, unobserved=frames.unobserved)
    ethogram = named if frames.names is None else named.join(labels).restrict(frames.names)
    if not len(ethogram):
        if frames.kind == CODES:
            raise EthobenchError(f"{frames.location} has codes without names; pass behaviors=[...], in the order of the codes")
        raise EthobenchError(f"{frames.location} has columns without names; pass behaviors=[...], in the order of the columns")
    if frames.kind == CODES:
        return _convert_codes(frames, ethogram, rate)
    if frames.kind == ONE_HOT:
        if frames.values.shape[1] != len(ethogram):
            raise _wrong_columns(frames, ethogram)
        return Annotation.from_frames(frames.values, ethogram, rate, unobserved=frames.unobserved)
    return _convert_probabilities(frames, ethogram, rate, exclusive, overlaps=overlaps)


def _label_codes(frames: FrameArray, ethogram: Ethogram) -> NDArray[np.int64]:
    """Return the code of each label; that of "none" for empty text."""
    import pandas as pd

    codes = pd.Index(ethogram.names, dtype=object).get_indexer(pd.Index(frames.values, dtype=object))
    return np.where(codes < 0, len(ethogram), codes)


def _convert_codes(frames: FrameArray, ethogram: Ethogram, rate: float) -> Annotation:
    n, codes = len(ethogram), frames.values[~frames.unobserved]
    if len(codes) and (codes.min() < 0 or codes.max() > n):
        wrong = codes.max() if codes.max() > n else codes.min()
        raise NotFoundError(f"{frames.location} has code {wrong:g}, but the {n} behaviors have codes 0 to {n - 1}, and -1 is unobserved")
    if len(codes) and codes.max() == n and codes.min() > 0:
        message = (
            f"{frames.location} has codes {codes.min():g} to {n} for {n} behaviors, which have codes 0 to {n - 1}: subtract 1 if yours"
        )
        raise MismatchError(f"{message} start at 1 (code {n} means none of these, and is allowed only beside code 0)")
    return Annotation.from_frames(frames.values, ethogram, rate, unobserved=frames.unobserved)


def _convert_probabilities(frames: FrameArray, ethogram: Ethogram, rate: float, exclusive: bool | None, *, overlaps: bool) -> Prediction:
    values = frames.values.astype(np.float32 if frames.values.dtype == np.float16 else frames.values.dtype)
    values = np.where(frames.unobserved[:, None], np.nan, values)
    n_columns = values.shape[1]
    if n_columns not in {len(ethogram), len(ethogram) + (ethogram.background is None)}:
        raise _wrong_columns(frames, ethogram)
    sums = values[~frames.unobserved].sum(axis=1, dtype=np.float64)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if exclusive is None and (n_columns == 1 or (off.any() and overlaps)):
        exclusive = False
    elif exclusive is None and off.any():
        first = int(np.flatnonzero(off)[0])
        raise MismatchError(
            f"{frames.location}: probabilities do not sum to 1 in {int(off.sum())} of {len(off)} frames (frame "
            f"{int(np.flatnonzero(~frames.unobserved)[first])}: {sums[first]:.3g}); pass exclusive=False if each behavior has its own "
            "probability, or exclusive=True if the rest is the probability of none of them"
        )
    elif exclusive and (sums > 1 + ROW_SUM_TOLERANCE).any():
        raise MismatchError(f"{frames.location}: probabilities of exclusive behaviors sum to {sums.max():.3g}; divide each row by its sum")
    return Prediction(values, ethogram, rate, exclusive=True if exclusive is None else exclusive)


def _wrong_columns(frames: FrameArray, ethogram: Ethogram) -> MismatchError:
    n = frames.values.shape[1]
    hint = "; its axes seem to be swapped" if len(frames.values) == len(ethogram) else ""
    return MismatchError(f"{frames.location} has {n} columns for {len(ethogram)} behaviors ({', '.join(ethogram.names)}){hint}")
