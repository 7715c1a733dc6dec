"""Model `auto`, the default: boosted trees and a network, blended, calibrated and decoded without tuning.

The numbers in the notes are measured: ``benchmarks/results/rats.md`` (46 recordings of two rats, five folds), ``bebe_har.md`` and
``bebe_seals.md``.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, FormatError, ParameterError
from ethobench.core.files import read_json
from ethobench.core.folds import default_grouping
from ethobench.core.progress import progress_range
from ethobench.decoding.abstention import abstain, coverage_curve
from ethobench.decoding.blending import Blend, fit_blend, weighted_mean
from ethobench.decoding.calibration import calibration_error
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.pooling import DEFAULT as DEFAULT_THRESHOLD
from ethobench.decoding.pooling import Labeled, label_predictions, pooled_thresholds
from ethobench.decoding.search import Trial, check_metric, fit_decoder
from ethobench.features.multiscale import Baseline
from ethobench.features.shared import share_values
from ethobench.metrics import score
from ethobench.models.base import Model
from ethobench.models.boost import Boost
from ethobench.models.candidates import (
    COMPARED_PROGRESS,
    NO_NETWORK,
    Candidate,
    Comparison,
    compare_candidates,
    improves_first,
)
from ethobench.models.condition_parts import MAX_LOSS, adapt_threshold, labeled_by_recording
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.input_checks import TrainingRange
from ethobench.models.inputs import keypoints_from_json, keypoints_to_json
from ethobench.models.registry import register_model
from ethobench.models.saving import load_model
from ethobench.models.signal_model import SignalModel

DEFAULT, FALLBACK = "auto", "rf"
STATE = "auto.json"
MEMBER_NAME = re.compile(r"(boost|tcn)(-[2-9])?")  # in saved models
MAX_DECODER_FRAMES = 300_000  # on which decoders are compared; more frames are subsampled
MIN_DECODER_FRAMES = 60_000  # beyond which frames are subsampled where short bouts keep `GOOD_BOUT_FRAMES`
MAX_SHARED_FRAMES = 2_000_000  # of all recordings, up to which the signals of each are kept in memory for all fits, about 0.5 GB for poses
SHARED_VALUES = ("inputs", "baseline", "pose signals")
MIN_BOUT_FRAMES, GOOD_BOUT_FRAMES = 4, 64  # of a short bout after subsampling
SEARCH_COST = 100.0  # duration of a search through the most important decoders, relative to scoring once
DECODING_PROGRESS = 0.1  # of the total progress
MIN_REFIT_SHARE = 0.05  # of a time budget that each fit to all recordings gets in any case
SCORING_SHARE = 0.04  # of a time budget, reserved for scoring the candidates
NO_LIGHTGBM = (
    "lightgbm is not installed, so the model is rf, a random forest, instead of auto. rf annotates less correctly: on poses of rats, its "
    "BANOS F1 is .69 instead of .75; on accelerometers, its F1 is .92 instead of .99 (people) and .59 instead of .68 (seals). "
    'To install auto: pip install "ethobench[boost,nn]"'
)


@dataclass(frozen=True)
class DefaultModel:
    """The model that is trained if none is named.

    Attributes
    ----------
    name : str
    decode : str
        The metric for which it is decoded; empty for a model that chooses a decoder by itself.
    note : str
        What is lost because a package is not installed, and how to install it; empty if nothing is.
    """

    name: str
    decode: str = ""
    note: str = ""


def default_model() -> DefaultModel:
    """Return the best model without tuning for which the packages are installed."""
    if find_spec("lightgbm") is None:
        return DefaultModel(FALLBACK, "balanced", NO_LIGHTGBM)
    return DefaultModel(DEFAULT, note="" if find_spec("torch") is not None else NO_NETWORK)


@hyperparameters
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    metric : str
        The metric for which bouts are decoded: ``"balanced"`` (mean of frame and bout F1), ``"f1"``,
        ``"bout_f1"``, or another metric of suite ``ethobench``.
    budget : float, optional
        Approximate maximum duration of `fit` in seconds. If it is short, there are fewer folds, trees and decoders, and the network
        trains for a shorter time or is left out. The fitted model then depends on the speed of the machine.
    min_confidence : float
        Abstain: frames whose most probable behavior has a lower probability are unobserved; 0 for none. Where behaviors overlap, frames
        in which the presence or absence of any behavior is less certain than this.
    folds : int
        Maximum number of inner folds on which candidates are compared.
    inputs : {"auto", "roles", "keypoints"}
        Poses by role, at a common rate and scale, or the keypoints of the training recordings by name. ``"auto"``: by role where
        recordings differ in skeleton, rate, number of animals, or condition.
    condition : str
        Column of the metadata, such as the laboratory. Each of its values has its own small part of the model and its own thresholds;
        recordings with other values are predicted by the shared part. Empty for none.
    zones : bool
        Use the zones of the study (``zones.csv``) as inputs: whether each animal is inside, and how far away it is.
    """

    metric: str = "balanced"
    budget: Annotated[float, Field(gt=0)] | None = None
    min_confidence: Annotated[float, Field(ge=0, lt=1)] = 0.0
    folds: Annotated[int, Field(ge=2)] = 3
    inputs: Literal["auto", "roles", "keypoints"] = "auto"
    condition: str = "lab"
    zones: bool = False

    def __post_init__(self) -> None:
        check_metric(self.metric)


@register_model("auto")
class Auto(SignalModel):
    """A blend of candidates that are compared by cross-validation and then fitted to all recordings."""

    title = "the best of boosted trees and a network, chosen by cross-validation; tags and poses"
    packages = Boost.packages
    Params = Params
    grid = {"metric": ("balanced", "f1", "bout_f1")}  # noqa: RUF012
    revision = 8
    supports_deadline = True

    members: dict[str, Model]
    blend: Blend

    def __init__(self, *, seed: int = 0, decode: str = "", **params: Any) -> None:
        if decode and params.get("metric", decode) != decode:
            raise ParameterError(f"auto decodes for one metric, got {decode!r} (decode) and {params['metric']!r} (metric)")
        super().__init__(seed=seed, **{**params, **({"metric": decode} if decode else {})})

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        n_frames = sum(truth.n_frames for truth in truths.values())
        with share_values(*SHARED_VALUES) if n_frames <= MAX_SHARED_FRAMES else nullcontext():
            self._fit_candidates(data, truths)

    def _fit_candidates(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        """Compare the candidates, fit blend and decoder, and fit the candidates that are used to all recordings."""
        started = time.perf_counter()
        self.keypoints = dict(data.keypoints)
        budget_end = math.inf if self.params.budget is None else self.deadline.clock() + self.params.budget
        deadline = self.deadline.until(budget_end)
        comparison = compare_candidates(data, truths, self, deadline, self.params.folds)
        candidates = [candidate for candidate in comparison.candidates if not candidate.dropped]
        evaluated = {
            name: truth
            for name, truth in comparison.truths.items()
            if iv.total(truth.observed.of_any()) and all(name in candidate.predictions for candidate in candidates)
        }
        self.blend, self.decoder = Blend({candidates[0].name: 1.0}, {}), Decoder()
        report: dict[str, Any] = {}
        if evaluated:
            report = self._fit_blend_and_decoder(candidates, evaluated, comparison, deadline)
        elif candidates[0].predictions:
            comparison.notes.append("no behavior occurs in two folds, so nothing could be compared: boosted trees, decoded frame by frame")
        self.training_range = TrainingRange.fit([self.signal_baseline(recording) for recording in comparison.data])
        self.members = self._fit_members([c for c in candidates if self.blend.weights.get(c.name, 0) > 0], deadline)
        rows = [{**c.summary(evaluated), "weight": self.blend.weights.get(c.name, 0.0)} for c in comparison.candidates]
        notes = [*comparison.notes, *(note for member in self.members.values() for note in member.fit_report.get("notes", []))]
        seconds = round(time.perf_counter() - started, 1)
        self.fit_report = {"candidates": rows, "budget": self.params.budget, "seconds": seconds, "notes": notes, **report}

    def _fit_blend_and_decoder(
        self, candidates: list[Candidate], truths: Mapping[str, Annotation], comparison: Comparison, deadline: Deadline
    ) -> dict[str, Any]:
        """Fit weights, calibration and decoder to the out-of-fold predictions; return their scores for the report."""
        groups = comparison.data.groups(default_grouping(comparison.data))
        predictions = {c.name: {name: c.predictions[name] for name in truths} for c in candidates}
        with share_values():  # calibrations
            if len(predictions) > 1 and not improves_first(predictions, truths, groups):
                comparison.notes.append("the network did not improve on the trees in all inner folds together, so it is not used")
                predictions = {candidates[0].name: predictions[candidates[0].name]}
            self.blend, calibrated = fit_blend(predictions, truths, groups)
        priors = self.blend.priors(comparison.data.ethogram)
        refit_seconds = sum(c.refit_seconds for c in candidates if self.blend.weights.get(c.name, 0) > 0)
        limit = _without_scoring(deadline).before(refit_seconds)
        with progress_range(COMPARED_PROGRESS, COMPARED_PROGRESS + DECODING_PROGRESS):
            self.decoder, trials = fit_decoder_on_subsample(calibrated, truths, self.params.metric, groups, priors, limit)
        if self.observation_period is not None:
            pairs = ((self.decoder.apply(calibrated[name]).annotation, truth) for name, truth in truths.items())
            self.observation_period = self.observation_period.with_delay(pairs)
        conditions = {name: self.condition_of(comparison.data[name]) for name in truths}
        if self.role_inputs is not None and not self.exclusive and len({*conditions.values()}) > 1:
            labeled = label_predictions(calibrated, truths, conditions, self.decoder)
            self.condition_thresholds = pooled_thresholds(labeled, self.decoder)[1]
            self.condition_thresholds.pop("", None)
        uncalibrated = {
            name: weighted_mean({c: by_recording[name] for c, by_recording in predictions.items()}, self.blend.weights) for name in truths
        }
        return _blend_report(uncalibrated, calibrated, truths, trials)

    def _fit_members(self, candidates: list[Candidate], deadline: Deadline) -> dict[str, Model]:
        """Fit candidates to all recordings, each with its share of the remaining time."""
        members: dict[str, Model] = {}
        limit = _without_scoring(deadline)
        costs = [max(candidate.refit_seconds, 1e-9) for candidate in candidates]
        first = COMPARED_PROGRESS + DECODING_PROGRESS
        for number, candidate in enumerate(candidates):
            refit_deadline = limit.share(costs[number] / sum(costs[number:]))
            if deadline.is_limited and refit_deadline.remaining < MIN_REFIT_SHARE * (deadline.end - deadline.start):
                refit_deadline = Deadline(MIN_REFIT_SHARE * (deadline.end - deadline.start), clock=deadline.clock)
            start, stop = (first + (1 - first) * sum(costs[:k]) / sum(costs) for k in (number, number + 1))
            with progress_range(start, stop, "all recordings"):
                models = candidate.fit_all(refit_deadline)
            members |= {member_name(candidate.name, number): model for number, model in enumerate(models)}
        return members

    def _adapt(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        """Adapt the boosted trees; shift the thresholds by the predictions of all members, which were not trained on these recordings."""
        raw = {recording.id: self.predict_probabilities(recording) for recording in data}
        conditions = {recording.id: self.condition_of(recording) for recording in data}
        shared = self.decoder or Decoder()
        parts: dict[tuple[str, str], dict[str, list[Labeled]]] = {}
        for recording in data:
            labeled = label_predictions({recording.id: raw[recording.id]}, truths, conditions, shared)
            for behavior, of_condition in labeled.items():
                by_source = parts.setdefault((conditions[recording.id], behavior), {})
                by_source.setdefault(recording.source_id, []).extend(of_condition.values())
        for (condition, behavior), by_source in parts.items():
            adapted = adapt_threshold(labeled_by_recording(by_source), shared.thresholds.get(behavior, DEFAULT_THRESHOLD))
            if adapted is not None and adapted.f1 >= adapted.shared_f1 - MAX_LOSS:
                self.condition_thresholds.setdefault(condition, {})[behavior] = adapted.threshold
        if "boost" in self.members:
            self.members["boost"]._adapt(data, truths)

    def preparation_seconds(self, data: Dataset) -> float:
        """Estimate the seconds that the features of all recordings take."""
        return Boost(seed=self.seed).preparation_seconds(data)

    def prepare(self, data: Dataset, deadline: Deadline) -> None:
        """Compute and cache the features of recordings, until a deadline."""
        Boost(seed=self.seed).prepare(data, deadline)

    def context(self, rate: float) -> int | None:
        """Return how many frames before and after a frame influence its prediction."""
        return max(member.context(rate) or 0 for member in self.members.values())

    def _predict(self, recording: Recording, baseline: Baseline) -> Prediction:
        predictions: dict[str, list[Prediction]] = {}
        for name, member in self.members.items():
            predictions.setdefault(candidate_name(name), []).append(member.predict_probabilities(recording, baseline))
        return self.blend.apply({candidate: mean_prediction(each) for candidate, each in predictions.items()})

    def _decode(self, prediction: Prediction, condition: str = "") -> Prediction:
        """Decode probabilities into bouts; abstain where the confidence is below `min_confidence`."""
        if not self.params.min_confidence:
            return super()._decode(prediction, condition)
        annotation = super()._decode(abstain(prediction, self.params.min_confidence), condition).annotation
        return Prediction(
            prediction.probabilities, prediction.ethogram, prediction.rate, annotation=annotation, exclusive=prediction.exclusive
        )

    def _stride(self) -> int:
        return math.lcm(*(member._stride() for member in self.members.values()))

    def _save(self, folder: Path) -> None:
        state = {
            "blend": self.blend.to_dict(),
            "members": list(self.members),
            "keypoints": keypoints_to_json(self.keypoints),
            "training_range": None if self.training_range is None else asdict(self.training_range),
        }
        (folder / STATE).write_text(json.dumps(state), encoding="utf-8")
        for name, member in self.members.items():
            member.save(folder / name)

    def _load(self, folder: Path) -> None:
        state = read_json(folder / STATE)
        try:
            self.blend, self.keypoints = Blend.from_dict(state["blend"]), keypoints_from_json(state["keypoints"])
            self.training_range = TrainingRange.from_dict(state["training_range"]) if state["training_range"] else None
            names = [name for name in state["members"] if MEMBER_NAME.fullmatch(name)]
        except (KeyError, TypeError, ValueError, EthobenchError) as error:
            raise FormatError(folder / STATE, f"the state of the model is damaged ({error})") from None
        self.members = {name: load_model(folder / name) for name in names}
        if other := [name for name, member in self.members.items() if member.name != candidate_name(name)]:
            raise FormatError(folder / other[0], f"expected a model {candidate_name(other[0])!r}, got {self.members[other[0]].name!r}")


def member_name(candidate: str, number: int) -> str:
    """Return the name of a member, such as ``"tcn"`` for the first of a candidate's models and ``"tcn-2"`` for the second."""
    return candidate if number == 0 else f"{candidate}-{number + 1}"


def candidate_name(member: str) -> str:
    """Return the name of the candidate that a member belongs to."""
    return member.partition("-")[0]


def mean_prediction(predictions: Sequence[Prediction]) -> Prediction:
    """Return the mean of the probabilities of several models."""
    if len(predictions) == 1:
        return predictions[0]
    named = {str(number): prediction for number, prediction in enumerate(predictions)}
    return weighted_mean(named, dict.fromkeys(named, 1.0))


def fit_decoder_on_subsample(
    predictions: Mapping[str, Prediction],
    truths: Mapping[str, Annotation],
    metric: str,
    groups: Mapping[str, str],
    priors: Mapping[str, float],
    deadline: Deadline | None = None,
) -> tuple[Decoder, list[Trial]]:
    """Choose a decoder; on every n-th frame only, where there are very many frames or little time."""
    n_frames = sum(p.n_frames for p in predictions.values())
    every = max(1, round(n_frames / MAX_DECODER_FRAMES))
    lengths = np.concatenate([truth.stop - truth.start for truth in truths.values()])
    lengths = lengths[lengths > 0]  # without point events
    max_every = every
    if len(lengths):  # short bouts must keep a few frames
        short = int(np.quantile(lengths, 0.1))
        max_every = max(1, short // MIN_BOUT_FRAMES)
        every = max(min(every, max_every), min(short // GOOD_BOUT_FRAMES, n_frames // MIN_DECODER_FRAMES))
    sampled, references = _subsample_all(predictions, truths, every)
    if deadline is not None and deadline.is_limited:
        start = deadline.clock()
        score({name: prediction.annotation for name, prediction in sampled.items()}, references, resamples=0, behaviors="all")
        needed = SEARCH_COST * (deadline.clock() - start)
        if needed > deadline.remaining and every < max_every:
            every = max(every, min(max_every, math.ceil(every * needed / max(deadline.remaining, 1e-6))))
            sampled, references = _subsample_all(predictions, truths, every)
    decoder, trials = fit_decoder(sampled, references, metric=metric, groups=groups, priors=priors, deadline=deadline)
    # a second has more frames at the full rate, and should carry the same evidence
    return replace(decoder, emission_weight=decoder.emission_weight / every), trials


def subsample_frames(prediction: Prediction, truth: Annotation, every: int) -> tuple[Prediction, Annotation]:
    """Return every n-th frame of a prediction and of its reference annotation."""
    if every == 1:
        return prediction, truth
    rate = prediction.rate / every
    reference = truth.resample(rate)
    n_frames = min(reference.n_frames, -(-prediction.n_frames // every))
    boundaries = None if prediction.boundaries is None else prediction.boundaries[:, ::every][:, :n_frames]
    probabilities = prediction.probabilities[::every][:n_frames]
    sampled = Prediction(probabilities, prediction.ethogram, rate, exclusive=prediction.exclusive, boundaries=boundaries)
    return sampled, reference.crop(0, n_frames)


def _subsample_all(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], every: int
) -> tuple[dict[str, Prediction], dict[str, Annotation]]:
    pairs = {name: subsample_frames(prediction, truths[name], every) for name, prediction in predictions.items()}
    return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}


def _blend_report(
    uncalibrated: Mapping[str, Prediction],
    calibrated: Mapping[str, Prediction],
    truths: Mapping[str, Annotation],
    trials: list[Trial],
) -> dict[str, Any]:
    """Return scores of the out-of-fold predictions of the blend: calibration error, accuracy by coverage, and decoded scores."""
    before, after = (round(calibration_error(predictions, truths), 4) for predictions in (uncalibrated, calibrated))
    curve = [point._asdict() for point in coverage_curve(calibrated, truths) if point.coverage > 0]
    report: dict[str, Any] = {
        "calibration_error": {"before": before, "after": after},
        "coverage": [{key: round(value, 4) if np.isfinite(value) else None for key, value in point.items()} for point in curve],
    }
    for trial in trials:
        if trial.chosen:
            report["decoded"] = {"f1": round(trial.f1, 4), "bout_f1": round(trial.bout_f1, 4), "tried": len(trials)}
    return report


def _without_scoring(deadline: Deadline) -> Deadline:
    """Return a deadline that leaves time for scoring the candidates."""
    return deadline.before(SCORING_SHARE * (deadline.end - deadline.start)) if deadline.is_limited else deadline
