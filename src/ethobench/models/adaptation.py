"""Adapt a saved model to a new laboratory, and tell how good it is there before and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ethobench.core import Annotation, Dataset
from ethobench.metrics import score
from ethobench.models.saving import load_model
from ethobench.models.training_examples import reference_annotation

if TYPE_CHECKING:
    from ethobench.models.base import Model

MAX_EVALUATED = 4  # recordings, above which adaptation is not cross-validated, so that it takes seconds


def adapt_saved_model(path: str | Path, data: Dataset, annotator: str | None = None) -> tuple[Model, dict[str, float]]:
    """Load a model, score it on new annotated recordings, and adapt it to them.

    Parameters
    ----------
    path : path
        Folder of the model.
    data : Dataset
        One or a few annotated recordings of the new laboratory.
    annotator : str, optional
        Whose annotations to use where recordings have several.

    Returns
    -------
    model : Model
        The adapted model.
    scores : dict of str to float
        Macro F1 of frames: ``zero_shot`` before adaptation; ``adapted`` after adaptation to the other recordings, with two to four.
    """
    truths = {recording.id: reference_annotation(recording, annotator) for recording in data}
    model = load_model(path)
    scores = {"zero_shot": _f1({recording.id: model.predict(recording).annotation for recording in data}, truths)}
    if 1 < len(data) <= MAX_EVALUATED:
        adapted = {}
        for recording in data:
            others = data.select(recordings=[other.id for other in data if other.id != recording.id])
            adapted[recording.id] = load_model(path).adapt_to(others, annotator=annotator).predict(recording).annotation
        scores["adapted"] = _f1(adapted, truths)
    return model.adapt_to(data, annotator=annotator), scores


def _f1(predictions: dict[str, Annotation], truths: dict[str, Annotation]) -> float:
    shared = [name for name in next(iter(predictions.values())).ethogram.names if name in next(iter(truths.values())).ethogram]
    kept = {name: annotation.restrict(shared) for name, annotation in predictions.items()}
    overall = score(kept, {name: truth.restrict(shared) for name, truth in truths.items()}, resamples=0).overall
    return float(overall["f1"])
