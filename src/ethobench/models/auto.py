"""The model to take where there is no time to choose: boosted trees and a network, blended, calibrated and decoded."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.folds import default_grouping
from ethobench.core.progress import progress_range
from ethobench.decoding.abstention import abstain, coverage_curve
from ethobench.decoding.blending import Blend, fit_blend, weighted_mean
from ethobench.decoding.calibration import calibration_error
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import Trial, check_metric, fit_decoder
from ethobench.metrics import score
from ethobench.models.base import Model, register_model
from ethobench.models.boost import Boost
from ethobench.models.candidates import JUDGED, REFIT, Candidate, learnable, run_candidates
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.input_checks import TrainingRange
from ethobench.models.inputs import SignalModel, plain_keypoints, stated_keypoints
from ethobench.models.saving import load_model

FACTS = "auto.json"
DECODED = 300_000  # frames on which decoders are compared
FEWEST_FRAMES = 4  # that are left of a short bout
SEARCH_COST = 100.0  # times that scoring takes: what a search for a decoder costs that tries the most important ways
DECODING = 0.1  # of the progress that choosing a decoder makes up
REFIT_GRACE = 0.05  # of a limited time that each training on all recordings has in any case, since that is what comes out
SCORING = 0.04  # of a limited time that is kept for scoring the candidates


@hyperparameters
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    metric : str
        What bouts are decoded for: ``"balanced"`` (mean of frame and bout F1), ``"f1"``, ``"bout_f1"``, or another figure of suite
        ``ethobench``.
    budget : float, optional
        Seconds that one `fit` may take, about: if they are too few, there are fewer folds, trees and decoders, the network trains for
        a shorter time, or there are boosted trees only. Then what comes out depends on the speed of the machine; without a budget it
        does not.
    unknown : float
        Frames whose most probable behavior has a lower probability are left unobserved; 0 for none. Where behaviors overlap, frames
        that are less sure than this of any of them, of its presence or its absence.
    folds : int
        Parts of the training data on which candidates are judged, at most.
    """

    metric: str = "balanced"
    budget: float | None = None
    unknown: float = 0.0
    folds: int = 3

    def __post_init__(self) -> None:
        check_metric(self.metric)
        if not 0 <= self.unknown < 1:
            raise EthobenchError(f"unknown is a probability, 0 or more and below 1, not {self.unknown}")
        if self.folds < 2 or (self.budget is not None and not self.budget > 0):
            raise EthobenchError("auto needs at least two folds, and a budget of some seconds")


@register_model("auto")
class Auto(SignalModel):
    """Candidates are judged on individuals that they did not see, then learn from all."""

    title = "the best of boosted trees and a network, chosen by cross-validation; tags and poses"
    packages = Boost.packages
    Params = Params
    grid = {"metric": ("balanced", "f1", "bout_f1")}  # noqa: RUF012
    revision = 4
    supports_deadline = True

    parts: dict[str, Model]
    blend: Blend

    def __init__(self, *, seed: int = 0, decode: str = "", **params: Any) -> None:
        if decode and params.get("metric", decode) != decode:
            raise EthobenchError(f"auto decodes for one metric: {decode!r} (decode) or {params['metric']!r} (metric)?")
        super().__init__(seed=seed, **{**params, **({"metric": decode} if decode else {})})

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.keypoints = dict(data.keypoints)
        merged = learnable(data, {name: truth.without_subjects() for name, truth in truths.items()}, self.params.folds)
        started, notes = time.perf_counter(), list[str]()
        now = self.deadline.clock()
        deadline = self.deadline.until(math.inf if self.params.budget is None else now + self.params.budget)
        tried = run_candidates(data, truths, merged, self, deadline, notes, self.params.folds)
        candidates = [candidate for candidate in tried if not candidate.dropped]
        if tried[0].recordings and len(tried[0].recordings) < len(data):  # there was no time for all of them
            data = data.select(recordings=tried[0].recordings)
            merged = learnable(data, {r.id: truths[r.id].without_subjects() for r in data}, self.params.folds)
        groups = data.groups(default_grouping(data))
        seen = {name: truth for name, truth in merged.items() if iv.total(truth.observed.of_any())}
        judged = {name: truth for name, truth in seen.items() if all(name in c.predictions for c in candidates)}
        said = {c.name: {name: c.predictions[name] for name in judged} for c in candidates}
        self.blend, self.decoder = Blend({candidates[0].name: 1.0}, {}), Decoder()
        trials: list[Trial] = []
        if judged:
            self.blend, joined = fit_blend(said, judged, groups)
            priors = self.blend.priors(data.ethogram)
            refit = REFIT * sum(c.typical_seconds for c in candidates if self.blend.weights.get(c.name, 0) > 0)
            limit = _without_scoring(deadline).before(refit)
            with progress_range(JUDGED, JUDGED + DECODING):
                self.decoder, trials = fit_decoder_on_subsample(joined, judged, self.params.metric, groups, priors, limit)
        elif candidates[0].predictions:
            notes.append("no behavior was shown by two that could be compared: boosted trees, decoded frame by frame")
        self.training_range = TrainingRange.fit([self.signal_baseline(recording) for recording in data])
        self.parts = self._learn_all([c for c in candidates if self.blend.weights.get(c.name, 0) > 0], deadline)
        rows = [{**c.row(judged), "weight": self.blend.weights.get(c.name, 0.0)} for c in tried]
        notes += [note for part in self.parts.values() for note in part.fit_report.get("notes", [])]
        seconds = round(time.perf_counter() - started, 1)
        self.fit_report = {"candidates": rows, "budget": self.params.budget, "seconds": seconds, "notes": notes}
        if judged:
            plain = {name: weighted_mean({c: own[name] for c, own in said.items()}, self.blend.weights) for name in judged}
            self.fit_report |= _figures(plain, joined, judged, trials)

    def preparation_seconds(self, data: Dataset) -> float:
        """Estimate the seconds that computing the features of all recordings takes, by those of one of them."""
        return Boost(seed=self.seed).preparation_seconds(data)

    def prepare(self, data: Dataset, deadline: Deadline) -> None:
        """Compute the features of recordings ahead of all trainings that share them, until a deadline."""
        Boost(seed=self.seed).prepare(data, deadline)

    def _learn_all(self, candidates: list[Candidate], deadline: Deadline) -> dict[str, Model]:
        """Let candidates learn from all recordings, each for its share of the time left."""
        parts = {}
        limit = _without_scoring(deadline)
        costs = [max(c.typical_seconds, 1e-9) for c in candidates]
        for place, candidate in enumerate(candidates):
            candidate.deadline = limit.share(costs[place] / sum(costs[place:]))
            if deadline.is_limited and candidate.deadline.remaining < REFIT_GRACE * (deadline.end - deadline.start):
                candidate.deadline = Deadline(REFIT_GRACE * (deadline.end - deadline.start), clock=deadline.clock)
            start = JUDGED + DECODING + (1 - JUDGED - DECODING) * sum(costs[:place]) / sum(costs)
            stop = JUDGED + DECODING + (1 - JUDGED - DECODING) * sum(costs[: place + 1]) / sum(costs)
            with progress_range(start, stop, "all recordings"):
                parts[candidate.name] = candidate.learn_all()
        return parts

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        return self.blend.apply({name: part.predict_probabilities(recording, baseline) for name, part in self.parts.items()})

    def _decode(self, prediction: Prediction) -> Prediction:
        """Turn probabilities into bouts; what is not sure enough is left unobserved."""
        if not self.params.unknown:
            return super()._decode(prediction)
        annotation = super()._decode(abstain(prediction, self.params.unknown)).annotation
        return Prediction(
            prediction.probabilities, prediction.ethogram, prediction.rate, annotation=annotation, exclusive=prediction.exclusive
        )

    def context(self, rate: float) -> int | None:
        """Return how many frames beside a stretch decide what is predicted in it."""
        return max(part.context(rate) or 0 for part in self.parts.values())

    def _stride(self) -> int:
        return math.lcm(*(part._stride() for part in self.parts.values()))

    def _save(self, folder: Path) -> None:
        facts = {
            "blend": self.blend.to_dict(),
            "parts": list(self.parts),
            "keypoints": plain_keypoints(self.keypoints),
            "training_range": None if self.training_range is None else asdict(self.training_range),
        }
        (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")
        for name, part in self.parts.items():
            part.save(folder / name)

    def _load(self, folder: Path) -> None:
        from ethobench.core.files import read_json

        facts = read_json(folder / FACTS)
        try:
            self.blend, self.keypoints = Blend.from_dict(facts["blend"]), stated_keypoints(facts["keypoints"])
            self.training_range = TrainingRange.from_dict(facts["training_range"]) if facts["training_range"] else None
            names = [name for name in ("boost", "tcn") if name in facts["parts"]]
        except (KeyError, TypeError, ValueError, EthobenchError) as error:
            raise FormatError(folder / FACTS, f"the model's facts are damaged ({error})") from None
        self.parts = {name: load_model(folder / name) for name in names}
        if other := [name for name, part in self.parts.items() if part.name != name]:
            raise FormatError(folder / other[0], f"this is a model {self.parts[other[0]].name!r}, where {other[0]!r} is expected")


def fit_decoder_on_subsample(
    predictions: Mapping[str, Prediction],
    truths: Mapping[str, Annotation],
    metric: str,
    groups: Mapping[str, str],
    priors: Mapping[str, float],
    deadline: Deadline | None = None,
) -> tuple[Decoder, list[Trial]]:
    """Choose how probabilities become bouts; where there are very many frames, on every n-th of them."""
    every = max(1, round(sum(p.n_frames for p in predictions.values()) / DECODED))
    lengths = np.concatenate([truth.stop - truth.start for truth in truths.values()])
    lengths = lengths[lengths > 0]  # but for point events
    shortest = every
    if len(lengths):  # short bouts must still be seen
        shortest = max(1, int(np.quantile(lengths, 0.1)) // FEWEST_FRAMES)
        every = min(every, shortest)
    said, true = _thinned_all(predictions, truths, every)
    if deadline is not None and deadline.is_limited:
        start = deadline.clock()
        score({name: prediction.annotation for name, prediction in said.items()}, true, resamples=0, behaviors="all")
        needed = SEARCH_COST * (deadline.clock() - start)
        if needed > deadline.remaining and every < shortest:
            every = max(every, min(shortest, math.ceil(every * needed / max(deadline.remaining, 1e-6))))
            said, true = _thinned_all(predictions, truths, every)
    decoder, trials = fit_decoder(said, true, metric=metric, groups=groups, priors=priors, deadline=deadline)
    # a second has more frames at the full rate, and should carry the same evidence
    return replace(decoder, emission_weight=decoder.emission_weight / every), trials


def _figures(
    plain: Mapping[str, Prediction], joined: Mapping[str, Prediction], truths: Mapping[str, Annotation], trials: list[Trial]
) -> dict[str, Any]:
    """Return what out-of-fold predictions tell of the blend: before calibration, after it, decoded, and with frames left out."""
    before, after = (round(calibration_error(side, truths), 4) for side in (plain, joined))
    told: dict[str, Any] = {"calibration_error": {"before": before, "after": after}}
    curve = [point._asdict() for point in coverage_curve(joined, truths) if point.coverage > 0]
    told["coverage"] = [{key: round(value, 4) if np.isfinite(value) else None for key, value in point.items()} for point in curve]
    for trial in trials:
        if trial.chosen:
            told["decoded"] = {"f1": round(trial.f1, 4), "bout_f1": round(trial.bout_f1, 4), "tried": len(trials)}
    return told


def _without_scoring(deadline: Deadline) -> Deadline:
    """Return a deadline that leaves time for scoring the candidates."""
    return deadline.before(SCORING * (deadline.end - deadline.start)) if deadline.is_limited else deadline


def _thinned_all(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], every: int
) -> tuple[dict[str, Prediction], dict[str, Annotation]]:
    """Take every n-th frame of predictions and of their truths."""
    pairs = {name: _thinned(prediction, truths[name], every) for name, prediction in predictions.items()}
    return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}


def _thinned(prediction: Prediction, truth: Annotation, every: int) -> tuple[Prediction, Annotation]:
    """Take every n-th frame of a prediction and of its truth."""
    if every == 1:
        return prediction, truth
    rate = prediction.rate / every
    slower = truth.resample(rate)
    n = min(slower.n_frames, -(-prediction.n_frames // every))
    thin = Prediction(prediction.probabilities[::every][:n], prediction.ethogram, rate, exclusive=prediction.exclusive)
    return thin, slower.crop(0, n)
