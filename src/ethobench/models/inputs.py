"""Inputs of a model: channels or keypoints in the model's order, per-frame features, and steps converted to frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ethobench.core import Poses, Recording, Signals
from ethobench.core.errors import MismatchError
from ethobench.core.recording import Data
from ethobench.core.signals import FEATURE_PREFIX, Keypoint


def input_names(recording: Recording) -> tuple[str, ...]:
    """Return the channels of a recording, or ``individual/keypoint`` for poses, and the names of its per-frame features."""
    data = recording.signals
    if data is None:
        raise MismatchError(f"recording {recording.id!r} has no signals")
    keypoints = () if isinstance(data, Signals) else tuple(f"{animal}/{point}" for animal in data.individuals for point in data.keypoints)
    names = data.channels if isinstance(data, Signals) else keypoints
    features = frame_features(recording)
    return names if features is None or features is data else (*names, *features.channels)


def frame_features(recording: Recording) -> Signals | None:
    """Return the per-frame features of a recording that models use; its signals if these are features; None if it has none."""
    data = recording.signals
    if isinstance(data, Signals) and data.is_features:
        return data
    return recording.features if recording.features is not None and recording.features.is_features else None


def feature_inputs(inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the inputs of a model that are per-frame features."""
    return tuple(name for name in inputs if name.startswith(FEATURE_PREFIX))


def check_inputs(recording: Recording, inputs: Sequence[str]) -> None:
    """Refuse a recording that lacks inputs of a model, or has features of another width or order."""
    if expected := feature_inputs(inputs):
        check_features(recording, expected)
    available = input_names(recording)
    if missing := [name for name in inputs if name not in available]:
        raise MismatchError(f"recording {recording.id!r} lacks {', '.join(missing)}, which the model needs")


def check_features(recording: Recording, expected: Sequence[str]) -> None:
    """Refuse a recording whose features are not those of the training data, in their order."""
    features = frame_features(recording)
    advice = "compute them as for the training data"
    if features is None:
        raise MismatchError(
            f"recording {recording.id!r} has no per-frame features, but the model was trained on {len(expected)}; "
            f"{advice}, and list them in column 'features' of a recordings.csv"
        )
    names = features.channels
    if len(names) != len(expected):
        raise MismatchError(f"recording {recording.id!r} has {len(names)} features, but the model was trained on {len(expected)}; {advice}")
    different = [(i, old, new) for i, (old, new) in enumerate(zip(expected, names, strict=True)) if old != new]
    if different:
        column, old, new = different[0]
        if {*names} == {*expected}:
            problem = f"the features of recording {recording.id!r} are in another order than those that the model was trained on"
        else:
            problem = f"the features of recording {recording.id!r} are not those that the model was trained on"
        raise MismatchError(
            f"{problem}: column {column + 1} is {new.removeprefix(FEATURE_PREFIX)!r}, not {old.removeprefix(FEATURE_PREFIX)!r}; {advice}"
        )


def select_inputs(recording: Recording, inputs: Sequence[str]) -> Data:
    """Return the signals or poses of a recording with the inputs of a model, in their order.

    Parameters
    ----------
    recording : Recording
    inputs : sequence of str
        Channels, or keypoints as ``animal/keypoint``; and per-frame features, which become `extra`.

    Raises
    ------
    MismatchError
        If the recording has no signals.
    """
    if recording.signals is None:
        raise MismatchError(f"recording {recording.id!r} has no signals to learn from or predict")
    features, names = frame_features(recording), [name for name in inputs if not name.startswith(FEATURE_PREFIX)]
    if features is recording.signals or len(names) == len(inputs):
        return order_inputs(recording.signals, inputs)
    if not names and features is not None:  # the model uses features alone
        return order_inputs(features, inputs)
    return replace(order_inputs(recording.signals, names), extra=features)


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
