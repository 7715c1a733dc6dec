"""Several models as one: each calibrated, then the mean of what they say, weighed by what out-of-fold predictions tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core.errors import EthobenchError
from ethobench.decoding.calibration import Calibration, cross_calibrate, fit_calibration, log_loss, with_probabilities
from ethobench.decoding.viterbi import NO_BEHAVIOR

MOST = 3.0  # of a bias that is undone
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Blend:
    """How what several models say becomes one prediction.

    Attributes
    ----------
    weights : mapping of model to float
        Their sum is 1.
    calibrations : mapping of model to Calibration
        Of those that could be calibrated.
    """

    weights: Mapping[str, float]
    calibrations: Mapping[str, Calibration]

    def apply(self, said: Mapping[str, Prediction]) -> Prediction:
        """Join what the models with a weight say of one recording."""
        calibrated = {}
        for name, prediction in said.items():
            own = self.calibrations.get(name)
            calibrated[name] = prediction if own is None else with_probabilities(prediction, own.apply(prediction.probabilities))
        return weighted_mean(calibrated, self.weights)

    def priors(self, ethogram: Ethogram) -> dict[str, float]:
        """Return the `priors` of a decoder that gives rare behaviors back the weight that they had in training.

        Calibrated probabilities tell how frequent behaviors are; the models were trained with rare ones weighing more, which is
        better for a mean over behaviors.
        """
        names = (*ethogram.names, NO_BEHAVIOR)
        bias = np.zeros(len(names))
        for name, own in self.calibrations.items():
            bias[: len(own.bias)] += self.weights[name] * np.array(own.bias)
        return {name: float(factor) for name, factor in zip(names, np.exp(-np.clip(bias, -MOST, MOST)), strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {"weights": dict(self.weights), "calibrations": {name: own.to_dict() for name, own in self.calibrations.items()}}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make what `to_dict` returned."""
        try:
            weights = {str(name): float(weight) for name, weight in plain["weights"].items()}
            return cls(weights, {str(name): Calibration.from_dict(own) for name, own in plain["calibrations"].items()})
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EthobenchError(f"this is no blend: {error}") from None


def fit_blend(
    predictions: Mapping[str, Mapping[str, Prediction]], truths: Mapping[str, Annotation], groups: Mapping[str, str] | None = None
) -> tuple[Blend, dict[str, Prediction]]:
    """Calibrate models, and weigh them so that rare and common behaviors are as probable as possible where they go on.

    Models join in their order: each gets the share beside those before it that is best.

    Parameters
    ----------
    predictions : mapping of model to mapping of recording to Prediction
        Out-of-fold, of the same recordings.
    truths : mapping of recording to Annotation
    groups : mapping of recording to str, optional
        Individuals; each recording is its own unless given.

    Returns
    -------
    blend : Blend
    joined : dict of recording to Prediction
        What the blend says of each recording, calibrated by what the others tell.
    """
    names = list(predictions)
    calibrations = {name: fit_calibration(predictions[name], truths, groups=groups) for name in names}
    honest = {name: cross_calibrate(predictions[name], truths, groups=groups) for name in names}
    joined, weights = honest[names[0]], {names[0]: 1.0}
    for name in names[1:]:
        tried = {share: _joined(joined, honest[name], share) for share in SHARES}
        best = min(SHARES, key=lambda share: log_loss(tried[share], truths, balanced=True))
        joined = tried[best]
        weights = {other: weight * (1 - best) for other, weight in weights.items()} | {name: best}
    return Blend(weights, calibrations), joined


def weighted_mean(said: Mapping[str, Prediction], weights: Mapping[str, float]) -> Prediction:
    """Return the mean of probabilities, weighed by model."""
    used = {name: weights[name] for name in said if weights[name] > 0}
    total = sum(weight * said[name].probabilities.astype(np.float32) for name, weight in used.items())
    return with_probabilities(said[next(iter(used))], np.asarray(total / np.float32(sum(used.values()))))


def _joined(one: Mapping[str, Prediction], other: Mapping[str, Prediction], share: float) -> dict[str, Prediction]:
    weights = {"one": 1 - share, "other": share}
    return {name: weighted_mean({"one": one[name], "other": other[name]}, weights) for name in one}
