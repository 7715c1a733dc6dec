"""Recordings of another rate than a model's, brought to its clock and back."""

from __future__ import annotations

import warnings

import numpy as np

from ethobench.core import Annotation, Poses, Prediction, Recording, Signals
from ethobench.core.recording import Data
from ethobench.features.filters import resample
from ethobench.features.missing_data import valid_positions, zeros_are_missing
from ethobench.models.directed import DirectedPrediction


def is_rate(recording: Recording, rate: float | None) -> bool:
    """Whether a recording runs at a rate, or does not tell its own."""
    return rate is None or recording.rate is None or abs(recording.rate - rate) <= 1e-6 * rate


def at_rate(recording: Recording, rate: float) -> Recording:
    """Return a recording on another clock, and say so."""
    warnings.warn(f"recording {recording.id!r} runs at {recording.rate:g} Hz and is resampled to {rate:g} Hz", stacklevel=4)
    data = recording.signals
    annotations: dict[str, Annotation] = {name: a.resample(rate) for name, a in recording.annotations.items()}
    moved = None if data is None else _resampled(data, float(recording.rate or rate), rate)
    frames = len(moved) if moved is not None else round((recording.n_frames or 0) * rate / float(recording.rate or rate))
    return recording.copy(rate=rate, signals=moved, annotations=annotations, n_frames=frames, features=None)


def back_at_rate(prediction: Prediction, recording: Recording) -> Prediction:
    """Bring a prediction to the clock of the recording it belongs to."""
    rate, n = float(recording.rate or prediction.rate), int(recording.n_frames or 0)
    places = ((np.arange(n) + 0.5) * prediction.rate / rate).astype(np.int64)
    chosen = np.minimum(places, max(prediction.n_frames - 1, 0))
    codes = prediction.annotation
    if codes.subjects:
        annotation = _as_long(codes.resample(rate), n)
    elif prediction.exclusive:
        annotation = Annotation.from_frames(codes.to_codes()[chosen], prediction.ethogram, rate, unobserved=-1)
    else:
        hidden = np.isnan(prediction.probabilities[chosen]).any(axis=1)
        annotation = Annotation.from_frames(codes.to_frames()[chosen], prediction.ethogram, rate, unobserved=hidden)
    moved = type(prediction)(
        prediction.probabilities[chosen], prediction.ethogram, rate, annotation=annotation, exclusive=prediction.exclusive
    )
    if isinstance(prediction, DirectedPrediction) and isinstance(moved, DirectedPrediction):
        moved.by_actors = {actors: back_at_rate(part, recording) for actors, part in prediction.by_actors.items()}
    return moved


def _as_long(annotation: Annotation, n_frames: int) -> Annotation:
    return annotation.crop(0, min(annotation.n_frames, n_frames)).extend(n_frames)


def _resampled(data: Data, rate_from: float, rate_to: float) -> Data:
    if isinstance(data, Signals):
        return Signals(resample(data.values, rate_from, rate_to), data.channels, rate_to)
    known = valid_positions(data, 0.0, zeros_are_missing(data.positions))  # else what was not found would be mixed into its neighbours
    flat = resample(known.reshape(len(data), -1), rate_from, rate_to)
    sure = resample(data.confidence.reshape(len(data), -1), rate_from, rate_to)
    positions = flat.reshape(len(flat), *data.positions.shape[1:])
    return Poses(positions, sure.reshape(positions.shape[:3]), data.individuals, data.keypoints, rate_to)
