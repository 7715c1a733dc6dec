"""Blending: a weighted mean of the calibrated probabilities of several models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core.errors import EthobenchError
from ethobench.decoding.calibration import Calibration, cross_calibrate, fit_calibration, log_loss, with_probabilities
from ethobench.decoding.viterbi import NO_BEHAVIOR
from ethobench.features.shared import shared

MAX_BIAS = 3.0  # of a calibration, beyond which `Blend.priors` do not undo it
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # candidates for the weight of a model beside those before it


@dataclass(frozen=True)
class Blend:
    """Weights and calibrations by which predictions of several models become one.

    Attributes
    ----------
    weights : mapping of model to float
        Their sum is 1.
    calibrations : mapping of model to Calibration
        Of the models that have one.
    """

    weights: Mapping[str, float]
    calibrations: Mapping[str, Calibration]

    def apply(self, predictions: Mapping[str, Prediction]) -> Prediction:
        """Blend the predictions of several models for one recording.

        Parameters
        ----------
        predictions : mapping of model to Prediction
        """
        calibrated = {}
        for name, prediction in predictions.items():
            calibration = self.calibrations.get(name)
            if calibration is None:
                calibrated[name] = prediction
            else:
                calibrated[name] = with_probabilities(prediction, calibration.apply(prediction.probabilities))
        return weighted_mean(calibrated, self.weights)

    def priors(self, ethogram: Ethogram) -> dict[str, float]:
        """Return the `priors` of a decoder that restore the weight of rare behaviors in training.

        Calibrated probabilities reflect the frequency of behaviors. The models were trained with larger weights for rare behaviors,
        which is better for a mean over behaviors.
        """
        names = (*ethogram.names, NO_BEHAVIOR)
        bias = np.zeros(len(names))
        for name, calibration in self.calibrations.items():
            bias[: len(calibration.bias)] += self.weights[name] * np.array(calibration.bias)
        return {name: float(factor) for name, factor in zip(names, np.exp(-np.clip(bias, -MAX_BIAS, MAX_BIAS)), strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values that JSON can hold."""
        return {"weights": dict(self.weights), "calibrations": {name: c.to_dict() for name, c in self.calibrations.items()}}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Create a blend from the result of `to_dict`."""
        try:
            weights = {str(name): float(weight) for name, weight in saved["weights"].items()}
            return cls(weights, {str(name): Calibration.from_dict(fields) for name, fields in saved["calibrations"].items()})
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EthobenchError(f"not a valid blend: {error}") from None


def fit_blend(
    predictions: Mapping[str, Mapping[str, Prediction]], truths: Mapping[str, Annotation], groups: Mapping[str, str] | None = None
) -> tuple[Blend, dict[str, Prediction]]:
    """Calibrate models and choose their weights for the lowest log loss, with the same weight for rare and common behaviors.

    Models are added in their order, each with the best share beside those before it.

    Parameters
    ----------
    predictions : mapping of model to mapping of recording to Prediction
        Out-of-fold, of the same recordings.
    truths : mapping of recording to Annotation
        Reference annotations.
    groups : mapping of recording to str, optional
        Individuals. Each recording is its own group by default.

    Returns
    -------
    blend : Blend
    blended : dict of recording to Prediction
        Out-of-fold predictions of the blend: each recording is calibrated with the others.
    """
    names = list(predictions)
    calibrations, calibrated = {}, {}
    for name in names:  # blends of some of these models, in the same `share_values`, need the same calibrations
        calibrations[name], calibrated[name] = shared(
            "calibration", (predictions[name], truths), groups, partial(calibrate, predictions[name], truths, groups)
        )
    blended, weights = calibrated[names[0]], {names[0]: 1.0}
    for name in names[1:]:
        by_share = {share: _blend_two(blended, calibrated[name], share) for share in SHARES}
        best = min(SHARES, key=lambda share: log_loss(by_share[share], truths, balanced=True))
        blended = by_share[best]
        weights = {other: weight * (1 - best) for other, weight in weights.items()} | {name: best}
    return Blend(weights, calibrations), blended


def calibrate(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], groups: Mapping[str, str] | None
) -> tuple[Calibration, dict[str, Prediction]]:
    """Return the calibration of a model, and its predictions, each calibrated with the others."""
    return fit_calibration(predictions, truths, groups=groups), cross_calibrate(predictions, truths, groups=groups)


def weighted_mean(predictions: Mapping[str, Prediction], weights: Mapping[str, float]) -> Prediction:
    """Return the weighted mean of the probabilities of several models; models with weight 0 are ignored.

    The result has the boundaries of all models that predict them.
    """
    used = {name: weights[name] for name in predictions if weights[name] > 0}
    total = sum(weight * predictions[name].probabilities.astype(np.float32) for name, weight in used.items())
    first = predictions[next(iter(used))]
    boundaries = [each for name in used if (each := predictions[name].boundaries) is not None]
    return Prediction(
        np.asarray(total / np.float32(sum(used.values()))),
        first.ethogram,
        first.rate,
        exclusive=first.exclusive,
        boundaries=np.concatenate(boundaries) if boundaries else None,
    )


def _blend_two(first: Mapping[str, Prediction], second: Mapping[str, Prediction], share: float) -> dict[str, Prediction]:
    weights = {"first": 1 - share, "second": share}
    return {name: weighted_mean({"first": first[name], "second": second[name]}, weights) for name in first}
