"""Self-supervised pre-training on recordings without annotations: encoders for `harnet`, convolutional layers for `conv1d`."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Dataset, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.files import check_new_path
from ethobench.core.folds import assign_folds
from ethobench.core.wording import join_names
from ethobench.features.filters import axis_triples, is_accelerometer
from ethobench.features.missing_data import interpolate_poses, nan_mean
from ethobench.features.treba import programmed_attributes
from ethobench.training.augmentation import check_augmentations, check_layout
from ethobench.training.channel_inputs import ChannelReader, acceleration_factors, open_channels
from ethobench.training.device import isolated_seed, require_torch
from ethobench.training.fine_tuning import HEAD_PREFIXES
from ethobench.training.loop import History, Progress, TrainingSettings, train
from ethobench.training.pretexts import (
    ACCELERATION_TASKS,
    ATTRIBUTE_LEVELS,
    DEFAULT_ACCELERATION_TASKS,
    N_ATTRIBUTES,
    POSE_TASKS,
    RECONSTRUCTED_STEP,
    AccelerationBatches,
    PoseBatches,
    acceleration_loss,
    cut_windows,
    movement,
    pose_loss,
)
from ethobench.training.trajectory_inputs import InputTransform, fit_input_transform
from ethobench.training.weight_files import ENCODER_FRAMES, write_encoder
from ethobench.training.windows import WindowSpan, sample_frames

if TYPE_CHECKING:
    from torch import nn

ENCODER_RATE = 30.0  # Hz
POSE_INPUTS = ("coordinates", "egocentric")
OVERLAP = 8  # windows that cover a frame
STATISTICS_BATCHES = 8  # on which the statistics of batch normalization are recomputed before each validation
N_SCORED, MIN_BATCH = 512, 16  # held-out windows on which tasks are scored, about
MAX_SCORED_BATCHES = 32
BODY_LENGTH_PIXELS = 95.0  # of a mouse in CalMS21; thresholds of the programmed attributes are in its pixels


def pretrain(
    data: Dataset,
    out: str | Path,
    *,
    config: str = "small",
    tasks: Sequence[str] = DEFAULT_ACCELERATION_TASKS,
    rate: float = ENCODER_RATE,
    epochs: int = 200,
    patience: int = 20,
    learning_rate: float = 3e-4,
    subjects: int = 4,
    per_subject: int = 16,
    updates: int = 25,
    rotated: bool = False,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Pre-train an encoder of acceleration, and save it to a folder for the hyper-parameter `weights` of the model `harnet`.

    Every accelerometer (channels such as ``AccX, AccY, AccZ``) is resampled to a common rate, scaled to a common unit, and cut into
    windows. The encoder learns to predict which transformations were applied to a window. A fifth of the individuals is held out for
    early stopping.

    Parameters
    ----------
    data : Dataset
        Recordings with signals; annotations are not used.
    out : path
        A new folder; written atomically.
    config : {"small", "harnet5", "harnet10", "harnet30"}
        Size of the encoder and length of its windows.
    tasks : sequence of {"arrow", "permutation", "warp", "scale"}
        Transformations: time reversed, segments permuted, time warped, scale changed.
    rate : float
        Sampling rate of the encoder's inputs (Hz).
    epochs, patience : int
        Maximum number of epochs, and epochs without a lower validation loss after which the training stops.
    learning_rate : float
    subjects, per_subject : int
        Maximum number of individuals in a batch, and of windows of each.
    updates : int
        Minimum number of batches in an epoch.
    rotated : bool
        Rotate each window at random, so that the encoder does not depend on the orientation of the tag. The direction of gravity then
        differs from window to window by more than the movements; studies of 6 to 20 animals are too small to learn anything with it.
    seed : int
    checkpoint : path, optional
        File for the state of the training. If it exists, the training is resumed from it.
    progress : callable, optional
        Called after every step.

    Returns
    -------
    dict
        The card in the folder: settings, losses, and how well each task is solved on the held-out individuals.
    """
    require_torch("pre-training")
    from ethobench.models.bebe_modules import PretextNetwork

    out, tasks = Path(out), tuple(dict.fromkeys(tasks))
    check_new_path(out)
    if config not in ENCODER_FRAMES:
        raise ParameterError(f"`config` must be one of {', '.join(ENCODER_FRAMES)}, got {config!r}")
    _check_tasks(tasks, tuple(ACCELERATION_TASKS))
    shared = {"tasks": tasks, "subjects": subjects, "per_subject": per_subject, "rotated": rotated}
    batches = [
        _acceleration_batches(recordings, data, ENCODER_FRAMES[config], rate, updates=count, **shared)
        for recordings, count in zip(_split_individuals(data), (updates, max(updates // 4, 1)), strict=True)
    ]
    with isolated_seed(seed):
        module = PretextNetwork(config, tasks)
    settings = TrainingSettings(epochs, learning_rate, schedule="none", patience=patience, seed=seed)
    identity = {"config": config, "tasks": list(tasks), "rate": rate, "data": data.version, "rotated": rotated}
    identity["batch"] = [subjects, per_subject, updates]
    history = train(
        module,
        batches[0],
        acceleration_loss,
        settings,
        validation=batches[1],
        checkpoint=checkpoint,
        identity=identity,
        progress=progress,
        statistics_batches=STATISTICS_BATCHES,
    )
    card = _make_card(config, tasks, seed, data, history) | {
        "rate": rate,
        "rotated": rotated,
        "frames": ENCODER_FRAMES[config],
        "individuals": [len(np.unique(each.groups)) for each in batches],
        "windows": [len(each.starts) for each in batches],
        "held_out": _acceleration_scores(module, batches[1], seed),
    }
    _warn_of_chance(card["held_out"])
    write_encoder(out, module.encoder.state_dict(), card)
    return card


def pretrain_poses(
    data: Dataset,
    out: str | Path,
    *,
    past: int = 50,
    future: int = 50,
    frame_stride: int = 1,
    inputs: str = "coordinates",
    layers: Sequence[int] = (128, 64, 32),
    kernel: int = 5,
    tasks: Sequence[str] = ("masked", "attributes"),
    augment: Sequence[str] = (),
    epochs: int = 20,
    patience: int = 5,
    learning_rate: float = 1e-3,
    batch: int = 128,
    samples_per_epoch: int | None = 50_000,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Pre-train convolutional layers on poses, and save them to a folder for the hyper-parameter `init` of the model `conv1d`.

    A fifth of the individuals is held out for early stopping.

    Parameters
    ----------
    data : Dataset
        Recordings with poses; annotations are not used.
    out : path
        A new folder; written atomically.
    past, future, frame_stride, inputs, layers, kernel
        As for the model that will be initialized from it.
    tasks : sequence of {"masked", "arrow", "attributes"}
        Reconstruct masked keypoints; predict whether time is reversed; predict the programmed attributes of the current frame (speeds,
        distances and angles of two animals, each in three levels).
    augment : sequence of str
        Names in `AUGMENTATIONS`.
    epochs, patience : int
        Maximum number of epochs, and epochs without a lower validation loss after which the training stops.
    learning_rate : float
    batch : int
        Windows of a batch.
    samples_per_epoch : int, optional
        Maximum number of frames in an epoch; None for all.
    seed : int
    checkpoint : path, optional
        File for the state of the training. If it exists, the training is resumed from it.
    progress : callable, optional
        Called after every step.

    Returns
    -------
    dict
        The card in the folder: settings, losses, and how well each task is solved on the held-out individuals.
    """
    require_torch("pre-training")
    from ethobench.models.calms21_modules import convolutional

    out = Path(out)
    check_new_path(out)
    _check_tasks(tasks, POSE_TASKS)
    tasks = tuple(task for task in POSE_TASKS if task in tasks)
    _check_poses(data, inputs, tasks)
    check_augmentations(augment)
    if "arrow" in tasks and past != future:
        raise ParameterError(f"task 'arrow' needs symmetric windows: `past` must equal `future`, got {past} and {future}")
    span, rate = WindowSpan(past, future, frame_stride), float(data.recordings[0].rate or 1.0)
    transform = fit_input_transform(data.recordings, inputs, rate, causal=future == 0, keypoints=data.keypoints)
    check_layout(augment, transform.layout())
    batches = []
    for recordings, augmentations in zip(_split_individuals(data), (tuple(augment), ()), strict=True):
        sampler = sample_frames(
            [transform.open(recording) for recording in recordings],
            [_attribute_levels(recording, transform) for recording in recordings],
            span,
            batch,
            samples=samples_per_epoch,
            augmentations=augmentations,
            layout=transform.layout(),
        )
        batches.append(PoseBatches(sampler, tasks))
    n_reconstructed = len(range(0, span.frames, RECONSTRUCTED_STEP)) * transform.n_inputs
    sizes = {"masked": n_reconstructed, "arrow": 1, "attributes": N_ATTRIBUTES * ATTRIBUTE_LEVELS}
    with isolated_seed(seed):
        network = convolutional(span.frames, transform.n_inputs, sum(sizes[task] for task in tasks), tuple(layers), kernel, 0.0)
    settings = TrainingSettings(epochs, learning_rate, amsgrad=False, schedule="none", patience=patience, seed=seed)
    shape = {
        "past": past,
        "future": future,
        "frame_stride": frame_stride,
        "inputs": inputs,
        "layers": list(layers),
        "kernel": kernel,
    }
    identity = {**shape, "tasks": list(tasks), "augment": list(augment), "data": data.version, "batch": batch}
    identity["samples_per_epoch"] = samples_per_epoch
    loss = pose_loss(tasks, n_reconstructed, _channel_variances(batches[0].sampler.recordings.values))
    history = train(network, batches[0], loss, settings, validation=batches[1], checkpoint=checkpoint, identity=identity, progress=progress)
    card = _make_card("conv1d", tasks, seed, data, history) | {
        "params": shape,
        "input_transform": dataclasses.asdict(transform),
        "frames": [len(each.sampler) for each in batches],
        "held_out": _pose_scores(network, batches[1], n_reconstructed, seed),
    }
    _warn_of_chance(card["held_out"])
    write_encoder(out, {name: tensor for name, tensor in network.state_dict().items() if not name.startswith(HEAD_PREFIXES)}, card)
    return card


def _split_individuals(data: Dataset) -> tuple[list[Recording], list[Recording]]:
    """Return the recordings for training, and those of the individuals that are held out for validation."""
    folds = assign_folds(data)
    training = [recording for recording in data if folds[recording.id] != 0]
    return training, [recording for recording in data if folds[recording.id] == 0]


def _make_card(config: str, tasks: Sequence[str], seed: int, data: Dataset, history: History) -> dict[str, Any]:
    """Return the entries that the cards of all encoders have."""
    return {
        "config": config,
        "ethobench": version("ethobench"),
        "tasks": list(tasks),
        "seed": seed,
        "trained_on": f"{data.name} ({len(data)} recordings, version {data.version})",
        **dataclasses.asdict(history),
    }


def acceleration_windows(
    recordings: Sequence[Recording], data: Dataset, frames: int, rate: float
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the accelerations of recordings (n_frames, 3), and the first frame and the index of the individual of each window.

    Windows have no gaps, and overlap: they start every eighth of a window.
    """
    group_of = data.groups()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(group_of.values()))}
    signals = [np.zeros((0, 3), dtype=np.float32)]
    starts: list[NDArray[np.int64]] = []
    groups: list[int] = []
    length = 0
    for recording in recordings:
        for reader in _accelerometers(recording, rate):
            chunk = reader.read(0, len(reader))
            missing = np.concatenate([[0], np.cumsum(chunk.incomplete)])
            first = np.arange(0, len(chunk.values) - frames + 1, max(frames // OVERLAP, 1))
            complete = first[missing[first + frames] == missing[first]]
            signals.append(chunk.values)
            starts.append(complete + length)
            groups += [numbers[group_of[recording.id]]] * len(complete)
            length += len(chunk.values)
    if not groups:
        raise EthobenchError(f"no recording is long enough to pre-train on: a window needs {frames / rate:g} s without gaps")
    return np.concatenate(signals), np.concatenate(starts), np.array(groups)


def _acceleration_batches(recordings: Sequence[Recording], data: Dataset, frames: int, rate: float, **options: Any) -> AccelerationBatches:
    signal, starts, groups = acceleration_windows(recordings, data, frames, rate)
    weights = [movement(cut_windows(signal, starts[k : k + 256], frames), rate) for k in range(0, len(starts), 256)]
    return AccelerationBatches(signal, starts, frames, groups, np.concatenate(weights), **options)


def _accelerometers(recording: Recording, rate: float) -> list[ChannelReader]:
    """Open each accelerometer of a recording, at a common rate and scaled to a mean vector length of 1."""
    signals = recording.signals
    triples = axis_triples(signals.channels) if isinstance(signals, Signals) else {}
    accelerometers = [[signals.channels[i] for i in columns] for name, columns in triples.items() if is_accelerometer(name)]  # type: ignore[union-attr]
    if signals is None or not accelerometers:
        raise EthobenchError(f"recording {recording.id!r} has no accelerometer: pre-training needs channels such as AccX, AccY and AccZ")
    readers = [open_channels(signals, names, float(recording.rate or 1.0)) for names in accelerometers]
    readers = [reader if reader.rate == rate else reader.resampled(rate) for reader in readers]
    return [reader.scaled(acceleration_factors(reader)) for reader in readers]


def _acceleration_scores(module: nn.Module, batches: AccelerationBatches, seed: int) -> dict[str, dict[str, Any]]:
    """Return the accuracy of each task on held-out individuals, its chance level, and the noise of the difference."""
    import torch

    correct = []
    with torch.inference_mode():
        for plan in dataclasses.replace(batches, updates=max(batches.updates, N_SCORED // MIN_BATCH)).draw(np.random.default_rng(seed)):
            inputs, labels = batches.gather(plan)
            outputs = module(torch.from_numpy(inputs).to(next(module.parameters()).device))
            correct.append(outputs.argmax(dim=-1).cpu().numpy() == labels)
    shares = np.concatenate(correct).mean(axis=0)
    noise = _noise(0.5, sum(map(len, correct)))
    return {task: _held_out("accuracy", float(share), 0.5, noise) for task, share in zip(batches.tasks, shares, strict=True)}


def _pose_scores(module: nn.Module, batches: PoseBatches, n_reconstructed: int, seed: int) -> dict[str, dict[str, Any]]:
    """Return how well each task is solved on held-out individuals: explained variance of masked positions, accuracy of the others."""
    import torch

    outputs, targets = [], []
    with torch.inference_mode():
        for plan in batches.draw(np.random.default_rng(seed))[:MAX_SCORED_BATCHES]:
            inputs, target = batches.gather(plan)
            outputs.append(module(torch.from_numpy(inputs).to(next(module.parameters()).device)).cpu().numpy())
            targets.append(target)
    scored, labels = np.concatenate(outputs), np.concatenate(targets)
    scores = {}
    if "arrow" in batches.tasks:
        levels = N_ATTRIBUTES if "attributes" in batches.tasks else 0
        column = labels.shape[1] - 1 - levels
        position = scored.shape[1] - 1 - levels * ATTRIBUTE_LEVELS
        share = float(((scored[:, position] > 0) == (labels[:, column] == 1)).mean())
        scores["arrow"] = _held_out("accuracy", share, 0.5, _noise(0.5, len(labels)))
    if "attributes" in batches.tasks:
        levels_true = labels[:, -N_ATTRIBUTES:].astype(np.int64)
        predicted = scored[:, -N_ATTRIBUTES * ATTRIBUTE_LEVELS :].reshape(len(scored), N_ATTRIBUTES, ATTRIBUTE_LEVELS).argmax(axis=2)
        defined = levels_true >= 0
        most = sum(np.bincount(each[each >= 0], minlength=1).max() for each in levels_true.T) / max(defined.sum(), 1)
        share = float((predicted == levels_true)[defined].mean()) if defined.any() else 0.0
        scores["attributes"] = _held_out("accuracy", share, float(most), _noise(float(most), len(labels)))
    if "masked" in batches.tasks:
        values = labels[:, :n_reconstructed]
        masked = np.isfinite(values)
        errors = np.square(scored[:, :n_reconstructed] - np.nan_to_num(values))[masked].sum()
        deviations = np.where(masked, values - nan_mean(values, axis=0), 0.0)
        scores["masked"] = _held_out("explained variance", float(1 - errors / max(np.square(deviations).sum(), 1e-12)), 0.0, 0.0)
    return {task: scores[task] for task in batches.tasks}


def _held_out(metric: str, value: float, chance: float, noise: float) -> dict[str, Any]:
    return {"metric": metric, "value": value, "chance": chance, "noise": noise}


def _noise(chance: float, n: int) -> float:
    """Return two standard errors of a share at chance; the labels of transformed windows are drawn independently."""
    return float(2 * np.sqrt(chance * (1 - chance) / max(n, 1)))


def _warn_of_chance(scores: Mapping[str, Mapping[str, Any]]) -> None:
    """Warn about tasks in which held-out individuals are predicted no better than by chance."""
    failed = [task for task, each in scores.items() if each["value"] <= each["chance"] + each["noise"]]
    if not failed:
        return
    values = ", ".join(f"{task} {scores[task]['value']:.2f}" for task in failed)
    outcome = "nothing was learned" if len(failed) == len(scores) else "these tasks taught nothing"
    warnings.warn(
        f"at chance on held-out individuals: {values}; {outcome}. Train longer, on more recordings, or with other tasks", stacklevel=3
    )


def _attribute_levels(recording: Recording, transform: InputTransform) -> NDArray[np.int16]:
    """Return the levels of the programmed attributes (n_frames, n_attributes); -1 where an attribute is undefined."""
    poses = recording.signals
    if not isinstance(poses, Poses):
        raise EthobenchError(f"recording {recording.id!r} has no poses")
    if len(poses.individuals) < 2:  # attributes need two animals; all frames in which the animal is tracked are sampled
        tracked = np.isfinite(poses.positions[..., 0]).any(axis=(1, 2))
        return np.where(tracked, 0, -1).astype(np.int16)[:, None].repeat(N_ATTRIBUTES, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        attributes = programmed_attributes(
            interpolate_poses(poses, rate=transform.rate),
            transform.rate,
            pixels=BODY_LENGTH_PIXELS / transform.unit,
            keypoints=transform.stated_keypoints,
        )
    return attributes.levels.astype(np.int16)


def _channel_variances(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the variance of each channel, without missing values (zeros); 1 for a constant channel."""
    count = np.maximum(np.count_nonzero(values, axis=0), 1)
    mean = values.sum(axis=0, dtype=np.float64) / count
    variance = np.square(values, dtype=np.float64).sum(axis=0) / count - mean**2
    return np.where(variance > 1e-9, variance, 1.0).astype(np.float32)


def _check_tasks(tasks: Sequence[str], available: Sequence[str]) -> None:
    unknown = [name for name in tasks if name not in available]
    if unknown or not tasks:
        raise ParameterError(f"`tasks` must be one or more of {', '.join(available)}, got {', '.join(unknown) or 'none'}")


def _check_poses(data: Dataset, inputs: str, tasks: Sequence[str]) -> None:
    if inputs not in POSE_INPUTS:
        raise ParameterError(f"`inputs` must be {join_names(POSE_INPUTS, 'or')} for pre-training, got {inputs!r}")
    n_animals = 2 if "attributes" in tasks else 1
    for recording in data:
        if not isinstance(recording.signals, Poses) or len(recording.signals.individuals) < n_animals:
            raise EthobenchError(f"recording {recording.id!r} has no poses of {n_animals} animals, which {', '.join(tasks)} need")
