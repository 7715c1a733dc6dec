"""Calibration: probabilities that equal the frequency of a behavior among the frames that have this probability.

Temperature scaling with a bias for each behavior. All predictions must be out-of-fold, from models that were not trained on the
recording.

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks", ICML 2017.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Prediction
from ethobench.core.annotation import UNOBSERVED
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.targets import exclusive_targets, overlapping_targets
from ethobench.decoding.training_data import cross_validation_splits

Array = NDArray[np.float64]
MAX_FRAMES = 50_000  # more frames hardly change the calibration
MIN_PROBABILITY = 1e-6  # smaller probabilities count as this one, so that logarithms are finite
REGULARIZATION = 1e-3  # on the squared parameters, so that a behavior that never occurs has a finite bias
MAX_LOG_TEMPERATURE, MAX_BIAS = 3, 6
BINS = 15


@dataclass(frozen=True)
class Calibration:
    """Temperature scaling of log probabilities (exclusive) or log odds (overlapping), plus a bias for each behavior.

    Attributes
    ----------
    temperature : float
        Above 1 where a model is overconfident.
    bias : tuple of float
        One per column of the probabilities: above 0 where a behavior is more frequent than predicted.
    exclusive : bool
        Whether behaviors exclude each other.
    """

    temperature: float
    bias: tuple[float, ...]
    exclusive: bool

    def apply(self, probabilities: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return calibrated probabilities of the same shape."""
        logits = _to_logits(probabilities, self.exclusive) / self.temperature + np.array(self.bias)
        return _to_probabilities(logits, self.exclusive).astype(np.float32)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values that JSON can hold."""
        return {"temperature": self.temperature, "bias": list(self.bias), "exclusive": self.exclusive}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Create a calibration from the result of `to_dict`."""
        try:
            return cls(float(saved["temperature"]), tuple(map(float, saved["bias"])), bool(saved["exclusive"]))
        except (KeyError, TypeError, ValueError) as error:
            raise EthobenchError(f"not a valid calibration: {error}") from None


def fit_calibration(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], *, groups: Mapping[str, str] | None = None
) -> Calibration:
    """Fit the temperature and biases that maximize the likelihood of the reference annotations; all groups have the same weight.

    Parameters
    ----------
    predictions : mapping of recording to Prediction
        Out-of-fold, with one ethogram.
    truths : mapping of recording to Annotation
        Reference annotations in the same ethogram.
    groups : mapping of recording to str, optional
        Individuals. Each recording is its own group by default.
    """
    from scipy.optimize import minimize

    frames = label_frames(predictions, truths, groups)
    logits, exclusive = _to_logits(frames.probabilities, frames.exclusive), frames.exclusive
    n_columns = logits.shape[1]

    def loss_and_gradient(x: Array) -> tuple[float, Array]:
        scaled = logits * np.exp(-x[0]) + x[1:]
        residual = (_to_probabilities(scaled, exclusive) - frames.targets) * frames.weights
        loss = -(frames.weights * _log_likelihood(scaled, frames.targets, exclusive)).sum() + REGULARIZATION * (x**2).sum()
        gradient = np.concatenate([[-(residual * logits).sum() * np.exp(-x[0])], residual.sum(axis=0)])
        return float(loss), gradient + 2 * REGULARIZATION * x

    if not len(logits):
        return Calibration(1.0, (0.0,) * n_columns, exclusive)
    bounds = [(-MAX_LOG_TEMPERATURE, MAX_LOG_TEMPERATURE)] + [(-MAX_BIAS, MAX_BIAS)] * n_columns
    solution = minimize(loss_and_gradient, np.zeros(n_columns + 1), jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(float(np.exp(solution[0])), tuple(map(float, solution[1:])), exclusive)


def cross_calibrate(
    predictions: Mapping[str, Prediction],
    truths: Mapping[str, Annotation],
    *,
    groups: Mapping[str, str] | None = None,
    n_folds: int = 5,
) -> dict[str, Prediction]:
    """Calibrate each recording with a calibration fitted on other groups, so that scores of the result are unbiased.

    Parameters
    ----------
    predictions, truths, groups
        As for `fit_calibration`.
    n_folds : int
        At most. A single group is calibrated with its own calibration.
    """
    groups = groups or {}
    ethogram = next(iter(predictions.values())).ethogram
    result = {}
    for fit_on, evaluated in cross_validation_splits({name: truths[name] for name in predictions}, ethogram, groups, n_folds):
        calibration = fit_calibration({name: predictions[name] for name in fit_on}, truths, groups=groups)
        for name in evaluated:
            result[name] = with_probabilities(predictions[name], calibration.apply(predictions[name].probabilities))
    return result


def log_loss(predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], *, balanced: bool = False) -> float:
    """Return the mean negative log probability of the reference annotations.

    Parameters
    ----------
    predictions, truths
        As for `fit_calibration`.
    balanced : bool
        Whether every behavior has the same weight, however rare.
    """
    frames = label_frames(predictions, truths)
    losses = -_log_likelihood(_to_logits(frames.probabilities, frames.exclusive), frames.targets, frames.exclusive)
    if not balanced:
        return float((frames.weights * losses).sum() / max(float(frames.weights.sum()), MIN_PROBABILITY))
    occurs = frames.targets > 0.5
    behaviors = range(occurs.shape[1])
    if frames.exclusive:
        by_class = [losses[occurs[:, c], 0] for c in behaviors]
    else:
        by_class = [losses[:, c][(frames.weights[:, c] > 0) & (occurs[:, c] == value)] for c in behaviors for value in (False, True)]
    return float(np.mean([class_losses.mean() for class_losses in by_class if len(class_losses)]))


def calibration_error(predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], bins: int = BINS) -> float:
    """Return the expected calibration error: the mean difference between confidence and accuracy over bins of confidence.

    The confidence is the largest probability of a frame for exclusive behaviors, else the probability of each behavior.
    """
    frames = label_frames(predictions, truths)
    if frames.exclusive:
        confidence = frames.probabilities.max(axis=1)
        correct = frames.targets[np.arange(len(confidence)), frames.probabilities.argmax(axis=1)]
    else:
        observed = frames.weights > 0
        confidence, correct = frames.probabilities[observed], frames.targets[observed]
    bin_index = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    gaps = [abs(float((confidence[bin_index == b] - correct[bin_index == b]).sum())) for b in range(bins)]
    return float(np.sum(gaps) / max(len(confidence), 1))


def with_probabilities(prediction: Prediction, probabilities: NDArray[np.floating]) -> Prediction:
    """Return the prediction with other probabilities and the annotation that follows from them."""
    return Prediction(probabilities, prediction.ethogram, prediction.rate, exclusive=prediction.exclusive, boundaries=prediction.boundaries)


@dataclass(frozen=True)
class LabeledFrames:
    """Probabilities of observed frames with their reference labels.

    Attributes
    ----------
    probabilities : array (n_frames, n_columns)
    targets : array (n_frames, n_columns)
        1 for the true behaviors, else 0.
    weights : array (n_frames, 1) or (n_frames, n_columns)
        The second shape for overlapping behaviors; 0 where a behavior is unobserved.
    exclusive : bool
    """

    probabilities: Array
    targets: Array
    weights: Array
    exclusive: bool


def label_frames(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], groups: Mapping[str, str] | None = None
) -> LabeledFrames:
    """Collect the observed frames of all recordings, subsampled to about 50,000; all groups have the same total weight.

    Parameters
    ----------
    predictions, truths, groups
        As for `fit_calibration`.
    """
    step = max(1, sum(p.n_frames for p in predictions.values()) // MAX_FRAMES)
    by_recording = []
    for name, prediction in predictions.items():
        if name not in truths:
            raise MismatchError(f"recording {name!r} has a prediction but no reference annotation")
        truth = truths[name].without_subjects().with_ethogram(prediction.ethogram)
        by_recording.append(_label_recording(prediction, truth, step))
    group_of = [(groups or {}).get(name, name) for name in predictions]
    sizes = {g: sum(frames.weights.sum() for frames, other in zip(by_recording, group_of, strict=True) if other == g) for g in group_of}
    by_recording = [
        replace(frames, weights=frames.weights / max(sizes[g] * len(sizes), 1e-12))
        for frames, g in zip(by_recording, group_of, strict=True)
    ]
    probabilities, targets, weights = (
        np.concatenate([getattr(frames, name) for frames in by_recording]) for name in ("probabilities", "targets", "weights")
    )
    return LabeledFrames(probabilities, targets, weights, by_recording[0].exclusive)


def _label_recording(prediction: Prediction, truth: Annotation, step: int) -> LabeledFrames:
    probabilities = prediction.probabilities.astype(np.float64)
    if prediction.exclusive and prediction.ethogram.background is None and probabilities.shape[1] == len(prediction.ethogram):
        probabilities = np.column_stack([probabilities, np.clip(1 - probabilities.sum(axis=1), 0, 1)])
    codes = exclusive_targets(truth) if prediction.exclusive else overlapping_targets(truth)
    n = min(len(probabilities), len(codes))
    probabilities, codes = probabilities[:n:step], codes[:n:step]
    usable = ~np.isnan(probabilities).any(axis=1)
    if prediction.exclusive:
        usable &= codes != UNOBSERVED
        targets = np.eye(probabilities.shape[1])[codes[usable]]
        return LabeledFrames(probabilities[usable], targets, np.ones((len(targets), 1)), True)
    codes, probabilities = codes[usable], probabilities[usable][:, : codes.shape[1]]
    return LabeledFrames(probabilities, (codes == 1).astype(np.float64), (codes != UNOBSERVED).astype(np.float64), False)


def _to_logits(probabilities: NDArray[np.floating], exclusive: bool) -> Array:
    clipped = np.clip(probabilities.astype(np.float64), MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return np.asarray(np.log(clipped) if exclusive else np.log(clipped) - np.log1p(-clipped))


def _to_probabilities(logits: Array, exclusive: bool) -> Array:
    """Apply the softmax (exclusive) or the logistic function (overlapping)."""
    if not exclusive:
        return np.asarray(1 / (1 + np.exp(-logits)))
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _log_likelihood(logits: Array, targets: Array, exclusive: bool) -> Array:
    """Return the log probability of the reference labels: one column for exclusive behaviors, else one per behavior."""
    if not exclusive:
        return np.asarray(-np.logaddexp(0, np.where(targets > 0.5, -logits, logits)))
    top = logits.max(axis=1, keepdims=True)
    return np.asarray((logits * targets).sum(axis=1, keepdims=True) - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True)))
