"""Inputs of a model: channels or keypoints in its order, signals relative to the recording, and steps converted to frames."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ethobench.core import Poses, Recording, Signals
from ethobench.core.errors import MismatchError
from ethobench.core.recording import Data
from ethobench.core.signals import Keypoint
from ethobench.features.cache import cached
from ethobench.features.multiscale import Baseline, compute_baseline
from ethobench.models.base import Model, input_names
from ethobench.models.input_checks import TrainingRange


class SignalModel(Model):
    """A model on signals that are also expressed relative to their baseline, statistics of the entire recording.

    Attributes
    ----------
    keypoints : mapping of str to Keypoint
        Roles and mirror partners of the keypoints of the training data, where stated.
    training_range : TrainingRange, optional
        Ranges of the signals in the training data, for warnings about recordings that are unlike it.
    """

    keypoints: Mapping[str, Keypoint]
    training_range: TrainingRange | None = None

    def signal_baseline(self, recording: Recording) -> Baseline:
        """Return the statistics of the signals of an entire recording, which features are relative to."""
        data, rate = self._data(recording), self.rate_of(recording)
        return cached("baseline", data, (rate, self.keypoints), lambda: compute_baseline(data, rate, keypoints=self.keypoints))

    def _baseline_of(self, recording: Recording) -> Baseline | None:
        return self.signal_baseline(recording)

    def _warn_if_unlike_training(self, recording: Recording, baseline: Baseline | None) -> None:
        warning = "" if self.training_range is None or baseline is None else self.training_range.warning(baseline)
        if warning:
            warnings.warn(f"recording {recording.id!r} {warning}", stacklevel=3)

    def _data(self, recording: Recording) -> Data:
        return select_inputs(recording, self.inputs)


def select_inputs(recording: Recording, inputs: Sequence[str]) -> Data:
    """Return the signals or poses of a recording with the inputs of a model, in their order.

    Parameters
    ----------
    recording : Recording
    inputs : sequence of str
        Channels, or keypoints as ``animal/keypoint``.

    Raises
    ------
    MismatchError
        If the recording has no signals.
    """
    if recording.signals is None:
        raise MismatchError(f"recording {recording.id!r} has no signals to learn from or predict")
    return order_inputs(recording.signals, inputs)


def order_inputs(data: Data, inputs: Sequence[str]) -> Data:
    """Return signals or poses with only the channels, or animals and keypoints, of a model, in their order."""
    if input_names(Recording("", signals=data)) == tuple(inputs):
        return data
    if isinstance(data, Signals):
        return Signals(data.values[:, [data.channels.index(name) for name in inputs]], tuple(inputs), data.rate)
    names = {*inputs}
    animals = [a for a, animal in enumerate(data.individuals) if any(f"{animal}/{point}" in names for point in data.keypoints)]
    points = [k for k, point in enumerate(data.keypoints) if any(f"{animal}/{point}" in names for animal in data.individuals)]
    animals.sort(key=lambda a: min(inputs.index(f"{data.individuals[a]}/{data.keypoints[k]}") for k in points))
    points.sort(key=lambda k: min(inputs.index(f"{data.individuals[a]}/{data.keypoints[k]}") for a in animals))
    return Poses(
        data.positions[:, animals][:, :, points],
        data.confidence[:, animals][:, :, points],
        tuple(data.individuals[a] for a in animals),
        tuple(data.keypoints[k] for k in points),
        data.rate,
    )


def keypoints_from_json(values: Mapping[str, Any]) -> dict[str, Keypoint]:
    """Return keypoints from the result of `keypoints_to_json`."""
    return {str(name): Keypoint(str(name), str(role), str(mirror)) for name, (role, mirror) in values.items()}


def keypoints_to_json(keypoints: Mapping[str, Keypoint]) -> dict[str, list[str]]:
    """Return keypoints as values for JSON: role and mirror partner by name."""
    return {name: [point.role, point.mirror] for name, point in keypoints.items()}


def interpolate_steps(values: np.ndarray, stride: int, n_frames: int) -> np.ndarray:
    """Return values of every frame from those of every `stride`-th frame, by linear interpolation.

    Parameters
    ----------
    values : array (n_steps, n_outputs)
    stride, n_frames : int

    Returns
    -------
    array (n_frames, n_outputs)
    """
    if stride == 1:
        return values[:n_frames]
    position = np.arange(n_frames) / stride
    before = np.minimum(position.astype(np.int64), len(values) - 1)
    after = np.minimum(before + 1, len(values) - 1)
    share = (position - before).astype(np.float32)[:, None]
    return np.asarray(values[before] * (1 - share) + values[after] * share)


def repeat_steps(values: np.ndarray, stride: int, n_frames: int) -> np.ndarray:
    """Return values of every frame from those of every `stride`-th frame: each is kept until the next one."""
    return np.repeat(values, stride, axis=0)[:n_frames]
