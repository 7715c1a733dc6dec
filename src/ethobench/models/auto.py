"""The model to take where there is no time to choose: boosted trees and a network, blended, calibrated and decoded."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.learning.calibration import (
    Calibration,
    calibrate_across,
    calibration_error,
    coverage_curve,
    fit_calibration,
    log_loss,
    with_probabilities,
)
from ethobench.learning.decoding import Decoder, Trial, check_metric, fit_decoder
from ethobench.models._base import Model, load_model, register_model
from ethobench.models._candidates import Candidate, Clock, run_candidates
from ethobench.models._familiar import Familiar
from ethobench.models._inputs import SignalModel, plain_keypoints, stated_keypoints

FACTS = "auto.json"
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
DECODED = 300_000  # frames on which decoders are compared


@dataclass(frozen=True)
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    metric : str
        What bouts are decoded for: ``"balanced"`` (mean of frame and bout F1), ``"f1"``, ``"bout_f1"``, or another figure of suite
        ``ethobench``.
    budget : float, optional
        Seconds that training may take, about: if it runs short, there are fewer folds, the network learns for a shorter time, or
        there are boosted trees only. Then what comes out depends on the speed of the machine; without a budget it does not.
    unknown : float
        Frames whose most probable behaviour has a lower probability are left unobserved; 0 for none.
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


@register_model
class Auto(SignalModel):
    """Candidates are judged on individuals that they did not see, then learn from all."""

    title = "the best of boosted trees and a network, chosen by cross-validation; tags and poses"
    Params = Params
    grid = {"metric": ("balanced", "f1", "bout_f1")}  # noqa: RUF012

    exclusive: bool
    parts: dict[str, Model]
    weights: dict[str, float]
    calibrations: dict[str, Calibration]
    trials: list[Trial]

    def __init__(self, *, seed: int = 0, decode: str = "", **params: Any) -> None:
        super().__init__(seed=seed, **({"metric": decode} if decode else {}), **params)

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.keypoints = dict(data.keypoints)
        merged = {name: truth.without_subjects() for name, truth in truths.items()}
        self.exclusive = all(truth.is_exclusive for truth in merged.values())
        groups = {recording.id: recording.individual for recording in data}
        clock = Clock(self.params.budget)
        candidates = run_candidates(data, truths, self, clock, self.params.folds)
        judged = {name: truth for name, truth in merged.items() if all(name in c.predictions for c in candidates)}
        self.trials = []
        self._blend(candidates, judged, groups)
        self.decoder = self._choose_decoder(candidates, judged, groups)
        self.familiar = Familiar.of([self._baseline(recording) for recording in data])
        self.parts = {c.name: c.learn_all() for c in candidates if self.weights[c.name] > 0}
        self._tell(candidates, judged, clock)

    def _blend(self, candidates: list[Candidate], truths: Mapping[str, Annotation], groups: Mapping[str, str]) -> None:
        """Calibrate every candidate, and find the weights under which rare and common behaviours are most probable."""
        self.calibrations = {}
        shown = {}
        for candidate in candidates:
            own = {name: candidate.predictions[name] for name in truths}
            if not own:
                size = len(self.ethogram or ()) + (self.exclusive and (self.ethogram is not None and self.ethogram.background is None))
                self.calibrations[candidate.name] = Calibration(1.0, (0.0,) * size, self.exclusive)
                continue
            self.calibrations[candidate.name] = fit_calibration(own, truths, groups=groups)
            shown[candidate.name] = calibrate_across(own, truths, groups=groups)
        names = [c.name for c in candidates]
        self.weights = {names[0]: 1.0} | dict.fromkeys(names[1:], 0.0)
        if len(names) == 2 and len(shown) == 2:
            losses = []
            for share in WEIGHTS:
                mixed = {name: _mixed(shown, {names[0]: 1 - share, names[1]: share}, name) for name in truths}
                losses.append(log_loss(mixed, truths, balanced=True))
            best = WEIGHTS[int(np.argmin(losses))]
            self.weights = {names[0]: 1 - best, names[1]: best}

    def _out_of_fold(self, candidates: list[Candidate], truths: Mapping[str, Annotation]) -> dict[str, Prediction]:
        found: dict[str, dict[str, Prediction]] = {
            c.name: {n: with_probabilities(p, self.calibrations[c.name].apply(p.probabilities)) for n, p in c.predictions.items()}
            for c in candidates
            if self.weights[c.name] > 0
        }
        return {name: _mixed(found, self.weights, name) for name in truths}

    def _choose_decoder(self, candidates: list[Candidate], truths: Mapping[str, Annotation], groups: Mapping[str, str]) -> Decoder:
        """Choose how probabilities become bouts; where there are very many frames, on every n-th of them."""
        predictions = self._out_of_fold(candidates, truths)
        if not predictions:
            return Decoder()
        every = max(1, round(sum(p.n_frames for p in predictions.values()) / DECODED))
        thin = {name: _thinned(prediction, truths[name], every) for name, prediction in predictions.items()}
        decoder, self.trials = fit_decoder(
            {name: prediction for name, (prediction, _) in thin.items()},
            {name: truth for name, (_, truth) in thin.items()},
            metric=self.params.metric,
            groups=groups,
        )
        return replace(decoder, trust=decoder.trust / every)  # as much evidence in a second, though there are more frames in it

    def _tell(self, candidates: list[Candidate], truths: Mapping[str, Annotation], clock: Clock) -> None:
        rows = []
        for candidate in candidates:
            own = {name: candidate.predictions[name] for name in truths}
            rows.append({**candidate.row(truths), "weight": self.weights[candidate.name]})
            if own:
                rows[-1]["log_loss"] = round(log_loss(own, truths), 4)
        self.account = {"candidates": rows, "budget": clock.budget, "seconds": round(clock.elapsed, 1), "notes": clock.notes}
        blended = self._out_of_fold(candidates, truths)
        if blended:
            honest = calibrate_across(blended, truths)
            self.account["calibration_error"] = [round(calibration_error(p, truths), 4) for p in (blended, honest)]
            if self.exclusive:
                curve = [point._asdict() for point in coverage_curve(blended, truths) if point.coverage > 0]
                self.account["coverage"] = [{key: round(value, 4) for key, value in point.items()} for point in curve]
            chosen = next((trial for trial in self.trials if trial.chosen), None)
            if chosen is not None:
                self.account["decoded"] = {"f1": round(chosen.f1, 4), "bout_f1": round(chosen.bout_f1, 4), "tried": len(self.trials)}

    def _predict(self, recording: Recording) -> Prediction:
        if self.ethogram is None:
            raise EthobenchError("this model has not learnt anything yet")
        found: dict[str, dict[str, Prediction]] = {}
        for name, part in self.parts.items():
            own = part._predict(recording)
            found[name] = {"": with_probabilities(own, self.calibrations[name].apply(own.probabilities))}
        return _mixed(found, self.weights, "")

    def _decode(self, prediction: Prediction) -> Prediction:
        """Turn probabilities into bouts; what is not sure enough is left unobserved."""
        if not self.params.unknown:
            return super()._decode(prediction)
        unsure = _confidence(prediction)[:, None] < self.params.unknown
        told = with_probabilities(prediction, np.where(unsure, np.float32(np.nan), prediction.probabilities))
        annotation = super()._decode(told).annotation
        return Prediction(
            prediction.probabilities, prediction.ethogram, prediction.rate, annotation=annotation, exclusive=prediction.exclusive
        )

    def context(self, rate: float) -> int | None:
        """Return how many frames beside a stretch decide what is predicted in it."""
        return max(part.context(rate) or 0 for part in self.parts.values())

    def _step(self) -> int:
        return math.lcm(*(part._step() for part in self.parts.values()))

    def _save(self, folder: Path) -> None:
        facts = {
            "exclusive": self.exclusive,
            "weights": self.weights,
            "calibrations": {name: own.to_dict() for name, own in self.calibrations.items()},
            "parts": list(self.parts),
            "keypoints": plain_keypoints(self.keypoints),
            "familiar": None if self.familiar is None else asdict(self.familiar),
        }
        (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")
        for name, part in self.parts.items():
            part.save(folder / name)

    def _load(self, folder: Path) -> None:
        from ethobench.formats._text import read_json

        facts = read_json(folder / FACTS)
        try:
            self.exclusive, self.keypoints = bool(facts["exclusive"]), stated_keypoints(facts["keypoints"])
            self.familiar = Familiar.from_dict(facts["familiar"]) if facts["familiar"] else None
            self.weights = {str(name): float(weight) for name, weight in facts["weights"].items()}
            self.calibrations = {str(name): Calibration.from_dict(own) for name, own in facts["calibrations"].items()}
            names = [name for name in ("boost", "tcn") if name in facts["parts"]]
        except (KeyError, TypeError, ValueError, EthobenchError) as error:
            raise FormatError(folder / FACTS, f"the model's facts are damaged ({error})") from None
        self.parts = {name: load_model(folder / name) for name in names}


def _mixed(found: Mapping[str, Mapping[str, Prediction]], weights: Mapping[str, float], name: str) -> Prediction:
    """Return the weighted mean of what candidates say of a recording."""
    own = {candidate: predictions[name] for candidate, predictions in found.items()}
    first = next(iter(own.values()))
    total = sum(weights[candidate] * p.probabilities.astype(np.float32) for candidate, p in own.items())
    return with_probabilities(first, np.asarray(total / np.float32(sum(weights[candidate] for candidate in own))))


def _confidence(prediction: Prediction) -> np.ndarray:
    """Return how sure a prediction is of each frame."""
    if prediction.exclusive:
        return np.asarray(prediction.probabilities.max(axis=1))
    return np.asarray(np.maximum(prediction.probabilities, 1 - prediction.probabilities).min(axis=1))


def _thinned(prediction: Prediction, truth: Annotation, every: int) -> tuple[Prediction, Annotation]:
    """Take every n-th frame of a prediction and of its truth."""
    if every == 1:
        return prediction, truth
    rate = prediction.rate / every
    slower = truth.resample(rate)
    n = min(slower.n_frames, -(-prediction.n_frames // every))
    thin = Prediction(prediction.probabilities[::every][:n], prediction.ethogram, rate, exclusive=prediction.exclusive)
    return thin, slower.crop(0, n)
