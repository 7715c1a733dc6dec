"""Candidates of model `auto`: boosted trees and a network, compared by inner cross-validation within a time budget."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction
from ethobench.core import intervals as iv
from ethobench.core.deadline import Deadline, OutOfTimeError
from ethobench.core.folds import default_grouping
from ethobench.core.processes import thread_count
from ethobench.core.progress import progress_range
from ethobench.decoding.blending import fit_blend
from ethobench.decoding.calibration import log_loss
from ethobench.decoding.decoder import Decoder
from ethobench.features.shared import share_values
from ethobench.metrics import score
from ethobench.models.base import Model
from ethobench.models.boost import Boost
from ethobench.models.cross_validation import FoldResult, copy_fitted_metadata, cross_validate, fit_without, inner_folds
from ethobench.models.row_sampling import BinnedRows
from ethobench.models.tcn import Tcn
from ethobench.training.loop import Progress

REFIT_COST = 1.5  # duration of a fit to all recordings, relative to a fit to all but one fold
MIN_FOLDS = 2  # inner folds that are evaluated in any case
MIN_TIMING_SECONDS = 30.0  # remaining time on an idle machine below which the speed of the network is not even measured
MIN_UPDATES = 75  # optimizer steps below which a network is not worth its time
TIMED_UPDATES = 10  # after which the speed of a training is known
MIN_ANNOTATED_SECONDS = 300.0  # below which no network is tried
NETWORK_OVERHEAD = 1.5  # duration of an update relative to the network alone: sampling and augmenting the examples
BOOST_PROGRESS, COMPARED_PROGRESS = 0.2, 0.65  # progress after evaluating the trees, where a network follows, and after all candidates
MIN_ENSEMBLE = 3  # networks of inner folds that are used instead of one trained on all recordings: not worse, and free
COMPARED_SMOOTHING = 1.0  # seconds over which probabilities are averaged before the network is judged; decoding does so anyway
MIN_NETWORK_GAIN = 0.005  # of frame F1 by the network, after smoothing, below which it is not worth its time
FIT_SHARE = 0.75  # of the time for a fold, the rest of which is for predicting
NO_NETWORK = (
    "torch is not installed, so auto uses boosted trees without a network. On poses of rats, its bout F1 is .02 lower then (95 % "
    "interval of the difference -.048 to .021, over 28 recordings); on accelerometers (HAR and seals), auto rarely uses it anyway. "
    'To install it: pip install "ethobench[nn]"'
)


@dataclass(frozen=True)
class TimeShares:
    """Shares of the time that remains after computing features; the rest is for scoring.

    Attributes
    ----------
    boost, network : float
        For all fits of boosted trees and of the network, including those to all recordings.
    decoding : float
        For choosing the decoder.
    """

    boost: float
    network: float
    decoding: float


WITH_NETWORK = TimeShares(0.3, 0.47, 0.13)
WITHOUT_NETWORK = TimeShares(0.68, 0.0, 0.2)


@dataclass
class Candidate:
    """A model that is evaluated by cross-validation.

    Attributes
    ----------
    name : str
    predictions : dict of recording id to Prediction
        Out-of-fold predictions.
    folds : int
        Number of folds that were evaluated.
    seconds : float
        Total duration of all fits and predictions.
    dropped : bool
        Whether it was given up after the first fold.
    recordings : tuple of str
        The recordings it is fitted to, if not all.
    fold_seconds : float
        Mean duration of fitting and predicting a fold.
    """

    name: str
    predictions: dict[str, Prediction] = field(default_factory=dict)
    folds: int = 0
    seconds: float = 0.0
    dropped: bool = False
    recordings: tuple[str, ...] = ()
    fold_seconds: float = 0.0

    @property
    def refit_seconds(self) -> float:
        """Expected duration of `fit_all`."""
        return REFIT_COST * self.fold_seconds

    def fit_without(self, held_out: Sequence[str], deadline: Deadline) -> Model:
        """Fit a model to the recordings that are not held out, until a deadline; leave time to predict those that are."""
        raise NotImplementedError

    def fit_all(self, deadline: Deadline) -> list[Model]:
        """Fit to all recordings, until a deadline; the predictions of the models are averaged."""
        started = time.perf_counter()
        model = self.fit_without([], deadline)
        self.seconds += time.perf_counter() - started
        return [model]

    def add_fold(self, fold: FoldResult) -> None:
        """Add the predictions of a fold and their duration."""
        self.predictions |= fold.predictions
        self.fold_seconds = (self.fold_seconds * self.folds + fold.seconds) / (self.folds + 1)
        self.folds += 1
        self.seconds += fold.seconds

    def summary(self, truths: Mapping[str, Annotation]) -> dict[str, Any]:
        """Return folds, seconds and out-of-fold scores as plain values."""
        summary: dict[str, Any] = {"candidate": self.name, "folds": self.folds, "seconds": round(self.seconds, 1)}
        evaluated = {name: truth for name, truth in truths.items() if name in self.predictions}
        if evaluated:
            annotations = {name: self.predictions[name].annotation for name in evaluated}
            scores = score(annotations, evaluated, resamples=0, behaviors="all").overall
            summary |= {name: round(float(scores[name]), 4) for name in ("f1", "bout_f1") if scores.get(name) is not None}
            summary["log_loss"] = round(log_loss({name: self.predictions[name] for name in evaluated}, evaluated), 4)
        return summary


class BoostCandidate(Candidate):
    """Boosted trees. Features are computed once for all folds."""

    def __init__(self, data: Dataset, truths: Mapping[str, Annotation], template: Model, deadline: Deadline) -> None:
        super().__init__("boost")
        started, computed = time.perf_counter(), time.process_time()
        self.first = copy_fitted_metadata(template, Boost(seed=template.seed, condition=template.params.condition))
        self.first.keypoints = dict(data.keypoints)
        self.first.deadline = deadline
        self.rows = self.first.collect_rows(data, truths, WITHOUT_NETWORK.boost / (MIN_FOLDS + REFIT_COST))
        self.first.binned = BinnedRows.from_rows(self.rows, thread_count())
        if len(self.first.recordings_used) < len(data):
            self.recordings = tuple(recording.id for recording in data if recording.id in self.rows)
        self.seconds = time.perf_counter() - started
        self.seconds_per_cpu_second = max(1.0, self.seconds / max(time.process_time() - computed, 1e-3))

    def fit_without(self, held_out: Sequence[str], deadline: Deadline) -> Model:
        """Fit trees to the rows of the other recordings."""
        model = copy_fitted_metadata(self.first, Boost(seed=self.first.seed, condition=self.first.params.condition))
        model.keypoints = self.first.keypoints
        model.deadline = deadline.share(FIT_SHARE if held_out else 1.0)
        model.seconds_per_row, model.binned = self.first.seconds_per_row, self.first.binned
        model.fit_rows({name: rows for name, rows in self.rows.items() if name not in held_out})
        self.first.seconds_per_row, model.binned = model.seconds_per_row, None
        return model


class NetworkCandidate(Candidate):
    """Temporal convolutional networks: those of the inner folds together, or one where there are few folds."""

    def __init__(self, data: Dataset, truths: Mapping[str, Annotation], template: Model) -> None:
        super().__init__("tcn")
        self.data, self.truths, self.template = data, truths, template
        self.fold_models: list[Model] = []

    @property
    def refit_seconds(self) -> float:
        """Expected duration of `fit_all`."""
        return 0.0 if len(self.fold_models) >= MIN_ENSEMBLE else super().refit_seconds

    def fit_all(self, deadline: Deadline) -> list[Model]:
        """Return the networks of the inner folds, which together were trained on all recordings; train one if there are few."""
        return self.fold_models if len(self.fold_models) >= MIN_ENSEMBLE else super().fit_all(deadline)

    def fit_without(self, held_out: Sequence[str], deadline: Deadline) -> Model:
        """Train a network on the other recordings."""
        model = copy_fitted_metadata(self.template, make_network(self.template))
        model.deadline = deadline.share(FIT_SHARE if held_out else 1.0)
        if model.deadline.is_limited and held_out:
            model.progress = partial(stop_slow_training, model.deadline, deadline.clock())
        fitted = fit_without(model, self.data, self.truths, held_out)
        if held_out:
            self.fold_models.append(fitted)
        return fitted


def make_network(template: Model) -> Tcn:
    """Return the network that is blended with the trees."""
    return Tcn(seed=template.seed, condition=template.params.condition)


def stop_slow_training(deadline: Deadline, start: float, progress: Progress) -> None:
    """Stop a training after its first updates if there is not enough time for it to be useful.

    Raises
    ------
    OutOfTimeError
        If fewer than `MIN_UPDATES` updates are possible.
    """
    done = progress.epoch * progress.steps + progress.step
    if done == TIMED_UPDATES:
        planned = progress.epochs * progress.steps
        possible = done + deadline.remaining * done / max(deadline.clock() - start, 1e-6)
        if possible < min(MIN_UPDATES, planned):
            raise OutOfTimeError(f"there is only time for {possible:.0f} updates of the network")


@dataclass
class Comparison:
    """The result of comparing candidates.

    Attributes
    ----------
    candidates : list of Candidate
        Boosted trees first.
    data : Dataset
        The recordings that were used.
    truths : dict of recording id to Annotation
        What candidates are scored against (`evaluable_truths`).
    notes : list of str
        Decisions because of too little time or data.
    """

    candidates: list[Candidate]
    data: Dataset
    truths: dict[str, Annotation]
    notes: list[str]


def compare_candidates(data: Dataset, truths: Mapping[str, Annotation], template: Model, deadline: Deadline, n_folds: int) -> Comparison:
    """Evaluate the candidates for which there is time. The network is dropped after one fold if it does not improve the blend.

    Parameters
    ----------
    data : Dataset
    truths : mapping of recording id to Annotation
    template : Model
        The model whose seed, inputs and rate the candidates share.
    deadline : Deadline
        Of everything, including decoding and the fits to all recordings.
    n_folds : int
        Maximum number of inner folds.
    """
    with progress_range(0.0, 0.05):
        boost = BoostCandidate(data, truths, template, deadline)
    notes = list(boost.first.fit_report.get("notes", []))
    if boost.recordings:  # there was not enough time for all
        data = data.select(recordings=boost.recordings)
    folds = inner_folds(data, truths, n_folds)
    comparison = Comparison([boost], data, evaluable_truths({r.id: truths[r.id].without_subjects() for r in data}, folds), notes)
    if not folds:
        notes.append("only one annotated recording, so nothing could be compared: boosted trees, decoded frame by frame")
        return comparison
    network = make_network_candidate(data, truths, template, deadline, notes, boost.seconds_per_cpu_second)
    shares = WITHOUT_NETWORK if network is None else WITH_NETWORK
    available = deadline.remaining
    with progress_range(0.05, COMPARED_PROGRESS if network is None else BOOST_PROGRESS):
        limit = deadline.share(shares.boost)
        for fold in cross_validate(boost.fit_without, data, folds, limit, reserved_fits=REFIT_COST, min_folds=MIN_FOLDS):
            boost.add_fold(fold)
    if boost.folds < len(folds):
        notes.append(f"{boost.folds} of {len(folds)} inner folds were used, to keep the time budget")
    if network is None:
        return comparison
    reserved = REFIT_COST * boost.fold_seconds + (1 - shares.boost - shares.network) * available if deadline.is_limited else 0.0
    with progress_range(BOOST_PROGRESS, COMPARED_PROGRESS):
        _evaluate_network(network, comparison, folds[: boost.folds], deadline.before(reserved))
    if network.folds:
        comparison.candidates.append(network)
    return comparison


def evaluable_truths(truths: Mapping[str, Annotation], folds: Sequence[Sequence[str]]) -> dict[str, Annotation]:
    """Mark behaviors as unobserved that occur in one fold only, since the model evaluated on that fold was not trained on them."""
    annotated = {name: {*np.unique(truth.behavior).tolist()} for name, truth in truths.items()}
    evaluable = dict(truths)
    for held_out in folds:
        trained = set().union(*(codes for name, codes in annotated.items() if name not in held_out))
        for name in held_out:
            if untrained := annotated[name] - trained:
                spans = iv.union_all([iv.union(truths[name].spans(code)) for code in sorted(untrained)])
                evaluable[name] = truths[name].with_observed(truths[name].observed.apply(partial(iv.difference, b=spans)))
    return evaluable


def make_network_candidate(
    data: Dataset,
    truths: Mapping[str, Annotation],
    template: Model,
    deadline: Deadline,
    notes: list[str],
    seconds_per_cpu_second: float = 1.0,
) -> NetworkCandidate | None:
    """Return the network; None, with a note, if there is too little data or not enough time."""
    if find_spec("torch") is None:
        notes.append(NO_NETWORK)
        return None
    seconds = sum(iv.total(truth.observed.of_any()) / truth.rate for truth in truths.values())
    if seconds < MIN_ANNOTATED_SECONDS:
        notes.append(f"no network: {seconds:.0f} s of annotated recordings are not enough to train one")
        return None
    if deadline.is_limited:
        if deadline.remaining < MIN_TIMING_SECONDS * seconds_per_cpu_second:
            notes.append("no network, to keep the time budget")
            return None
        possible = _possible_updates(data, template, WITH_NETWORK.network * deadline.remaining)
        if possible < MIN_UPDATES:
            notes.append(f"no network, to keep the time budget: there is only time for about {possible:.0f} updates in each training")
            return None
    return NetworkCandidate(data, truths, template)


def _possible_updates(data: Dataset, template: Model, seconds: float) -> float:
    """Return the updates of each training of the network, if two inner folds and the fit to all recordings take `seconds`."""
    if seconds <= 0:
        return 0.0
    model = copy_fitted_metadata(template, make_network(template))
    model.keypoints = dict(data.keypoints)
    update_seconds = NETWORK_OVERHEAD * model.time_update(data)
    return FIT_SHARE * seconds / (MIN_FOLDS + REFIT_COST) / max(update_seconds, 1e-9)


def _evaluate_network(network: NetworkCandidate, comparison: Comparison, folds: list[list[str]], deadline: Deadline) -> None:
    """Evaluate the network on the same folds as boosted trees; drop it after the first if it does not improve them."""
    try:
        for fold in cross_validate(network.fit_without, comparison.data, folds, deadline, reserved_fits=REFIT_COST):
            network.add_fold(fold)
            if network.folds == 1 and len(folds) > 1 and not _improves_blend(network, comparison):
                comparison.notes.append("the network did not improve on the trees in the first fold, so it is not used")
                network.dropped = True
                return
    except OutOfTimeError as error:
        comparison.notes.append(f"no network, to keep the time budget: {error}")
        network.dropped = True


def _improves_blend(candidate: Candidate, comparison: Comparison) -> bool:
    """Return whether the blend with boosted trees is better than these alone, on the recordings evaluated so far."""
    truths, groups = comparison.truths, comparison.data.groups(default_grouping(comparison.data))
    names = [name for name in candidate.predictions if name in truths and iv.total(truths[name].observed.of_any())]
    if not names:
        return True
    predictions = {each.name: {name: each.predictions[name] for name in names} for each in (comparison.candidates[0], candidate)}
    return improves_first(predictions, {name: truths[name] for name in names}, groups)


def improves_first(
    predictions: Mapping[str, Mapping[str, Prediction]], truths: Mapping[str, Annotation], groups: Mapping[str, str]
) -> bool:
    """Return whether the blend of all models has a better frame F1 than the first; both are smoothed, since decoding smooths anyway.

    Parameters
    ----------
    predictions : mapping of model to mapping of recording to Prediction
        Out-of-fold, of the same recordings.
    truths : mapping of recording to Annotation
    groups : mapping of recording to str
        Individuals.
    """
    first = next(iter(predictions))
    with share_values():
        blends = [fit_blend(models, truths, groups) for models in (predictions, {first: predictions[first]})]
    if blends[0][0].weights[first] == 1:
        return False
    values = []
    for blend, blended in blends:
        decoder = Decoder(
            priors=blend.priors(next(iter(blended.values())).ethogram), smoothing="mean", smoothing_seconds=COMPARED_SMOOTHING
        )
        decoded = {name: decoder.apply(prediction).annotation for name, prediction in blended.items()}
        values.append(float(score(decoded, truths, resamples=0, behaviors="all").overall.get("f1", np.nan)))
    return values[0] - values[1] >= MIN_NETWORK_GAIN or bool(np.isnan(values).any())
