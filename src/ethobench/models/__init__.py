"""Models: one file each."""

from ethobench.models._base import ALL, CONSENSUS, Model, create_model, load_model, models, register_model, truth_of

__all__ = ["ALL", "CONSENSUS", "Model", "create_model", "load_model", "models", "register_model", "truth_of"]
