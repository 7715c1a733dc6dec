"""What models on the signals of a recording share: the inputs they learnt, and what is usual in the whole recording."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ethobench.core import Annotation, Poses, Prediction, Recording, Signals
from ethobench.core.errors import MismatchError
from ethobench.core.recording import Data
from ethobench.core.signals import Keypoint
from ethobench.features.cache import cached
from ethobench.features.multiscale import Baseline, compute_baseline
from ethobench.models.base import Model, input_names
from ethobench.models.clock import is_rate
from ethobench.models.familiar import Familiar


class SignalModel(Model):
    """A model on signals that are also expressed relative to a baseline, the typical values of the complete recording.

    Subclasses implement `_predict_relative`.
    """

    keypoints: Mapping[str, Keypoint]
    familiar: Familiar | None = None

    def annotate(self, recording: Recording) -> Annotation:
        """Annotate one recording; a long one a piece at a time, each relative to the baseline of the complete recording."""
        if recording.signals is None or self.ethogram is None or self.directions is not None or not is_rate(recording, self.rate):
            return super().annotate(recording)
        self._check(recording)
        baseline = self._baseline(recording)
        self._warn_if_unfamiliar(recording, baseline)

        def predict(piece: Recording) -> Prediction:
            self._check(piece)
            return self._decode(self._predict_relative(piece, baseline).without_frames(~self.predictable_frames(piece)))

        return self._annotate_in_pieces(recording, predict)

    def _predict(self, recording: Recording) -> Prediction:
        return self._predict_relative(recording, self._baseline(recording))

    def _predict_relative(self, recording: Recording, baseline: Baseline) -> Prediction:
        """Predict a recording, or a piece of one, whose complete recording has this baseline."""
        raise NotImplementedError

    def _notice(self, recording: Recording) -> None:
        if self.familiar is not None:
            self._warn_if_unfamiliar(recording, self._baseline(recording))

    def _warn_if_unfamiliar(self, recording: Recording, baseline: Baseline) -> None:
        """Warn if the signals of a recording are far outside the range of the training data."""
        complaint = "" if self.familiar is None else self.familiar.complaint(baseline)
        if complaint:
            warnings.warn(f"recording {recording.id!r} {complaint}", stacklevel=3)

    def _baseline(self, recording: Recording) -> Baseline:
        """Compute the baseline of a recording, or take it from the feature cache."""
        data, rate = self._data(recording), self._rate(recording)
        return cached("baseline", data, (rate, self.keypoints), lambda: compute_baseline(data, rate, keypoints=self.keypoints))

    def _data(self, recording: Recording) -> Data:
        return known_signals(recording, self.inputs)

    def _rate(self, recording: Recording) -> float:
        return float(recording.rate or self.rate or 1.0)


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
