"""Self-supervised pre-training of an encoder on acceleration that nobody has annotated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Dataset, Recording, Signals
from ethobench.core.errors import EthobenchError
from ethobench.core.files import atomic_folder, check_new_path
from ethobench.core.folds import assign_folds
from ethobench.features.filters import axis_triples, is_accelerometer
from ethobench.training.device import own_random_state, require_torch
from ethobench.training.encoder_files import CARD, FRAMES, TENSORS
from ethobench.training.loop import Progress, Training, train
from ethobench.training.pretexts import PRETEXTS, USUAL, movement, tamper
from ethobench.training.streams import Stream, open_stream, unit_factors
from ethobench.training.tensors import write_tensors

if TYPE_CHECKING:
    from torch import Tensor, nn

RATE = 30.0


@dataclass(frozen=True)
class Plan:
    """Some windows, and the seed of what is done to them."""

    windows: NDArray[np.int64]
    seed: int


@dataclass(frozen=True, eq=False)
class PretextWindows:
    """Windows of acceleration to tamper with; what the training loop draws from.

    Attributes
    ----------
    windows : array (n_windows, n_frames, 3) of float32
    groups : array of int
        Whose they are.
    weights : array of float
        How much goes on in each.
    tasks : tuple of str
    subjects, per_subject : int
        A batch holds at most so many windows of each of so many individuals.
    """

    windows: NDArray[np.float32]
    groups: NDArray[np.int64]
    weights: NDArray[np.float64]
    tasks: tuple[str, ...]
    subjects: int
    per_subject: int

    def draw(self, generator: np.random.Generator) -> list[Plan]:
        """Choose windows of every individual, those with movement more often, and deal the individuals to batches."""
        order = generator.permutation(np.unique(self.groups))
        chosen = []
        for group in order:
            own = np.flatnonzero(self.groups == group)
            chances = self.weights[own] + 1e-12
            chosen.append(generator.choice(own, min(self.per_subject, len(own)), replace=False, p=chances / chances.sum()))
        batches = [np.concatenate(chosen[i : i + self.subjects]) for i in range(0, len(chosen), self.subjects)]
        return [Plan(batch, int(generator.integers(2**63))) for batch in batches]

    def gather(self, plan: Plan, /) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return tampered windows, and which task was played on each."""
        return tamper(self.windows[plan.windows], self.tasks, np.random.default_rng(plan.seed))


def pretrain(
    data: Dataset,
    out: str | Path,
    *,
    config: str = "small",
    tasks: Sequence[str] = USUAL,
    rate: float = RATE,
    epochs: int = 200,
    patience: int = 5,
    learning_rate: float = 1e-4,
    subjects: int = 4,
    per_subject: int = 64,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Pre-train an encoder of acceleration without labels, and save it as a folder that the model `harnet` takes as its weights.

    Every accelerometer (channels such as ``AccX, AccY, AccZ``) is brought to a common rate and unit, and cut into windows. A fifth of
    the individuals is held out; training stops when the pretexts are not told better on them.

    Parameters
    ----------
    data : Dataset
        Recordings with signals; annotations are not used.
    out : path
        A folder that is not there yet; it appears whole or not at all.
    config : {"small", "harnet5", "harnet10", "harnet30"}
        The shape of the encoder, and with it of the windows.
    tasks : sequence of {"arrow", "permutation", "warp", "scale"}
        Was time reversed, were parts permuted, was time warped, was the size changed?
    rate : float
        Samples per second that the encoder sees.
    epochs, patience : int
        Of at most so many epochs, stop after so many without a lower loss on the individuals held out.
    learning_rate : float
    subjects, per_subject : int
        A batch holds at most so many windows of each of so many individuals.
    seed : int
    checkpoint : path, optional
        A file that keeps the state of the training; if it is there, the training goes on from it.
    progress : callable, optional
        Told after every step.

    Returns
    -------
    dict
        What the folder's card says: settings, losses, and how often each pretext was told right on the individuals held out.
    """
    require_torch("pre-training")
    from ethobench.training.encoders import PretextNetwork

    out, tasks = Path(out), tuple(dict.fromkeys(tasks))
    _check(out, config, tasks)
    folds = assign_folds(data)
    parts = [
        _windows([r for r in data if (folds[r.id] == 0) is held], data, FRAMES[config], rate, tasks, subjects, per_subject)
        for held in (False, True)
    ]
    with own_random_state(seed):
        module = PretextNetwork(config, tasks)
    settings = Training(epochs, learning_rate, schedule="none", patience=patience, seed=seed)
    identity = {"config": config, "tasks": list(tasks), "rate": rate, "data": data.version, "batch": [subjects, per_subject]}
    history = train(
        module, parts[0], pretext_loss, settings, validation=parts[1], checkpoint=checkpoint, identity=identity, progress=progress
    )
    card: dict[str, Any] = {
        "config": config,
        "ethobench": version("ethobench"),
        "rate": rate,
        "frames": FRAMES[config],
        "tasks": list(tasks),
        "seed": seed,
        "trained_on": f"{data.name} ({len(data)} recordings, version {data.version})",
        "individuals": [len(np.unique(part.groups)) for part in parts],
        "windows": [len(part.windows) for part in parts],
        "losses": list(history.losses),
        "validation": list(history.validation),
        "best_epoch": history.best_epoch,
        "told_right": dict(zip(tasks, _told_right(module, parts[1], seed), strict=True)),
    }
    write_encoder(out, module.encoder.state_dict(), card)
    return card


def pretext_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over tasks of the cross-entropy."""
    import torch

    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())


def _windows(
    recordings: Sequence[Recording], data: Dataset, frames: int, rate: float, tasks: tuple[str, ...], subjects: int, per_subject: int
) -> PretextWindows:
    group_of = data.groups()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(group_of.values()))}
    windows: list[NDArray[np.float32]] = []
    owners: list[NDArray[np.int64]] = []
    for recording in recordings:
        for stream in _accelerometers(recording, rate):
            values, missing, _ = stream.read(0, len(stream))
            count = len(values) // frames
            cut = values[: count * frames].reshape(count, frames, 3)
            whole = ~missing[: count * frames].reshape(count, frames).any(axis=1)
            windows.append(cut[whole])
            owners.append(np.full(int(whole.sum()), numbers[group_of[recording.id]]))
    joined = np.concatenate(windows) if windows else np.zeros((0, frames, 3), dtype=np.float32)
    if not len(joined):
        raise EthobenchError(f"no recording is long enough to pre-train on: a window takes {frames / rate:g} s without gaps")
    return PretextWindows(joined, np.concatenate(owners), movement(joined, rate), tasks, subjects, per_subject)


def _accelerometers(recording: Recording, rate: float) -> list[Stream]:
    """Open each accelerometer of a recording, in multiples of its mean length and at a common rate."""
    signals = recording.signals
    triples = axis_triples(signals.channels) if isinstance(signals, Signals) else {}
    found = [[signals.channels[place] for place in places] for name, places in triples.items() if is_accelerometer(name)]  # type: ignore[union-attr]
    if signals is None or not found:
        raise EthobenchError(f"recording {recording.id!r} has no accelerometer: pre-training needs channels such as AccX, AccY and AccZ")
    streams = [open_stream(signals, names, float(recording.rate or 1.0)) for names in found]
    same = [stream if stream.rate == rate else stream.resampled(rate) for stream in streams]
    return [stream.scaled(unit_factors(stream)) for stream in same]


def _told_right(module: nn.Module, part: PretextWindows, seed: int) -> list[float]:
    import torch

    right = []
    with torch.inference_mode():
        for plan in part.draw(np.random.default_rng(seed)):
            inputs, labels = part.gather(plan)
            scores = module(torch.from_numpy(inputs).to(next(module.parameters()).device))
            right.append(scores.argmax(dim=-1).cpu().numpy() == labels)
    return [float(share) for share in np.concatenate(right).mean(axis=0)]


def _check(out: Path, config: str, tasks: Sequence[str]) -> None:
    check_new_path(out)
    if config not in FRAMES:
        raise EthobenchError(f"the config of an encoder is one of {', '.join(FRAMES)}, not {config!r}")
    unknown = [name for name in tasks if name not in PRETEXTS]
    if unknown or not tasks:
        raise EthobenchError(f"pretexts are some of {', '.join(PRETEXTS)}, not {', '.join(unknown) or 'none'}")


def write_encoder(out: Path, weights: Mapping[str, Tensor], card: Mapping[str, Any]) -> None:
    """Save what was learnt, and a card that tells what it is, as a folder that appears whole or not at all."""
    with atomic_folder(out) as temporary:
        write_tensors(temporary / TENSORS, weights, {})
        (temporary / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False), encoding="utf-8")
