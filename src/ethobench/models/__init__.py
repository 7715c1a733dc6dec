"""Models: one file each."""

from ethobench.models.audit import TrainingAudit, audit_scores
from ethobench.models.base import ALL, CONSENSUS, Model, create_model, load_model, models, register_model, truth_of
from ethobench.models.provenance import TrainingData, TrainingMatch, TrainingRecording

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
    "register_model",
    "truth_of",
]
