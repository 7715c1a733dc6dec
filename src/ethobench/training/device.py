"""The torch device, and random numbers that leave the global generator unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from ethobench.core.errors import EthobenchError
from ethobench.core.wording import join_names

if TYPE_CHECKING:
    import torch

VARIABLE = "ETHOBENCH_DEVICE"
PACKAGES = {"torch": "nn", "safetensors": "nn"}
"""Packages that networks need, and the extra of ethobench that installs them."""


def require_torch(purpose: str) -> None:
    """Raise an error with the install command if torch or safetensors is not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise EthobenchError(f"{purpose} needs {join_names(missing)} (pip install 'ethobench[nn]')")


def choose_device() -> torch.device:
    """Return the device named by ``$ETHOBENCH_DEVICE``; by default a GPU if available, else the CPU."""
    import torch

    name = os.environ.get(VARIABLE, "").strip()
    if not name:
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise EthobenchError(f"${VARIABLE} is {name!r}, which cannot be used here ({str(error).splitlines()[0]})") from None
    return device


@contextmanager
def isolated_seed(*entropy: int) -> Iterator[None]:
    """Seed torch for the duration of the block, and restore its global random state afterwards."""
    import torch

    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        seed_torch(*entropy)
        yield


def seed_torch(*entropy: int) -> None:
    """Seed torch from several integers, e.g. a seed, an epoch and a step."""
    import torch

    torch.manual_seed(int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]))
