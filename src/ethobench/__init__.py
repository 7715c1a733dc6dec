"""Ethobench turns recordings of animals into behavior annotations, and says how good any annotation is.

Everything public is here, and imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "Annotation": "ethobench.core",
    "Behavior": "ethobench.core",
    "ClockOrigin": "ethobench.core",
    "Dataset": "ethobench.core",
    "Ethogram": "ethobench.core",
    "EthobenchError": "ethobench.core.errors",
    "Observed": "ethobench.core",
    "Poses": "ethobench.core",
    "Prediction": "ethobench.core",
    "Recording": "ethobench.core",
    "Signals": "ethobench.core",
    "read_annotation": "ethobench.formats",
    "read_recordings": "ethobench.formats",
    "write_annotation": "ethobench.formats",
    "write_recordings": "ethobench.formats",
    "load_dataset": "ethobench.datasets",
    "collate": "ethobench.datasets.collate",
    "score": "ethobench.metrics",
    "Scores": "ethobench.metrics",
    "consensus": "ethobench.metrics",
    "agreement": "ethobench.metrics",
    "ceiling": "ethobench.metrics",
    "banos": "ethobench.banos",
    "create_model": "ethobench.models",
    "load_model": "ethobench.models",
    "parse_answer": "ethobench.mllm",
}

__all__ = ["__version__", *_WHERE]  # noqa: PLE0604

if TYPE_CHECKING:
    from ethobench import banos  # noqa: F401
    from ethobench.core import (  # noqa: F401
        Annotation,
        Behavior,
        ClockOrigin,
        Dataset,
        Ethogram,
        Observed,
        Poses,
        Prediction,
        Recording,
        Signals,
    )
    from ethobench.core.errors import EthobenchError  # noqa: F401
    from ethobench.datasets import load_dataset  # noqa: F401
    from ethobench.datasets.collate import collate  # noqa: F401
    from ethobench.formats import read_annotation, read_recordings, write_annotation, write_recordings  # noqa: F401
    from ethobench.metrics import Scores, agreement, ceiling, consensus, score  # noqa: F401
    from ethobench.mllm import parse_answer  # noqa: F401
    from ethobench.models import create_model, load_model  # noqa: F401


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'ethobench' has no attribute {name!r}")
    module = import_module(_WHERE[name])
    value = getattr(module, name) if hasattr(module, name) else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
