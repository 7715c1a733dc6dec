"""What models on the signals of a recording share: the inputs they learnt, and what is usual in the whole recording."""

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
    """Learns from signals told relative to what is usual in the recording."""

    keypoints: Mapping[str, Keypoint]
    training_range: TrainingRange | None = None

    def _warn_if_unlike_training(self, recording: Recording, baseline: Baseline | None) -> None:
        warning = "" if self.training_range is None or baseline is None else self.training_range.warning(baseline)
        if warning:
            warnings.warn(f"recording {recording.id!r} {warning}", stacklevel=3)

    def _baseline_of(self, recording: Recording) -> Baseline | None:
        return self.signal_baseline(recording)

    def signal_baseline(self, recording: Recording) -> Baseline:
        """Return the statistics of the signals of an entire recording, which features are relative to."""
        data, rate = self._data(recording), self.rate_of(recording)
        return cached("baseline", data, (rate, self.keypoints), lambda: compute_baseline(data, rate, keypoints=self.keypoints))

    def _data(self, recording: Recording) -> Data:
        return known_signals(recording, self.inputs)


def known_signals(recording: Recording, inputs: Sequence[str]) -> Data:
    """Return the channels, or animals and keypoints, that a model learnt, in its order; a recording without signals is refused."""
    if recording.signals is None:
        raise MismatchError(f"recording {recording.id!r} has no signals to learn from or predict")
    return in_order(recording.signals, inputs)


def in_order(data: Data, inputs: Sequence[str]) -> Data:
    """Return the channels, or animals and keypoints, that a model learnt, in its order; others are left out."""
    if input_names(Recording("", signals=data)) == tuple(inputs):
        return data
    if isinstance(data, Signals):
        return Signals(data.values[:, [data.channels.index(name) for name in inputs]], tuple(inputs), data.rate)
    wanted = {*inputs}
    who = [a for a, animal in enumerate(data.individuals) if any(f"{animal}/{point}" in wanted for point in data.keypoints)]
    points = [k for k, point in enumerate(data.keypoints) if any(f"{animal}/{point}" in wanted for animal in data.individuals)]
    who.sort(key=lambda a: min(inputs.index(f"{data.individuals[a]}/{data.keypoints[k]}") for k in points))
    points.sort(key=lambda k: min(inputs.index(f"{data.individuals[a]}/{data.keypoints[k]}") for a in who))
    return Poses(
        data.positions[:, who][:, :, points],
        data.confidence[:, who][:, :, points],
        tuple(data.individuals[a] for a in who),
        tuple(data.keypoints[k] for k in points),
        data.rate,
    )


def stated_keypoints(plain: Mapping[str, Any]) -> dict[str, Keypoint]:
    """Read the keypoints of a saved model."""
    return {str(name): Keypoint(str(name), str(role), str(mirror)) for name, (role, mirror) in plain.items()}


def plain_keypoints(keypoints: Mapping[str, Keypoint]) -> dict[str, list[str]]:
    """Return keypoints as JSON can hold them."""
    return {name: [point.role, point.mirror] for name, point in keypoints.items()}


def between(values: np.ndarray, every: int, n_frames: int) -> np.ndarray:
    """Return values of every n-th frame for all frames, on straight lines between."""
    if every == 1:
        return values[:n_frames]
    place = np.arange(n_frames) / every
    before = np.minimum(place.astype(np.int64), len(values) - 1)
    after = np.minimum(before + 1, len(values) - 1)
    share = (place - before).astype(np.float32)[:, None]
    return np.asarray(values[before] * (1 - share) + values[after] * share)


def held(values: np.ndarray, every: int, n_frames: int) -> np.ndarray:
    """Return values of every n-th frame for all frames, each until the next is known."""
    return np.repeat(values, every, axis=0)[:n_frames]
