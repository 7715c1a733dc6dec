"""Models: one file each."""

from ethobench.models.audit import TrainingAudit, audit_scores
from ethobench.models.base import ALL, CONSENSUS, Model, create_model, models, reference_annotation, register_model
from ethobench.models.provenance import TrainingData, TrainingMatch, TrainingRecording
from ethobench.models.saving import load_model

__all__ = [
    "ALL",
    "CONSENSUS",
    "Model",
    "TrainingAudit",
    "TrainingData",
    "TrainingMatch",
    "TrainingRecording",
    "audit_scores",
    "create_model",
    "load_model",
    "models",
    "reference_annotation",
    "register_model",
]
