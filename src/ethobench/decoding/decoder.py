"""From probabilities to bouts: thresholds, smoothing, the most probable sequence or the best division, shortest bouts and gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError
from ethobench.core.intervals import Intervals
from ethobench.decoding.postprocess import HIDDEN, majority, smooth, without_short_bouts, without_short_gaps
from ethobench.decoding.segments import SegmentScorer
from ethobench.decoding.viterbi import NO_BEHAVIOR, TransitionModel, viterbi_path

Array = NDArray[np.float64]
SMOOTHINGS = ("none", "mean", "median", "majority")
CONTEXT = 120.0  # seconds to each side; what lies further away hardly decides how a stretch is decoded
SURROUNDINGS = 4  # typical bouts, where they are longer
LEAST = 1e-6  # probabilities below it say no more than it does


@dataclass(frozen=True)
class Decoder:
    """How probabilities become bouts; without any setting, the most probable behavior or all above a half.

    The steps, in this order: priors, smoothing, thresholds, the most probable sequence or the best division, short gaps, short bouts.

    Attributes
    ----------
    priors : mapping of str to float
        How much more frequent each behavior is where the model is used than where it was trained (`prior_factors`);
        1 unless given. Classes that were balanced for training are set right by it.
    thresholds : mapping of str to float
        0.5 unless given. Where behaviors overlap, one goes on where its probability reaches its threshold. Of exclusive
        ones, that goes on whose probability is the largest multiple of its threshold.
    smoothing : {"none", "mean", "median", "majority"}
        Of the probabilities in a window, or the most frequent decision in it.
    smooth_seconds : float
        Length of that window.
    transition_models : mapping of str to TransitionModel
        For the most probable sequence: of all behaviors together under ``""`` where they are exclusive, else of each
        behavior and its absence; none for frame by frame.
    segment_scorers : mapping of str to SegmentScorer
        In place of transition_models, and under the same names: for the division into those bouts that are worth most as wholes.
    emission_weight : float
        How much a frame's probabilities count against the transition_models. Neighbouring frames tell much the same, so well below 1.
    min_gap, min_bout : mapping of str to float
        Seconds. Shorter gaps between two bouts of a behavior are closed, then shorter bouts are left out; in their place is
        what comes before and after them.

    Examples
    --------
    >>> decoder = Decoder(min_bout={"run": 2.0})
    >>> unsure = [[0.9, 0.1], [0.4, 0.6], [0.9, 0.1], [0.2, 0.8], [0.1, 0.9]]
    >>> decoder.decode(unsure, Ethogram(["rest", "run"]), rate=1).stop.tolist()
    [3, 5]
    """

    priors: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    smoothing: str = "none"
    smooth_seconds: float = 0.0
    transition_models: Mapping[str, TransitionModel] = field(default_factory=dict)
    segment_scorers: Mapping[str, SegmentScorer] = field(default_factory=dict)
    emission_weight: float = 1.0
    min_gap: Mapping[str, float] = field(default_factory=dict)
    min_bout: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.smoothing not in SMOOTHINGS:
            raise EthobenchError(f"smoothing is one of {', '.join(SMOOTHINGS)}, not {self.smoothing!r}")
        if not all(np.isfinite(p) and p > 0 for p in self.priors.values()) or not (
            np.isfinite(self.emission_weight) and self.emission_weight > 0
        ):
            raise EthobenchError("priors and emission_weight are factors above 0")
        if not all(0 < t < 1 for t in self.thresholds.values()):
            raise EthobenchError("thresholds lie between 0 and 1")
        if not all(np.isfinite(s) and s >= 0 for s in (self.smooth_seconds, *self.min_gap.values(), *self.min_bout.values())):
            raise EthobenchError("lengths of windows, gaps and bouts are seconds, 0 or more")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in plain.items()}
        return plain | {
            kind: {name: part.to_dict() for name, part in plain[kind].items()} for kind in ("transition_models", "segment_scorers")
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make a decoder from what `to_dict` returned."""
        unknown = sorted({*plain} - {f.name for f in fields(cls)})
        if unknown:
            raise EthobenchError(f"a decoder has no {', '.join(unknown)}")
        try:
            values: dict[str, Any] = {"smoothing": str(plain.get("smoothing", "none"))}
            values |= {name: float(plain[name]) for name in ("smooth_seconds", "emission_weight") if name in plain}
            for name in ("priors", "thresholds", "min_gap", "min_bout"):
                values[name] = {str(key): float(value) for key, value in plain.get(name, {}).items()}
            for name, kind in (("transition_models", TransitionModel), ("segment_scorers", SegmentScorer)):
                values[name] = {str(key): kind.from_dict(part) for key, part in plain.get(name, {}).items()}
        except EthobenchError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise EthobenchError(f"this is no decoder: {error}") from None
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
            As for `Prediction`: where the ethogram names no background a last column may stand for it; rows of NaN become
            unobserved.
        ethogram : Ethogram
        rate : float
            Frames per second.
        exclusive : bool, optional
            One behavior at a time, or each on its own; told by whether rows sum to at most 1 unless given.
        subject, target : str, optional
            Who does all this, to whom.

        Returns
        -------
        Annotation
            Its bouts have the mean probability of their behavior as confidence.
        """
        prediction = Prediction(probabilities, ethogram, rate, exclusive=exclusive)
        hidden = np.isnan(prediction.probabilities).any(axis=1)
        columns, names = self.prepare(prediction)
        columns = self.thresholded(columns, names, prediction.exclusive)
        on = self._exclusive if prediction.exclusive else self._overlapping
        spans = on(columns, names, ethogram, float(rate), hidden)
        return _annotation(spans, prediction.probabilities, ethogram, float(rate), hidden, subject, target)

    def apply(self, prediction: Prediction) -> Prediction:
        """Return a prediction with the same probabilities and the annotation that this decoder makes of them."""
        annotation = self.decode(prediction.probabilities, prediction.ethogram, prediction.rate, exclusive=prediction.exclusive)
        return Prediction(
            prediction.probabilities, prediction.ethogram, prediction.rate, annotation=annotation, exclusive=prediction.exclusive
        )

    @property
    def context_seconds(self) -> float:
        """How far to each side bouts depend on what is predicted, about."""
        return max([CONTEXT, *(SURROUNDINGS * scorer.seconds for scorer in self.segment_scorers.values())])

    def prepare(self, prediction: Prediction) -> tuple[Array, tuple[str, ...]]:
        """Return probabilities after priors and smoothing, and what the columns are; rows that were not predicted are NaN."""
        values = prediction.probabilities.astype(np.float64)
        hidden = np.isnan(values).any(axis=1)
        values[hidden] = np.nan
        ethogram = prediction.ethogram
        columns, names = _with_nothing(values, ethogram) if prediction.exclusive else (values[:, : len(ethogram)], ethogram.names)
        prior = np.array([self.priors.get(name, 1.0) for name in names])
        if (prior != 1).any():
            columns = _normalized(columns * prior) if prediction.exclusive else columns * prior / (columns * prior + 1 - columns)
        if self.smoothing in ("mean", "median"):
            columns = smooth(columns, _frames(self.smooth_seconds, prediction.rate), self.smoothing)
            columns[hidden] = np.nan
        return columns, names

    def thresholded(self, columns: Array, names: tuple[str, ...], exclusive: bool) -> Array:
        """Weigh probabilities so that the largest, or a half, decides."""
        threshold = np.array([self.thresholds.get(name, 0.5) for name in names])
        if exclusive:
            return _normalized(columns / threshold)
        yes, no = columns * (1 - threshold), (1 - columns) * threshold
        return np.asarray(yes / (yes + no))

    def _exclusive(
        self, columns: Array, names: tuple[str, ...], ethogram: Ethogram, rate: float, hidden: NDArray[np.bool_]
    ) -> list[Intervals]:
        nothing = len(ethogram) if ethogram.background is None else ethogram.background
        if NO_BEHAVIOR in self.segment_scorers:
            codes = self.segment_scorers[NO_BEHAVIOR].divide(columns, names, rate)
        elif NO_BEHAVIOR in self.transition_models:
            evidence = self.emission_weight * np.log(np.where(hidden[:, None], 1.0, np.maximum(columns, LEAST)))
            codes = viterbi_path(evidence, self.transition_models[NO_BEHAVIOR].in_order(names), rate)
        else:
            codes = np.where(columns.max(axis=1, initial=0) > 0, np.nan_to_num(columns).argmax(axis=1), nothing)
        if self.smoothing == "majority":
            codes = majority(codes, len(names), _frames(self.smooth_seconds, rate), hidden)
        codes = np.where(hidden, HIDDEN, codes)
        gap, bout = ([_frames(wanted.get(name, 0.0), rate) for name in names] for wanted in (self.min_gap, self.min_bout))
        codes = without_short_bouts(without_short_gaps(codes, gap, nothing), bout, nothing)
        return [iv.from_mask(codes == code) for code in range(len(ethogram))]

    def _overlapping(
        self, columns: Array, names: tuple[str, ...], ethogram: Ethogram, rate: float, hidden: NDArray[np.bool_]
    ) -> list[Intervals]:
        spans: list[Intervals] = []
        shown = iv.from_mask(~hidden)
        for code, name in enumerate(names):
            if code == ethogram.background:
                spans.append(iv.empty())
                continue
            yes = np.where(hidden, 0.0, columns[:, code])
            if name in self.segment_scorers:
                on = self.segment_scorers[name].divide(absence_and_presence(columns[:, code]), (NO_BEHAVIOR, name), rate) == 1
            elif name in self.transition_models:
                both = np.stack([np.where(hidden, 1.0, 1 - yes), np.where(hidden, 1.0, yes)], axis=1)
                on = (
                    viterbi_path(
                        self.emission_weight * np.log(np.maximum(both, LEAST)),
                        self.transition_models[name].in_order((NO_BEHAVIOR, name)),
                        rate,
                    )
                    == 1
                )
            else:
                on = yes >= 0.5
            if self.smoothing == "majority":
                on = majority(on.astype(np.int64), 2, _frames(self.smooth_seconds, rate), hidden) == 1
            closed = iv.fill_gaps(iv.from_mask(on & ~hidden), max(_frames(self.min_gap.get(name, 0.0), rate), 1))
            found = iv.intersection(closed, shown)
            long = found.stop - found.start >= _frames(self.min_bout.get(name, 0.0), rate)
            spans.append(Intervals(found.start[long], found.stop[long]))
        if ethogram.background is not None:
            spans[ethogram.background] = iv.difference(shown, iv.union_all(spans))
        return spans


def prior_factors(trained: Mapping[str, float], true: Mapping[str, float], *, exclusive: bool = True) -> dict[str, float]:
    """Return the `priors` of a decoder from shares of frames.

    Parameters
    ----------
    trained : mapping of str to float
        The share of each behavior that the model saw, weights counted: all the same where classes were balanced.
    true : mapping of str to float
        The share where it is used.
    exclusive : bool
        Whether probabilities are of one behavior at a time; where behaviors overlap, each is weighed against its absence.

    Examples
    --------
    >>> prior_factors({"attack": 0.5, "other": 0.5}, {"attack": 0.1, "other": 0.9})
    {'attack': 0.2, 'other': 1.8}
    """
    if {*trained} != {*true} or not all(0 < share < 1 for share in (*trained.values(), *true.values())):
        raise EthobenchError("shares of the same behaviors are needed on both sides, each between 0 and 1")
    if exclusive:
        return {name: float(true[name] / trained[name]) for name in trained}
    return {name: float(true[name] * (1 - trained[name]) / (trained[name] * (1 - true[name]))) for name in trained}


def absence_and_presence(probability: Array) -> Array:
    """Return the columns of a behavior's absence and of the behavior."""
    return np.stack([1 - probability, probability], axis=1)


def _frames(seconds: float, rate: float) -> int:
    return int(np.floor(seconds * rate + 0.5))


def _normalized(columns: Array) -> Array:
    total = columns.sum(axis=1, keepdims=True)
    return np.asarray(columns / np.where(total > 0, total, 1))


def _with_nothing(values: Array, ethogram: Ethogram) -> tuple[Array, tuple[str, ...]]:
    """Add the column of "none of these" where the ethogram names no background and the model gives none."""
    if ethogram.background is not None:
        return values, ethogram.names
    if values.shape[1] == len(ethogram):
        values = np.column_stack([values, np.clip(1 - values.sum(axis=1), 0, 1)])
    return values, (*ethogram.names, NO_BEHAVIOR)


def _annotation(
    spans: list[Intervals],
    values: NDArray[np.floating],
    ethogram: Ethogram,
    rate: float,
    hidden: NDArray[np.bool_],
    subject: str | None,
    target: str | None,
) -> Annotation:
    """Make an annotation of bouts whose confidence is the mean probability of their frames; point events lie in their middle."""
    start, stop = (np.concatenate([part[side] for part in spans]) if spans else np.zeros(0, dtype=np.int64) for side in (0, 1))
    behavior = np.repeat(np.arange(len(spans)), [len(part.start) for part in spans])
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(np.nan_to_num(values), axis=0, dtype=np.float64)])
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
        len(values),
        subject=None if subject is None else [subject] * len(start),
        target=None if target is None else [target] * len(start),
        observed=iv.from_mask(~hidden) if hidden.any() else None,
        confidence=np.clip(confidence, 0, 1),
        subjects=[name for name in (subject, target) if name],
    )
