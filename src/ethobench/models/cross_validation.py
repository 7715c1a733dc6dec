"""Grouped cross-validation within the training data: out-of-fold predictions by which decoders and candidates are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.deadline import Deadline
from ethobench.core.folds import assign_folds, default_grouping
from ethobench.core.progress import progress_range
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import Trial, fit_decoder

if TYPE_CHECKING:
    from ethobench.models.base import Model

AnyModel = TypeVar("AnyModel", bound="Model")
N_FOLDS = 3
RESERVED_FITS = 2.0  # time for the search for a decoder and the fit to all recordings, in fits to one fold
DECODING_SHARE = 0.25  # of the remaining time, for the search for a decoder
PREDICTED_PROGRESS, DECODED_PROGRESS = 0.6, 0.7  # progress of a fit after the out-of-fold predictions, and after the search for a decoder
ANNOTATOR = "truth"


@dataclass(frozen=True)
class FoldResult:
    """The result of one fold of a cross-validation.

    Attributes
    ----------
    predictions : dict of recording id to Prediction
        Of the recordings that were held out.
    seconds : float
        Duration of fitting and predicting.
    """

    predictions: dict[str, Prediction]
    seconds: float


def cross_validate(
    fit: Callable[[Sequence[str], Deadline], Model],
    data: Dataset,
    folds: Sequence[Sequence[str]],
    deadline: Deadline,
    *,
    reserved_fits: float,
    min_folds: int | None = None,
) -> Iterator[FoldResult]:
    """Fit a model for each fold, and predict the recordings that the fold holds out. The caller may stop after any fold.

    Parameters
    ----------
    fit : callable
        Takes the ids of the recordings to hold out and a deadline; returns a model fitted to the others.
    data : Dataset
    folds : sequence of sequence of str
        The ids of the recordings that each fold holds out; see `inner_folds`.
    deadline : Deadline
        Of all folds and of the time that is reserved. Each fold gets the same share of the time that remains.
    reserved_fits : float
        Time to reserve for what follows, such as a fit to all recordings, in fits to one fold.
    min_folds : int, optional
        With a time limit, the number of folds that are evaluated in any case; the duration of the first decides how many more. All by
        default.

    Yields
    ------
    FoldResult
    """
    n_folds, total = len(folds), deadline.remaining
    min_folds = min(min_folds or n_folds, n_folds)
    for number, held_out in enumerate(folds):
        if number == n_folds:
            return
        remaining_fits = (n_folds - number if number else min_folds) + reserved_fits
        with progress_range(number / n_folds, (number + 1) / n_folds, f"inner fold {number + 1} of {n_folds}"):
            started = deadline.clock()
            model = fit(held_out, deadline.share(1 / remaining_fits))
            predictions = {name: model.predict_probabilities(data[name]) for name in held_out}
            seconds = deadline.clock() - started
        if number == 0 and deadline.is_limited:
            n_folds = max(min_folds, min(n_folds, int(total / max(seconds, 1e-9) - reserved_fits)))
        yield FoldResult(predictions, seconds)


def fit_decoder_out_of_fold(model: Model, data: Dataset, truths: Mapping[str, Annotation], metric: str) -> tuple[Decoder, list[Trial]]:
    """Choose the decoder of a model by its out-of-fold predictions of the training recordings."""
    with progress_range(0.0, PREDICTED_PROGRESS):
        predictions = predict_out_of_fold(model, data, truths)
    if not predictions:
        return Decoder(), []
    groups = data.groups(default_grouping(data))
    with progress_range(PREDICTED_PROGRESS, DECODED_PROGRESS):
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

    def fit(held_out: Sequence[str], deadline: Deadline) -> Model:
        clone = copy_fitted_metadata(model, model.clone())
        clone.deadline = deadline
        return fit_without(clone, data, truths, held_out)

    predictions: dict[str, Prediction] = {}
    for fold in cross_validate(fit, data, inner_folds(data, truths, n_folds), model.deadline, reserved_fits=RESERVED_FITS):
        predictions |= fold.predictions
    return {recording.id: predictions[recording.id] for recording in data if recording.id in predictions}


def fit_without(model: AnyModel, data: Dataset, truths: Mapping[str, Annotation], held_out: Sequence[str]) -> AnyModel:
    """Fit a model to the recordings that are not held out; return it."""
    training = [recording.id for recording in data if recording.id not in held_out]
    model._fit(data.select(recordings=training), {name: truths[name] for name in training})
    return model


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
    target.trained_on, target.licence, target.role_inputs = source.trained_on, source.licence, source.role_inputs
    return target


def _annotator(recording: Recording) -> str:
    """Return the name of the only annotator, from which models of several annotators take the style."""
    return next(iter(recording.annotations)) if len(recording.annotations) == 1 else ANNOTATOR
