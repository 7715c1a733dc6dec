"""Arrays among the inputs of `score`, `agreement` and `ceiling`: names, frame rate and conversion in one step for all recordings.

What an array may hold is defined in `ethobench.metrics.frame_arrays`. Codes and columns without names stand for the behaviors that the user
names, or for those of the first annotation among the inputs. The frame rate is that of the user, or that of another annotation of the
recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from ethobench.core import Annotation, Dataset, Ethogram, Prediction
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.metrics.alignment import ALL, SINGLE
from ethobench.metrics.frame_arrays import LABELS, ONE_HOT, PROBABILITIES, FrameArray, convert_array, is_frame_array, read_array

PREDICTION, TRUTH = "the prediction", "the truth"


@dataclass(frozen=True)
class Entry:
    """What is compared in one recording.

    Attributes
    ----------
    recording : str
    values : mapping of str to object
        Annotations, predictions or arrays, by what messages call them, such as ``"the truth"``. Only `PREDICTION` may be probabilities.
    references : tuple of Annotation or Prediction
        Other annotations of the recording, which have its frame rate and behaviors.
    """

    recording: str
    values: Mapping[str, Any]
    references: tuple[Annotation | Prediction, ...] = ()

    @property
    def has_arrays(self) -> bool:
        """Whether any value is an array."""
        return any(is_frame_array(value) for value in self.values.values())

    @property
    def annotations(self) -> tuple[Annotation | Prediction, ...]:
        """The values and references that are not arrays, the prediction last."""
        values = sorted(self.values.items(), key=lambda item: item[0] == PREDICTION)
        return (*(v for _, v in values if isinstance(v, (Annotation, Prediction))), *self.references)

    def describe(self, side: str) -> str:
        """Return the name of a value for messages."""
        return side if self.recording == SINGLE else f"{side} of recording {self.recording!r}"

    def check_index(self) -> None:
        """Refuse pandas objects of the same length with different rows, such as two selections of one table."""
        tables = [(side, value.index) for side, value in self.values.items() if hasattr(value, "iloc")]
        for side, index in tables[1:]:
            first, reference = tables[0]
            if len(index) == len(reference) and not index.equals(reference):
                raise MismatchError(
                    f"{self.describe(first)} and {self.describe(side)} have different pandas indexes; sort both alike, "
                    "then use reset_index(drop=True)"
                )


def convert_entries(
    entries: Sequence[Entry],
    *,
    rate: float | None,
    behaviors: Ethogram | Iterable[str] | str | None,
    exclusive: bool | None = None,
    shared_labels: bool = True,
) -> dict[tuple[str, str], Any]:
    """Convert the arrays among the values of recordings to annotations and predictions.

    Parameters
    ----------
    entries : sequence of Entry
    rate : float, optional
        Frames per second. Default: that of another annotation of the recording.
    behaviors : Ethogram or iterable of str, optional
        Names of codes and columns. Default: those that labels, DataFrames or the first annotation state.
    exclusive : bool, optional
        Whether the behaviors of probabilities exclude each other. Default: if all rows sum to 1.
    shared_labels : bool
        Whether the annotation of labels has the labels of all arrays in its ethogram, or only those of the same annotator.

    Returns
    -------
    dict
        ``(recording, side)`` to the converted value; values that are not arrays are unchanged.

    Raises
    ------
    EthobenchError
        If there is no rate, if codes or columns have no names, or if arrays are not of one of the kinds in
        `ethobench.metrics.frame_arrays`.
    """
    stated = as_ethogram(behaviors)
    read: dict[tuple[str, str], FrameArray] = {}
    for entry in entries:
        entry.check_index()
        for side, value in entry.values.items():
            if is_frame_array(value):
                names = stated.names if stated else None
                read[entry.recording, side] = read_array(value, entry.describe(side), names, is_prediction=side == PREDICTION)
    arrays = _as_one_kind(read)
    named = stated or next((a.ethogram for entry in entries for a in entry.annotations), Ethogram([]))
    labels = _other_labels(arrays.values(), named)
    if stated and all(array.kind == LABELS for array in arrays.values()) and not any(entry.annotations for entry in entries):
        _check_names(stated, [*arrays.values()], labels)
    labels_of_side = {
        side: labels if shared_labels else _other_labels((array for key, array in arrays.items() if key[1] == side), named)
        for _, side in arrays
    }
    converted: dict[tuple[str, str], Any] = {}
    for entry in entries:
        for side, value in sorted(entry.values.items(), key=lambda item: item[0] == PREDICTION):  # others show whether behaviors overlap
            key = (entry.recording, side)
            if key not in arrays:
                converted[key] = value
                continue
            clock = rate if rate is not None else next((a.rate for a in entry.annotations), None)
            if clock is None:
                raise EthobenchError(f"{entry.describe(side)}: an array has no frame rate; pass it as rate=, in frames per second")
            others = [*(converted.get((entry.recording, other)) for other in entry.values), *entry.references]
            overlaps = any(isinstance(a, Annotation) and not a.is_exclusive for a in others)
            converted[key] = convert_array(arrays[key], named, labels_of_side[side], clock, exclusive, overlaps=overlaps)
    return converted


def as_ethogram(behaviors: Ethogram | Iterable[str] | str | None) -> Ethogram | None:
    """Return the ethogram of the option `behaviors`; None if it does not name any.

    >>> as_ethogram("rest").names, as_ethogram(["rest", "run"]).names, as_ethogram("all")
    (('rest',), ('rest', 'run'), None)
    """
    if behaviors is None or isinstance(behaviors, Ethogram):
        return behaviors
    if isinstance(behaviors, str):
        return None if behaviors == ALL else Ethogram([behaviors])
    return Ethogram(map(str, behaviors))


def _as_one_kind(arrays: dict[tuple[str, str], FrameArray]) -> dict[tuple[str, str], FrameArray]:
    """Read predictions of 0 and 1 as probabilities if those of other recordings are, so that all have the same metrics."""
    if not any(array.kind == PROBABILITIES for array in arrays.values()):
        return arrays
    return {
        key: replace(a, kind=PROBABILITIES) if key[1] == PREDICTION and a.kind == ONE_HOT and a.values.dtype.kind == "f" else a
        for key, a in arrays.items()
    }


def _other_labels(arrays: Iterable[FrameArray], named: Ethogram) -> Ethogram:
    """Return the names that arrays state and `named` does not have."""
    return Ethogram(sorted({label for array in arrays for label in array.labels} - {*named.names}))


def _check_names(stated: Ethogram, arrays: Sequence[FrameArray], other_labels: Ethogram) -> None:
    """Refuse a name that no frame has if it is similar to a label that would not be scored."""
    used = {label for array in arrays for label in array.labels}
    for name in stated.names:
        similar = get_close_matches(name, other_labels.names, n=1, cutoff=0.8)
        if name not in used and similar:
            raise NotFoundError(f"no frame has the behavior {name!r}; did you mean {similar[0]!r}? Labels: {', '.join(sorted(used))}")


# Inputs of `score`


def has_score_arrays(pred: Any, truth: Any) -> bool:
    """Whether any of the inputs of `score` is an array."""
    return any(entry.has_arrays for entry in _score_entries(pred, truth))


def convert_score_arrays(
    pred: Any, truth: Any, *, rate: float | None, behaviors: Ethogram | Iterable[str] | str | None, exclusive: bool | None
) -> tuple[Any, Any]:
    """Replace the arrays among the inputs of `score` by annotations and predictions; parameters as in `convert_entries`."""
    entries = list(_score_entries(pred, truth))
    converted = convert_entries(entries, rate=rate, behaviors=behaviors, exclusive=exclusive)
    if isinstance(pred, Mapping) and isinstance(truth, Mapping):
        truths = {name: converted.get((str(name), TRUTH), value) for name, value in truth.items()}
        return {name: converted[str(name), PREDICTION] for name in pred}, truths
    if isinstance(pred, Mapping) and isinstance(truth, Dataset):
        return {name: converted[str(name), PREDICTION] for name in pred}, truth
    if isinstance(pred, Mapping):
        keys = {name: [(str(name), side) for side in (PREDICTION, TRUTH)] for name in pred}
        return {name: tuple(converted[k] for k in keys[name]) if keys[name][0] in converted else pred[name] for name in pred}, truth
    if isinstance(truth, Dataset):
        return next(iter(converted.values()), pred), truth
    return converted[SINGLE, PREDICTION], converted[SINGLE, TRUTH]


def _score_entries(pred: Any, truth: Any) -> Iterator[Entry]:
    if isinstance(truth, Dataset):
        for name, value in pred.items() if isinstance(pred, Mapping) else [(r.id, pred) for r in truth.recordings[:1]]:
            recording = next((r for r in truth if r.id == name), None)
            yield Entry(str(name), {PREDICTION: value}, tuple(recording.annotations.values()) if recording is not None else ())
    elif isinstance(pred, Mapping) and isinstance(truth, Mapping):
        for name in pred:
            yield Entry(str(name), {PREDICTION: pred[name], TRUTH: truth.get(name)})
    elif isinstance(pred, Mapping):
        for name, pair in pred.items():
            if isinstance(pair, tuple) and len(pair) == 2:
                yield Entry(str(name), dict(zip((PREDICTION, TRUTH), pair, strict=True)))
    else:
        yield Entry(SINGLE, {PREDICTION: pred, TRUTH: truth})
