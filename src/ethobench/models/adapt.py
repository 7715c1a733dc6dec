"""Adapt recordings to a model: another frame rate, other names of animals and keypoints, several annotators."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Dataset, Poses, Prediction, Recording, Signals
from ethobench.core.errors import MismatchError, Note, NotFoundError
from ethobench.core.recording import Data
from ethobench.core.signals import FEATURE_PREFIX, Keypoint
from ethobench.features.filters import resample
from ethobench.features.frame_features import resample_features
from ethobench.features.keypoints import match_keypoints
from ethobench.features.missing_data import valid_positions, zeros_are_missing
from ethobench.models.directed import DirectedPrediction


def has_rate(recording: Recording, rate: float | None) -> bool:
    """Return whether a recording has a rate (frames per second), or states none."""
    return rate is None or recording.rate is None or abs(recording.rate - rate) <= 1e-6 * rate


def with_rate(recording: Recording, rate: float | None) -> Recording:
    """Return a recording with the rate of a model (frames per second) if it states none, with a note about the assumption."""
    if recording.rate is not None or rate is None:
        return recording
    message = f"no frame rate; assuming {rate:g} Hz, the rate of the model's training data (set the rate to change this)"
    notes = (*recording.notes, Note(message, code="assumed-rate"))
    return recording.copy(rate=rate, clock_origin=ClockOrigin.ASSUMED, notes=notes)


def resample_recording(recording: Recording, rate: float) -> Recording:
    """Resample signals and annotations of a recording to another rate (frames per second), with a warning."""
    warnings.warn(f"recording {recording.id!r} has {recording.rate:g} Hz and is resampled to {rate:g} Hz", stacklevel=4)
    data, old_rate = recording.signals, float(recording.rate or rate)
    annotations = {name: annotation.resample(rate) for name, annotation in recording.annotations.items()}
    signals = None if data is None else _resample_signals(data, old_rate, rate)
    n_frames = len(signals) if signals is not None else round((recording.n_frames or 0) * rate / old_rate)
    features = resample_features(recording, rate, n_frames)
    return recording.copy(rate=rate, signals=signals, annotations=annotations, n_frames=n_frames, features=features)


def restore_rate(prediction: Prediction, recording: Recording) -> Prediction:
    """Convert a prediction of a resampled recording to the rate and length of the original recording."""
    rate, n_frames = float(recording.rate or prediction.rate), int(recording.n_frames or 0)
    frames = ((np.arange(n_frames) + 0.5) * prediction.rate / rate).astype(np.int64)
    nearest = np.minimum(frames, max(prediction.n_frames - 1, 0))
    decoded = prediction.annotation
    if decoded.subjects:
        resampled = decoded.resample(rate)
        annotation = resampled.crop(0, min(resampled.n_frames, n_frames)).extend(n_frames)
    elif prediction.exclusive:
        annotation = Annotation.from_frames(decoded.to_codes()[nearest], prediction.ethogram, rate, unobserved=-1)
    else:
        unobserved = np.isnan(prediction.probabilities[nearest]).any(axis=1)
        annotation = Annotation.from_frames(decoded.to_frames()[nearest], prediction.ethogram, rate, unobserved=unobserved)
    restored = type(prediction)(
        prediction.probabilities[nearest], prediction.ethogram, rate, annotation=annotation, exclusive=prediction.exclusive
    )
    if isinstance(prediction, DirectedPrediction) and isinstance(restored, DirectedPrediction):
        restored.by_actors = {actors: restore_rate(each, recording) for actors, each in prediction.by_actors.items()}
    return restored


def match_skeleton(
    recording: Recording,
    inputs: Sequence[str],
    roles: Mapping[str, Keypoint],
    recorded_roles: Mapping[str, Keypoint],
    *,
    keep_names: bool = False,
) -> Recording:
    """Return a recording with the animals and keypoints that a model was trained on.

    Keypoints are matched by their roles and names, animals with other names by their order. The notes of the recording say what was
    matched.

    Parameters
    ----------
    recording : Recording
        With poses.
    inputs : sequence of str
        The inputs of the model, as ``animal/keypoint``.
    roles, recorded_roles : mapping of name to Keypoint
        Roles of the model's keypoints and of the recording's.
    keep_names : bool
        Whether the animals keep their names.
    """
    poses = recording.signals
    names = [name for name in inputs if not name.startswith(FEATURE_PREFIX)]
    if not isinstance(poses, Poses) or not names:
        return recording
    if channels := [name for name in names if "/" not in name]:
        raise MismatchError(f"recording {recording.id!r} has poses, but the model was trained on channels ({', '.join(channels)})")
    animals = tuple(dict.fromkeys(name.rpartition("/")[0] for name in names))
    keypoints = tuple(dict.fromkeys(name.rpartition("/")[2] for name in names))
    notes: list[Note] = []
    if not {*animals} <= {*poses.individuals}:
        if len(animals) != len(poses.individuals):
            raise MismatchError(
                f"recording {recording.id!r} has {len(poses.individuals)} animals ({', '.join(poses.individuals)}), "
                f"but the model was trained on {len(animals)} ({', '.join(animals)})"
            )
        if not keep_names:
            pairs = zip(poses.individuals, animals, strict=True)
            notes.append(Note(f"animals matched by their order: {', '.join(f'{old} as {new}' for old, new in pairs)}"))
            poses = replace(poses, individuals=animals)
    if not {*keypoints} <= {*poses.keypoints}:
        matched = match_keypoints(keypoints, poses.keypoints, trained_roles=roles, recorded_roles=recorded_roles)
        notes += matched.notes
        poses = matched.apply(poses)
    return recording.copy(signals=poses, notes=(*recording.notes, *notes)) if notes else recording


def name_by_role(recording: Recording, keypoints: Mapping[str, Keypoint]) -> Recording:
    """Return a recording whose keypoints with a stated role are named by it."""
    poses, names = recording.signals, {name: point.role for name, point in keypoints.items() if point.role}
    if not isinstance(poses, Poses) or not {*names} & {*poses.keypoints}:
        return recording
    return recording.copy(signals=replace(poses, keypoints=tuple(names.get(name, name) for name in poses.keypoints)))


def split_by_annotator(data: Dataset) -> Dataset:
    """Return a dataset with one recording for each recording and annotator, whose metadata contain the ``annotator``."""
    recordings = [
        recording.copy(
            id=f"{recording.id}|{name}",
            annotations={name: annotation},
            source_id=recording.source_id,
            metadata={**recording.metadata, "annotator": name},
        )
        for recording in data
        for name, annotation in recording.annotations.items()
    ]
    if not recordings:
        raise NotFoundError("no recording has an annotation")
    return replace(data, recordings=tuple(recordings), folds={}, splits={})


def _resample_signals(data: Data, old_rate: float, rate: float) -> Data:
    if isinstance(data, Signals):
        return Signals(resample(data.values, old_rate, rate), data.channels, rate)
    tracked = valid_positions(data, 0.0, zeros_are_missing(data.positions))  # so that missing keypoints do not blend into neighbors
    flat = resample(tracked.reshape(len(data), -1), old_rate, rate)
    confidence = resample(data.confidence.reshape(len(data), -1), old_rate, rate)
    positions = flat.reshape(len(flat), *data.positions.shape[1:])
    return Poses(positions, confidence.reshape(positions.shape[:3]), data.individuals, data.keypoints, rate)
