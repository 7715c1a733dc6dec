"""What tests of networks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def stir() -> Callable[[Any], Any]:
    """Give a network's normalisations the statistics and weights that a training would, so that no mistake with them goes unseen."""
    import torch

    from ethobench.training.device import isolated_seed

    def stirred(network: torch.nn.Module) -> torch.nn.Module:
        with isolated_seed(0), torch.no_grad():
            for name, tensor in network.state_dict().items():
                if name.endswith("running_var"):
                    tensor.uniform_(0.5, 2.0)
                elif tensor.is_floating_point() and tensor.ndim == 1:
                    tensor.uniform_(-0.5, 1.0)
        return network.eval()

    return stirred
