"""The decoder: turns per-frame probabilities into bouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.intervals import Intervals
from ethobench.decoding.postprocess import (
    UNPREDICTED,
    apply_thresholds,
    close_short_gaps,
    majority_vote,
    normalize_rows,
    remove_short_bouts,
    smooth,
)
from ethobench.decoding.segments import SegmentScorer
from ethobench.decoding.viterbi import NO_BEHAVIOR, TransitionModel, viterbi_path
from ethobench.features.shared import shared

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
FORMAT_VERSION = 1
SMOOTHINGS = ("none", "mean", "median", "majority")
CONTEXT_SECONDS = 120.0  # to each side; frames further away hardly change the decoded bouts
CONTEXT_BOUTS = 4  # typical bouts to each side, where they are longer than `CONTEXT_SECONDS`
MIN_PROBABILITY = 1e-6  # smaller probabilities count as this one, so that logarithms are finite


@dataclass(frozen=True)
class ConfidentBouts:
    """Which bouts of a behavior are kept although sequence decoding removes them.

    Attributes
    ----------
    min_probability : float
        Minimum of a bout's mean probability, after priors and thresholds.
    smoothing_seconds : float
        Window of the moving mean after which a frame has its most probable behavior.
    min_seconds : float
        Minimum duration.
    """

    min_probability: float
    smoothing_seconds: float = 0.0
    min_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.min_probability <= 1 and 0 <= self.smoothing_seconds < np.inf and 0 <= self.min_seconds < np.inf):
            raise ParameterError("confident bouts need a `min_probability` between 0 and 1, and durations that are finite and >= 0")

    def find(self, columns: Array, code: int, rate: float, exclusive: bool) -> Intervals:
        """Return the bouts of one behavior, frame by frame.

        Parameters
        ----------
        columns : array (n_frames, n_columns)
            Probabilities after priors and thresholds; rows of NaN where there is no prediction.
        code : int
            The column of the behavior.
        rate : float
            Frames per second.
        exclusive : bool
            Whether behaviors exclude each other.
        """
        values = np.nan_to_num(smooth(columns, _to_frames(self.smoothing_seconds, rate), "mean"))
        occurs = values.argmax(axis=1) == code if exclusive else values[:, code] >= 0.5
        bouts = iv.from_mask(np.asarray(occurs & ~np.isnan(columns[:, code]) & (values[:, code] > 0)))
        sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(columns[:, code]))])
        length = bouts.stop - bouts.start
        mean = (sums[bouts.stop] - sums[bouts.start]) / np.maximum(length, 1)
        kept = (mean >= self.min_probability) & (length >= _to_frames(self.min_seconds, rate))
        return Intervals(bouts.start[kept], bouts.stop[kept])


@dataclass(frozen=True)
class Decoder:
    """Rules that turn per-frame probabilities into bouts.

    Without any setting, a frame has its most probable behavior (exclusive) or all behaviors with a probability of at least 0.5
    (overlapping). The steps, in this order: priors, smoothing, thresholds, Viterbi or segment rescoring, minimum gaps, minimum bouts,
    confident bouts.

    Attributes
    ----------
    priors : mapping of str to float
        Frequency of each behavior where the model is used, divided by its frequency in training (`prior_factors`); 1 by default.
        Corrects for classes that were balanced in training.
    thresholds : mapping of str to float
        Between 0 and 1; 0.5 by default. An overlapping behavior occurs where its probability reaches its threshold. Of exclusive
        behaviors, the one with the largest ratio of probability to threshold occurs.
    smoothing : {"none", "mean", "median", "majority"}
        Moving mean or median of the probabilities, or majority vote over the decoded frames.
    smoothing_seconds : float
        Length of the smoothing window.
    transition_models : mapping of str to TransitionModel
        For Viterbi decoding: the model of all behaviors under ``""`` where they are exclusive, else one of each behavior and its
        absence. Empty for frame-by-frame decoding.
    segment_scorers : mapping of str to SegmentScorer
        For segment rescoring, under the same keys as `transition_models`, which they replace.
    emission_weight : float
        Factor on the log probabilities in Viterbi decoding. Neighboring frames are correlated, so values well below 1 work best.
    min_gap_seconds, min_bout_seconds : mapping of str to float
        Minimum duration of gaps between two bouts of a behavior, and of its bouts. Shorter gaps are closed first, then shorter bouts
        are removed; their frames get the behaviors before and after them.
    confident_bouts : mapping of str to ConfidentBouts
        Bouts that are added to the result of the other steps, of behaviors whose rare, short bouts these steps remove.

    Examples
    --------
    >>> decoder = Decoder(min_bout_seconds={"run": 2.0})
    >>> probabilities = [[0.9, 0.1], [0.4, 0.6], [0.9, 0.1], [0.2, 0.8], [0.1, 0.9]]
    >>> decoder.decode(probabilities, Ethogram(["rest", "run"]), rate=1).stop.tolist()
    [3, 5]
    """

    priors: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    smoothing: str = "none"
    smoothing_seconds: float = 0.0
    transition_models: Mapping[str, TransitionModel] = field(default_factory=dict)
    segment_scorers: Mapping[str, SegmentScorer] = field(default_factory=dict)
    emission_weight: float = 1.0
    min_gap_seconds: Mapping[str, float] = field(default_factory=dict)
    min_bout_seconds: Mapping[str, float] = field(default_factory=dict)
    confident_bouts: Mapping[str, ConfidentBouts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.smoothing not in SMOOTHINGS:
            raise ParameterError(f"`smoothing` must be one of {', '.join(SMOOTHINGS)}, got {self.smoothing!r}")
        if not all(np.isfinite(factor) and factor > 0 for factor in (*self.priors.values(), self.emission_weight)):
            raise ParameterError("`priors` and `emission_weight` must be finite and > 0")
        if not all(0 < t < 1 for t in self.thresholds.values()):
            raise ParameterError("`thresholds` must lie between 0 and 1")
        durations = (self.smoothing_seconds, *self.min_gap_seconds.values(), *self.min_bout_seconds.values())
        if not all(np.isfinite(seconds) and seconds >= 0 for seconds in durations):
            raise ParameterError("`smoothing_seconds`, `min_gap_seconds` and `min_bout_seconds` must be finite and >= 0")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and a `format_version` as values that JSON can hold."""
        result: dict[str, Any] = {"format_version": FORMAT_VERSION}
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            if name in ("transition_models", "segment_scorers"):
                result[name] = {key: model.to_dict() for key, model in value.items()}
            elif name == "confident_bouts":
                result[name] = {key: asdict(rule) for key, rule in value.items()}
            else:
                result[name] = dict(value) if isinstance(value, Mapping) else value
        return result

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Create a decoder from the result of `to_dict`."""
        version = saved.get("format_version")
        if version != FORMAT_VERSION:
            raise EthobenchError(f"the decoder has format_version {version!r}; this version of ethobench reads {FORMAT_VERSION}")
        unknown = sorted({*saved} - {f.name for f in fields(cls)} - {"format_version"})
        if unknown:
            raise EthobenchError(f"not a valid decoder: unknown fields {', '.join(unknown)}")
        try:
            values: dict[str, Any] = {"smoothing": str(saved.get("smoothing", "none"))}
            values |= {name: float(saved[name]) for name in ("smoothing_seconds", "emission_weight") if name in saved}
            for name in ("priors", "thresholds", "min_gap_seconds", "min_bout_seconds"):
                values[name] = {str(key): float(value) for key, value in saved.get(name, {}).items()}
            for name, kind in (("transition_models", TransitionModel), ("segment_scorers", SegmentScorer)):
                values[name] = {str(key): kind.from_dict(model) for key, model in saved.get(name, {}).items()}
            rules = saved.get("confident_bouts", {})
            values["confident_bouts"] = {str(key): ConfidentBouts(**{k: float(v) for k, v in rule.items()}) for key, rule in rules.items()}
        except EthobenchError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise EthobenchError(f"not a valid decoder: {error}") from None
        return cls(**values)

    def decode(
        self,
        probabilities: ArrayLike,
        ethogram: Ethogram,
        rate: float,
        *,
        exclusive: bool | None = None,
        subject: str | None = None,
        target: str | None = None,
    ) -> Annotation:
        """Turn probabilities into bouts.

        Parameters
        ----------
        probabilities : array-like (n_frames, n_behaviors) or (n_frames, n_behaviors + 1)
            As for `Prediction`. Where the ethogram names no background, a last column may hold the probability of "none of these".
            Rows of NaN become unobserved.
        ethogram : Ethogram
        rate : float
            Frames per second.
        exclusive : bool, optional
            Whether behaviors exclude each other. By default, they do where no row sums to more than 1.
        subject, target : str, optional
            Of all bouts.

        Returns
        -------
        Annotation
            The confidence of a bout is the mean probability of its behavior.
        """
        prediction = Prediction(probabilities, ethogram, rate, exclusive=exclusive)
        return self.annotate(prediction, self.decode_spans(prediction), subject, target)

    def decode_spans(self, prediction: Prediction) -> list[Intervals]:
        """Return the bouts of each behavior, without the confident bouts that would be added."""
        unpredicted = np.isnan(prediction.probabilities).any(axis=1)
        if NO_BEHAVIOR in self.segment_scorers and self.smoothing == "none":  # for `_segment`
            settings = self.priors, self.thresholds, prediction.exclusive
            columns, names = shared("decoder columns", (prediction.probabilities,), settings, lambda: self._prepare_and_rescale(prediction))
        else:
            columns, names = self._prepare_and_rescale(prediction)
        decode = self._decode_exclusive if prediction.exclusive else self._decode_overlapping
        return decode(columns, names, prediction, unpredicted)

    def _prepare_and_rescale(self, prediction: Prediction) -> tuple[Array, tuple[str, ...]]:
        columns, names = self.prepare(prediction)
        return self.rescale(columns, names, prediction.exclusive), names

    def annotate(self, prediction: Prediction, spans: list[Intervals], subject: str | None = None, target: str | None = None) -> Annotation:
        """Add the confident bouts to the result of `decode_spans`, and return the annotation."""
        if self.confident_bouts:
            spans = self.add_confident_bouts(prediction, spans)
        unpredicted = np.isnan(prediction.probabilities).any(axis=1)
        return _to_annotation(spans, prediction.probabilities, prediction.ethogram, float(prediction.rate), unpredicted, subject, target)

    def add_confident_bouts(self, prediction: Prediction, spans: list[Intervals]) -> list[Intervals]:
        """Add the confident bouts to the bouts of each behavior; where behaviors exclude each other, they replace others."""
        columns, names = self._prepare_and_rescale(prediction)
        background = prediction.ethogram.background
        for code, name in enumerate(names[: len(spans)]):
            if name in self.confident_bouts:
                added = self.confident_bouts[name].find(columns, code, float(prediction.rate), prediction.exclusive)
                replaced = [other for other in range(len(spans)) if other != code and (prediction.exclusive or other == background)]
                spans = [iv.difference(each, added) if other in replaced else each for other, each in enumerate(spans)]
                spans[code] = iv.union_all([spans[code], added])
        return spans

    def apply(self, prediction: Prediction) -> Prediction:
        """Return the prediction with the annotation that this decoder makes of its probabilities."""
        return Prediction(
            prediction.probabilities,
            prediction.ethogram,
            prediction.rate,
            annotation=self.annotate(prediction, self.decode_spans(prediction)),
            exclusive=prediction.exclusive,
            boundaries=prediction.boundaries,
        )

    @property
    def context_seconds(self) -> float:
        """Approximate seconds to each side of a frame that its decoded behavior depends on."""
        return max([CONTEXT_SECONDS, *(CONTEXT_BOUTS * scorer.typical_seconds for scorer in self.segment_scorers.values())])

    def prepare(self, prediction: Prediction) -> tuple[Array, tuple[str, ...]]:
        """Apply priors and smoothing.

        Returns
        -------
        columns : array (n_frames, n_columns)
            Probabilities; rows without a prediction are NaN.
        names : tuple of str
            The behavior of each column. ``""`` is "none of these", added for exclusive behaviors without a named background.
        """
        values = prediction.probabilities.astype(np.float64)
        unpredicted = np.isnan(values).any(axis=1)
        values[unpredicted] = np.nan
        ethogram = prediction.ethogram
        columns, names = _add_no_behavior(values, ethogram) if prediction.exclusive else (values[:, : len(ethogram)], ethogram.names)
        prior = np.array([self.priors.get(name, 1.0) for name in names])
        if (prior != 1).any():
            columns = normalize_rows(columns * prior) if prediction.exclusive else columns * prior / (columns * prior + 1 - columns)
        if self.smoothing in ("mean", "median"):
            columns = smooth(columns, _to_frames(self.smoothing_seconds, prediction.rate), self.smoothing)
            columns[unpredicted] = np.nan
        return columns, names

    def rescale(self, columns: Array, names: tuple[str, ...], exclusive: bool) -> Array:
        """Rescale probabilities by the thresholds, so that the largest one (exclusive) or 0.5 (overlapping) decides."""
        return apply_thresholds(columns, np.array([self.thresholds.get(name, 0.5) for name in names]), exclusive)

    def _decode_exclusive(self, columns: Array, names: tuple[str, ...], prediction: Prediction, unpredicted: Mask) -> list[Intervals]:
        ethogram, rate = prediction.ethogram, prediction.rate
        no_behavior = len(ethogram) if ethogram.background is None else ethogram.background
        if NO_BEHAVIOR in self.segment_scorers:
            codes = self._segment(self.segment_scorers[NO_BEHAVIOR], columns, names, prediction)
        elif NO_BEHAVIOR in self.transition_models:
            codes = self._viterbi(columns, self.transition_models[NO_BEHAVIOR].reordered(names), rate, unpredicted)
        else:
            codes = np.where(columns.max(axis=1, initial=0) > 0, np.nan_to_num(columns).argmax(axis=1), no_behavior)
        if self.smoothing == "majority":
            codes = majority_vote(codes, len(names), _to_frames(self.smoothing_seconds, rate), unpredicted)
        codes = np.where(unpredicted, UNPREDICTED, codes)
        min_gap = [_to_frames(self.min_gap_seconds.get(name, 0.0), rate) for name in names]
        min_bout = [_to_frames(self.min_bout_seconds.get(name, 0.0), rate) for name in names]
        codes = remove_short_bouts(close_short_gaps(codes, min_gap, no_behavior), min_bout, no_behavior)
        return [iv.from_mask(codes == code) for code in range(len(ethogram))]

    def _segment(self, scorer: SegmentScorer, columns: Array, names: tuple[str, ...], prediction: Prediction) -> NDArray[np.int64]:
        """Return the column of each frame's behavior; scorers that differ in their rewards share the scores of segments."""
        rate, boundaries = prediction.rate, prediction.boundaries
        if not len(columns):
            return scorer.decode(columns, names, rate)
        settings = replace(scorer, min_score=0.0, frame_reward=0.0), names, rate
        sources = columns, boundaries
        scored = shared("scored segments", sources, settings, lambda: scorer.score_segments(columns, names, rate, boundaries))
        return scorer.segment(scored, names, rate, len(columns))

    def _decode_overlapping(self, columns: Array, names: tuple[str, ...], prediction: Prediction, unpredicted: Mask) -> list[Intervals]:
        ethogram, rate = prediction.ethogram, prediction.rate
        spans: list[Intervals] = []
        predicted = iv.from_mask(~unpredicted)
        for code, name in enumerate(names):
            if code == ethogram.background:
                spans.append(iv.empty())
                continue
            occurs = self._decode_one(columns[:, code], name, prediction, unpredicted)
            if self.smoothing == "majority":
                occurs = majority_vote(occurs.astype(np.int64), 2, _to_frames(self.smoothing_seconds, rate), unpredicted) == 1
            min_gap = max(_to_frames(self.min_gap_seconds.get(name, 0.0), rate), 1)
            bouts = iv.intersection(iv.fill_gaps(iv.from_mask(occurs & ~unpredicted), min_gap), predicted)
            long_enough = bouts.stop - bouts.start >= _to_frames(self.min_bout_seconds.get(name, 0.0), rate)
            spans.append(Intervals(bouts.start[long_enough], bouts.stop[long_enough]))
        if ethogram.background is not None:
            spans[ethogram.background] = iv.difference(predicted, iv.union_all(spans))
        return spans

    def _decode_one(self, probability: Array, name: str, prediction: Prediction, unpredicted: Mask) -> Mask:
        """Return in which frames one of several overlapping behaviors occurs."""
        states, rate = (NO_BEHAVIOR, name), prediction.rate
        if name in self.segment_scorers:
            codes = self.segment_scorers[name].decode(absence_and_presence(probability), states, rate, prediction.boundaries)
            return np.asarray(codes == 1)
        if name in self.transition_models:
            model = self.transition_models[name].reordered(states)
            return np.asarray(self._viterbi(absence_and_presence(probability), model, rate, unpredicted) == 1)
        return np.asarray(np.where(unpredicted, 0.0, probability) >= 0.5)

    def _viterbi(self, columns: Array, model: TransitionModel, rate: float, unpredicted: Mask) -> NDArray[np.int64]:
        likelihood = np.where(unpredicted[:, None], 1.0, np.maximum(columns, MIN_PROBABILITY))
        return viterbi_path(self.emission_weight * np.log(likelihood), model, rate)


def prior_factors(trained: Mapping[str, float], true: Mapping[str, float], *, exclusive: bool = True) -> dict[str, float]:
    """Return the `priors` of a decoder from the frequencies of behaviors.

    Parameters
    ----------
    trained : mapping of str to float
        Share of frames of each behavior in training, counting class weights: equal shares where classes were balanced.
    true : mapping of str to float
        Share of frames where the model is used.
    exclusive : bool
        Whether behaviors exclude each other. Otherwise the odds of each behavior are compared.

    Examples
    --------
    >>> prior_factors({"attack": 0.5, "other": 0.5}, {"attack": 0.1, "other": 0.9})
    {'attack': 0.2, 'other': 1.8}
    """
    if {*trained} != {*true} or not all(0 < share < 1 for share in (*trained.values(), *true.values())):
        raise ParameterError("`trained` and `true` must name the same behaviors, with shares between 0 and 1")
    if exclusive:
        return {name: float(true[name] / trained[name]) for name in trained}
    return {name: float(true[name] * (1 - trained[name]) / (trained[name] * (1 - true[name]))) for name in trained}


def absence_and_presence(probability: Array) -> Array:
    """Return the probabilities of a behavior's absence and presence as two columns."""
    return np.stack([1 - probability, probability], axis=1)


def _to_frames(seconds: float, rate: float) -> int:
    return int(np.floor(seconds * rate + 0.5))


def _add_no_behavior(values: Array, ethogram: Ethogram) -> tuple[Array, tuple[str, ...]]:
    """Add a column for "none of these" where the ethogram names no background and the model has no such column."""
    if ethogram.background is not None:
        return values, ethogram.names
    if values.shape[1] == len(ethogram):
        values = np.column_stack([values, np.clip(1 - values.sum(axis=1), 0, 1)])
    return values, (*ethogram.names, NO_BEHAVIOR)


def _to_annotation(
    spans: list[Intervals],
    probabilities: NDArray[np.floating],
    ethogram: Ethogram,
    rate: float,
    unpredicted: Mask,
    subject: str | None,
    target: str | None,
) -> Annotation:
    """Create an annotation whose bouts have the mean probability of their frames; point events are in the middle of their span."""
    start, stop = (np.concatenate([s[side] for s in spans]) if spans else np.zeros(0, dtype=np.int64) for side in (0, 1))
    behavior = np.repeat(np.arange(len(spans)), [len(s.start) for s in spans])
    sums = np.concatenate([np.zeros((1, probabilities.shape[1])), np.cumsum(np.nan_to_num(probabilities), axis=0, dtype=np.float64)])
    confidence = (sums[stop, behavior] - sums[start, behavior]) / np.maximum(stop - start, 1)
    is_point = np.array([b.point for b in ethogram], dtype=bool)[behavior]
    middle = (start + stop) // 2
    start, stop = np.where(is_point, middle, start), np.where(is_point, middle, stop)
    return Annotation.from_bouts(
        start,
        stop,
        behavior,
        ethogram,
        rate,
        len(probabilities),
        subject=None if subject is None else [subject] * len(start),
        target=None if target is None else [target] * len(start),
        observed=iv.from_mask(~unpredicted) if unpredicted.any() else None,
        confidence=np.clip(confidence, 0, 1),
        subjects=[name for name in (subject, target) if name],
    )
