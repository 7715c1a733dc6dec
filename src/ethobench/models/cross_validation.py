"""Grouped cross-validation within the training data: out-of-fold predictions by which decoders and candidates are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.folds import assign_folds, default_grouping
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import Trial, fit_decoder

if TYPE_CHECKING:
    from ethobench.models.base import Model

AnyModel = TypeVar("AnyModel", bound="Model")
N_FOLDS = 3
RESERVED_FITS = 2.0  # time for the search for a decoder and the fit to all recordings, in fits to one fold
DECODING_SHARE = 0.25  # of the remaining time, for the search for a decoder
ANNOTATOR = "truth"


def fit_decoder_out_of_fold(model: Model, data: Dataset, truths: Mapping[str, Annotation], metric: str) -> tuple[Decoder, list[Trial]]:
    """Choose the decoder of a model by its out-of-fold predictions of the training recordings."""
    predictions = predict_out_of_fold(model, data, truths)
    if not predictions:
        return Decoder(), []
    groups = data.groups(default_grouping(data))
    return fit_decoder(predictions, truths, metric=metric, groups=groups, deadline=model.deadline.share(DECODING_SHARE))


def predict_out_of_fold(model: Model, data: Dataset, truths: Mapping[str, Annotation], n_folds: int = N_FOLDS) -> dict[str, Prediction]:
    """Predict every training recording by a model that was fitted to other individuals.

    Parameters
    ----------
    model : Model
        Its clones are fitted; it does not change.
    data : Dataset
    truths : mapping of recording id to Annotation
        The annotations to fit to.
    n_folds : int
        Maximum number of folds; at most the number of individuals.
    """
    data = replace(data, recordings=tuple(r.copy(annotations={_annotator(r): truths[r.id]}) for r in data))
    folds = inner_folds(data, truths, n_folds)
    predictions: dict[str, Prediction] = {}
    for number, held_out in enumerate(folds):
        clone = copy_fitted_metadata(model, model.clone())
        clone.deadline = model.deadline.share(1 / (len(folds) - number + RESERVED_FITS))
        training = [recording.id for recording in data if recording.id not in held_out]
        clone._fit(data.select(recordings=training), {name: truths[name] for name in training})
        predictions |= {name: clone.predict_probabilities(data[name]) for name in held_out}
    return {recording.id: predictions[recording.id] for recording in data if recording.id in predictions}


def inner_folds(data: Dataset, truths: Mapping[str, Annotation], n_folds: int = N_FOLDS) -> list[list[str]]:
    """Assign the observed recordings to folds by individual, or by recording if there is only one individual.

    Returns
    -------
    list of list of str
        The ids of the recordings that each fold holds out; empty if there are fewer than two groups.
    """
    observed = data.select(recordings=[r.id for r in data if iv.total(truths[r.id].observed.of_any())])
    by = default_grouping(observed) if len(observed) else "recording"
    if len({*observed.groups(by).values()}) < 2:
        return []
    assigned = assign_folds(observed, n_folds, by)
    return [[name for name, number in assigned.items() if number == fold] for fold in sorted({*assigned.values()})]


def copy_fitted_metadata(source: Model, target: AnyModel) -> AnyModel:
    """Copy behaviors, rate and inputs to a model that is fitted to a subset, and whether behaviors overlap; return it."""
    target.ethogram, target.rate, target.inputs, target.exclusive = source.ethogram, source.rate, source.inputs, source.exclusive
    target.trained_on, target.licence = source.trained_on, source.licence
    return target


def _annotator(recording: Recording) -> str:
    """Return the name of the only annotator, from which models of several annotators take the style."""
    return next(iter(recording.annotations)) if len(recording.annotations) == 1 else ANNOTATOR
