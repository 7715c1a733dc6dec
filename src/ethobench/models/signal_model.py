"""The base of models on signals that are also expressed relative to statistics of the entire recording."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Prediction, Recording
from ethobench.core.recording import Data
from ethobench.core.signals import Keypoint
from ethobench.features.cache import cached
from ethobench.features.multiscale import Baseline, compute_baseline
from ethobench.features.roles import RoleRecording
from ethobench.features.shared import share_values, shared
from ethobench.models.base import Model
from ethobench.models.input_checks import TrainingRange
from ethobench.models.inputs import input_names, select_inputs


class SignalModel(Model):
    """A model on signals that are also expressed relative to their baseline, statistics of the entire recording.

    Attributes
    ----------
    keypoints : mapping of str to Keypoint
        Roles and mirror partners of the keypoints of the training data, where stated.
    training_range : TrainingRange, optional
        Ranges of the signals in the training data, for warnings about recordings that are unlike it.
    """

    uses_features = True
    keypoints: Mapping[str, Keypoint]
    training_range: TrainingRange | None = None

    def signal_baseline(self, recording: Recording) -> Baseline:
        """Return the statistics of the signals of an entire recording, which features are relative to."""
        data, rate = self._data(recording), self.rate_of(recording)
        body_length, keypoints = (None, self.keypoints) if self.role_inputs is None else (1.0, None)

        def compute() -> Baseline:
            return compute_baseline(data, rate, keypoints=keypoints, body_length=body_length)

        settings = rate, keypoints, body_length
        return shared("baseline", (data,), settings, lambda: cached("baseline", data, settings, compute))

    def _baseline_of(self, recording: Recording) -> Baseline | None:
        return self.signal_baseline(recording)

    def _predict_observed(self, recording: Recording, baseline: Any = None) -> Prediction:
        with share_values():  # of the baseline and of all models that predict this recording
            return super()._predict_observed(recording, baseline)

    def _warn_if_unlike_training(self, recording: Recording, baseline: Baseline | None) -> None:
        warning = "" if self.training_range is None or baseline is None else self.training_range.warning(baseline)
        if warning:
            warnings.warn(f"recording {recording.id!r} {warning}", stacklevel=3)

    def _data(self, recording: Recording) -> Data:
        names = tuple(self.inputs or input_names(recording))
        return shared("inputs", (recording.signals, recording.features), names, lambda: select_inputs(recording, names))

    def constant_inputs(self, recording: Recording) -> NDArray[np.float32]:
        """Return the inputs that do not change within a recording (n_constants,); none unless inputs are by role."""
        if self.role_inputs is None:
            return np.zeros(0, dtype=np.float32)
        if not isinstance(recording, RoleRecording):
            raise TypeError(f"recording {recording.id!r} has not been converted to inputs by role")
        return np.array(recording.constants, dtype=np.float32)
