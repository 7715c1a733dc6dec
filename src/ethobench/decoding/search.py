"""Search for the best decoder: grouped cross-validation on the training recordings, for a metric that the user names.

All predictions must be out-of-fold, from models that were not trained on the recording, and none may be of a test recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Prediction
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.intervals import Intervals
from ethobench.core.progress import report_progress
from ethobench.decoding.decoder import ConfidentBouts, Decoder
from ethobench.decoding.training_data import DecoderTrainingData, cross_validation_splits
from ethobench.features.shared import share_values
from ethobench.metrics import Scores, score
from ethobench.metrics.suites import suites

Array = NDArray[np.float64]
SUITE = "ethobench"
BALANCED = "balanced"
SMOOTHING_WINDOWS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # in typical bout durations
EMISSION_WEIGHTS = (1.0, 0.3, 0.1, 0.03)
SEGMENT_REWARDS = (
    (0.1, 0.25),
    (0.15, 0.25),
    (0.15, 0.5),
    (0.25, 0.5),
    (0.25, 1.0),
    (0.4, 1.0),
    (0.4, 2.0),
)  # (`min_score`, `frame_reward`)
MAX_STAGES = 4  # more stages cost time and improve little
DURATION_QUANTILES = (0.02, 0.05, 0.1)  # of the true durations, as minimum durations of bouts and gaps
EARLY_STOPPING_LOSS = 0.005  # a series of configurations ends at one that is worse than its best by this much
MIN_TRIALS, MAX_TRIALS = 2, 40
TYPICAL_WINDOW = 1 / 2  # smoothing that is best in most datasets, in typical bout durations
MAX_FAMILY_LOSS = 0.02  # a family of configurations is given up after the first if that is worse than the best one by this much
FIRST_WINDOW = 1 / 4  # smoothing that is tried first where time is limited, in typical bout durations
SEGMENT_COST = 10.0  # duration of the first trial of segment rescoring, which fits the scorers, in trials of thresholds
CONFIDENT_PROBABILITIES = (0.45, 0.6, 0.75)  # minimum mean probability of bouts that sequence decoding must not remove
CONFIDENT_WINDOW = 1 / 8  # smoothing before such bouts are detected, in median bouts of the behavior
CONFIDENT_QUANTILE = 0.1  # of the true durations, the minimum duration of such bouts
MAX_BEHAVIOR_LOSS = 0.15  # share of its frame F1 that a behavior may lose compared with frame-by-frame decoding
MAX_F1_LOSS = 0.02  # of the mean frame F1, likewise, for the metric "balanced"
SEGMENT_MARGIN = 0.005  # by which others must be better than segment rescoring, which detects more short bouts at the same F1
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
    confident : tuple of (str, float)
        Behaviors whose confident bouts are kept (`Decoder.confident_bouts`), with the minimum of their mean probability.
    """

    thresholds: bool = False
    smoothing: str = "none"
    smoothing_window: float = 0.0
    max_stages: int = 0
    emission_weight: float = 1.0
    min_score: float | None = None
    frame_reward: float = 0.0
    duration_quantile: float = 0.0
    confident: tuple[tuple[str, float], ...] = ()

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
            confident_bouts={name: self._confident_bouts(data.durations[1].get(name, np.zeros(0)), p) for name, p in self.confident},
        )

    @staticmethod
    def _confident_bouts(durations: Array, min_probability: float) -> ConfidentBouts:
        """Return the rule for a behavior with bouts of these durations."""
        if not len(durations):
            return ConfidentBouts(min_probability)
        seconds = CONFIDENT_WINDOW * float(np.median(durations)), float(np.quantile(durations, CONFIDENT_QUANTILE))
        return ConfidentBouts(min_probability, *seconds)


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
    behavior_f1 : dict of str to float
        F1 of frames of each behavior that occurs.
    chosen : bool
    """

    config: DecoderConfig
    value: float
    f1: float
    bout_f1: float
    behavior_f1: Mapping[str, float] = field(default_factory=dict)
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

    Configurations are tried by family: thresholds, segment rescoring, smoothing, Viterbi decoding with geometric and with more regular
    durations, minimum durations. A family whose first configuration is clearly worse than the best so far is given up. Each configuration
    is fitted on some groups and scored on the others. The best one is fitted on all.
    Where sequence decoding removes too many bouts of a behavior, it is also tried to keep those that are confident frame by frame.

    A configuration is not chosen if a behavior loses more than `MAX_BEHAVIOR_LOSS` of its frame F1 compared with frame-by-frame decoding,
    or, for ``"balanced"``, if the mean frame F1 falls by more than `MAX_F1_LOSS`.

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
        End of the search. With a deadline, the cheapest configurations come first; at least two are tried.

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
    search = Search(data, cross_validation_splits(truths, data.ethogram, groups or {}, n_folds), metric, limit)
    search.try_series([DecoderConfig()])
    if limit.is_limited:  # the cheapest improvement first
        search.try_series([DecoderConfig(smoothing="mean", smoothing_window=FIRST_WINDOW)])
    search.try_series([DecoderConfig(thresholds=True)])
    frame_by_frame = search.best.config
    if sequences and not (limit.is_limited and limit.remaining <= SEGMENT_COST * search.slowest_seconds):
        with share_values():  # candidate segments and their probabilities
            search.try_series([DecoderConfig(min_score=min_score, frame_reward=reward) for min_score, reward in SEGMENT_REWARDS])
    for smoothing in ("mean", "median"):
        series = [replace(frame_by_frame, smoothing=smoothing, smoothing_window=window) for window in SMOOTHING_WINDOWS]
        search.try_family(series, first=SMOOTHING_WINDOWS.index(TYPICAL_WINDOW))
    for max_stages in _stage_counts(data) if sequences else ():
        for thresholds in (False, True):
            search.try_family(
                [DecoderConfig(thresholds=thresholds, max_stages=max_stages, emission_weight=weight) for weight in EMISSION_WEIGHTS]
            )
    if search.best.config.min_score is None:  # segment scorers take durations into account already
        search.try_series([replace(search.best.config, duration_quantile=quantile) for quantile in DURATION_QUANTILES])
    search.try_confident_bouts()
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


class Search:
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
        self._base: DecoderConfig | None = None
        self._spans: dict[str, list[Intervals]] = {}

    @property
    def best(self) -> Trial:
        """The first admissible trial that no later one improves on by more than `MIN_IMPROVEMENT`."""
        best = self.trials[0]
        for trial in self.trials[1:]:
            leaves_segments = best.config.min_score is not None and trial.config.min_score is None
            margin = SEGMENT_MARGIN if leaves_segments else MIN_IMPROVEMENT
            improves = trial.value > best.value + margin or (np.isnan(best.value) and not np.isnan(trial.value))
            if improves and self.is_admissible(trial):
                best = trial
        return best

    def is_admissible(self, trial: Trial) -> bool:
        """Return whether no behavior loses too much of its frame F1 compared with the first trial, frame by frame."""
        first = self.trials[0]
        if self.metric == BALANCED and trial.f1 < first.f1 - MAX_F1_LOSS:
            return False
        return all(trial.behavior_f1.get(name, 0.0) >= (1 - MAX_BEHAVIOR_LOSS) * f1 for name, f1 in first.behavior_f1.items())

    def try_confident_bouts(self) -> None:
        """Try to keep confident bouts of the behaviors that lose too much by the configuration with the best value."""
        base = max(self.trials, key=lambda trial: -np.inf if np.isnan(trial.value) else trial.value)
        if base.config.min_score is None and not base.config.max_stages:
            return
        kept = self._shares_kept(base)
        for name in sorted((name for name in kept if kept[name] < 1 - MAX_BEHAVIOR_LOSS), key=lambda name: kept[name]):
            variants = []
            for probability in CONFIDENT_PROBABILITIES:
                if self.limit.remaining < self.slowest_seconds:
                    return
                variants.append(self._evaluate(replace(base.config, confident=(*base.config.confident, (name, probability)))))
            self.trials += variants
            best = max(variants, key=lambda trial: trial.value)
            if self._shares_kept(best)[name] > kept[name]:
                base = best

    def _shares_kept(self, trial: Trial) -> dict[str, float]:
        """Return the frame F1 of each behavior relative to the first trial."""
        return {name: trial.behavior_f1.get(name, 0.0) / f1 for name, f1 in self.trials[0].behavior_f1.items() if f1 > 0}

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

    def try_family(self, configs: list[DecoderConfig], first: int = 0) -> None:
        """Try one configuration of a family, and the others in order if it is not clearly worse than the best of all families."""
        self.try_series([configs[first]])
        if not self.trials[-1].value < self.best.value - MAX_FAMILY_LOSS:
            self.try_series(configs[:first] + configs[first + 1 :])

    def _evaluate(self, config: DecoderConfig) -> Trial:
        """Score a configuration; the result without confident bouts is kept, so that these are added at little cost."""
        base = replace(config, confident=())
        if base != self._base:
            self._base, self._spans = base, {}
        decoded: dict[str, Annotation] = {}
        for fold_data, evaluated in self.folds:
            decoder = config.fit(fold_data)
            for name in evaluated:
                prediction = self.data.predictions[name]
                if name not in self._spans:
                    self._spans[name] = decoder.decode_spans(prediction)
                decoded[name] = decoder.annotate(prediction, self._spans[name])
        scores = score(decoded, self.data.truths, suite=SUITE, resamples=0, behaviors="all")
        f1_of = _behavior_values(scores, "f1")
        f1, bout_f1 = _metric_value(scores, "f1"), _metric_value(scores, "bout_f1")
        value = (f1 + bout_f1) / 2 if self.metric == BALANCED else _metric_value(scores, self.metric)
        return Trial(config, value, f1, bout_f1, f1_of)


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


def _behavior_values(scores: Scores, name: str) -> dict[str, float]:
    """Return one metric of each behavior that occurs, without the background."""
    measure = next(m for m in scores.suite.measures if m.name == name)
    values = np.atleast_1d(measure.metric.value(scores.statistics(measure).sum(axis=0)))
    return {
        behavior.name: float(value)
        for code, (behavior, value) in enumerate(zip(scores.ethogram, values, strict=True))
        if code != scores.ethogram.background and not behavior.point and not np.isnan(value)
    }


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
