"""Decoders, and the choice of one: by grouped cross-validation on the training recordings, for the metric that the user names.

Predictions handed in must be out-of-fold, made by models that did not see the recording; test recordings have no business here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.folds import assign_folds
from ethobench.core.progress import report_progress
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.training_data import DecoderTrainingData
from ethobench.metrics import Scores, score
from ethobench.metrics.suites import suites

SUITE = "ethobench"
BALANCED = "balanced"
BOTH = ("f1", "bout_f1")
WINDOWS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # of the typical duration of a bout
EMISSION_WEIGHTS = (1.0, 0.3, 0.1, 0.03)
SEGMENT_REWARDS = (
    (0.15, 0.25),
    (0.15, 0.5),
    (0.25, 0.5),
    (0.25, 1.0),
    (0.4, 1.0),
    (0.4, 2.0),
)  # prices and fillings of bouts that are judged as wholes
STAGES = 4  # at most; more cost time and gain little
SHORTEST = (0.02, 0.05, 0.1)  # quantiles of the true durations below which bouts and gaps are not believed
WORSE = 0.005  # further down the same way no better config is expected
FEWEST_TRIALS, MOST_TRIALS = 2, 40
QUICK_WINDOW = 1 / 4  # of the typical duration of a bout: smoothing that is tried first where time is limited
SEGMENT_COST = 10.0  # times what tuning thresholds takes: the first trial of segments, which learns what bouts look like
NOTICEABLE = 1e-4  # a later config is more complicated, so it must be better by this much


@dataclass(frozen=True)
class DecoderConfig:
    """What to learn from the training recordings for a decoder.

    Attributes
    ----------
    thresholds : bool
        Whether to tune one for each behavior, for F1 of frames.
    smoothing : str
        As for `Decoder`.
    window : float
        Its window, in typical durations of a bout.
    stages : int
        The most stages of a behavior in the most probable sequence; 0 for frame by frame, 1 for plain Viterbi.
    emission_weight : float
        As for `Decoder`.
    min_score, frame_reward : float
        As for `SegmentScorer`, where bouts are judged as wholes; without a min_score, they are not.
    shortest : float
        The quantile of true durations that bounds bouts and gaps from below.
    """

    thresholds: bool = False
    smoothing: str = "none"
    window: float = 0.0
    stages: int = 0
    emission_weight: float = 1.0
    min_score: float | None = None
    frame_reward: float = 0.0
    shortest: float = 0.0

    def learn(self, training_data: DecoderTrainingData) -> Decoder:
        """Make a decoder from training recordings."""
        gaps, bouts = training_data.shortest(self.shortest) if self.shortest else ({}, {})
        seconds = self.window * training_data.typical_seconds if self.window else 0.0
        segment_scorers = {}
        if self.min_score is not None:
            segment_scorers = {
                name: replace(scorer, min_score=self.min_score, frame_reward=self.frame_reward)
                for name, scorer in training_data.segment_scorers.items()
            }
        return Decoder(
            priors=training_data.priors,
            thresholds=training_data.thresholds(self.smoothing, seconds) if self.thresholds else {},
            smoothing=self.smoothing,
            smooth_seconds=seconds,
            transition_models=training_data.transition_models(self.stages) if self.stages else {},
            segment_scorers=segment_scorers,
            emission_weight=self.emission_weight,
            min_gap=gaps,
            min_bout=bouts,
        )


@dataclass(frozen=True)
class Trial:
    """A config that was tried, and how good it was on recordings that its numbers were not learnt from.

    Attributes
    ----------
    config : DecoderConfig
    value : float
        Of the metric asked for; larger is better, so errors are negative.
    f1, bout_f1 : float
        Of frames and bouts, from suite ``ethobench``.
    chosen : bool
    """

    config: DecoderConfig
    value: float
    f1: float
    bout_f1: float
    chosen: bool = False


def fit_decoder(
    predictions: Mapping[str, Prediction],
    truths: Mapping[str, Annotation],
    *,
    metric: str = BALANCED,
    groups: Mapping[str, str] | None = None,
    n_folds: int = 5,
    priors: Mapping[str, float] | None = None,
    sequences: bool = True,
    deadline: Deadline | None = None,
) -> tuple[Decoder, list[Trial]]:
    """Choose a decoder for out-of-fold predictions of training recordings.

    Recipes are tried from simple to complicated: thresholds, smoothing, the most probable sequence with plain and with more
    regular durations, the best division into bouts that are judged as wholes, shortest bouts and gaps. What a config learns comes
    from some groups, how good it is from the others; the best one learns from all.

    Parameters
    ----------
    predictions : mapping of recording to Prediction
        Out-of-fold, of one ethogram.
    truths : mapping of recording to Annotation
        Who did it is left aside.
    metric : str
        ``"f1"`` of frames, ``"bout_f1"``, ``"balanced"`` for their mean, or any other figure of suite ``ethobench`` that
        depends on bouts.
    groups : mapping of recording to str, optional
        What must not be on both sides: individuals, or ``"a;b"`` for recordings of two. Each recording is its own unless given.
    n_folds : int
        At most; no more than there are groups. With a single group, configs are judged on what they learn from.
    priors : mapping of str to float, optional
        Of the decoder (`prior_factors`).
    sequences : bool
        Whether to try the most probable sequence of behaviors and the best division into bouts too; without, frames are smoothed
        at most.
    deadline : Deadline, optional
        Until when configs are tried, those that are usually best first; at least two are.

    Returns
    -------
    decoder : Decoder
    trials : list of Trial
        All that was tried, in order.
    """
    check_metric(metric)
    truths = {name: _fitting(name, prediction, truths) for name, prediction in predictions.items()}
    if len({prediction.ethogram for prediction in predictions.values()}) != 1 or len({p.exclusive for p in predictions.values()}) != 1:
        raise MismatchError("a decoder is chosen for at least one recording, in one ethogram, exclusive or overlapping throughout")
    everything = DecoderTrainingData(predictions, truths, priors or {})
    limit = deadline or Deadline()
    search = _Search(everything, _folds(everything, groups or {}, n_folds), metric, limit)
    search.climb([DecoderConfig()])
    if limit.is_limited:  # what costs least and brings most comes first
        search.climb([DecoderConfig(smoothing="mean", window=QUICK_WINDOW)])
    search.climb([DecoderConfig(thresholds=True)])
    simple = search.best.config
    segments = (
        [DecoderConfig(min_score=min_score, frame_reward=frame_reward) for min_score, frame_reward in SEGMENT_REWARDS] if sequences else []
    )
    if limit.is_limited and limit.remaining > SEGMENT_COST * search.slowest:
        search.climb(segments)
    for smoothing in ("mean", "median"):
        search.climb([replace(simple, smoothing=smoothing, window=window) for window in WINDOWS])
    for stages in _stages(everything) if sequences else ():
        for tuned in (False, True):
            search.climb(
                [DecoderConfig(thresholds=tuned, stages=stages, emission_weight=emission_weight) for emission_weight in EMISSION_WEIGHTS]
            )
    if not limit.is_limited:
        search.climb(segments)
    if search.best.config.min_score is None:  # whoever segment_scorers bouts has seen how short they are
        search.climb([replace(search.best.config, shortest=quantile) for quantile in SHORTEST])
    best = search.best
    return best.config.learn(everything), [replace(trial, chosen=trial is best) for trial in search.trials]


def check_metric(metric: str) -> None:
    """Refuse a metric that does not exist or that does not depend on how probabilities are decoded."""
    known = {measure.name: measure.metric for measure in suites[SUITE].measures}
    if metric != BALANCED and metric not in known:
        raise NotFoundError(f"no metric {metric!r}; there are: {BALANCED}, {', '.join(known)}")
    if metric != BALANCED and known[metric].probabilistic:
        raise EthobenchError(f"{metric!r} is a figure of the probabilities themselves, so no decoder is better for it than another")


def _stages(training_data: DecoderTrainingData) -> tuple[int, ...]:
    """Return how many stages a behavior may have, where that makes a difference."""
    return (1, STAGES) if training_data.transition_models(STAGES) != training_data.transition_models(1) else (1,)


class _Search:
    """Recipes that were tried so far, and how to try more."""

    def __init__(
        self, everything: DecoderTrainingData, folds: list[tuple[DecoderTrainingData, list[str]]], metric: str, limit: Deadline
    ) -> None:
        self.everything, self.folds, self.metric, self.limit = everything, folds, metric, limit
        self.trials: list[Trial] = []
        self.slowest = 0.0  # seconds that a trial took

    @property
    def best(self) -> Trial:
        """The first trial than which no later one is noticeably better."""
        best = self.trials[0]
        for trial in self.trials[1:]:
            if trial.value > best.value + NOTICEABLE or (np.isnan(best.value) and not np.isnan(trial.value)):
                best = trial
        return best

    def climb(self, configs: list[DecoderConfig]) -> None:
        """Try configs in their order until one is clearly worse than the best of them so far."""
        top = -np.inf
        for config in configs:
            if len(self.trials) >= FEWEST_TRIALS and self.limit.remaining < self.slowest:
                return
            start = self.limit.clock()
            self.trials.append(self._try(config))
            self.slowest = max(self.slowest, self.limit.clock() - start)
            report_progress("decoding", max(self.limit.fraction_elapsed, len(self.trials) / MOST_TRIALS))
            if self.trials[-1].value < top - WORSE:
                return
            top = max(top, self.trials[-1].value)

    def _try(self, config: DecoderConfig) -> Trial:
        decoded: dict[str, Annotation] = {}
        for training_data, held_out in self.folds:
            decoder = config.learn(training_data)
            decoded |= {name: decoder.apply(self.everything.predictions[name]).annotation for name in held_out}
        scores = score(decoded, self.everything.truths, suite=SUITE, resamples=0, behaviors="all")
        f1, bout_f1 = (_figure(scores, name) for name in BOTH)
        return Trial(config, (f1 + bout_f1) / 2 if self.metric == BALANCED else _figure(scores, self.metric), f1, bout_f1)


def _figure(scores: Scores, name: str) -> float:
    """Return one figure, turned so that larger is better; the others are not computed."""
    measure = next(m for m in scores.suite.measures if m.name == name)
    values = np.atleast_1d(measure.metric.value(scores.statistics(measure).sum(axis=0)))
    if not measure.metric.joint:
        counted = [c != scores.ethogram.background and (measure.metric.points or not b.point) for c, b in enumerate(scores.ethogram)]
        values = values[counted]
    known = values[~np.isnan(values)]
    sign = 1.0 if measure.metric.best > measure.metric.worst else -1.0
    return sign * float(known.mean()) if len(known) else float("nan")


def _fitting(name: str, prediction: Prediction, truths: Mapping[str, Annotation]) -> Annotation:
    """Return the truth of a recording in the prediction's ethogram, without subjects; refuse one that does not fit."""
    if name not in truths:
        raise MismatchError(f"recording {name!r} has a prediction but no truth")
    truth = truths[name].without_subjects().with_ethogram(prediction.ethogram)
    if (truth.rate, truth.n_frames) != (prediction.rate, prediction.n_frames):
        raise MismatchError(
            f"recording {name!r}: {prediction.n_frames} frames at {prediction.rate:g} Hz were predicted, "
            f"the truth has {truth.n_frames} at {truth.rate:g} Hz"
        )
    return truth


def _folds(everything: DecoderTrainingData, groups: Mapping[str, str], n_folds: int) -> list[tuple[DecoderTrainingData, list[str]]]:
    """Return what to learn from and the recordings to scorer by, for each fold."""
    names = list(everything.predictions)
    recordings = [Recording(name, groups.get(name, name), annotations={"truth": everything.truths[name]}) for name in names]
    data = Dataset(tuple(recordings), everything.ethogram)
    if n_folds < 2 or len({*data.groups().values()}) < 2:
        return [(everything, names)]
    dealt = assign_folds(data, n_folds)
    folds = []
    for fold in sorted({*dealt.values()}):
        kept = [name for name in names if dealt[name] != fold]
        training_data = DecoderTrainingData(
            {name: everything.predictions[name] for name in kept}, {name: everything.truths[name] for name in kept}, everything.priors
        )
        folds.append((training_data, [name for name in names if dealt[name] == fold]))
    return folds
