"""What a decoder learns from training recordings: thresholds, durations, what follows what, and what bouts look like."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core import intervals as iv
from ethobench.decoding.decoder import Array, Decoder, absence_and_presence
from ethobench.decoding.segments import SegmentScorer, fit_segment_scorer
from ethobench.decoding.viterbi import NO_BEHAVIOR, TransitionModel, behavior_codes, fit_transition_models, frame_codes

Codes = NDArray[np.int64]
MOST_FRAMES = 20_000  # thresholds tuned on more are hardly better
ENOUGH = 200  # frames of the rarest behavior; up to ten times as many frames are looked at for its sake
OFFSETS = np.linspace(-2.5, 2.5, 21)  # tried for the logarithm of a behavior's weight
GRID = 1 / (1 + np.exp(-np.linspace(-4, 4, 81)))


class DecoderTrainingData:
    """Training recordings, and what can be learnt from them; each lesson is learnt once.

    Parameters
    ----------
    predictions : mapping of recording to Prediction
        Out-of-fold, of one ethogram.
    truths : mapping of recording to Annotation
        In the same ethogram.
    priors : mapping of str to float
        Of the decoder to be.
    """

    def __init__(self, predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], priors: Mapping[str, float]) -> None:
        self.predictions, self.truths, self.priors = predictions, truths, dict(priors)
        first = next(iter(predictions.values()))
        self.ethogram, self.exclusive = first.ethogram, first.exclusive
        self._dynamics: dict[int, dict[str, TransitionModel]] = {}
        self._thresholds: dict[tuple[str, float], dict[str, float]] = {}

    def thresholds(self, smoothing: str, smooth_seconds: float) -> dict[str, float]:
        """Return thresholds tuned for probabilities that are smoothed so."""
        key = smoothing, smooth_seconds
        if key not in self._thresholds:
            decoder = Decoder(priors=self.priors, smoothing=smoothing, smooth_seconds=smooth_seconds)
            self._thresholds[key] = fit_thresholds(self.predictions, self.truths, decoder)
        return self._thresholds[key]

    def transition_models(self, most_stages: int) -> dict[str, TransitionModel]:
        """Durations and successors, with at most so many stages."""
        if most_stages not in self._dynamics:
            self._dynamics[most_stages] = fit_transition_models(self.truths.values(), exclusive=self.exclusive, most_stages=most_stages)
        return self._dynamics[most_stages]

    @cached_property
    def segment_scorers(self) -> dict[str, SegmentScorer]:
        """Judges of bouts, as `Decoder.segment_scorers` takes them; none of behaviors of which there is too little to learn from."""
        decoder = Decoder(priors=self.priors)
        prepared = {name: decoder.prepare(prediction) for name, prediction in self.predictions.items()}
        columns = {name: decoder.thresholded(*own, self.exclusive) for name, own in prepared.items()}
        medians = {name: float(np.median(bouts)) for name, bouts in self.durations[1].items() if len(bouts)}
        learnt: dict[str, SegmentScorer | None] = {}
        if self.exclusive:
            states = next(iter(prepared.values()))[1]
            seconds = float(np.exp(np.mean(np.log([*medians.values()])))) if medians else 1.0  # so that the short ones count as well
            tracks = [(columns[name], frame_codes(truth), truth.rate) for name, truth in self.truths.items()]
            learnt[NO_BEHAVIOR] = fit_segment_scorer(tracks, states, seconds)
        else:
            for code, behavior in enumerate(self.ethogram):
                if code != self.ethogram.background and not behavior.point:
                    own = {name: absence_and_presence(values[:, code]) for name, values in columns.items()}
                    tracks = [(own[name], behavior_codes(truth, code), truth.rate) for name, truth in self.truths.items()]
                    learnt[behavior.name] = fit_segment_scorer(
                        tracks, (NO_BEHAVIOR, behavior.name), medians.get(behavior.name, self.typical_seconds)
                    )
        return {name: scorer for name, scorer in learnt.items() if scorer is not None}

    @cached_property
    def durations(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Seconds of all gaps between bouts of a behavior, and of its bouts, by behavior."""
        found: tuple[dict[str, list[Array]], dict[str, list[Array]]] = ({}, {})
        for truth in self.truths.values():
            for code, behavior in enumerate(truth.ethogram):
                if code == truth.ethogram.background or behavior.point:
                    continue
                spans = iv.intersection(iv.union(truth.spans(code)), truth.observed.of(behavior.name))
                found[0].setdefault(behavior.name, []).append((spans.start[1:] - spans.stop[:-1]) / truth.rate)
                found[1].setdefault(behavior.name, []).append((spans.stop - spans.start) / truth.rate)
        gaps, bouts = ({name: np.concatenate(parts) for name, parts in side.items()} for side in found)
        return gaps, bouts

    @cached_property
    def typical_seconds(self) -> float:
        """The median over behaviors of their median duration; 1 s where there is none."""
        medians = [float(np.median(bouts)) for bouts in self.durations[1].values() if len(bouts)]
        return float(np.median(medians)) if medians else 1.0

    def shortest(self, quantile: float) -> tuple[dict[str, float], dict[str, float]]:
        """Quantiles of the lengths of gaps and of bouts, by behavior."""
        gaps, bouts = ({name: float(np.quantile(s, quantile)) for name, s in side.items() if len(s)} for side in self.durations)
        return gaps, bouts


def fit_thresholds(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], decoder: Decoder | None = None
) -> dict[str, float]:
    """Tune one threshold for each behavior, for the best F1 of frames (its mean over behaviors but background, if exclusive).

    Parameters
    ----------
    predictions : mapping of recording to Prediction
        Out-of-fold, of one ethogram.
    truths : mapping of recording to Annotation
        In the same ethogram.
    decoder : Decoder, optional
        Whose priors and smoothing come first.
    """
    first = next(iter(predictions.values()))
    ethogram, exclusive = first.ethogram, first.exclusive
    every = _every(predictions, truths)
    scores, labels = [], []
    for name, prediction in predictions.items():
        columns, names = (decoder or Decoder()).prepare(prediction)
        scores.append(columns[::every])
        labels.append((frame_codes(truths[name]) if exclusive else _masks(truths[name]))[::every])
    found, truth = np.concatenate(scores), np.concatenate(labels)
    known = ~np.isnan(found).any(axis=1)
    if exclusive:
        known &= truth >= 0
        return _tune_weights(found[known], truth[known], names, ethogram)
    return {
        name: _tune_threshold(found[known & (truth[:, code] >= 0), code], truth[known & (truth[:, code] >= 0), code])
        for code, name in enumerate(names)
        if code != ethogram.background
    }


def _every(predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation]) -> int:
    """Return which frames to tune on: every n-th, so that there are not too many, but enough of the rarest behavior."""
    total = sum(p.n_frames for p in predictions.values())
    shown = sum((np.bincount(t.behavior, t.stop - t.start, len(t.ethogram)) for t in (truths[name] for name in predictions)), np.zeros(1))
    rarest = float(shown[shown > 0].min(initial=total))
    return max(1, min(total // MOST_FRAMES, max(int(rarest) // ENOUGH, total // (10 * MOST_FRAMES))))


def _masks(truth: Annotation) -> Codes:
    return np.stack([behavior_codes(truth, code) for code in range(len(truth.ethogram))], axis=1)


def _tune_weights(scores: Array, truth: Codes, names: tuple[str, ...], ethogram: Ethogram) -> dict[str, float]:
    """Climb, behavior by behavior, to the weights with the best mean F1; return them as thresholds."""
    n = len(names)
    logs = np.log(np.maximum(scores, 1e-9))
    foreground = [code for code in range(len(ethogram)) if code != ethogram.background and (truth == code).any()]
    offsets = np.zeros(n)
    if not foreground:
        return {}
    best = _mean_f1(logs.argmax(axis=1), truth, n, foreground)
    for _ in range(3):
        before = best
        for code in range(n):
            others = logs + offsets
            others[:, code] = -np.inf
            rival, bar = others.argmax(axis=1), others.max(axis=1)
            for offset in OFFSETS:
                value = _mean_f1(np.where(logs[:, code] + offset > bar, code, rival), truth, n, foreground)
                if value > best + 1e-6:
                    best, offsets[code] = value, offset
        if best < before + 1e-4:
            break
    weights = np.exp(-(offsets - offsets.max()))
    return {name: float(0.5 * weight / weights.max()) for name, weight in zip(names, weights, strict=True)}


def _mean_f1(codes: Codes, truth: Codes, n: int, foreground: list[int]) -> float:
    table = np.bincount(truth * n + codes, minlength=n * n).reshape(n, n)
    both = table.sum(axis=0) + table.sum(axis=1)
    return float(np.mean([2 * table[c, c] / both[c] for c in foreground]))


def _tune_threshold(scores: Array, truth: Codes) -> float:
    """Return the threshold with the best F1, the nearest to a half among equals; a half where the behavior never occurs."""
    if not truth.any():
        return 0.5
    guessed = scores[:, None] >= GRID
    hits = (guessed & (truth == 1)[:, None]).sum(axis=0)
    f1 = 2 * hits / (guessed.sum(axis=0) + truth.sum())
    near = np.flatnonzero(f1 >= f1.max() - 1e-9)
    return float(GRID[near[np.abs(GRID[near] - 0.5).argmin()]])
