"""The training loop: optimizer, learning-rate schedule, early stopping and checkpoints, for any module, batches and loss."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, ParameterError
from ethobench.core.progress import report_progress
from ethobench.core.wording import join_names
from ethobench.training.device import choose_device, isolated_seed, seed_torch
from ethobench.training.losses import Loss
from ethobench.training.weight_files import read_weights, write_weights

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SCHEDULES = ("cosine", "none")
MODULE_PREFIX, OPTIMIZER_PREFIX, BEST_PREFIX = "weights/", "optimizer/", "best/"  # of tensors in a checkpoint


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the Adam optimizer and of the loop.

    Attributes
    ----------
    epochs : int
        Maximum number of epochs.
    learning_rate, weight_decay : float
    amsgrad : bool
    schedule : {"cosine", "none"}
        ``cosine``: the learning rate falls from epoch to epoch along a half cosine, towards 0 after the last.
    patience : int, optional
        Stop after this many epochs without a lower validation loss, and restore the weights of the best epoch.
    seed : int
    epsilon : float
        Term that Adam adds to the denominator.
    """

    epochs: int = 100
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    amsgrad: bool = True
    schedule: str = "cosine"
    patience: int | None = None
    seed: int = 0
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ParameterError(f"`schedule` must be {join_names(SCHEDULES, 'or')}, got {self.schedule!r}")
        if self.epochs < 1:
            raise ParameterError(f"`epochs` must be >= 1, got {self.epochs}")
        if self.learning_rate <= 0:
            raise ParameterError(f"`learning_rate` must be > 0, got {self.learning_rate}")
        if self.patience is not None and self.patience < 1:
            raise ParameterError(f"`patience` must be >= 1, got {self.patience}")

    def learning_rate_at(self, epoch: float) -> float:
        """Return the learning rate of an epoch, or of a point between two epochs."""
        if self.schedule == "none":
            return self.learning_rate
        return self.learning_rate * (0.5 * (1 + math.cos(math.pi * epoch / self.epochs)))


class Batches(Protocol):
    """Training or validation data."""

    def draw(self, generator: np.random.Generator) -> Sequence[Any]:
        """Draw an epoch: one plan for each batch."""

    def gather(self, plan: Any, /) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the inputs and targets of a batch; the same plan gives the same batch."""


@dataclass(frozen=True)
class Progress:
    """Progress of a training, after each step."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    frames_per_second: float


@dataclass(frozen=True)
class History:
    """Losses of a finished training.

    Attributes
    ----------
    losses : tuple of float
        Mean training loss of each epoch.
    validation : tuple of float
        Validation loss after each epoch.
    best_epoch : int
        The epoch whose weights were kept.
    """

    losses: tuple[float, ...]
    validation: tuple[float, ...]
    best_epoch: int


@dataclass
class TrainingState:
    """State of a training that is under way.

    Attributes
    ----------
    epoch, step : int
        The next step.
    losses : list of float
        Mean loss of each finished epoch.
    partial : list of float
        Losses of the finished steps of the current epoch.
    validation : list of float
        Validation loss after each epoch.
    tensors : mapping of str to Tensor
        Weights and optimizer state by name.
    """

    epoch: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    partial: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


class Checkpoint:
    """A file with the state of a training, from which it is resumed.

    Parameters
    ----------
    path : path
        A safetensors file.
    identity : mapping
        Settings and data of the training; a file with another identity is refused.
    every : float
        Seconds between writes within an epoch.
    """

    def __init__(self, path: str | Path, identity: Mapping[str, Any], every: float = 60.0) -> None:
        self.path, self.every = Path(path), every
        self.identity = json.loads(json.dumps(dict(identity)))
        self._written = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last write was more than `every` seconds ago."""
        return time.monotonic() - self._written >= self.every

    def load(self) -> TrainingState | None:
        """Return the state in the file; None if it does not exist."""
        if not self.path.exists():
            return None
        tensors, description = read_weights(self.path)
        try:
            identity, state = description["identity"], TrainingState(**description["state"], tensors=tensors)
        except (KeyError, TypeError, ValueError):
            raise FormatError(self.path, "not a training checkpoint; remove it to start again") from None
        different = sorted(key for key in {*identity, *self.identity} if identity.get(key) != self.identity.get(key))
        if different:
            raise MismatchError(
                f"{self.path} is the checkpoint of another training ({', '.join(different)} differ); remove it to start again"
            )
        return state

    def save(self, state: TrainingState) -> None:
        """Write the state, atomically."""
        counters = {name: getattr(state, name) for name in ("epoch", "step", "losses", "partial", "validation")}
        write_weights(self.path, state.tensors, {"identity": self.identity, "state": counters})
        self._written = time.monotonic()


def train(
    module: torch.nn.Module,
    batches: Batches,
    loss: Loss,
    settings: TrainingSettings,
    *,
    validation: Batches | None = None,
    checkpoint: str | Path | None = None,
    every: float = 60.0,
    identity: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
    deadline: Deadline | None = None,
    statistics_batches: int = 0,
) -> History:
    """Train a module in place.

    On a CPU, the same seed and number of threads give the same weights, whether or not the training was interrupted and resumed.

    Parameters
    ----------
    module : Module
        Parameters that require no gradient are not changed.
    batches : Batches
    loss : callable
        Takes the module's output and the targets.
    settings : TrainingSettings
    validation : Batches, optional
        For early stopping; must share no individual with `batches`.
    checkpoint : path, optional
        File for the state. If it exists, the training is resumed from it.
    every : float
        Seconds between writes of the checkpoint; it is also written after every epoch.
    identity : mapping, optional
        Identifies the training, in addition to its settings and shapes; the checkpoint of another one is refused.
    progress : callable, optional
        Called after every step.
    deadline : Deadline, optional
        Stop at this time, after at least one step. The learning rate then follows the elapsed time where that advances faster than the
        epochs, so that it still ends low.
    statistics_batches : int
        Number of training batches on which the statistics of batch normalization are recomputed after each epoch. 0 keeps their running
        means, which lag behind the weights: after few updates at a constant learning rate, a network that has learned its task may seem
        to predict at random.
    """
    deadline = deadline or Deadline()
    if settings.patience is not None and validation is None:
        raise EthobenchError("early stopping (`patience`) needs validation data")
    run = _Run(module.to(choose_device()), settings)
    file = None
    if checkpoint is not None:
        shapes = {name: list(tensor.shape) for name, tensor in module.state_dict().items()}
        file = Checkpoint(checkpoint, {**(identity or {}), **dataclasses.asdict(settings), "shapes": shapes}, every)
        state = file.load()
        if state is not None:
            run.restore(state)
    with isolated_seed(settings.seed):
        while not run.is_done and not (deadline.has_passed and run.state.losses):
            _train_epoch(run, batches, loss, file, progress, deadline)
            if statistics_batches:
                recompute_statistics(run.module, batches, statistics_batches, settings.seed)
            if validation is not None:
                run.add_validation(_mean_loss(run, validation, loss))
            if file is not None:
                file.save(run.complete_state())
    return run.finish()


class _Run:
    """A module under training, its optimizer and its state."""

    def __init__(self, module: torch.nn.Module, settings: TrainingSettings) -> None:
        import torch

        self.module, self.settings = module, settings
        self.device = next(module.parameters()).device
        self.trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.Adam(
            self.trained.values(),
            lr=settings.learning_rate,
            eps=settings.epsilon,
            weight_decay=settings.weight_decay,
            amsgrad=settings.amsgrad,
        )
        self.state = TrainingState()
        self.best: dict[str, Tensor] = {}

    @property
    def best_epoch(self) -> int:
        validation = self.state.validation
        return int(np.argmin(validation)) if validation else len(self.state.losses) - 1

    @property
    def is_done(self) -> bool:
        patience, waited = self.settings.patience, self.state.epoch - 1 - self.best_epoch
        return self.state.epoch >= self.settings.epochs or (patience is not None and waited >= patience)

    def set_learning_rate(self, value: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = value

    def step(self, inputs: NDArray[Any], targets: NDArray[Any], loss: Loss) -> float:
        seed_torch(self.settings.seed, self.state.epoch, self.state.step)  # so that dropout is the same after a resume
        self.optimizer.zero_grad(set_to_none=True)
        value = self.evaluate(inputs, targets, loss)
        value.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return float(value.item())

    def evaluate(self, inputs: NDArray[Any], targets: NDArray[Any], loss: Loss) -> Tensor:
        import torch

        return loss(self.module(torch.from_numpy(inputs).to(self.device)), torch.from_numpy(targets).to(self.device))

    def add_validation(self, loss: float) -> None:
        self.state.validation.append(loss)
        if self.settings.patience is not None and self.best_epoch == len(self.state.validation) - 1:
            self.best = {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()}

    def complete_state(self) -> TrainingState:
        """Return the state with all tensors that a resume needs."""
        tensors = {MODULE_PREFIX + name: tensor for name, tensor in self.module.state_dict().items()}
        tensors |= {BEST_PREFIX + name: tensor for name, tensor in self.best.items()}
        for name, parameter in self.trained.items():
            tensors |= {f"{OPTIMIZER_PREFIX}{name}/{key}": value for key, value in self.optimizer.state[parameter].items()}
        return dataclasses.replace(self.state, tensors=tensors)

    def restore(self, state: TrainingState) -> None:
        self.module.load_state_dict(_below(state.tensors, MODULE_PREFIX))
        self.best = _below(state.tensors, BEST_PREFIX)
        optimizer_state = {}
        for index, name in enumerate(self.trained):
            tensors = _below(state.tensors, f"{OPTIMIZER_PREFIX}{name}/")
            if tensors:
                optimizer_state[index] = tensors
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": optimizer_state})
        self.state = dataclasses.replace(state, tensors={})

    def finish(self) -> History:
        if self.best:
            self.module.load_state_dict(self.best)
        self.module.eval()
        return History(tuple(self.state.losses), tuple(self.state.validation), self.best_epoch)


def _train_epoch(
    run: _Run,
    batches: Batches,
    loss: Loss,
    file: Checkpoint | None,
    progress: Callable[[Progress], None] | None,
    deadline: Deadline,
) -> None:
    """Take the remaining steps of an epoch; fewer if the deadline passes."""
    state, settings = run.state, run.settings
    plans = batches.draw(np.random.default_rng([settings.seed, state.epoch]))
    run.set_learning_rate(settings.learning_rate_at(state.epoch))
    run.module.train()
    last_step = time.perf_counter()
    for plan in plans[state.step :]:
        if deadline.is_limited:
            if deadline.has_passed and state.partial:
                break
            run.set_learning_rate(settings.learning_rate_at(max(state.epoch, min(deadline.fraction_elapsed, 0.99) * settings.epochs)))
        inputs, targets = batches.gather(plan)
        state.partial.append(run.step(inputs, targets, loss))
        state.step += 1
        now = time.perf_counter()
        report_progress("network", max(deadline.fraction_elapsed, (state.epoch + state.step / len(plans)) / settings.epochs))
        if progress is not None:
            frames_per_second = math.prod(inputs.shape[:-1]) / max(now - last_step, 1e-9)
            progress(Progress(state.epoch, settings.epochs, state.step, len(plans), state.partial[-1], frames_per_second))
        last_step = now
        if file is not None and file.is_due:
            file.save(run.complete_state())
    if not np.isfinite(state.partial).all():
        raise EthobenchError(f"the loss of epoch {state.epoch} is not finite: use a learning rate below {settings.learning_rate:g}")
    state.losses.append(float(np.mean(state.partial)))
    state.epoch, state.step, state.partial = state.epoch + 1, 0, []


def recompute_statistics(module: torch.nn.Module, batches: Batches, count: int, seed: int = 0) -> None:
    """Recompute the means and variances of batch normalization on up to `count` batches, with the present weights."""
    import torch

    layers = [each for each in module.modules() if isinstance(each, torch.nn.modules.batchnorm._BatchNorm)]
    if not layers:
        return
    momenta, device = [layer.momentum for layer in layers], next(module.parameters()).device
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the mean over all batches
    module.train()
    with torch.inference_mode():
        for plan in batches.draw(np.random.default_rng(seed))[:count]:
            module(torch.from_numpy(batches.gather(plan)[0]).to(device))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


def _mean_loss(run: _Run, batches: Batches, loss: Loss) -> float:
    """Return the mean loss over the same batches in every epoch."""
    import torch

    run.module.eval()
    with torch.inference_mode():
        plans = batches.draw(np.random.default_rng(run.settings.seed))
        return float(np.mean([run.evaluate(*batches.gather(plan), loss).item() for plan in plans]))


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
