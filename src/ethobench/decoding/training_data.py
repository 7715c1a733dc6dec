"""The data that decoders are fitted on: out-of-fold predictions with reference annotations, and what is estimated from them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.folds import assign_folds
from ethobench.core.targets import overlapping_targets
from ethobench.decoding.decoder import Decoder, absence_and_presence
from ethobench.decoding.postprocess import fit_exclusive_thresholds, fit_threshold
from ethobench.decoding.segments import LabeledColumns, SegmentScorer, fit_segment_scorer
from ethobench.decoding.viterbi import NO_BEHAVIOR, TransitionModel, fit_transition_models, frame_codes

Array = NDArray[np.float64]
MAX_THRESHOLD_FRAMES = 20_000  # more frames hardly improve thresholds
MIN_RARE_FRAMES = 200  # of the rarest behavior; up to ten times as many frames are used to reach it
DEFAULT_BOUT_SECONDS = 1.0  # where the annotations have no bouts


class DecoderTrainingData:
    """Out-of-fold predictions with reference annotations, and the parts of a decoder that are estimated from them.

    Each part is estimated once and kept.

    Parameters
    ----------
    predictions : mapping of recording to Prediction
        Out-of-fold, with one ethogram.
    truths : mapping of recording to Annotation
        Reference annotations in the same ethogram.
    priors : mapping of str to float
        Of the decoder to be fitted.
    """

    def __init__(self, predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], priors: Mapping[str, float]) -> None:
        self.predictions, self.truths, self.priors = predictions, truths, dict(priors)
        first = next(iter(predictions.values()))
        self.ethogram, self.exclusive = first.ethogram, first.exclusive
        self._transition_models: dict[int, dict[str, TransitionModel]] = {}
        self._thresholds: dict[tuple[str, float], dict[str, float]] = {}

    def subset(self, recordings: list[str]) -> DecoderTrainingData:
        """Return the data of some recordings, with nothing estimated yet."""
        predictions = {name: self.predictions[name] for name in recordings}
        return DecoderTrainingData(predictions, {name: self.truths[name] for name in recordings}, self.priors)

    def thresholds(self, smoothing: str, smoothing_seconds: float) -> dict[str, float]:
        """Return thresholds for probabilities that are smoothed in this way."""
        key = smoothing, smoothing_seconds
        if key not in self._thresholds:
            decoder = Decoder(priors=self.priors, smoothing=smoothing, smoothing_seconds=smoothing_seconds)
            self._thresholds[key] = fit_thresholds(self.predictions, self.truths, decoder)
        return self._thresholds[key]

    def transition_models(self, max_stages: int) -> dict[str, TransitionModel]:
        """Return transition models whose states have at most this many stages."""
        if max_stages not in self._transition_models:
            models = fit_transition_models(self.truths.values(), exclusive=self.exclusive, max_stages=max_stages)
            self._transition_models[max_stages] = models
        return self._transition_models[max_stages]

    @cached_property
    def segment_scorers(self) -> dict[str, SegmentScorer]:
        """Segment scorers, as for `Decoder`; without those behaviors that have too few bouts."""
        decoder = Decoder(priors=self.priors)
        prepared = {name: decoder.prepare(prediction) for name, prediction in self.predictions.items()}
        columns = {name: decoder.rescale(values, names, self.exclusive) for name, (values, names) in prepared.items()}
        medians = {name: float(np.median(bouts)) for name, bouts in self.durations[1].items() if len(bouts)}
        scorers: dict[str, SegmentScorer | None] = {}
        if self.exclusive:
            states = next(iter(prepared.values()))[1]
            # The geometric mean, so that behaviors with short bouts count as much as those with long ones.
            typical_seconds = float(np.exp(np.mean(np.log([*medians.values()])))) if medians else DEFAULT_BOUT_SECONDS
            labeled = [
                LabeledColumns(columns[name], frame_codes(truth), truth.rate, self.predictions[name].boundaries)
                for name, truth in self.truths.items()
            ]
            scorers[NO_BEHAVIOR] = fit_segment_scorer(labeled, states, typical_seconds)
        else:
            targets = {name: overlapping_targets(truth) for name, truth in self.truths.items()}
            for code, behavior in enumerate(self.ethogram):
                if code == self.ethogram.background or behavior.point:
                    continue
                labeled = [
                    LabeledColumns(
                        absence_and_presence(columns[name][:, code]),
                        targets[name][:, code].astype(np.int64),
                        truth.rate,
                        self.predictions[name].boundaries,
                    )
                    for name, truth in self.truths.items()
                ]
                typical_seconds = medians.get(behavior.name, self.typical_seconds)
                scorers[behavior.name] = fit_segment_scorer(labeled, (NO_BEHAVIOR, behavior.name), typical_seconds)
        return {name: scorer for name, scorer in scorers.items() if scorer is not None}

    @cached_property
    def durations(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Durations in seconds of all gaps between bouts of a behavior, and of its bouts, by behavior."""
        gaps: dict[str, list[Array]] = {}
        bouts: dict[str, list[Array]] = {}
        for truth in self.truths.values():
            for code, behavior in enumerate(truth.ethogram):
                if code == truth.ethogram.background or behavior.point:
                    continue
                spans = iv.intersection(iv.union(truth.spans(code)), truth.observed.of(behavior.name))
                gaps.setdefault(behavior.name, []).append((spans.start[1:] - spans.stop[:-1]) / truth.rate)
                bouts.setdefault(behavior.name, []).append((spans.stop - spans.start) / truth.rate)
        return {name: np.concatenate(s) for name, s in gaps.items()}, {name: np.concatenate(s) for name, s in bouts.items()}

    @cached_property
    def typical_seconds(self) -> float:
        """The median over behaviors of their median bout duration in seconds."""
        medians = [float(np.median(bouts)) for bouts in self.durations[1].values() if len(bouts)]
        return float(np.median(medians)) if medians else DEFAULT_BOUT_SECONDS

    def minimum_durations(self, quantile: float) -> tuple[dict[str, float], dict[str, float]]:
        """Return a quantile of the durations of gaps and of bouts, in seconds, by behavior."""
        gaps, bouts = ({name: float(np.quantile(s, quantile)) for name, s in side.items() if len(s)} for side in self.durations)
        return gaps, bouts


def fit_thresholds(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], decoder: Decoder | None = None
) -> dict[str, float]:
    """Choose one threshold per behavior for the best F1 of frames (for exclusive behaviors, its mean without the background).

    Parameters
    ----------
    predictions : mapping of recording to Prediction
        Out-of-fold, with one ethogram.
    truths : mapping of recording to Annotation
        In the same ethogram.
    decoder : Decoder, optional
        Whose priors and smoothing are applied first.
    """
    first = next(iter(predictions.values()))
    ethogram, exclusive = first.ethogram, first.exclusive
    step = _subsampling_step(predictions, truths)
    columns: list[Array] = []
    labels: list[NDArray[np.int64]] = []
    for name, prediction in predictions.items():
        prepared, names = (decoder or Decoder()).prepare(prediction)
        columns.append(prepared[::step])
        labels.append((frame_codes(truths[name]) if exclusive else overlapping_targets(truths[name]).astype(np.int64))[::step])
    probabilities, truth = np.concatenate(columns), np.concatenate(labels)
    predicted = ~np.isnan(probabilities).any(axis=1)
    scored = [code for code in range(len(ethogram)) if code != ethogram.background]
    if exclusive:
        usable = predicted & (truth >= 0)
        return fit_exclusive_thresholds(probabilities[usable], truth[usable], names, scored)
    thresholds = {}
    for code in scored:
        usable = predicted & (truth[:, code] >= 0)
        thresholds[names[code]] = fit_threshold(probabilities[usable, code], truth[usable, code])
    return thresholds


def cross_validation_splits(
    truths: Mapping[str, Annotation], ethogram: Ethogram, groups: Mapping[str, str], n_folds: int
) -> list[tuple[list[str], list[str]]]:
    """Return the recordings to fit on and those to evaluate on, for each fold of a grouped cross-validation.

    Parameters
    ----------
    truths : mapping of recording to Annotation
    ethogram : Ethogram
    groups : mapping of recording to str
        Individuals, or ``"a;b"`` for recordings of two; a recording without an entry is its own group.
    n_folds : int
        At most; no more than there are groups. With a single group, or fewer than two folds, all recordings are on both sides.
    """
    names = list(truths)
    recordings = tuple(Recording(name, groups.get(name, name), annotations={"truth": truths[name]}) for name in names)
    data = Dataset(recordings, ethogram)
    if n_folds < 2 or len({*data.groups().values()}) < 2:
        return [(names, names)]
    fold_of = assign_folds(data, n_folds)
    folds = sorted({*fold_of.values()})
    return [([n for n in names if fold_of[n] != fold], [n for n in names if fold_of[n] == fold]) for fold in folds]


def _subsampling_step(predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation]) -> int:
    """Return the step between frames to fit thresholds on: not too many frames, yet enough of the rarest behavior."""
    total = sum(p.n_frames for p in predictions.values())
    frames = sum((np.bincount(t.behavior, t.stop - t.start, len(t.ethogram)) for t in (truths[name] for name in predictions)), np.zeros(1))
    rarest = float(frames[frames > 0].min(initial=total))
    return max(1, min(total // MAX_THRESHOLD_FRAMES, max(int(rarest) // MIN_RARE_FRAMES, total // (10 * MAX_THRESHOLD_FRAMES))))
