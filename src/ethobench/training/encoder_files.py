"""Weights of encoders: the published checkpoints, which users download themselves, and those pre-trained here."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from ethobench.core.errors import FormatError
from ethobench.core.files import check_self_contained
from ethobench.training.tensors import read_tensors

if TYPE_CHECKING:
    from torch import Tensor

FEATURES = "feature_extractor."
FRAMES = {"harnet5": 150, "harnet10": 300, "harnet30": 900, "small": 900}
TENSORS, CARD = "encoder.safetensors", "encoder.json"
TORCH_SUFFIXES = (".mdl", ".pt", ".pth")
HOME = "https://github.com/OxWearables/ssl-wearables"
LICENCE = (
    "these weights come under the University of Oxford's Academic Use Licence: internal, academic, non-commercial research only, "
    f"not on behalf of others, and passed on only under the same terms ({HOME})"
)


class LicenceNotice(UserWarning):
    """Weights that are used have terms of their own."""


def read_encoder(path: str | Path) -> dict[str, Tensor]:
    """Read the weights of an encoder.

    Parameters
    ----------
    path : path
        A published checkpoint (``.mdl``, ``.pt``: nothing in it is executed), a safetensors file, or a folder that `pretrain` made.
    """
    path = Path(path)
    if path.is_dir():
        read_card(path)
        return read_tensors(path / TENSORS)[0]
    if not path.is_file():
        raise FormatError(path, f"there are no weights here; download a checkpoint yourself from {HOME}, or make your own with pretrain")
    if path.suffix.lower() not in TORCH_SUFFIXES:
        return read_tensors(path)[0]
    tensors = _read_torch(path)
    warnings.warn(f"{path.name}: {LICENCE}", LicenceNotice, stacklevel=2)
    return tensors


def read_card(folder: Path) -> dict[str, object]:
    """Read what a folder that `pretrain` made tells about itself."""
    check_self_contained(folder)
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        if not isinstance(card, dict) or "config" not in card:
            raise ValueError
    except (OSError, ValueError):
        raise FormatError(folder, f"this is no pre-trained encoder: its {CARD} is missing or damaged") from None
    return card


def _read_torch(path: Path) -> dict[str, Tensor]:
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError):
        raise FormatError(path, "refused: this is no torch file that holds nothing but tensors") from None
    if not isinstance(content, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in content.values()):
        raise FormatError(path, "refused: this is no table of tensors by name")
    return content
