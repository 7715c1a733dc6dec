"""Search for the best decoder: grouped cross-validation on the training recordings, for a metric that the user names.

All predictions must be out-of-fold, from models that were not trained on the recording, and none may be of a test recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ethobench.core import Annotation, Prediction
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.progress import report_progress
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.training_data import DecoderTrainingData, cross_validation_splits
from ethobench.metrics import Scores, score
from ethobench.metrics.suites import suites

SUITE = "ethobench"
BALANCED = "balanced"
SMOOTHING_WINDOWS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # in typical bout durations
EMISSION_WEIGHTS = (1.0, 0.3, 0.1, 0.03)
SEGMENT_REWARDS = ((0.15, 0.25), (0.15, 0.5), (0.25, 0.5), (0.25, 1.0), (0.4, 1.0), (0.4, 2.0))  # (`min_score`, `frame_reward`)
MAX_STAGES = 4  # more stages cost time and improve little
DURATION_QUANTILES = (0.02, 0.05, 0.1)  # of the true durations, as minimum durations of bouts and gaps
EARLY_STOPPING_LOSS = 0.005  # a series of configurations ends at one that is worse than its best by this much
MIN_TRIALS, MAX_TRIALS = 2, 40
FIRST_WINDOW = 1 / 4  # smoothing that is tried first where time is limited, in typical bout durations
SEGMENT_COST = 10.0  # duration of the first trial of segment rescoring, which fits the scorers, in trials of thresholds
MIN_IMPROVEMENT = 1e-4  # later configurations are more complicated, so they must be better by this much


@dataclass(frozen=True)
class DecoderConfig:
    """Which parts of a decoder to fit, and their settings.

    Attributes
    ----------
    thresholds : bool
        Whether to fit a threshold for each behavior, for the F1 of frames.
    smoothing : str
        As for `Decoder`.
    smoothing_window : float
        Its window, in typical bout durations.
    max_stages : int
        Maximum number of stages of a behavior in Viterbi decoding: 1 for geometric durations, 0 for no Viterbi decoding.
    emission_weight : float
        As for `Decoder`.
    min_score : float, optional
        As for `SegmentScorer`. None for no segment rescoring.
    frame_reward : float
        As for `SegmentScorer`.
    duration_quantile : float
        The quantile of the true durations that is the minimum duration of bouts and gaps; 0 for no minimum.
    """

    thresholds: bool = False
    smoothing: str = "none"
    smoothing_window: float = 0.0
    max_stages: int = 0
    emission_weight: float = 1.0
    min_score: float | None = None
    frame_reward: float = 0.0
    duration_quantile: float = 0.0

    def fit(self, data: DecoderTrainingData) -> Decoder:
        """Fit a decoder with these settings."""
        min_gaps, min_bouts = data.minimum_durations(self.duration_quantile) if self.duration_quantile else ({}, {})
        seconds = self.smoothing_window * data.typical_seconds if self.smoothing_window else 0.0
        scorers = {}
        if self.min_score is not None:
            for name, scorer in data.segment_scorers.items():
                scorers[name] = replace(scorer, min_score=self.min_score, frame_reward=self.frame_reward)
        return Decoder(
            priors=data.priors,
            thresholds=data.thresholds(self.smoothing, seconds) if self.thresholds else {},
            smoothing=self.smoothing,
            smoothing_seconds=seconds,
            transition_models=data.transition_models(self.max_stages) if self.max_stages else {},
            segment_scorers=scorers,
            emission_weight=self.emission_weight,
            min_gap_seconds=min_gaps,
            min_bout_seconds=min_bouts,
        )


@dataclass(frozen=True)
class Trial:
    """A configuration with its cross-validated score.

    Attributes
    ----------
    config : DecoderConfig
    value : float
        Of the requested metric; larger is better, so errors are negative.
    f1, bout_f1 : float
        F1 of frames and of bouts, from suite ``ethobench``.
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
    """Choose and fit a decoder on out-of-fold predictions of training recordings.

    Configurations are tried from simple to complicated: thresholds, smoothing, Viterbi decoding with geometric and with more regular
    durations, segment rescoring, minimum durations. Each is fitted on some groups and scored on the others. The best one is fitted on all.

    Parameters
    ----------
    predictions : mapping of recording to Prediction
        Out-of-fold, with one ethogram.
    truths : mapping of recording to Annotation
        Reference annotations; their subjects are ignored.
    metric : str
        ``"f1"`` of frames, ``"bout_f1"``, ``"balanced"`` for their mean, or any other metric of suite ``ethobench`` that
        depends on bouts.
    groups : mapping of recording to str, optional
        Individuals, or ``"a;b"`` for recordings of two; never split between folds. Each recording is its own group by default.
    n_folds : int
        At most; no more than there are groups. With a single group, configurations are scored on the data they are fitted on.
    priors : mapping of str to float, optional
        Of the decoder (`prior_factors`).
    sequences : bool
        Whether to try Viterbi decoding and segment rescoring.
    deadline : Deadline, optional
        End of the search. With a deadline, the configurations that are best in most datasets come first; at least two are tried.

    Returns
    -------
    decoder : Decoder
    trials : list of Trial
        All configurations that were tried, in order.
    """
    check_metric(metric)
    truths = {name: _matching_truth(name, prediction, truths) for name, prediction in predictions.items()}
    if len({prediction.ethogram for prediction in predictions.values()}) != 1 or len({p.exclusive for p in predictions.values()}) != 1:
        raise MismatchError(
            "a decoder needs at least one prediction, and all must have the same ethogram and be exclusive, or all overlapping"
        )
    data = DecoderTrainingData(predictions, truths, priors or {})
    limit = deadline or Deadline()
    search = _Search(data, cross_validation_splits(truths, data.ethogram, groups or {}, n_folds), metric, limit)
    search.try_series([DecoderConfig()])
    if limit.is_limited:  # the cheapest improvement first
        search.try_series([DecoderConfig(smoothing="mean", smoothing_window=FIRST_WINDOW)])
    search.try_series([DecoderConfig(thresholds=True)])
    frame_by_frame = search.best.config
    segment_configs = (
        [DecoderConfig(min_score=min_score, frame_reward=reward) for min_score, reward in SEGMENT_REWARDS] if sequences else []
    )
    if limit.is_limited and limit.remaining > SEGMENT_COST * search.slowest_seconds:
        search.try_series(segment_configs)
    for smoothing in ("mean", "median"):
        search.try_series([replace(frame_by_frame, smoothing=smoothing, smoothing_window=window) for window in SMOOTHING_WINDOWS])
    for max_stages in _stage_counts(data) if sequences else ():
        for thresholds in (False, True):
            search.try_series(
                [DecoderConfig(thresholds=thresholds, max_stages=max_stages, emission_weight=weight) for weight in EMISSION_WEIGHTS]
            )
    if not limit.is_limited:
        search.try_series(segment_configs)
    if search.best.config.min_score is None:  # segment scorers take durations into account already
        search.try_series([replace(search.best.config, duration_quantile=quantile) for quantile in DURATION_QUANTILES])
    best = search.best
    return best.config.fit(data), [replace(trial, chosen=trial is best) for trial in search.trials]


def check_metric(metric: str) -> None:
    """Raise an error for a metric that does not exist or does not depend on decoding."""
    metrics = {measure.name: measure.metric for measure in suites[SUITE].measures}
    if metric != BALANCED and metric not in metrics:
        raise NotFoundError(f"no metric {metric!r}; available: {BALANCED}, {', '.join(metrics)}")
    if metric != BALANCED and metrics[metric].probabilistic:
        raise EthobenchError(
            f"metric {metric!r} is computed from probabilities, so it does not depend on the decoder; choose another metric"
        )


class _Search:
    """The trials of a search.

    Parameters
    ----------
    data : DecoderTrainingData
    splits : list of (list of str, list of str)
        Recordings to fit on and to evaluate on, for each fold.
    metric : str
    limit : Deadline
    """

    def __init__(self, data: DecoderTrainingData, splits: list[tuple[list[str], list[str]]], metric: str, limit: Deadline) -> None:
        self.data, self.metric, self.limit = data, metric, limit
        self.folds = [(data if fit == evaluated else data.subset(fit), evaluated) for fit, evaluated in splits]
        self.trials: list[Trial] = []
        self.slowest_seconds = 0.0

    @property
    def best(self) -> Trial:
        """The first trial that no later one improves on by more than `MIN_IMPROVEMENT`."""
        best = self.trials[0]
        for trial in self.trials[1:]:
            if trial.value > best.value + MIN_IMPROVEMENT or (np.isnan(best.value) and not np.isnan(trial.value)):
                best = trial
        return best

    def try_series(self, configs: list[DecoderConfig]) -> None:
        """Try configurations in order until one is clearly worse than the best of the series."""
        top = -np.inf
        for config in configs:
            if len(self.trials) >= MIN_TRIALS and self.limit.remaining < self.slowest_seconds:
                return
            start = self.limit.clock()
            self.trials.append(self._evaluate(config))
            self.slowest_seconds = max(self.slowest_seconds, self.limit.clock() - start)
            report_progress("decoding", max(self.limit.fraction_elapsed, len(self.trials) / MAX_TRIALS))
            if self.trials[-1].value < top - EARLY_STOPPING_LOSS:
                return
            top = max(top, self.trials[-1].value)

    def _evaluate(self, config: DecoderConfig) -> Trial:
        decoded: dict[str, Annotation] = {}
        for fold_data, evaluated in self.folds:
            decoder = config.fit(fold_data)
            decoded |= {name: decoder.apply(self.data.predictions[name]).annotation for name in evaluated}
        scores = score(decoded, self.data.truths, suite=SUITE, resamples=0, behaviors="all")
        f1, bout_f1 = _metric_value(scores, "f1"), _metric_value(scores, "bout_f1")
        return Trial(config, (f1 + bout_f1) / 2 if self.metric == BALANCED else _metric_value(scores, self.metric), f1, bout_f1)


def _stage_counts(data: DecoderTrainingData) -> tuple[int, ...]:
    """Return the maximum numbers of stages that lead to different transition models."""
    return (1, MAX_STAGES) if data.transition_models(MAX_STAGES) != data.transition_models(1) else (1,)


def _metric_value(scores: Scores, name: str) -> float:
    """Return one metric, with its sign changed where smaller is better; other metrics are not computed."""
    measure = next(m for m in scores.suite.measures if m.name == name)
    values = np.atleast_1d(measure.metric.value(scores.statistics(measure).sum(axis=0)))
    if not measure.metric.joint:
        scored = [c != scores.ethogram.background and (measure.metric.points or not b.point) for c, b in enumerate(scores.ethogram)]
        values = values[scored]
    defined = values[~np.isnan(values)]
    sign = 1.0 if measure.metric.best > measure.metric.worst else -1.0
    return sign * float(defined.mean()) if len(defined) else float("nan")


def _matching_truth(name: str, prediction: Prediction, truths: Mapping[str, Annotation]) -> Annotation:
    """Return the reference annotation of a recording without subjects, in the prediction's ethogram and on its clock."""
    if name not in truths:
        raise MismatchError(f"recording {name!r} has a prediction but no reference annotation")
    truth = truths[name].without_subjects().with_ethogram(prediction.ethogram)
    if (truth.rate, truth.n_frames) != (prediction.rate, prediction.n_frames):
        raise MismatchError(
            f"recording {name!r}: the prediction has {prediction.n_frames} frames at {prediction.rate:g} Hz, "
            f"the reference annotation {truth.n_frames} at {truth.rate:g} Hz"
        )
    return truth
