"""Tensors by name in one safetensors file, which is there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ethobench.core.errors import FormatError

if TYPE_CHECKING:
    from torch import Tensor


def write_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> None:
    """Write tensors, and texts by name, under a temporary name; then give the file its own."""
    from safetensors.torch import save

    path.parent.mkdir(parents=True, exist_ok=True)
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, dict(notes))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)  # mkstemp's own mode would hide it from colleagues
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


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
