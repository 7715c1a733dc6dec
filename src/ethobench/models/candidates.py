"""Candidates of the automatic model, judged on individuals that they did not see, within a budget of time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction
from ethobench.core import intervals as iv
from ethobench.core.deadline import Deadline, OutOfTimeError
from ethobench.core.folds import default_grouping
from ethobench.core.progress import progress_range
from ethobench.decoding.blending import fit_blend
from ethobench.decoding.calibration import log_loss
from ethobench.metrics import score
from ethobench.models.base import Model
from ethobench.models.boost import Boost
from ethobench.models.cross_validation import copy_fitted_metadata, inner_folds
from ethobench.models.default import NO_NETWORK
from ethobench.models.tcn import Tcn
from ethobench.training.loop import Progress

REFIT = 1.5  # how much longer learning from all takes than from all but one fold
TIMING_NETWORK = 30.0  # seconds of an idle machine that must be left before the network is timed, which takes some itself
FEWEST_UPDATES = 75  # of a network, below which it is not worth its time
TIMED_UPDATES = 10  # after which the speed of a training is known
FEWEST_SECONDS = 300.0  # of annotated recordings, below which no network is tried
NETWORK_OVERHEAD = 1.5  # by which an update takes longer than the network alone: drawing and changing the examples
TREES_FIRST, JUDGED = 0.2, 0.65  # of the progress: after judging the trees where there is a network too, and after judging all
FITTING = 0.75  # of the time for a candidate's fold, the rest of which is for predicting


@dataclass(frozen=True)
class Shares:
    """How the time that is left after computing features is spent, where it is limited; the rest is kept for scoring.

    Attributes
    ----------
    boost, network : float
        For all trainings of boosted trees and of the network, those on all recordings included.
    decoding : float
        For choosing the decoder.
    """

    boost: float
    network: float
    decoding: float


WITH_NETWORK = Shares(0.3, 0.47, 0.13)
WITHOUT_NETWORK = Shares(0.68, 0.0, 0.2)


@dataclass
class Candidate:
    """A model that was judged.

    Attributes
    ----------
    name : str
    predictions : dict of recording to Prediction
        Made by models that did not see the recording.
    folds : int
        How many models that took.
    seconds : float
    dropped : bool
        Whether it was left after the first fold.
    recordings : tuple of str
        What it learns from, where that may not be all.
    deadline : Deadline
        Of the next training.
    typical_seconds : float
        How long training without a fold and predicting the fold took, on average.
    """

    name: str
    predictions: dict[str, Prediction] = field(default_factory=dict)
    folds: int = 0
    seconds: float = 0.0
    dropped: bool = False
    recordings: tuple[str, ...] = ()
    deadline: Deadline = field(default_factory=Deadline)
    typical_seconds: float = 0.0

    def learn_without(self, held_out: list[str]) -> Model:
        """Learn from the recordings that are not held out."""
        raise NotImplementedError

    def learn_all(self) -> Model:
        """Learn from all recordings."""
        started = time.perf_counter()
        model = self.learn_without([])
        self.seconds += time.perf_counter() - started
        return model

    def judge(self, data: Dataset, held_out: list[str]) -> float:
        """Learn from the others, predict those held out, and return the seconds that took."""
        started = time.perf_counter()
        model = self.learn_without(held_out)
        self.predictions |= {name: model.predict_probabilities(data[name]) for name in held_out}
        taken = time.perf_counter() - started
        self.typical_seconds = (self.typical_seconds * self.folds + taken) / (self.folds + 1)
        self.folds += 1
        self.seconds += taken
        return taken

    def row(self, truths: Mapping[str, Annotation]) -> dict[str, Any]:
        """Return what to tell of it, from the recordings that it was judged on."""
        told: dict[str, Any] = {"candidate": self.name, "folds": self.folds, "seconds": round(self.seconds, 1)}
        known = {name: truth for name, truth in truths.items() if name in self.predictions}
        if known:
            found = score({n: self.predictions[n].annotation for n in known}, known, resamples=0, behaviors="all").overall
            told |= {name: round(float(found[name]), 4) for name in ("f1", "bout_f1") if found.get(name) is not None}
            told["log_loss"] = round(log_loss({n: self.predictions[n] for n in known}, known), 4)
        return told


class BoostCandidate(Candidate):
    """Boosted trees: features are computed once for all folds."""

    def __init__(self, data: Dataset, truths: Mapping[str, Annotation], like: Model, deadline: Deadline) -> None:
        super().__init__("boost")
        started, computed = time.perf_counter(), time.process_time()
        self.first = copy_fitted_metadata(like, Boost(seed=like.seed))
        self.first.keypoints = dict(data.keypoints)
        self.first.deadline = deadline
        self.rows = self.first.collect(data, truths, WITHOUT_NETWORK.boost / (2 + REFIT))
        self.recordings = tuple(r.id for r in data if r.id in self.rows) if len(self.first.prepared) < len(data) else ()
        self.seconds = time.perf_counter() - started
        self.busyness = max(1.0, self.seconds / max(time.process_time() - computed, 1e-3))

    def learn_without(self, held_out: list[str]) -> Model:
        """Grow trees from the rows of the other recordings."""
        model = copy_fitted_metadata(self.first, Boost(seed=self.first.seed))
        model.keypoints = self.first.keypoints
        model.deadline = self.deadline.share(FITTING if held_out else 1.0)
        model.seconds_per_row = self.first.seconds_per_row
        model.learn({name: rows for name, rows in self.rows.items() if name not in held_out})
        self.first.seconds_per_row = model.seconds_per_row
        return model


class TcnCandidate(Candidate):
    """The network, trained for as long as there is time for."""

    def __init__(self, data: Dataset, truths: Mapping[str, Annotation], like: Model) -> None:
        super().__init__("tcn")
        self.data, self.truths, self.like = data, truths, like

    def learn_without(self, held_out: list[str]) -> Model:
        """Train on the other recordings."""
        model = copy_fitted_metadata(self.like, Tcn(seed=self.like.seed))
        model.deadline = self.deadline.share(FITTING if held_out else 1.0)
        if model.deadline.is_limited and held_out:
            model.progress = partial(_refuse_slow_training, model.deadline, self.deadline.clock())
        kept = self.data.select(recordings=[r.id for r in self.data if r.id not in held_out])
        model._fit(kept, {r.id: self.truths[r.id] for r in kept})
        return model


def _refuse_slow_training(deadline: Deadline, start: float, progress: Progress) -> None:
    """Stop a training at its beginning if there will be too few updates to learn anything."""
    done = progress.epoch * progress.steps + progress.step
    if done == TIMED_UPDATES:
        planned = progress.epochs * progress.steps
        possible = done + deadline.remaining * done / max(deadline.clock() - start, 1e-6)
        if possible < min(FEWEST_UPDATES, planned):
            raise OutOfTimeError(f"there is time for {possible:.0f} updates of the network only")


def run_candidates(
    data: Dataset,
    truths: Mapping[str, Annotation],
    known: Mapping[str, Annotation],
    like: Model,
    deadline: Deadline,
    notes: list[str],
    n_folds: int,
) -> list[Candidate]:
    """Judge the candidates that there is time for, and drop the network after one fold if it adds nothing to the trees there.

    Parameters
    ----------
    data : Dataset
    truths, known : mapping of recording to Annotation
        What is to be learnt, and what of it can be judged (`learnable`).
    like : Model
        Whose seed, inputs and rate the candidates share.
    deadline : Deadline
        Of everything, decoding and the trainings on all recordings included.
    notes : list of str
        Receives what was decided for want of time or data.
    n_folds : int
        At most.

    Returns
    -------
    list of Candidate
        Boosted trees first.
    """
    with progress_range(0.0, 0.05):
        boost = BoostCandidate(data, truths, like, deadline)
    notes += boost.first.fit_report.get("notes", [])
    if boost.recordings:  # there was no time for all
        data = data.select(recordings=boost.recordings)
        known = learnable(data, {r.id: truths[r.id].without_subjects() for r in data}, n_folds)
    folds = inner_folds(data, truths, n_folds)
    if not folds:
        notes.append("there is one annotated recording only, so nothing could be compared: boosted trees, decoded frame by frame")
        boost.deadline = deadline
        return [boost]
    tcn = _tcn(data, truths, like, deadline, notes, boost.busyness)
    shares = WITHOUT_NETWORK if tcn is None else WITH_NETWORK
    available = deadline.remaining
    with progress_range(0.05, JUDGED if tcn is None else TREES_FIRST):
        used = _judge_boost(boost, data, folds, shares.boost * available, deadline)
    if len(used) < len(folds):
        notes.append(f"{len(used)} of {len(folds)} inner folds were used, to keep the time budget")
    if tcn is None:
        return [boost]
    reserved = REFIT * boost.typical_seconds + (1 - shares.boost - shares.network) * available if deadline.is_limited else 0.0
    with progress_range(TREES_FIRST, JUDGED):
        _judge_network(tcn, boost, data, used, known, deadline.before(reserved), notes)
    return [boost, tcn] if tcn.folds else [boost]


def _judge_boost(boost: Candidate, data: Dataset, folds: list[list[str]], seconds: float, deadline: Deadline) -> list[list[str]]:
    """Judge boosted trees on the folds that there is time for, two at least; return these folds."""
    used = folds
    for place, held_out in enumerate(folds):
        if place >= len(used):
            break
        if deadline.is_limited:
            units = (2 if place == 0 else len(used)) + REFIT
            boost.deadline = deadline.until(deadline.clock() + seconds / units)
        with progress_range(place / len(used), (place + 1) / len(used), f"inner fold {place + 1} of {len(used)}"):
            taken = boost.judge(data, held_out)
        if place == 0 and deadline.is_limited:
            used = folds[: max(2, min(len(folds), int(seconds / max(taken, 1e-9) - REFIT)))]
    return used


def _judge_network(
    tcn: Candidate,
    boost: Candidate,
    data: Dataset,
    folds: list[list[str]],
    known: Mapping[str, Annotation],
    deadline: Deadline,
    notes: list[str],
) -> None:
    """Judge the network on the same folds as boosted trees; drop it after the first if it adds nothing to them."""
    for place, held_out in enumerate(folds):
        tcn.deadline = deadline.share(1 / (len(folds) - place + REFIT))
        try:
            with progress_range(place / len(folds), (place + 1) / len(folds), f"inner fold {place + 1} of {len(folds)}"):
                tcn.judge(data, held_out)
        except OutOfTimeError as error:
            notes.append(f"no network, to keep the time budget: {error}")
            tcn.dropped = True
            return
        if place == 0 and len(folds) > 1 and not _helps(tcn, boost, known, data.groups(default_grouping(data))):
            tcn.dropped = True
            notes.append("on the first fold the network added nothing to the trees, so it was left at that")
            return


def _helps(candidate: Candidate, first: Candidate, known: Mapping[str, Annotation], groups: Mapping[str, str]) -> bool:
    """Tell whether the blend of both gives the candidate a weight, by the recordings that it was judged on so far."""
    names = [name for name in candidate.predictions if name in known and iv.total(known[name].observed.of_any())]
    if not names:
        return True
    said = {each.name: {name: each.predictions[name] for name in names} for each in (first, candidate)}
    blend, _ = fit_blend(said, {name: known[name] for name in names}, groups)
    return blend.weights[candidate.name] > 0


def _tcn(
    data: Dataset, truths: Mapping[str, Annotation], like: Model, deadline: Deadline, notes: list[str], busyness: float = 1.0
) -> TcnCandidate | None:
    """Return the network; None if there is too little data, or not enough time for it to learn anything.

    `busyness` tells how many seconds pass for each second that this process computes.
    """
    if find_spec("torch") is None:
        notes.append(NO_NETWORK)
        return None
    length = sum(iv.total(truth.observed.of_any()) / truth.rate for truth in truths.values())
    if length < FEWEST_SECONDS:
        notes.append(f"{length:.0f} s of annotated recordings are too few to train a network on")
        return None
    if deadline.is_limited:
        if deadline.remaining < TIMING_NETWORK * busyness:
            notes.append("no network, to keep the time budget")
            return None
        possible = network_updates(data, like, WITH_NETWORK.network * deadline.remaining)
        if possible < FEWEST_UPDATES:
            notes.append(f"no network, to keep the time budget: there is time for about {possible:.0f} updates in each training only")
            return None
    return TcnCandidate(data, truths, like)


def network_updates(data: Dataset, like: Model, seconds: float) -> float:
    """Return how many updates each training of the network has, if two inner folds and the training on everything take so long."""
    if seconds <= 0:
        return 0.0
    model = copy_fitted_metadata(like, Tcn(seed=like.seed))
    model.keypoints = dict(data.keypoints)
    each = NETWORK_OVERHEAD * model.time_update(data)
    return FITTING * seconds / (2 + REFIT) / max(each, 1e-9)


def learnable(data: Dataset, truths: Mapping[str, Annotation], n_folds: int) -> dict[str, Annotation]:
    """Leave out, as not looked at, what a model could not know that was judged on it: behaviors of its own fold alone."""
    folds = inner_folds(data, truths, n_folds)
    shown = {name: {*np.unique(truth.behavior).tolist()} for name, truth in truths.items()}
    result = dict(truths)
    for held_out in folds:
        known = set().union(*(own for name, own in shown.items() if name not in held_out))
        for name in held_out:
            if strange := shown[name] - known:
                hidden = iv.union_all([iv.union(truths[name].spans(code)) for code in sorted(strange)])
                result[name] = truths[name].with_observed(truths[name].observed.apply(partial(iv.difference, b=hidden)))
    return result
