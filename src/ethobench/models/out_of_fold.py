"""What a model says of recordings that it did not learn from: what decoders and calibration are chosen by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.folds import deal_folds, kept_together, usual_split
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import Trial, fit_decoder

if TYPE_CHECKING:
    from ethobench.models.base import Model

Kind = TypeVar("Kind", bound="Model")
N_FOLDS = 3
AFTERWARDS = 2.0  # trainings' worth of time that is kept for choosing the decoder and for the training on everything
DECODING = 0.25  # of the time that is left then, which choosing the decoder may take
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
    folds = inner_folds(told, truths, n_folds)
    found: dict[str, Prediction] = {}
    n_used = len({*folds.values()})
    for place, fold in enumerate(sorted({*folds.values()})):
        fresh = taking_after(model, model.fresh())
        fresh.deadline = model.deadline.share(1 / (n_used - place + AFTERWARDS))
        others = [recording.id for recording in told if folds.get(recording.id) != fold]
        fresh._fit(told.select(recordings=others), {name: truths[name] for name in others})
        found |= {name: fresh._predict(told[name]) for name, k in folds.items() if k == fold}
    return {recording.id: found[recording.id] for recording in data if recording.id in found}


def inner_folds(data: Dataset, truths: Mapping[str, Annotation], n_folds: int = N_FOLDS) -> dict[str, int]:
    """Deal the recordings that somebody looked at to folds; none of them, where that leaves nothing to learn from or to compare with."""
    looked = [r.id for r in data if iv.total(truths[r.id].observed.anywhere())]
    seen = data.select(recordings=looked)
    together = usual_split(seen) if looked else "recording"
    if len({*kept_together(seen, together).values()}) < 2:
        return {}
    return deal_folds(seen, n_folds, together)


def taking_after(like: Model, model: Kind) -> Kind:
    """Give a model the behaviors, rate and inputs of another, and whether behaviors overlap: a part of the data may not show it."""
    model.ethogram, model.rate, model.inputs, model.exclusive = like.ethogram, like.rate, like.inputs, like.exclusive
    model.trained_on, model.licence = like.trained_on, like.licence
    return model


def _annotator(recording: Recording) -> str:
    """Keep the only annotator's name, by which some models tell styles apart."""
    return next(iter(recording.annotations)) if len(recording.annotations) == 1 else TRUTH


def fit_decoder_out_of_fold(model: Model, data: Dataset, truths: Mapping[str, Annotation], metric: str) -> tuple[Decoder, list[Trial]]:
    """Choose a decoder for a model by what it says of individuals, or recordings of the only one, that it did not learn from."""
    told = out_of_fold(model, data, truths)
    if not told:
        return Decoder(), []
    return fit_decoder(told, truths, metric=metric, groups=kept_together(data), deadline=model.deadline.share(DECODING))
