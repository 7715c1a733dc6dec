"""Turn recordings of animals into behavior annotations, and score any annotation.

All public names are available here. Each is imported on first use, so that ``import ethobench`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_MODULES = {
    "ethobench.core": (
        "Annotation",
        "Behavior",
        "ClockOrigin",
        "Dataset",
        "Ethogram",
        "Keypoint",
        "Observed",
        "Poses",
        "Prediction",
        "Recording",
        "Signals",
    ),
    "ethobench.core.errors": (
        "EthobenchError",
        "FormatError",
        "MismatchError",
        "NotFittedError",
        "NotFoundError",
        "ParameterError",
        "ReadWarning",
    ),
    "ethobench.formats.mabe2025_submission": ("write_submission",),
    "ethobench.formats": ("Format", "read_annotation", "read_recordings", "register_format", "write_annotation", "write_recordings"),
    "ethobench.datasets": ("load_dataset", "register_dataset"),
    "ethobench.datasets.collate": ("collate",),
    "ethobench.datasets.zones": ("Zone", "read_zones", "write_zones"),
    "ethobench.metrics": ("Scores", "Suite", "agreement", "ceiling", "consensus", "register_metric", "register_suite", "score"),
    "ethobench.analysis.budgets": ("budgets",),
    "ethobench.analysis.clean_files": ("clean_files",),
    "ethobench.analysis.comparison": ("Comparison",),
    "ethobench.analysis.groups": ("compare_groups",),
    "ethobench.analysis.movement": ("animal_distances", "movement"),
    "ethobench.analysis.transitions": ("bout_table", "transitions"),
    "ethobench.analysis.zones": ("ZoneOptions", "zone_occupancy"),
    "ethobench.features.cleaning": (
        "CleanOptions",
        "clean_poses",
        "filter_by_confidence",
        "interpolate_gaps",
        "remove_jumps",
        "repair_identity_swaps",
        "smooth_median",
        "smooth_savgol",
    ),
    "ethobench.datasets.frame_features": ("read_features",),
    "ethobench.training.video_embedding": ("embed_videos", "write_embedding_manifest"),
    "ethobench.decoding": ("Decoder",),
    "ethobench.models": ("Model", "create_model", "load_model", "register_model"),
    "ethobench.models.teacher": ("Teacher",),
    "ethobench.runs.batch_prediction": ("PredictionSummary", "predict_files"),
    "ethobench.runs.prediction_store": ("PredictionOptions",),
    "ethobench.benchmarks.published": ("published",),
    "ethobench.figures.clips": ("select_bouts", "write_clips", "write_grids", "write_overlay"),
    "ethobench.figures.scenes": ("ClipStyle",),
    "ethobench.figures.timelines": ("plot_timeline", "write_timeline"),
    "ethobench.reports.methods": ("methods_text",),
    "ethobench.mllm": ("parse_answer",),
    "ethobench.mllm.providers": ("Provider", "register_provider"),
}
_SUBMODULES = {"banos": "ethobench.banos", "plot": "ethobench.figures.plots"}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_SUBMODULES, *_MODULE_OF]  # noqa: PLE0604

if TYPE_CHECKING:
    from ethobench import banos  # noqa: F401
    from ethobench.analysis.budgets import budgets  # noqa: F401
    from ethobench.analysis.clean_files import clean_files  # noqa: F401
    from ethobench.analysis.comparison import Comparison  # noqa: F401
    from ethobench.analysis.groups import compare_groups  # noqa: F401
    from ethobench.analysis.movement import animal_distances, movement  # noqa: F401
    from ethobench.analysis.transitions import bout_table, transitions  # noqa: F401
    from ethobench.analysis.zones import ZoneOptions, zone_occupancy  # noqa: F401
    from ethobench.benchmarks.published import published  # noqa: F401
    from ethobench.core import (  # noqa: F401
        Annotation,
        Behavior,
        ClockOrigin,
        Dataset,
        Ethogram,
        Keypoint,
        Observed,
        Poses,
        Prediction,
        Recording,
        Signals,
    )
    from ethobench.core.errors import (  # noqa: F401
        EthobenchError,
        FormatError,
        MismatchError,
        NotFittedError,
        NotFoundError,
        ParameterError,
        ReadWarning,
    )
    from ethobench.datasets import load_dataset, register_dataset  # noqa: F401
    from ethobench.datasets.collate import collate  # noqa: F401
    from ethobench.datasets.frame_features import read_features  # noqa: F401
    from ethobench.datasets.zones import Zone, read_zones, write_zones  # noqa: F401
    from ethobench.decoding import Decoder  # noqa: F401
    from ethobench.features.cleaning import (  # noqa: F401
        CleanOptions,
        clean_poses,
        filter_by_confidence,
        interpolate_gaps,
        remove_jumps,
        repair_identity_swaps,
        smooth_median,
        smooth_savgol,
    )
    from ethobench.figures import plots as plot  # noqa: F401
    from ethobench.figures.clips import select_bouts, write_clips, write_grids, write_overlay  # noqa: F401
    from ethobench.figures.scenes import ClipStyle  # noqa: F401
    from ethobench.figures.timelines import plot_timeline, write_timeline  # noqa: F401
    from ethobench.formats import (  # noqa: F401
        Format,
        read_annotation,
        read_recordings,
        register_format,
        write_annotation,
        write_recordings,
    )
    from ethobench.formats.mabe2025_submission import write_submission  # noqa: F401
    from ethobench.metrics import (  # noqa: F401
        Scores,
        Suite,
        agreement,
        ceiling,
        consensus,
        register_metric,
        register_suite,
        score,
    )
    from ethobench.mllm import parse_answer  # noqa: F401
    from ethobench.mllm.providers import Provider, register_provider  # noqa: F401
    from ethobench.models import Model, create_model, load_model, register_model  # noqa: F401
    from ethobench.models.teacher import Teacher  # noqa: F401
    from ethobench.reports.methods import methods_text  # noqa: F401
    from ethobench.runs.batch_prediction import PredictionSummary, predict_files  # noqa: F401
    from ethobench.runs.prediction_store import PredictionOptions  # noqa: F401
    from ethobench.training.video_embedding import embed_videos, write_embedding_manifest  # noqa: F401


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(_SUBMODULES[name])
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'ethobench' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
