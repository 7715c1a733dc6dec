"""Inputs of `agreement` and `ceiling`: annotations by recording and annotator, from annotations, arrays of frames, or a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ethobench.core import Annotation, Dataset, Ethogram, Prediction
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.metrics.alignment import SINGLE
from ethobench.metrics.array_inputs import PREDICTION, Entry, convert_entries

Recordings: TypeAlias = Mapping[str, Mapping[str, Annotation]]


def as_recordings(annotations: Any) -> dict[str, dict[str, Annotation]]:
    """Return annotations by recording and annotator, for one recording, several, or a dataset.

    Parameters
    ----------
    annotations : mapping or Dataset
        Annotators to annotations of one recording; or recordings to such mappings; or a Dataset, of which the recordings with several
        annotators are returned.
    """
    return _check_annotations(_nested(annotations))


def convert_annotator_arrays(
    annotations: Any,
    model: Any = None,
    *,
    rate: float | None = None,
    behaviors: Ethogram | Iterable[str] | str | None = None,
    exclusive: bool | None = None,
) -> tuple[dict[str, dict[str, Annotation]], Any]:
    """Return annotations by recording and annotator, and the predictions of a model, with all arrays converted.

    Parameters
    ----------
    annotations : mapping or Dataset
        As in `as_recordings`, with arrays in the place of any annotations.
    model : Annotation, Prediction, array or mapping, optional
        The prediction of the first recording, or recordings to predictions.
    rate, behaviors, exclusive
        As in `ethobench.metrics.array_inputs.convert_entries`.
    """
    groups = _nested(annotations)
    predictions = model if isinstance(model, Mapping) else dict.fromkeys([*groups][:1], model)
    sides = {name: f"the annotation by {name!r}" for group in groups.values() for name in group}
    entries = []
    for recording, group in groups.items():
        prediction = {} if predictions.get(recording) is None else {PREDICTION: predictions[recording]}
        entries.append(Entry(recording, {**{sides[name]: value for name, value in group.items()}, **prediction}))
    if not any(entry.has_arrays for entry in entries):
        if rate is not None or exclusive is not None:
            name = "rate" if rate is not None else "exclusive"
            raise EthobenchError(f"`{name}` is an option for arrays; annotations and predictions state it themselves")
        return _check_annotations(groups), model
    converted = convert_entries(entries, rate=rate, behaviors=behaviors, exclusive=exclusive, shared_labels=False)
    recordings = {recording: {name: converted[recording, sides[name]] for name in group} for recording, group in groups.items()}
    if isinstance(model, Mapping):
        model = {name: converted.get((name, PREDICTION), value) for name, value in model.items()}
    elif model is not None:
        model = next((value for (_, side), value in converted.items() if side == PREDICTION), model)
    return _check_annotations(recordings), model


def in_one_ethogram(recordings: Recordings, behaviors: Sequence[str] | None) -> tuple[dict[str, dict[str, Annotation]], Ethogram]:
    """Return annotations in the ethogram of all behaviors, or of the chosen ones, and that ethogram."""
    ethogram = Ethogram([])
    for annotation in (a for group in recordings.values() for a in group.values()):
        ethogram = ethogram.join(annotation.ethogram)
    if behaviors is not None:
        unknown = [name for name in behaviors if name not in ethogram]
        if unknown or not behaviors:
            raise NotFoundError(f"no behavior {', '.join(map(repr, unknown))}. Available: {', '.join(ethogram.names)}")
        ethogram = ethogram.restrict([name for name in ethogram.names if name in behaviors])

    def convert(annotation: Annotation) -> Annotation:
        chosen = annotation if behaviors is None else annotation.restrict([n for n in annotation.ethogram.names if n in ethogram])
        return chosen.with_ethogram(ethogram)

    return {name: {annotator: convert(a) for annotator, a in group.items()} for name, group in recordings.items()}, ethogram


def _nested(annotations: Any) -> dict[str, dict[str, Any]]:
    """Return values by recording and annotator without checking them."""
    if isinstance(annotations, Dataset):
        return {r.id: dict(r.annotations) for r in annotations if len(r.annotations) > 1}
    if not isinstance(annotations, Mapping):
        hint = "; for a table with one column for each annotator: dict(table.items())" if hasattr(annotations, "columns") else ""
        raise EthobenchError(f"expected a dict of annotators to annotations or arrays, got {type(annotations).__name__}{hint}")
    if annotations and not any(isinstance(value, Mapping) for value in annotations.values()):
        return {SINGLE: {str(name): value for name, value in annotations.items()}}
    groups: dict[str, dict[str, Any]] = {}
    for recording, group in annotations.items():
        if not isinstance(group, Mapping):
            raise EthobenchError(f"recording {recording!r}: expected a mapping of annotators to annotations, got {type(group).__name__}")
        groups[recording] = {str(name): value for name, value in group.items()}
    return groups


def _check_annotations(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Annotation]]:
    for recording, group in groups.items():
        for name, value in group.items():
            if isinstance(value, Prediction):
                raise EthobenchError(f"recording {recording!r}: {name!r} is a Prediction; pass its annotation (prediction.annotation)")
            if not isinstance(value, Annotation):
                raise EthobenchError(
                    f"recording {recording!r}: expected a mapping of annotators to annotations or arrays, but {name!r} has the type "
                    f"{type(value).__name__}"
                )
    return {recording: dict(group) for recording, group in groups.items()}
