"""Multimodal language models as annotators."""

from ethobench.mllm.answers import Answer, parse_answer

__all__ = ["Answer", "parse_answer"]
