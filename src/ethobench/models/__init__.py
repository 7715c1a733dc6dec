"""Models: one file each."""

from ethobench.models._base import Model, create_model, load_model, models, register_model

__all__ = ["Model", "create_model", "load_model", "models", "register_model"]
