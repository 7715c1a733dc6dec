"""What a model says of recordings that it did not learn from: what decoders and calibration are chosen by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.folds import deal_folds, usual_split
from ethobench.learning.decoding import Decoder, Trial, fit_decoder

if TYPE_CHECKING:
    from ethobench.models._base import Model

N_FOLDS = 3
TRUTH = "truth"


def out_of_fold(model: Model, data: Dataset, truths: Mapping[str, Annotation], n_folds: int = N_FOLDS) -> dict[str, Prediction]:
    """Predict every training recording by a model that learnt from other individuals only.

    Parameters
    ----------
    model : Model
        Fresh ones of its kind are trained; itself it stays as it is.
    data : Dataset
    truths : mapping of recording to Annotation
        What is to be learnt.
    n_folds : int
        At most; no more than there are individuals.
    """
    told = replace(data, recordings=tuple(r.copy(annotations={_annotator(r): truths[r.id]}) for r in data))
    folds = deal_folds(told, n_folds, usual_split(told))
    found: dict[str, Prediction] = {}
    for fold in sorted(set(folds.values())):
        fresh = model.fresh().fit(told.select(recordings=[name for name, k in folds.items() if k != fold]))
        found |= {name: fresh.predict(told[name]) for name, k in folds.items() if k == fold}
    return {recording.id: found[recording.id] for recording in data}


def _annotator(recording: Recording) -> str:
    """Keep the only annotator's name, by which some models tell styles apart."""
    return next(iter(recording.annotations)) if len(recording.annotations) == 1 else TRUTH


def choose_decoder(model: Model, data: Dataset, truths: Mapping[str, Annotation], metric: str) -> tuple[Decoder, list[Trial]]:
    """Choose a decoder for a model by what it says of individuals, or recordings of the only one, that it did not learn from."""
    if len(data) < 2:
        return Decoder(), []
    return fit_decoder(out_of_fold(model, data, truths), truths, metric=metric, groups=data.groups())
