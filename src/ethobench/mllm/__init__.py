"""Multimodal language models as annotators."""

from ethobench.mllm.repair import Answer, parse_answer

__all__ = ["Answer", "parse_answer"]
