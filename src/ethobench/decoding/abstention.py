"""Abstention: frames whose confidence is below a minimum are left unobserved instead of guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.decoding.calibration import label_frames, with_probabilities

CONFIDENCE_LEVELS = tuple(float(level) for level in np.linspace(0, 0.95, 20))


class Coverage(NamedTuple):
    """Coverage and accuracy of a model that abstains below a confidence.

    Attributes
    ----------
    confidence : float
        The minimum confidence.
    coverage : float
        Share of the observed frames that are predicted.
    accuracy : float
        Share of the predicted frames with all behaviors correct; NaN where none is predicted.
    f1 : float
        Mean F1 of frames over behaviors without the background; NaN where none is predicted.
    """

    confidence: float
    coverage: float
    accuracy: float
    f1: float


def frame_confidence(probabilities: NDArray[np.floating], ethogram: Ethogram, *, exclusive: bool) -> NDArray[np.floating]:
    """Return the confidence of each frame.

    Parameters
    ----------
    probabilities : array (n_frames, n_columns)
    ethogram : Ethogram
    exclusive : bool
        If True, the confidence is the largest probability. Otherwise each behavior has the probability of its decision (presence or
        absence), and the confidence is the smallest of these.

    Returns
    -------
    array (n_frames,)
    """
    if exclusive:
        return np.asarray(probabilities.max(axis=1))
    columns = probabilities[:, [code for code in range(len(ethogram)) if code != ethogram.background]]
    return np.asarray(np.maximum(columns, 1 - columns).min(axis=1, initial=1.0))


def abstain(prediction: Prediction, min_confidence: float) -> Prediction:
    """Return the prediction with NaN, and an unobserved annotation, in frames whose confidence is below a minimum."""
    confidence = frame_confidence(prediction.probabilities, prediction.ethogram, exclusive=prediction.exclusive)
    uncertain = confidence[:, None] < min_confidence
    return with_probabilities(prediction, np.where(uncertain, np.float32(np.nan), prediction.probabilities))


def coverage_curve(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], confidences: Sequence[float] = CONFIDENCE_LEVELS
) -> list[Coverage]:
    """Return coverage, accuracy and F1 for several minimum confidences.

    Parameters
    ----------
    predictions, truths
        As for `fit_calibration`.
    confidences : sequence of float
        Minimum confidences.
    """
    frames = label_frames(predictions, truths)
    ethogram = next(iter(predictions.values())).ethogram
    scored = [code for code in range(len(ethogram)) if code != ethogram.background]
    observed = (frames.weights if frames.exclusive else frames.weights[:, scored]).all(axis=1)
    probabilities, truth = frames.probabilities[observed], frames.targets[observed] > 0.5
    confidence = frame_confidence(probabilities, ethogram, exclusive=frames.exclusive)
    if frames.exclusive:
        predicted = np.eye(probabilities.shape[1], dtype=bool)[probabilities.argmax(axis=1)]
    else:
        predicted, truth, scored = probabilities[:, scored] >= 0.5, truth[:, scored], list(range(len(scored)))
    curve = []
    for level in confidences:
        kept = confidence >= level
        kept_predicted, kept_truth = predicted[kept][:, scored], truth[kept][:, scored]
        hits, n_both = (kept_predicted & kept_truth).sum(axis=0), kept_predicted.sum(axis=0) + kept_truth.sum(axis=0)
        f1 = 2 * hits[n_both > 0] / n_both[n_both > 0]
        accuracy = float((predicted == truth).all(axis=1)[kept].mean()) if kept.any() else float("nan")
        coverage = float(kept.mean()) if len(kept) else 0.0
        curve.append(Coverage(float(level), coverage, accuracy, float(f1.mean()) if len(f1) else float("nan")))
    return curve
