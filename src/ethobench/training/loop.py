"""The loop that trains any network: handed a module, batches and a loss, it knows none of them."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError
from ethobench.core.progress import report_progress
from ethobench.training.checkpoint import Checkpoint, State
from ethobench.training.device import choose_device, own_random_state, seed_torch
from ethobench.training.losses import Loss

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SCHEDULES = ("cosine", "none")
WEIGHTS, MEMORY, BEST = "weights/", "optimizer/", "best/"


@dataclass(frozen=True)
class Training:
    """How to train.

    Attributes
    ----------
    epochs : int
        At most.
    learning_rate, weight_decay : float
        Of Adam.
    amsgrad : bool
    epsilon : float
        What Adam adds to the root of the mean square.
    schedule : {"cosine", "none"}
        ``cosine``: the learning rate falls from epoch to epoch, towards 0 after the last.
    patience : int, optional
        Stop after so many epochs without a lower loss on the validation part, and keep the weights of the best one.
    seed : int
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
            raise EthobenchError(f"a schedule is {' or '.join(SCHEDULES)}, not {self.schedule!r}")
        if self.epochs < 1 or self.learning_rate <= 0 or (self.patience is not None and self.patience < 1):
            raise EthobenchError("training needs at least one epoch, a learning rate above zero, and a patience of one epoch or more")

    def rate_at(self, epoch: float) -> float:
        """Return the learning rate of an epoch, or of a point between two."""
        falls = self.schedule == "cosine"
        return self.learning_rate * (0.5 * (1 + math.cos(math.pi * epoch / self.epochs)) if falls else 1.0)


class Batches(Protocol):
    """What the loop learns from."""

    def draw(self, generator: np.random.Generator) -> Sequence[Any]:
        """Plan an epoch: one entry for each batch."""

    def gather(self, plan: Any, /) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the inputs and targets of a batch, the same for the same plan."""


@dataclass(frozen=True)
class Progress:
    """Where a training stands, told after every step."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    frames_per_second: float


@dataclass(frozen=True)
class History:
    """What came of a training.

    Attributes
    ----------
    losses : tuple of float
        Mean loss of each epoch.
    validation : tuple of float
        Loss on the held-out part after each epoch.
    best_epoch : int
        Whose weights were kept.
    """

    losses: tuple[float, ...]
    validation: tuple[float, ...]
    best_epoch: int


def train(
    module: torch.nn.Module,
    batches: Batches,
    loss: Loss,
    settings: Training,
    *,
    validation: Batches | None = None,
    checkpoint: str | Path | None = None,
    every: float = 60.0,
    identity: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
    deadline: Deadline | None = None,
) -> History:
    """Train a module in place.

    On a CPU, the same seed and number of threads give the same weights, whether or not the training was killed and begun again.

    Parameters
    ----------
    module : Module
        Parameters that need no gradient stay as they are.
    batches : Batches
    loss : callable
        Takes the module's output and the targets.
    settings : Training
    validation : Batches, optional
        For early stopping; must share no individual with `batches`.
    checkpoint : path, optional
        Where to keep the state. If the file is there, the training goes on from it.
    every : float
        Seconds between writes of the checkpoint; it is also written after every epoch.
    identity : mapping, optional
        What else the training is, beside its settings and shapes; a checkpoint of another one is refused.
    progress : callable, optional
        Told after every step.
    deadline : Deadline, optional
        When to stop even if epochs are left. The learning rate then falls with the time that has passed, where that runs faster than
        the epochs, so that it still ends low. At least one step is made.
    """
    limit = deadline or Deadline()
    if settings.patience is not None and validation is None:
        raise EthobenchError("early stopping needs a validation part")
    run = _Run(module.to(choose_device()), settings)
    file = None
    if checkpoint is not None:
        shapes = {name: list(tensor.shape) for name, tensor in module.state_dict().items()}
        file = Checkpoint(checkpoint, {**(identity or {}), **dataclasses.asdict(settings), "shapes": shapes}, every)
        state = file.load()
        if state is not None:
            run.restore(state)
    with own_random_state(settings.seed):
        while not run.is_done and not (limit.has_passed and run.at.losses):
            _train_epoch(run, batches, loss, file, progress, limit)
            if validation is not None:
                run.judge(_mean_loss(run, validation, loss))
            if file is not None:
                file.save(run.state())
    return run.finish()


class _Run:
    """A module under training: its optimizer, and where it stands."""

    def __init__(self, module: torch.nn.Module, settings: Training) -> None:
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
        self.at = State()
        self.best: dict[str, Tensor] = {}

    @property
    def best_epoch(self) -> int:
        found = self.at.validation
        return int(np.argmin(found)) if found else len(self.at.losses) - 1

    @property
    def is_done(self) -> bool:
        patience, waited = self.settings.patience, self.at.epoch - 1 - self.best_epoch
        return self.at.epoch >= self.settings.epochs or (patience is not None and waited >= patience)

    def set_learning_rate(self, value: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = value

    def step(self, inputs: NDArray[Any], targets: NDArray[Any], loss: Loss) -> float:
        seed_torch(self.settings.seed, self.at.epoch, self.at.step)  # dropout is the same after a new beginning
        self.optimizer.zero_grad(set_to_none=True)
        value = self.evaluate(inputs, targets, loss)
        value.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return float(value.item())

    def evaluate(self, inputs: NDArray[Any], targets: NDArray[Any], loss: Loss) -> Tensor:
        import torch

        return loss(self.module(torch.from_numpy(inputs).to(self.device)), torch.from_numpy(targets).to(self.device))

    def judge(self, loss: float) -> None:
        self.at.validation.append(loss)
        if self.settings.patience is not None and self.best_epoch == len(self.at.validation) - 1:
            self.best = {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()}

    def state(self) -> State:
        """Return where the training stands, with all that it needs to go on."""
        tensors = {WEIGHTS + name: tensor for name, tensor in self.module.state_dict().items()}
        tensors |= {BEST + name: tensor for name, tensor in self.best.items()}
        for name, parameter in self.trained.items():
            tensors |= {f"{MEMORY}{name}/{key}": value for key, value in self.optimizer.state[parameter].items()}
        return dataclasses.replace(self.at, tensors=tensors)

    def restore(self, state: State) -> None:
        self.module.load_state_dict(_below(state.tensors, WEIGHTS))
        self.best = _below(state.tensors, BEST)
        memory = {}
        for place, name in enumerate(self.trained):
            own = _below(state.tensors, f"{MEMORY}{name}/")
            if own:
                memory[place] = own
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": memory})
        self.at = dataclasses.replace(state, tensors={})

    def finish(self) -> History:
        if self.best:
            self.module.load_state_dict(self.best)
        self.module.eval()
        return History(tuple(self.at.losses), tuple(self.at.validation), self.best_epoch)


def _train_epoch(
    run: _Run,
    batches: Batches,
    loss: Loss,
    file: Checkpoint | None,
    progress: Callable[[Progress], None] | None,
    limit: Deadline,
) -> None:
    """Take the steps of an epoch that are not taken yet; fewer if time runs out."""
    at, settings = run.at, run.settings
    plans = batches.draw(np.random.default_rng([settings.seed, at.epoch]))
    run.set_learning_rate(settings.rate_at(at.epoch))
    run.module.train()
    mark = time.perf_counter()
    for plan in plans[at.step :]:
        if limit.is_limited:
            if limit.has_passed and at.partial:
                break
            run.set_learning_rate(settings.rate_at(max(at.epoch, min(limit.fraction_elapsed, 0.99) * settings.epochs)))
        inputs, targets = batches.gather(plan)
        at.partial.append(run.step(inputs, targets, loss))
        at.step += 1
        now = time.perf_counter()
        report_progress("network", max(limit.fraction_elapsed, (at.epoch + at.step / len(plans)) / settings.epochs))
        if progress is not None:
            speed = math.prod(inputs.shape[:-1]) / max(now - mark, 1e-9)
            progress(Progress(at.epoch, settings.epochs, at.step, len(plans), at.partial[-1], speed))
        mark = now
        if file is not None and file.is_due:
            file.save(run.state())
    if not np.isfinite(at.partial).all():
        raise EthobenchError(f"the loss of epoch {at.epoch} is not a number: try a learning rate below {settings.learning_rate:g}")
    at.losses.append(float(np.mean(at.partial)))
    at.epoch, at.step, at.partial = at.epoch + 1, 0, []


def _mean_loss(run: _Run, batches: Batches, loss: Loss) -> float:
    """Return the mean loss over batches that are the same in every epoch."""
    import torch

    run.module.eval()
    with torch.inference_mode():
        plans = batches.draw(np.random.default_rng(run.settings.seed))
        return float(np.mean([run.evaluate(*batches.gather(plan), loss).item() for plan in plans]))


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
