"""Tensors by name in one safetensors file, which is there whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ethobench.core.errors import FormatError
from ethobench.core.files import write_bytes

if TYPE_CHECKING:
    from torch import Tensor


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
