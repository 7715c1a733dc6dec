"""Tensors by name in one safetensors file, which is there whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ethobench.core.errors import EthobenchError, FormatError, describe_exception
from ethobench.core.files import write_bytes

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Network = TypeVar("Network", bound="Module")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> None:
    """Write tensors, and texts by name, under a temporary name; then give the file its own."""
    from safetensors.torch import save

    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, dict(notes))
    write_bytes(path, content, overwrite=True)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors of a file, and its texts."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118 - it is no dict
    except FileNotFoundError:
        raise FormatError(path, "the file is missing") from None
    except (SafetensorError, OSError) as error:
        raise FormatError(path, f"this is not a readable safetensors file ({error})") from None


def load_weights(build: Callable[[], Network], weights: Mapping[str, Tensor], path: Path) -> Network:
    """Build a network and give it weights that were read from a file.

    The network is first built without memory for its weights, so that a damaged file cannot ask for a network that does not fit
    into memory: it must have the weights of each layer.

    Parameters
    ----------
    build : callable
        Builds the network.
    weights : mapping of str to Tensor
    path : Path
        Where they come from.

    Raises
    ------
    FormatError
        If names, shapes or types of the weights differ from those of the network, or some are not finite.
    """
    import torch

    try:
        with torch.device("meta"):
            expected = build().state_dict()
    except EthobenchError:
        raise
    except Exception as error:
        raise FormatError(path, f"the network cannot be built: {describe_exception(error)}") from None
    if {*expected} != {*weights}:
        raise FormatError(path, "the weights do not fit the network: some are missing, or belong to another network")
    for name, tensor in expected.items():
        other = weights[name]
        if other.shape != tensor.shape or other.dtype != tensor.dtype:
            shapes = f"{list(other.shape)} {other.dtype} in the file, {list(tensor.shape)} {tensor.dtype} in the network"
            raise FormatError(path, f"the weights do not fit the network: {name} is {shapes}")
        if not torch.isfinite(other).all():
            raise FormatError(path, f"the weights {name} are not finite: the file is damaged, or the training diverged")
    network = build()
    network.load_state_dict(dict(weights))
    return network
