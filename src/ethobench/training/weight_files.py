"""Weights on disk: safetensors files of our networks, published encoder checkpoints, and folders of pre-trained encoders."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ethobench.core.errors import EthobenchError, FormatError, describe_exception
from ethobench.core.files import atomic_folder, check_self_contained, write_bytes

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Network = TypeVar("Network", bound="Module")
FORMAT_VERSION = 1
DESCRIPTION = "description"  # key of the JSON description in the safetensors metadata

ENCODER_PREFIX = "feature_extractor."  # of the encoder's weights in published checkpoints
ENCODER_FRAMES = {"harnet5": 150, "harnet10": 300, "harnet30": 900, "small": 900}
"""Frames of a window, by configuration of the encoder."""
ENCODER_WEIGHTS, ENCODER_CARD = "encoder.safetensors", "encoder.json"
TORCH_SUFFIXES = (".mdl", ".pt", ".pth")
CHECKPOINTS_URL = "https://github.com/OxWearables/ssl-wearables"
LICENCE = (
    "these weights are under the University of Oxford's Academic Use Licence: internal, academic, non-commercial research only, "
    f"not on behalf of others, and redistribution only under the same terms ({CHECKPOINTS_URL})"
)


class LicenceNotice(UserWarning):
    """A notice that the weights in use have their own licence."""


def write_weights(path: Path, tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> None:
    """Write tensors by name and a description (JSON) to one safetensors file, atomically; an existing file is replaced."""
    from safetensors.torch import save

    content = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    described = {"format_version": FORMAT_VERSION, **description}
    write_bytes(path, save(content, {DESCRIPTION: json.dumps(described)}), overwrite=True)


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file that `write_weights` wrote.

    Raises
    ------
    FormatError
        If the file is missing or damaged, has no description, or is of an unknown format version.
    """
    tensors, metadata = read_tensors(path)
    try:
        description = json.loads(metadata[DESCRIPTION])
    except (KeyError, ValueError):
        raise FormatError(path, "not a weights file of ethobench: its description is missing or damaged") from None
    check_version(path, description)
    return tensors, description


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors and the metadata of a safetensors file from any source."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118 - not a dict
    except FileNotFoundError:
        raise FormatError(path, "the file is missing") from None
    except (SafetensorError, OSError) as error:
        raise FormatError(path, f"this is not a readable safetensors file ({error})") from None


def check_version(path: Path, content: object) -> None:
    """Refuse a saved file of an unknown format version."""
    version = content.get("format_version") if isinstance(content, dict) else None
    if version != FORMAT_VERSION:
        raise FormatError(path, f"format version {version!r} is not supported; this version of ethobench reads {FORMAT_VERSION}")


def load_weights(build: Callable[[], Network], weights: Mapping[str, Tensor], path: Path) -> Network:
    """Build a network and load weights that were read from a file.

    The network is first built without memory for its weights, and must match those of the file. So a damaged file cannot request a
    network that does not fit into memory.

    Parameters
    ----------
    build : callable
        Builds the network.
    weights : mapping of str to Tensor
    path : Path
        The file, for error messages.

    Raises
    ------
    FormatError
        If names, shapes or types of the weights differ from those of the network, or values are not finite.
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
        stored = weights[name]
        if stored.shape != tensor.shape or stored.dtype != tensor.dtype:
            shapes = f"{list(stored.shape)} {stored.dtype} in the file, {list(tensor.shape)} {tensor.dtype} in the network"
            raise FormatError(path, f"the weights do not fit the network: {name} is {shapes}")
        if not torch.isfinite(stored).all():
            raise FormatError(path, f"the weights {name} are not finite: the file is damaged, or the training diverged")
    network = build()
    network.load_state_dict(dict(weights))
    return network


def write_encoder(folder: Path, weights: Mapping[str, Tensor], card: Mapping[str, Any]) -> None:
    """Write the weights of a pre-trained encoder and its card to a new folder, atomically."""
    with atomic_folder(folder) as temporary:
        write_weights(temporary / ENCODER_WEIGHTS, weights, {})
        text = json.dumps({"format_version": FORMAT_VERSION, **card}, indent=1, ensure_ascii=False)
        (temporary / ENCODER_CARD).write_text(text, encoding="utf-8")


def read_encoder(path: str | Path) -> dict[str, Tensor]:
    """Read the weights of an encoder.

    Parameters
    ----------
    path : path
        A folder written by ``ethobench pretrain``, a safetensors file, or a published checkpoint (``.mdl``, ``.pt``), of which no code is
        executed.
    """
    path = Path(path)
    if path.is_dir():
        read_card(path)
        return read_weights(path / ENCODER_WEIGHTS)[0]
    if not path.is_file():
        raise FormatError(path, f"no weights here; download a checkpoint from {CHECKPOINTS_URL}, or make one with `ethobench pretrain`")
    if path.suffix.lower() not in TORCH_SUFFIXES:
        return read_tensors(path)[0]
    tensors = _read_torch(path)
    warnings.warn(f"{path.name}: {LICENCE}", LicenceNotice, stacklevel=2)
    return tensors


def read_card(folder: Path) -> dict[str, Any]:
    """Read the card of a pre-trained encoder."""
    check_self_contained(folder)
    try:
        card = json.loads((folder / ENCODER_CARD).read_text(encoding="utf-8"))
        if not isinstance(card, dict) or "config" not in card:
            raise ValueError
    except (OSError, ValueError):
        raise FormatError(folder, f"not a pre-trained encoder: its {ENCODER_CARD} is missing or damaged") from None
    check_version(folder / ENCODER_CARD, card)
    return card


def _read_torch(path: Path) -> dict[str, Tensor]:
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError):
        raise FormatError(path, "refused: not a torch file that contains nothing but tensors") from None
    if not isinstance(content, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in content.values()):
        raise FormatError(path, "refused: not a mapping of names to tensors")
    return content
