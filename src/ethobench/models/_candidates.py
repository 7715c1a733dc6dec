"""Candidates of the automatic model, judged on individuals that they did not see, within a budget of time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction
from ethobench.core import intervals as iv
from ethobench.core.folds import kept_together
from ethobench.learning.blending import fit_blend
from ethobench.learning.calibration import log_loss
from ethobench.metrics import score
from ethobench.models._base import Model
from ethobench.models._default import NO_NETWORK
from ethobench.models._out_of_fold import inner_folds, taking_after
from ethobench.models.boost import Boost
from ethobench.models.tcn import Tcn

FIRST_SHARE = 0.4  # of the budget that boosted trees may take
REFIT = 1.4  # how much longer learning from all takes than from all but one fold
FEWEST_UPDATES, PROBE = 75, 25
FEWEST_SECONDS = 300.0  # of annotated recordings, below which no network is tried


class Clock:
    """A budget of time, if there is one, and what was decided to keep it."""

    def __init__(self, budget: float | None) -> None:
        self.budget = budget
        self.notes: list[str] = []
        self._start = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._start

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return math.inf if self.budget is None else self.budget - self.elapsed


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
    """

    name: str
    predictions: dict[str, Prediction] = field(default_factory=dict)
    folds: int = 0
    seconds: float = 0.0
    dropped: bool = False

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
        self.predictions |= {name: model._predict(data[name]) for name in held_out}
        self.folds += 1
        taken = time.perf_counter() - started
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

    def __init__(self, data: Dataset, truths: Mapping[str, Annotation], like: Model) -> None:
        super().__init__("boost")
        started = time.perf_counter()
        self.first = taking_after(like, Boost(seed=like.seed))
        self.first.keypoints = dict(data.keypoints)
        self.rows = self.first.collect(data, truths)
        self.seconds = time.perf_counter() - started

    def learn_without(self, held_out: list[str]) -> Model:
        """Grow trees from the rows of the other recordings."""
        model = taking_after(self.first, Boost(seed=self.first.seed))
        model.keypoints = self.first.keypoints
        model.learn({name: rows for name, rows in self.rows.items() if name not in held_out})
        return model


class TcnCandidate(Candidate):
    """The network, with as many updates as there is time for."""

    def __init__(self, data: Dataset, truths: Mapping[str, Annotation], like: Model, updates: int | None = None) -> None:
        super().__init__("tcn")
        self.data, self.truths, self.like = data, truths, like
        self.params: dict[str, Any] = {} if updates is None else {"updates": updates}

    def learn_without(self, held_out: list[str]) -> Model:
        """Train on the other recordings."""
        model = taking_after(self.like, Tcn(seed=self.like.seed, **self.params))
        kept = self.data.select(recordings=[r.id for r in self.data if r.id not in held_out])
        model._fit(kept, {r.id: self.truths[r.id] for r in kept})
        return model


def run_candidates(
    data: Dataset, truths: Mapping[str, Annotation], known: Mapping[str, Annotation], like: Model, clock: Clock, n_folds: int
) -> list[Candidate]:
    """Judge the candidates that there is time for, and drop the network after one fold if it adds nothing to the trees there.

    Parameters
    ----------
    data : Dataset
    truths, known : mapping of recording to Annotation
        What is to be learnt, and what of it can be judged (`learnable`).
    like : Model
        Whose seed, inputs and rate the candidates share.
    clock : Clock
    n_folds : int
        At most.

    Returns
    -------
    list of Candidate
        Boosted trees first.
    """
    folds = _folds(data, truths, n_folds)
    boost = BoostCandidate(data, truths, like)
    if not folds:
        clock.notes.append("there is one annotated recording only, so nothing could be compared: boosted trees, decoded frame by frame")
        return [boost]
    taken = boost.judge(data, folds[0])
    used = folds
    if clock.budget is not None:
        more = (FIRST_SHARE * clock.budget - boost.seconds) / max(taken, 1e-9)
        used = folds[: max(2, 1 + int(max(more, 0)))]
    if len(used) < len(folds):
        clock.notes.append(f"{len(used)} of {len(folds)} folds were judged, to keep the budget")
    for held_out in used[1:]:
        boost.judge(data, held_out)
    tcn = _tcn(data, truths, like, clock, used, REFIT * taken)
    if tcn is None:
        return [boost]
    tcn.judge(data, used[0])
    if len(used) > 1 and not _helps(tcn, boost, known, kept_together(data)):
        tcn.dropped = True
        clock.notes.append("on the first fold the network added nothing to the trees, so it was left at that")
        return [boost, tcn]
    for held_out in used[1:]:
        tcn.judge(data, held_out)
    return [boost, tcn]


def _helps(candidate: Candidate, first: Candidate, known: Mapping[str, Annotation], groups: Mapping[str, str]) -> bool:
    """Tell whether the blend of both gives the candidate a weight, by the recordings that it was judged on so far."""
    names = [name for name in candidate.predictions if name in known and iv.total(known[name].observed.anywhere())]
    if not names:
        return True
    said = {each.name: {name: each.predictions[name] for name in names} for each in (first, candidate)}
    blend, _ = fit_blend(said, {name: known[name] for name in names}, groups)
    return blend.weights[candidate.name] > 0


def _tcn(
    data: Dataset, truths: Mapping[str, Annotation], like: Model, clock: Clock, folds: list[list[str]], reserved: float
) -> TcnCandidate | None:
    """Return the network with the updates that there is time for; None if they are too few to learn anything."""
    if find_spec("torch") is None:
        clock.notes.append(NO_NETWORK)
        return None
    length = sum(iv.total(truth.observed.anywhere()) / truth.rate for truth in truths.values())
    if length < FEWEST_SECONDS:
        clock.notes.append(f"{length:.0f} s of annotated recordings are too few to train a network on")
        return None
    if clock.budget is None:
        return TcnCandidate(data, truths, like)
    if clock.left - reserved <= 0:
        clock.notes.append("no time was left for a network")
        return None
    probe = TcnCandidate(data, truths, like, PROBE)
    started = time.perf_counter()
    probe.learn_without(folds[0])
    one = (time.perf_counter() - started) / PROBE
    updates = int((clock.left - reserved) / (one * (len(folds) + REFIT)))
    if updates < FEWEST_UPDATES:
        clock.notes.append("no time was left for a network")
        return None
    usual = int(Tcn().params.updates)
    if updates < usual:
        clock.notes.append(f"the network learnt in {updates} updates of {usual}, to keep the budget")
    return TcnCandidate(data, truths, like, min(updates, usual))


def _folds(data: Dataset, truths: Mapping[str, Annotation], n_folds: int) -> list[list[str]]:
    """Deal individuals to folds; recordings, where there is one individual; none, where there is one recording."""
    dealt = inner_folds(data, truths, n_folds)
    return [[name for name, own in dealt.items() if own == fold] for fold in sorted({*dealt.values()})]


def learnable(data: Dataset, truths: Mapping[str, Annotation], n_folds: int) -> dict[str, Annotation]:
    """Leave out, as not looked at, what a model could not know that was judged on it: behaviours of its own fold alone."""
    folds = _folds(data, truths, n_folds)
    shown = {name: {*np.unique(truth.behavior).tolist()} for name, truth in truths.items()}
    result = dict(truths)
    for held_out in folds:
        known = set().union(*(own for name, own in shown.items() if name not in held_out))
        for name in held_out:
            if strange := shown[name] - known:
                hidden = iv.union_all([iv.union(truths[name].spans(code)) for code in sorted(strange)])
                result[name] = truths[name].with_observed(truths[name].observed.apply(partial(iv.difference, b=hidden)))
    return result
