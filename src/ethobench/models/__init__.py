"""Models: one module per family."""

from ethobench.models.audit import TrainingAudit, audit_scores
from ethobench.models.base import Model
from ethobench.models.provenance import TrainingData, TrainingMatch, TrainingRecording
from ethobench.models.registry import create_model, models, register_model
from ethobench.models.saving import load_model
from ethobench.models.training_examples import ALL, CONSENSUS, reference_annotation

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
