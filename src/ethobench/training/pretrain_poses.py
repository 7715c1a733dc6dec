"""Self-supervised pre-training on poses that nobody has annotated, for the convolutions of the model `conv1d`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Dataset, Poses, Recording
from ethobench.core.errors import EthobenchError
from ethobench.core.files import check_new_path
from ethobench.core.folds import assign_folds
from ethobench.features.missing_data import interpolate_poses
from ethobench.features.treba import programmed_attributes
from ethobench.training.augmentation import check_augmentations, check_layout
from ethobench.training.device import own_random_state, require_torch
from ethobench.training.fine_tuning import HEADS
from ethobench.training.loop import Progress, Training, train
from ethobench.training.losses import Loss
from ethobench.training.pretrain import write_encoder
from ethobench.training.trajectories import Plan, Reach, Trajectories, lay_out
from ethobench.training.trajectory_inputs import Preparation, learn_preparation

if TYPE_CHECKING:
    from torch import Tensor

TASKS = ("masked", "arrow", "attributes")
INPUTS = ("coordinates", "egocentric")
LEVELS, ATTRIBUTES = 3, 10
BODY_PIXELS = 95.0  # how long a mouse of CalMS21 is, whose pixels the attributes' thresholds are told in
EVERY = 5  # of a window's frames, every so many are told again
HIDDEN_POINTS, HIDDEN_FRAMES = 0.15, (0.1, 0.35)


@dataclass(frozen=True, eq=False)
class PosePretexts:
    """Windows of poses with parts hidden; what the training loop draws from.

    Attributes
    ----------
    windows : Trajectories
        Its targets are the levels of the programmed attributes.
    tasks : tuple of str
    """

    windows: Trajectories
    tasks: tuple[str, ...]

    def draw(self, generator: np.random.Generator) -> list[Plan]:
        """Plan an epoch."""
        return self.windows.draw(generator)

    def gather(self, plan: Plan, /) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return windows in which something is hidden; what was hidden (NaN elsewhere), then the attributes' levels."""
        whole, levels = self.windows.gather(plan)
        random = np.random.default_rng(plan.seed)
        turned = random.random(len(whole)) < 0.5 if "arrow" in self.tasks else np.zeros(len(whole), dtype=bool)
        whole = np.where(turned[:, None, None], whole[:, ::-1], whole)
        hidden = hide(whole.shape, random) & (whole != 0)
        wanted = np.where(hidden, whole, np.float32(np.nan))[:, ::EVERY].reshape(len(whole), -1)
        seen = np.where(hidden, np.float32(0), whole) if "masked" in self.tasks else whole
        parts = {"masked": wanted, "arrow": turned[:, None].astype(np.float32), "attributes": levels.astype(np.float32)}
        return seen, np.concatenate([parts[task] for task in self.tasks], axis=1)


def hide(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.bool_]:
    """Choose what to hide of windows (window, frame, channel): a stretch of frames, and single keypoints throughout."""
    n, frames, channels = shape
    least, most = (max(1, round(share * frames)) for share in HIDDEN_FRAMES)
    length = generator.integers(least, most + 1, (n, 1))
    start = generator.integers(0, frames - length + 1)
    place = np.arange(frames)
    stretch = (place >= start) & (place < start + length)
    points = np.repeat(generator.random((n, channels // 2)) < HIDDEN_POINTS, 2, axis=1)
    return stretch[:, :, None] | points[:, None, :]


def pretrain_poses(
    data: Dataset,
    out: str | Path,
    *,
    past: int = 50,
    future: int = 50,
    gap: int = 1,
    inputs: str = "coordinates",
    layers: Sequence[int] = (128, 64, 32),
    kernel: int = 5,
    tasks: Sequence[str] = ("masked", "attributes"),
    augment: Sequence[str] = (),
    epochs: int = 20,
    patience: int = 5,
    learning_rate: float = 1e-3,
    batch: int = 128,
    samples: int | None = 50_000,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Pre-train convolutions over poses without labels, and save them as a folder that the model `conv1d` takes as its ``init``.

    A fifth of the individuals is held out; training stops when the tasks are not done better on them.

    Parameters
    ----------
    data : Dataset
        Recordings with poses; annotations are not used.
    out : path
        A folder that is not there yet; it appears whole or not at all.
    past, future, gap, inputs, layers, kernel
        As for the model that is to begin with it.
    tasks : sequence of {"masked", "arrow", "attributes"}
        Tell where keypoints were that are hidden; tell whether time runs backwards; tell the programmed attributes of the current
        frame (speeds, distances, angles of two animals, each in three levels).
    augment : sequence of str
        See `learning.augmentation`.
    epochs, patience : int
        Of at most so many epochs, stop after so many without a lower loss on the individuals held out.
    learning_rate : float
    batch : int
    samples : int, optional
        The most frames that an epoch learns from; None for all.
    seed : int
    checkpoint : path, optional
        A file that keeps the state of the training; if it is there, the training goes on from it.
    progress : callable, optional
        Told after every step.

    Returns
    -------
    dict
        What the folder's card says: settings and losses.
    """
    require_torch("pre-training")
    from ethobench.training.trajectory_networks import convolutional

    out, tasks = Path(out), tuple(task for task in TASKS if task in tasks) if {*tasks} <= {*TASKS} else tuple(tasks)
    _check(data, out, inputs, tasks)
    check_augmentations(augment)
    if "arrow" in tasks and past != future:
        raise EthobenchError("whether time runs backwards is told of windows that reach as far ahead as back: give past and future alike")
    reach, rate = Reach(past, future, gap), float(data.recordings[0].rate or 1.0)
    how = learn_preparation(data.recordings, inputs, rate, causal=future == 0, keypoints=data.keypoints)
    check_layout(augment, how.layout())
    folds = assign_folds(data)
    parts = []
    for held in (False, True):
        own = [recording for recording in data if (folds[recording.id] == 0) is held]
        windows = _windows(own, how, reach, batch, samples, () if held else tuple(augment))
        parts.append(PosePretexts(windows, tasks))
    told = len(range(0, reach.frames, EVERY)) * how.n_inputs
    sizes = {"masked": told, "arrow": 1, "attributes": ATTRIBUTES * LEVELS}
    with own_random_state(seed):
        network = convolutional(reach.frames, how.n_inputs, sum(sizes[task] for task in tasks), tuple(layers), kernel, 0.0)
    settings = Training(epochs, learning_rate, amsgrad=False, schedule="none", patience=patience, seed=seed)
    shape = {"past": past, "future": future, "gap": gap, "inputs": inputs, "layers": list(layers), "kernel": kernel}
    identity = {**shape, "tasks": list(tasks), "augment": list(augment), "data": data.version, "batch": batch, "samples": samples}
    loss = pretext_loss(tasks, told, _variances(parts[0].windows.values))
    history = train(network, parts[0], loss, settings, validation=parts[1], checkpoint=checkpoint, identity=identity, progress=progress)
    card: dict[str, Any] = {
        "config": "conv1d",
        "ethobench": version("ethobench"),
        "params": shape,
        "preparation": dataclasses.asdict(how),
        "tasks": list(tasks),
        "seed": seed,
        "trained_on": f"{data.name} ({len(data)} recordings, version {data.version})",
        "frames": [len(part.windows) for part in parts],
        "losses": list(history.losses),
        "validation": list(history.validation),
        "best_epoch": history.best_epoch,
    }
    write_encoder(out, {name: tensor for name, tensor in network.state_dict().items() if not name.startswith(HEADS)}, card)
    return card


def pretext_loss(tasks: Sequence[str], told: int, variances: NDArray[np.float32]) -> Loss:
    """Make the sum of what the tasks cost: the squared error of what was hidden, as a share of its variance; cross-entropies of the others.

    Parameters
    ----------
    tasks : sequence of str
        In the order in which outputs and targets lie side by side.
    told : int
        How many outputs tell what was hidden.
    variances : array of float32
        Of each channel.
    """
    import torch

    variance = torch.from_numpy(variances)

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        total = outputs.sum() * 0
        if "masked" in tasks:
            wanted = targets[:, :told]
            hidden = ~wanted.isnan()
            errors = (outputs[:, :told] - wanted.nan_to_num()).square() / variance.to(outputs.device).repeat(told // len(variance))
            total = total + (errors * hidden).sum() / hidden.sum().clamp(min=1)
        if "arrow" in tasks:
            place = told if "masked" in tasks else 0
            total = total + torch.nn.functional.binary_cross_entropy_with_logits(outputs[:, place], targets[:, place])
        if "attributes" in tasks:
            scores = outputs[:, -ATTRIBUTES * LEVELS :].reshape(-1, LEVELS)
            total = total + torch.nn.functional.cross_entropy(scores, targets[:, -ATTRIBUTES:].reshape(-1).long(), ignore_index=-1)
        return total

    return loss


def _windows(
    recordings: Sequence[Recording], how: Preparation, reach: Reach, batch: int, samples: int | None, augment: tuple[str, ...]
) -> Trajectories:
    opened = [how.open(recording) for recording in recordings]
    levels = [_levels(recording, how) for recording in recordings]
    values, centers, known, _ = lay_out(opened, levels, reach)
    return Trajectories(values, centers, known, reach, batch, samples, augment, how.layout())


def _levels(recording: Recording, how: Preparation) -> NDArray[np.int16]:
    """Return the levels of the attributes; the frames in which none is known are no examples."""
    poses = recording.signals
    if not isinstance(poses, Poses):
        raise EthobenchError(f"recording {recording.id!r} has no poses")
    if len(poses.individuals) < 2:  # there are none; every frame in which the animal is seen is an example
        seen = np.isfinite(poses.positions[..., 0]).any(axis=(1, 2))
        return np.where(seen, 0, -1).astype(np.int16)[:, None].repeat(ATTRIBUTES, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = programmed_attributes(
            interpolate_poses(poses, rate=how.rate), how.rate, pixels=BODY_PIXELS / how.unit, keypoints=how.stated
        )
    return found.levels.astype(np.int16)


def _variances(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the variance of each channel where it is known; 1 where it never was, or never changed."""
    count = np.maximum(np.count_nonzero(values, axis=0), 1)
    mean = values.sum(axis=0, dtype=np.float64) / count
    spread = np.square(values, dtype=np.float64).sum(axis=0) / count - mean**2
    return np.where(spread > 1e-9, spread, 1.0).astype(np.float32)


def _check(data: Dataset, out: Path, inputs: str, tasks: Sequence[str]) -> None:
    check_new_path(out)
    if inputs not in INPUTS:
        raise EthobenchError(f"pre-training on poses takes {' or '.join(INPUTS)}, not {inputs!r}")
    unknown = [name for name in tasks if name not in TASKS]
    if unknown or not tasks:
        raise EthobenchError(f"tasks are some of {', '.join(TASKS)}, not {', '.join(unknown) or 'none'}")
    fewest = 2 if "attributes" in tasks else 1  # programmed attributes are about two animals
    for recording in data:
        if not isinstance(recording.signals, Poses) or len(recording.signals.individuals) < fewest:
            raise EthobenchError(f"recording {recording.id!r} has no poses of {fewest} animals to pre-train on with {', '.join(tasks)}")
