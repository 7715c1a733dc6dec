"""Providers of models, one module each."""

from ethobench.mllm.providers.base import Access, Provider, ProviderError, providers, register_provider

__all__ = ["Access", "Provider", "ProviderError", "providers", "register_provider"]
