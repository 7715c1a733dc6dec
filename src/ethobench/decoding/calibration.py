"""Probabilities that mean what they say: how often a behavior goes on where it is given a probability.

Predictions handed in must be out-of-fold, made by models that did not see the recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core.annotation import UNOBSERVED
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.folds import assign_folds
from ethobench.core.targets import exclusive_targets, overlapping_targets

Array = NDArray[np.float64]
MOST_FRAMES = 50_000  # more hardly change what is learnt
LEAST = 1e-6  # probabilities below it say no more than it does
RESTRAINT = 1e-3  # how much large biases are held back: a behavior that is never seen keeps a finite one
BINS = 15
LEVELS = tuple(float(level) for level in np.linspace(0, 0.95, 20))


@dataclass(frozen=True)
class Calibration:
    """Logarithms of probabilities divided by a temperature, with something added for each behavior.

    Attributes
    ----------
    temperature : float
        Above 1 where a model is too sure of itself.
    bias : tuple of float
        For each column of the probabilities: above 0 where a behavior is more frequent than the model thinks.
    exclusive : bool
        One behavior at a time, or each on its own.
    """

    temperature: float
    bias: tuple[float, ...]
    exclusive: bool

    def apply(self, probabilities: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return calibrated probabilities."""
        scores = _scores(probabilities, self.exclusive) / self.temperature + np.array(self.bias)
        return _chances(scores, self.exclusive).astype(np.float32)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {"temperature": self.temperature, "bias": list(self.bias), "exclusive": self.exclusive}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make what `to_dict` returned."""
        try:
            return cls(float(plain["temperature"]), tuple(map(float, plain["bias"])), bool(plain["exclusive"]))
        except (KeyError, TypeError, ValueError) as error:
            raise EthobenchError(f"this is no calibration: {error}") from None


class Coverage(NamedTuple):
    """What is left, and how good it is, where a model abstains below a confidence."""

    confidence: float
    coverage: float
    accuracy: float
    f1: float


def fit_calibration(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], *, groups: Mapping[str, str] | None = None
) -> Calibration:
    """Find the temperature and biases under which the truth is most probable; every group counts the same.

    Parameters
    ----------
    predictions : mapping of recording to Prediction
        Out-of-fold, of one ethogram.
    truths : mapping of recording to Annotation
        In the same ethogram.
    groups : mapping of recording to str, optional
        Individuals; each recording is its own unless given.
    """
    from scipy.optimize import minimize

    sample = _sample(predictions, truths, groups or {})
    scores, exclusive = _scores(sample.probabilities, sample.exclusive), sample.exclusive
    columns = scores.shape[1]

    def cost(x: Array) -> tuple[float, Array]:
        changed = scores * np.exp(-x[0]) + x[1:]
        wrong = (_chances(changed, exclusive) - sample.targets) * sample.weights
        value = -(sample.weights * _log_likelihood(changed, sample.targets, exclusive)).sum() + RESTRAINT * (x**2).sum()
        slope = np.concatenate([[-(wrong * scores).sum() * np.exp(-x[0])], wrong.sum(axis=0)])
        return float(value), slope + 2 * RESTRAINT * x

    if not len(scores):
        return Calibration(1.0, (0.0,) * columns, exclusive)
    found = minimize(cost, np.zeros(columns + 1), jac=True, method="L-BFGS-B", bounds=[(-3, 3)] + [(-6, 6)] * columns).x
    return Calibration(float(np.exp(found[0])), tuple(map(float, found[1:])), exclusive)


def cross_calibrate(
    predictions: Mapping[str, Prediction],
    truths: Mapping[str, Annotation],
    *,
    groups: Mapping[str, str] | None = None,
    n_folds: int = 5,
) -> dict[str, Prediction]:
    """Calibrate every recording by what others tell, so that figures of the result are honest.

    Parameters
    ----------
    predictions, truths, groups
        As for `fit_calibration`.
    n_folds : int
        At most. A single group is calibrated by itself.
    """
    groups = groups or {}
    recordings = tuple(Recording(n, groups.get(n, n), annotations={"truth": truths[n]}) for n in predictions)
    data = Dataset(recordings, next(iter(predictions.values())).ethogram)
    dealt = assign_folds(data, n_folds) if len({*data.groups().values()}) > 1 else {}
    result = {}
    for fold in sorted({*dealt.values()}) or [0]:
        others = [n for n in predictions if not dealt or dealt[n] != fold]
        found = fit_calibration({n: predictions[n] for n in others}, truths, groups=groups)
        for name, prediction in predictions.items():
            if dealt.get(name, 0) == fold:
                result[name] = with_probabilities(prediction, found.apply(prediction.probabilities))
    return result


def log_loss(predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], *, balanced: bool = False) -> float:
    """Return the mean negative logarithm of the probability of what was true.

    Parameters
    ----------
    predictions, truths
        As for `fit_calibration`.
    balanced : bool
        Let every behavior count the same, however rare.
    """
    sample = _sample(predictions, truths, {})
    losses = -_log_likelihood(_scores(sample.probabilities, sample.exclusive), sample.targets, sample.exclusive)
    if not balanced:
        return float((sample.weights * losses).sum() / max(float(sample.weights.sum()), LEAST))
    on = sample.targets > 0.5
    if not sample.exclusive:
        parts = [losses[:, c][(sample.weights[:, c] > 0) & (on[:, c] == side)] for c in range(on.shape[1]) for side in (False, True)]
    else:
        parts = [losses[on[:, c], 0] for c in range(on.shape[1])]
    return float(np.mean([part.mean() for part in parts if len(part)]))


def calibration_error(predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], bins: int = BINS) -> float:
    """Return the expected calibration error: how far confidence is from accuracy, over bins of the confidence.

    Confidence is the largest probability of a frame where behaviors exclude each other, else that of each behavior being on.
    """
    sample = _sample(predictions, truths, {})
    if sample.exclusive:
        confidence = sample.probabilities.max(axis=1)
        right = sample.targets[np.arange(len(confidence)), sample.probabilities.argmax(axis=1)]
    else:
        known = sample.weights > 0
        confidence, right = sample.probabilities[known], sample.targets[known]
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    gaps = [abs(float((confidence[place == b] - right[place == b]).sum())) for b in range(bins)]
    return float(np.sum(gaps) / max(len(confidence), 1))


def coverage_curve(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], confidences: Sequence[float] = LEVELS
) -> list[Coverage]:
    """Tell how much is left, and how good it is, where a model abstains below a confidence.

    Parameters
    ----------
    predictions, truths
        As for `fit_calibration`.
    confidences : sequence of float
        Levels to abstain below.

    Returns
    -------
    list of Coverage
        ``coverage``: share of the known frames; ``accuracy`` (all of a frame is right) and ``f1`` (mean over behaviors without
        background) on those; NaN where none is left.
    """
    sample = _sample(predictions, truths, {})
    ethogram = next(iter(predictions.values())).ethogram
    scored = [code for code in range(len(ethogram)) if code != ethogram.background]
    known = (sample.weights if sample.exclusive else sample.weights[:, scored]).all(axis=1)
    chances, true = sample.probabilities[known], sample.targets[known] > 0.5
    confidence = frame_confidence(chances, ethogram, exclusive=sample.exclusive)
    if sample.exclusive:
        said = np.eye(chances.shape[1], dtype=bool)[chances.argmax(axis=1)]
    else:
        said, true, scored = chances[:, scored] >= 0.5, true[:, scored], list(range(len(scored)))
    result = []
    for level in confidences:
        kept = confidence >= level
        hits, both = (said & true)[kept][:, scored].sum(axis=0), said[kept][:, scored].sum(axis=0) + true[kept][:, scored].sum(axis=0)
        f1 = 2 * hits[both > 0] / both[both > 0]
        right = float((said == true).all(axis=1)[kept].mean()) if kept.any() else float("nan")
        result.append(
            Coverage(float(level), float(kept.mean()) if len(kept) else 0.0, right, float(f1.mean()) if len(f1) else float("nan"))
        )
    return result


def frame_confidence(probabilities: NDArray[np.floating], ethogram: Ethogram, *, exclusive: bool) -> NDArray[np.floating]:
    """Return how sure each frame is: of the most probable behavior, or of the least sure one where behaviors overlap."""
    if exclusive:
        return np.asarray(probabilities.max(axis=1))
    own = probabilities[:, [code for code in range(len(ethogram)) if code != ethogram.background]]
    return np.asarray(np.maximum(own, 1 - own).min(axis=1, initial=1.0))


def with_probabilities(prediction: Prediction, probabilities: NDArray[np.floating]) -> Prediction:
    """Return a prediction with other probabilities, decoded anew."""
    return Prediction(probabilities, prediction.ethogram, prediction.rate, exclusive=prediction.exclusive)


@dataclass(frozen=True)
class _Sample:
    """Known frames: what was said, what was true (0 or 1 for each column), and how much each counts."""

    probabilities: Array
    targets: Array
    weights: Array
    exclusive: bool


def _sample(predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], groups: Mapping[str, str]) -> _Sample:
    every = max(1, sum(p.n_frames for p in predictions.values()) // MOST_FRAMES)
    parts = []
    for name, prediction in predictions.items():
        if name not in truths:
            raise MismatchError(f"recording {name!r} has a prediction but no truth")
        parts.append(_known(prediction, truths[name].without_subjects().with_ethogram(prediction.ethogram), every))
    members = [groups.get(name, name) for name in predictions]
    sizes = {g: sum(part.weights.sum() for part, own in zip(parts, members, strict=True) if own == g) for g in members}
    parts = [replace(p, weights=p.weights / max(sizes[g] * len(sizes), 1e-12)) for p, g in zip(parts, members, strict=True)]
    said, true, weights = (np.concatenate([getattr(part, side) for part in parts]) for side in ("probabilities", "targets", "weights"))
    return _Sample(said, true, weights, parts[0].exclusive)


def _known(prediction: Prediction, truth: Annotation, every: int) -> _Sample:
    chances = prediction.probabilities.astype(np.float64)
    if prediction.exclusive and prediction.ethogram.background is None and chances.shape[1] == len(prediction.ethogram):
        chances = np.column_stack([chances, np.clip(1 - chances.sum(axis=1), 0, 1)])
    codes = exclusive_targets(truth) if prediction.exclusive else overlapping_targets(truth)
    n = min(len(chances), len(codes))
    chances, codes = chances[:n:every], codes[:n:every]
    shown = ~np.isnan(chances).any(axis=1)
    if prediction.exclusive:
        shown &= codes != UNOBSERVED
        targets = np.eye(chances.shape[1])[codes[shown]]
        return _Sample(chances[shown], targets, np.ones((len(targets), 1)), True)
    codes, chances = codes[shown], chances[shown][:, : codes.shape[1]]
    return _Sample(chances, (codes == 1).astype(np.float64), (codes != UNOBSERVED).astype(np.float64), False)


def _scores(probabilities: NDArray[np.floating], exclusive: bool) -> Array:
    chances = np.clip(probabilities.astype(np.float64), LEAST, 1 - LEAST)
    return np.asarray(np.log(chances) if exclusive else np.log(chances) - np.log1p(-chances))


def _chances(scores: Array, exclusive: bool) -> Array:
    if not exclusive:
        return np.asarray(1 / (1 + np.exp(-scores)))
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _log_likelihood(scores: Array, targets: Array, exclusive: bool) -> Array:
    """Return the logarithm of the probability of what was true: of each frame (one column), or of each behavior."""
    if not exclusive:
        return np.asarray(-np.logaddexp(0, np.where(targets > 0.5, -scores, scores)))
    top = scores.max(axis=1, keepdims=True)
    return np.asarray((scores * targets).sum(axis=1, keepdims=True) - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True)))
