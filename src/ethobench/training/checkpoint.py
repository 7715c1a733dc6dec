"""The state of a training on disk, so that it can go on after it was killed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethobench.core.errors import FormatError, MismatchError
from ethobench.training.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor

ENTRY = "training"


@dataclass
class State:
    """Where a training stands.

    Attributes
    ----------
    epoch, step : int
        The next step to take.
    losses : list of float
        Mean loss of each finished epoch.
    partial : list of float
        Losses of the steps of the epoch under way.
    validation : list of float
        Loss on the held-out part after each epoch.
    tensors : mapping of str to Tensor
        Weights and the optimizer's memory by name.
    """

    epoch: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    partial: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


class Checkpoint:
    """A file that a training writes now and then, and begins from if it is there.

    Parameters
    ----------
    path : Path
        The file; ``.safetensors`` is the usual suffix.
    every : float
        Seconds between writes within an epoch.
    identity : mapping
        What the training is: a file of another training is refused.
    """

    def __init__(self, path: str | Path, identity: Mapping[str, Any], every: float = 60.0) -> None:
        self.path, self.every = Path(path), every
        self.identity = json.loads(json.dumps(dict(identity)))
        self._written = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last write was long enough ago."""
        return time.monotonic() - self._written >= self.every

    def load(self) -> State | None:
        """Return the state that was written last; None if there is no file."""
        if not self.path.exists():
            return None
        tensors, notes = read_tensors(self.path)
        try:
            told = json.loads(notes[ENTRY])
            identity, state = told["identity"], State(**told["state"], tensors=tensors)
        except (KeyError, TypeError, ValueError):
            raise FormatError(self.path, "this is no checkpoint of a training; remove it to begin anew") from None
        other = sorted(key for key in {*identity, *self.identity} if identity.get(key) != self.identity.get(key))
        if other:
            raise MismatchError(f"{self.path} is the checkpoint of another training ({', '.join(other)} differ); remove it to begin anew")
        return state

    def save(self, state: State) -> None:
        """Write the state; a file that is there is replaced at once, when the new one is complete."""
        facts = {name: getattr(state, name) for name in ("epoch", "step", "losses", "partial", "validation")}
        write_tensors(self.path, state.tensors, {ENTRY: json.dumps({"identity": self.identity, "state": facts})})
        self._written = time.monotonic()
