"""Where tensors live, and random numbers that disturb nobody else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from ethobench.core.errors import EthobenchError

if TYPE_CHECKING:
    import torch

VARIABLE = "ETHOBENCH_DEVICE"
PACKAGES = {"torch": "nn", "safetensors": "nn"}
"""What networks need, and the extra that brings it."""


def require_torch(what: str) -> None:
    """Refuse in words where torch or safetensors is not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise EthobenchError(f"{what} needs {' and '.join(missing)} (pip install ethobench[nn])")


def choose_device() -> torch.device:
    """Return the device that ``$ETHOBENCH_DEVICE`` names; else a GPU if there is one, else the CPU."""
    import torch

    named = os.environ.get(VARIABLE, "").strip()
    if not named:
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(named)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise EthobenchError(f"${VARIABLE} is {named!r}, which cannot be used here ({str(error).splitlines()[0]})") from None
    return device


@contextmanager
def own_random_state(*entropy: int) -> Iterator[None]:
    """Seed torch for the block, and give everybody else their random numbers back afterwards."""
    import torch

    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        seed_torch(*entropy)
        yield


def seed_torch(*entropy: int) -> None:
    """Seed torch from several whole numbers, e.g. a seed and a step."""
    import torch

    torch.manual_seed(int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]))
